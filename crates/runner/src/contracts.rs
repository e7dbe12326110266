//! Contracts on a kernel: each instance of a program that is promised something has it reserved before
//! it starts, and what became of it is asked for when the measurement begins and when it ends.
//!
//! Andante is asked as anybody would ask it, through its socket; a refusal ends the run. Under other
//! schedulers nothing is reserved.

use std::collections::HashMap;
use std::thread::{self, JoinHandle};

use andante_admission::{Duration, Refusal, Tolerance};
use andante_daemon::{
    Ask, Client, ClientError, Holder, Kept, Refused, Reply, Request, Terms, socket_path,
};
use andante_job::LabError;
use andante_programs::clock;
use andante_result::ProgramResult;
use andante_scenario::choice::Choice;
use andante_scenario::{Contract, Program, Workload};
use andante_sim::Promise;
use nix::sys::signal::Signal;

use super::classes::Classes;
use super::instance::Instance;

/// What contracts have come to, by their names.
type Account = HashMap<String, Kept>;

/// The contracts of one run.
#[derive(Default)]
pub(super) struct Contracts {
    /// Asks when the measurement begins.
    asking: Option<JoinHandle<Result<Account, ClientError>>>,
    /// None: nobody is promised anything.
    measured: Option<[Account; 2]>,
}

impl Contracts {
    /// Sees to it that the accounts are read at `begin_ns`, if `choice` keeps any contracts.
    pub fn new(choice: &Choice, workload: &Workload, begin_ns: u64) -> Self {
        let promised = |program: &Program| program.count > 0 && program.contract.is_some();
        if !choice.keeps_contracts() || !workload.programs.iter().any(promised) {
            return Self::default();
        }
        // By a thread of its own: the answer may take a while on a busy machine, and what else
        // happens at that instant must not wait for it.
        let ask = move || {
            while clock::now_ns() < begin_ns {
                clock::sleep_until(begin_ns);
            }
            account()
        };
        Self {
            asking: Some(thread::spawn(ask)),
            measured: None,
        }
    }

    /// Reserves for an instance that has been loaded. A real program, which starts with that, goes on
    /// when it has its contract: by then it has run for no longer than this thread, which is above it,
    /// took to get here.
    ///
    /// # Errors
    /// The contract is refused, or nobody can be asked.
    pub fn reserve(&self, instance: &Instance<'_>, classes: &Classes) -> Result<(), LabError> {
        let (Some(_), Some(contract), Some(process)) =
            (&self.asking, &instance.program.contract, &instance.process)
        else {
            return Ok(());
        };
        if contract.in_session {
            return Ok(());
        }
        let holder = match contract.held_by_class {
            true => Holder::Class(classes.path_of(&instance.program.class)),
            false => Holder::Process(process.pid().as_raw()),
        };
        let terms = asked_for(contract);
        let ask = Ask {
            holder,
            terms,
            name: Some(instance.name.clone()),
        };
        let fail = |reason: String| {
            let name = instance.name.clone();
            let reason = format!("has got no contract: {reason}");
            Err(LabError::ProgramFailed { name, reason })
        };
        process.signal(Signal::SIGSTOP);
        let reply = request(&Request::Reserve(ask));
        process.signal(Signal::SIGCONT);
        match reply {
            Ok(Reply::Refused(refused)) => fail(why_not(&terms, &refused)),
            Ok(_) => Ok(()),
            Err(error) => fail(error.to_string()),
        }
    }

    /// Reads the accounts when the measurement ends, before any program is told to.
    ///
    /// # Errors
    /// Nobody can be asked, unless the scheduler was ejected, which is told anyway.
    pub fn end(&mut self, ejected: bool) -> Result<(), LabError> {
        let Some(asking) = self.asking.take() else {
            return Ok(());
        };
        let at_begin = asking.join().expect("asking does not panic");
        let both = at_begin.and_then(|begin| Ok([begin, account()?]));
        match both {
            Ok(both) => self.measured = Some(both),
            Err(_) if ejected => {}
            Err(error) => return Err(LabError::io("read the contracts", broken(error))),
        }
        Ok(())
    }

    /// Adds what became of its contract in the measurement to the figures of a program.
    pub fn add_to(&self, result: &mut ProgramResult) {
        let Some([begin, end]) = &self.measured else {
            return;
        };
        let Some(end) = end.get(&result.name) else {
            return;
        };
        let begin = begin.get(&result.name).copied().unwrap_or_default();
        // A contract that has been given its place anew begins its account anew.
        let begin = match begin.service_ns <= end.service_ns {
            true => begin,
            false => Kept::default(),
        };
        let passed = |of: fn(&Kept) -> u64| Some(of(end).saturating_sub(of(&begin)));
        // One that never sleeps has no jobs, and so has missed none.
        result.deadlines = passed(|kept| kept.deadlines).filter(|count| *count > 0);
        result.missed = passed(|kept| kept.misses).filter(|_| result.deadlines.is_some());
        result.violations = passed(|kept| kept.violations);
        result.exhaustions = passed(|kept| kept.exhaustions);
    }
}

/// Why a kernel cannot keep this contract, if it cannot.
pub fn obstacle(program: &Program) -> Option<String> {
    let contract = program.contract.as_ref()?;
    let name = &program.name;
    let promise = &contract.promise;
    if promise.flags & Promise::EXHAUSTIVE != 0 {
        return Some(format!(
            "program `{name}` asks for a contract of kind `edf`, which only the simulator gives so far"
        ));
    }
    let says = matches!(program.kind, andante_scenario::Kind::Sink { .. });
    if contract.events && !says || !contract.event_ns.is_empty() {
        return Some(format!(
            "the contract of program `{name}` coordinates events, which only the simulated scheduler `servers` does so far"
        ));
    }
    if contract.held_by_class && program.count > 1 {
        return Some(format!(
            "the class of program `{name}` can hold one contract, and `count` is {}",
            program.count
        ));
    }
    let told = asked_for(contract).check().err()?;
    Some(format!("the contract of program `{name}`: {told}"))
}

