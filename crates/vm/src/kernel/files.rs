//! A kernel's files: what is unpacked out of packages, where it lies, and what it is named by.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Kernel, KernelError};
use crate::vmlinux;

/// Writes `vmlinux` and `btf` beside the unpacked packages.
pub(super) fn extract_packages(home: &Path) -> Result<(), KernelError> {
    let packed =
        find_file(&home.join("root"), "vmlinuz")?.ok_or_else(|| KernelError::Incomplete {
            path: home.to_owned(),
            missing: "vmlinuz",
        })?;
    extract(&packed, home)
}

/// Writes what the packed kernel holds into `home`: `vmlinux` and `btf`.
pub(super) fn extract(packed: &Path, home: &Path) -> Result<(), KernelError> {
    let image = fs::read(packed).map_err(io_error(packed))?;
    let elf = vmlinux::unpack(&image).map_err(io_error(packed))?;
    let btf = vmlinux::btf(&elf).map_err(io_error(packed))?;
    for (name, content) in [("btf", btf.unwrap_or_default()), ("vmlinux", elf)] {
        let path = home.join(name);
        fs::write(&path, content).map_err(io_error(&path))?;
    }
    Ok(())
}

/// Keeps of a rejected kernel only what a later probe needs.
pub(super) fn discard_image(home: &Path) -> Result<(), KernelError> {
    let (root, vmlinux) = (home.join("root"), home.join("vmlinux"));
    if root.exists() {
        fs::remove_dir_all(&root).map_err(io_error(&root))?;
        fs::remove_file(&vmlinux).map_err(io_error(&vmlinux))?;
    }
    Ok(())
}

/// The parts of an unpacked kernel; `None` while its modules are not there.
pub(super) fn locate(home: &Path) -> Result<Option<Kernel>, KernelError> {
    let root = home.join("root");
    let modules = ["usr/lib/modules", "lib/modules"]
        .iter()
        .filter_map(|folder| fs::read_dir(root.join(folder)).ok())
        .flat_map(|entries| entries.flatten())
        .map(|entry| entry.path())
        .find(|path| path.join("kernel").is_dir());
    let (Some(modules), Some(vmlinuz)) = (modules, find_file(&root, "vmlinuz")?) else {
        return Ok(None);
    };
    let name = modules.file_name().unwrap_or_default();
    let release = name.to_string_lossy().into_owned();
    let config = [
        modules.join("config"),
        root.join("boot").join(format!("config-{release}")),
    ];
    Ok(Some(Kernel {
        release,
        vmlinuz,
        vmlinux: home.join("vmlinux"),
        modules,
        config: config.into_iter().find(|path| path.is_file()),
    }))
}

/// The first file below `folder` whose name begins with `prefix`, not looking into the modules.
fn find_file(folder: &Path, prefix: &str) -> Result<Option<PathBuf>, KernelError> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(None);
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let kind = entry.file_type().map_err(io_error(&path))?;
        if kind.is_file() && name.to_string_lossy().starts_with(prefix) {
            return Ok(Some(path));
        }
        if kind.is_dir()
            && name != "kernel"
            && let Some(found) = find_file(&path, prefix)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Names a folder of packages by them.
pub(super) fn fingerprint_of(folder: &Path) -> Result<String, KernelError> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut packages: Vec<_> = entries.map(|entry| entry.path()).collect();
    packages.retain(|path| path.extension().is_some_and(|e| e == "deb"));
    if packages.is_empty() {
        return Err(KernelError::Incomplete {
            path: folder.to_owned(),
            missing: ".deb files of a kernel, and no vmlinuz beside modules",
        });
    }
    packages.sort();
    fingerprint(packages.iter().map(PathBuf::as_path))
}

/// Names files by their paths, sizes and dates.
pub(super) fn fingerprint<'a>(
    files: impl Iterator<Item = &'a Path>,
) -> Result<String, KernelError> {
    let mut lines = Vec::new();
    for path in files {
        let data = path.metadata().map_err(io_error(path))?;
        let modified = data.modified().map_err(io_error(path))?;
        lines.push(format!("{path:?} {} {modified:?}", data.len()));
    }
    Ok(crate::hex(&Sha256::digest(lines.join("\n"))[..8]))
}

pub(super) fn make_folder(path: &Path) -> Result<PathBuf, KernelError> {
    fs::create_dir_all(path).map_err(io_error(path))?;
    Ok(path.to_owned())
}

/// Moves a finished folder to its place, so that a torn one is never found there.
pub(super) fn publish(new: tempfile::TempDir, home: &Path) -> Result<(), KernelError> {
    fs::rename(new.keep(), home).map_err(io_error(home))
}

pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> KernelError {
    let path = path.to_owned();
    move |source| KernelError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_both_package_layouts_are_located() {
        for (modules, vmlinuz, config) in [
            (
                "usr/lib/modules/7.2.13",
                "usr/lib/modules/7.2.13/vmlinuz",
                "usr/lib/modules/7.2.13/config",
            ),
            (
                "lib/modules/7.2.13",
                "boot/vmlinuz-7.2.13",
                "boot/config-7.2.13",
            ),
        ] {
            let home = tempfile::tempdir().unwrap();
            let root = home.path().join("root");
            fs::create_dir_all(root.join("boot")).unwrap();
            fs::create_dir_all(root.join(modules)).unwrap();
            fs::write(root.join(vmlinuz), "").unwrap();
            fs::write(root.join(config), "").unwrap();
            assert!(locate(home.path()).unwrap().is_none(), "no modules yet");
            fs::create_dir(root.join(modules).join("kernel")).unwrap();
            let kernel = locate(home.path()).unwrap().unwrap();
            assert_eq!(kernel.release, "7.2.13");
            assert_eq!(kernel.vmlinuz, root.join(vmlinuz));
            assert_eq!(kernel.config, Some(root.join(config)));
        }
    }

    #[test]
    fn a_folder_without_packages_is_refused_in_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let error = fingerprint_of(folder.path()).unwrap_err();
        assert!(error.to_string().contains("holds no .deb files"), "{error}");
    }
}
