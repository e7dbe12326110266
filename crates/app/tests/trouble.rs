// SPDX-License-Identifier: GPL-2.0
//! What happens to programs and to daemons: forks, deaths, nonsense. No program hangs for it, or ends.

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader, IoSlice, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use andante_session::page::{BYTES, MAGIC, VERSION};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use common::{Served, Workshop, passes, run, source, until};

const OPENED: &[u8] = b"{\"opened\":{\"version\":1,\"session\":1}}\n";
const JOINED: &[u8] = b"{\"joined\":{\"thread\":1}}\n";
const DONE: &[u8] = b"{\"done\":{}}\n";

/// What a daemon of sorts does about a request.
enum Does {
    Says(Vec<u8>),
    /// With a descriptor.
    Passes(&'static [u8], OwnedFd),
    /// With as many copies of a descriptor as the kernel lets anybody pass at once.
    Crowds(&'static [u8], OwnedFd),
    /// Reads, and says nothing until the program has gone.
    Nothing,
    /// Ends, with the request unread.
    Dies,
    /// Does not wait for a request.
    TurnsAway(&'static [u8]),
}

/// A daemon that does this with one program, request by request, and then ends.
struct Odd {
    socket: PathBuf,
    _folder: tempfile::TempDir,
    /// What it was asked.
    thread: JoinHandle<Vec<String>>,
}

impl Odd {
    fn new(does: Vec<Does>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let thread = thread::spawn(move || {
            let stream = listener.accept().unwrap().0;
            let mut asked = Vec::new();
            serve(&stream, does, &mut asked);
            asked
        });
        Self {
            socket,
            _folder: folder,
            thread,
        }
    }

    /// What a program says of it that opens, joins, and asks for something.
    fn seen_by(self, program: &Path) -> [i32; 4] {
        self.seen_and_asked(program).0
    }

    /// The same, and what it was asked.
    fn seen_and_asked(self, program: &Path) -> ([i32; 4], Vec<String>) {
        let said = passes(program, &["say"], &self.socket, &[]);
        let asked = self.thread.join().unwrap();
        let said: Vec<i32> = said
            .split_whitespace()
            .map(|number| number.parse().unwrap())
            .collect();
        (said.try_into().unwrap(), asked)
    }
}

fn serve(stream: &UnixStream, does: Vec<Does>, asked: &mut Vec<String>) {
    let mut requests = BufReader::new(stream);
    for does in does {
        if matches!(does, Does::Dies) {
            let came = || {
                let mut byte = [0];
                // SAFETY: there is room for one byte.
                let got = unsafe {
                    libc::recv(
                        stream.as_raw_fd(),
                        byte.as_mut_ptr().cast(),
                        1,
                        libc::MSG_PEEK,
                    )
                };
                got == 1
            };
            return until("there is a request", came);
        }
        if let Does::TurnsAway(bytes) = does {
            return drop((&*stream).write_all(bytes));
        }
        let mut line = String::new();
        if requests.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        asked.push(line.clone());
        // That the program has gone by then is its right.
        match does {
            Does::Says(bytes) => drop((&*stream).write_all(&bytes)),
            Does::Passes(bytes, fd) => pass(stream, bytes, &[fd.as_raw_fd()]),
            Does::Crowds(bytes, fd) => pass(stream, bytes, &[fd.as_raw_fd(); 253]),
            Does::Nothing => while requests.read_line(&mut line).is_ok_and(|length| length > 0) {},
            Does::Dies | Does::TurnsAway(_) => unreachable!("seen to above"),
        }
    }
}

fn pass(stream: &UnixStream, bytes: &[u8], fds: &[RawFd]) {
    let along = [ControlMessage::ScmRights(fds)];
    let bytes = [IoSlice::new(bytes)];
    sendmsg::<()>(
        stream.as_raw_fd(),
        &bytes,
        &along,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )
    .unwrap();
}

fn says(bytes: &[u8]) -> Does {
    Does::Says(bytes.to_vec())
}

/// A page as the daemon makes them, or not quite.
fn page(length: usize, magic: u32, version: u32, seals: SealFlag) -> OwnedFd {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = File::from(memfd_create(c"odd-page", flags).unwrap());
    file.set_len(length as u64).unwrap();
    if length >= 8 {
        (&file).write_all(&magic.to_ne_bytes()).unwrap();
        (&file).write_all(&version.to_ne_bytes()).unwrap();
    }
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).unwrap();
    file.into()
}

fn good_page() -> OwnedFd {
    page(BYTES, MAGIC, VERSION, SealFlag::F_SEAL_SHRINK)
}

const LOST: i32 = -3;
const NO_SESSION: i32 = -1;

#[test]
fn programs_fork_and_exec_and_come_again() {
    let served = Served::new();
    let workshop = Workshop::new();
    let program = workshop.program("trouble.c", &[]);
    for how in ["fork", "exec", "many"] {
        passes(&program, &[how], &served.socket, &[]);
    }
    served.end();
}

#[test]
fn a_daemon_that_ends_ends_nobody_else() {
    let workshop = Workshop::new();
    let program = workshop.program("trouble.c", &[]);
    let begins = || vec![says(OPENED), Does::Passes(JOINED, good_page())];
    // After the request, with nothing read of it, in the middle of the answer; and before it.
    let ends = [
        Some(says(b"")),
        Some(Does::Dies),
        Some(says(b"{\"done\"")),
        None,
    ];
    for end in ends {
        let does = begins().into_iter().chain(end).collect();
        let odd = Odd::new(does);
        passes(&program, &["lost"], &odd.socket, &[]);
        odd.thread.join().unwrap();
    }
}

#[test]
fn a_daemon_that_is_stuck_is_waited_for_no_longer_than_is_said() {
    let workshop = Workshop::new();
    let program = workshop.program("trouble.c", &[]);
    let page = Does::Passes(JOINED, good_page());
    let stuck = Odd::new(vec![says(OPENED), page, Does::Nothing]);
    let [opened, joined, asked, seconds] = stuck.seen_by(&program);
    assert_eq!([opened, joined, asked], [0, 0, -4]);
    assert!((2..10).contains(&seconds), "{seconds}");
    // Nobody is let in any more, and the row of those who wait is full.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let one_more = || {
        use nix::sys::socket::{
            AddressFamily, SockFlag, SockType, UnixAddr, connect, socket as new,
        };
        let fd = new(
            AddressFamily::Unix,
            SockType::Stream,
            SockFlag::SOCK_NONBLOCK,
            None,
        )
        .unwrap();
        let address = UnixAddr::new(&socket).unwrap();
        connect(fd.as_raw_fd(), &address).is_ok().then_some(fd)
    };
    let waiting: Vec<OwnedFd> = std::iter::from_fn(one_more).take(10_000).collect();
    assert!(waiting.len() < 10_000);
    let said = passes(&program, &["say"], &socket, &[]);
    assert_eq!(said, format!("-4 {NO_SESSION} {NO_SESSION} 0\n"));
    // Whoever is let in after most of that has no two seconds more.
    let begun = Instant::now();
    let late = thread::spawn(move || {
        thread::sleep(Duration::from_millis(1800));
        listener.set_nonblocking(true).unwrap();
        let let_in: Vec<_> = std::iter::from_fn(|| listener.accept().ok()).collect();
        thread::sleep(Duration::from_millis(2500));
        let_in.len()
    });
    passes(&program, &["say"], &socket, &[]);
    assert!(begun.elapsed() < Duration::from_millis(3500));
    assert!(late.join().unwrap() >= waiting.len());
}

#[test]
fn nonsense_is_not_taken_for_an_answer() {
    let workshop = Workshop::new();
    let program = workshop.program("trouble.c", &[]);
    let refused = -20;
    let long = vec![b'x'; (1 << 20) + 1];
    let deep = [vec![b'['; 100_000], vec![b'\n']].concat();
    let cases: [(&[u8], i32); 11] = [
        (b"\n", LOST),
        (b"null\n", LOST),
        (b"{}\n", LOST),
        (b"\0\xff\xfe\n", LOST),
        (b"{\"opened\":{\"version\":-1,\"session\":1}}\n", LOST),
        (b"{\"opened\":{\"version\":2,\"session\":1}}\n", -22),
        (b"{\"done\":{}}\n", refused),
        (
            b"{\"error\":{\"kind\":\"of_tomorrow\",\"message\":\"no\"}}\n",
            refused,
        ),
        (
            b"{\"error\":{\"kind\":\"version\",\"message\":\"a\\u0000b\"}}\n",
            -22,
        ),
        (&long, LOST),
        (&deep, LOST),
    ];
    for (answer, expected) in cases {
        let [opened, joined, asked, _] = Odd::new(vec![says(answer)]).seen_by(&program);
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(60)]);
        assert_eq!(opened, expected, "{shown}");
        assert_eq!([joined, asked], [NO_SESSION; 2], "{shown}");
    }
    // A notice before the answer is none; a second answer is a fault, when it is seen.
    let both = [b"{\"notice\":{\"exhausted\":{\"times\":3}}}\n", DONE].concat();
    let page = Does::Passes(JOINED, good_page());
    let odd = Odd::new(vec![says(OPENED), page, says(&both), says(DONE)]);
    assert_eq!(odd.seen_by(&program)[..3], [0, 0, 0]);
}

