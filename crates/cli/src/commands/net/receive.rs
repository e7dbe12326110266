// SPDX-License-Identifier: GPL-2.0
//! `andante net receive`: packets that come are worked on by a class.

use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use andante_net::receive::{self, Drops, Hook, How, Order, ReceiveError};
use andante_sched::class::{ClassError, ClassPath, Tree};
use andante_sched::class_paths;
use andante_sched::text::shown;
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output::{self, BOLD, DIM, GOOD, paint};
use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use sd_notify::NotifyState;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use unicode_width::UnicodeWidthStr;

use super::config;

/// How often to look for threads that the device has made anew. The kernel tells nobody when it makes some: a device
/// that goes up says so, but not a driver that resets its card or is told to have other queues. Looking is one
/// question to the kernel.
const LOOK: Duration = Duration::from_secs(1);

/// Let the packets that come by a device be worked on by the class that receives them; stay until ^C.
///
/// The driver's and the protocols' work on packets is done by threads in this class then, in its share and charged to
/// it, and not by whoever was interrupted. What its sockets have no room for is dropped before that work. One device
/// serves one class. The device is as before when this command ends.
#[derive(Args)]
#[command(after_long_help = "\
If the device is down its packets are placed when it comes up. Killed, this command puts nothing back: `andante net restore` does, \
or the next that places packets of the device. `andante net status` shows what was dropped.

--last is not for a class in which something also computes without end, for its packets would wait for that. Packets to other \
hosts are never dropped early, nor are connections. Where addresses are translated on their way in, say --hook nowhere.

/etc/andante.toml says what no option does:
  [net.eth0]
  receive = \"/user.slice/server\"
  receive_last = true
  receive_hook = \"ingress\"

Examples:
  sudo andante net receive eth0 --class /user.slice/server
  sudo andante net receive eth0 --class /server --last
  sudo systemctl enable --now andante-receive@eth0    as the file says, from boot on")]
