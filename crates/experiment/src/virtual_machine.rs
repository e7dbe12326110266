//! Runs in virtual machines: each case and scheduler in one of its own, several at once. All that need
//! the same machine of one CPU and the same scheduler go on from one that was saved with that in charge.
//!
//! In virtual time the figures do not depend on how busy the host is, so running two machines side
//! by side changes nothing but the waiting.

use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use andante_job::files::andante_of;
use andante_job::progress::{At, Progress};
use andante_job::{Carried, Job, LabError, On, RunOptions};
use andante_judge::unclocked;
use andante_programs::assets;
use andante_result::SchedulerResult;
use andante_runner as runner;
use andante_scenario::choice::Choice;
use andante_scenario::{Cable, Discipline, Scenario, Workload, networks, perturb};
use andante_vm::{
    Boot, Cache, Content, Event, ImageSpec, InitrdFile, Kernel, KernelSearch, Order, PassingImage,
    Qemu, Timing, Topology,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::guest::{self, GuestOrder, GuestReply, ReadyOrder};

/// Each machine takes memory and one of the host's CPUs.
const MACHINES_MAX: usize = 4;
/// Free space in the root image, for what programs write outside of /tmp [MiB].
const IMAGE_FREE_MIB: u32 = 32;
/// How long a machine may take on the host: for booting [s], and per virtual second.
const HOST_S: f64 = 300.0;
const HOST_S_PER_VIRTUAL_S: f64 = 40.0;
/// Of one in the host's time: what it waits for, at the end too, may take as long again.
const HOST_S_PER_PARALLEL_S: f64 = 3.0;
/// Where binaries of the RAM disk lie in the guest.
const GUEST_BIN: &str = "/andante/bin";

/// What all machines of a scenario share.
pub struct Machine<'a> {
    /// The scheduler's binary.
    andante: PathBuf,
    kernel: Kernel,
    qemu: Qemu,
    /// For cases with real programs; what it is made of.
    image: Option<(PathBuf, ImageSpec)>,
    /// For cases that swap.
    device_mapper: Option<PathBuf>,
    cache: Cache,
    /// The scenario and the files beside it that it reads.
    scenario_files: Vec<InitrdFile>,
    scenario: &'a Scenario,
    options: &'a RunOptions,
    logs: PathBuf,
}

/// What a machine is given besides the two binaries and the command.
#[derive(Default)]
pub struct Given {
    /// Executables.
    pub programs: Vec<PathBuf>,
    /// With the command.
    pub files: Vec<InitrdFile>,
    /// When it is ready.
    pub order: Option<Order>,
}

/// Tells the waiting thread how far the job with this number is.
enum Message {
    At(usize, At),
    Ended(usize, Result<SchedulerResult, LabError>),
}

/// Boots a machine for every job.
pub fn run(
    file: &Path,
    scenario: &Scenario,
    jobs: &[Job],
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Carried, LabError> {
    let machine = prepare(file, scenario, options, progress)?;
    progress.runs(&jobs.iter().map(Job::name).collect::<Vec<_>>());
    let cpus = || thread::available_parallelism().map_or(1, usize::from);
    let workers = options.machines.unwrap_or_else(cpus).min(MACHINES_MAX);
    let queue = Mutex::new(jobs.iter().enumerate());
    let (results, failure) = thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..workers.min(jobs.len()) {
            let (sender, queue, machine) = (sender.clone(), &queue, &machine);
            scope.spawn(move || work(machine, queue, &sender));
        }
        drop(sender);
        wait(&receiver, jobs, &queue, progress)
    });
    Ok(Carried {
        kernel: machine.kernel.release,
        results,
        failure,
    })
}

/// Takes jobs from the queue until it is empty.
fn work<'a>(
    machine: &Machine<'_>,
    queue: &Mutex<impl Iterator<Item = (usize, &'a Job)>>,
    sender: &Sender<Message>,
) {
    let next = || {
        queue
            .lock()
            .expect("nobody panics holding the queue")
            .next()
    };
    while let Some((index, job)) = next() {
        // Nobody listens any more once another job has failed; that ends the queue as well.
        let _ = sender.send(Message::At(index, At::phase("booting")));
        let result = machine.boot(job, &mut |at| drop(sender.send(Message::At(index, at))));
        let _ = sender.send(Message::Ended(index, result));
    }
}

