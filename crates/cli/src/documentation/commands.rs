//! Command lines that pages show: `andante` must parse them, and `make` must have what they ask for.

use std::fs;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory};

use super::pages::{Code, Page, top};
use crate::Cli;

/// What stands for something in a command line that is shown, and an example of it.
const PLACEHOLDERS: [(&str, &str); 3] = [("N", "1"), ("S/K", "1/1"), ("S", "1")];
/// Options of other programs that pages name.
const OTHERS_OPTIONS: [&str; 2] = ["--cpu-shares", "--cpus"];

/// What is wrong with the command lines of a page.
pub fn complaints(page: &Page) -> Vec<String> {
    let mut complaints = Vec::new();
    for code in page.code() {
        let words = words(&code.text);
        let words = words.strip_prefix(&["sudo".to_owned()]).unwrap_or(&words);
        let outcome = match words.first().map(String::as_str) {
            Some("andante" | "andante-lab") if words.len() > 1 => andante(words, &code),
            Some("make") if words.len() > 1 => make(&words[1..]),
            Some("cargo") => cargo(&words[1..]),
            Some(option) if !code.in_block && option.starts_with("--") => known_option(option),
            _ => Ok(()),
        };
        if let Err(what) = outcome {
            complaints.push(format!("{}: `{}`: {what}", page.at(code.line), code.text));
        }
    }
    complaints
}

/// The words of the first command of a line, as a shell would have them; what is behind it is left out, as are
/// comments. `$(…)` is a number, for pages ask for processes by it.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut begun = false;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, '$') if rest.peek() == Some(&'(') => {
                while rest.next().is_some_and(|c| c != ')') {}
                word.push_str("1234");
            }
            (None, '#') if word.is_empty() => break,
            (None, '|' | '>' | '&' | ';') => break,
            (None, ' ' | '\t') => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (_, c) => word.push(c),
        }
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    // A prefix of variables, as ANDANTE_KERNEL=6.18, is no part of the command; an ellipsis says that it goes on.
    let variable = |w: &String| {
        let name = w.split_once('=').map(|(name, _)| name);
        name.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let first = words.iter().position(|w| !variable(w)).unwrap_or(0);
    words.drain(..first);
    words.retain(|w| w != "…");
    words
}

/// The parser must take the line. In a sentence only a part of one may be named, as `andante run --leave`.
fn andante(words: &[String], code: &Code) -> Result<(), String> {
    let example = |word: &String| {
        let placeholder = PLACEHOLDERS.iter().find(|(name, _)| name == word);
        placeholder.map_or(word.clone(), |(_, example)| (*example).to_owned())
    };
    let words: Vec<String> = words.iter().map(example).collect();
    let (parser, words) = parser_of(&words);
    match parser.try_get_matches_from(&words) {
        Ok(matches) => named(&matches),
        Err(error) => {
            let ends_in_option = words.last().is_some_and(|w| w.starts_with("--"));
            let part = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return Ok(()),
                ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
                ErrorKind::InvalidValue => ends_in_option,
                _ => false,
            };
            if part && !code.in_block {
                return Ok(());
            }
            Err(error.to_string().lines().next().unwrap_or("?").to_owned())
        }
    }
}

/// Who parses a line, and what: `andante lab` and `andante paper` are the laboratory's.
fn parser_of(words: &[String]) -> (clap::Command, Vec<String>) {
    let lab = || "andante-lab".to_owned();
    match (words[0].as_str(), words[1].as_str()) {
        ("andante", "lab") => {
            let words = [&[lab()], &words[2..]].concat();
            (andante_lab::command(), words)
        }
        ("andante", "paper") => {
            let words = [&[lab()], &words[1..]].concat();
            (andante_lab::command(), words)
        }
        ("andante", _) => (Cli::command(), words.to_vec()),
        _ => (andante_lab::command(), words.to_vec()),
    }
}

