//! A file tree for the guest, gathered from the host before it is written into an archive or an
//! image. It is kept sorted by path, so whatever is written from it comes out the same every time.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::elf;

/// Where the bytes of a guest's file come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The content of a file of the host.
    Host(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
}

impl Content {
    pub(crate) fn read(&self) -> Result<Vec<u8>, TreeError> {
        match self {
            Self::Host(path) => fs::read(path).map_err(TreeError::new(path)),
            Self::Bytes(bytes) => Ok(bytes.clone()),
        }
    }
}

/// One entry of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Folder,
    File { content: Content, mode: u32 },
    Link { target: PathBuf },
}

/// A file of the host cannot be taken into the guest.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be taken into the virtual machine: {source}")]
pub struct TreeError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl TreeError {
    pub(crate) fn new(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, source }
    }
}

/// The tree: absolute guest paths to what lies there.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: BTreeMap<PathBuf, Node>,
}

impl Tree {
    /// The entries in the order in which they are written: by path, or in another one, the same for the
    /// same seed. Folders come before what they hold.
    pub(crate) fn in_order(&self, layout: Option<u64>) -> Vec<(&Path, &Node)> {
        let mut entries: Vec<_> = self.iter().collect();
        let Some(seed) = layout else { return entries };
        entries.sort_by_cached_key(|(path, node)| {
            let mut hash = Sha256::new();
            hash.update(seed.to_le_bytes());
            hash.update(path.as_os_str().as_bytes());
            let depth = match node {
                Node::Folder => path.components().count(),
                Node::File { .. } | Node::Link { .. } => usize::MAX,
            };
            (depth, hash.finalize())
        });
        entries
    }

    /// The entries, folders before what they hold.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Path, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_path(), node))
    }

    pub(crate) fn folder(&mut self, path: impl AsRef<Path>) {
        let inside = self.resolved(&path.as_ref().join("inside"));
        for ancestor in inside.ancestors().skip(1).filter(|a| a.parent().is_some()) {
            self.nodes
                .entry(ancestor.to_owned())
                .or_insert(Node::Folder);
        }
    }

    pub(crate) fn file(&mut self, path: impl AsRef<Path>, content: Content, mode: u32) {
        self.insert(path.as_ref(), Node::File { content, mode });
    }

    pub(crate) fn link(&mut self, path: impl AsRef<Path>, target: impl Into<PathBuf>) {
        let target = target.into();
        self.insert(path.as_ref(), Node::Link { target });
    }

    fn insert(&mut self, path: &Path, node: Node) {
        let path = self.resolved(path);
        self.folder(path.parent().unwrap_or(Path::new("/")));
        self.nodes.insert(path, node);
    }

    /// The path with links of the tree among its folders replaced by where they lead.
    fn resolved(&self, path: &Path) -> PathBuf {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return path.to_owned();
        };
        let folder = self.resolved(folder);
        match self.nodes.get(&folder) {
            Some(Node::Link { target }) => {
                let parent = folder.parent().unwrap_or(Path::new("/"));
                self.resolved(&normal(&parent.join(target).join(name)))
            }
            _ => folder.join(name),
        }
    }

    /// Takes the links of a merged /usr, such as `/lib` to `usr/lib`, if the host has them. To be
    /// called first: what is put below a link then goes where it leads.
    pub(crate) fn links_of_host(&mut self) -> Result<(), TreeError> {
        for link in ["/bin", "/lib", "/lib64", "/sbin"].map(Path::new) {
            if link.is_symlink() {
                self.host(link, link)?;
                self.folder(link);
            }
        }
        Ok(())
    }

    /// Takes a file, a link or a whole folder of the host. Links are kept as links.
    pub(crate) fn host(&mut self, host: &Path, guest: &Path) -> Result<(), TreeError> {
        let data = fs::symlink_metadata(host).map_err(TreeError::new(host))?;
        if data.is_symlink() {
            self.link(guest, fs::read_link(host).map_err(TreeError::new(host))?);
        } else if data.is_file() {
            let mode = data.permissions().mode() & 0o7777;
            self.file(guest, Content::Host(host.to_owned()), mode);
        } else if data.is_dir() {
            self.folder(guest);
            for entry in fs::read_dir(host).map_err(TreeError::new(host))? {
                let entry = entry.map_err(TreeError::new(host))?;
                self.host(&entry.path(), &guest.join(entry.file_name()))?;
            }
        }
        // Sockets, pipes and devices have no content to take.
        Ok(())
    }

    /// Takes a program under its own path with all the shared libraries it needs.
    pub(crate) fn program(&mut self, program: &Path) -> Result<(), TreeError> {
        self.program_at(program, program)
    }

    /// Takes a program under another path, and its libraries under theirs.
    pub(crate) fn program_at(&mut self, program: &Path, guest: &Path) -> Result<(), TreeError> {
        let libraries = elf::libraries(program).map_err(TreeError::new(program))?;
        for library in &libraries {
            self.followed(library)?;
        }
        if program == guest {
            return self.followed(program);
        }
        let data = fs::metadata(program).map_err(TreeError::new(program))?;
        let file = fs::read(program).map_err(TreeError::new(program))?;
        let mode = data.permissions().mode() & 0o7777;
        self.file(guest, Content::Bytes(elf::loaded(file)), mode);
        Ok(())
    }

    /// Takes a file under its own path, with every link that leads to it on the way: on a merged
    /// /usr, `/lib64/ld-linux-x86-64.so.2` is reached through the link `/lib64`.
    fn followed(&mut self, path: &Path) -> Result<(), TreeError> {
        let mut pending = path.to_owned();
        // As many links as the kernel itself follows.
        for _ in 0..40 {
            match first_link(&pending) {
                None => return self.host(&pending, &pending),
                Some((link, rest)) => {
                    let target = fs::read_link(&link).map_err(TreeError::new(&link))?;
                    let parent = link.parent().unwrap_or(Path::new("/"));
                    pending = normal(&parent.join(&target).join(rest));
                    self.link(&link, target);
                }
            }
        }
        Err(TreeError::new(path)(io::Error::other(
            "its links lead nowhere",
        )))
    }

    /// A name for the tree's content: path, kind, and of host files size and date.
    pub(crate) fn fingerprint(&self) -> Result<String, TreeError> {
        let mut hash = Sha256::new();
        for (path, node) in self.iter() {
            let mut field = |bytes: &[u8]| {
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
            };
            field(path.as_os_str().as_bytes());
            match node {
                Node::Folder => field(b"folder"),
                Node::Link { target } => field(target.as_os_str().as_bytes()),
                Node::File { content, mode } => {
                    field(&mode.to_le_bytes());
                    match content {
                        Content::Bytes(bytes) => field(bytes),
                        Content::Host(host) => {
                            let data = fs::metadata(host).map_err(TreeError::new(host))?;
                            field(host.as_os_str().as_bytes());
                            field(&data.len().to_le_bytes());
                            field(&data.mtime().to_le_bytes());
                            field(&data.mtime_nsec().to_le_bytes());
                        }
                    }
                }
            }
        }
        Ok(crate::hex(&hash.finalize()[..12]))
    }
}

