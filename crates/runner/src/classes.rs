//! The scenario's classes on the machine: made at the start, read while running, gone at the end.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, io};

use andante_daemon::{Client, Request, socket_path};
use andante_job::LabError;
use andante_scenario::choice::{ByHand, Choice};
use andante_scenario::{Bandwidth, Program, Workload};
use andante_sched::LeafPolicy;
use andante_sched::class::{ClassError, ClassPath, NewClass, Tree};

use super::memory::{self, Counted};

/// How long killed processes may take to leave their classes.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The classes of one run; dropping it kills what is in them and removes them.
pub(super) struct Classes {
    tree: Tree,
    /// The scenario's `/`: the root of the hierarchy, or a class of its own beside others.
    base: ClassPath,
    /// Parents before children.
    made: Vec<ClassPath>,
    /// Programs that have a class of their own by hand.
    own: Vec<String>,
}

impl Classes {
    /// Makes the tree of `workload` below `base`, as `choice` wants it. Under the stock scheduler
    /// with nothing configured the classes only tell the programs' CPU time apart: the cpu controller
    /// stays off, and with it every weight.
    ///
    /// # Errors
    /// What this machine lacks, or a class that is in the way; nothing is left then.
    pub fn make(workload: &Workload, base: &str, choice: &Choice) -> Result<Self, LabError> {
        let base = ClassPath::parse(base)?;
        let mut classes = Self {
            tree: Tree::open()?,
            base,
            made: Vec::new(),
            own: Vec::new(),
        };
        if !classes.base.is_root() {
            classes.make_one("/", None, false)?;
        }
        for class in &workload.classes {
            if *choice == Choice::Stock {
                classes.make_unweighed(&class.path)?;
                continue;
            }
            // Inner classes may hold tasks beside their children only in a threaded subtree; the
            // root of the hierarchy is free to.
            let threaded = workload.programs.iter().any(|program| {
                let holder = program.class.trim_end_matches('/');
                let below = class
                    .path
                    .strip_prefix(holder)
                    .is_some_and(|r| r.starts_with('/'));
                below && program.count > 0 && !(holder.is_empty() && classes.base.is_root())
            });
            classes.make_one(&class.path, Some(class.weight), threaded)?;
            if class.idle {
                let file = classes
                    .tree
                    .directory(&classes.absolute(&class.path))
                    .join("cpu.idle");
                fs::write(&file, "1").map_err(|e| LabError::file("write", &file, e))?;
            }
            if let (Some(policy), Choice::Andante) = (class.policy, choice) {
                classes.order(&class.path, policy)?;
            }
            if let Some(first) = &class.limits.first {
                classes.limit(&class.path, first)?;
            }
        }
        if workload.needs_memory_controller() {
            classes.set_memory(workload)?;
        }
        if *choice == Choice::ByHand(ByHand::Weight) {
            for program in workload.programs.iter().filter(|p| p.count > 0) {
                let Some(tuned) = &program.tuned else {
                    continue;
                };
                let threaded = !classes.base.is_root();
                classes.make_one(&own_class(program), Some(tuned.weight), threaded)?;
                classes.own.push(program.name.clone());
            }
        }
        Ok(classes)
    }

    fn make_one(
        &mut self,
        path: &str,
        weight: Option<u32>,
        threaded: bool,
    ) -> Result<(), ClassError> {
        let path = self.absolute(path);
        let new = NewClass {
            weight: weight.map(i64::from),
            threaded,
            ..NewClass::default()
        };
        self.made.extend(self.tree.create(&path, &new)?);
        Ok(())
    }

    fn make_unweighed(&mut self, path: &str) -> Result<(), LabError> {
        let path = self.absolute(path);
        let directory = self.tree.directory(&path);
        fs::create_dir(&directory).map_err(|e| LabError::file("create", &directory, e))?;
        self.made.push(path);
        Ok(())
    }

    fn absolute(&self, path: &str) -> ClassPath {
        let steps = path.split('/').filter(|step| !step.is_empty());
        steps.fold(self.base.clone(), |above, step| above.child(step))
    }

    /// Path of a class of the scenario, from the root of the hierarchy.
    pub fn path_of(&self, class: &str) -> String {
        self.absolute(class).to_string()
    }

    /// The file that takes the ids of the program's processes, to place them in their class.
    pub fn procs_file_of(&self, program: &Program) -> PathBuf {
        let class = match self.own.contains(&program.name) {
            true => own_class(program),
            false => program.class.clone(),
        };
        self.procs_file(&class)
    }

