//! Families: scenarios in which what varies is drawn.
//!
//! A family is a scenario without cases and expectations. Wherever that has a value, a family may have
//! a distribution or an expression:
//!
//! ```toml
//! title = "Films beside jobs"
//! duration_s = 8
//!
//! [draw]                            # variables, each from those above it
//! fps = { choice = [24, 25, 30, 60], weights = [1, 1, 1, 2] }
//! load = { uniform = [0.1, 0.7] }
//! frame_ms = "= load * 1000 / fps"  # + - * / ( ), min(a, b), max(a, b)
//!
//! [programs.film]
//! class = "/"
//! kind = "player"
//! fps = "= fps"                     # a name alone may be anything that was drawn
//! work_ms = { length = 12, first = "= 2 * frame_ms", others = { uniform = [1, "= frame_ms"] } }
//!
//! [programs.batch]
//! class = "/"
//! kind = "batch"
//! count = { integer = [0, 20] }     # 0: without it
//! work_ms = { pareto = { least = 1, shape = 1.2, most = 200 } }
//!
//! [variants.place.flat]             # of each group one is drawn, and laid over all the above
//! [variants.place.apart]
//! chance = 0.5                      # relative to the others of the group; 1 if left out
//! classes."/jobs" = { integer = [10, 1000] }
//! programs.batch.class = "/jobs"
//!
//! [bounds]                          # what is asked of a draw, by measure
//! key_p99_ms = 10
//!
//! [[require]]                       # what a sweep must show, see `requirement`
//! share = 0.9
//! load = 0.4
//! ```
//!
//! | distribution | |
//! |---|---|
//! | `{ choice = [a, b, …], weights = [1, 2, …] }` | one of these, whatever they are |
//! | `{ uniform = [a, b] }` | between the two |
//! | `{ log_uniform = [a, b] }` | the same, by the logarithm: each power of ten as often |
//! | `{ integer = [a, b] }` | a whole number, both included |
//! | `{ pareto = { least = a, shape = s, most = b } }` | a heavy tail from a on, cut off at b |
//! | `{ length = n, first = x, others = y }` | a list, drawn element by element; `first` may be left out |
//!
//! Every number in them may be an expression or a distribution itself. Draw K of seed S depends on the
//! family, S and K alone, and every key draws on its own: what `--set` changes leaves the rest as it was.

use std::path::{Path, PathBuf};

use andante_document::{DocumentError, FromNode, Node, Section, Value};
use andante_job::LabError;
use andante_job::files::{folders, none_here, toml_files};
use andante_scenario as scenario;
use andante_scenario::{DrawId, Scenario, base};

use super::distribution::{self, Drawer, is_distribution, pick};
use super::measure::{Figures, MEASURES};
use super::requirement::{self, Requirement};

/// The keys that a family has and a scenario has not.
const DRAW: &str = "draw";
const VARIANTS: &str = "variants";
const BOUNDS: &str = "bounds";
const REQUIRE: &str = "require";
const CHANCE: &str = "chance";

/// One family file.
#[derive(Debug, Clone)]
pub struct Family {
    /// The file's name without `.toml`.
    pub key: String,
    /// Where it lies.
    pub file: PathBuf,
    /// One line for people.
    pub title: String,
    /// What a draw must keep to be a good one.
    pub(crate) bounds: Figures,
    /// What a sweep must show.
    pub(crate) requirements: Vec<Requirement>,
    /// All of it, bounds aside, with what was set laid over it.
    document: Node,
    /// What was set, which is laid over variants too.
    set: Vec<Node>,
}

/// One draw of a family.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    /// Which one.
    pub id: DrawId,
    /// The scenario, of one case.
    pub scenario: Scenario,
    /// The same as a document.
    pub document: Node,
    /// The variables, in their order.
    pub variables: Vec<(String, Node)>,
    /// The variant that each group came to.
    pub variants: Vec<(String, String)>,
}

/// Names and files of the families that come with Andante.
pub fn known_families() -> Vec<(String, PathBuf)> {
    toml_files(&folders("scenarios/families"))
}