pub(super) struct Receive {
    /// The device.
    device: String,
    /// The class that works on its packets: the path of its cgroup.
    #[arg(long, value_parser = ClassPath::parse)]
    class: Option<ClassPath>,
    /// Work on packets last, when the class's other tasks leave time: what nobody has time to read is not worked on.
    #[arg(long)]
    last: bool,
    /// Where packets are dropped that a full socket would refuse: in the driver (XDP), at the device's ingress (tcx),
    /// or nowhere; where it costs least if nothing is said.
    #[arg(long, value_name = "WHERE", value_parser = hook())]
    hook: Option<Hook>,
    /// Read this file for what no option says, and not /etc/andante.toml and /etc/andante.d.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Put devices back whose packets a command had placed that was killed.
#[derive(Args)]
#[command(after_help = "Example:\n  sudo andante net restore")]
pub(super) struct Restore {}

fn hook() -> impl TypedValueParser<Value = Hook> {
    PossibleValuesParser::new(Hook::ALL.map(Hook::name))
        .try_map(|name| Hook::named(&name).ok_or("unknown"))
}

impl Receive {
    pub(super) fn run(self) -> Result<Status> {
        let (choices, _) = config::from_files(self.config.as_deref())?;
        let said = choices.net.get(&self.device).cloned().unwrap_or_default();
        let Some(class) = self.class.or(said.receive) else {
            let message = format!(
                "nothing says which class works on the packets of {0}: give --class, or say `receive` at [net.{0}] \
                 of /etc/andante.toml",
                shown(&self.device)
            );
            return Err(Refusal::new(Status::Usage, message).into());
        };
        let how = How {
            order: match self.last {
                true => Order::Last,
                false => said.how.order,
            },
            early: self.hook.or(said.how.early),
        };
        // Before anything is changed, so that no signal can end us half-way.
        let mut ending = Ending::new()?;
        let tree = Tree::open()?;
        tree.check_may_hold_tasks(&class)?;
        let folder = tree.directory(&class);
        let place = || receive::Receive::place(&self.device, &folder, how);
        let Some(placed) = up(&mut ending, &self.device, || of_class(&class, place()))? else {
            return Ok(Status::Ok);
        };
        notify(&class.to_string());
        output::print(&told(&self.device, &class, how.order, placed.hook()))?;
        loop {
            of_class(&class, placed.keep().map(|_| ()))?;
            if ending.within(LOOK)? {
                break;
            }
        }
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
        let drops = rows(placed.drops()?, &class_paths()?);
        placed.end()?;
        output::print(&format!("{} is as it was before.\n", shown(&self.device)))?;
        output::print(&table(&drops))?;
        Ok(Status::Ok)
    }
}

impl Restore {
    pub(super) fn run(self) -> Result<Status> {
        let devices = receive::restore()?;
        if devices.is_empty() {
            output::print("Nothing is left to put back.\n")?;
        }
        for device in devices {
            output::print(&format!("{} is as it was before.\n", shown(&device)))?;
        }
        Ok(Status::Ok)
    }
}

/// Tries again as long as the device is down. None: it is to end.
fn up<T>(ending: &mut Ending, device: &str, place: impl Fn() -> Result<T>) -> Result<Option<T>> {
    let mut said = false;
    loop {
        let error = match place() {
            Ok(placed) => return Ok(Some(placed)),
            Err(error) => error,
        };
        let down = matches!(error.downcast_ref(), Some(ReceiveError::Down(_)));
        if !down {
            return Err(error);
        }
        if !said {
            notify("the device is down");
            let device = shown(device);
            output::note(&format!(
                "{device} is down: its packets are placed when it is up"
            ));
            said = true;
        }
        if ending.within(LOOK)? {
            return Ok(None);
        }
    }
}

/// Without systemd there is nobody to notify, and that is fine.
fn notify(status: &str) {
    let _ = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// An error about the class is told in the words of classes.
fn of_class<T>(class: &ClassPath, done: Result<T, ReceiveError>) -> Result<T> {
    done.map_err(|error| match error {
        ReceiveError::Class { source, .. } => ClassError::from_move(class, 0, source).into(),
        error => error.into(),
    })
}

/// Waits for a signal that ends the command.
struct Ending(UnixStream);

impl Ending {
    fn new() -> Result<Self> {
        let (read, write) = UnixStream::pair()?;
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Self(read))
    }

    /// Has one come by then?
    fn within(&mut self, time: Duration) -> Result<bool> {
        self.0.set_read_timeout(Some(time))?;
        match self.0.read(&mut [0]) {
            Ok(_) => Ok(true),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn told(device: &str, class: &ClassPath, order: Order, hook: Hook) -> String {
    format!(
        "{}: {}. ^C puts it back.\n",
        paint(GOOD, shown(device)),
        sentence(&class.to_string(), order, hook)
    )
}

/// The class that works on packets, when it does, and where packets without room are dropped.
fn sentence(class: &str, order: Order, hook: Hook) -> String {
    let order = match order {
        Order::Equal => "",
        Order::Last => ", last",
    };
    let hook = match hook {
        Hook::Driver => "early drop in the driver",
        Hook::Ingress => "early drop at the ingress",
        Hook::Nowhere => "nothing is dropped early",
    };
    format!("packets in are the work of {}{order}; {hook}", shown(class))
}

/// Packets to sockets of a class that were dropped early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    /// Its path; none: its cgroup is gone.
    class: Option<String>,
    #[serde(flatten)]
    drops: Drops,
}

/// A device whose packets are placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Placed {
    device: String,
    /// None: its cgroup is gone.
    class: Option<String>,
    order: Order,
    hook: Hook,
    /// The process that has placed them.
    pid: u32,
    /// Whether that process is there; if not, `andante net restore` puts the device back.
    lives: bool,
    drops: Vec<Row>,
}

fn rows(drops: Vec<Drops>, paths: &HashMap<u64, String>) -> Vec<Row> {
    let row = |drops: Drops| Row {
        class: paths.get(&drops.cgroup_id).cloned(),
        drops,
    };
    let mut rows: Vec<_> = drops.into_iter().map(row).collect();
    rows.sort_by(|a, b| a.class.cmp(&b.class));
    rows
}

/// The devices whose packets are placed.
pub(super) fn placed() -> Result<Vec<Placed>> {
    let seen = receive::seen()?;
    let paths = match seen.is_empty() {
        true => HashMap::new(),
        false => class_paths()?,
    };
    let of = |seen: receive::Seen| {
        let id = std::fs::metadata(&seen.folder).map(|folder| folder.ino());
        Placed {
            device: seen.device,
            class: id.ok().and_then(|id| paths.get(&id).cloned()),
            order: seen.order,
            hook: seen.hook,
            pid: seen.pid,
            lives: seen.lives,
            drops: rows(seen.drops, &paths),
        }
    };
    Ok(seen.into_iter().map(of).collect())
}

/// A part for each device.
pub(super) fn render(placed: &[Placed]) -> Vec<String> {
    let part = |one: &Placed| {
        let device = paint(BOLD, shown(&one.device));
        if !one.lives {
            return format!(
                "{device}: who had placed its packets was killed; `andante net restore` puts it back\n"
            );
        }
        let class = one.class.as_deref().unwrap_or("(gone)");
        let sentence = sentence(class, one.order, one.hook);
        format!("{device}: {sentence}\n{}", table(&one.drops))
    };
    placed.iter().map(part).collect()
}

/// A line for each class that has lost something; nothing if none has.
fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let name = |row: &Row| shown(row.class.as_deref().unwrap_or("(gone)")).into_owned();
    let width = rows.iter().map(|row| name(row).width()).max().unwrap_or(0);
    let width = width.max(5);
    let head = format!("{:width$}  DROPPED EARLY       BYTES", "CLASS");
    let mut text = format!("{}\n", paint(DIM, head));
    for row in rows {
        let pad = " ".repeat(width - name(row).width());
        let Drops { packets, bytes, .. } = row.drops;
        text += &format!("{}{pad}  {packets:>13}  {bytes:>10}\n", name(row));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drops(cgroup_id: u64, packets: u64) -> Drops {
        Drops {
            cgroup_id,
            packets,
            bytes: packets * 242,
        }
    }

    fn eth0() -> Placed {
        let paths = [(7, "/film".to_owned()), (8, "/a".to_owned())].into();
        Placed {
            device: "eth0".into(),
            class: Some("/film".into()),
            order: Order::Last,
            hook: Hook::Ingress,
            pid: 12,
            lives: true,
            drops: rows(vec![drops(7, 1234), drops(8, 5), drops(9, 1)], &paths),
        }
    }

    #[test]
    fn what_was_dropped_is_told_of_each_class() {
        let text = render(&[eth0()]).concat();
        let text = anstream::adapter::strip_str(&text).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("eth0: packets in are the work of /film, last; early drop"));
        let first = |at: usize| lines[at].split_whitespace().take(2).collect::<Vec<_>>();
        assert_eq!(first(2), ["(gone)", "1"]);
        assert_eq!(first(3), ["/a", "5"]);
        assert_eq!(first(4), ["/film", "1234"]);
        let width = lines[1].width();
        assert!(
            lines[1..].iter().all(|line| line.width() == width),
            "{text}"
        );
        let json = serde_json::to_value(eth0()).unwrap();
        assert_eq!(json["hook"], "ingress");
        assert_eq!(json["drops"][2]["class"], "/film");
        assert_eq!(json["drops"][2]["bytes"], 1234 * 242);
    }

    #[test]
    fn a_device_whose_command_was_killed_says_the_way_out() {
        let killed = Placed {
            lives: false,
            ..eth0()
        };
        let text = render(&[killed]).concat();
        assert!(text.contains("andante net restore"), "{text}");
        assert!(!text.contains("DROPPED"), "{text}");
    }

    /// Down is waited for, until a signal comes; anything else is told.
    #[test]
    fn a_device_that_is_down_is_tried_again() {
        let mut ending = Ending::new().unwrap();
        let tries = std::cell::Cell::new(0);
        let place = || {
            tries.set(tries.get() + 1);
            match tries.get() {
                1 => Err(ReceiveError::Down("eth0".into()).into()),
                _ => Ok(()),
            }
        };
        assert_eq!(up(&mut ending, "eth0", place).unwrap(), Some(()));
        assert_eq!(tries.get(), 2);
        let gone = || -> Result<()> { Err(ReceiveError::NoDevice("eth0".into()).into()) };
        let error = up(&mut ending, "eth0", gone).unwrap_err();
        assert_eq!(andante_terminal::exit::status_of(&error), Status::NoDevice);
        signal_hook::low_level::raise(SIGTERM).unwrap();
        let down = || -> Result<()> { Err(ReceiveError::Down("eth0".into()).into()) };
        assert_eq!(up(&mut ending, "eth0", down).unwrap(), None);
    }
}