/// The first component of a path that is a symbolic link, and what follows it.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut prefix = PathBuf::new();
    let mut components = path.components();
    while let Some(component) = components.next() {
        prefix.push(component);
        if prefix.is_symlink() {
            return Some((prefix, components.as_path().to_owned()));
        }
    }
    None
}

/// Resolves `.` and `..` by text; right here because links were resolved before.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn folders_come_before_their_content_and_links_stay_links() {
        let host = tempfile::tempdir().unwrap();
        fs::create_dir(host.path().join("sub")).unwrap();
        fs::write(host.path().join("sub/file"), "text").unwrap();
        symlink("sub/file", host.path().join("link")).unwrap();
        let mut tree = Tree::default();
        tree.host(host.path(), Path::new("/a/b")).unwrap();
        let paths: Vec<_> = tree
            .iter()
            .map(|(path, _)| path.to_str().unwrap())
            .collect();
        assert_eq!(
            paths,
            ["/a", "/a/b", "/a/b/link", "/a/b/sub", "/a/b/sub/file"]
        );
        assert_eq!(
            tree.nodes[Path::new("/a/b/link")],
            Node::Link {
                target: "sub/file".into()
            }
        );
    }

    #[test]
    fn links_on_the_way_to_a_library_are_taken_too() {
        let host = tempfile::tempdir().unwrap();
        let root = host.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("usr/lib64")).unwrap();
        fs::write(root.join("usr/lib64/ld-2.so"), "").unwrap();
        symlink("usr/lib64", root.join("lib64")).unwrap();
        symlink("../lib64/./ld-2.so", root.join("usr/lib64/ld.so")).unwrap();
        let mut tree = Tree::default();
        tree.followed(&root.join("lib64/ld.so")).unwrap();
        for (path, is_link) in [
            ("lib64", true),
            ("usr/lib64/ld.so", true),
            ("usr/lib64/ld-2.so", false),
        ] {
            let node = &tree.nodes[&root.join(path)];
            assert_eq!(
                matches!(node, Node::Link { .. }),
                is_link,
                "{path}: {node:?}"
            );
        }
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        assert!(tree.followed(&root.join("a")).is_err());
    }

    #[test]
    fn what_is_put_below_a_link_goes_where_it_leads() {
        let mut tree = Tree::default();
        tree.link("/lib", "usr/lib");
        tree.file("/lib/a/b", Content::Bytes(Vec::new()), 0o644);
        let paths: Vec<_> = tree
            .iter()
            .map(|(path, _)| path.to_str().unwrap())
            .collect();
        assert_eq!(
            paths,
            ["/lib", "/usr", "/usr/lib", "/usr/lib/a", "/usr/lib/a/b"]
        );
    }

    #[test]
    fn another_layout_is_another_order_of_the_same_with_folders_first() {
        let mut tree = Tree::default();
        for name in ["a", "b", "c", "d/e", "d/f/g", "d/f/h"] {
            tree.file(Path::new("/").join(name), Content::Bytes(Vec::new()), 0o644);
        }
        let paths = |layout| -> Vec<_> {
            let entries = tree.in_order(layout).into_iter();
            entries.map(|(path, _)| path.to_owned()).collect()
        };
        let (plain, other) = (paths(None), paths(Some(1)));
        assert_ne!(plain, other);
        assert_eq!(other, paths(Some(1)));
        assert_ne!(other, paths(Some(2)));
        let place = |path: &str| other.iter().position(|one| one == Path::new(path));
        assert!(place("/d") < place("/d/f") && place("/d/f") < place("/d/f/g"));
        let sorted = |mut paths: Vec<PathBuf>| {
            paths.sort();
            paths
        };
        assert_eq!(sorted(plain), sorted(other));
    }

    #[test]
    fn the_fingerprint_changes_with_the_content() {
        let tree = |bytes: &[u8]| {
            let mut tree = Tree::default();
            tree.file("/f", Content::Bytes(bytes.to_vec()), 0o644);
            tree.fingerprint().unwrap()
        };
        assert_eq!(tree(b"one"), tree(b"one"));
        assert_ne!(tree(b"one"), tree(b"two"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Tree::default()
            .host(Path::new("/no/such/file"), Path::new("/f"))
            .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/no/such/file cannot be taken")
        );
    }
}
