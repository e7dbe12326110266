//! Loading the scheduler into the kernel, and letting it go.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Mutex;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, PrintLevel};
use thiserror::Error;

use crate::domains::{Domains, Object, online_cpus};
use crate::domains_skel::DomainsSkelBuilder;
use crate::events::EventRules;
use crate::events_skel::EventsSkelBuilder;
use crate::session::Late;
use crate::skel::{SchedSkelBuilder, types};
use crate::told::Told;
use crate::verifying;

/// CPUs that the per-CPU arrays of the scheduler have room for (`AN_MAX_CPUS`).
pub(crate) const MAX_CPUS: usize = 1024;

/// Functions of the kernel that the scheduler cannot do without, for a probe of the kernel's BTF.
pub const NEEDED_KFUNCS: &[&str] = &[
    "bpf_cgroup_ancestor",
    "bpf_cgroup_from_id",
    "bpf_cgroup_release",
    "bpf_cpumask_intersects",
    "bpf_cpumask_test_cpu",
    "bpf_iter_scx_dsq_destroy",
    "bpf_iter_scx_dsq_new",
    "bpf_iter_scx_dsq_next",
    "bpf_task_from_pid",
    "bpf_task_release",
    "scx_bpf_create_dsq",
    "scx_bpf_dsq_insert",
    "scx_bpf_dsq_move_to_local",
    "scx_bpf_dsq_nr_queued",
    "scx_bpf_kick_cpu",
    "scx_bpf_task_cgroup",
    "scx_bpf_pick_idle_cpu",
    "scx_bpf_task_cpu",
];

/// What can be set before the scheduler is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Service of one pick [µs]: how long a task runs while others wait.
    pub slice_us: u32,
    /// The part of every CPU that learnt contracts may use, if contracts that were promised leave them so much of
    /// what `leave_percent` leaves both [%]; 0: none are learnt.
    pub learn_percent: u32,
    /// The part of every CPU that contracts leave to everybody else, in overload too [%].
    pub leave_percent: u32,
    /// Whether a server's work is charged to, and done with the share of, the client it serves.
    pub binding: bool,
    /// CPUs of a domain with a tree and a lock of its own; none: as many as is best.
    pub domain_cpus: Option<u32>,
    /// Whether contracts with windows can be sinks of events, and by which rules. None: nothing of it is loaded.
    pub events: Option<EventRules>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            slice_us: 2_000,
            learn_percent: 80,
            leave_percent: 20,
            binding: true,
            domain_cpus: None,
            events: None,
        }
    }
}

impl Options {
    /// The part of every CPU that learnt contracts may use where nothing was promised [%].
    pub fn learnt_percent(&self) -> u32 {
        self.learn_percent
            .min(100_u32.saturating_sub(self.leave_percent))
    }
}

/// Why the scheduler could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// More CPUs than the scheduler's arrays hold.
    #[error(
        "this machine has {0} CPUs and Andante serves at most {MAX_CPUS}: boot with nr_cpus={MAX_CPUS}"
    )]
    TooManyCpus(usize),
    /// Events and several domains.
    #[error(
        "events are coordinated where all CPUs are one domain, and here are {0}: give --domain-cpus as many as there are"
    )]
    EventsOfDomains(u32),
    /// The kernel's verifier gave up, by a fault of its own or because it is given too little room.
    #[error(
        "the verifier of this kernel fails at {program} (\"{words}\"), and no setting mends that: boot a newer one, for example Debian's 7.2.13 or 7.3"
    )]
    Verifier {
        /// What it was looking at.
        program: String,
        /// What it said last.
        words: String,
    },
    /// The kernel refused the program; its own words follow.
    #[error(
        "the kernel refused the scheduler ({step}: {source}): `andante doctor` tells what is missing\n{log}"
    )]
    Refused {
        /// `open`, `load` or `attach`.
        step: &'static str,
        /// What libbpf made of it.
        source: libbpf_rs::Error,
        /// The last lines of libbpf's log.
        log: String,
    },
}

/// Why the kernel let the scheduler go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// The kernel's name for the reason.
    pub reason: String,
    /// Its explanation; empty if there is none.
    pub message: String,
    /// The exit code of the scheduler.
    pub code: i64,
}

/// The scheduler in the kernel. Dropping it detaches it, and the kernel's own takes over.
pub struct Scheduler {
    pub(crate) object: Object,
    domains: Domains,
    pub(crate) events: Option<EventRules>,
    link: Option<Link>,
    /// Of the programs that see what goes over sockets; none without binding.
    _sockets: Vec<Link>,
    /// Of the program that hears fast calls; none while there is no session.
    pub(crate) fast_call: Option<Link>,
    /// Whether this kernel has what that is attached to.
    pub(crate) may_call_fast: bool,
    /// Of the program that sees what comes to sockets; none while nobody has subscribed.
    pub(crate) data_comes: Option<Link>,
    /// Of the programs that see what is done to eventfds; none likewise.
    pub(crate) eventfds: Vec<Link>,
    /// Who is told by us; none before anybody is told by a signal.
    pub(crate) late: Option<Late>,
}

