//! The scenario files of a paper, read when they are first named.

use std::cell::RefCell;
use std::collections::BTreeMap;

use andante_document::{DocumentError, suggest};
use andante_scenario::{Case, Scenario, Subject};
use andante_sim::PolicyKind;

use crate::source::{At, RunKey};

/// Reads the scenario of this name; the string says why there is none.
pub(crate) type Reader<'a> = &'a dyn Fn(&str) -> Result<Scenario, NoScenario>;

/// Why a scenario that a paper names cannot be had.
pub(crate) enum NoScenario {
    /// There is none of this name; these there are.
    Unknown(Vec<String>),
    /// It is not well formed.
    Wrong(DocumentError),
}

/// The scenarios that a paper has named so far.
pub(crate) struct Scenarios<'a> {
    read: Reader<'a>,
    known: RefCell<BTreeMap<String, Scenario>>,
}

impl<'a> Scenarios<'a> {
    /// Scenarios that `read` reads.
    pub fn new(read: Reader<'a>) -> Self {
        Self {
            read,
            known: RefCell::default(),
        }
    }

    /// All that were named.
    pub fn into_known(self) -> BTreeMap<String, Scenario> {
        self.known.into_inner()
    }

    /// Names of the schedulers that can be simulated.
    pub fn schedulers(&self) -> Vec<&'static str> {
        let policies = PolicyKind::ALL.into_iter().map(PolicyKind::name);
        let others = ["andante", "containers", "containers-ticked", "servers"];
        others.into_iter().chain(policies).collect()
    }

    /// Refuses a case that the scenario does not have, and no case where it has some.
    pub fn check_case(
        &self,
        scenario: &str,
        case: Option<&str>,
        at: At<'_>,
    ) -> Result<(), DocumentError> {
        self.with_case(scenario, case, at, |_| ())
    }

    /// What `look` sees in a case.
    pub fn with_case<T>(
        &self,
        scenario: &str,
        case: Option<&str>,
        at: At<'_>,
        look: impl FnOnce(&Case) -> T,
    ) -> Result<T, DocumentError> {
        self.read_once(scenario, at)?;
        let known = self.known.borrow();
        let cases = &known[scenario].cases;
        let names = || cases.iter().filter_map(|case| case.name.as_deref());
        match cases.iter().find(|known| known.name.as_deref() == case) {
            Some(case) => Ok(look(case)),
            None => {
                let message = match case {
                    None => format!(
                        "names no `case` of `{scenario}`; known there: {}",
                        names().collect::<Vec<_>>().join(", ")
                    ),
                    Some(wrong) => {
                        format!(
                            "`{scenario}` has no case `{wrong}`{}",
                            suggest(wrong, names())
                        )
                    }
                };
                Err(at.error(message))
            }
        }
    }

    /// Instances that a subject has in a run that is known to exist; 1 for all but programs.
    pub fn instances(&self, run: &RunKey, subject: &Subject) -> u32 {
        let Subject::Program(name) = subject else {
            return 1;
        };
        let known = self.known.borrow();
        let case = known[&run.scenario]
            .cases
            .iter()
            .find(|case| case.name == run.case);
        let programs = case.map_or(&[][..], |case| &case.workload.programs);
        let program = programs.iter().find(|program| program.name == *name);
        program.map_or(1, |program| program.count)
    }

    fn read_once(&self, name: &str, at: At<'_>) -> Result<(), DocumentError> {
        if self.known.borrow().contains_key(name) {
            return Ok(());
        }
        let scenario = (self.read)(name).map_err(|error| match error {
            NoScenario::Wrong(error) => error,
            NoScenario::Unknown(names) => at.error(format!(
                "there is no scenario `{name}` beside this file{}",
                suggest(name, names.iter().map(String::as_str))
            )),
        })?;
        self.known.borrow_mut().insert(name.to_owned(), scenario);
        Ok(())
    }
}
