// SPDX-License-Identifier: GPL-2.0
//! The daemon: whatever a client sends, it panics at nothing, waits for nobody, answers every line, and
//! its books agree with the kernel's contracts.
//!
//! An input is lines. Those that begin with `!` are what happens on the machine, the others are sent:
//!
//! ```text
//! !user 1000          the next requests are of this user; 0 is root
//! !exit 100           this process ends, and its contracts with it
//! !cpus 5             the CPUs of this mask are online
//! !gone /film         this class is removed
//! !bound 200 2        this thread may use the CPUs of this mask only
//! !fails 3            so many calls from now on one is refused by the kernel
//! ```

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use andante_admission::{Nearest, Placement};
use andante_daemon::fakes::{FakeKernel, ROOT, World};
use andante_daemon::{
    Ask, Caller, Daemon, Holder, Kernel, List, Reply, Request, Settings, Socket, Terms,
};
use andante_sched::contracts::{
    CallError, ClassLeaf, Contract, ContractName, HeldBy, Piece, Promise,
};
use andante_sched::explained::Explained;
use andante_sched::session::{Calls, Declared, Source, ToldBy};
use andante_sched::{LeafPolicy, PolicyError, Seen, StateError};

const CPUS: u32 = 4;
/// Lines of an input that are looked at: the rest would be more of the same.
const MAX_LINES: usize = 64;

/// The bytes, both ways.
pub fn run(bytes: &[u8]) {
    through_books(bytes);
    through_socket(bytes);
}

/// Some processes of two users and some classes.
fn world() -> World {
    let mut world = World::new(CPUS);
    for (pid, name, more) in [
        (100, "mpv", &[101][..]),
        (200, "make", &[]),
        (300, "x y", &[]),
    ] {
        world.host.process(pid, name, more);
    }
    world.host.change(300).uids = [1000; 3];
    for (path, owner) in [("/film", 0), ("/film/sound", 0), ("/user", 1000)] {
        world.class(path, owner);
    }
    world.host.place(200, "/film/sound");
    world
}

// ---- the books ----

/// A kernel that refuses a call now and then.
struct Moody<'a> {
    kernel: &'a mut FakeKernel,
    /// Calls until one is refused; none is if this is 0.
    fails: &'a mut u32,
}

impl Moody<'_> {
    fn ask(&mut self) -> Result<(), CallError> {
        let refused = *self.fails == 1;
        *self.fails = self.fails.saturating_sub(1);
        match refused {
            true => Err(CallError::Other("no".to_owned())),
            false => Ok(()),
        }
    }
}

impl Kernel for Moody<'_> {
    fn create(
        &mut self,
        promise: &Promise,
        held_by: HeldBy,
        pieces: &[Piece],
    ) -> Result<ContractName, CallError> {
        self.ask()?;
        self.kernel.create(promise, held_by, pieces)
    }

    fn move_to(&mut self, name: ContractName, cpu: u32) -> Result<(), CallError> {
        self.ask()?;
        self.kernel.move_to(name, cpu)
    }

    fn remove(&mut self, name: ContractName) -> Result<(), CallError> {
        self.kernel.remove(name)
    }

    fn nest(&mut self, name: ContractName, around: Option<ContractName>) -> Result<(), CallError> {
        self.ask()?;
        self.kernel.nest(name, around)
    }

    fn bind(&mut self, tid: i32, name: ContractName) -> Result<(), CallError> {
        self.ask()?;
        self.kernel.bind(tid, name)
    }

    fn unbind(&mut self, tid: i32) -> Result<(), CallError> {
        self.ask()?;
        self.kernel.unbind(tid)
    }

    fn declare(&mut self, tid: i32, declared: Option<Declared>) -> Result<(), CallError> {
        self.ask()?;
        self.kernel.declare(tid, declared)
    }

    fn share_page(&mut self, tid: i32, page: *const u8) -> Result<(), CallError> {
        self.ask()?;
        self.kernel.share_page(tid, page)
    }

    fn hear_calls(&mut self, on: bool) -> Calls {
        self.kernel.hear_calls(on)
    }

    fn call_program(&self) -> Option<OwnedFd> {
        self.kernel.call_program()
    }

    fn look(&mut self, sink: u32, deliver_ns: u64) -> Result<(), CallError> {
        self.ask()?;
        self.kernel.look(sink, deliver_ns)
    }

    fn tell(
        &mut self,
        sink: u32,
        by: Option<ToldBy>,
        uid: u32,
    ) -> Result<Option<OwnedFd>, CallError> {
        self.ask()?;
        self.kernel.tell(sink, by, uid)
    }

    fn subscribe(
        &mut self,
        socket: BorrowedFd<'_>,
        source: Option<Source>,
    ) -> Result<(), CallError> {
        self.ask()?;
        self.kernel.subscribe(socket, source)
    }

    fn hear_no_sources(&mut self) {
        self.kernel.hear_no_sources();
    }

    fn sweep(&mut self) -> Result<(), CallError> {
        self.kernel.sweep()
    }

    fn own_classes(&mut self, most: usize) -> usize {
        self.kernel.own_classes(most)
    }

    fn set_policy(&mut self, cgroup_id: u64, policy: LeafPolicy) -> Result<(), PolicyError> {
        self.kernel.set_policy(cgroup_id, policy)
    }

    fn contracts(&self) -> Vec<Contract> {
        self.kernel.contracts()
    }

    fn seen(&self) -> Result<Seen, StateError> {
        self.kernel.seen()
    }

    fn explained(&self, pid: i32) -> Result<Option<Vec<Explained>>, StateError> {
        self.kernel.explained(pid)
    }

    fn rhythm_ns(&self, tid: i32) -> Option<u32> {
        self.kernel.rhythm_ns(tid)
    }

    fn class_leaf(&self, cgroup_id: u64) -> Option<ClassLeaf> {
        self.kernel.class_leaf(cgroup_id)
    }
}

