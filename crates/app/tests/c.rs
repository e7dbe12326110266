// SPDX-License-Identifier: GPL-2.0
//! Programs in C and C++ with a session each, on the real daemon.

mod common;

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use andante_session::page::{BYTES, Event, MAGIC, Page, SERVICES, VERSION};

use common::{Served, Workshop, has, passes, source};

const NOBODY: &str = "/nonexistent/andante.sock";

#[test]
fn the_published_page_is_ours() {
    let workshop = Workshop::new();
    let program = workshop.compile("gcc", &source("layout.c"), &["-std=c99"]);
    let said = passes(&program, &[], Path::new(NOBODY), &[]);
    let said: BTreeMap<&str, usize> = said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, number)| (name, number.parse().unwrap()))
        .collect();
    let ours = BTreeMap::from([
        ("magic_is", MAGIC as usize),
        ("version_is", VERSION as usize),
        ("bytes", BYTES),
        ("services", SERVICES),
        ("page", size_of::<Page>()),
        ("event", size_of::<Event>()),
        ("event_deliver_ns", offset_of!(Event, deliver_ns)),
        ("event_raised", offset_of!(Event, raised)),
        ("magic", offset_of!(Page, magic)),
        ("version", offset_of!(Page, version)),
        ("session", offset_of!(Page, session)),
        ("thread", offset_of!(Page, thread)),
        ("sink", offset_of!(Page, sink)),
        ("deadline_ns", offset_of!(Page, deadline_ns)),
        ("begun_ns", offset_of!(Page, begun_ns)),
        ("worked_ns", offset_of!(Page, worked_ns)),
        ("cycles", offset_of!(Page, cycles)),
        ("surges", offset_of!(Page, surges)),
        ("calls_for", offset_of!(Page, calls_for)),
        ("calls_ns", offset_of!(Page, calls_ns)),
        ("late", offset_of!(Page, late)),
        ("events", offset_of!(Page, events)),
        ("delivered", offset_of!(Page, delivered)),
        ("read_ns", offset_of!(Page, read_ns)),
    ]);
    assert_eq!(said, ours);
}

#[test]
fn a_c_program_says_all_that_there_is_to_say() {
    let served = Served::new();
    let workshop = Workshop::new();
    let program = workshop.program("everything.c", &[]);
    passes(&program, &[], &served.socket, &[]);
    passes(&program, &["nobody"], Path::new(NOBODY), &[]);
    passes(&program, &[], &served.socket, &[("ANDANTE_CALL", "socket")]);
    let kernel = served.end();
    assert!(kernel.declared.is_empty() && kernel.made.is_empty());
    let bytes: Vec<_> = kernel
        .subscribed
        .iter()
        .map(|one| one.map(|one| one.bytes))
        .collect();
    assert_eq!(bytes[..2], [Some(30_000), None]);
    assert!(kernel.told.is_empty(), "{:?}", kernel.told);
    // Three threads have called for one, by the daemon.
    assert!(kernel.looked_at.len() >= 3, "{:?}", kernel.looked_at);
}

#[test]
fn headers_are_clean_in_cxx() {
    if !has("g++") {
        return;
    }
    let served = Served::new();
    let workshop = Workshop::new();
    let linked = workshop.linked();
    let mut flags = vec!["-std=c++17", "-D_GNU_SOURCE", "-x", "c++"];
    let everything = source("everything.c");
    flags.extend([everything.to_str().unwrap(), "-x", "none"]);
    flags.extend(linked.iter().map(String::as_str));
    // The language is that of what follows it.
    let empty = workshop.folder().join("empty.cc");
    std::fs::write(&empty, "").unwrap();
    let program = workshop.compile("g++", &empty, &flags);
    passes(&program, &[], &served.socket, &[]);
    served.end();
}

#[test]
fn the_optional_header_needs_no_library() {
    let served = Served::new();
    let workshop = Workshop::new();
    // A second file shares what the first has loaded.
    let other = workshop.folder().join("other.c");
    let text = "#include <andante/optional.h>\nint other(void);\n\
                int other(void)\n{\n\treturn andante_fd(NULL);\n}\n";
    std::fs::write(&other, text).unwrap();
    let other = other.to_str().unwrap();
    let flags = [
        "-std=c99",
        "-D_GNU_SOURCE",
        "-DOPTIONAL",
        other,
        "-ldl",
        "-lpthread",
    ];
    let program = workshop.compile("gcc", &source("everything.c"), &flags);
    let with = workshop.folder().to_str().unwrap();
    passes(&program, &[], &served.socket, &[("LD_LIBRARY_PATH", with)]);
    passes(
        &program,
        &["nobody"],
        Path::new(NOBODY),
        &[("LD_LIBRARY_PATH", with)],
    );
    passes(
        &program,
        &["absent"],
        &served.socket,
        &[("LD_LIBRARY_PATH", "/nonexistent")],
    );
    if !has("g++") {
        served.end();
        return;
    }
    let everything = source("everything.c");
    let cxx = workshop.folder().join("optional.cc");
    std::fs::write(&cxx, format!("#include \"{}\"\n", everything.display())).unwrap();
    let flags = ["-std=c++17", "-DOPTIONAL", "-ldl", "-lpthread"];
    let program = workshop.compile("g++", &cxx, &flags);
    passes(&program, &[], &served.socket, &[("LD_LIBRARY_PATH", with)]);
    served.end();
}

