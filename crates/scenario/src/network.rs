//! `network = "here"`: programs in one of two networks that a cable joins, as on two machines; `[network]`: what
//! the cable carries, and which queueing discipline decides what leaves first.
//!
//! ```toml
//! [network]
//! rate = "10mbit"                         # of each end; none: as fast as the machine
//! discipline = "fq_codel"                 # of each end
//! router = true                           # two cables, and both of that are at the router's ends
//! reserve = { "/film" = "1mbit/10ms" }    # contracts of classes, on both ends
//! ```

use andante_admission::Rate;
use andante_admission::link::LinkTerms;
use andante_document::{DocumentError, FromNode, Node, Section, Value, join, suggest};

use super::choice::Choice;
use super::{Class, Kind, Program, check_class_known, check_name};

/// Whose packets leave first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Discipline {
    /// The scheduler's own: Andante's under Andante, elsewhere the one that distributions set, which is
    /// [`Discipline::FqCodel`].
    #[default]
    Own,
    /// One queue, the oldest first; of up to 1000 packets, as Linux has by itself.
    Fifo,
    /// Flows in turn, each with CoDel (RFC 8290).
    FqCodel,
    /// Hosts and flows in turn, with its own shaper.
    Cake,
    /// Classes by their weights.
    Andante,
}

const DISCIPLINES: [(&str, Discipline); 5] = [
    ("own", Discipline::Own),
    ("fifo", Discipline::Fifo),
    ("fq_codel", Discipline::FqCodel),
    ("cake", Discipline::Cake),
    ("andante", Discipline::Andante),
];

impl Discipline {
    /// The one that there is under a scheduler; never [`Discipline::Own`].
    pub fn under(self, choice: &Choice) -> Self {
        match (self, choice) {
            (Self::Own, Choice::Andante) => Self::Andante,
            (Self::Own, _) => Self::FqCodel,
            (named, _) => named,
        }
    }
}

/// So many bytes in every period leave before others'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetContract {
    /// The class whose they are.
    pub class: String,
    /// As the command line takes it: `1mbit/10ms`.
    pub terms: String,
    /// The same.
    pub link: LinkTerms,
}

/// The cable between the two networks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cable {
    /// The rate of each end; none: as fast as the machine.
    pub rate: Option<Rate>,
    /// The discipline at both ends.
    pub discipline: Discipline,
    /// Whether a router stands between the networks, with a cable to each: then its ends have the rate and the
    /// discipline, and those of the networks neither.
    pub router: bool,
    /// Contracts on both ends, where Andante's discipline stands.
    pub contracts: Vec<NetContract>,
}

/// Reads `[network]`.
pub(super) fn read(
    node: Option<&Node>,
    programs: &[Program],
    classes: &[Class],
) -> Result<Cable, DocumentError> {
    let Some(node) = node else {
        return Ok(Cable::default());
    };
    let mut section = Section::new(node, "network")?;
    let rate = match section.node("rate").map(|node| &node.value) {
        // A family computes it.
        Some(Value::Integer(_) | Value::Number(_)) => {
            let mbit = section.number("rate", 0.0, 0.001..=1e6)?;
            Rate::of_bytes((mbit * 1e6 / 8.0).round() as u64)
        }
        Some(_) => {
            let text: String = section.need("rate")?;
            Some(text.parse().map_err(|why| section.error("rate", why))?)
        }
        None => None,
    };
    let discipline = match section.get::<String>("discipline")? {
        None => Discipline::default(),
        Some(name) => named(&name).map_err(|why| section.error("discipline", why))?,
    };
    let contracts = match section.node("reserve") {
        None => Vec::new(),
        Some(node) => read_contracts(node, classes)?,
    };
    let router = section.get("router")?.unwrap_or(false);
    if router && !contracts.is_empty() {
        let message = "all that a router forwards is of the root's class, so no contract of a class has packets \
                       there: give it to the networks' own ends, without `router`";
        return Err(section.error("reserve", message));
    }
    if rate.is_none() && discipline != Discipline::Own {
        let message =
            "nothing waits at the end of a cable without a rate: give one, as in \"10mbit\"";
        return Err(section.error("rate", message));
    }
    if networks(programs).is_empty() {
        let message = "no program is in a network: give two of them `network = \"…\"`";
        return Err(section.error("", message));
    }
    section.finish()?;
    Ok(Cable {
        rate,
        discipline,
        router,
        contracts,
    })
}

