//! `andante run`: puts the scheduler in charge until told to stop.

pub(super) mod config;
mod loading;

use std::path::PathBuf;
use std::time::Duration;

use andante_daemon::memory::{Place, Reservations};
use andante_daemon::{Choices, Daemon, LinuxHost, Settings, Socket, choices, socket_path};
use andante_sched::doctor::{self, Loaded};
use andante_sched::{Domains, EventRules, Historical, Policy, Scheduler, told};
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output::{self, BOLD, GOOD, paint};
use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::loading::Loading;

/// How often to look whether a signal came or the kernel ejected the scheduler.
const LOOK: Duration = Duration::from_millis(100);

/// Put the scheduler in charge of all CPUs; stay until ^C.
///
/// Every task is scheduled by the class tree from then on, and contracts can be had: see
/// `andante reserve`. When this command ends, however it ends, the kernel's stock scheduler takes
/// over at once, and all contracts are gone.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  sudo andante run
  sudo andante run --slice-us 1000       shorter turns: quicker reaction, a little more overhead
  sudo andante run --leave 30            contracts may have 70 % of every CPU, not 80
  sudo andante run --learn 0             nothing is learnt: weights and contracts decide alone
  sudo andante run --policy dwcs --events   DWCS with coordinated events, as ECalls has it
  sudo andante run --policy svr4-ts      a policy of the past, to see what it does to a film
  sudo systemctl enable --now andante    as a service, from boot on

