//! Expectations: what must come out of a scenario.
//!
//! ```toml
//! [[expect]]
//! measure = "latency_us.mean"       # a measure of a program, a class or the machine
//! program = "pingpong"              # or class = "/film"
//! scheduler = "andante"             # whose figure; andante if left out
//! case = "depth-3"                  # or "depth-*"; every case in which the program runs if left out
//! instances = "sum"                 # of a repeated program: the figures as one; if left out, each
//! over = { scheduler = "eevdf" }    # divide by another figure; keys left out stay the same
//! max = 1.08                        # or min, or of = 1 with within = 0.01 (relative)
//! ```
//!
//! A bound that cannot be held on every machine says what is known of it: `perturbed = { share = 0.98,
//! worst = 20 }`. Of many perturbations that part holds it, and none is beyond `worst`, which is what a
//! single run is judged by.
//!
//! `over` may name `left_by`: a class whose received share s makes the divisor smaller by the
//! factor 1 - s: what this class leaves of the machine.

use std::fmt;

use andante_document::{DocumentError, Node, Origin, Section, Value, suggest};
use andante_result::figures::bound_of_measure;
use andante_result::measures::{self, MeasureKind};
use andante_result::units::NO_BREAK;

use super::{Case, Instances, Scenario};
use crate::choice::Choice;

/// One expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// What is measured.
    pub figure: Figure,
    /// How the figures of a repeated program become one; none: each must hold.
    pub instances: Option<Instances>,
    /// The case it holds for, or how the names of several begin, with a `*`; none: each of them in
    /// which its program runs.
    pub case: Option<String>,
    /// What the figure is divided by.
    pub over: Option<Over>,
    /// What it must be.
    pub bound: Bound,
    /// How often, if not always.
    pub perturbed: Option<Perturbed>,
    pub(super) origin: Origin,
}

/// How often a bound is held over many perturbations of a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Perturbed {
    /// Under so many of them at least [ratio].
    pub share: f64,
    /// What it must be under each.
    pub worst: Bound,
}

/// Which figure of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name of the measure, one of [`measures::names`].
    pub measure: String,
    /// Whose measure it is.
    pub subject: Subject,
    /// One of [`Choice::OF_KERNEL`].
    pub scheduler: String,
    /// For a class's `cpu_s`: until this instant of the measurement [s].
    pub at_s: Option<f64>,
}

/// Whose measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The whole machine.
    Machine,
    /// A class, by path.
    Class(String),
    /// A program, by name: each of its instances.
    Program(String),
}

/// A divisor.
#[derive(Debug, Clone, PartialEq)]
pub struct Over {
    /// The figure to divide by.
    pub figure: Figure,
    /// Its case; none: the same.
    pub case: Option<String>,
    /// The class that leaves only a part of the machine.
    pub left_by: Option<String>,
}

impl Over {
    /// The divisor in words; what it has in common with `figure` is not said again.
    fn described_beside(&self, figure: &Figure) -> String {
        let over = &self.figure;
        let same = Figure {
            scheduler: figure.scheduler.clone(),
            ..over.clone()
        } == *figure;
        let mut words = if same {
            "that".to_owned()
        } else {
            over.to_string()
        };
        if over.scheduler != figure.scheduler {
            words += &format!(" under {}", over.scheduler);
        }
        if let Some(case) = &self.case {
            words += &format!(" in {case}");
        }
        if let Some(class) = &self.left_by {
            words += &format!(" times what {class} leaves");
        }
        words
    }
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// At least.
    Min(f64),
    /// At most.
    Max(f64),
    /// Not further from `of` than `within` × `of`.
    Near {
        /// The value aimed at.
        of: f64,
        /// Relative tolerance.
        within: f64,
    },
}

impl Bound {
    /// Whether `figure` satisfies the bound.
    pub fn holds(&self, figure: f64) -> bool {
        match *self {
            Self::Min(min) => figure >= min,
            Self::Max(max) => figure <= max,
            Self::Near { of, within } => (figure - of).abs() <= within * of.abs(),
        }
    }
}

