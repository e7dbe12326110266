//! How the distribution of this machine installs things, for the mends.

use etc_os_release::OsRelease;

/// Families of distributions, by their package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Debian, Ubuntu and what is made of them.
    Debian,
    /// Arch and what is made of it, such as CachyOS and SteamOS.
    Arch,
    /// Fedora and what is made of it.
    Fedora,
    /// Any other: packages are named as Debian names them, and called so.
    Other,
}

/// The names of a package, by family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Package {
    pub debian: &'static str,
    pub arch: &'static str,
    pub fedora: &'static str,
}

impl Package {
    /// The one name that all have for it.
    pub(super) const fn of_all(name: &'static str) -> Self {
        Self {
            debian: name,
            arch: name,
            fedora: name,
        }
    }
}

impl Distribution {
    /// That of this machine.
    pub(super) fn of_this_machine() -> Self {
        OsRelease::open().map_or(Self::Other, |release| Self::of(&release))
    }

    /// By what it is, or else by what it says that it is like.
    fn of(release: &OsRelease) -> Self {
        let like = release.get_value_as_list("ID_LIKE").into_iter().flatten();
        let mut names = std::iter::once(release.id()).chain(like);
        names.find_map(Self::named).unwrap_or(Self::Other)
    }

    fn named(id: &str) -> Option<Self> {
        match id {
            "debian" | "ubuntu" => Some(Self::Debian),
            "arch" => Some(Self::Arch),
            "fedora" | "rhel" => Some(Self::Fedora),
            _ => None,
        }
    }

    /// The command that installs the package.
    pub(super) fn install(self, package: Package) -> String {
        match self {
            Self::Debian => format!("apt install {}", package.debian),
            Self::Arch => format!("pacman -S {}", package.arch),
            Self::Fedora => format!("dnf install {}", package.fedora),
            Self::Other => format!("install what Debian calls {}", package.debian),
        }
    }

    /// Kernels that work, for mends: those of Debian were tested, the others' have what they need by
    /// their configuration.
    pub(super) fn kernels(self) -> &'static str {
        match self {
            Self::Debian => "Debian's 6.18, 7.0, 7.2.13 or 7.3",
            Self::Arch => "Arch's `linux`, 6.18 or newer",
            Self::Fedora => "Fedora's `kernel`, 6.18 or newer",
            Self::Other => "6.18 or newer with CONFIG_SCHED_CLASS_EXT (tested are Debian's)",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Distribution {
        Distribution::of(&OsRelease::from_reader(text.as_bytes()).unwrap())
    }

    #[test]
    fn families_are_told_by_what_they_are_or_are_like() {
        assert_eq!(of("ID=debian\n"), Distribution::Debian);
        assert_eq!(
            of("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"),
            Distribution::Debian
        );
        assert_eq!(of("ID=cachyos\nID_LIKE=arch\n"), Distribution::Arch);
        assert_eq!(
            of("ID=nobara\nID_LIKE=\"rhel centos fedora\"\n"),
            Distribution::Fedora
        );
        assert_eq!(of("ID=nixos\n"), Distribution::Other);
        assert_eq!(of(""), Distribution::Other);
    }

    #[test]
    fn each_installs_by_its_own_name() {
        let package = Package {
            debian: "qemu-system-x86",
            arch: "qemu-base",
            fedora: "qemu-system-x86-core",
        };
        let install = |one: Distribution| one.install(package);
        assert_eq!(install(Distribution::Debian), "apt install qemu-system-x86");
        assert_eq!(install(Distribution::Arch), "pacman -S qemu-base");
        assert_eq!(
            install(Distribution::Fedora),
            "dnf install qemu-system-x86-core"
        );
        assert!(install(Distribution::Other).contains("Debian"));
    }
}