/// What libbpf says while loading; shown only if that fails.
static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());
const LOG_LINES: usize = 40;

/// Before an object is opened: keeps what libbpf says. How many CPUs there may be.
pub(crate) fn prepare() -> Result<u32, LoadError> {
    let possible = libbpf_rs::num_possible_cpus().unwrap_or(1);
    if possible > MAX_CPUS {
        return Err(LoadError::TooManyCpus(possible));
    }
    libbpf_rs::set_print(Some((PrintLevel::Info, log)));
    Ok(possible as u32)
}

/// Lets a link go; the kernel's own scheduler is in charge then.
pub(crate) fn detach(link: Option<Link>) -> Result<(), io::Error> {
    link.map_or(Ok(()), |link| link.detach().map_err(io::Error::other))
}

/// Why the kernel let the scheduler with these variables go (`bpf/exit.h`); none while it has not. Each
/// skeleton has types of its own, hence a macro.
macro_rules! exit_of {
    ($variables:expr) => {{
        let variables = $variables;
        // SAFETY: the pointer is to the mapped section, which lives as long as the skeleton. The
        // kernel writes it at any time, hence the volatile read.
        let exit = unsafe { (&raw const (*variables).exit_info).read_volatile() };
        (exit.left != 0).then(|| $crate::loader::Exit {
            reason: $crate::loader::text(&exit.reason),
            message: $crate::loader::text(&exit.message),
            code: exit.code,
        })
    }};
}
pub(crate) use exit_of;

fn log(_: PrintLevel, text: String) {
    if let Ok(mut lines) = LOG.lock() {
        lines.extend(text.lines().map(str::to_owned));
        let excess = lines.len().saturating_sub(LOG_LINES);
        lines.drain(..excess);
    }
}

pub(crate) fn refused(step: &'static str) -> impl FnOnce(libbpf_rs::Error) -> LoadError {
    move |source| {
        let lines = LOG.lock().map(|lines| lines.clone()).unwrap_or_default();
        if let Some((program, words)) = verifier_failed(&lines) {
            return LoadError::Verifier { program, words };
        }
        let log = lines.join("\n");
        LoadError::Refused { step, source, log }
    }
}

/// How the verifier says that it failed, not the program.
const VERIFIER_FAILS: [&str; 2] = ["verifier bug: ", "BPF program is too large. "];

/// The program at which the verifier failed, and what it said, if that is why loading failed.
fn verifier_failed(log: &[String]) -> Option<(String, String)> {
    let says = |line: &&String| VERIFIER_FAILS.iter().any(|words| line.starts_with(words));
    let words = log.iter().rfind(says)?.clone();
    let program = log.iter().rev().find_map(|line| {
        let rest = line.strip_prefix("libbpf: prog '")?;
        let (name, failed) = rest.split_once('\'')?;
        failed.contains("failed to load").then(|| name.to_owned())
    });
    Some((program.unwrap_or_else(|| "a program".to_owned()), words))
}

/// Opens, loads and attaches the object of this skeleton; with `$knobs` set, and whatever else is to be
/// done to `$open` before it is loaded. The skeleton, its link, and those of programs that see what
/// goes over sockets. Each skeleton has types of its own, hence a macro.
macro_rules! put_in_charge {
    ($builder:ty, $options:expr, $possible:expr, |$open:ident| $more:block) => {{
        // The skeleton borrows its object. A process loads the scheduler once, so giving the
        // object to the process costs nothing and spares every user of this type a lifetime.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut $open = <$builder>::default().open(object).map_err(refused("open"))?;
        let told = Told::here();
        let binding = $options.binding && told.data_ready;
        let receipts = binding && told.received;
        // SAFETY: it is the value that libbpf makes the kernel's structure of, which lives as long as the
        // open object; the generator declares it as the object does.
        let ops = unsafe { &mut *$open.struct_ops.andante_ops };
        // A member that the kernel lacks must be none.
        if !told.bandwidth {
            ops.cgroup_set_bandwidth = std::ptr::null_mut();
        }
        if !told.idle {
            ops.cgroup_set_idle = std::ptr::null_mut();
        }
        $open.progs.andante_data_ready.set_autoload(binding);
        $open.progs.andante_received.set_autoload(receipts);
        $open.progs.andante_data_comes.set_autoload(told.data_ready);
        $open.progs.andante_fast_call.set_autoload(told.calls);
        $open.progs.andante_eventfd.set_autoload(told.eventfds);
        $open.progs.andante_eventfd_ends.set_autoload(told.eventfds);
        if let Some(knobs) = $open.maps.rodata_data.as_deref_mut() {
            knobs.quantum_ns = u64::from($options.slice_us) * 1_000;
            knobs.contract_bound = (100 - $options.leave_percent) * 1024 / 100;
            knobs.learn_bound = $options.learnt_percent() * 1024 / 100;
            knobs.bindings = u32::from(binding);
            knobs.nr_cpus = $possible;
            knobs.nr_cpus_online = online_cpus();
        }
        $more
        verifying::begins($open.open_object());
        let loaded = $open.load();
        verifying::ends();
        let mut skel = loaded.map_err(refused("load"))?;
        let link = skel
            .maps
            .andante_ops
            .attach_struct_ops()
            .map_err(refused("attach"))?;
        let sockets = [
            binding.then(|| skel.progs.andante_data_ready.attach()),
            receipts.then(|| skel.progs.andante_received.attach()),
        ];
        let sockets = sockets
            .into_iter()
            .flatten()
            .collect::<Result<_, _>>()
            .map_err(refused("attach"))?;
        (skel, link, sockets)
    }};
}

