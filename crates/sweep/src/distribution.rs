//! What may stand in a family where a scenario has a value, and how it is drawn.

use andante_document::{DocumentError, FromNode, Node, Section, Value, join};
use andante_scenario::DrawId;
use andante_sim::Random;

use super::expression;

/// Significant digits of what is drawn: a drawn scenario is written and read again, by people too, and
/// whatever the last bits of a logarithm are on another machine, these are the same.
const DIGITS: i32 = 4;
/// Most elements of a drawn list.
const LENGTH_MAX: f64 = 10_000.0;
/// The keys by which a distribution is told from other tables.
const FORMS: [&str; 6] = [
    "choice",
    "uniform",
    "log_uniform",
    "integer",
    "pareto",
    "others",
];

/// Whether a table is a distribution, and not a part of a scenario.
pub(super) fn is_distribution(node: &Node) -> bool {
    let is_form = |(key, _): &(String, Node)| FORMS.contains(&key.as_str());
    matches!(&node.value, Value::Table(entries) if entries.iter().any(is_form))
}

/// One draw of one family: what has been drawn so far, and the source of everything else.
///
/// Every place of a family draws from a stream of its own, which seed, number and the key's path
/// determine. So a draw is the same however many there are; and what is changed in one place, by
/// `--set` for example, leaves everything else as it was drawn.
pub(super) struct Drawer {
    pub id: DrawId,
    /// The variables of `[draw]`, in their order.
    pub variables: Vec<(String, Node)>,
}

impl Drawer {
    /// `node`, which stands at `path`, with everything in it drawn.
    ///
    /// # Errors
    /// A distribution or an expression is wrong.
    pub fn resolve(&self, node: &Node, path: &str) -> Result<Node, DocumentError> {
        let value = match &node.value {
            Value::Text(text) => match text.strip_prefix('=') {
                Some(expression) => return self.express(node, expression, path),
                None => return Ok(node.clone()),
            },
            Value::Table(_) if is_distribution(node) => return self.draw(node, path),
            Value::Table(entries) => {
                let entry = |(key, node): &(String, Node)| {
                    Ok((key.clone(), self.resolve(node, &join(path, key))?))
                };
                Value::Table(entries.iter().map(entry).collect::<Result<_, _>>()?)
            }
            Value::List(items) => {
                let item =
                    |(at, node): (usize, &Node)| self.resolve(node, &format!("{path}[{}]", at + 1));
                Value::List(
                    items
                        .iter()
                        .enumerate()
                        .map(item)
                        .collect::<Result<_, _>>()?,
                )
            }
            _ => return Ok(node.clone()),
        };
        Ok(at(node, value))
    }

