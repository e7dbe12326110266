//! The root image: programs with their libraries and files, as an ext4 file system.
//!
//! It is made without root and comes out the same byte by byte: an empty file system with fixed
//! identifiers is filled by debugfs, in the order of the paths, with every time set to one date.
//! (`mke2fs -d` would write the host's inode change times and its order of folder entries.)

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cache::{Cache, CacheError, staging};
use crate::qemu::in_path;
use crate::tree::{Content, Node, Tree, TreeError};

const BLOCK_BYTES: u64 = 4096;
/// Inodes for files that the guest makes.
const SPARE_INODES: usize = 4096;
/// An NVDIMM's size must be a multiple of this.
const ALIGN_BYTES: u64 = 2 << 20;
/// The date of every file, 2026-01-01 00:00 UTC in seconds since 1970: the date at which the guest
/// boots, so no file is from its future.
const FILE_DATE_S: &str = "1767225600";
const UUID: &str = "a0da0000-0000-4000-8000-000000000001";
/// Raised when the layout of images changes, so that older ones are not taken from the cache.
const LAYOUT: &str = "1";

/// What goes into a root image.
#[derive(Debug, Clone, Default)]
pub struct ImageSpec {
    /// Host executables, taken under their own absolute path with all their shared libraries.
    pub programs: Vec<PathBuf>,
    /// Host executables and shared libraries, each with its path in the guest; what they need is taken too.
    pub placed: Vec<(PathBuf, PathBuf)>,
    /// Host files or folders, each with its path in the guest.
    pub files: Vec<(PathBuf, PathBuf)>,
    /// Free space for what the guest writes, which is thrown away when it ends [MiB].
    pub free_mib: u32,
    /// Seed of another order of the files, which then lie in other places of the image; none: by path.
    pub layout: Option<u64>,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A program that makes file systems is missing.
    #[error(
        "{0} is not installed, and making a root image needs it: install the package e2fsprogs"
    )]
    NoTool(&'static str),
    /// A program that makes file systems failed.
    #[error("making the root image failed in {tool}: {message}")]
    Tool {
        /// The program.
        tool: &'static str,
        /// What it said.
        message: String,
    },
    /// A path that cannot be passed on.
    #[error(
        "{0:?} cannot be taken into a root image: rename it without quotes, line breaks and bytes that are not text"
    )]
    Name(PathBuf),
    /// A file of the host cannot be taken.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The image cannot be written.
    #[error("the root image {path} cannot be written: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Makes the image, or takes it from the cache if nothing that goes into it has changed.
pub fn build_image(
    cache: &Cache,
    spec: &ImageSpec,
    progress: &dyn Fn(&str),
) -> Result<PathBuf, ImageError> {
    let tree = gather(spec)?;
    let layout = spec
        .layout
        .map_or_else(String::new, |seed| format!("-{seed}"));
    let key = format!("{}-{}-{LAYOUT}{layout}", tree.fingerprint()?, spec.free_mib);
    let _held = cache.lock("images")?;
    let images = cache.folder("images")?;
    let image = images.join(format!("{key}.ext4"));
    if image.exists() {
        return Ok(image);
    }
    progress("building the root image");
    let new = staging(&images)?;
    let made = make(&tree, spec, new.path())?;
    fs::rename(&made, &image).map_err(io_error(&image))?;
    Ok(image)
}

/// An image that is deleted when this is dropped.
#[derive(Debug)]
pub struct PassingImage {
    /// Its file.
    pub file: PathBuf,
    _folder: tempfile::TempDir,
}

/// Makes an image that is not kept: one of many layouts, which would fill the cache.
pub fn build_passing_image(cache: &Cache, spec: &ImageSpec) -> Result<PassingImage, ImageError> {
    let folder = staging(&cache.folder("images")?)?;
    Ok(PassingImage {
        file: make(&gather(spec)?, spec, folder.path())?,
        _folder: folder,
    })
}

fn gather(spec: &ImageSpec) -> Result<Tree, ImageError> {
    let mut tree = Tree::default();
    tree.links_of_host()?;
    for folder in ["dev", "proc", "sys", "tmp", "run", "root", "etc", "andante"] {
        tree.folder(Path::new("/").join(folder));
    }
    // Programs look their user up.
    let passwd = b"root:x:0:0:root:/root:/bin/sh\n";
    tree.file("/etc/passwd", Content::Bytes(passwd.to_vec()), 0o644);
    tree.file("/etc/group", Content::Bytes(b"root:x:0:\n".to_vec()), 0o644);
    for program in &spec.programs {
        tree.program(program)?;
    }
    for (host, guest) in &spec.placed {
        tree.program_at(host, guest)?;
    }
    for (host, guest) in &spec.files {
        tree.host(host, guest)?;
    }
    Ok(tree)
}

