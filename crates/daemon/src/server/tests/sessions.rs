// SPDX-License-Identifier: GPL-2.0
//! Sessions over a socket: what programs declare, and what becomes of it when they go.

use std::io::{BufRead, BufReader, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use andante_session::{Answer, Cycle, Request as Ask, Role, Tell, Terms, VERSION, Wish, page};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

use super::*;
use crate::books::fakes;

/// A daemon in a thread of its own, with this process and one more.
struct Served {
    path: std::path::PathBuf,
    _folder: tempfile::TempDir,
    daemon: fakes::Served,
}

/// Threads of this process, as the machine has them.
const OWN_THREADS: [i32; 2] = [501, 502];
const OF_ANOTHER: i32 = 100;
const OF_ANOTHER_USER: i32 = 200;

impl Served {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let pid = i32::try_from(std::process::id()).unwrap();
        let mut host = World::new(4).host;
        host.process(OF_ANOTHER, "mpv", &[]);
        host.process(OF_ANOTHER_USER, "mpv", &[]);
        host.process(pid, "game", &OWN_THREADS);
        let uid = nix::unistd::geteuid().as_raw();
        for tid in [pid, OWN_THREADS[0], OWN_THREADS[1], OF_ANOTHER] {
            host.change(tid).uids = [uid; 3];
        }
        host.change(OF_ANOTHER_USER).uids = [uid + 1; 3];
        Self {
            daemon: fakes::Served::at(&path, host),
            path,
            _folder: folder,
        }
    }

    fn connect(&self) -> Program {
        let stream = UnixStream::connect(&self.path).unwrap();
        Program {
            lines: BufReader::new(stream),
        }
    }

    fn end(self) -> FakeKernel {
        self.daemon.end()
    }
}

struct Program {
    lines: BufReader<UnixStream>,
}

impl Program {
    fn ask(&mut self, request: &Ask) -> Answer {
        let mut line = serde_json::to_vec(request).unwrap();
        line.push(b'\n');
        self.lines.get_mut().write_all(&line).unwrap();
        let mut answer = String::new();
        self.lines.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{answer}: {error}"))
    }

