//! Compiles each of the schedulers in `bpf/`, unmodified, with the model of the kernel in `kernel/`
//! around it, into a shared object that the library carries.
//!
//! A function of the kernel's that the shell calls and the model lacks is an error of the linker's,
//! which names it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let root = Path::new("../..");
    for dir in [Path::new("kernel"), &root.join("bpf"), &root.join("core")] {
        println!("cargo::rerun-if-changed={}", dir.display());
    }
    for name in ["sched", "domains", "historical"] {
        build(root, name);
    }
}

fn build(root: &Path, name: &str) {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let compiler = cc::Build::new()
        .std("gnu11")
        .opt_level(2)
        .pic(true)
        .get_compiler();
    let object = out.join(format!("{name}.so"));
    let mut command: Command = compiler.to_command();
    command
        .args(["-shared", "-Wl,-z,defs", "-Wl,-Bsymbolic", "-g0", "-O2"])
        .args(["-Wall", "-Wextra", "-Werror"])
        // The shell's callbacks have the kernel's arguments, and BPF's habits with signs.
        .args([
            "-Wno-unused-function",
            "-Wno-unused-parameter",
            "-Wno-sign-compare",
        ])
        .args(["-include", "kernel/seam.h", "-I"])
        .arg(root)
        .arg("-o")
        .arg(&object);
    command.args(model());
    // In this order: the outer two say where what the scheduler keeps begins and ends.
    for part in ["first", name, "last"] {
        command.arg(format!("kernel/shell_{part}.c"));
    }
    let output = command.output().expect("the compiler that cc found runs");
    assert!(
        output.status.success(),
        "compiling bpf/{name}.bpf.c for the simulator failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The files of the model, see `kernel/model.h`: all but the schedulers, the search for races and tests.
fn model() -> Vec<PathBuf> {
    let files = fs::read_dir("kernel").expect("the model is a folder of this one");
    let files = files.map(|file| file.expect("the folder can be read").path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".c")
                && ["race", "shell_", "test_"]
                    .iter()
                    .all(|other| !name.starts_with(other))
        })
        .collect();
    files.sort();
    files
}