/// Makes the file system in `folder`, where it also puts what it needs on the way.
fn make(tree: &Tree, spec: &ImageSpec, folder: &Path) -> Result<PathBuf, ImageError> {
    let script = folder.join("script");
    let commands = commands(tree, spec.layout, folder)?;
    fs::write(&script, commands).map_err(io_error(&script))?;
    let image = folder.join("image");
    let size_bytes = size_bytes(tree, spec.free_mib)?;
    File::create(&image)
        .and_then(|file| file.set_len(size_bytes))
        .map_err(io_error(&image))?;

    let mut mke2fs = tool("mke2fs")?;
    mke2fs.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-I", "256"]);
    mke2fs.args(["-m", "0", "-O", "^has_journal,^resize_inode", "-U", UUID]);
    mke2fs
        .arg("-N")
        .arg((tree.iter().count() + SPARE_INODES).to_string());
    mke2fs.arg("-E");
    mke2fs.arg(format!(
        "hash_seed={UUID},root_owner=0:0,lazy_itable_init=0"
    ));
    run("mke2fs", mke2fs.arg(&image))?;

    let mut debugfs = tool("debugfs")?;
    debugfs.arg("-w").arg("-f").arg(&script).arg(&image);
    let output = run("debugfs", &mut debugfs)?;
    // It carries on after an error and reports success, but says nothing else than its version.
    let said = String::from_utf8_lossy(&output.stderr);
    match said.lines().find(|line| !line.starts_with("debugfs ")) {
        None => Ok(image),
        Some(complaint) => Err(ImageError::Tool {
            tool: "debugfs",
            message: complaint.to_owned(),
        }),
    }
}

/// The debugfs commands that fill the file system. Modes are set apart from writing, which knows
/// only the modes of the host's files.
fn commands(tree: &Tree, layout: Option<u64>, folder: &Path) -> Result<String, ImageError> {
    let mut commands = String::new();
    for (index, (path, node)) in tree.in_order(layout).into_iter().enumerate() {
        let guest = quoted(path)?;
        let command = match node {
            Node::Folder if path == Path::new("/tmp") => {
                format!("mkdir {guest}\nset_inode_field {guest} mode 041777")
            }
            Node::Folder => format!("mkdir {guest}"),
            Node::Link { target } => format!("symlink {guest} {}", quoted(target)?),
            Node::File { content, mode } => {
                let host = match content {
                    Content::Host(host) => quoted(host)?,
                    Content::Bytes(bytes) => {
                        let host = folder.join(index.to_string());
                        fs::write(&host, bytes).map_err(io_error(&host))?;
                        quoted(&host)?
                    }
                };
                format!("write {host} {guest}\nset_inode_field {guest} mode 010{mode:04o}")
            }
        };
        writeln!(commands, "{command}").expect("a string takes everything");
    }
    Ok(commands)
}

/// A path as one word of a debugfs command.
fn quoted(path: &Path) -> Result<String, ImageError> {
    match path.to_str() {
        Some(text) if !text.contains(['"', '\n']) => Ok(format!("\"{text}\"")),
        _ => Err(ImageError::Name(path.to_owned())),
    }
}

/// Room for the tree, its metadata and the free space.
fn size_bytes(tree: &Tree, free_mib: u32) -> Result<u64, ImageError> {
    let mut blocks = 0;
    for (_, node) in tree.iter() {
        // One block for the entry in its folder and its inode, generously.
        blocks += 1;
        if let Node::File { content, .. } = node {
            let length = match content {
                Content::Bytes(bytes) => bytes.len() as u64,
                Content::Host(host) => fs::metadata(host).map_err(TreeError::new(host))?.len(),
            };
            blocks += length.div_ceil(BLOCK_BYTES);
        }
    }
    // Extents, bitmaps and group descriptors take well under a fiftieth.
    let content_bytes = blocks * BLOCK_BYTES * 51 / 50;
    let spare_bytes = (u64::from(free_mib) + 16) << 20;
    Ok((content_bytes + spare_bytes).next_multiple_of(ALIGN_BYTES))
}

fn tool(name: &'static str) -> Result<Command, ImageError> {
    let mut command = Command::new(in_path(name).ok_or(ImageError::NoTool(name))?);
    command.env("LC_ALL", "C");
    command.env("E2FSPROGS_FAKE_TIME", FILE_DATE_S);
    Ok(command)
}

fn run(tool: &'static str, command: &mut Command) -> Result<Output, ImageError> {
    let failed = |message: String| ImageError::Tool { tool, message };
    let output = command
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        Ok(output)
    } else {
        let message = String::from_utf8_lossy(&output.stderr);
        Err(failed(message.trim().to_owned()))
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_content_makes_the_same_image_whatever_its_dates() {
        let host = tempfile::tempdir().unwrap();
        let spec = ImageSpec {
            programs: vec!["/bin/sh".into()],
            placed: vec![("/bin/sh".into(), "/placed/shell".into())],
            files: vec![(host.path().into(), "/data set".into())],
            free_mib: 1,
            layout: None,
        };
        let image = |text: &str, layout| {
            fs::write(host.path().join("file"), text).unwrap();
            let spec = ImageSpec {
                layout,
                ..spec.clone()
            };
            let folder = tempfile::tempdir().unwrap();
            let image = make(&gather(&spec).unwrap(), &spec, folder.path()).unwrap();
            fs::read(image).unwrap()
        };
        let first = image("one", None);
        assert!(
            first == image("one", None),
            "images of the same content differ"
        );
        assert!(first != image("two", None));
        let other = image("one", Some(1));
        assert!(other != first && other == image("one", Some(1)));
    }

    #[test]
    fn an_unchanged_image_is_built_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let spec = ImageSpec::default();
        let built = std::cell::Cell::new(0);
        let progress = |_: &str| built.set(built.get() + 1);
        let first = build_image(&cache, &spec, &progress).unwrap();
        let second = build_image(&cache, &spec, &progress).unwrap();
        assert_eq!((first, built.get()), (second, 1));
    }

    #[test]
    fn names_that_debugfs_would_misread_are_refused() {
        assert!(quoted(Path::new("/a b")).is_ok());
        assert!(quoted(Path::new("/a\"b")).is_err());
    }
}