fn named(name: &str) -> Result<Discipline, String> {
    let found = DISCIPLINES.iter().find(|(known, _)| *known == name);
    found.map(|(_, discipline)| *discipline).ok_or_else(|| {
        let hint = suggest(name, DISCIPLINES.iter().map(|(known, _)| *known));
        format!("unknown discipline `{name}`{hint}")
    })
}

fn read_contracts(node: &Node, classes: &[Class]) -> Result<Vec<NetContract>, DocumentError> {
    let path = join("network", "reserve");
    let entries = Section::new(node, &path)?.entries();
    let contracts = entries.map(|(class, key, node)| {
        let fail = |message: String| node.origin.error(&key, message);
        check_class_known(class, classes).map_err(fail)?;
        let terms = String::from_node(node)
            .ok_or_else(|| fail("must be a rate and a period, as in \"1mbit/10ms\"".to_owned()))?;
        Ok(NetContract {
            class: class.to_owned(),
            link: terms.parse().map_err(fail)?,
            terms,
        })
    });
    contracts.collect()
}

/// A cable has two ends, and whoever asks a server is at one of them, or in the machine's own network as the
/// server is.
pub(super) fn check(programs: &[Program], root: &Section<'_>) -> Result<(), DocumentError> {
    let running = || programs.iter().filter(|program| program.count > 0);
    let named = networks(programs);
    for name in &named {
        check_name(name).map_err(|message| root.error("programs", message))?;
    }
    if !named.is_empty() && named.len() != 2 {
        let message = format!(
            "{} networks: a cable joins two of them, so name two, or none",
            named.len()
        );
        return Err(root.error("programs", message));
    }
    for sender in running().filter(|program| program.kind.brings_other_end()) {
        if sender.network.is_none() {
            let name = &sender.name;
            let message = format!(
                "`network` of program `{name}` is missing: it sends from there to the other one"
            );
            return Err(root.error("programs", message));
        }
    }
    check_streams(programs, root)?;
    for player in running() {
        let Kind::FilmPlayer { server, fps, .. } = &player.kind else {
            continue;
        };
        let mut servers = running().filter(|program| program.name == *server);
        let Some((server, Kind::FilmServer { clip })) = servers.next().map(|s| (s, &s.kind)) else {
            continue;
        };
        let name = &player.name;
        if clip.fps != *fps {
            let message = format!(
                "program `{name}` has `fps = {fps}`, its server {}",
                clip.fps
            );
            return Err(root.error("programs", message));
        }
        if player.network.is_some() != server.network.is_some() {
            let message = format!("`network` of program `{name}`, or of its server, is missing");
            return Err(root.error("programs", message));
        }
    }
    Ok(())
}

/// The name of a network that only receivers are in, or those that answer.
const OTHER_END: &str = "other-end";

/// A stream has one player, which shows what is sent.
fn check_streams(programs: &[Program], root: &Section<'_>) -> Result<(), DocumentError> {
    for server in programs.iter().filter(|program| program.count > 0) {
        let Kind::RtpServer { clip: sent } = &server.kind else {
            continue;
        };
        let name = &server.name;
        let mut players = players_of(programs, name);
        let wrong = match (players.next(), players.next()) {
            (Some(player), None) if player.count == 1 => match &player.kind {
                Kind::Mpv { clip, .. } if clip != sent => {
                    Some("has another clip than its player: give both the same figures")
                }
                _ if player.network.is_some() != server.network.is_some() => {
                    Some("is in a network and its player in none, or the other way around")
                }
                _ => None,
            },
            _ => Some("has no player, or several: give one mpv it as `stream`"),
        };
        if let Some(wrong) = wrong {
            return Err(root.error("programs", format!("program `{name}` {wrong}")));
        }
    }
    Ok(())
}

/// Those that play the stream of this server.
pub fn players_of<'a>(
    programs: &'a [Program],
    server: &'a str,
) -> impl Iterator<Item = &'a Program> {
    let running = programs.iter().filter(|program| program.count > 0);
    running.filter(move |program| match &program.kind {
        Kind::Mpv { stream, .. } => stream.as_deref() == Some(server),
        _ => false,
    })
}