struct Books {
    world: World,
    caller: Caller,
    fails: u32,
}

impl Books {
    fn answer(&mut self, request: &Request) -> Reply {
        let mut kernel = Moody {
            kernel: &mut self.world.kernel,
            fails: &mut self.fails,
        };
        let (books, host) = (&mut self.world.books, &self.world.host);
        let reply = books.answer(&mut kernel, host, self.caller, request, 0);
        let text = serde_json::to_string(&reply).expect("a reply can be written");
        let read: Reply = serde_json::from_str(&text).expect("a reply can be read");
        assert_eq!(read, reply);
        reply
    }

    fn list(&mut self) -> List {
        match self.answer(&Request::List {}) {
            Reply::Contracts(list) => *list,
            reply => panic!("asked for a list: {reply:?}"),
        }
    }

    /// Something happens on the machine.
    fn happens(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let word = words.next().unwrap_or_default();
        let what = words.next().unwrap_or_default();
        let number: u32 = what.parse().unwrap_or(0);
        let host = &mut self.world.host;
        match word {
            "user" if number == 0 => self.caller = ROOT,
            "user" => {
                self.caller = Caller {
                    uid: number,
                    account: number,
                    privileged: false,
                };
            }
            "exit" if [100, 200, 300].contains(&number) => {
                let pid = number.cast_signed();
                host.exit(pid);
                let gone = [pid, pid + 1];
                self.world.kernel.dead.extend(gone);
                for made in &mut self.world.kernel.made {
                    made.bound.retain(|tid| !gone.contains(tid));
                }
                let held = |held_by: &HeldBy| matches!(held_by, HeldBy::Class(_));
                let made = &mut self.world.kernel.made;
                made.retain(|made| held(&made.held_by) || !made.bound.is_empty());
            }
            "cpus" => host.online = (0..CPUS).filter(|cpu| number >> cpu & 1 == 1).collect(),
            "gone" => {
                // It may be gone already, and the made-up machine does not forgive that.
                let path = andante_sched::class::ClassPath::parse(what);
                use andante_daemon::Host;
                if path.is_ok_and(|path| path.to_text() == what && host.class(&path).is_some()) {
                    host.remove_class(what);
                }
            }
            "bound" => {
                use andante_daemon::Host;
                let mask = words.next().and_then(|mask| mask.parse().ok()).unwrap_or(0);
                if host.thread(number.cast_signed()).is_some() {
                    host.change(number.cast_signed()).allowed = mask;
                }
            }
            "fails" => self.fails = number,
            _ => {}
        }
    }

    /// An offer is kept: whoever asks for it is not refused.
    fn check_offers(&mut self, ask: &Ask, nearest: &Nearest) {
        let offers = [&nearest.largest_budget, &nearest.shortest_period];
        for offer in offers.into_iter().flatten() {
            let offered = Ask {
                terms: Terms {
                    budget_ns: offer.contract.budget_ns,
                    period_ns: offer.contract.period_ns,
                    deadline_ns: (offer.contract.deadline_ns != offer.contract.period_ns)
                        .then_some(offer.contract.deadline_ns),
                    ..ask.terms
                },
                ..ask.clone()
            };
            let reply = self.answer(&Request::Ask(offered.clone()));
            assert!(
                matches!(reply, Reply::Reserved(_)),
                "{ask:?} was offered {offered:?}, but: {reply:?}"
            );
        }
    }