impl Family {
    /// Reads the family given by name or path, with `set` (lines of TOML) laid over it.
    ///
    /// # Errors
    /// There is none, or the first mistake, with file, line and key.
    pub fn load(name: &str, set: &[String]) -> Result<Self, LabError> {
        let path = Path::new(name);
        let known = known_families();
        let file = match known.iter().find(|(known, _)| known == name) {
            _ if path.is_file() => path,
            Some((_, file)) => file,
            None => return Err(no_family(name, &known)),
        };
        let text = std::fs::read_to_string(file).map_err(|e| LabError::file("read", file, e))?;
        Ok(Self::parse(&file.display().to_string(), &text, set)?)
    }

    /// Reads a family from `text`; `file` is what errors name and what gives the key.
    ///
    /// # Errors
    /// The first mistake, with file, line and key.
    pub(crate) fn parse(file: &str, text: &str, set: &[String]) -> Result<Self, DocumentError> {
        let mut own = Node::parse(file, text)?;
        for outer in ["cases", "expect"] {
            if let Some(node) = own.remove(outer) {
                let message =
                    "belongs to scenarios: a family draws what varies, and is asked for [bounds]";
                return Err(node.origin.error(outer, message));
            }
        }
        let (mut document, _) = base::laid_over_base(file, own, &lay)?;
        // Those of a scenario that it varies.
        document.remove("cases");
        document.remove("expect");
        let mut set: Vec<Node> = set
            .iter()
            .map(|line| Node::parse("--set", line))
            .collect::<Result<_, _>>()?;
        for over in &mut set {
            lay(&mut document, over);
            for own in [DRAW, VARIANTS, BOUNDS, REQUIRE] {
                over.remove(own);
            }
        }
        let bounds = match document.remove(BOUNDS) {
            None => Figures::default(),
            Some(node) => read_figures(&node, BOUNDS)?,
        };
        let requirements = match document.remove(REQUIRE) {
            None => Vec::new(),
            Some(node) => requirement::read_all(&node, REQUIRE)?,
        };
        distribution::check_all(&document, "")?;
        let title = Section::new(&document, "")?.need("title")?;
        Ok(Self {
            key: Path::new(file)
                .file_stem()
                .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
            file: PathBuf::from(file),
            title,
            bounds,
            requirements,
            document,
            set,
        })
    }

    /// The key of the scenario that a draw is; names its file and its results.
    pub(crate) fn key_of(&self, draw: DrawId) -> String {
        format!("{}-{}-{}", self.key, draw.seed, draw.number)
    }

    /// One draw.
    ///
    /// # Errors
    /// What was drawn is no scenario: the mistake, with file, line and key.
    pub(crate) fn draw(&self, id: DrawId) -> Result<Drawn, DocumentError> {
        self.draw_all(id).map_err(|mut error| {
            if error.message.ends_with("found a table") {
                error.message += &distribution::hint();
            }
            error.message += &format!(" (draw {id})");
            error
        })
    }

    fn draw_all(&self, id: DrawId) -> Result<Drawn, DocumentError> {
        let mut document = self.document.clone();
        let mut drawer = Drawer {
            id,
            variables: Vec::new(),
        };
        let variants = lay_variants(&mut document, &drawer)?;
        for over in &self.set {
            lay(&mut document, over);
        }
        if let Some(draw) = document.remove(DRAW) {
            for (name, path, node) in Section::new(&draw, DRAW)?.entries() {
                let value = drawer.resolve(node, &path)?;
                drawer.variables.push((name.to_owned(), value));
            }
        }
        let mut document = drawer.resolve(&document, "")?;
        let title = format!("{}: draw {id}", self.title);
        document.overlay(&one("title", Value::Text(title), &document));
        // Draws ask for parts of real CPUs; of a virtual machine, where several share the speed of one, for as much
        // less (`work_scale` in the commands that run them there).
        if Section::new(&document, "")?.node("shared_speed").is_none() {
            document.overlay(&one("shared_speed", Value::Boolean(false), &document));
        }
        let mut scenario = scenario::of_document(&document)?;
        scenario.key = self.key_of(id);
        Ok(Drawn {
            id,
            scenario,
            document,
            variables: drawer.variables,
            variants,
        })
    }
}

