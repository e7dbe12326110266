//! What the simulator made of the runs that a paper's exhibits read.

use std::collections::BTreeMap;

use andante_result::{RunResult, SchedulerResult};
use andante_simulated as simulator;

use super::document::Paper;
use super::source::RunKey;

/// The runs of one paper.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// By scenario and case.
    cases: BTreeMap<(String, Option<String>), RunResult>,
}

impl Runs {
    /// The case that the run belongs to, with its scheduler among others.
    pub fn get(&self, run: &RunKey) -> &RunResult {
        let case = self.cases.get(&(run.scenario.clone(), run.case.clone()));
        case.expect("every run that an exhibit names was made")
    }

    /// What the run's scheduler did.
    pub fn scheduler(&self, run: &RunKey) -> &SchedulerResult {
        let schedulers = &self.get(run).schedulers;
        let scheduler = schedulers.iter().find(|s| s.name == run.scheduler);
        scheduler.expect("every run that an exhibit names was made")
    }

    /// One more run of this paper, and what its scheduler did.
    pub fn add(&mut self, paper: &Paper, run: &RunKey, result: SchedulerResult) {
        let scenario = &paper.scenarios[&run.scenario];
        let case = scenario.cases.iter().find(|case| case.name == run.case);
        let workload = &case.expect("checked when it was read").workload;
        let new = || RunResult {
            scenario: run.scenario.clone(),
            case: run.case.clone(),
            title: scenario.title.clone(),
            on: "sim".to_owned(),
            kernel: simulator::version(),
            cpus: workload.cpus,
            memory_mib: workload.memory_mib,
            duration_s: workload.duration_s,
            ..RunResult::default()
        };
        let key = (run.scenario.clone(), run.case.clone());
        let case = self.cases.entry(key).or_insert_with(new);
        case.schedulers.push(result);
    }
}
