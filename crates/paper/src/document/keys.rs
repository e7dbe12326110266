//! The keys that say which figure of which run a cell shows, and what is demanded of it.
//!
//! The same keys may stand at a cell, its row, its column and its table; the nearest counts.

use andante_document::{DocumentError, FromNode, Node, Section, Value};
use andante_scenario::choice::Choice;
use andante_scenario::expectation::{check_in_case, check_measure, read_subject};
use andante_scenario::{Figure, Instances, Over, Subject};

use super::scenarios::Scenarios;
use crate::source::{At, Demand, RunKey, Source, Starves};

/// The keys of one level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    scenario: Option<String>,
    case: Option<String>,
    scheduler: Option<String>,
    measure: Option<String>,
    pub subject: Option<Subject>,
    at_s: Option<f64>,
    over: Option<OverKeys>,
    scale: Option<f64>,
    instances: Option<Instances>,
    pub demand: Option<Demand>,
    pub starves: Option<Starves>,
    pub why: Option<String>,
    pub explained: Option<String>,
}

/// What a figure is divided by; what is left out is the same.
#[derive(Debug, Clone)]
struct OverKeys {
    keys: Box<Keys>,
    left_by: Option<String>,
}

/// Names of the tolerances, of which a level may hold one.
const DEMANDS: &str = "`within`, `within_abs`, `factor`, `at_most`, `at_least` and `shown`";

impl Keys {
    /// Reads the keys of one level.
    pub fn read(section: &mut Section<'_>, path: &str) -> Result<Self, DocumentError> {
        let over = match section.node("over") {
            None => None,
            Some(node) => Some(read_over(node, &format!("{path}.over"))?),
        };
        let keys = Self {
            over,
            scale: section.get("scale")?,
            instances: Instances::read(section)?,
            demand: read_demand(section)?,
            starves: read_starves(section, path)?,
            why: section.get("why")?,
            explained: section.get("explained")?,
            ..Self::read_figure(section)?
        };
        if let Some(empty) = [("why", &keys.why), ("explained", &keys.explained)]
            .into_iter()
            .find(|(_, text)| text.as_ref().is_some_and(|text| text.trim().is_empty()))
        {
            return Err(section.error(empty.0, "says nothing"));
        }
        Ok(keys)
    }

    /// The keys that name a figure of a run.
    pub fn read_figure(section: &mut Section<'_>) -> Result<Self, DocumentError> {
        Ok(Self {
            scenario: section.get("scenario")?,
            case: section.get("case")?,
            scheduler: section.get("scheduler")?,
            measure: section.get("measure")?,
            subject: read_subject(section)?,
            at_s: section.get("at_s")?,
            ..Self::default()
        })
    }

    /// These keys, and where there are none those of the level around them.
    pub fn or(&self, outer: &Self) -> Self {
        fn nearest<T: Clone>(inner: &Option<T>, outer: &Option<T>) -> Option<T> {
            inner.clone().or_else(|| outer.clone())
        }
        // A case belongs to its scenario.
        let case = match &self.scenario {
            Some(_) => self.case.clone(),
            None => nearest(&self.case, &outer.case),
        };
        Self {
            scenario: nearest(&self.scenario, &outer.scenario),
            case,
            scheduler: nearest(&self.scheduler, &outer.scheduler),
            measure: nearest(&self.measure, &outer.measure),
            subject: nearest(&self.subject, &outer.subject),
            at_s: nearest(&self.at_s, &outer.at_s),
            over: nearest(&self.over, &outer.over),
            scale: nearest(&self.scale, &outer.scale),
            instances: nearest(&self.instances, &outer.instances),
            demand: nearest(&self.demand, &outer.demand),
            starves: nearest(&self.starves, &outer.starves),
            why: nearest(&self.why, &outer.why),
            explained: nearest(&self.explained, &outer.explained),
        }
    }

    /// The run these keys name.
    pub fn run(&self, scenarios: &Scenarios<'_>, at: At<'_>) -> Result<RunKey, DocumentError> {
        let Some(scenario) = &self.scenario else {
            return Err(at.error("names no `scenario`, and nothing around it does"));
        };
        let scheduler = self.scheduler.as_deref().unwrap_or("andante");
        match Choice::parse(scheduler) {
            Ok(Choice::Andante | Choice::Policy(_) | Choice::Containers(_) | Choice::Servers) => {}
            _ => {
                let known = scenarios.schedulers().join(", ");
                let message = format!("`{scheduler}` cannot be simulated; known here: {known}");
                return Err(at.error(message));
            }
        }
        scenarios.check_case(scenario, self.case.as_deref(), at)?;
        Ok(RunKey {
            scenario: scenario.clone(),
            case: self.case.clone(),
            scheduler: scheduler.to_owned(),
        })
    }