/// What Andante is asked for: a hard server, if the contract does not say `soft`; flexible, if it has
/// any of that one's rules. Which CPU is for admission to say.
pub fn asked_for(contract: &Contract) -> Terms {
    const FLEXIBLE: u32 = Promise::RECLAIM | Promise::BORROW | Promise::CATCH_UP;
    let promise = &contract.promise;
    let deadline_ns = promise.deadline_rel_ns;
    Terms {
        deadline_ns: (deadline_ns < promise.period_ns).then_some(deadline_ns),
        tolerance: Tolerance {
            losses: promise.x,
            window: promise.y,
        },
        flexible: promise.flags & FLEXIBLE != 0,
        soft: contract.soft || promise.flags & Promise::WORK_CONSERVING != 0,
        spills: contract.in_session,
        ..Terms::new(promise.budget_ns, promise.period_ns)
    }
}

fn request(request: &Request) -> Result<Reply, ClientError> {
    Client::connect(&socket_path())?.request(request)
}

fn account() -> Result<Account, ClientError> {
    match request(&Request::List {})? {
        Reply::Contracts(list) => {
            let listed = list.contracts.into_iter();
            Ok(listed
                .filter_map(|one| Some((one.name, one.kept?)))
                .collect())
        }
        _ => Err(ClientError::Broken(std::io::ErrorKind::InvalidData.into())),
    }
}

fn broken(error: ClientError) -> std::io::Error {
    std::io::Error::other(error)
}

/// A refusal in one clause.
fn why_not(terms: &Terms, refused: &Refused) -> String {
    match refused.limits.is_empty() {
        true => no_room(terms, &refused.refusal),
        false => format!(
            "{} is more than the one who asks, or its class, may hold",
            in_words(terms)
        ),
    }
}

/// Why there is no room, and what there would be room for.
pub fn no_room(terms: &Terms, refusal: &Refusal) -> String {
    let asked = in_words(terms);
    match &refusal.nearest.largest_budget {
        Some(offer) => format!(
            "no CPU has room for {asked}; the most in this period is {}",
            Duration(offer.contract.budget_ns)
        ),
        None => format!("no CPU has room for {asked}, nor for any less in this period"),
    }
}

fn in_words(terms: &Terms) -> String {
    format!(
        "{} of every {}",
        Duration(terms.budget_ns),
        Duration(terms.period_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use andante_scenario::Scenario;

    fn program(contract: &str, more: &str) -> Program {
        let text = format!(
            "title = 'x'\nduration_s = 1\n[programs.film]\nclass = '/'\nkind = 'loop'\n{more}\n\
             [programs.film.contract]\n{contract}"
        );
        let mut scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
        scenario.cases.remove(0).workload.programs.remove(0)
    }

    fn asked(contract: &str) -> Terms {
        let program = program(contract, "");
        assert_eq!(obstacle(&program), None);
        asked_for(program.contract.as_ref().unwrap())
    }

    #[test]
    fn a_promise_becomes_what_andante_is_asked_for() {
        let plain = Terms::new(9_000_000, 33_000_000);
        let rate = "budget_ms = 9\nperiod_ms = 33\n";
        assert_eq!(asked(rate), plain);
        assert_eq!(asked(&format!("{rate}kind = 'hard-cbs'")), plain);
        let early = asked(&format!("{rate}deadline_ms = 20"));
        assert_eq!(early.deadline_ns, Some(20_000_000));
        let lossy = asked(&format!("{rate}kind = 'dwcs'\ntolerate = '1/5'"));
        assert_eq!((lossy.tolerance.losses, lossy.tolerance.window), (1, 5));
        assert!(asked(&format!("{rate}reclaim = true")).flexible);
        assert!(asked(&format!("{rate}soft = true")).soft);
    }

    #[test]
    fn what_only_the_simulator_keeps_is_told() {
        let rate = "budget_ms = 9\nperiod_ms = 33\n";
        let refused = |contract: &str, more| {
            let program = program(&format!("{rate}{contract}"), more);
            obstacle(&program).expect("it cannot be kept")
        };
        assert!(refused("kind = 'edf'", "").contains("`edf`"));
        assert!(refused("events = true", "").contains("events"));
        assert!(refused("holder = 'class'", "count = 2").contains("`count` is 2"));
        let short = program("budget_ms = 0.01\nperiod_ms = 33", "");
        assert!(obstacle(&short).unwrap().contains("too small"));
    }

    #[test]
    fn only_what_happened_in_the_measurement_counts() {
        let kept = |service_ns, misses| Kept {
            service_ns,
            misses,
            deadlines: 2 * misses,
            ..Kept::default()
        };
        let account = |film| HashMap::from([("film".to_owned(), film)]);
        let missed = |begin, end| {
            let contracts = Contracts {
                asking: None,
                measured: Some([account(begin), account(end)]),
            };
            let mut result = ProgramResult {
                name: "film".to_owned(),
                ..ProgramResult::default()
            };
            contracts.add_to(&mut result);
            result.missed
        };
        assert_eq!(missed(kept(5, 2), kept(9, 3)), Some(1));
        assert_eq!(missed(kept(5, 2), kept(3, 1)), Some(1), "it was moved");
        // A loop ends no job: it has kept no deadline, and missed none.
        assert_eq!(missed(kept(5, 0), kept(9, 0)), None);
        let mut other = ProgramResult::default();
        Contracts::default().add_to(&mut other);
        assert_eq!(other.missed, None);
    }
}