    /// The same with the descriptor that comes along.
    fn join(&mut self, thread: i32) -> Result<OwnedFd, andante_session::Fault> {
        let request = Ask::Join {
            thread,
            cycle: None,
        };
        let mut line = serde_json::to_vec(&request).unwrap();
        line.push(b'\n');
        self.lines.get_mut().write_all(&line).unwrap();
        let mut bytes = [0; 4096];
        let mut room = nix::cmsg_space!([RawFd; 1]);
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let from = self.lines.get_ref().as_raw_fd();
        let got = recvmsg::<()>(from, &mut slices, Some(&mut room), MsgFlags::empty()).unwrap();
        let fds: Vec<RawFd> = got
            .cmsgs()
            .unwrap()
            .filter_map(|message| match message {
                ControlMessageOwned::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten()
            .collect();
        let length = got.bytes;
        match serde_json::from_slice(&bytes[..length]).unwrap() {
            Answer::Joined(_) => {
                assert_eq!(fds.len(), 1);
                // SAFETY: it was just received, and nobody else has it.
                Ok(unsafe { OwnedFd::from_raw_fd(fds[0]) })
            }
            Answer::Error(fault) => Err(fault),
            other => panic!("{other:?}"),
        }
    }
}

fn open(version: u32) -> Ask {
    Ask::Open(Wish {
        version,
        role: Role::Game,
        cycle: Cycle {
            period_ns: Some(16_666_667),
            budget_ns: Some(9_000_000),
            ..Cycle::default()
        },
        name: None,
    })
}

/// What the thread is called for as, whose page this is.
fn sink_of(page: OwnedFd) -> u32 {
    let page = andante_session::Mapped::of(&page.into()).unwrap();
    page.sink.load(std::sync::atomic::Ordering::Relaxed)
}

fn kind_of(answer: Answer) -> andante_session::FaultKind {
    match answer {
        Answer::Error(fault) => fault.kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn threads_are_declared_and_get_a_page_each() {
    let served = Served::new();
    let mut program = served.connect();
    assert!(matches!(program.ask(&open(VERSION)), Answer::Opened(_)));
    let fd = program.join(OWN_THREADS[0]).unwrap();
    let length = std::fs::File::from(fd).metadata().unwrap().len();
    assert_eq!(length, page::BYTES as u64);
    program.join(OWN_THREADS[1]).unwrap();
    assert_eq!(program.ask(&Ask::Leave { thread: 2 }), Answer::Done {});
    let kernel = served.end();
    let declared = &kernel.declared[&OWN_THREADS[0]];
    assert_eq!(
        (declared.period_ns, declared.budget_ns),
        (16_666_667, 9_000_000)
    );
    assert!(!kernel.declared.contains_key(&OWN_THREADS[1]));
}

#[test]
fn threads_are_called_for_by_numbers_that_no_two_have() {
    let served = Served::new();
    let mut program = served.connect();
    let Answer::Opened(opened) = program.ask(&open(VERSION)) else {
        panic!("it is not opened");
    };
    assert!(opened.calls.fast && opened.calls.general);
    let first = sink_of(program.join(OWN_THREADS[0]).unwrap());
    let second = sink_of(program.join(OWN_THREADS[1]).unwrap());
    assert!(first != 0 && second != 0 && first != second);
    let look = |thread, deliver_ns| Ask::Look { thread, deliver_ns };
    assert_eq!(program.ask(&look(2, 0)), Answer::Done {});
    assert_eq!(program.ask(&look(1, 7)), Answer::Done {});
    program.ask(&Ask::Leave { thread: 1 });
    let gone = kind_of(program.ask(&look(1, 0)));
    assert_eq!(gone, andante_session::FaultKind::NoThread);
    // One that is no more may be another's.
    assert_eq!(sink_of(program.join(OWN_THREADS[0]).unwrap()), first);
    let kernel = served.end();
    assert!(kernel.hears_calls);
    assert_eq!(kernel.looked_at, [(second, 0), (first, 7)]);
}

#[test]
fn a_thread_is_told_as_it_asks_until_it_leaves() {
    use andante_sched::session::ToldBy;
    let served = Served::new();
    let mut program = served.connect();
    program.ask(&open(VERSION));
    let sink = sink_of(program.join(OWN_THREADS[0]).unwrap());
    let other = sink_of(program.join(OWN_THREADS[1]).unwrap());
    let tell = |thread, by| Ask::Tell { thread, by };
    assert_eq!(program.ask(&tell(1, Tell::Signal(34))), Answer::Done {});
    assert_eq!(program.ask(&tell(2, Tell::Ring)), Answer::Done {});
    for wrong in [0, 65, u32::MAX] {
        let kind = kind_of(program.ask(&tell(1, Tell::Signal(wrong))));
        assert_eq!(kind, andante_session::FaultKind::BadTerms);
    }
    let nobody = kind_of(program.ask(&tell(3, Tell::Ring)));
    assert_eq!(nobody, andante_session::FaultKind::NoThread);
    program.ask(&Ask::Leave { thread: 2 });
    let kernel = served.end();
    assert_eq!(
        kernel.told.get(&sink).map(|(by, _)| *by),
        Some(ToldBy::Signal(34))
    );
    assert_eq!(kernel.told.get(&other), None);
}

#[test]
fn nobody_is_told_of_a_session_that_has_ended() {
    let served = Served::new();
    let mut program = served.connect();
    program.ask(&open(VERSION));
    program.join(OWN_THREADS[0]).unwrap();
    let thread = 1;
    let by = Tell::Signal(10);
    assert_eq!(program.ask(&Ask::Tell { thread, by }), Answer::Done {});
    drop(program);
    assert!(served.end().told.is_empty());
}

#[test]
fn calls_are_heard_only_while_there_is_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let socket = Socket::bind(&folder.path().join("socket")).unwrap();
    let mut daemon = Daemon::new(socket, Settings::default(), World::new(1).host).unwrap();
    let mut kernel = FakeKernel::default();
    kernel.hear_calls(true);
    kernel.hears_sources = true;
    daemon.looked -= LOOK;
    daemon.turn(&mut kernel, Duration::ZERO);
    assert!(!kernel.hears_calls && !kernel.hears_sources);
}

#[test]
fn what_makes_no_sense_is_told_apart() {
    use andante_session::FaultKind as Kind;
    let served = Served::new();
    let mut program = served.connect();
    let first = Ask::Join {
        thread: OWN_THREADS[0],
        cycle: None,
    };
    assert_eq!(kind_of(program.ask(&first)), Kind::NoSession);
    assert_eq!(kind_of(program.ask(&open(VERSION + 1))), Kind::Version);
    assert!(matches!(program.ask(&open(VERSION)), Answer::Opened(_)));
    assert_eq!(kind_of(program.ask(&open(VERSION))), Kind::NoSession);
    let other = program.join(OF_ANOTHER).unwrap_err();
    assert_eq!(other.kind, Kind::NotYours);
    assert!(other.message.contains("in that process"), "{other:?}");
    let user = program.join(OF_ANOTHER_USER).unwrap_err();
    assert_eq!(user.kind, Kind::NotPermitted);
    assert!(user.message.contains("that user's program"), "{user:?}");
    assert_eq!(program.join(99_999).unwrap_err().kind, Kind::NoThread);
    program.join(OWN_THREADS[0]).unwrap();
    assert_eq!(program.join(OWN_THREADS[0]).unwrap_err().kind, Kind::Taken);
    let leave = Ask::Leave { thread: 9 };
    assert_eq!(kind_of(program.ask(&leave)), Kind::NoThread);
    let bad = Ask::Join {
        thread: OWN_THREADS[1],
        cycle: Some(Cycle {
            period_ns: Some(1),
            budget_ns: Some(2),
            ..Cycle::default()
        }),
    };
    assert_eq!(kind_of(program.ask(&bad)), Kind::BadTerms);
    served.end();
}

#[test]
fn what_is_not_understood_is_answered_with_what_would_be() {
    let served = Served::new();
    let mut program = served.connect();
    for (line, says) in [
        (
            r#"{"op":"open","version":1,"role":"wizard","cycle":{}}"#,
            "`audio`, `game`, `video`, `interactive`",
        ),
        (r#"{"op":"open","role":"game","cycle":{}}"#, "`version`"),
        (r#"{"op":"join","thread":"mine"}"#, "`join`"),
        (r#"{"op":"subscribe","thread":1,"service":-1}"#, "`-1`"),
        // Of contracts, and of nothing.
        (r#"{"op":"reserve"}"#, "`holder`"),
        (r#"{"op":"dance"}"#, "`reserve`"),
    ] {
        let stream = program.lines.get_mut();
        stream.write_all(line.as_bytes()).unwrap();
        stream.write_all(b"\n").unwrap();
        let mut answer = String::new();
        program.lines.read_line(&mut answer).unwrap();
        let Ok(Answer::Error(fault)) = serde_json::from_str(&answer) else {
            panic!("{answer}");
        };
        assert_eq!(fault.kind, andante_session::FaultKind::BadRequest);
        assert!(fault.message.contains(says), "{line}: {fault:?}");
    }
    assert!(matches!(program.ask(&open(VERSION)), Answer::Opened(_)));
    served.end();
}

#[test]
fn a_promise_is_its_threads_and_ends_with_the_connection() {
    let served = Served::new();
    let mut program = served.connect();
    program.ask(&open(VERSION));
    let terms = Terms {
        budget_ns: 9_500_000,
        period_ns: 16_666_667,
        deadline_ns: None,
        losses: 0,
        window: 0,
    };
    let promise = Ask::Promise { terms };
    let nobody = kind_of(program.ask(&promise));
    assert_eq!(nobody, andante_session::FaultKind::NoThread);
    program.join(OWN_THREADS[0]).unwrap();
    assert!(matches!(program.ask(&promise), Answer::Granted(_)));
    program.join(OWN_THREADS[1]).unwrap();
    let list =
        |path: &std::path::Path| match Client::connect(path).unwrap().request(&Request::List {}) {
            Ok(Reply::Contracts(list)) => list,
            other => panic!("{other:?}"),
        };
    let while_open = list(&served.path);
    assert_eq!(while_open.contracts.len(), 1);
    assert_eq!(while_open.sessions[0].threads, 2);
    assert!(while_open.sessions[0].promised.is_some());
    drop(program);
    let gone = Instant::now();
    while !list(&served.path).sessions.is_empty() {
        assert!(gone.elapsed() < Duration::from_secs(5), "it never ends");
    }
    let kernel = served.end();
    assert!(kernel.made.is_empty() && kernel.declared.is_empty());
}

#[test]
fn what_cannot_be_promised_is_answered_with_what_can() {
    let served = Served::new();
    let mut program = served.connect();
    program.ask(&open(VERSION));
    program.join(OWN_THREADS[0]).unwrap();
    let terms = Terms {
        budget_ns: 16_000_000,
        period_ns: 16_666_667,
        deadline_ns: None,
        losses: 0,
        window: 0,
    };
    let Answer::Offer(offer) = program.ask(&Ask::Promise { terms }) else {
        panic!("four fifths of a CPU are for contracts");
    };
    let nearest = offer.terms.expect("four CPUs are free");
    assert!(nearest.budget_ns > 12_000_000 && nearest.budget_ns < 16_000_000);
    assert!(matches!(
        program.ask(&Ask::Promise { terms: nearest }),
        Answer::Granted(_)
    ));
    // More, in its place: no, and it is kept.
    let more = program.ask(&Ask::Promise { terms });
    assert!(matches!(more, Answer::Offer(_)), "{more:?}");
    let list = Client::connect(&served.path)
        .unwrap()
        .request(&Request::List {});
    let Ok(Reply::Contracts(list)) = list else {
        panic!("{list:?}");
    };
    assert_eq!(list.contracts[0].terms.budget_ns, nearest.budget_ns);
    assert!(list.sessions[0].promised.is_some());
    served.end();
}