    /// The figure these keys name; none if they name no measure.
    pub fn source(
        &self,
        scenarios: &Scenarios<'_>,
        at: At<'_>,
    ) -> Result<Option<Source>, DocumentError> {
        let Some(measure) = &self.measure else {
            return Ok(None);
        };
        let run = self.run(scenarios, at)?;
        let figure = Figure {
            measure: measure.clone(),
            subject: self.subject.clone().unwrap_or(Subject::Machine),
            scheduler: run.scheduler.clone(),
            at_s: self.at_s,
        };
        check_figure(&figure, &run, scenarios, at)?;
        let over = match &self.over {
            None => None,
            Some(over) => {
                let (figure, run) = over.resolve(self, &figure, &run, scenarios, at)?;
                let left_by = over.left_by.clone();
                let over = Over {
                    case: run.case.clone(),
                    figure,
                    left_by,
                };
                Some((over, run))
            }
        };
        if self.instances.is_none() && scenarios.instances(&run, &figure.subject) > 1 {
            let message = format!(
                "{figure} has several instances: say `instances = \"sum\"`, mean, least or largest"
            );
            return Err(at.error(message));
        }
        Ok(Some(Source {
            run,
            figure,
            over,
            scale: self.scale.unwrap_or(1.0),
            instances: self.instances,
        }))
    }
}

impl OverKeys {
    fn resolve(
        &self,
        of: &Keys,
        figure: &Figure,
        run: &RunKey,
        scenarios: &Scenarios<'_>,
        at: At<'_>,
    ) -> Result<(Figure, RunKey), DocumentError> {
        let same = Keys {
            scenario: of.scenario.clone(),
            case: of.case.clone(),
            scheduler: of.scheduler.clone(),
            ..Keys::default()
        };
        let base_run = self.keys.or(&same).run(scenarios, at)?;
        let base = Figure {
            measure: self
                .keys
                .measure
                .clone()
                .unwrap_or_else(|| figure.measure.clone()),
            subject: self
                .keys
                .subject
                .clone()
                .unwrap_or_else(|| figure.subject.clone()),
            scheduler: base_run.scheduler.clone(),
            at_s: self.keys.at_s.or(figure.at_s),
        };
        check_figure(&base, &base_run, scenarios, at)?;
        if let Some(class) = &self.left_by {
            let left = Figure {
                measure: "share_received".to_owned(),
                subject: Subject::Class(class.clone()),
                at_s: None,
                ..base.clone()
            };
            check_figure(&left, run, scenarios, at)?;
        }
        let several = scenarios.instances(&base_run, &base.subject) > 1;
        if several && (of.instances.is_none() || self.left_by.is_some()) {
            return Err(at.error(format!("{base} is no single figure to divide by")));
        }
        Ok((base, base_run))
    }
}

/// Refuses a figure that its run does not have.
fn check_figure(
    figure: &Figure,
    run: &RunKey,
    scenarios: &Scenarios<'_>,
    at: At<'_>,
) -> Result<(), DocumentError> {
    let node = Node {
        origin: at.origin.clone(),
        value: Value::Table(Vec::new()),
    };
    check_measure(figure, &Section::new(&node, at.path)?)?;
    scenarios.with_case(&run.scenario, run.case.as_deref(), at, |case| {
        check_in_case(case, figure).map_err(|message| at.error(message))
    })?
}

fn read_over(node: &Node, path: &str) -> Result<OverKeys, DocumentError> {
    let mut section = Section::new(node, path)?;
    let over = OverKeys {
        keys: Box::new(Keys::read_figure(&mut section)?),
        left_by: section.get("left_by")?,
    };
    section.finish()?;
    Ok(over)
}

fn read_demand(section: &mut Section<'_>) -> Result<Option<Demand>, DocumentError> {
    let mut demands = Vec::new();
    for (key, demand) in [
        ("within", Demand::Within as fn(f64) -> Demand),
        ("within_abs", Demand::WithinAbs),
        ("factor", Demand::Factor),
    ] {
        if section.get::<f64>(key)?.is_some() {
            let least = if key == "factor" { 1.0 } else { 0.0 };
            demands.push(demand(section.number(key, 0.0, least..=1e12)?));
        }
    }
    for (key, demand) in [
        ("at_most", Demand::AtMost),
        ("at_least", Demand::AtLeast),
        ("shown", Demand::Nothing),
    ] {
        match section.get::<bool>(key)? {
            None => {}
            Some(true) => demands.push(demand),
            Some(false) => return Err(section.error(key, "is true or left out")),
        }
    }
    match demands[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(section.error("", format!("give one of {DEMANDS}"))),
    }
}

fn read_starves(section: &mut Section<'_>, path: &str) -> Result<Option<Starves>, DocumentError> {
    let Some(node) = section.node("starves") else {
        return Ok(None);
    };
    match (bool::from_node(node), f64::from_node(node)) {
        (Some(true), _) => Ok(Some(Starves::Entirely)),
        (_, Some(times)) if times > 1.0 => Ok(Some(Starves::Times(times))),
        _ => Err(node.origin.error(
            &format!("{path}.starves"),
            "give true, or how many times worse than the baseline it must at least be",
        )),
    }
}