/// The networks of programs that run, as they come first.
pub fn networks(programs: &[Program]) -> Vec<&str> {
    let mut names = Vec::new();
    let running = programs.iter().filter(|program| program.count > 0);
    for name in running.filter_map(|program| program.network.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // A sender brings its receiver.
    let sends = |program: &Program| program.count > 0 && program.kind.brings_other_end();
    if names.len() == 1 && names[0] != OTHER_END && programs.iter().any(sends) {
        names.push(OTHER_END);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{Choice, Discipline};
    use crate::Scenario;

    fn read(player: &str) -> Result<Scenario, String> {
        let text = format!(
            "title = 'x'\nduration_s = 1\n\
             [programs.server]\nclass = '/'\nkind = 'film-server'\nfps = 25\nnetwork = 'there'\n\
             [programs.player]\nclass = '/'\nkind = 'film-player'\nserver = 'server'\n{player}\n"
        );
        Scenario::parse("x.toml", &text, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_cable_joins_two_networks() {
        let scenario = read("fps = 25\nnetwork = 'here'").unwrap();
        let programs = &scenario.cases[0].workload.programs;
        let mut names = super::networks(programs);
        names.sort_unstable();
        assert_eq!(names, ["here", "there"]);
        let refused = |player: &str, why: &str| {
            let error = read(player).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused(
            "fps = 25\nnetwork = 'there'",
            "1 networks: a cable joins two",
        );
        refused("fps = 30\nnetwork = 'here'", "its server 25");
        refused("fps = 25\nnetwork = 'a b'", "is no name");
    }

    fn of_sender(more: &str) -> Result<Scenario, String> {
        let text = format!(
            "title = 'x'\nduration_s = 1\n{more}\n[classes]\n'/film' = 100\n\
             [programs.film]\nclass = '/film'\nkind = 'sender'\nnetwork = 'here'\nevery_ms = 10\n"
        );
        Scenario::parse("x.toml", &text, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_cable_carries_and_who_decides_are_read() {
        let link = "[network]\nrate = '10mbit'\nreserve = { '/film' = '1mbit/10ms' }";
        let scenario = of_sender(link).unwrap();
        let workload = &scenario.cases[0].workload;
        assert_eq!(super::networks(&workload.programs), ["here", "other-end"]);
        let cable = &workload.cable;
        assert_eq!(cable.rate.unwrap().bytes(), 1_250_000);
        assert_eq!(cable.contracts[0].link.bytes, 1250);
        let under = |choice| cable.discipline.under(&choice);
        assert_eq!(under(Choice::Andante), Discipline::Andante);
        assert_eq!(under(Choice::Stock), Discipline::FqCodel);
    }

    #[test]
    fn whoever_measures_a_link_brings_the_other_end() {
        let read = |kind: &str| {
            let text =
                format!("title = 'x'\nduration_s = 1\n[programs.x]\nclass = '/'\nkind = {kind}\n");
            Scenario::parse("x.toml", &text, &[]).map_err(|error| error.to_string())
        };
        for kind in ["'ping'", "'iperf3'\nudp = true\nrate = '2mbit'"] {
            let scenario = read(&format!("{kind}\nnetwork = 'here'")).unwrap();
            let programs = &scenario.cases[0].workload.programs;
            assert_eq!(super::networks(programs), ["here", "other-end"]);
            let error = read(kind).unwrap_err();
            assert!(error.contains("it sends from there"), "{error}");
        }
        let error = read("'iperf3'\nrate = 'fast'\nnetwork = 'here'").unwrap_err();
        assert!(error.contains("is no rate"), "{error}");
    }

    #[test]
    fn a_cable_that_makes_no_sense_is_refused() {
        let refused = |link: &str, why: &str| {
            let error = of_sender(&format!("[network]\n{link}")).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused("rate = 'fast'", "is no rate");
        refused("discipline = 'cake'", "without a rate");
        refused(
            "rate = '1mbit'\ndiscipline = 'cakes'",
            "did you mean `cake`",
        );
        refused(
            "rate = '1mbit'\nreserve = { '/films' = '1mbit/1ms' }",
            "unknown class",
        );
        refused(
            "rate = '1mbit'\nreserve = { '/film' = '1mbit' }",
            "no period",
        );
        refused(
            "rate = '1mbit'\nrouter = true\nreserve = { '/film' = '1mbit/10ms' }",
            "a router forwards is of the root's class",
        );
    }
}