#[test]
fn the_library_has_its_soname_and_exports_what_the_header_names() {
    let workshop = Workshop::new();
    let library = workshop.library();
    let read = |arguments: &[&str]| {
        let output = Command::new("readelf")
            .args(arguments)
            .arg(&library)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let dynamic = read(&["-dW"]);
    assert!(dynamic.contains("[libandante.so.0]"), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    let symbols = read(&["--dyn-syms", "-W"]);
    let mut exported: Vec<&str> = symbols
        .lines()
        .filter(|line| line.contains(" GLOBAL ") && !line.contains(" UND "))
        .filter_map(|line| line.split_whitespace().nth(7))
        .collect();
    exported.sort_unstable();
    let header = std::fs::read_to_string(common::here().join("include/andante.h")).unwrap();
    let code = header
        .lines()
        .filter(|line| !line.starts_with([' ', '/', '\t', '#']));
    let mut named: Vec<&str> = code
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("andante_"))
        .collect();
    named.sort_unstable();
    assert_eq!(exported, named);
    assert_eq!(named.len(), 26);
}

#[test]
fn the_guide_s_code_compiles() {
    let workshop = Workshop::new();
    let guide = std::fs::read_to_string(common::here().join("../../docs/library.md")).unwrap();
    let code: Vec<&str> = guide
        .split("```c\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(code.len(), 6);
    let outline = format!(
        "#include <andante.h>\n#include <poll.h>\n#include <pthread.h>\n#include <stdio.h>\n\
         void take_all_of(int service);\nint wait_for_frame(void);\nvoid draw(void);\nvoid frames(void);\n\
         void others(andante_session *session, andante_thread *thread, andante_sink *sink,\n\
         pthread_cond_t there_is_work, int socket, unsigned frame_bytes);\n\
         void take_all_of(int service)\n{{\n\t(void)service;\n}}\n\
         int wait_for_frame(void)\n{{\n\treturn 0;\n}}\nvoid draw(void)\n{{\n}}\n\
         void frames(void)\n{{\n{}}}\n\
         void others(andante_session *session, andante_thread *thread, andante_sink *sink,\n\
         pthread_cond_t there_is_work, int socket, unsigned frame_bytes)\n\
         {{\n{}{}{{{}}}\n{{{}}}\n{{{}}}\n}}\n\
         int main(void)\n{{\n\tframes();\n\treturn 0;\n}}\n",
        code[0], code[1], code[2], code[3], code[4], code[5]
    );
    let source = workshop.folder().join("guide.c");
    std::fs::write(&source, outline).unwrap();
    let linked = workshop.linked();
    let mut flags = vec!["-std=gnu99"];
    flags.extend(linked.iter().map(String::as_str));
    let program = workshop.compile("gcc", &source, &flags);
    passes(&program, &[], Path::new(NOBODY), &[]);
}

#[test]
fn what_is_installed_is_found() {
    let served = Served::new();
    let root = tempfile::tempdir().unwrap();
    // Where the tests are, there the libraries are.
    let tests = std::env::current_exe().unwrap();
    let built = format!("LIBRARIES={}", tests.parent().unwrap().display());
    let destination = format!("DESTDIR={}", root.path().display());
    let made = Command::new("make")
        .arg("-C")
        .arg(common::here())
        .args([
            "-s",
            "install",
            "BUILT=true",
            "PREFIX=/usr",
            &built,
            &destination,
        ])
        .env_remove("MAKEFLAGS")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let library = root.path().join("usr/lib");
    let flags = |more: &[&str]| {
        let output = Command::new("pkg-config")
            .args(["--cflags", "--libs", "libandante"])
            .args(more)
            .env("PKG_CONFIG_LIBDIR", library.join("pkgconfig"))
            .env("PKG_CONFIG_SYSROOT_DIR", root.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let compile = |name: &str, flags: &str| {
        let program = root.path().join(name);
        let output = Command::new("gcc")
            .args(["-std=c99", "-D_GNU_SOURCE", "-o"])
            .arg(&program)
            .arg(source("everything.c"))
            .args(flags.split_whitespace())
            .arg("-lpthread")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        program
    };
    let shared = compile("shared", &flags(&[]));
    let found = [("LD_LIBRARY_PATH", library.to_str().unwrap())];
    passes(&shared, &[], &served.socket, &found);
    // The static one alone is there: that is taken.
    std::fs::remove_file(library.join("libandante.so")).unwrap();
    let fixed = compile("static", &flags(&["--static"]));
    passes(&fixed, &[], &served.socket, &[]);
    let leftover = |name: &str| root.path().join("usr").join(name).exists();
    for name in [
        "share/man/man7/libandante.7",
        "share/man/man3/andante_open.3",
        "share/man/man3/andante_now_ns.3",
        "include/andante/optional.h",
    ] {
        assert!(leftover(name), "{name}");
    }
    served.end();
}

#[test]
fn manual_pages_leave_nothing_out() {
    let read = |name: &str| std::fs::read_to_string(common::here().join(name)).unwrap();
    let header = read("include/andante.h");
    let page = read("man/andante_session.3") + &read("man/libandante.7");
    let words = header.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut named: Vec<&str> = words
        .filter(|word| word.starts_with("andante_") || word.starts_with("ANDANTE_"))
        .filter(|word| !word.ends_with("_E_") && !word.starts_with("ANDANTE_SERVICES"))
        // Structures' and enumerations' names, the length of texts, and the guard.
        .filter(|word| !header.contains(&format!("struct {word}")))
        .filter(|word| !header.contains(&format!("enum {word}")))
        .filter(|word| !word.ends_with("_BYTES") && *word != "ANDANTE_H")
        .collect();
    named.sort_unstable();
    named.dedup();
    assert!(named.len() > 26 + 30, "{named:?}");
    let missing: Vec<_> = named.iter().filter(|word| !page.contains(**word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn manual_pages_have_no_mistakes() {
    if !has("man") {
        return;
    }
    for page in ["libandante.7", "andante_session.3"] {
        let page = common::here().join("man").join(page);
        let output = Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"])
            .arg(&page)
            .env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
    }
}