#[test]
fn news_of_tomorrow_is_passed_over() {
    let workshop = Workshop::new();
    let program = workshop.program("trouble.c", &[]);
    let news = b"{\"notice\":{\"of_tomorrow\":{\"why\":\"\"}}}\n";
    let page = Does::Passes(JOINED, good_page());
    let does = vec![says(OPENED), page, says(&[news, DONE].concat())];
    assert_eq!(Odd::new(does).seen_by(&program)[..3], [0, 0, 0]);
}

#[test]
fn a_daemon_that_is_stuck_keeps_nobody_from_asking_what_is_new() {
    let workshop = Workshop::new();
    let program = workshop.program("limits.c", &[]);
    let stuck = Odd::new(vec![says(OPENED), Does::Nothing]);
    passes(&program, &["busy"], &stuck.socket, &[]);
}

#[test]
fn no_more_descriptors_are_kept_than_an_answer_has() {
    let workshop = Workshop::new();
    let program = workshop.program("limits.c", &[]);
    let crowd = Does::Crowds(DONE, good_page());
    let odd = Odd::new(vec![says(OPENED), crowd, Does::Nothing]);
    passes(&program, &["fds"], &odd.socket, &[]);
}

#[test]
fn whoever_is_turned_away_is_told_why() {
    let workshop = Workshop::new();
    let program = workshop.program("trouble.c", &[]);
    let sentence = b"{\"error\":{\"kind\":\"busy\",\"message\":\"you come too often\"}}\n";
    // The program sends before the connection is closed, or after.
    for _ in 0..20 {
        let odd = Odd::new(vec![Does::TurnsAway(sentence)]);
        assert_eq!(odd.seen_by(&program)[..2], [-30, NO_SESSION]);
    }
}