impl Bound {
    /// In words, of a figure of this measure: times have their unit.
    fn of_measure(self, measure: &str) -> String {
        let of = |value| bound_of_measure(measure, value).replace(NO_BREAK, " ");
        match self {
            Self::Min(min) => format!("at least {}", of(min)),
            Self::Max(max) => format!("at most {}", of(max)),
            Self::Near { of: aim, within } => format!("within {} % of {}", within * 100.0, of(aim)),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.measure)?;
        match &self.subject {
            Subject::Machine => {}
            Subject::Class(name) | Subject::Program(name) => write!(f, " of {name}")?,
        }
        match self.at_s {
            Some(at_s) => write!(f, " at {at_s} s"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.figure.scheduler)?;
        if let Some(instances) = self.instances {
            write!(f, "{instances} of ")?;
        }
        write!(f, "{}", self.figure)?;
        if let Some(over) = &self.over {
            write!(
                f,
                " over {over}",
                over = over.described_beside(&self.figure)
            )?;
        }
        // A quotient of two times is none.
        let measure = match self.over {
            Some(_) => "",
            None => &self.figure.measure,
        };
        write!(f, " {}", self.bound.of_measure(measure))
    }
}

/// Reads all `[[expect]]` tables.
pub(super) fn read_all(node: Option<&Node>) -> Result<Vec<Expectation>, DocumentError> {
    let Some(node) = node else {
        return Ok(Vec::new());
    };
    let Value::List(items) = &node.value else {
        return Err(node
            .origin
            .error("expect", "write expectations as [[expect]] tables"));
    };
    items.iter().map(read).collect()
}

fn read(node: &Node) -> Result<Expectation, DocumentError> {
    let mut section = Section::new(node, "expect")?;
    let measure: String = section.need("measure")?;
    let scheduler = section
        .get("scheduler")?
        .unwrap_or_else(|| "andante".to_owned());
    let at_s = section.get("at_s")?;
    let subject = read_subject(&mut section)?.unwrap_or(Subject::Machine);
    let figure = Figure {
        measure,
        subject,
        scheduler,
        at_s,
    };
    check_figure(&figure, &section)?;
    let over = section
        .node("over")
        .map(|node| read_over(node, &figure, "expect.over"))
        .transpose()?;
    let bound = read_bound(&mut section)?;
    let perturbed = match section.node("perturbed") {
        None => None,
        Some(node) => Some(read_perturbed(node, bound)?),
    };
    let expectation = Expectation {
        bound,
        perturbed,
        case: section.get("case")?,
        instances: Instances::read(&mut section)?,
        figure,
        over,
        origin: node.origin.clone(),
    };
    section.finish()?;
    Ok(expectation)
}

/// Reads the figure at `path` that another one is compared with; what it leaves out is the same.
pub fn read_over(node: &Node, figure: &Figure, path: &str) -> Result<Over, DocumentError> {
    let mut section = Section::new(node, path)?;
    let over = Over {
        figure: Figure {
            measure: section
                .get("measure")?
                .unwrap_or_else(|| figure.measure.clone()),
            subject: read_subject(&mut section)?.unwrap_or_else(|| figure.subject.clone()),
            scheduler: section
                .get("scheduler")?
                .unwrap_or_else(|| figure.scheduler.clone()),
            at_s: section.get("at_s")?.or(figure.at_s),
        },
        case: section.get("case")?,
        left_by: section.get("left_by")?,
    };
    check_figure(&over.figure, &section)?;
    if over.figure == *figure && over.case.is_none() && over.left_by.is_none() {
        return Err(section.error("", "divides the figure by itself: name what differs"));
    }
    section.finish()?;
    Ok(over)
}

/// Reads `class` or `program`.
pub fn read_subject(section: &mut Section<'_>) -> Result<Option<Subject>, DocumentError> {
    let class = section.get("class")?.map(Subject::Class);
    let program = section.get("program")?.map(Subject::Program);
    match (class, program) {
        (Some(_), Some(_)) => Err(section.error("program", "give a class or a program, not both")),
        (class, program) => Ok(class.or(program)),
    }
}

fn read_bound(section: &mut Section<'_>) -> Result<Bound, DocumentError> {
    let (min, max) = (section.get("min")?, section.get("max")?);
    let (of, within) = (section.get("of")?, section.get("within")?);
    match (min, max, of, within) {
        (Some(min), None, None, None) => Ok(Bound::Min(min)),
        (None, Some(max), None, None) => Ok(Bound::Max(max)),
        (None, None, Some(of), Some(within)) => Ok(Bound::Near { of, within }),
        _ => Err(section.error(
            "",
            "give exactly one of `min`, `max`, or `of` with `within`",
        )),
    }
}

fn read_perturbed(node: &Node, bound: Bound) -> Result<Perturbed, DocumentError> {
    let mut section = Section::new(node, "expect.perturbed")?;
    section.need::<f64>("share")?;
    let share = section.number("share", 1.0, 0.0..=1.0)?;
    let worst: f64 = section.need("worst")?;
    let weaker = match bound {
        Bound::Max(max) => Some(Bound::Max(worst)).filter(|_| worst > max),
        Bound::Min(min) => Some(Bound::Min(worst)).filter(|_| worst < min),
        Bound::Near { .. } => None,
    };
    let worst = weaker.ok_or_else(|| {
        section.error(
            "worst",
            "give a weaker bound than `max` or `min`; `of` has none",
        )
    })?;
    section.finish()?;
    Ok(Perturbed { share, worst })
}

/// Refuses a measure that does not exist, or not of such a subject, and schedulers that no kernel has.
pub fn check_figure(figure: &Figure, section: &Section<'_>) -> Result<(), DocumentError> {
    check_measure(figure, section)?;
    // A peer named by its path differs from machine to machine, so no scenario can rely on it.
    const KNOWN: &[&str] = &Choice::OF_KERNEL;
    if !KNOWN.contains(&figure.scheduler.as_str()) {
        let hint = suggest(&figure.scheduler, KNOWN.iter().copied());
        let message = format!("unknown scheduler `{}`{hint}", figure.scheduler);
        return Err(section.error("scheduler", message));
    }
    Ok(())
}

/// Refuses a measure that does not exist, or not of such a subject.
pub fn check_measure(figure: &Figure, section: &Section<'_>) -> Result<(), DocumentError> {
    let Some(kind) = measures::kind(&figure.measure) else {
        let hint = suggest(&figure.measure, measures::names());
        return Err(section.error(
            "measure",
            format!("unknown measure `{}`{hint}", figure.measure),
        ));
    };
    let wanted = match (kind, &figure.subject) {
        (MeasureKind::Machine, Subject::Machine)
        | (MeasureKind::Class, Subject::Class(_))
        | (MeasureKind::Program, Subject::Program(_)) => None,
        (MeasureKind::Machine, _) => Some("is of the whole machine: leave out class and program"),
        (MeasureKind::Class, _) => Some("is a measure of a class: give `class = \"/…\"`"),
        (MeasureKind::Program, _) => Some("is a measure of a program: give `program = \"…\"`"),
    };
    if let Some(wanted) = wanted {
        return Err(section.error("measure", format!("`{}` {wanted}", figure.measure)));
    }
    if figure.at_s.is_some() && figure.measure != "class_cpu_s" {
        return Err(section.error("at_s", "only `class_cpu_s` is known at instants"));
    }
    Ok(())
}

impl Expectation {
    /// What a single run is judged by.
    pub fn worst_bound(&self) -> Bound {
        self.perturbed.map_or(self.bound, |one| one.worst)
    }

