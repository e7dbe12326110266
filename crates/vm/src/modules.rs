//! Kernel modules for the guest, with those they depend on, in the order of insertion.
//!
//! The packages come without the index that depmod makes on installation, so the dependencies are
//! read from the modules themselves.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use crate::decompress::expand;
use crate::kernel::Kernel;

/// One module, ready to be inserted.
#[derive(Debug)]
pub(crate) struct Module {
    pub name: String,
    /// The uncompressed object file.
    pub object: Vec<u8>,
}

/// A module cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The kernel has it neither built in nor as a file.
    #[error(
        "kernel {release} has no module {name}: choose another kernel through ANDANTE_KERNEL_DIR"
    )]
    Missing {
        /// As `uname -r` says it.
        release: String,
        /// The module.
        name: String,
    },
    /// A file of the kernel cannot be read.
    #[error(
        "the kernel module {path} cannot be read: {source}; delete the kernel from the cache and try again"
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The wanted modules and their dependencies; those built into the kernel are left out.
pub(crate) fn closure(kernel: &Kernel, wanted: &[&str]) -> Result<Vec<Module>, ModuleError> {
    let mut resolver = Resolver {
        kernel,
        builtin: builtin(&kernel.modules),
        files: HashMap::new(),
        seen: HashSet::new(),
        modules: Vec::new(),
    };
    collect(&kernel.modules.join("kernel"), &mut resolver.files);
    for name in wanted {
        resolver.add(name)?;
    }
    Ok(resolver.modules)
}

struct Resolver<'a> {
    kernel: &'a Kernel,
    builtin: HashSet<String>,
    files: HashMap<String, PathBuf>,
    seen: HashSet<String>,
    modules: Vec<Module>,
}

impl Resolver<'_> {
    fn add(&mut self, name: &str) -> Result<(), ModuleError> {
        let name = name.replace('-', "_");
        if self.builtin.contains(&name) || !self.seen.insert(name.clone()) {
            return Ok(());
        }
        let path = self.files.get(&name).ok_or_else(|| ModuleError::Missing {
            release: self.kernel.release.clone(),
            name: name.clone(),
        })?;
        let (object, needs) = load(path).map_err(|source| ModuleError::Io {
            path: path.clone(),
            source,
        })?;
        for need in needs {
            self.add(&need)?;
        }
        self.modules.push(Module { name, object });
        Ok(())
    }
}

/// A module's object file and the names of the modules it needs.
fn load(path: &Path) -> io::Result<(Vec<u8>, Vec<String>)> {
    let object = expand(&fs::read(path)?)?;
    let elf = object::File::parse(&*object).map_err(io::Error::other)?;
    let info = match elf.section_by_name(".modinfo") {
        Some(section) => section.data().map_err(io::Error::other)?,
        None => &[],
    };
    let needs = depends(info);
    Ok((object, needs))
}

/// The entry `depends=a,b` among the zero-terminated strings of `.modinfo`.
fn depends(info: &[u8]) -> Vec<String> {
    info.split(|&byte| byte == 0)
        .find_map(|entry| entry.strip_prefix(b"depends="))
        .map(|list| String::from_utf8_lossy(list).into_owned())
        .unwrap_or_default()
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The modules built into the kernel, from the list that comes with it.
fn builtin(modules: &Path) -> HashSet<String> {
    fs::read_to_string(modules.join("modules.builtin"))
        .unwrap_or_default()
        .lines()
        .filter_map(|line| name_of(Path::new(line)))
        .collect()
}

/// All module files below a folder by name.
fn collect(folder: &Path, files: &mut HashMap<String, PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if let Some(name) = name_of(&path) {
            files.insert(name, path);
        }
    }
}

/// "…/nd_pmem.ko.xz" is nd_pmem; file names may spell `_` as `-`.
fn name_of(path: &Path) -> Option<String> {
    let (name, _) = path.file_name()?.to_str()?.split_once(".ko")?;
    Some(name.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_the_module_information() {
        let info = b"license=GPL\0depends=libnvdimm,nd_btt\0name=nd_pmem\0";
        assert_eq!(depends(info), ["libnvdimm", "nd_btt"]);
        assert!(depends(b"depends=\0").is_empty());
        assert!(depends(b"").is_empty());
    }

    #[test]
    fn file_names_become_module_names() {
        let name = |path| name_of(Path::new(path));
        assert_eq!(name("kernel/sound/snd-aloop.ko.xz").unwrap(), "snd_aloop");
        assert_eq!(name("kernel/fs/ext4/ext4.ko").unwrap(), "ext4");
        assert_eq!(name("modules.order"), None);
    }

    #[test]
    fn built_in_modules_need_no_file_and_absent_ones_are_named() {
        let home = tempfile::tempdir().unwrap();
        fs::write(
            home.path().join("modules.builtin"),
            "kernel/fs/ext4/ext4.ko\n",
        )
        .unwrap();
        let kernel = Kernel {
            release: "7.2.13".into(),
            vmlinuz: PathBuf::new(),
            vmlinux: PathBuf::new(),
            modules: home.path().into(),
            config: None,
        };
        assert!(closure(&kernel, &["ext4"]).unwrap().is_empty());
        let error = closure(&kernel, &["nd_pmem"]).unwrap_err();
        assert!(error.to_string().contains("has no module nd_pmem"));
    }
}