#[test]
fn a_page_that_is_none_is_not_touched() {
    let workshop = Workshop::new();
    let program = workshop.program("trouble.c", &[]);
    let shrink = SealFlag::F_SEAL_SHRINK;
    let pages = [
        page(0, MAGIC, VERSION, shrink),
        page(64, MAGIC, VERSION, shrink),
        page(BYTES - 1, MAGIC, VERSION, shrink),
        page(BYTES, MAGIC, VERSION, SealFlag::F_SEAL_GROW),
        page(BYTES, 0, VERSION, shrink),
        page(BYTES, MAGIC, VERSION + 1, shrink),
        File::open("/dev/zero").unwrap().into(),
        UnixStream::pair().unwrap().0.into(),
    ];
    let bad_page = -9;
    for (at, page) in pages.into_iter().enumerate() {
        // To this daemon the thread has joined: it is told that it leaves.
        let does = vec![
            says(OPENED),
            Does::Passes(JOINED, page),
            says(DONE),
            says(DONE),
        ];
        let (seen, asked) = Odd::new(does).seen_and_asked(&program);
        assert_eq!(seen[..3], [0, bad_page, 0], "page {at}");
        assert!(asked[2].contains("\"leave\""), "page {at}: {asked:?}");
    }
    let does = vec![says(OPENED), says(JOINED), says(DONE), says(DONE)];
    assert_eq!(Odd::new(does).seen_by(&program)[..3], [0, bad_page, 0]);
}