/// Collects the results; on the first failure, which is returned too, no further job is begun.
fn wait<'a>(
    receiver: &Receiver<Message>,
    jobs: &[Job],
    queue: &Mutex<impl Iterator<Item = (usize, &'a Job)>>,
    progress: &mut dyn Progress,
) -> (Vec<Option<SchedulerResult>>, Option<LabError>) {
    let mut results: Vec<Option<SchedulerResult>> = vec![None; jobs.len()];
    let mut failure = None;
    loop {
        match receiver.recv_timeout(Duration::from_millis(500)) {
            Ok(Message::At(index, at)) => {
                progress.run(index, &at, jobs[index].case.workload.duration_s);
            }
            Ok(Message::Ended(index, Ok(result))) => {
                progress.ended(index, "done");
                results[index] = Some(result);
            }
            Ok(Message::Ended(index, Err(error))) => {
                progress.ended(index, "failed");
                queue
                    .lock()
                    .expect("nobody panics holding the queue")
                    .by_ref()
                    .for_each(drop);
                failure.get_or_insert(error);
            }
            Err(RecvTimeoutError::Timeout) => progress.tick(),
            Err(RecvTimeoutError::Disconnected) => return (results, failure),
        }
    }
}

/// What makes time pass in the machines.
fn timing(options: &RunOptions) -> Timing {
    match options.on {
        On::Parallel => Timing::Parallel,
        On::Vm | On::Sim | On::Host => Timing::Virtual,
    }
}

/// Finds kernel and emulator, and makes the image if any case needs one.
pub fn prepare<'a>(
    file: &Path,
    scenario: &'a Scenario,
    options: &'a RunOptions,
    progress: &mut dyn Progress,
) -> Result<Machine<'a>, LabError> {
    let andante = andante_of(&options.lab)?;
    let cache = Cache::open()?;
    let workloads = || scenario.cases.iter().map(|case| &case.workload);
    let real = |program: &andante_scenario::Program| program.count > 0 && program.needs_system();
    // What is not installed is said before anything is fetched.
    let mut spec = ImageSpec {
        free_mib: IMAGE_FREE_MIB,
        ..ImageSpec::default()
    };
    for workload in workloads() {
        spec.programs.extend(assets::programs(workload)?);
    }
    let swaps = workloads().any(|workload| workload.memory.is_some());
    let device_mapper = swaps.then(assets::device_mapper).transpose()?;
    let cpus = workloads().map(|workload| workload.cpus).max().unwrap_or(1);
    let said = std::cell::RefCell::new(progress);
    let say = |what: &str| said.borrow_mut().preparing(what);
    let search = KernelSearch {
        kfuncs: andante_sched::NEEDED_KFUNCS,
        ..Default::default()
    };
    let kernel = search.find(&cache, &say)?;
    let qemu = andante_vm::find_qemu_for(&cache, cpus, timing(options), &say)?;
    let image = if swaps || workloads().any(|workload| workload.programs.iter().any(real)) {
        let folder = cache.folder("assets")?;
        for workload in workloads() {
            assets::make(workload, &folder, &mut |what| say(&what))?;
            spec.files.extend(assets::needed(workload, &folder)?);
            spec.placed.extend(assets::placed(workload, &folder));
        }
        Some((andante_vm::build_image(&cache, &spec, &say)?, spec))
    } else {
        None
    };
    let logs = options.out.join(&scenario.key).join("logs");
    std::fs::create_dir_all(&logs).map_err(|e| LabError::file("create", &logs, e))?;
    Ok(Machine {
        andante,
        kernel,
        qemu,
        image,
        device_mapper,
        cache,
        scenario_files: scenario_files(file, scenario)?,
        scenario,
        options,
        logs,
    })
}

/// A file of the scenario's folder, in the guest.
fn in_scenario_folder(path: impl AsRef<Path>) -> PathBuf {
    Path::new("/andante").join(path)
}

/// What the guest reads the scenario from.
fn scenario_files(file: &Path, scenario: &Scenario) -> Result<Vec<InitrdFile>, LabError> {
    let read = |from: &Path, to: PathBuf| {
        let content = std::fs::read(from).map_err(|e| LabError::file("read", from, e))?;
        Ok::<_, LabError>(InitrdFile {
            guest: in_scenario_folder(to),
            content: Content::Bytes(content),
            mode: 0o644,
        })
    };
    let mut files = vec![read(file, format!("{}.toml", scenario.key).into())?];
    for beside in &scenario.beside {
        let below = |part| matches!(part, Component::Normal(_));
        if !beside.components().all(below) {
            let outside = std::io::Error::other(
                "a virtual machine is given only what lies in the scenario's folder",
            );
            return Err(LabError::file("use", beside, outside));
        }
        files.push(read(&file.with_file_name(beside), beside.clone())?);
    }
    Ok(files)
}