/// Scenarios, families and papers that are named must be there.
fn named(matches: &ArgMatches) -> Result<(), String> {
    let (folder, ending, id, matches) = match matches.subcommand() {
        Some(("run", run)) if run.try_contains_id("draw").is_ok_and(|draws| draws) => {
            ("scenarios/families", ".toml", "scenarios", run)
        }
        Some(("run", run)) if run.try_contains_id("scenarios").is_ok() => {
            ("scenarios", ".toml", "scenarios", run)
        }
        Some(("sweep", sweep)) => ("scenarios/families", ".toml", "families", sweep),
        Some(("paper", paper)) if paper.subcommand().is_none() => ("papers", "", "papers", paper),
        _ => return Ok(()),
    };
    let names = matches.get_many::<String>(id).into_iter().flatten();
    for name in names {
        // A path is somebody's own; capital letters stand for any; all is every paper.
        let any = name.contains('.') || name == "all" || name.chars().all(|c| c.is_uppercase());
        if !any && !top().join(folder).join(format!("{name}{ending}")).exists() {
            return Err(format!("there is no {folder}/{name}{ending}"));
        }
    }
    Ok(())
}

/// `make` must have the targets and variables, and a kernel test that is named must be there.
fn make(words: &[String]) -> Result<(), String> {
    let mut folder = top();
    let mut words = words.iter().filter(|w| *w != "-s" && !w.starts_with("-j"));
    let mut asked = Vec::new();
    while let Some(word) = words.next() {
        if word == "-C" {
            folder = top().join(words.next().ok_or("-C needs a folder")?);
        } else {
            asked.push(word);
        }
    }
    let file = folder.join("Makefile");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    for word in asked {
        let known = match word.split_once('=') {
            Some(("TEST", name)) if name != "NAME" => is_tested(name),
            Some((variable, _)) => text.contains(variable),
            None => text.lines().any(|line| makes(line, word)),
        };
        if !known {
            return Err(format!("{} does not know {word}", file.display()));
        }
    }
    Ok(())
}

/// Is this line of a Makefile the head of a rule for the target? `%` stands for anything.
fn makes(line: &str, target: &str) -> bool {
    let Some((targets, _)) = line.split_once(':') else {
        return false;
    };
    !line.starts_with(['\t', '#'])
        && targets.split_whitespace().any(|t| match t.split_once('%') {
            Some((head, tail)) => target.starts_with(head) && target.ends_with(tail),
            None => t == target,
        })
}

/// Is there a test on the kernel whose name begins so?
fn is_tested(name: &str) -> bool {
    let head = format!("fn {name}");
    super::names::sources()
        .iter()
        .any(|text| text.contains(&head))
}

/// The package and the example that are named must be there.
fn cargo(words: &[String]) -> Result<(), String> {
    let after = |option: &str| {
        let at = words.iter().position(|w| w == option)?;
        words.get(at + 1)
    };
    let Some(package) = after("-p") else {
        return Ok(());
    };
    let folder = top()
        .join("crates")
        .join(package.trim_start_matches("andante-"));
    if !folder.join("Cargo.toml").exists() {
        return Err(format!("there is no package {package}"));
    }
    match after("--example") {
        Some(name) if !folder.join(format!("examples/{name}.rs")).exists() => {
            Err(format!("{package} has no example {name}"))
        }
        _ => Ok(()),
    }
}

/// An option that is named alone is one of some command's.
fn known_option(option: &str) -> Result<(), String> {
    fn has(command: &clap::Command, name: &str) -> bool {
        let mut arguments = command.get_arguments();
        arguments.any(|a| a.get_long() == Some(name))
            || command.get_subcommands().any(|below| has(below, name))
    }
    let name = option
        .trim_start_matches("--")
        .split('=')
        .next()
        .unwrap_or("");
    let known = matches!(name, "help" | "version")
        || has(&Cli::command(), name)
        || has(&andante_lab::command(), name);
    if known || OTHERS_OPTIONS.contains(&option) {
        Ok(())
    } else {
        Err("no command has this option".to_owned())
    }
}
