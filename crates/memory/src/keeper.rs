// SPDX-License-Identifier: GPL-2.0
//! The process that looks after reserved memory: it may wait for a disk, so nobody else waits for it.
//!
//! ```text
//!     daemon ──orders──► main thread ── holds, asks ahead, tells once a second ──► daemon
//!                            │
//!                            └─ taking thread: keeps free what is not lent, as [`crate::demand`] has it
//! ```
//!
//! It ends with its input. If that is because the daemon was killed, it puts back what was protected.

mod sparing;
mod taking;
mod tracked;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::mman::{MlockAllFlags, mlockall};

use self::sparing::Sparing;
use self::tracked::Tracked;
use crate::error::MemoryError;
use crate::firewall::Firewall;
use crate::holder::Holder;
use crate::learn::Estimate;
use crate::machine::{self, Machine};
use crate::pages;
use crate::protect;
use crate::words::{Order, Report, Reserved, Watched};
use crate::{Cgroup, cached, demand, firewall, oom};

/// How often the daemon is told, and watched classes are looked at.
const TELL: Duration = Duration::from_secs(1);

/// The state that both threads know.
#[derive(Debug, Default)]
struct Shared {
    tracked: Vec<Tracked>,
    holder: Holder,
    machine: Machine,
    /// Taken from those without a reservation [bytes].
    taken: u64,
    /// The most that each of those may have now [bytes].
    limit: Option<u64>,
    over: bool,
}

type State = Arc<Mutex<Shared>>;

/// A thread that has panicked has left plain numbers behind.
fn locked(state: &State) -> MutexGuard<'_, Shared> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks after reservations as it is told by lines of input, until that ends; then puts back what is protected below
/// `root`, by what was written down in `kept`.
///
/// # Errors
/// `/proc` is not there, or what was protected cannot be put back.
pub fn run(
    input: impl io::Read + AsFd,
    output: impl Write,
    root: &Path,
    kept: &Path,
) -> Result<(), MemoryError> {
    // Much of the program is of no use any more once it has begun: a quarter of what would be locked else.
    pages::unmap_own_program();
    // It works when memory is short. Without the right to lock some it works as well as anybody then.
    let _ = mlockall(
        MlockAllFlags::MCL_CURRENT
            | MlockAllFlags::MCL_FUTURE
            | MlockAllFlags::from_bits_retain(MCL_ONFAULT),
    );
    // By which people find it; it was started by a name that says nothing.
    // SAFETY: the kernel reads a string that ends.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"andante-memory".as_ptr()) };
    // The daemon that starts it is above all others, for its answers. The work here is no more urgent than that which others
    // do: as nice as that it kept the threads that write the swap from running, and waited for them, for eleven seconds.
    // SAFETY: no pointers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 0) };
    let state = State::default();
    locked(&state).machine = Machine::now()?;
    let firewall = Arc::new(Mutex::new(Some(Firewall::open(kept)?)));
    let taking = {
        let (state, root, firewall) = (Arc::clone(&state), root.to_owned(), Arc::clone(&firewall));
        std::thread::spawn(move || taking::run(&state, &root, &firewall))
    };
    let mut keeper = Keeper {
        state: Arc::clone(&state),
        watched: BTreeMap::new(),
        sparing: Sparing::open(kept)?,
        output,
        looked: Instant::now(),
        told: Instant::now(),
        read: Instant::now(),
    };
    keeper.obey(input);
    locked(&state).over = true;
    taking.thread().unpark();
    // It may be waiting for the swap; nothing of it is needed any more, and it sets no more limits from here on.
    drop(taking);
    firewall
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    restore(root, kept)
}

/// Puts back what is left by one that is no more.
///
/// # Errors
/// As for [`run`].
pub fn restore(root: &Path, kept: &Path) -> Result<(), MemoryError> {
    let spared = oom::restore(kept);
    let lifted = firewall::restore(kept);
    protect::restore(root, kept).and(spared).and(lifted)
}

