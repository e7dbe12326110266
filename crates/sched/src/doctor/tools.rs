//! The programs that the laboratory starts on this machine.

use std::env;
use std::path::PathBuf;

use super::{Check, Need, Obstacle};

/// A program, what the laboratory does with it, and the Debian package that brings it.
struct Tool {
    program: &'static str,
    purpose: &'static str,
    package: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "qemu-system-x86_64",
        purpose: "runs a kernel in virtual time",
        package: "qemu-system-x86",
    },
    Tool {
        program: "busybox",
        purpose: "the shell of the root image",
        package: "busybox-static",
    },
    Tool {
        program: "mke2fs",
        purpose: "makes the root image",
        package: "e2fsprogs",
    },
    Tool {
        program: "apt-get",
        purpose: "finds a kernel with sched_ext",
        package: "apt",
    },
    Tool {
        program: "dpkg-deb",
        purpose: "unpacks that kernel",
        package: "dpkg",
    },
    Tool {
        program: "ffmpeg",
        purpose: "encodes the film",
        package: "ffmpeg",
    },
    Tool {
        program: "mpv",
        purpose: "plays the film",
        package: "mpv",
    },
    Tool {
        program: "gcc",
        purpose: "compiles beside the film",
        package: "gcc",
    },
    Tool {
        program: "make",
        purpose: "drives the compilation",
        package: "make",
    },
];

/// Looks for every program.
pub(super) fn laboratory() -> Vec<Check> {
    TOOLS.iter().map(Tool::check).collect()
}

impl Tool {
    fn check(&self) -> Check {
        match find(self.program) {
            Some(file) => {
                let detail = format!("{}, {}", file.display(), self.purpose);
                Check::found(self.program, Need::Laboratory, detail)
            }
            None => Check::missing(
                self.program,
                Need::Laboratory,
                Obstacle::MissingTool,
                format!("not installed, {}", self.purpose),
                format!("apt install {}", self.package),
            ),
        }
    }
}

/// Where the program is; a user's PATH often lacks the administrator's directories.
fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let administrators = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(administrators)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_and_missing_ones_name_their_package() {
        assert!(find("sh").is_some());
        let none = Tool {
            program: "no-such-program",
            purpose: "nothing",
            package: "some-package",
        };
        let check = none.check();
        assert!(!check.found);
        assert_eq!(check.mend.as_deref(), Some("apt install some-package"));
    }
}
