//! Finds the C sources that the laboratory compiles as a load: zlib and libbpf, which the crate
//! libbpf-sys (a dependency of the workspace already) carries. They are only embedded, as data.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use cargo_metadata::MetadataCommand;

/// Folders of libbpf-sys, and where their C files and headers go.
const FOLDERS: [(&str, &str); 7] = [
    ("zlib", "zlib"),
    ("libbpf/src", "libbpf/src"),
    ("libbpf/include/linux", "libbpf/include/linux"),
    ("libbpf/include/asm", "libbpf/include/asm"),
    ("libbpf/include/uapi/linux", "libbpf/include/uapi/linux"),
    ("elfutils/libelf/libelf.h", "libelf/libelf.h"),
    ("elfutils/libelf/gelf.h", "libelf/gelf.h"),
];
/// Larger units are left out [bytes]: with short ones, the number of objects is a fine measure.
const UNIT_BYTES_MAX: u64 = 40_000;

fn main() {
    let root = libbpf_sys();
    let mut files = String::from("const FILES: &[(&str, &[u8])] = &[\n");
    for (from, to) in FOLDERS {
        for file in sources(&root.join(from)) {
            let inside = file
                .strip_prefix(root.join(from))
                .expect("it was found there");
            let to = Path::new(to).join(inside);
            // `join` of an empty path leaves a slash behind.
            let to = to
                .to_str()
                .expect("sources have plain names")
                .trim_end_matches('/');
            writeln!(files, "    ({to:?}, include_bytes!({file:?})),").expect("a string grows");
        }
    }
    files.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("sources.rs"), files).expect("OUT_DIR can be written");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
}

/// The folder of the crate libbpf-sys, which cargo has fetched to build the scheduler's crate.
fn libbpf_sys() -> PathBuf {
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let mut command = MetadataCommand::new();
    command.other_options([
        "--filter-platform".to_owned(),
        target,
        "--offline".to_owned(),
    ]);
    // Metadata covers packages that this build may not need and cargo so far has not fetched.
    let metadata = command.exec().or_else(|_| MetadataCommand::new().exec());
    let metadata = metadata.unwrap_or_else(|error| panic!("`cargo metadata` failed: {error}"));
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name.as_str() == "libbpf-sys");
    let manifest = &package
        .expect("the scheduler's crate depends on libbpf-sys")
        .manifest_path;
    manifest
        .parent()
        .expect("a manifest lies in a folder")
        .into()
}

/// The C files and headers at `path`, sorted.
fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path)
        .unwrap_or_else(|error| panic!("libbpf-sys has no {}: {error}", path.display()));
    let wanted = |file: &PathBuf| match file.extension().and_then(|extension| extension.to_str()) {
        Some("c") => fs::metadata(file).is_ok_and(|unit| unit.len() <= UNIT_BYTES_MAX),
        extension => extension == Some("h"),
    };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(wanted)
        .collect();
    files.sort();
    files
}
