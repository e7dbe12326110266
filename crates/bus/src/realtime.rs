// SPDX-License-Identifier: GPL-2.0
//! `org.freedesktop.RealtimeKit1`: what PulseAudio, PipeWire, JACK and browsers ask for their threads that must not
//! be late, and what the desktop's portal passes on for programs in sandboxes.
//!
//! Nobody is put under a real-time policy: such a thread would run before everything that Andante schedules. That
//! somebody waits for what it does is all that can be taken from the request (decision 49). Numbers are those of
//! rtkit, which programs calculate with; here nothing depends on them.

use std::sync::Arc;
use std::time::Instant;

use andante_session::{Declare, Role};
use tokio::sync::{Mutex, Notify};
use zbus::message::Header;
use zbus::{Connection, fdo, interface};

use crate::rate::Rate;
use crate::refusal::Refusal;
use crate::spokesman::{Spokesman, Standing};

/// The name on the bus.
pub const NAME: &str = "org.freedesktop.RealtimeKit1";
/// The object.
pub const PATH: &str = "/org/freedesktop/RealtimeKit1";

/// Priorities that may be asked for: 1 to this.
const MAX_REALTIME_PRIORITY: i32 = 20;
/// Nice values that may be asked for: from this to -1.
const MIN_NICE_LEVEL: i32 = -15;
/// What programs limit themselves to [µs of CPU time without a pause, RLIMIT_RTTIME]. Threads that are not
/// real-time have no such limit.
const RTTIME_USEC_MAX: i64 = 200_000;

/// Answers.
pub struct Realtime {
    spokesman: Arc<Spokesman>,
    rate: Mutex<Rate>,
    /// Told if this program is asked to end.
    leave: Arc<Notify>,
}

/// Who asks.
struct Sender {
    uid: u32,
    pid: u32,
}

#[interface(name = "org.freedesktop.RealtimeKit1")]
impl Realtime {
    async fn make_thread_realtime(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
        thread: u64,
        priority: u32,
    ) -> fdo::Result<()> {
        let sender = sender(&header, bus).await?;
        let process = sender.pid.into();
        Ok(self.realtime(&sender, process, thread, priority).await?)
    }

    #[zbus(name = "MakeThreadRealtimeWithPID")]
    async fn make_thread_realtime_with_pid(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
        process: u64,
        thread: u64,
        priority: u32,
    ) -> fdo::Result<()> {
        let sender = sender(&header, bus).await?;
        Ok(self.realtime(&sender, process, thread, priority).await?)
    }

    async fn make_thread_high_priority(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
        thread: u64,
        priority: i32,
    ) -> fdo::Result<()> {
        let sender = sender(&header, bus).await?;
        let process = sender.pid.into();
        Ok(self
            .high_priority(&sender, process, thread, priority)
            .await?)
    }

    #[zbus(name = "MakeThreadHighPriorityWithPID")]
    async fn make_thread_high_priority_with_pid(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
        process: u64,
        thread: u64,
        priority: i32,
    ) -> fdo::Result<()> {
        let sender = sender(&header, bus).await?;
        Ok(self
            .high_priority(&sender, process, thread, priority)
            .await?)
    }

