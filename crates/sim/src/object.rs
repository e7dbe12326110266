//! The shared objects that are machines: those that are built in, or one given from outside.

use std::ffi::{CStr, OsStr, c_char};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::{env, fmt, fs};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::shell::Calls;

/// Names the file of an object that takes the place of the one that is built in, of the same
/// scheduler: made by `make -C crates/sim/kernel objects`, of a changed `bpf/` or `core/`, without
/// anything being compiled anew here. `andante lab faults` undoes mended faults so.
pub const SHELL_VARIABLE: &str = "ANDANTE_SIM_SHELL";

/// Which of the objects in `bpf/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    /// `sched.bpf.c`: the class tree.
    Tree,
    /// `domains.bpf.c`: a class tree for each domain of CPUs.
    Domains,
    /// `historical.bpf.c`: the historical policies.
    Historical,
}

impl Object {
    const ALL: [Self; 3] = [Self::Tree, Self::Domains, Self::Historical];

    /// As the object calls itself: `sim_scheduler()`.
    const fn name(self) -> &'static str {
        match self {
            Self::Tree => "sched",
            Self::Domains => "domains",
            Self::Historical => "historical",
        }
    }

    const fn built_in(self) -> &'static [u8] {
        match self {
            Self::Tree => include_bytes!(concat!(env!("OUT_DIR"), "/sched.so")),
            Self::Domains => include_bytes!(concat!(env!("OUT_DIR"), "/domains.so")),
            Self::Historical => include_bytes!(concat!(env!("OUT_DIR"), "/historical.so")),
        }
    }

    /// The object that is to be loaded.
    ///
    /// # Panics
    /// If the one that is given from outside is none; [`check_shell`] says so without.
    pub fn bytes(self) -> &'static [u8] {
        match &*GIVEN {
            Ok(Some((object, bytes))) if *object == self => bytes,
            Ok(_) => self.built_in(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Why the object that [`SHELL_VARIABLE`] names cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellError {
    file: PathBuf,
    reason: String,
}

impl fmt::Display for ShellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{SHELL_VARIABLE}={} is no scheduler for the simulator: {}; make one with `make -C \
             crates/sim/kernel objects`, or unset the variable",
            self.file.display(),
            self.reason
        )
    }
}

impl std::error::Error for ShellError {}

/// An object from outside, if one is given: which scheduler's, and its bytes.
type Given = Option<(Object, Vec<u8>)>;

/// The object from outside, read once.
static GIVEN: LazyLock<Result<Given, ShellError>> =
    LazyLock::new(|| given(env::var_os(SHELL_VARIABLE).as_deref()));

fn given(variable: Option<&OsStr>) -> Result<Given, ShellError> {
    let Some(file) = variable.map(PathBuf::from) else {
        return Ok(None);
    };
    let read = || {
        let bytes = fs::read(&file).map_err(|error| error.to_string())?;
        Ok((scheduler_of(&file)?, bytes))
    };
    read()
        .map(Some)
        .map_err(|reason| ShellError { file, reason })
}

/// Which scheduler's the object in this file is; it must have all that `kernel/sim.h` declares.
fn scheduler_of(file: &PathBuf) -> Result<Object, String> {
    // A name without a slash would be looked for among the system's libraries.
    let file = fs::canonicalize(file).map_err(|error| error.to_string())?;
    // SAFETY: whoever sets the variable answers for what is run when the object is loaded, as for
    // what a debugger or LD_PRELOAD is told to load.
    let library = unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| error.to_string())?;
    let lacks = |name: &str| format!("it lacks {name}() of crates/sim/kernel/sim.h");
    Calls::of(&library).map_err(|name| lacks(&name))?;
    // SAFETY: the type is that of `kernel/sim.h`, and what it returns is the object's own constant.
    let name = unsafe {
        let scheduler: extern "C" fn() -> *const c_char = *library
            .get(b"sim_scheduler")
            .map_err(|_| lacks("sim_scheduler"))?;
        CStr::from_ptr(scheduler()).to_string_lossy().into_owned()
    };
    let known = Object::ALL.into_iter().find(|object| object.name() == name);
    known.ok_or_else(|| format!("it is of a scheduler `{name}`, which is not in bpf/"))
}

/// Can the object that [`SHELL_VARIABLE`] names be used, if it names one?
///
/// # Errors
/// If there is no such file, or it is no such object.
pub fn check_shell() -> Result<(), ShellError> {
    GIVEN.as_ref().map(|_| ()).map_err(Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(file: &str) -> String {
        given(Some(OsStr::new(file)))
            .expect_err("it is no object")
            .to_string()
    }

    #[test]
    fn a_file_that_is_no_scheduler_is_refused() {
        let missing = refused("/nowhere/sched.so");
        assert!(
            missing.starts_with("ANDANTE_SIM_SHELL=/nowhere/sched.so is no scheduler")
                && missing.contains("No such file"),
            "{missing}"
        );
        let text = refused("Cargo.toml");
        assert!(text.contains("make -C crates/sim/kernel objects"), "{text}");
        assert_eq!(given(None), Ok(None));
    }

    #[test]
    fn a_library_without_the_functions_is_refused_by_name() {
        // One that every process has.
        let maps = fs::read_to_string("/proc/self/maps").expect("there is /proc");
        let libc = maps.split_whitespace().find(|word| word.contains("/libc."));
        let Some(libc) = libc else { return };
        let said = refused(libc);
        assert!(
            said.contains("it lacks sim_now_ns() of crates/sim/kernel/sim.h"),
            "{said}"
        );
    }

    #[test]
    fn an_object_is_known_by_what_it_says_of_itself() {
        for object in Object::ALL {
            let dir = env::temp_dir().join(format!("andante-object-{}", std::process::id()));
            fs::create_dir_all(&dir).expect("there is room");
            let file = dir.join("any-name.so");
            fs::write(&file, object.built_in()).expect("there is room");
            let given = given(Some(file.as_os_str())).expect("it is one");
            fs::remove_dir_all(&dir).expect("it is there");
            assert_eq!(given.map(|(given, _)| given), Some(object));
        }
    }
}