    /// The `cgroup.procs` of a class.
    pub fn procs_file(&self, class: &str) -> PathBuf {
        self.tree
            .directory(&self.absolute(class))
            .join("cgroup.procs")
    }

    /// CPU time of the class and its descendants since it was made [ns].
    pub fn cpu_ns(&self, path: &str) -> Result<u64, LabError> {
        let file = self.tree.directory(&self.absolute(path)).join("cpu.stat");
        let text = fs::read_to_string(&file).map_err(|e| LabError::file("read", &file, e))?;
        let usage = text
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        let usage_us: u64 = usage
            .and_then(|digits| digits.trim().parse().ok())
            .ok_or_else(|| LabError::file("read", &file, io::ErrorKind::InvalidData.into()))?;
        Ok(usage_us * 1000)
    }

    /// The tasks of the class are ordered so from now on: an Andante that is loaded is told, one that is loaded
    /// later looks by itself.
    fn order(&self, path: &str, policy: LeafPolicy) -> Result<(), LabError> {
        self.tree.set_policy(&self.absolute(path), policy)?;
        let Ok(mut client) = Client::connect(&socket_path()) else {
            return Ok(());
        };
        let class = self.path_of(path);
        let told = client.request(&Request::Policy { class });
        told.map(drop)
            .map_err(|error| LabError::io("set the policy of a class", io::Error::other(error)))
    }

    /// The class may use so much from now on.
    pub fn limit(&self, path: &str, bandwidth: &Bandwidth) -> Result<(), LabError> {
        let directory = self.tree.directory(&self.absolute(path));
        let write = |file: &str, text: String| {
            let file = directory.join(file);
            fs::write(&file, text).map_err(|e| LabError::file("write", &file, e))
        };
        // The kernel compares the burst with the quota that there is: less comes first.
        write("cpu.max.burst", "0".to_owned())?;
        write("cpu.max", bandwidth.cpu_max())?;
        write("cpu.max.burst", bandwidth.burst_us.to_string())
    }

    /// Has every class count its memory, and gives each what it is to have. That is no scheduler's, and holds under all.
    fn set_memory(&self, workload: &Workload) -> Result<(), LabError> {
        self.hand_down(workload, "memory")?;
        memory::settings(workload)
            .into_iter()
            .try_for_each(|(path, file, bytes)| self.set(path, file, &bytes.to_string()))
    }

    /// Classes have the files of a controller once those above hand it down.
    pub fn hand_down(&self, workload: &Workload, controller: &str) -> Result<(), LabError> {
        let above = self.base.ancestry().take(self.base.depth());
        let inner = |path: &str| workload.classes.iter().any(|other| other.parent() == path);
        let paths = workload.classes.iter().map(|class| class.path.as_str());
        let paths = std::iter::once("/").chain(paths);
        let classes = paths.filter(|path| inner(path));
        for class in above.chain(classes.map(|path| self.absolute(path))) {
            let file = self.tree.directory(&class).join("cgroup.subtree_control");
            let text = format!("+{controller}");
            fs::write(&file, text).map_err(|e| LabError::file("write", &file, e))?;
        }
        Ok(())
    }

    /// Sets a file of a class.
    pub fn set(&self, path: &str, file: &str, text: &str) -> Result<(), LabError> {
        let file = self.tree.directory(&self.absolute(path)).join(file);
        fs::write(&file, text).map_err(|e| LabError::file("write", &file, e))
    }

    /// The kernel's counts of the memory of the class and its descendants.
    pub fn memory(&self, path: &str) -> Counted {
        let directory = self.tree.directory(&self.absolute(path));
        let stat = fs::read_to_string(directory.join("memory.stat"));
        stat.map_or_else(|_| Counted::default(), |stat| Counted::read(&stat))
    }

    /// Kills everything that is still in the classes.
    fn kill(&self) {
        for class in &self.made {
            // Only the roots of threaded subtrees have the file; their members are killed by them.
            let _ = fs::write(self.tree.directory(class).join("cgroup.kill"), "1");
        }
    }
}

/// The class that a program gets by hand; scenarios name none so.
pub fn own_class(program: &Program) -> String {
    format!("/tuned.{}", program.name)
}

impl Drop for Classes {
    fn drop(&mut self) {
        self.kill();
        let start = Instant::now();
        for class in self.made.iter().rev() {
            // Dying processes leave a moment after the kill.
            while let Err(ClassError::HoldsTasks { .. }) = self.tree.remove(class) {
                if start.elapsed() > LEAVE_TIMEOUT {
                    eprintln!(
                        "class {class} still holds tasks and stays: end them, then remove it"
                    );
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}