    /// The value of an expression; that of a name alone may be anything, a list for example.
    fn express(&self, node: &Node, text: &str, path: &str) -> Result<Node, DocumentError> {
        let fail = |message: String| node.origin.error(path, format!("`={text}`: {message}"));
        let named = |name: &str| {
            let known = self.variables.iter().find(|(known, _)| known == name);
            known.map(|(_, node)| node).ok_or_else(|| {
                let hint = andante_document::suggest(name, self.names());
                format!("`{name}` is not drawn before this in [draw]{hint}")
            })
        };
        if let Some(name) = expression::single_name(text) {
            return Ok(at(node, named(name).map_err(fail)?.value.clone()));
        }
        let number = |name: &str| {
            f64::from_node(named(name)?).ok_or_else(|| format!("`{name}` is not a number"))
        };
        let value = expression::evaluate(text, &number).map_err(fail)?;
        Ok(at(node, as_value(rounded(value))))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| name.as_str())
    }

    fn draw(&self, node: &Node, path: &str) -> Result<Node, DocumentError> {
        let mut random = self.stream(path);
        let value = match Distribution::read(node, path)? {
            Distribution::Choice { values, weights } => {
                let place = pick(&weights, &mut random);
                let chosen = self.resolve(&values[place], &format!("{path}.choice[{}]", place + 1));
                return Ok(at(node, chosen?.value));
            }
            Distribution::Uniform(bounds) => {
                let (low, high) = self.bounds(node, bounds, (path, "uniform"), f64::MIN)?;
                let value = low + (high - low) * random.unit();
                as_value(rounded(value).clamp(low, high))
            }
            Distribution::LogUniform(bounds) => {
                let least = f64::MIN_POSITIVE;
                let (low, high) = self.bounds(node, bounds, (path, "log_uniform"), least)?;
                let value = low * libm::pow(high / low, random.unit());
                as_value(rounded(value).clamp(low, high))
            }
            Distribution::Integer(bounds) => {
                let (low, high) = self.bounds(node, bounds, (path, "integer"), f64::MIN)?;
                let (low, high) = (low.ceil(), high.floor());
                if low > high {
                    let message = "there is no whole number between the two";
                    return Err(node.origin.error(&join(path, "integer"), message));
                }
                as_value(low + random.below((high - low) as u64 + 1) as f64)
            }
            Distribution::Pareto(of) => self.pareto(node, of, path, &mut random)?,
            Distribution::List {
                length,
                first,
                others,
            } => self.list(node, (length, first, others), path)?,
        };
        Ok(at(node, value))
    }

    /// A Pareto distribution cut off at `most`: by the inverse of its distribution function.
    fn pareto(
        &self,
        node: &Node,
        [least, shape, most]: [&Node; 3],
        path: &str,
        random: &mut Random,
    ) -> Result<Value, DocumentError> {
        let path = join(path, "pareto");
        let shape = self.number(shape, &join(&path, "shape"))?;
        let (least, most) = (
            self.number(least, &join(&path, "least"))?,
            self.number(most, &join(&path, "most"))?,
        );
        if !(least > 0.0 && shape > 0.0 && least <= most) {
            let message = format!(
                "least = {least}, shape = {shape}, most = {most}: the first two must be above 0, and \
                 `most` not below `least`"
            );
            return Err(node.origin.error(&path, message));
        }
        let cut_off = 1.0 - libm::pow(least / most, shape);
        let value = least / libm::pow(1.0 - (1.0 - random.unit()) * cut_off, 1.0 / shape);
        Ok(as_value(rounded(value).clamp(least, most)))
    }

    fn list(
        &self,
        node: &Node,
        (length, first, others): (&Node, Option<&Node>, &Node),
        path: &str,
    ) -> Result<Value, DocumentError> {
        let count = self.number(length, &join(path, "length"))?;
        if !(1.0..=LENGTH_MAX).contains(&count) || count.fract() != 0.0 {
            let message =
                format!("{count} is no length: give whole numbers from 1 to {LENGTH_MAX}");
            return Err(length.origin.error(&join(path, "length"), message));
        }
        let item = |place: usize| match (place, first) {
            (0, Some(first)) => self.resolve(first, &join(path, "first")),
            _ => self.resolve(others, &format!("{}[{}]", join(path, "others"), place + 1)),
        };
        let items: Vec<Node> = (0..count as usize).map(item).collect::<Result<_, _>>()?;
        debug_assert!(!items.is_empty(), "{:?}", node.origin);
        Ok(Value::List(items))
    }

    /// Both ends of a range.
    fn bounds(
        &self,
        node: &Node,
        [low, high]: [&Node; 2],
        (path, form): (&str, &str),
        least: f64,
    ) -> Result<(f64, f64), DocumentError> {
        let path = join(path, form);
        let (low, high) = (self.number(low, &path)?, self.number(high, &path)?);
        if low > high || low < least {
            let wanted = match least > 0.0 {
                true => "the lower one, above 0, first",
                false => "the lower one first",
            };
            let message = format!("{low} and {high} are no range: give {wanted}");
            return Err(node.origin.error(&path, message));
        }
        Ok((low, high))
    }

    fn number(&self, node: &Node, path: &str) -> Result<f64, DocumentError> {
        let drawn = self.resolve(node, path)?;
        f64::from_node(&drawn).ok_or_else(|| {
            let message = format!("expected a number, found {}", drawn.value.kind());
            node.origin.error(path, message)
        })
    }

    /// The random numbers of one place.
    pub fn stream(&self, path: &str) -> Random {
        self.id.stream(path)
    }
}