/// All of the machine is read again after this.
const READ_ANEW: Duration = Duration::from_secs(60);

/// `MCL_ONFAULT` of `asm-generic/mman.h`: what is mapped is locked when it is used, not before.
const MCL_ONFAULT: i32 = 4;

/// The main thread.
struct Keeper<W> {
    state: State,
    watched: BTreeMap<u64, (Cgroup, Estimate)>,
    sparing: Sparing,
    output: W,
    looked: Instant,
    told: Instant,
    /// When all of the machine was read, with what hardly ever changes.
    read: Instant,
}

impl<W: Write> Keeper<W> {
    fn obey(&mut self, mut input: impl io::Read + AsFd) {
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let pause = self.pause();
            let found = {
                let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
                // Whole milliseconds; the rest of one would be spent in asking again and again.
                let up = pause + Duration::from_nanos(999_999);
                let timeout = PollTimeout::try_from(up).unwrap_or(PollTimeout::ZERO);
                poll(&mut fds, timeout)
            };
            match found {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => match input.read(&mut buffer) {
                    Ok(0) | Err(_) => return,
                    Ok(read) => text.extend_from_slice(&buffer[..read]),
                },
                Err(_) => return,
            }
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                // Words of a newer daemon that we do not know are passed over.
                if let Ok(order) = serde_json::from_slice(&line) {
                    self.order(order);
                }
            }
            // All of them at once: to wake up takes time as well.
            if self.pause().is_zero() {
                self.looked = Instant::now();
                self.look();
            }
            if self.told.elapsed() >= TELL {
                self.told = Instant::now();
                if self.tell().is_err() {
                    return;
                }
            }
        }
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Keep { reserved, watched } => {
                self.keep(reserved, watched);
                self.see_to_sparing();
            }
            Order::Wake { pid } => {
                let room = spare(&locked(&self.state));
                // It may have ended meanwhile.
                let asked = pages::ask_for(pid, room).unwrap_or(0);
                let mut state = locked(&self.state);
                let its = |one: &&mut Tracked| one.cgroup.processes().contains(&pid);
                if let Some(tracked) = state.tracked.iter_mut().find(its) {
                    tracked.asked_ahead += asked;
                }
            }
        }
    }

    fn keep(&mut self, reserved: Vec<Reserved>, watched: Vec<Watched>) {
        let mut state = locked(&self.state);
        let state = &mut *state;
        for gone in state.tracked.iter().filter(|one| !one.is_among(&reserved)) {
            state.holder.let_go(gone.number);
        }
        let mut before = std::mem::take(&mut state.tracked);
        for one in reserved {
            let same = |tracked: &Tracked| tracked.number == one.number;
            let at = before.iter().position(same);
            let mut tracked = at.map_or_else(|| Tracked::new(&one), |at| before.swap_remove(at));
            (tracked.bytes, tracked.lend_per_mille) = (one.bytes, one.lend_per_mille);
            state.tracked.push(tracked);
        }
        let mut former = std::mem::take(&mut self.watched);
        for one in watched {
            let new = || (Cgroup::new(&one.folder), Estimate::default());
            self.watched
                .insert(one.number, former.remove(&one.number).unwrap_or_else(new));
        }
    }

    /// Until the next look: nobody asks for pages where none were taken.
    fn pause(&self) -> Duration {
        let state = locked(&self.state);
        let every = match &state.tracked[..] {
            [] => TELL,
            all if all.iter().any(Tracked::waits) => tracked::IDLE,
            _ => tracked::ACTIVE,
        };
        let until_told = TELL.saturating_sub(self.told.elapsed());
        every.saturating_sub(self.looked.elapsed()).min(until_told)
    }

    /// Whether classes go on that were idle, and what they use that is counted for others.
    fn look(&mut self) {
        let mut asking = Vec::new();
        let mut holding = Vec::new();
        {
            let mut state = locked(&self.state);
            let spare = spare(&state);
            for tracked in &mut state.tracked {
                if tracked.goes_on() {
                    let room = tracked.seen.unused() + spare;
                    asking.push((tracked.number, tracked.cgroup.clone(), room));
                }
                if tracked.is_to_be_scanned() {
                    holding.push((tracked.number, tracked.cgroup.clone()));
                }
            }
        }
        // Both may wait for a disk, so nothing is locked meanwhile.
        for (number, cgroup, room) in asking {
            let asked = ask_for_all(&cgroup, room);
            if let Some(tracked) = locked(&self.state).named(number) {
                tracked.asked_ahead += asked;
            }
        }
        for (number, cgroup) in holding {
            let own = cgroup.inodes();
            let mut used = Vec::new();
            for pid in cgroup.processes() {
                // It may have ended meanwhile.
                used.extend(pages::elsewhere(pid, &own).unwrap_or_default());
            }
            let mut state = locked(&self.state);
            let state = &mut *state;
            let Some(tracked) = state.tracked.iter().find(|one| one.number == number) else {
                continue;
            };
            let own = cgroup.current().unwrap_or(tracked.seen.used);
            let room = tracked.bytes.saturating_sub(own);
            state.holder.hold(number, &pages::of_all(used), room);
        }
    }

    /// Reserved memory does not count when somebody has to be killed.
    fn see_to_sparing(&mut self) {
        let (classes, all) = {
            let mut state = locked(&self.state);
            let classes = state.tracked.iter_mut().map(sparing::Class::of).collect();
            (classes, state.machine.total + state.machine.swap)
        };
        self.sparing.look(classes, all);
    }

    fn tell(&mut self) -> io::Result<()> {
        self.see_to_sparing();
        for (cgroup, estimate) in self.watched.values_mut() {
            if let Ok(stat) = cgroup.stat() {
                let programs = || cached::of_programs(&cgroup.processes());
                estimate.look(&stat, cgroup.stalled_us().unwrap_or(0), programs);
            }
        }
        let needed = self
            .watched
            .iter()
            .map(|(number, (_, estimate))| (*number, estimate.bytes()));
        let needed = needed.collect();
        let report = {
            let mut state = locked(&self.state);
            let read = match self.read.elapsed() < READ_ANEW {
                true => state.machine.later(),
                false => {
                    self.read = Instant::now();
                    Machine::now()
                }
            };
            state.machine = read.unwrap_or(state.machine);
            let state = &mut *state;
            let classes = state
                .tracked
                .iter_mut()
                .map(|one| one.report(&state.holder));
            Report {
                free: machine::free().memory,
                floor: state.machine.floor,
                swap: state.machine.swap,
                held: state.holder.bytes(),
                taken: state.taken,
                limit: state.limit,
                classes: classes.collect(),
                needed,
            }
        };
        let mut line = serde_json::to_vec(&report)?;
        line.push(b'\n');
        self.output.write_all(&line)?;
        self.output.flush()
    }
}

/// Memory that can be used without anybody losing any [bytes].
fn spare(state: &Shared) -> u64 {
    let kept_free: u64 = state.tracked.iter().map(|one| one.seen.kept_free()).sum();
    machine::free()
        .memory
        .saturating_sub(state.machine.floor + kept_free)
}

fn ask_for_all(cgroup: &Cgroup, room: u64) -> u64 {
    let mut asked = 0;
    for pid in cgroup.processes() {
        asked += pages::ask_for(pid, room - asked).unwrap_or(0);
    }
    asked
}

impl Shared {
    fn named(&mut self, number: u64) -> Option<&mut Tracked> {
        self.tracked.iter_mut().find(|one| one.number == number)
    }

    fn look(&mut self) {
        for one in &mut self.tracked {
            one.look(&self.holder);
        }
    }

    /// All classes as decisions see them.
    fn seen(&self) -> Vec<demand::Class> {
        self.tracked.iter().map(|one| one.seen).collect()
    }
}
