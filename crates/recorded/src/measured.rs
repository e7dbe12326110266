//! A value of a scenario: whose measure it is, in which cases, and what is done with it.

use andante_document::{DocumentError, Node, Section, suggest};
use andante_scenario::expectation::{check_figure, check_in_case, read_over, read_subject};
use andante_scenario::{Case, Figure, Instances, Over, Scenario, Subject};

use super::declaration::ScenarioRun;

/// A figure of one program, class or machine, or of each of several programs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measures {
    /// In words; with `programs` and its pattern.
    pub what: String,
    pub each: Vec<Measured>,
}

/// A figure of a result, as expectations know them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    pub figure: Figure,
    pub case: Option<String>,
    pub not_case: Option<String>,
    pub instances: Option<Instances>,
    pub beside: Option<(Relation, Over)>,
}

/// What is done with the other figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Over,
    Minus,
}

impl Measures {
    pub fn read(
        section: &mut Section<'_>,
        path: &str,
        run: &ScenarioRun,
        scenario: &Scenario,
    ) -> Result<Self, DocumentError> {
        let subject = read_subject(section)?;
        let measured = |subject, section: &mut Section<'_>| {
            let measured = Measured::read(section, path, run, subject)?;
            let wrong = |message: String| section.error("", message);
            measured.check(run, scenario).map_err(wrong)?;
            Ok::<_, DocumentError>(measured)
        };
        let Some(pattern) = section.get::<String>("programs")? else {
            let measured = measured(subject.unwrap_or(Subject::Machine), section)?;
            return Ok(Self {
                what: measured.what(),
                each: vec![measured],
            });
        };
        if subject.is_some() {
            return Err(section.error("programs", "give these, or a class or a program"));
        }
        let mut names: Vec<&str> = Vec::new();
        for program in scenario
            .cases
            .iter()
            .flat_map(|case| &case.workload.programs)
        {
            let meant = matches(&pattern, &program.name) && program.count > 0;
            if meant && !names.contains(&program.name.as_str()) {
                names.push(&program.name);
            }
        }
        let mut each = Vec::new();
        for name in &names {
            each.push(measured(Subject::Program((*name).to_owned()), section)?);
        }
        let Some(first) = each.first() else {
            let message = format!("no program is called `{pattern}`");
            return Err(section.error("programs", message));
        };
        Ok(Self {
            what: first.what_of(Subject::Program(pattern)),
            each,
        })
    }
}

impl Measured {
    fn read(
        section: &mut Section<'_>,
        path: &str,
        run: &ScenarioRun,
        subject: Subject,
    ) -> Result<Self, DocumentError> {
        let figure = Figure {
            measure: section.need("measure")?,
            subject,
            scheduler: section
                .get("scheduler")?
                .unwrap_or_else(|| run.schedulers[0].clone()),
            at_s: section.get("at_s")?,
        };
        check_figure(&figure, section)?;
        let other = |node: Option<&Node>, key: &str| {
            let path = andante_document::join(path, key);
            node.map(|node| read_over(node, &figure, &path)).transpose()
        };
        let over = other(section.node("over"), "over")?;
        let minus = other(section.node("minus"), "minus")?;
        let beside = match (over, minus) {
            (Some(_), Some(_)) => return Err(section.error("minus", "give it or `over`")),
            (Some(over), None) => Some((Relation::Over, over)),
            (None, minus) => minus.map(|minus| (Relation::Minus, minus)),
        };
        Ok(Self {
            case: section.get("case")?,
            not_case: section.get("not_case")?,
            instances: Instances::read(section)?,
            figure,
            beside,
        })
    }

    /// Refuses what the runs will not have.
    fn check(&self, run: &ScenarioRun, scenario: &Scenario) -> Result<(), String> {
        let beside = self.beside.as_ref().map(|(_, over)| over);
        let figures = [Some(&self.figure), beside.map(|over| &over.figure)];
        for figure in figures.into_iter().flatten() {
            if !run.schedulers.contains(&figure.scheduler) {
                let name = &figure.scheduler;
                return Err(format!("`{name}` is none of the entry's `schedulers`"));
            }
        }
        let mut concerned = scenario.cases.iter().filter(|case| self.concerns(case));
        let names = || {
            scenario
                .cases
                .iter()
                .filter_map(|case| case.name.as_deref())
        };
        let Some(first) = concerned.next() else {
            return Err(match &self.case {
                Some(case) => format!("unknown case `{case}`{}", suggest(case, names())),
                None => check_in_case(&scenario.cases[0], &self.figure)
                    .err()
                    .unwrap_or_else(|| "what it compares runs together in no case".to_owned()),
            });
        };
        for case in std::iter::once(first).chain(concerned) {
            check_in_case(case, &self.figure)?;
            let Some(over) = beside else { continue };
            let other = match &over.case {
                None => case,
                Some(name) => scenario
                    .cases
                    .iter()
                    .find(|case| case.name.as_ref() == Some(name))
                    .ok_or_else(|| format!("unknown case `{name}`{}", suggest(name, names())))?,
            };
            check_in_case(other, &over.figure)?;
        }
        Ok(())
    }

    /// Whether it is measured in this case: the one it names (or those, with a `*`); if it names none, every
    /// one in which the program runs.
    pub fn concerns(&self, case: &Case) -> bool {
        let name = case.name.as_deref().unwrap_or_default();
        if let Some(wanted) = &self.case {
            return matches(wanted, name);
        }
        if self.not_case.as_ref().is_some_and(|not| matches(not, name)) {
            return false;
        }
        let runs = |figure: &Figure| match &figure.subject {
            Subject::Program(name) => {
                let mut programs = case.workload.programs.iter();
                programs.any(|program| program.name == *name && program.count > 0)
            }
            Subject::Machine | Subject::Class(_) => true,
        };
        let beside = self.beside.as_ref().map(|(_, over)| over);
        let beside = beside.filter(|over| over.case.is_none());
        runs(&self.figure) && beside.is_none_or(|over| runs(&over.figure))
    }

    /// In words, with another subject.
    fn what_of(&self, subject: Subject) -> String {
        let mut other = self.clone();
        if let Some((_, over)) = &mut other.beside
            && over.figure.subject == self.figure.subject
        {
            over.figure.subject = subject.clone();
        }
        other.figure.subject = subject;
        other.what()
    }

    fn what(&self) -> String {
        let figure = |figure: &Figure| format!("{figure} under {}", figure.scheduler);
        let mut words = figure(&self.figure);
        if let Some(case) = &self.case {
            words += &format!(" in {case}");
        }
        if let Some(case) = &self.not_case {
            words += &format!(" in all but {case}");
        }
        if let Some(instances) = self.instances {
            words += &format!(", {instances} of instances");
        }
        if let Some((relation, over)) = &self.beside {
            words += match relation {
                Relation::Over => " over ",
                Relation::Minus => " minus ",
            };
            words += &figure(&over.figure);
            if let Some(case) = &over.case {
                words += &format!(" in {case}");
            }
            if let Some(class) = &over.left_by {
                words += &format!(" times what {class} leaves");
            }
        }
        words
    }
}

/// Whether a name is meant: by itself, or by how it begins, with a `*` for the rest.
fn matches(wanted: &str, name: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == wanted,
    }
}