    /// Nobody is waited for any more by what was asked for here.
    async fn reset_known(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> fdo::Result<()> {
        must_be_root(&sender(&header, bus).await?)?;
        Ok(self.spokesman.retract_all().await?)
    }

    /// The same: real-time threads that this program has not made are not its to change.
    async fn reset_all(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> fdo::Result<()> {
        self.reset_known(header, bus).await
    }

    /// Ends this program, and with it what was asked for here.
    async fn exit(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> fdo::Result<()> {
        must_be_root(&sender(&header, bus).await?)?;
        self.leave.notify_one();
        Ok(())
    }

    #[zbus(property(emits_changed_signal = "const"), name = "RTTimeUSecMax")]
    async fn rttime_usec_max(&self) -> i64 {
        RTTIME_USEC_MAX
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn max_realtime_priority(&self) -> i32 {
        MAX_REALTIME_PRIORITY
    }

    #[zbus(property(emits_changed_signal = "const"))]
    async fn min_nice_level(&self) -> i32 {
        MIN_NICE_LEVEL
    }
}

impl Realtime {
    /// One who speaks so; `leave` is told if it is asked to end.
    pub fn new(spokesman: Arc<Spokesman>, leave: Arc<Notify>) -> Self {
        Self {
            spokesman,
            rate: Mutex::default(),
            leave,
        }
    }

    async fn realtime(
        &self,
        sender: &Sender,
        process: u64,
        thread: u64,
        priority: u32,
    ) -> Result<(), Refusal> {
        check_priority(priority)?;
        self.declare(sender, process, thread, Role::Audio).await
    }

    /// A nice value below zero says the same of a thread as a real-time priority, only less of its beat: that it
    /// answers somebody.
    async fn high_priority(
        &self,
        sender: &Sender,
        process: u64,
        thread: u64,
        nice: i32,
    ) -> Result<(), Refusal> {
        check_nice(nice)?;
        self.declare(sender, process, thread, Role::Interactive)
            .await
    }

    async fn declare(
        &self,
        sender: &Sender,
        process: u64,
        thread: u64,
        role: Role,
    ) -> Result<(), Refusal> {
        let number = |number: u64| {
            let refused =
                || Refusal::Nonsense(format!("{number} is no number of a process or thread"));
            i32::try_from(number).map_err(|_| refused())
        };
        let process = number(process)?;
        let thread = match number(thread)? {
            0 => process,
            thread => thread,
        };
        if !self.rate.lock().await.admits(sender.uid, Instant::now()) {
            return Err(Refusal::TooOften);
        }
        let asked = Declare {
            process,
            thread: Some(thread),
            role,
            user: Some(sender.uid),
        };
        if let Some(standing) = self.spokesman.declare(asked).await? {
            watch(&self.spokesman, standing);
        }
        Ok(())
    }
}

/// What stands for the process does until it ends.
pub fn watch(spokesman: &Arc<Spokesman>, standing: Standing) {
    let spokesman = Arc::clone(spokesman);
    tokio::spawn(async move {
        standing.process.ended().await;
        spokesman.forget(standing.number).await;
    });
}

fn check_priority(priority: u32) -> Result<(), Refusal> {
    let most = MAX_REALTIME_PRIORITY as u32;
    match priority {
        0 => Err(Refusal::Nonsense(format!(
            "a priority of 0 is none: ask for 1 to {most}"
        ))),
        priority if priority > most => Err(Refusal::TooHigh(format!(
            "a priority of {priority} is too high: ask for 1 to {most}"
        ))),
        _ => Ok(()),
    }
}

fn check_nice(nice: i32) -> Result<(), Refusal> {
    let may = format!("ask for {MIN_NICE_LEVEL} to -1");
    match nice {
        -20..MIN_NICE_LEVEL => Err(Refusal::TooHigh(format!(
            "a nice value of {nice} is too high: {may}"
        ))),
        MIN_NICE_LEVEL..0 => Ok(()),
        0..20 => Err(Refusal::Nonsense(format!(
            "a nice value of {nice} asks for nothing: set it yourself (setpriority), or {may}"
        ))),
        _ => Err(Refusal::Nonsense(format!(
            "there is no nice value of {nice}: {may}"
        ))),
    }
}

/// Who asks, by the bus's word.
async fn sender(header: &Header<'_>, bus: &Connection) -> fdo::Result<Sender> {
    let unknown = || fdo::Error::AccessDenied("the bus does not say who asks".into());
    let name = header.sender().ok_or_else(unknown)?.to_owned();
    let daemon = fdo::DBusProxy::new(bus).await?;
    let known = daemon.get_connection_credentials(name.into()).await?;
    match (known.unix_user_id(), known.process_id()) {
        (Some(uid), Some(pid)) => Ok(Sender { uid, pid }),
        _ => Err(unknown()),
    }
}

fn must_be_root(sender: &Sender) -> fdo::Result<()> {
    let message = "this ends what was done for all users: only root may ask for it";
    match sender.uid {
        0 => Ok(()),
        _ => Err(fdo::Error::AccessDenied(message.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_told_from_what_is_too_much() {
        assert_eq!(check_priority(1), Ok(()));
        assert_eq!(check_priority(20), Ok(()));
        assert!(matches!(check_priority(0), Err(Refusal::Nonsense(_))));
        assert!(matches!(check_priority(21), Err(Refusal::TooHigh(_))));
        assert_eq!(check_nice(-1), Ok(()));
        assert_eq!(check_nice(-15), Ok(()));
        assert!(matches!(check_nice(-16), Err(Refusal::TooHigh(_))));
        for nonsense in [0, 19, 20, -21, i32::MIN, i32::MAX] {
            assert!(matches!(check_nice(nonsense), Err(Refusal::Nonsense(_))));
        }
    }
}