    fn check(&mut self) {
        let list = self.list();
        let mut names: Vec<_> = list.contracts.iter().map(|held| &held.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), list.contracts.len(), "names are unique");
        let holders = list.contracts.iter().map(|held| &held.holder.holder);
        let holders: Vec<&Holder> = holders.collect();
        for (at, holder) in holders.iter().enumerate() {
            assert!(!holders[..at].contains(holder), "{holder:?} holds two");
        }
        let placed = list
            .contracts
            .iter()
            .filter(|held| held.placement.is_some());
        let made = &self.world.kernel.made;
        assert_eq!(
            placed.count(),
            made.len(),
            "those with a place, and no others, are made"
        );
        let mut used = BTreeMap::<u32, f64>::new();
        for held in &list.contracts {
            let Some(placement) = &held.placement else {
                continue;
            };
            let parts: Vec<(u32, u64)> = match placement {
                Placement::Whole { cpu } => vec![(*cpu, held.terms.budget_ns)],
                Placement::Split { pieces } => pieces
                    .iter()
                    .map(|piece| (piece.cpu, piece.budget_ns))
                    .collect(),
            };
            for (cpu, budget_ns) in parts {
                assert!(list.machine.cpus.contains(&cpu), "CPU {cpu} is offline");
                let part = budget_ns as f64 / held.terms.period_ns as f64;
                let lossy = held.terms.tolerance.losses > 0;
                *used.entry(cpu).or_default() += if lossy { 0.0 } else { part };
            }
        }
        let supply = 1.0 - f64::from(list.machine.left_for_others_per_mille) / 1000.0;
        for (cpu, used) in used {
            assert!(used < supply + 1e-6, "CPU {cpu}: {used} is promised");
        }
    }
}

fn through_books(bytes: &[u8]) {
    let mut books = Books {
        world: world(),
        caller: ROOT,
        fails: 0,
    };
    for line in bytes.split(|byte| *byte == b'\n').take(MAX_LINES) {
        if let Some(event) = line.strip_prefix(b"!") {
            books.happens(&String::from_utf8_lossy(event));
            continue;
        }
        let Ok(request) = serde_json::from_slice::<Request>(line) else {
            continue;
        };
        let before = matches!(request, Request::Ask(_)).then(|| books.list());
        let reply = books.answer(&request);
        if let Some(before) = before {
            assert_eq!(books.list(), before, "who asks changes nothing");
        }
        if let (Reply::Refused(refused), Request::Ask(ask) | Request::Reserve(ask)) =
            (&reply, &request)
        {
            books.check_offers(ask, &refused.refusal.nearest);
        }
        books.check();
    }
}

// ---- the socket ----

/// All bytes through a socket, in portions of which the first byte says how long; what `!` begins is
/// no request here.
fn through_socket(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("there is room for a file");
    let path = folder.path().join("socket");
    let socket = Socket::bind(&path).expect("nobody else is there");
    let World {
        host, mut kernel, ..
    } = world();
    let mut daemon =
        Daemon::new(socket, Settings::default(), host).expect("the settings are usual");
    let mut client = UnixStream::connect(&path).expect("it listens");
    client.set_nonblocking(true).expect("it is a socket");
    let portion = 1 + usize::from(bytes.first().copied().unwrap_or(0)) * 16;
    let mut received = Vec::new();
    for part in bytes.chunks(portion) {
        // A daemon that has let the client go does not listen any more.
        let _ = client.write_all(part);
        daemon.turn(&mut kernel, Duration::ZERO);
        let _ = client.read_to_end(&mut received);
    }
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    for _ in 0..=lines + bytes.len() / 4096 + 1 {
        daemon.turn(&mut kernel, Duration::ZERO);
        let _ = client.read_to_end(&mut received);
    }
    let replies: Vec<&[u8]> = received.split_inclusive(|byte| *byte == b'\n').collect();
    for reply in &replies {
        assert!(
            serde_json::from_slice::<Reply>(reply).is_ok(),
            "a reply is one"
        );
    }
    // The longest request is 16 KiB; with a longer one the client is let go.
    if bytes.len() < 16 << 10 {
        assert_eq!(replies.len(), lines, "a reply to every line");
    }
}