impl Machine<'_> {
    /// `uname -r` of its kernel.
    pub fn kernel(&self) -> &str {
        &self.kernel.release
    }

    /// Major and minor version of the emulator.
    pub fn emulator(&self) -> (u32, u32) {
        self.qemu.version
    }

    /// Runs one job in a machine of its own.
    fn boot(&self, job: &Job, say: &mut dyn FnMut(At)) -> Result<SchedulerResult, LabError> {
        let (programs, scheduler) = match &job.choice {
            Choice::Program(file) => (vec![file.clone()], in_guest(file)),
            choice => (Vec::new(), choice.name()),
        };
        let ready = ReadyOrder {
            scheduler: scheduler.clone(),
            loading: runner::Loading::of(&job.case.workload),
        };
        let order = self.order(job, scheduler);
        let order = serde_json::to_vec(&order).expect("orders are plain data");
        let mut files = self.scenario_files.clone();
        files.push(InitrdFile {
            guest: guest::ORDER_FILE.into(),
            content: Content::Bytes(order),
            mode: 0o644,
        });
        // What loads nothing is ready at once.
        let save = !matches!(
            job.choice,
            Choice::Eevdf | Choice::Stock | Choice::ByHand(_)
        );
        let given = Given {
            order: Some(Order { files, save }),
            programs,
            ..Given::default()
        };
        match self.carry("guest", &ready, job, given, say)? {
            GuestReply::Result(mut result) => {
                if let Some(found) = &mut result.unclocked {
                    found.complaints = self.complaints(job);
                }
                Ok(result)
            }
            reply => Err(reply.into_error()),
        }
    }

    /// Where its console is kept.
    fn console_log(&self, job: &Job) -> PathBuf {
        let name = format!("{}.console", job.name().replace([' ', '/'], "-"));
        self.logs.join(name)
    }

    /// What the kernel complained of on the console.
    fn complaints(&self, job: &Job) -> Vec<String> {
        let console = std::fs::read(self.console_log(job)).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        let lines = console.lines().map(str::trim_end);
        let complaints = lines.filter(|line| unclocked::complains(line));
        complaints.map(str::to_owned).collect()
    }

    /// The order to run a job under this scheduler.
    pub fn order(&self, job: &Job, scheduler: String) -> GuestOrder {
        GuestOrder {
            scenario: in_scenario_folder(format!("{}.toml", self.scenario.key)),
            set: self.options.set.clone(),
            case: job.case.name.clone(),
            scheduler,
            perturbation: job.perturbation,
            parallel: self.options.on == On::Parallel,
        }
    }

    /// The image in another layout, if there is one and another layout is asked for.
    fn image_of(&self, layout: Option<u64>) -> Result<Option<PassingImage>, LabError> {
        let (Some((_, spec)), Some(_)) = (&self.image, layout) else {
            return Ok(None);
        };
        let spec = ImageSpec {
            layout,
            ..spec.clone()
        };
        Ok(Some(andante_vm::build_passing_image(&self.cache, &spec)?))
    }

    /// What a machine is given that is asked at once for all of it.
    pub fn at_once(&self) -> Given {
        Given {
            files: self.scenario_files.clone(),
            ..Given::default()
        }
    }

    /// Whether a saved machine serves this job. One of several CPUs that is saved anew is not the same to the
    /// last digit as it was, so that figures would tell when it was; and one with its files in another layout
    /// is not needed a second time.
    fn may_save(&self, job: &Job) -> bool {
        job.case.workload.cpus == 1
            && job.perturbation.is_none()
            && !self.options.boot
            && self.options.on != On::Parallel
    }

    /// Has a machine for this job, has the laboratory there carry out an order, by the subcommand
    /// `verb`, and brings back the reply.
    pub fn carry<Reply: DeserializeOwned>(
        &self,
        verb: &str,
        order: &impl Serialize,
        job: &Job,
        given: Given,
        say: &mut dyn FnMut(At),
    ) -> Result<Reply, LabError> {
        let workload = &job.case.workload;
        let mut programs = given.programs;
        programs.splice(0..0, [self.andante.clone(), self.options.lab.clone()]);
        let swap = workload.memory.as_ref();
        // The memory that is left must not depend on how large our own binaries are, which lie in the guest's memory.
        let own_mib = swap.map_or(Ok(0), |_| length_mib(&programs))?;
        programs.extend(swap.and(self.device_mapper.clone()));
        let order = serde_json::to_string(order).expect("orders are plain data");
        let command = [&in_guest(&self.options.lab), verb, &order];
        let virtual_s =
            workload.duration_s + workload.overtime_s + workload.warmup_s + runner::SETTLED_S;
        let per_s = match self.options.on {
            On::Parallel => HOST_S_PER_PARALLEL_S,
            _ => HOST_S_PER_VIRTUAL_S,
        };
        let layout = job.perturbation.map(perturb::layout);
        let perturbed = self.image_of(layout)?;
        let image = perturbed.as_ref().map(|image| &image.file);
        let usual = self.image.as_ref().map(|(file, _)| file);
        let boot = Boot {
            kernel: &self.kernel,
            qemu: &self.qemu,
            cpus: workload.cpus,
            timing: timing(self.options),
            cards: false,
            topology: Topology {
                threads_of_core: workload.topology.threads_of_core,
                cpus_of_cache: workload.topology.cpus_of_cache,
                cpus_of_node: workload.topology.cpus_of_node,
            },
            memory_mib: workload.memory_mib + own_mib,
            image: image.or(usual).map(PathBuf::as_path),
            swap_mib: swap.map(|memory| memory.swap_mib),
            system: false,
            layout,
            initrd_files: Vec::new(),
            files: given.files,
            modules: modules(workload),
            programs,
            command: command.map(str::to_owned).into(),
            order: given.order,
            saved: self.may_save(job).then_some(&self.cache),
            timeout: Duration::from_secs_f64(HOST_S + per_s * virtual_s),
            console_log: self.console_log(job),
        };
        let mut last_words = String::new();
        let outcome = boot.run(&mut |event| match event {
            Event::Progress(line) => say(guest::parse_progress(line)),
            Event::Note(line) => say(At::phase(line)),
            Event::Console(line) if !line.trim().is_empty() => line.clone_into(&mut last_words),
            Event::Console(_) => {}
        })?;
        serde_json::from_slice(&outcome.output)
            .map_err(|_| LabError::NoResult { reason: last_words })
    }
}