/// The place that is chosen, each as often as its weight says.
pub(super) fn pick(weights: &[f64], random: &mut Random) -> usize {
    // 0 or more, below the sum.
    let mut left = (1.0 - random.unit()) * weights.iter().sum::<f64>();
    for (place, weight) in weights.iter().enumerate() {
        if left < *weight {
            return place;
        }
        left -= weight;
    }
    // Rounding alone leads here.
    weights
        .iter()
        .rposition(|weight| *weight > 0.0)
        .unwrap_or(0)
}

/// A distribution as it stands in a family.
enum Distribution<'a> {
    /// `{ choice = [24, 25, 30], weights = [1, 2, 1] }`
    Choice {
        values: &'a [Node],
        weights: Vec<f64>,
    },
    /// `{ uniform = [2, 8] }`
    Uniform([&'a Node; 2]),
    /// `{ log_uniform = [0.3, 60] }`: each power of ten as often as the others.
    LogUniform([&'a Node; 2]),
    /// `{ integer = [0, 20] }`, both included.
    Integer([&'a Node; 2]),
    /// `{ pareto = { least = 2, shape = 1.5, most = 40 } }`
    Pareto([&'a Node; 3]),
    /// `{ length = 12, first = 16, others = { uniform = [4, 8] } }`
    List {
        length: &'a Node,
        first: Option<&'a Node>,
        others: &'a Node,
    },
}

impl<'a> Distribution<'a> {
    fn read(node: &'a Node, path: &str) -> Result<Self, DocumentError> {
        let mut section = Section::new(node, path)?;
        let given: Vec<(&str, &Node)> = FORMS
            .into_iter()
            .filter_map(|form| Some((form, section.node(form)?)))
            .collect();
        let [(form, of)] = given[..] else {
            let names: Vec<_> = given.iter().map(|(form, _)| format!("`{form}`")).collect();
            let message = format!("is {} at once: give one of them", names.join(" and "));
            return Err(node.origin.error(path, message));
        };
        // What belongs to another form is unknown in this one.
        let mut section = Section::new(node, path)?;
        section.node(form);
        let read = match form {
            "choice" => read_choice(of, &mut section)?,
            "uniform" => Self::Uniform(read_bounds(of, &section, "uniform")?),
            "log_uniform" => Self::LogUniform(read_bounds(of, &section, "log_uniform")?),
            "integer" => Self::Integer(read_bounds(of, &section, "integer")?),
            "pareto" => Self::Pareto(read_pareto(of, &join(path, "pareto"))?),
            _ => Self::List {
                length: section.node("length").ok_or_else(|| {
                    section.error("", "a list needs `length`, and `others` for its elements")
                })?,
                first: section.node("first"),
                others: of,
            },
        };
        section.finish()?;
        Ok(read)
    }
}

fn read_choice<'a>(
    of: &'a Node,
    section: &mut Section<'a>,
) -> Result<Distribution<'a>, DocumentError> {
    let values = match &of.value {
        Value::List(values) if !values.is_empty() => &values[..],
        _ => return Err(section.error("choice", "give a list of values to choose from")),
    };
    let weights: Option<Vec<f64>> = section.get("weights")?;
    let weights = weights.unwrap_or_else(|| vec![1.0; values.len()]);
    let fit = weights.len() == values.len() && weights.iter().all(|weight| *weight >= 0.0);
    if !fit || weights.iter().sum::<f64>() <= 0.0 {
        let message = format!(
            "give a number, 0 or more, for each of the {} values, not all 0",
            values.len()
        );
        return Err(section.error("weights", message));
    }
    Ok(Distribution::Choice { values, weights })
}

fn read_bounds<'a>(
    of: &'a Node,
    section: &Section<'a>,
    form: &str,
) -> Result<[&'a Node; 2], DocumentError> {
    match &of.value {
        Value::List(ends) if ends.len() == 2 => Ok([&ends[0], &ends[1]]),
        _ => Err(section.error(form, "give the least and the largest: [least, largest]")),
    }
}

fn read_pareto<'a>(of: &'a Node, path: &str) -> Result<[&'a Node; 3], DocumentError> {
    let mut section = Section::new(of, path)?;
    let mut need = |key| {
        let missing =
            "needs `least`, `shape` and `most`, e.g. { least = 2, shape = 1.5, most = 40 }";
        section.node(key).ok_or_else(|| section.error("", missing))
    };
    let read = [need("least")?, need("shape")?, need("most")?];
    section.finish()?;
    Ok(read)
}

/// Refuses distributions of a wrong form everywhere in `node`, also where a draw may never come.
pub(super) fn check_all(node: &Node, path: &str) -> Result<(), DocumentError> {
    match &node.value {
        Value::Table(entries) => {
            if is_distribution(node) {
                Distribution::read(node, path)?;
            }
            let mut entries = entries.iter();
            entries.try_for_each(|(key, node)| check_all(node, &join(path, key)))
        }
        Value::List(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(at, node)| check_all(node, &format!("{path}[{}]", at + 1)))
        }
        _ => Ok(()),
    }
}

fn at(node: &Node, value: Value) -> Node {
    Node {
        origin: node.origin.clone(),
        value,
    }
}

/// Whole numbers stay what keys for whole numbers want.
fn as_value(number: f64) -> Value {
    // Beyond 2^53 not every whole number is an f64.
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => Value::Integer(number as i64),
        false => Value::Number(number),
    }
}

/// `value` with [`DIGITS`] significant digits, whole numbers as they are.
fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 {
        return value;
    }
    let digits = format!("{value:.*e}", DIGITS as usize - 1);
    digits.parse().expect("it has just been written")
}

