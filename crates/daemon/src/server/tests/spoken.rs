// SPDX-License-Identifier: GPL-2.0
//! Who speaks for processes of others: what is declared of them, by whom, and until when.

use std::io::{BufRead, BufReader};

use andante_session::{
    Answer, Cycle, Declare, FaultKind as Kind, Request as Ask, Role, VERSION, Wish,
};

use super::*;
use crate::books::{Caller, fakes};

const USER: u32 = 1000;
const PLAYER: i32 = 100;
const PLAYERS_THREADS: [i32; 2] = [101, 102];
const OF_OTHER: i32 = 200;
const OF_ROOT: i32 = 300;

/// A daemon whose machine may change, with two users' processes and root's.
struct Stage {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
    daemon: Daemon<fakes::FakeHost>,
    kernel: FakeKernel,
}

fn me() -> i32 {
    i32::try_from(std::process::id()).unwrap()
}

fn caller(uid: u32, privileged: bool) -> Caller {
    Caller {
        uid,
        account: uid,
        privileged,
    }
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let mut host = World::new(2).host;
        host.process(PLAYER, "player", &PLAYERS_THREADS);
        host.process(OF_OTHER, "mpv", &[]);
        host.process(OF_ROOT, "udevd", &[]);
        // The one who asks.
        host.process(me(), "andante-bus", &[]);
        for tid in [PLAYER, PLAYERS_THREADS[0], PLAYERS_THREADS[1]] {
            host.change(tid).uids = [USER; 3];
        }
        host.change(OF_OTHER).uids = [USER + 1; 3];
        let socket = Socket::bind(&path).unwrap();
        let daemon = Daemon::new(socket, Settings::default(), host).unwrap();
        Self {
            _folder: folder,
            path,
            daemon,
            kernel: FakeKernel::default(),
        }
    }

    fn connect(&mut self, who: Who) -> Lines {
        self.daemon.who = who;
        let stream = UnixStream::connect(&self.path).unwrap();
        self.turn();
        BufReader::new(stream)
    }

    fn turn(&mut self) {
        for _ in 0..4 {
            self.daemon.turn(&mut self.kernel, Duration::from_millis(1));
        }
    }

    /// As every second.
    fn look(&mut self) {
        self.daemon.look(&mut self.kernel);
    }

    fn ask(&mut self, client: &mut Lines, request: &Ask) -> Answer {
        let mut line = serde_json::to_vec(request).unwrap();
        line.push(b'\n');
        client.get_mut().write_all(&line).unwrap();
        self.turn();
        let mut answer = String::new();
        client.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{answer}: {error}"))
    }

    fn kind(&mut self, client: &mut Lines, request: &Ask) -> Kind {
        match self.ask(client, request) {
            Answer::Error(fault) => fault.kind,
            other => panic!("{other:?}"),
        }
    }

    fn sessions(&self) -> Vec<crate::SessionSeen> {
        let opened = self.daemon.connections.iter();
        opened
            .flat_map(Connection::sessions)
            .map(Session::seen)
            .collect()
    }

    fn declared(&self) -> Vec<i32> {
        self.kernel.declared.keys().copied().collect()
    }
}

type Lines = BufReader<UnixStream>;

fn root(_: &UnixStream, _: &Accounts) -> Option<Peer> {
    let caller = caller(0, true);
    Some(Peer { caller, pid: me() })
}

/// A member of the group.
fn member(_: &UnixStream, _: &Accounts) -> Option<Peer> {
    let caller = caller(990, true);
    Some(Peer { caller, pid: me() })
}

fn user(_: &UnixStream, _: &Accounts) -> Option<Peer> {
    let caller = caller(USER, false);
    Some(Peer { caller, pid: me() })
}

/// A user whose own process is the player.
fn player(_: &UnixStream, _: &Accounts) -> Option<Peer> {
    let caller = caller(USER, false);
    Some(Peer {
        caller,
        pid: PLAYER,
    })
}

fn audio(process: i32, thread: i32, user: Option<u32>) -> Ask {
    Ask::Declare(Declare {
        process,
        thread: Some(thread),
        role: Role::Audio,
        user,
    })
}

fn game(process: i32) -> Ask {
    Ask::Declare(Declare {
        process,
        thread: None,
        role: Role::Game,
        user: None,
    })
}

