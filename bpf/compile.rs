// Compiles an object of this folder and makes its skeleton: for the build scripts of the crates that load them.

use std::env;
use std::path::{Path, PathBuf};

use libbpf_cargo::SkeletonBuilder;

/// clang 19 is the oldest that knows all the instructions we ask for; newer ones do as well.
const CLANGS: &[&str] = &["clang-19", "clang-20", "clang-21", "clang-22", "clang"];

/// Compiles bpf/NAME.bpf.c of each name into cargo's output folder, beside the skeletons NAME.skel.rs. Returns the
/// objects, in the same order.
pub fn compile(names: &[&str]) -> Vec<PathBuf> {
    // From the package, where cargo runs its build script: what was built is not tied to where it was built.
    let root = Path::new("../..");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    for dir in ["bpf", "core"] {
        println!("cargo:rerun-if-changed={}", root.join(dir).display());
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    let compile = |name: &&str| {
        let source = root.join(format!("bpf/{name}.bpf.c"));
        let object = out.join(format!("{name}.bpf.o"));
        SkeletonBuilder::new()
            .source(&source)
            .obj(&object)
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
        object
    };
    names.iter().map(compile).collect()
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