/// Compiles with a sanitizer and runs, or says why not.
fn sanitized(name: &str, flags: &[&str], settings: (&str, &str), arguments: &[&[&str]]) {
    let workshop = Workshop::new();
    let tiny = workshop.folder().join("tiny.c");
    std::fs::write(&tiny, "int main(void)\n{\n\treturn 0;\n}\n").unwrap();
    let works = workshop.try_compile("gcc", &tiny, flags).and_then(|tiny| {
        let output = run(&tiny, &[], Path::new("/nonexistent"), &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(()).ok_or(said)
    });
    if let Err(why) = works {
        eprintln!("{name} with {flags:?}: skipped, the sanitizer does not work here: {why}");
        return;
    }
    let served = Served::new();
    let program = workshop.program(name, flags);
    for arguments in arguments {
        passes(&program, arguments, &served.socket, &[settings]);
    }
    served.end();
}

#[test]
fn memory_is_used_well() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let settings = (
        "ASAN_OPTIONS",
        "detect_leaks=1:detect_stack_use_after_return=1",
    );
    sanitized("everything.c", &flags, settings, &[&[]]);
    sanitized("trouble.c", &flags, settings, &[&["fork"], &["many"]]);
    let limits: &[&[&str]] = &[&["ends"], &["copy"], &["twice"]];
    sanitized("limits.c", &flags, settings, limits);
}

/// `make -C crates/app tsan` compiles it, by a toolchain that can.
const TSAN_LIBRARY: &str = "ANDANTE_TSAN_LIBRARY";

#[test]
fn threads_do_not_race_in_the_library() {
    let Some(library) = std::env::var_os(TSAN_LIBRARY) else {
        eprintln!("skipped: {TSAN_LIBRARY} names no library that is compiled for it");
        return;
    };
    let served = Served::new();
    let workshop = Workshop::with(Path::new(&library));
    let more = source("tsan.c");
    let flags = ["-fsanitize=thread", "-rdynamic", more.to_str().unwrap()];
    let known = source("tsan.supp");
    let settings = format!("suppressions={}", known.display());
    for program in ["everything.c", "trouble.c"] {
        let arguments: &[&[&str]] = match program {
            "everything.c" => &[&[]],
            _ => &[&["fork"], &["many"]],
        };
        let program = workshop.program(program, &flags);
        for arguments in arguments {
            passes(
                &program,
                arguments,
                &served.socket,
                &[("TSAN_OPTIONS", &settings)],
            );
        }
    }
    served.end();
}

#[test]
fn threads_do_not_race() {
    // The library itself is not compiled for it; its locks are unseen, and what they guard is left out.
    let settings = ("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
    sanitized("everything.c", &["-fsanitize=thread"], settings, &[&[]]);
    let flags = ["-fsanitize=thread", "-DOPTIONAL", "-ldl"];
    sanitized("everything.c", &flags, settings, &[&[]]);
}
