// SPDX-License-Identifier: GPL-2.0
//! Programs in C and C++ with a session each, on the real daemon.

mod common;

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use andante_session::page::{BYTES, Event, MAGIC, Page, SERVICES, VERSION};

use common::{Served, Workshop, passes, source};

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
        ("deadline_ns", offset_of!(Page, deadline_ns)),
        ("begun_ns", offset_of!(Page, begun_ns)),
        ("worked_ns", offset_of!(Page, worked_ns)),
        ("cycles", offset_of!(Page, cycles)),
        ("surges", offset_of!(Page, surges)),
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
    let kernel = served.end();
    assert!(kernel.declared.is_empty() && kernel.made.is_empty());
}

#[test]
fn headers_are_clean_in_cxx() {
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
    assert_eq!(named.len(), 20);
}
