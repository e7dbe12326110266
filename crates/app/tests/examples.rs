// SPDX-License-Identifier: GPL-2.0
//! Python, and the examples, on the real daemon and without one.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use andante_daemon::{Client, Reply, Request};

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

#[test]
fn examples_compile_where_their_libraries_are() {
    for (name, library) in [("frame_loop_sdl.c", "sdl2"), ("audio_jack.c", "jack")] {
        let Some(flags) = flags_of(library) else {
            eprintln!("{name}: skipped, {library} is not installed");
            continue;
        };
        let workshop = Workshop::new();
        let mut all = vec!["-std=gnu99", "-ldl"];
        all.extend(flags.iter().map(String::as_str));
        workshop.compile("gcc", &example(name), &all);
    }
}

/// Runs a program that goes on until it is ended, and ends it after a while.
fn for_a_while(program: &Path, socket: &Path, library: &Path) -> String {
    let arguments = ["--preserve-status", "--signal=TERM", "2"];
    let arguments = arguments.into_iter().chain(program.to_str());
    let environment = [
        ("LD_LIBRARY_PATH", library.to_str().unwrap()),
        ("SDL_VIDEODRIVER", "dummy"),
    ];
    let arguments: Vec<&str> = arguments.collect();
    passes(Path::new("timeout"), &arguments, socket, &environment)
}

#[test]
fn the_window_of_sdl_is_in_a_session_as_long_as_it_is_there() {
    let Some(flags) = flags_of("sdl2") else {
        eprintln!("skipped: sdl2 is not installed");
        return;
    };
    let workshop = Workshop::new();
    let mut all = vec!["-std=gnu99", "-ldl"];
    all.extend(flags.iter().map(String::as_str));
    let program = workshop.compile("gcc", &example("frame_loop_sdl.c"), &all);
    let served = Served::new();
    let socket = served.socket.clone();
    let window = thread::spawn(move || for_a_while(&program, &socket, workshop.folder()));
    let mut seen = Vec::new();
    while !window.is_finished() {
        let mut client = Client::connect(&served.socket).unwrap();
        if let Ok(Reply::Contracts(list)) = client.request(&Request::List) {
            seen.extend(list.sessions);
        }
        thread::sleep(Duration::from_millis(50));
    }
    window.join().unwrap();
    assert!(
        seen.iter()
            .any(|one| one.role == "game" && one.threads == 1),
        "{seen:?}"
    );
    assert!(served.end().declared.is_empty());
}