#[test]
fn a_thread_is_declared_in_the_name_of_its_user() {
    let mut stage = Stage::new();
    let mut bus = stage.connect(member);
    let answer = stage.ask(&mut bus, &audio(PLAYER, PLAYERS_THREADS[0], Some(USER)));
    assert!(
        matches!(answer, Answer::Declared(ref d) if d.threads == 1),
        "{answer:?}"
    );
    let declared = &stage.kernel.declared[&PLAYERS_THREADS[0]];
    let cycle = (declared.period_ns, declared.deadline_ns, declared.budget_ns);
    assert_eq!(cycle, (0, 0, 0), "its period is not known");
    let seen = &stage.sessions()[0];
    assert_eq!((seen.pid, seen.uid, seen.threads), (PLAYER, USER, 1));
    assert_eq!(seen.name.as_deref(), Some("player"));
    assert_eq!(seen.asked_by.as_deref(), Some("andante-bus"));
    // Twice is once, whatever it is called, and the number of the session stays.
    let again = stage.ask(&mut bus, &audio(PLAYER, PLAYERS_THREADS[0], Some(USER)));
    assert_eq!(again, answer);
    stage.ask(&mut bus, &audio(PLAYER, PLAYERS_THREADS[1], Some(USER)));
    assert_eq!(stage.declared(), PLAYERS_THREADS);
    drop(bus);
    stage.turn();
    assert!(stage.declared().is_empty() && stage.sessions().is_empty());
}

#[test]
fn nobody_speaks_for_others_but_root_and_the_group() {
    let mut stage = Stage::new();
    let mut of_user = stage.connect(user);
    for (request, kind) in [
        (audio(OF_OTHER, OF_OTHER, None), Kind::NotPermitted),
        (
            audio(OF_OTHER, OF_OTHER, Some(USER + 1)),
            Kind::NotPermitted,
        ),
        (audio(OF_ROOT, OF_ROOT, None), Kind::NotPermitted),
        (audio(PLAYER, OF_OTHER, None), Kind::NotYours),
        (audio(PLAYER, 9999, None), Kind::NoThread),
        (audio(9999, 9999, None), Kind::NoThread),
        (
            audio(PLAYERS_THREADS[0], PLAYERS_THREADS[0], None),
            Kind::NoThread,
        ),
        (audio(0, 0, None), Kind::NoThread),
        (audio(-1, -1, None), Kind::NoThread),
    ] {
        assert_eq!(stage.kind(&mut of_user, &request), kind, "{request:?}");
    }
    let answer = stage.ask(&mut of_user, &audio(PLAYER, PLAYER, None));
    assert!(matches!(answer, Answer::Declared(_)), "{answer:?}");
    // In another's name the group has that one's rights.
    let mut bus = stage.connect(member);
    let not_his = stage.kind(&mut bus, &audio(OF_ROOT, OF_ROOT, Some(USER)));
    assert_eq!(not_his, Kind::NotPermitted);
    // A program that may take root's rights is not its user's.
    stage.daemon.host.change(OF_OTHER).uids = [USER + 1, 0, 0];
    let setuid = stage.kind(&mut bus, &audio(OF_OTHER, OF_OTHER, Some(USER + 1)));
    assert_eq!(setuid, Kind::NotPermitted);
    let by_root = stage.ask(&mut bus, &audio(OF_OTHER, OF_OTHER, Some(0)));
    assert!(matches!(by_root, Answer::Declared(_)), "{by_root:?}");
    assert_eq!(stage.declared(), [PLAYER, OF_OTHER]);
}

#[test]
fn what_a_real_time_thread_or_the_kernel_does_is_not_declared() {
    let mut stage = Stage::new();
    let mut bus = stage.connect(root);
    stage.daemon.host.change(PLAYERS_THREADS[0]).realtime = true;
    stage.daemon.host.change(OF_ROOT).kernel_thread = true;
    let realtime = audio(PLAYER, PLAYERS_THREADS[0], None);
    assert_eq!(stage.kind(&mut bus, &realtime), Kind::Unschedulable);
    let kernels = audio(OF_ROOT, OF_ROOT, None);
    assert_eq!(stage.kind(&mut bus, &kernels), Kind::NotYours);
    // Of a whole process the others are.
    stage.ask(&mut bus, &game(PLAYER));
    assert_eq!(stage.declared(), [PLAYER, PLAYERS_THREADS[1]]);
    // The kernel does not know a thread that has just ended; nothing is left of the question.
    stage.kernel.dead.push(OF_OTHER);
    let ended = audio(OF_OTHER, OF_OTHER, None);
    assert_eq!(stage.kind(&mut bus, &ended), Kind::NoThread);
    assert_eq!(stage.sessions().len(), 1);
}

