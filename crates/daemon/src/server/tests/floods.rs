// SPDX-License-Identifier: GPL-2.0
//! What users do to each other at the socket. Counted is in turns of the daemon's loop, each of which lets one
//! in and answers one, rather than in time. Who a client is, the name says that its socket is bound to.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, connect, socket};
use tempfile::TempDir;

use super::*;
use crate::books::Caller;
use crate::books::fakes::FakeHost;
use crate::server::door::{MAX_OF_USER, MAX_OF_USERS, MAX_PRIVILEGED};
use crate::server::socket::BACKLOG;

/// Turns until a client has its answer that comes when as many wait as may: the kernel lets one more wait than it
/// is told, the client itself has a turn, and another one when it is answered.
const ROW: usize = BACKLOG as usize + 3;

const LIST: &[u8] = b"{\"op\":\"list\"}\n";

/// The user whose number the name of the client's socket begins with; root if it has none. 900 is a member of
/// the group.
fn by_name(stream: &UnixStream, accounts: &Accounts) -> Option<Peer> {
    let address = stream.peer_addr().ok()?;
    let name = address
        .as_pathname()
        .and_then(|path| path.file_name()?.to_str());
    let uid = name.map_or(0, |name| name.split('-').next().unwrap().parse().unwrap());
    let caller = Caller {
        uid,
        account: accounts.of(uid),
        privileged: uid == 0 || uid == 900,
    };
    let pid = i32::try_from(std::process::id()).unwrap();
    Some(Peer { caller, pid })
}

/// A client of this user; none: too many wait to be accepted.
fn client(folder: &std::path::Path, uid: u32, number: usize) -> Option<UnixStream> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None).unwrap();
    let name = folder.join(format!("{uid}-{number}"));
    bind(fd.as_raw_fd(), &UnixAddr::new(&name).unwrap()).unwrap();
    // It is known by the name still, and the folder stays small.
    fs::remove_file(&name).unwrap();
    let to = UnixAddr::new(&folder.join("socket")).unwrap();
    connect(fd.as_raw_fd(), &to).ok().map(|()| fd.into())
}

/// A daemon and its clients, in one thread.
struct Square {
    folder: TempDir,
    daemon: Daemon<FakeHost>,
    kernel: FakeKernel,
    clients: usize,
    turns: usize,
}

impl Square {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = Socket::bind(&folder.path().join("socket")).unwrap();
        let host = World::new(2).host;
        let mut daemon = Daemon::new(socket, Settings::default(), host).unwrap();
        daemon.who = by_name;
        Self {
            folder,
            daemon,
            kernel: FakeKernel::default(),
            clients: 0,
            turns: 0,
        }
    }

    fn turn(&mut self) {
        self.turns += 1;
        self.daemon.turn(&mut self.kernel, Duration::ZERO);
    }

    fn knock(&mut self, uid: u32) -> Option<UnixStream> {
        self.clients += 1;
        client(self.folder.path(), uid, self.clients)
    }

    /// A client that is connected, however many turns that takes.
    fn enter(&mut self, uid: u32) -> UnixStream {
        loop {
            if let Some(stream) = self.knock(uid) {
                return stream;
            }
            self.turn();
        }
    }

    /// What comes until the connection says no more for now, and whether it is closed.
    fn heard(stream: &mut UnixStream) -> (String, bool) {
        let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return (String::from_utf8(text).unwrap(), true),
                Ok(read) => text.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return (String::from_utf8(text).unwrap(), false);
                }
                Err(_) => return (String::from_utf8(text).unwrap(), true),
            }
        }
    }

    /// Turns until the client, which has just asked, is answered, while others do so before each.
    fn turns_until_answered(
        &mut self,
        stream: &mut UnixStream,
        mut others: impl FnMut(&mut Self),
    ) -> (usize, String) {
        let before = self.turns;
        loop {
            others(self);
            self.turn();
            let (text, _) = Self::heard(stream);
            if text.ends_with('\n') {
                return (self.turns - before, text);
            }
            assert!(self.turns - before < 10_000, "never");
        }
    }

    fn door(&self) -> DoorSeen {
        self.daemon.door.seen
    }
}

#[test]
fn who_connects_and_closes_delays_others_by_a_row_of_waiting_clients() {
    let mut square = Square::new();
    let flood = |square: &mut Square| {
        while square.knock(1000).is_some() {}
    };
    for _ in 0..400 {
        flood(&mut square);
        square.turn();
    }
    for uid in [0, 900, 2000] {
        // There is a place in the row once somebody was accepted.
        let mut stream = square.enter(uid);
        stream.write_all(LIST).unwrap();
        let (turns, answer) = square.turns_until_answered(&mut stream, flood);
        assert!(turns <= ROW, "{uid}: {turns}");
        assert!(answer.starts_with("{\"contracts\""), "{uid}: {answer}");
    }
    assert!(square.daemon.connections.len() <= MAX_OF_USER + 3);
}