    /// Whether it holds for `case`: the one it names; if it names none, every one in which the
    /// programs that it compares run.
    pub fn concerns(&self, case: &Case) -> bool {
        if let Some(wanted) = &self.case {
            return case.name.as_ref().is_some_and(|name| matches(wanted, name));
        }
        let over = self.over.as_ref().filter(|over| over.case.is_none());
        let figures = std::iter::once(&self.figure).chain(over.map(|over| &over.figure));
        let mut programs = figures.filter_map(|figure| match &figure.subject {
            Subject::Program(name) => Some(name),
            _ => None,
        });
        // A program that no case knows is a mistake, which is told later.
        let idle = |name: &String| {
            let mut programs = case.workload.programs.iter();
            programs.any(|program| program.name == *name && program.count == 0)
        };
        !programs.any(idle)
    }
}

/// Checks that everything the expectations name exists in the cases they hold for.
pub(super) fn check_all(scenario: &Scenario) -> Result<(), DocumentError> {
    for expectation in &scenario.expectations {
        let fail = |message: String| expectation.origin.error("expect", message);
        check_one(scenario, expectation).map_err(fail)?;
    }
    Ok(())
}

fn check_one(scenario: &Scenario, expectation: &Expectation) -> Result<(), String> {
    let over = expectation.over.as_ref();
    if let Some(wanted) = &expectation.case
        && !scenario.cases.iter().any(|case| expectation.concerns(case))
    {
        return find_case(scenario, wanted).map(drop);
    }
    let concerned = || {
        scenario
            .cases
            .iter()
            .filter(|case| expectation.concerns(case))
    };
    if concerned().next().is_none() {
        return Err("what it compares runs together in no case".to_owned());
    }
    for case in concerned() {
        check_in_case(case, &expectation.figure)?;
        let Some(over) = over else { continue };
        let base_case = over.case.as_ref().map(|name| find_case(scenario, name));
        check_in_case(base_case.transpose()?.unwrap_or(case), &over.figure)?;
        if let Some(class) = &over.left_by {
            super::check_class_known(class, &case.workload.classes)?;
        }
    }
    Ok(())
}

/// Whether a case is meant: by its name, or by how it begins, with a `*` for the rest.
fn matches(wanted: &str, name: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == wanted,
    }
}

fn find_case<'a>(scenario: &'a Scenario, wanted: &str) -> Result<&'a Case, String> {
    let mut cases = scenario.cases.iter();
    let found = cases.find(|case| case.name.as_deref() == Some(wanted));
    found.ok_or_else(|| {
        let names = scenario.cases.iter().filter_map(|c| c.name.as_deref());
        format!("unknown case `{wanted}`{}", suggest(wanted, names))
    })
}

/// Refuses a subject or an instant that the case does not have.
pub fn check_in_case(case: &Case, figure: &Figure) -> Result<(), String> {
    let workload = &case.workload;
    let place = case
        .name
        .as_ref()
        .map_or_else(String::new, |name| format!(" in case `{name}`"));
    match &figure.subject {
        Subject::Machine => {}
        Subject::Class(path) => {
            super::check_class_known(path, &workload.classes)
                .map_err(|message| format!("{message}{place}"))?;
        }
        Subject::Program(name) => {
            let running = || workload.programs.iter().filter(|program| program.count > 0);
            if !running().any(|program| program.name == *name) {
                let hint = suggest(name, running().map(|program| program.name.as_str()));
                return Err(format!("unknown program `{name}`{place}{hint}"));
            }
        }
    }
    match figure.at_s {
        Some(at_s) if at_s <= 0.0 || at_s > workload.duration_s => Err(format!(
            "`at_s` = {at_s} lies outside the measurement{place}"
        )),
        _ => Ok(()),
    }
}