/// A table of one key.
fn one(key: &str, value: Value, origin: &Node) -> Node {
    let node = |value| Node {
        origin: origin.origin.clone(),
        value,
    };
    node(Value::Table(vec![(key.to_owned(), node(value))]))
}

/// Lays `over` on top: tables are merged key by key, but a distribution takes the place of what was
/// there, as any other value does.
fn lay(node: &mut Node, over: &Node) {
    let merged = !is_distribution(node) && !is_distribution(over);
    match (&mut node.value, &over.value) {
        (Value::Table(below), Value::Table(above)) if merged => {
            for (key, over) in above {
                match below.iter_mut().find(|(known, _)| known == key) {
                    Some((_, node)) => lay(node, over),
                    None => below.push((key.clone(), over.clone())),
                }
            }
        }
        _ => node.clone_from(over),
    }
}

/// Lays one variant of each group over `document`; returns group and name of each.
fn lay_variants(
    document: &mut Node,
    drawer: &Drawer,
) -> Result<Vec<(String, String)>, DocumentError> {
    let Some(groups) = document.remove(VARIANTS) else {
        return Ok(Vec::new());
    };
    let mut chosen = Vec::new();
    for (group, path, node) in Section::new(&groups, VARIANTS)?.entries() {
        let variants: Vec<_> = Section::new(node, &path)?.entries().collect();
        let mut chances = Vec::new();
        for (_, path, node) in &variants {
            let mut section = Section::new(node, path)?;
            chances.push(section.number(CHANCE, 1.0, 0.0..=1e6)?);
        }
        if chances.iter().sum::<f64>() <= 0.0 {
            let message = "give one or more variants, as tables below it, with a chance above 0";
            return Err(node.origin.error(&path, message));
        }
        let (name, _, node) = &variants[pick(&chances, &mut drawer.stream(&path))];
        let mut over = (*node).clone();
        over.remove(CHANCE);
        lay(document, &over);
        chosen.push((group.to_owned(), (*name).to_owned()));
    }
    Ok(chosen)
}

/// A table of figures by measure.
pub(crate) fn read_figures(node: &Node, path: &str) -> Result<Figures, DocumentError> {
    let mut figures = Figures::default();
    for (name, path, node) in Section::new(node, path)?.entries() {
        let fail = |message: String| node.origin.error(&path, message);
        let Some(place) = MEASURES.iter().position(|measure| measure.name == name) else {
            let known = MEASURES.iter().map(|measure| measure.name);
            let hint = andante_document::suggest(name, known);
            return Err(fail(format!("there is no such measure{hint}")));
        };
        let figure = f64::from_node(node).filter(|figure| *figure >= 0.0);
        figures[place] = Some(figure.ok_or_else(|| fail("give a number, 0 or more".to_owned()))?);
    }
    Ok(figures)
}

/// Writes a draw as a scenario of its own, with the recorded times that it reads, to `folder`.
pub(crate) fn write(drawn: &Drawn, family: &Family, folder: &Path) -> Result<PathBuf, LabError> {
    let file = folder.join(format!("{}.toml", drawn.scenario.key));
    let text = format!(
        "# Drawn from {}.\n\n{}",
        family.file.display(),
        drawn.document.to_toml()
    );
    andante_job::files::write_file(&file, text.as_bytes())?;
    let mut traces = Vec::new();
    base::collect_traces(&drawn.document, &mut traces);
    for trace in traces.iter().filter(|trace| trace.is_relative()) {
        let from = family.file.with_file_name(trace);
        let content = std::fs::read(&from).map_err(|e| LabError::file("read", &from, e))?;
        andante_job::files::write_file(&folder.join(trace), &content)?;
    }
    Ok(file)
}

fn no_family(name: &str, known: &[(String, PathBuf)]) -> LabError {
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let hint = match names.is_empty() {
        true => none_here("a TOML file"),
        false => format!(
            "give the path of a TOML file, or one of: {}",
            names.join(", ")
        ),
    };
    LabError::NoFamily {
        name: name.to_owned(),
        hint,
    }
}
