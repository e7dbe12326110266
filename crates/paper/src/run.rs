//! Carries papers out: every distinct run once, all of all papers side by side.

use std::collections::BTreeMap;

use andante_job::pool::{self, Watched};
use andante_job::progress::Count;
use andante_job::{Job, LabError};
use andante_result::SchedulerResult;
use andante_scenario::choice::Choice;
use andante_simulated as simulator;

use super::document::{ContentSpec, ExhibitSpec, FigureSpec, Paper};
use super::result::{Content, Exhibit, PaperResult};
use super::runs::Runs;
use super::source::RunKey;
use super::{computed, figure, table};

/// Something to be done for a paper.
enum Task<'a> {
    Simulate(&'a Paper, RunKey, Box<Job>),
    Compute(&'a Paper, String),
}

impl Task<'_> {
    fn name(&self) -> String {
        match self {
            Self::Simulate(paper, run, _) => format!("{} {run}", paper.key),
            Self::Compute(paper, function) => format!("{} {function}", paper.key),
        }
    }

    /// Virtual CPU seconds: what it probably takes.
    fn weight(&self) -> f64 {
        match self {
            Self::Simulate(_, _, job) => {
                job.case.workload.duration_s * f64::from(job.case.workload.cpus)
            }
            Self::Compute(..) => f64::INFINITY,
        }
    }
}

enum Done {
    Simulated(Result<Box<SchedulerResult>, LabError>),
    Computed(Result<computed::Output, String>),
}

/// Runs the papers and fills their exhibits.
///
/// # Errors
/// If a scenario cannot be simulated, or a computation fails.
pub(super) fn run(papers: &[Paper], count: &mut Count) -> Result<Vec<PaperResult>, LabError> {
    let mut tasks = Vec::new();
    for paper in papers {
        add_tasks(paper, &mut tasks)?;
    }
    // The longest first, so that none is left to run alone at the end.
    tasks.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    count.begins(tasks.len());
    let work = |task: &Task<'_>| match task {
        Task::Simulate(_, _, job) => {
            Done::Simulated(simulator::simulate(&job.case.workload, &job.choice).map(Box::new))
        }
        Task::Compute(_, function) => {
            let function = computed::find(function).expect("checked when it was read");
            Done::Computed(function())
        }
    };
    let results = pool::map(&tasks, work, &mut |at| match at {
        Watched::Begins(index) => count.at(&tasks[index].name()),
        Watched::Ended(_) => count.done(),
        Watched::Tick => count.tick(),
    });
    count.ends();
    let mut runs: BTreeMap<&str, Runs> = BTreeMap::new();
    let mut computed = BTreeMap::new();
    for (task, done) in tasks.iter().zip(results) {
        match (task, done) {
            (Task::Simulate(paper, run, _), Done::Simulated(result)) => {
                runs.entry(&paper.key)
                    .or_default()
                    .add(paper, run, *result?);
            }
            (Task::Compute(paper, function), Done::Computed(output)) => {
                let output = output.map_err(|reason| LabError::NotComputed {
                    function: function.clone(),
                    reason,
                })?;
                computed.insert((paper.key.as_str(), function.as_str()), output);
            }
            _ => unreachable!("a task brings its own kind of result"),
        }
    }
    let none = Runs::default();
    let fill = |paper: &Paper| {
        let runs = runs.get(paper.key.as_str()).unwrap_or(&none);
        let output = |function: &str| computed[&(paper.key.as_str(), function)].clone();
        fill(paper, runs, &output)
    };
    Ok(papers.iter().map(fill).collect())
}

fn add_tasks<'a>(paper: &'a Paper, tasks: &mut Vec<Task<'a>>) -> Result<(), LabError> {
    let mut wanted: Vec<RunKey> = Vec::new();
    for exhibit in &paper.exhibits {
        match &exhibit.content {
            ContentSpec::Table(table) => {
                let cells = table.rows.iter().flat_map(|row| &row.cells);
                let sources = cells.filter_map(|cell| cell.source.as_ref());
                wanted.extend(sources.flat_map(|source| source.runs().cloned()));
            }
            ContentSpec::Figure(FigureSpec::Timeline(timeline)) => {
                wanted.extend(timeline.lanes.iter().map(|lane| lane.run.clone()));
            }
            ContentSpec::Figure(FigureSpec::Samples(samples)) => {
                wanted.extend(samples.series.iter().map(|series| series.run.clone()));
            }
            ContentSpec::Figure(_) => {}
            ContentSpec::Computed(function) => {
                tasks.push(Task::Compute(paper, function.clone()));
            }
        }
    }
    wanted.sort();
    wanted.dedup();
    for run in wanted {
        let cases = &paper.scenarios[&run.scenario].cases;
        let case = cases.iter().find(|case| case.name == run.case);
        let job = Job {
            case: case.expect("checked when it was read").clone(),
            choice: Choice::parse(&run.scheduler)?,
            perturbation: None,
        };
        simulator::check(&job)?;
        tasks.push(Task::Simulate(paper, run, Box::new(job)));
    }
    Ok(())
}

/// Makes the exhibits of a paper from its runs.
fn fill(paper: &Paper, runs: &Runs, computed: &dyn Fn(&str) -> computed::Output) -> PaperResult {
    let mut exhibits: Vec<Exhibit> = Vec::new();
    let mut all_stale = Vec::new();
    for spec in &paper.exhibits {
        let (content, checks) = match &spec.content {
            ContentSpec::Table(table) => {
                let (table, checks, stale) = table::fill(table, runs);
                let named = stale.into_iter().map(|cell| format!("{}: {cell}", spec.id));
                all_stale.extend(named);
                (Content::Table(table), checks)
            }
            ContentSpec::Figure(figure) => figure::draw(figure, runs, &exhibits),
            ContentSpec::Computed(function) => computed(function),
        };
        exhibits.push(exhibit(spec, content, checks));
    }
    PaperResult {
        key: paper.key.clone(),
        title: paper.title.clone(),
        authors: paper.authors.clone(),
        venue: paper.venue.clone(),
        year: paper.year,
        claim: paper.claim.clone(),
        departures: paper.departures.clone(),
        exhibits,
        stale: all_stale,
    }
}

fn exhibit(spec: &ExhibitSpec, content: Content, checks: Vec<super::result::Check>) -> Exhibit {
    Exhibit {
        id: spec.id.clone(),
        title: spec.title.clone(),
        caption: spec.caption.clone(),
        says: spec.says.clone(),
        content,
        checks,
    }
}
