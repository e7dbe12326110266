//! What the guest starts with: the content of its initial RAM disk.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Boot, BootError, InitrdFile, ROOT_NAME, SWAP_NAME};
use crate::elf;
use crate::initrd;
use crate::modules;
use crate::qemu::in_path;
use crate::tree::{Content, Node, Tree, TreeError};

/// The guest's first program.
const INIT: &[u8] = include_bytes!("../init");

/// What a system is given, so that it runs the command as a service when all others have been started.
const SYSTEM_FOLDER: &str = "/etc/systemd/system";
const SYSTEM_FILES: [(&str, &str); 2] = [
    (
        "andante-vm.service",
        include_str!("system/andante-vm.service"),
    ),
    (
        "andante-vm.target",
        include_str!("system/andante-vm.target"),
    ),
];
/// And links: what it begins with; and nobody logs in at the console, which is the laboratory's.
const SYSTEM_LINKS: [(&str, &str); 2] = [
    ("default.target", "andante-vm.target"),
    ("serial-getty@ttyS0.service", "/dev/null"),
];

/// Drivers of the ports, for kernels that do not have them built in.
const PORT_MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];
/// The driver of what is given to the guest later.
const GIVEN_MODULES: [&str; 1] = ["qemu_fw_cfg"];
/// Drivers of the root image.
const IMAGE_MODULES: [&str; 4] = ["ext4", "nd_btt", "nfit", "nd_pmem"];

/// Drivers of devices that can be made slower, if there is swap.
const SLOW_MODULES: [&str; 2] = ["dm_mod", "dm_delay"];

/// The archive for one run.
pub(super) fn initrd(boot: &Boot) -> Result<Vec<u8>, BootError> {
    let mut tree = Tree::default();
    tree.links_of_host()?;
    for program in &boot.programs {
        let name = program.file_name().unwrap_or_default();
        tree.program_at(program, &Path::new("/andante/bin").join(name))?;
    }
    if let Some(config) = &boot.kernel.config {
        // libbpf reads it to answer a program's questions about the kernel's configuration.
        let guest = format!("/boot/config-{}", boot.kernel.release);
        tree.host(config, Path::new(&guest))?;
    }
    for file in &boot.initrd_files {
        tree.file(&file.guest, file.content.clone(), file.mode);
    }
    own_files(&mut tree, boot)?;
    Ok(initrd::pack(&tree, boot.layout)?)
}

/// What the guest receives at the points, in the order of [`super::machine::POINTS`].
pub(super) fn given(boot: &Boot) -> Result<[Vec<u8>; 2], BootError> {
    let tree_of = |files: &[InitrdFile]| {
        let mut tree = Tree::default();
        for file in files {
            tree.file(&file.guest, file.content.clone(), file.mode);
        }
        tree
    };
    let mut command = tree_of(&boot.files);
    let line = quote(&boot.command).into_bytes();
    command.file("/andante/command", Content::Bytes(line), 0o644);
    let order = boot.order.as_ref().map_or(&[][..], |order| &order.files);
    Ok([in_pages(&command)?, in_pages(&tree_of(order))?])
}

/// What the host gives is so long, whatever it is: the guest's driver looks once, when it is loaded [bytes].
const GIVEN_BYTES: usize = 256 << 10;
/// A page; see `receive` of `/init` [bytes].
const PAGE_BYTES: usize = 4096;

/// The tree as an archive, and before it a page that says how many it takes.
fn in_pages(tree: &Tree) -> Result<Vec<u8>, BootError> {
    let archive = initrd::pack(tree, None)?;
    let pages = archive.len().div_ceil(PAGE_BYTES);
    if (pages + 1) * PAGE_BYTES > GIVEN_BYTES {
        return Err(BootError::TooMuch {
            bytes: archive.len(),
            bytes_max: GIVEN_BYTES - PAGE_BYTES,
        });
    }
    let mut given = format!("{pages}\n").into_bytes();
    given.resize(PAGE_BYTES, 0);
    given.extend(archive);
    given.resize(GIVEN_BYTES, 0);
    Ok(given)
}

/// The files that `/init` works with; its head names them.
fn own_files(tree: &mut Tree, boot: &Boot) -> Result<(), BootError> {
    if boot.system {
        let place = |name: &str| Path::new(SYSTEM_FOLDER).join(name);
        for (name, text) in SYSTEM_FILES {
            tree.file(place(name), Content::Bytes(text.into()), 0o644);
        }
        for (name, target) in SYSTEM_LINKS {
            tree.link(place(name), target);
        }
    }
    let carried = carried(tree);
    let mut put = |name: &str, bytes: Vec<u8>, mode| {
        tree.file(
            Path::new("/andante").join(name),
            Content::Bytes(bytes),
            mode,
        );
    };
    put("init", INIT.to_vec(), 0o755);
    put("carried", carried, 0o644);
    let mut wanted = [&PORT_MODULES[..], &GIVEN_MODULES].concat();
    if boot.image.is_some() {
        put("image", Vec::new(), 0o644);
        wanted.extend(IMAGE_MODULES);
    }
    if boot.swap_mib.is_some() {
        put(
            "swap",
            format!("{ROOT_NAME} {SWAP_NAME}\n").into_bytes(),
            0o644,
        );
        wanted.extend(SLOW_MODULES);
    }
    if boot.system {
        put("system", Vec::new(), 0o644);
    }
    wanted.extend(&boot.modules);
    for (index, module) in modules::closure(boot.kernel, &wanted)?
        .into_iter()
        .enumerate()
    {
        let name = format!("modules/{index:02}-{}.ko", module.name);
        put(&name, module.object, 0o644);
    }
    tree.link("/init", "andante/init");
    let busybox = static_busybox()?;
    tree.file("/andante/bin/busybox", Content::Host(busybox), 0o755);
    Ok(())
}

/// The paths of all files and links outside `/andante`, one on a line.
fn carried(tree: &Tree) -> Vec<u8> {
    let mut list = Vec::new();
    for (path, node) in tree.iter() {
        if !matches!(node, Node::Folder) && !path.starts_with("/andante") {
            list.extend_from_slice(path.as_os_str().as_bytes());
            list.push(b'\n');
        }
    }
    list
}

fn static_busybox() -> Result<PathBuf, BootError> {
    let busybox = in_path("busybox").ok_or(BootError::NoBusybox)?;
    let libraries = elf::libraries(&busybox).map_err(TreeError::new(&busybox))?;
    if libraries.is_empty() {
        Ok(busybox)
    } else {
        Err(BootError::NoBusybox)
    }
}

/// A command for the shell, each word in single quotes.
pub(super) fn quote(words: &[String]) -> String {
    words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        let words = ["a b", "it's", "$HOME", "*", "", "line\nbreak"].map(str::to_owned);
        let script = format!("printf '%s|' {}", quote(&words));
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "a b|it's|$HOME|*||line\nbreak|"
        );
    }

    #[test]
    fn everything_outside_our_own_folder_is_carried() {
        let mut tree = Tree::default();
        tree.file("/andante/x", Content::Bytes(Vec::new()), 0o644);
        tree.file("/lib/libc.so", Content::Bytes(Vec::new()), 0o644);
        tree.link("/lib64", "lib");
        assert_eq!(carried(&tree), b"/lib/libc.so\n/lib64\n");
    }

    #[test]
    fn the_first_program_is_a_valid_script() {
        let mut child = std::process::Command::new("sh")
            .arg("-n")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        use std::io::Write;
        child.stdin.take().unwrap().write_all(INIT).unwrap();
        assert!(child.wait().unwrap().success());
    }
}