impl Scheduler {
    /// Loads the scheduler and puts it in charge of every task of the normal scheduling class.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; nothing is left in the kernel then.
    pub fn load(options: &Options) -> Result<Self, LoadError> {
        let possible = prepare()?;
        let domains = Domains::here(options.domain_cpus);
        let (object, link, sockets) = if let Some(rules) = options.events {
            if domains.count > 1 {
                return Err(LoadError::EventsOfDomains(domains.count));
            }
            let (skel, link, sockets) =
                put_in_charge!(EventsSkelBuilder, options, possible, |open| {
                    if let Some(knobs) = open.maps.rodata_events_data.as_deref_mut() {
                        knobs.event_options = rules.left_out();
                    }
                });
            (Object::Events(skel), link, sockets)
        } else if domains.count == 1 {
            let (skel, link, sockets) =
                put_in_charge!(SchedSkelBuilder, options, possible, |open| {});
            (Object::One(skel), link, sockets)
        } else {
            let (skel, link, sockets) =
                put_in_charge!(DomainsSkelBuilder, options, possible, |open| {
                    let slots = domains.count.next_power_of_two();
                    if let Some(knobs) = open.maps.rodata_domains_data.as_deref_mut() {
                        knobs.nr_domains = domains.count;
                        knobs.domain_mask = slots - 1;
                        knobs.domain_shift = domains.cpus.ilog2();
                    }
                    let trees = size_of::<types::an_tree>() * slots as usize;
                    open.maps
                        .bss_trees
                        .set_value_size(trees as u32)
                        .map_err(refused("open"))?;
                });
            (Object::Several(skel), link, sockets)
        };
        Ok(Self {
            object,
            domains,
            events: options.events,
            link: Some(link),
            _sockets: sockets,
            fast_call: None,
            data_comes: None,
            eventfds: Vec::new(),
            late: None,
            may_call_fast: Told::here().calls,
        })
    }

    /// How the CPUs are divided. Those of the first domain serve contracts.
    pub fn domains(&self) -> Domains {
        self.domains
    }

    /// Why the scheduler is no longer in charge; none while it is.
    pub fn exited(&self) -> Option<Exit> {
        exit_of!(self.object.variables()?)
    }

    /// Detaches the scheduler; the kernel's own is in charge when this returns.
    ///
    /// # Errors
    ///
    /// The kernel's, if it does not let the link go.
    pub fn detach(mut self) -> Result<(), io::Error> {
        detach(self.link.take())
    }
}

/// A text that ends with the first zero byte.
pub(crate) fn text(bytes: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = bytes
        .iter()
        .map(|&c| c as u8)
        .take_while(|&b| b != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_verifier_is_told_from_a_fault_of_ours() {
        let log = |lines: &[&str]| {
            lines
                .iter()
                .map(|line| (*line).to_owned())
                .collect::<Vec<_>>()
        };
        let bug = "verifier bug: backtracking call unexpected regs 1c2";
        let failed = "libbpf: prog 'andante_init': failed to load: -EFAULT";
        let of_6_18 = log(&[
            "752: (05) goto pc-94",
            "",
            bug,
            "-- END PROG LOAD LOG --",
            failed,
        ]);
        let expected = ("andante_init".to_owned(), bug.to_owned());
        assert_eq!(verifier_failed(&of_6_18), Some(expected.clone()));
        let (program, words) = expected;
        let said = LoadError::Verifier { program, words }.to_string();
        assert!(
            !said.contains('\n') && said.contains("boot a newer one"),
            "{said}"
        );
        let large = "BPF program is too large. Processed 1000001 insn";
        assert!(verifier_failed(&log(&[large])).is_some());
        let ours = log(&[
            "R1 is not a scalar",
            "libbpf: prog 'andante_init': failed to load: -22",
        ]);
        assert_eq!(verifier_failed(&ours), None);
    }
}