/// What a table that is not expected may have been meant to be.
pub(super) fn hint() -> String {
    let names: Vec<_> = FORMS.iter().map(|form| format!("`{form}`")).collect();
    format!("; distributions are told by the key {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawer(number: u64) -> Drawer {
        Drawer {
            id: DrawId { seed: 1, number },
            variables: Vec::new(),
        }
    }

    fn draw(text: &str, number: u64) -> Result<Value, String> {
        let node = Node::parse("f.toml", &format!("x = {text}")).unwrap();
        let drawn = drawer(number).resolve(&node, "");
        let mut drawn = drawn.map_err(|error| error.to_string())?;
        Ok(drawn.remove("x").unwrap().value)
    }

    fn numbers(text: &str) -> Vec<f64> {
        let number = |k| match draw(text, k).unwrap() {
            Value::Integer(number) => number as f64,
            Value::Number(number) => number,
            other => panic!("{other:?}"),
        };
        (0..4000).map(number).collect()
    }

    /// The part of `values` that is below `bound`.
    fn below(values: &[f64], bound: f64) -> f64 {
        values.iter().filter(|value| **value < bound).count() as f64 / values.len() as f64
    }

    #[test]
    fn draws_lie_within_their_bounds_and_as_often_there_as_they_should() {
        // Four thousand draws: the standard deviation of a part is below 0.008, four of them 0.032.
        let near =
            |part: f64, wanted: f64| assert!((part - wanted).abs() < 0.032, "{part} {wanted}");
        let inside = |values: &[f64], low: f64, high: f64| {
            assert!(values.iter().all(|value| (low..=high).contains(value)));
        };
        let uniform = numbers("{ uniform = [2, 6] }");
        inside(&uniform, 2.0, 6.0);
        near(below(&uniform, 3.0), 0.25);
        let log = numbers("{ log_uniform = [0.1, 1000] }");
        inside(&log, 0.1, 1000.0);
        near(below(&log, 1.0), 0.25);
        let whole = numbers("{ integer = [0, 3] }");
        inside(&whole, 0.0, 3.0);
        assert!(whole.iter().all(|value| value.fract() == 0.0));
        near(below(&whole, 0.5), 0.25);
        let tail = numbers("{ pareto = { least = 2, shape = 1.5, most = 40 } }");
        inside(&tail, 2.0, 40.0);
        let cut_off = 1.0 - (2.0_f64 / 40.0).powf(1.5);
        near(below(&tail, 8.0), (1.0 - 0.25_f64.powf(1.5)) / cut_off);
        let chosen = numbers("{ choice = [24, 25, 60], weights = [1, 0, 3] }");
        near(below(&chosen, 30.0), 0.25);
        assert!(!chosen.contains(&25.0));
    }

    #[test]
    fn lists_have_a_first_element_and_others() {
        let text = "{ length = { integer = [1, 5] }, first = 20, others = { uniform = [1, 2] } }";
        let mut lengths = [0; 6];
        let (mut equal, mut pairs) = (0, 0);
        for number in 0..200 {
            let Value::List(items) = draw(text, number).unwrap() else {
                panic!("a list")
            };
            lengths[items.len()] += 1;
            assert_eq!(items[0].value, Value::Integer(20));
            let others: Vec<_> = items[1..].iter().filter_map(f64::from_node).collect();
            assert!(others.iter().all(|ms| (1.0..=2.0).contains(ms)));
            equal += others.windows(2).filter(|pair| pair[0] == pair[1]).count();
            pairs += others.len().saturating_sub(1);
        }
        let all = lengths[0] == 0 && lengths[1..].iter().all(|n| *n > 10);
        assert!(all, "{lengths:?}");
        // Of a thousand values two are seldom the same.
        assert!(pairs > 100 && equal < 5, "{equal} of {pairs}");
    }

    #[test]
    fn places_draw_on_their_own_and_the_same_again() {
        let text = "a = { uniform = [0, 1] }\nb = { uniform = [0, 1] }";
        let node = Node::parse("f.toml", text).unwrap();
        let one = drawer(3).resolve(&node, "").unwrap();
        assert_eq!(one, drawer(3).resolve(&node, "").unwrap());
        assert_ne!(one, drawer(4).resolve(&node, "").unwrap());
        let (mut both, mut alone) = (
            one,
            Node::parse("f.toml", "b = { uniform = [0, 1] }").unwrap(),
        );
        alone = drawer(3).resolve(&alone, "").unwrap();
        let (a, b) = (both.remove("a").unwrap(), both.remove("b").unwrap());
        assert_ne!(a.value, b.value);
        assert_eq!(b.value, alone.remove("b").unwrap().value);
    }

    #[test]
    fn wrong_distributions_name_their_place() {
        for (text, said) in [
            ("{ uniform = [6, 2] }", "x.uniform: 6 and 2 are no range"),
            (
                "{ uniform = 6 }",
                "x.uniform: give the least and the largest",
            ),
            (
                "{ uniform = [1, 'a'] }",
                "x.uniform: expected a number, found a string",
            ),
            ("{ log_uniform = [0, 2] }", "above 0"),
            (
                "{ integer = [0.2, 0.8] }",
                "x.integer: there is no whole number",
            ),
            ("{ choice = [] }", "x.choice: give a list"),
            (
                "{ choice = [1, 2], weights = [1] }",
                "x.weights: give a number",
            ),
            ("{ choice = [1, 2], weights = [0, 0] }", "not all 0"),
            (
                "{ uniform = [1, 2], wieghts = [1] }",
                "x.wieghts: unknown key",
            ),
            (
                "{ uniform = [1, 2], choice = [1] }",
                "x: is `choice` and `uniform` at once",
            ),
            (
                "{ pareto = { least = 2, shape = 1.5 } }",
                "x.pareto: needs `least`",
            ),
            (
                "{ pareto = { least = 0, shape = 1, most = 2 } }",
                "x.pareto: least = 0",
            ),
            ("{ others = 3 }", "x: a list needs `length`"),
            ("{ length = 0, others = 3 }", "x.length: 0 is no length"),
            (
                "'= 2 * load'",
                "x: `= 2 * load`: `load` is not drawn before this",
            ),
        ] {
            let error = draw(text, 0).unwrap_err();
            assert!(
                error.starts_with("f.toml:1: x") && error.contains(said),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn what_is_written_is_short() {
        assert_eq!(rounded(1.0 / 3.0), 0.3333);
        assert_eq!(rounded(41.708_333), 41.71);
        assert_eq!(rounded(123_456.0), 123_456.0);
        assert_eq!(rounded(0.0), 0.0);
        assert_eq!(as_value(7.0), Value::Integer(7));
    }
}