#[test]
fn all_threads_of_a_game_take_part_until_it_is_retracted_or_ends() {
    let mut stage = Stage::new();
    let mut bus = stage.connect(user);
    let answer = stage.ask(&mut bus, &game(PLAYER));
    assert!(matches!(answer, Answer::Declared(d) if d.threads == 3));
    stage.daemon.host.process(PLAYER, "game", &[101, 103]);
    for tid in [PLAYER, 101, 103] {
        stage.daemon.host.change(tid).uids = [USER; 3];
    }
    stage.daemon.host.change(102).pid = 9;
    stage.look();
    let seen = &stage.sessions()[0];
    assert_eq!((seen.threads, seen.name.as_deref()), (3, Some("game")));
    assert!(stage.declared().contains(&103));
    let retract = |role| Ask::Retract {
        process: PLAYER,
        role,
    };
    assert_eq!(stage.kind(&mut bus, &retract(Role::Audio)), Kind::NoSession);
    assert_eq!(stage.ask(&mut bus, &retract(Role::Game)), Answer::Done {});
    assert!(stage.sessions().is_empty());
    assert!(!stage.declared().contains(&103));
    assert_eq!(stage.kind(&mut bus, &retract(Role::Game)), Kind::NoSession);
    stage.ask(&mut bus, &game(PLAYER));
    stage.ask(&mut bus, &audio(PLAYER, PLAYER, None));
    stage.daemon.host.exit(PLAYER);
    stage.look();
    assert!(stage.sessions().is_empty());
}

#[test]
fn another_process_of_the_same_number_is_not_spoken_of() {
    let mut stage = Stage::new();
    let mut bus = stage.connect(user);
    stage.ask(&mut bus, &audio(PLAYER, PLAYER, None));
    stage.daemon.host.exit(PLAYER);
    stage.daemon.host.process(PLAYER, "other", &[]);
    let process = stage.daemon.host.change(PLAYER);
    process.uids = [USER; 3];
    process.started += 1;
    stage.kernel.declared.clear(); // the kernel forgets what has ended
    stage.ask(&mut bus, &game(PLAYER));
    let seen = stage.sessions();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].name.as_deref(), Some("other"));
}

#[test]
fn what_a_program_says_itself_comes_first() {
    let mut stage = Stage::new();
    let mut bus = stage.connect(user);
    stage.ask(&mut bus, &game(PLAYER));
    let mut own = stage.connect(player);
    let cycle = Cycle::every_ns(16_666_667);
    let open = Ask::Open(Wish::new(Role::Game, cycle));
    assert_eq!(VERSION, 1);
    assert!(matches!(stage.ask(&mut own, &open), Answer::Opened(_)));
    let join = Ask::Join {
        thread: PLAYER,
        cycle: None,
    };
    assert!(matches!(stage.ask(&mut own, &join), Answer::Joined(_)));
    assert_eq!(stage.kernel.declared[&PLAYER].period_ns, 16_666_667);
    stage.look();
    assert_eq!(stage.kernel.declared[&PLAYER].period_ns, 16_666_667);
    assert_eq!(stage.kind(&mut own, &join), Kind::Taken);
    let asked = audio(PLAYER, PLAYER, None);
    assert_eq!(stage.kind(&mut bus, &asked), Kind::Taken);
    // It is spoken of again when it has left.
    stage.ask(&mut own, &Ask::Leave { thread: 1 });
    stage.look();
    assert_eq!(stage.kernel.declared[&PLAYER].period_ns, 0);
}

#[test]
fn a_user_has_so_many_sessions_whoever_asks_for_them() {
    let mut stage = Stage::new();
    let pids: Vec<i32> = (1000..1257).collect();
    for pid in &pids {
        stage.daemon.host.process(*pid, "sh", &[]);
        stage.daemon.host.change(*pid).uids = [USER; 3];
    }
    let mut bus = stage.connect(root);
    for pid in &pids[..256] {
        let answer = stage.ask(&mut bus, &audio(*pid, *pid, Some(USER)));
        assert!(matches!(answer, Answer::Declared(_)), "{answer:?}");
    }
    let one_more = audio(pids[256], pids[256], Some(USER));
    assert_eq!(stage.kind(&mut bus, &one_more), Kind::Full);
    let other = stage.ask(&mut bus, &audio(OF_OTHER, OF_OTHER, Some(USER + 1)));
    assert!(matches!(other, Answer::Declared(_)), "{other:?}");
    for pid in &pids {
        stage.daemon.host.exit(*pid);
    }
    stage.look();
    assert_eq!(stage.sessions().len(), 1);
}