What no option says is read from /etc/andante.toml and /etc/andante.d/*.toml, if they are there:
  learn_percent = 0     # nothing is learnt; likewise learn_memory_percent, leave_percent,
                        # user_quota_percent, users_quota_percent, session_quota_percent,
                        # slice_us, domain_cpus, and binding = false

The policies svr4-ts to rr are historical and for experiments: one queue for all tasks, no classes, no
contracts. They starve programs as they did in their time. The kernel's own threads are kept out of
that, and a program that has not run for 30 s makes the kernel eject the scheduler: then the stock one
is back. With dwcs, what contracts ask together may be more than there is: then losses go by the
windows (`andante exec --reserve 10ms/100ms --tolerate 1/5`), and beyond these contracts are violated.

Those who ask for contracts connect to the socket /run/andante.sock, or to the one that
ANDANTE_SOCKET names here and there.")]
pub struct Run {
    /// How tasks are ordered: by classes, or by a historical policy.
    #[arg(long, value_name = "NAME", default_value = H_SFQ, value_parser = policy())]
    policy: Named,
    /// How long a task may run before its class must compete again [µs]; 2000 if nothing is said.
    #[arg(long, value_name = "N", value_parser = within(choices::SLICE_US))]
    slice_us: Option<u32>,
    /// The part of every CPU that programs may use which nobody has asked a contract for, but which
    /// behave as if they needed one: they wait, work a little, and wait again [%]; 80 if nothing is
    /// said, and never more than contracts that were asked for leave them of what --leave leaves both.
    /// 0: shares alone.
    #[arg(long, value_name = "PERCENT", value_parser = within(choices::LEARN_PERCENT))]
    learn: Option<u32>,
    /// The part of memory that programs may have reserved which nobody has reserved any for, but which have a
    /// learnt contract: films, games, calls [%]; 25 if nothing is said. 0: none.
    #[arg(long, value_name = "PERCENT", value_parser = within(choices::LEARN_MEMORY_PERCENT))]
    learn_memory: Option<u32>,
    /// Charge servers for all they do. Otherwise a server that answers a client of another class (a
    /// display server, for a player) works with the share of the client, which pays for it.
    #[arg(long)]
    no_binding: bool,
    /// The part of every CPU that is left to everybody without a contract [%]; 20 if nothing is said.
    #[arg(long, value_name = "PERCENT", value_parser = within(choices::LEAVE_PERCENT))]
    leave: Option<u32>,
    /// The part of the machine that a user who is neither root nor in the group andante may reserve
    /// [%]; 10 if nothing is said.
    #[arg(long, value_name = "PERCENT", value_parser = within(choices::USER_QUOTA_PERCENT))]
    user_quota: Option<u32>,
    /// The part of the machine that all of these users may reserve together [%]; half of what --leave
    /// leaves to contracts if nothing is said. Subordinate ids (/etc/subuid) are counted with their owner.
    #[arg(long, value_name = "PERCENT", value_parser = within(choices::USER_QUOTA_PERCENT))]
    users_quota: Option<u32>,
    /// The part of the machine that the sessions (libandante) of one such user may be promised together [%]:
    /// what a game needs; as much as all these users together may reserve if nothing is said, and never more.
    #[arg(long, value_name = "PERCENT", value_parser = within(choices::USER_QUOTA_PERCENT))]
    session_quota: Option<u32>,
    /// Divide the CPUs into domains of so many, by their numbers; each has a class tree under a lock of
    /// its own, and only the first serves contracts. Up to 32 CPUs are one domain, and with more it is
    /// 16 for each, if nothing is said.
    #[arg(long, value_name = "N", value_parser = within(choices::DOMAIN_CPUS))]
    domain_cpus: Option<u32>,
    /// Coordinate events with contracts that have windows (`--tolerate`; with --policy dwcs all have one):
    /// who waits for an event that was raised for it may run in the place of others, where that hurts no
    /// contract, and pays for it with its next budget. RULES are those of ECalls by which that may be,
    /// each by its number, and `server` for a task server on every CPU: 2,3,4,5,server if nothing is said.
    #[arg(
        long,
        value_name = "RULES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2,3,4,5,server"
    )]
    events: Option<EventRules>,
    /// Read this file for what no option says, and not /etc/andante.toml and /etc/andante.d.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print nothing unless something goes wrong.
    #[arg(long, short)]
    quiet: bool,
    /// Say more: with what priority the scheduler was loaded, and how long that took.
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
}

fn within(range: std::ops::RangeInclusive<u32>) -> impl TypedValueParser<Value = u32> {
    let (least, most) = range.into_inner();
    clap::value_parser!(u32).range(i64::from(least)..=i64::from(most))
}

/// The nice value with the most weight.
const LEAST_NICE: i32 = -20;

/// What `--policy` calls the scheduler of this project.
const H_SFQ: &str = "h-sfq";

/// The same without admission and learning, and with loss windows for all contracts.
const DWCS: &str = "dwcs";

/// What `--policy` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Ours,
    Dwcs,
    Historical(Policy),
}

fn policy() -> impl TypedValueParser<Value = Named> {
    let ours = [
        (H_SFQ, "classes with weights, contracts: Andante itself"),
        (
            DWCS,
            "plain DWCS: every contract is had, promised or not, and has a window of losses",
        ),
    ];
    let ours = ours.map(|(name, help)| PossibleValue::new(name).help(help));
    let known = Policy::ALL.map(|policy| PossibleValue::new(policy.name()).help(policy.summary()));
    PossibleValuesParser::new(ours.into_iter().chain(known)).map(|name| {
        match Policy::named(&name) {
            Some(policy) => Named::Historical(policy),
            None if name == DWCS => Named::Dwcs,
            None => Named::Ours,
        }
    })
}

impl Run {
    /// Loads, waits, and unloads.
    pub fn run(self) -> Result<Status> {
        let loading = Loading::begin(!self.quiet);
        if let Some(check) = doctor::obstacle() {
            let status = check.obstacle.map_or(Status::Failure, Status::from);
            let mend = check.mend.unwrap_or_default();
            return Err(Refusal::new(status, format!("{}: {mend}", check.detail)).into());
        }
        // Before loading, so that no signal can end us half-way.
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
        match self.policy {
            Named::Ours | Named::Dwcs => self.serve_classes(loading, &mut signals)?,
            Named::Historical(policy) => self.serve_historical(policy, loading, &mut signals)?,
        }
        match Loaded::find() {
            None => self.say(&paint(GOOD, "Stopped: the stock scheduler is back."))?,
            Some(other) => {
                self.say(&format!(
                    "Stopped: the sched_ext scheduler {} is in charge.",
                    other.name
                ))?;
            }
        }
        Ok(Status::Ok)
    }

    /// The classes are served until a signal comes.
    fn serve_classes(&self, loading: Loading, signals: &mut Signals) -> Result<()> {
        let (said, files) = config::from_files(self.config.as_deref())?;
        let choices = self.choices().or(said);
        let mut options = choices.options();
        if self.policy == Named::Dwcs {
            options.learn_percent = 0;
        }
        options.events = self.events;
        let mut daemon = self.daemon(&choices)?;
        let mut scheduler = Scheduler::load(&options)?;
        self.loaded(loading)?;
        // Without systemd there is nobody to notify, and that is fine.
        let _ = sd_notify::notify(&[
            NotifyState::Ready,
            NotifyState::Status("in charge of the CPUs"),
        ]);
        let plain = match self.policy {
            Named::Dwcs => " with plain DWCS: contracts without admission, for experiments",
            _ => "",
        };
        self.say(&format!(
            "{} is in charge of the CPUs{plain}, {} µs at a time; ^C gives them back.",
            paint(BOLD, "Andante"),
            options.slice_us
        ))?;
        for warning in told::warnings(&told::untold()) {
            output::warn(&warning);
        }
        for file in files {
            self.say(&format!("It goes by {}.", file.display()))?;
        }
        while signals.pending().next().is_none() {
            if let Some(exit) = scheduler.exited() {
                return Err(ejection(&exit).into());
            }
            for event in daemon.turn(&mut scheduler, LOOK) {
                self.tell(event.is_bad(), &event)?;
            }
            for event in daemon.take_memory_events() {
                self.tell(event.is_bad(), &event)?;
            }
        }
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
        Ok(scheduler.detach()?)
    }

    /// A historical policy is in charge until a signal comes.
    fn serve_historical(
        &self,
        policy: Policy,
        loading: Loading,
        signals: &mut Signals,
    ) -> Result<()> {
        self.check_options(policy)?;
        // Such a policy is loaded in no time, by a thread that makes itself real-time for as long as it lasts.
        drop(loading);
        let scheduler = Historical::load(policy)?;
        let _ = sd_notify::notify(&[
            NotifyState::Ready,
            NotifyState::Status("in charge of the CPUs"),
        ]);
        self.say(&format!(
            "{} is in charge of the CPUs with the historical policy {} ({}): one queue, no classes, no \
             contracts, for experiments; ^C gives the CPUs back.",
            paint(BOLD, "Andante"),
            policy.name(),
            policy.summary(),
        ))?;
        while signals.pending().next().is_none() {
            if let Some(exit) = scheduler.exited() {
                return Err(ejection(&exit).into());
            }
            std::thread::sleep(LOOK);
        }
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
        Ok(scheduler.detach()?)
    }

    /// The scheduler is in charge: from now on its own thread is one of its class, and there the first in
    /// weight. A program that asks for a promise is to get an answer, however many others want what contracts leave.
    fn loaded(&self, loading: Loading) -> Result<()> {
        let how = loading.end();
        // SAFETY: it takes no memory. Where it is not permitted, answers may come late, and that is all.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LEAST_NICE) };
        match self.verbose {
            true => self.say(&how),
            false => Ok(()),
        }
    }

    /// What the options say.
    fn choices(&self) -> Choices {
        Choices {
            slice_us: self.slice_us,
            learn_percent: self.learn,
            binding: self.no_binding.then_some(false),
            leave_percent: self.leave,
            user_quota_percent: self.user_quota,
            users_quota_percent: self.users_quota,
            session_quota_percent: self.session_quota,
            domain_cpus: self.domain_cpus,
            learn_memory_percent: self.learn_memory,
            net: Default::default(),
        }
    }

    /// Refuses what only h-sfq knows.
    fn check_options(&self, policy: Policy) -> Result<()> {
        let other = [
            (self.slice_us.is_some(), "--slice-us"),
            (self.learn.is_some(), "--learn"),
            (self.learn_memory.is_some(), "--learn-memory"),
            (self.no_binding, "--no-binding"),
            (self.leave.is_some(), "--leave"),
            (self.user_quota.is_some(), "--user-quota"),
            (self.users_quota.is_some(), "--users-quota"),
            (self.session_quota.is_some(), "--session-quota"),
            (self.domain_cpus.is_some(), "--domain-cpus"),
            (self.events.is_some(), "--events"),
            (self.config.is_some(), "--config"),
        ];
        match other.into_iter().find(|(given, _)| *given) {
            None => Ok(()),
            Some((_, option)) => {
                let message = format!(
                    "the policy {} knows no {option}: leave it out",
                    policy.name()
                );
                Err(Refusal::new(Status::Usage, message).into())
            }
        }
    }

    /// Who answers those that ask for contracts. They may connect from now on, so that none who sees
    /// the scheduler in charge finds nobody to ask.
    fn daemon(&self, choices: &Choices) -> Result<Daemon<LinuxHost>> {
        let path = socket_path();
        let socket = Socket::bind(&path).map_err(|error| {
            let message = format!(
                "cannot listen for contracts at {}: {error}; set ANDANTE_SOCKET to another path",
                path.display()
            );
            Refusal::new(Status::Failure, message)
        })?;
        let contract_cpus = Domains::here(choices.domain_cpus).cpus;
        let settings = Settings {
            left_for_others_per_mille: choices.options().leave_percent * 10,
            user_quota_per_mille: choices.user_quota_percent() * 10,
            users_quota_per_mille: choices.users_quota_percent.map(|percent| percent * 10),
            session_quota_per_mille: choices.session_quota_percent.map(|percent| percent * 10),
            plain_dwcs: self.policy == Named::Dwcs,
        };
        // The program that runs now, even if another version has been installed since.
        let keeper = ["/proc/self/exe", "keep-memory"].map(Into::into);
        let memory = Reservations::new(choices.memory(), Place::here(keeper.to_vec())?);
        let daemon = Daemon::new(socket, settings, LinuxHost::open(contract_cpus)?)?;
        Ok(daemon.with_memory(memory))
    }

    /// Says what has happened; if it is bad, to those as well who asked to be left alone.
    fn tell(&self, is_bad: bool, event: &dyn std::fmt::Display) -> Result<()> {
        match is_bad {
            true => output::warn(&event.to_string()),
            false => self.say(&event.to_string())?,
        }
        Ok(())
    }

    fn say(&self, text: &str) -> Result<()> {
        if self.quiet {
            Ok(())
        } else {
            output::print(&format!("{text}\n"))
        }
    }
}

fn ejection(exit: &andante_sched::Exit) -> Refusal {
    let mut message = format!("the kernel ejected the scheduler: {}", exit.reason);
    if !exit.message.is_empty() {
        message += &format!(" ({})", exit.message);
    }
    if exit.code != 0 {
        message += &format!(", code {}", exit.code);
    }
    message += "; the stock scheduler is back, see `journalctl -k` for the kernel's account";
    Refusal::new(Status::Ejected, message)
}
