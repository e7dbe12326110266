// SPDX-License-Identifier: GPL-2.0
//! Python, and the examples, on the real daemon and without one.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use andante_daemon::{Client, Reply, Request, SessionSeen};

use common::{Served, Workshop, has, here, passes, source};

const NOBODY: &str = "/nonexistent/andante.sock";
const FRAMES: &[&str] = &["10", "1"];

/// Runs a script of Python, which finds our module, and the library if it is to.
fn script(path: &Path, arguments: &[&str], socket: &Path, workshop: Option<&Workshop>) -> String {
    let path = path.to_str().unwrap();
    let arguments: Vec<&str> = std::iter::once(path)
        .chain(arguments.iter().copied())
        .collect();
    let module = here().join("python");
    let library = workshop.map_or(Path::new("/nonexistent"), Workshop::folder);
    let environment = [
        ("PYTHONPATH", module.to_str().unwrap()),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("LD_LIBRARY_PATH", library.to_str().unwrap()),
    ];
    passes(Path::new("python3"), &arguments, socket, &environment)
}

#[test]
fn python_programs_say_all_that_there_is_to_say() {
    if !has("python3") {
        return;
    }
    let served = Served::new();
    let workshop = Workshop::new();
    let program = source("session.py");
    script(&program, &["there"], &served.socket, Some(&workshop));
    script(&program, &["absent"], Path::new(NOBODY), Some(&workshop));
    script(&program, &["absent"], &served.socket, None);
    let kernel = served.end();
    assert!(kernel.made.is_empty());
}

#[test]
fn python_programs_go_on_when_the_daemon_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let daemon = thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        let opened = b"{\"opened\":{\"version\":1,\"session\":1}}\n";
        (&stream).write_all(opened).unwrap();
    });
    let workshop = Workshop::new();
    script(&source("session.py"), &["lost"], &socket, Some(&workshop));
    daemon.join().unwrap();
}

/// What it says of its frames, with Andante and without.
fn plays(run: impl Fn(&Path) -> String) {
    let served = Served::new();
    let with = run(&served.socket);
    assert!(with.ends_with("of 10 frames were late\n"), "{with}");
    assert!(!with.contains("without"), "{with}");
    served.end();
    let without = run(Path::new(NOBODY));
    assert!(without.contains("without Andante: "), "{without}");
    assert!(without.ends_with("of 10 frames were late\n"), "{without}");
}

fn example(name: &str) -> PathBuf {
    here().join("examples").join(name)
}

/// Flags of a library of the system; none: it is not installed.
fn flags_of(library: &str) -> Option<Vec<String>> {
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs", library])
        .output()
        .ok()?;
    let flags = String::from_utf8(output.stdout).ok()?;
    let flags = flags.split_whitespace().map(str::to_owned).collect();
    output.status.success().then_some(flags)
}

#[test]
fn the_frame_loop_in_c() {
    let workshop = Workshop::new();
    let flags = ["-std=gnu99", "-ldl"];
    let program = workshop.compile("gcc", &example("frame_loop.c"), &flags);
    let library = workshop.folder().to_str().unwrap();
    plays(|socket| passes(&program, FRAMES, socket, &[("LD_LIBRARY_PATH", library)]));
}

#[test]
fn the_frame_loop_in_python() {
    if !has("python3") {
        return;
    }
    let workshop = Workshop::new();
    plays(|socket| script(&example("frame_loop.py"), FRAMES, socket, Some(&workshop)));
}

#[test]
fn the_frame_loop_in_rust() {
    // Cargo builds it for `cargo test`, but not for this test alone.
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().join("../examples/frame_loop");
    if !program.exists() {
        eprintln!("the_frame_loop_in_rust: skipped, cargo has built no examples");
        return;
    }
    plays(|socket| passes(&program, FRAMES, socket, &[]));
}

/// The sessions that there are while it runs, and what it says.
fn seen_while(
    program: &Path,
    arguments: &[&str],
    more: &[(&str, &str)],
) -> (Vec<SessionSeen>, String) {
    let served = Served::new();
    let (seen, said) = thread::scope(|scope| {
        let runs = scope.spawn(|| passes(program, arguments, &served.socket, more));
        let mut seen = Vec::new();
        while !runs.is_finished() {
            let mut client = Client::connect(&served.socket).unwrap();
            if let Ok(Reply::Contracts(list)) = client.request(&Request::List {}) {
                seen.extend(list.sessions);
            }
            thread::sleep(Duration::from_millis(50));
        }
        (seen, runs.join().unwrap())
    });
    served.end();
    (seen, said)
}

/// A server, ended with its test.
struct Runs(Child);

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Compiles an example with a library of the system; none: that is not installed.
fn with_library(workshop: &Workshop, name: &str, library: &str) -> Option<PathBuf> {
    let Some(flags) = flags_of(library) else {
        eprintln!("{name}: skipped, {library} is not installed");
        return None;
    };
    let mut all = vec!["-std=gnu99", "-ldl"];
    all.extend(flags.iter().map(String::as_str));
    Some(workshop.compile("gcc", &example(name), &all))
}

#[test]
fn the_window_of_sdl_is_in_a_session_as_long_as_it_is_there() {
    let workshop = Workshop::new();
    let Some(program) = with_library(&workshop, "frame_loop_sdl.c", "sdl2") else {
        return;
    };
    let arguments = ["--preserve-status", "2", program.to_str().unwrap()];
    let more = [
        ("LD_LIBRARY_PATH", workshop.folder().to_str().unwrap()),
        ("SDL_VIDEODRIVER", "dummy"),
    ];
    let (seen, _) = seen_while(Path::new("timeout"), &arguments, &more);
    let game = |one: &SessionSeen| one.role == "game" && one.threads == 1;
    assert!(seen.iter().any(game), "{seen:?}");
}

#[test]
fn the_thread_of_jack_is_in_a_session() {
    const SERVER: &str = "andante-test";
    let workshop = Workshop::new();
    let program = with_library(&workshop, "audio_jack.c", "jack");
    let (Some(program), true) = (program, has("jackd") && has("jack_wait")) else {
        return;
    };
    let driver = ["-r", "--name", SERVER, "-d", "dummy"];
    let _jackd = Command::new("jackd")
        .args(driver)
        .env("JACK_NO_AUDIO_RESERVATION", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(Runs)
        .unwrap();
    let more = [
        ("LD_LIBRARY_PATH", workshop.folder().to_str().unwrap()),
        ("JACK_DEFAULT_SERVER", SERVER),
        ("JACK_NO_START_SERVER", "1"),
    ];
    let waits = ["-w", "-t", "10", "-s", SERVER];
    Command::new("jack_wait").args(waits).output().unwrap();
    let (seen, said) = seen_while(&program, &[], &more);
    let tone = |one: &SessionSeen| one.role == "audio" && one.threads == 1;
    assert!(seen.iter().any(tone), "{seen:?}, {said}");
}
