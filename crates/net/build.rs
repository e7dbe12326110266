//! Compiles `bpf/qdisc.bpf.c` (the core's packet scheduler and its shell in the kernel) and
//! `bpf/receive.bpf.c` (what is dropped early of packets that come in), and makes their skeletons.

use std::env;
use std::path::{Path, PathBuf};

use libbpf_cargo::SkeletonBuilder;

/// clang 19 is the oldest that knows all the instructions we ask for; newer ones do as well.
const CLANGS: &[&str] = &["clang-19", "clang-20", "clang-21", "clang-22", "clang"];

fn main() {
    // From this package, where cargo runs us: what was built is not tied to where it was built.
    let root = Path::new("../..");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    for dir in ["bpf", "core"] {
        println!("cargo:rerun-if-changed={}", root.join(dir).display());
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    for name in ["qdisc", "receive"] {
        let source = root.join(format!("bpf/{name}.bpf.c"));
        SkeletonBuilder::new()
            .source(&source)
            .obj(out.join(format!("{name}.bpf.o")))
            .clang(clang())
            .clang_args([
                "-mcpu=v3",
                "-fno-builtin",
                "-Wall",
                "-Werror",
                "-Wno-unused-function",
            ])
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .unwrap_or_else(|error| panic!("compiling {} failed: {error:?}", source.display()));
    }
}

/// `$CLANG`, or the first of [`CLANGS`] that is installed.
fn clang() -> String {
    if let Ok(clang) = env::var("CLANG") {
        return clang;
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let installed = |name: &&&str| env::split_paths(&path).any(|dir| dir.join(name).is_file());
    match CLANGS.iter().find(installed) {
        Some(name) => (*name).to_owned(),
        None => panic!("clang 19 or newer is needed to compile bpf/: apt-get install clang-19"),
    }
}