#[test]
fn two_thousand_half_open_connections_are_a_users_sixteen() {
    let mut square = Square::new();
    let mut open = Vec::new();
    for _ in 0..2000 {
        let mut stream = square.enter(1000);
        let _ = stream.write_all(b"{\"op\":");
        open.push(stream);
    }
    for _ in 0..200 {
        square.turn();
    }
    assert_eq!(square.daemon.connections.len(), MAX_OF_USER);
    let told: Vec<_> = open.iter_mut().map(Square::heard).collect();
    let refused = told
        .iter()
        .filter(|(text, closed)| *closed && text.contains("\"busy\""));
    assert_eq!(refused.count(), 2000 - MAX_OF_USER);
    assert!(told[20].0.contains("busy"), "{}", told[20].0);

    // Others are let in, and told how many were not.
    let mut other = square.enter(2000);
    other.write_all(LIST).unwrap();
    let (turns, answer) = square.turns_until_answered(&mut other, |_| ());
    assert!(turns <= 2, "{turns}");
    let door = square.door();
    // On a slow machine the first ones have been silent for long by now.
    let turned_away = door.refused_open + door.refused_rate + door.let_go;
    assert_eq!(turned_away, 2000 - MAX_OF_USER as u64);
    assert!(
        answer.contains(&format!("\"refused_open\":{}", door.refused_open)),
        "{answer}"
    );
}

#[test]
fn a_connection_that_was_silent_gives_way_to_another_of_its_user() {
    let mut square = Square::new();
    let mut open: Vec<_> = (0..MAX_OF_USER).map(|_| square.enter(1000)).collect();
    let stranger = square.enter(2000);
    for _ in 0..=MAX_OF_USER {
        square.turn();
    }
    thread::sleep(Duration::from_millis(1100));
    let mut late = square.enter(1000);
    late.write_all(LIST).unwrap();
    let (_, answer) = square.turns_until_answered(&mut late, |_| ());
    assert!(answer.starts_with("{\"contracts\""), "{answer}");
    let (told, closed) = Square::heard(&mut open[0]);
    assert!(closed && told.contains("was silent"), "{told}");
    assert_eq!(square.daemon.connections.len(), MAX_OF_USER + 1);
    drop(stranger);
}

#[test]
fn no_limit_of_users_refuses_root_or_the_group() {
    let mut square = Square::new();
    // All users together have all that they may.
    let users = MAX_OF_USERS / MAX_OF_USER;
    let crowd: Vec<_> = (0..MAX_OF_USERS)
        .map(|n| square.enter(1000 + (n % users) as u32))
        .collect();
    for uid in [0, 900] {
        let mut own = Vec::new();
        for _ in 0..2 * MAX_PRIVILEGED {
            let mut stream = square.enter(uid);
            stream.write_all(LIST).unwrap();
            let (_, answer) = square.turns_until_answered(&mut stream, |_| ());
            assert!(answer.starts_with("{\"contracts\""), "{answer}");
            own.push(stream);
        }
    }
    assert_eq!(
        square.daemon.connections.len(),
        MAX_OF_USERS + MAX_PRIVILEGED
    );
    // One more user is let in at the cost of who has most.
    let mut late = square.enter(5000);
    late.write_all(LIST).unwrap();
    let (_, answer) = square.turns_until_answered(&mut late, |_| ());
    assert!(answer.starts_with("{\"contracts\""), "{answer}");
    drop(crowd);
}

#[test]
fn who_asks_for_much_and_reads_nothing_waits_for_its_own_turns() {
    let mut square = Square::new();
    let mut greedy = Vec::new();
    for uid in [1000, 1001, 1002] {
        for _ in 0..MAX_OF_USER {
            let mut stream = square.enter(uid);
            stream.write_all(&LIST.repeat(400)).unwrap();
            greedy.push(stream);
        }
    }
    for _ in 0..200 {
        square.turn();
    }
    for uid in [0, 2000] {
        for more in 0..50 {
            // Whoever has not asked before: what an answer takes depends on the machine.
            let mut stream = square.enter(if uid == 0 { 0 } else { uid + more });
            stream.write_all(LIST).unwrap();
            let (turns, _) = square.turns_until_answered(&mut stream, |_| ());
            // Let in, heard and answered; one of each user who has had less may be answered in between.
            assert!(turns <= if uid == 0 { 2 } else { 5 }, "{uid}: {turns}");
        }
    }
}

#[test]
fn subordinate_ids_have_the_limits_of_their_owner() {
    let mut square = Square::new();
    let etc = tempfile::tempdir().unwrap();
    fs::write(etc.path().join("subuid"), "1000:100000:65536\n").unwrap();
    (square.daemon.files, square.daemon.accounts) = AccountFiles::in_folder(etc.path());
    let open: Vec<_> = (0..100).map(|n| square.enter(100_000 + n)).collect();
    for _ in 0..150 {
        square.turn();
    }
    assert_eq!(square.daemon.connections.len(), MAX_OF_USER);
    assert_eq!(square.door().refused_open, 100 - MAX_OF_USER as u64);
    drop(open);
}