/// Modules beside those that every machine has.
fn modules(workload: &Workload) -> Vec<&'static str> {
    let mut modules = match networks(&workload.programs)[..] {
        [] => Vec::new(),
        _ => cable_modules(&workload.cable),
    };
    if let Some(disk) = &workload.disk {
        modules.push("ublk_drv");
        modules.extend(disk.scheduler.module());
    }
    modules
}

/// The driver of the cable between two networks, and those of what may stand at its ends.
fn cable_modules(cable: &Cable) -> Vec<&'static str> {
    let disciplines: &[&str] = match (cable.rate, cable.discipline) {
        (None, _) | (_, Discipline::Andante) => &[],
        (_, Discipline::Cake) => &["sch_cake"],
        (_, Discipline::Own | Discipline::Fifo | Discipline::FqCodel) => &["sch_tbf"],
    };
    [&["veth"], disciplines].concat()
}

/// The length of all these files [MiB].
fn length_mib(files: &[PathBuf]) -> Result<u32, LabError> {
    let length = |file: &PathBuf| {
        let data = file.metadata();
        data.map(|data| data.len())
            .map_err(|e| LabError::file("read", file, e))
    };
    let bytes: u64 = files.iter().map(length).sum::<Result<_, _>>()?;
    Ok((bytes >> 20) as u32)
}

/// Where a program of the host lies in the guest.
fn in_guest(file: &Path) -> String {
    let name = file
        .file_name()
        .expect("a binary has a name")
        .to_string_lossy();
    format!("{GUEST_BIN}/{name}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_runner_knows_the_devices_that_the_machine_makes() {
        use andante_runner::memory::{DEVICES, SWAP_DEVICE};
        assert_eq!(DEVICES, [andante_vm::ROOT_NAME, andante_vm::SWAP_NAME]);
        assert_eq!(SWAP_DEVICE, andante_vm::SWAP_DEVICE);
    }
}