#[test]
fn classes_for_which_there_is_room_again_are_given_within_seconds() {
    let mut square = Square::new();
    square.kernel.sharing = 300;
    let mut told = Vec::new();
    for _ in 0..3 {
        square.daemon.looked -= LOOK;
        told.extend(square.daemon.turn(&mut square.kernel, Duration::ZERO));
    }
    assert_eq!(square.kernel.sharing, 0);
    let counts = [256, 44].map(|count| Event::OwnClasses { count });
    assert_eq!(told, counts);
}

#[test]
fn a_refusal_reaches_the_command_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let socket = Socket::bind(&path).unwrap();
    let mut daemon = Daemon::new(socket, Settings::default(), World::new(1).host).unwrap();
    daemon.who = |_, _| {
        let (uid, account, privileged) = (1000, 1000, false);
        let caller = Caller {
            uid,
            account,
            privileged,
        };
        Some(Peer { caller, pid: 1 })
    };
    let mut kernel = FakeKernel::default();
    let mut open = Vec::new();
    // No more wait at once than there is room for in the row.
    for _ in 0..MAX_OF_USER {
        open.push(UnixStream::connect(&path).unwrap());
        daemon.turn(&mut kernel, Duration::ZERO);
    }
    let mut late = Client::connect(&path).unwrap();
    for _ in 0..2 {
        daemon.turn(&mut kernel, Duration::ZERO);
    }
    // The daemon has closed already what this is written to.
    let Err(ClientError::Fault(fault)) = late.request(&Request::List {}) else {
        panic!("it is one too many");
    };
    assert_eq!(fault.kind, FaultKind::Busy);
    assert!(fault.message.contains("close one, or ask again"), "{fault}");
    drop(open);
}

/// Three that connect and close, slow readers, half-open clients and pipelines of requests, each as fast as it
/// can; and two that ask one thing after the other. By the clock, and on a machine that others use, so the bound is
/// fifty times what is promised; what the daemon itself takes is bounded as it should be.
#[test]
fn under_a_flood_others_are_answered_soon() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().to_owned();
    let mut square = Square::new();
    square.daemon.socket = Socket::bind(&path.join("socket")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let flooder = |uid: u32, (then, times): (&'static [u8], usize), keeps: usize| {
        let (path, over) = (path.clone(), Arc::clone(&over));
        thread::spawn(move || {
            let (mut open, mut number) = (Vec::new(), 0);
            while !over.load(Ordering::Relaxed) {
                number += 1;
                if let Some(mut stream) = client(&path, uid, number) {
                    let _ = stream.write_all(&then.repeat(times));
                    open.push(stream);
                }
                if open.len() > keeps {
                    open.clear();
                }
            }
        })
    };
    let floods = [
        flooder(1000, (b"", 0), 0),
        flooder(1001, (b"{", 1), 100),
        flooder(1002, (LIST, 100), 20),
    ];
    let victims = [0, 2000].map(|uid| {
        let (path, over) = (path.clone(), Arc::clone(&over));
        thread::spawn(move || {
            let mut took = Vec::new();
            for number in 0..200 {
                let began = Instant::now();
                let mut stream = loop {
                    match client(&path, uid, number) {
                        Some(stream) => break stream,
                        // As the kernel does who waits in connect(), which a client like this does not.
                        None => thread::sleep(Duration::from_micros(100)),
                    }
                };
                stream.set_nonblocking(false).unwrap();
                stream
                    .set_read_timeout(Some(Duration::from_secs(20)))
                    .unwrap();
                stream.write_all(LIST).unwrap();
                let mut answer = [0; 4096];
                let read = stream.read(&mut answer).unwrap();
                assert!(answer[..read].starts_with(b"{\"contracts\""), "{uid}");
                took.push(began.elapsed());
            }
            over.store(uid == 2000, Ordering::Relaxed);
            took.sort_unstable();
            (uid, took[took.len() * 99 / 100])
        })
    });
    let used = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let (mut longest, mut turns, begun) = (Duration::ZERO, 0, used());
    while !victims.iter().all(thread::JoinHandle::is_finished) {
        let began = Instant::now();
        square.daemon.turn(&mut square.kernel, Duration::ZERO);
        longest = longest.max(began.elapsed());
        turns += 1;
    }
    // What the daemon itself takes, however busy the machine is: a row of waiting clients within 20 ms.
    let turn = (used() - begun) / turns;
    assert!(ROW as u32 * turn <= Duration::from_millis(20), "{turn:?}");
    over.store(true, Ordering::Relaxed);
    for flood in floods {
        flood.join().unwrap();
    }
    for victim in victims {
        let (uid, p99) = victim.join().unwrap();
        eprintln!(
            "user {uid}: p99 {p99:?}; a turn {turn:?}, the longest {longest:?}; {:?}",
            square.door()
        );
        assert!(p99 <= Duration::from_secs(1), "user {uid}: {p99:?}");
    }
    // A signal is seen between two turns.
    assert!(longest <= Duration::from_secs(1), "{longest:?}");
}
