//! `andante status`: what the loaded scheduler is doing.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use andante_daemon::{CyclesSeen, DoorSeen, SessionSeen, StatusSeen};
use andante_sched::doctor::Loaded;
use andante_sched::text::shown;
use andante_sched::{LearntRoom, Program, Sharing, Snapshot};
use andante_terminal::exit::{self, Refusal};
use andante_terminal::output::{self, BAD, BAR, BOLD, DIM, MEND, paint, percent};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::{contracts, memory};
use crate::network::{self, Look};
use crate::shares::{self, Row};
use crate::{live, tree};

/// Width of the bars [columns].
const BAR_WIDTH: usize = 20;

/// Show the class tree: weights, runnable tasks, shares asked and received; and the contracts.
///
/// ASKED is what the weights give a class while all of its siblings want to run; RECEIVED is what it
/// really got during the interval; both are shares of the whole machine. Of a class with a quota
/// (cpu.max) that is shown in CPUs, with the part of the interval that the class was throttled for, since
/// it had used it up; --json has the counts of cpu.stat too. What contracts were promised
/// and USED are shares of one CPU. JOBS are those that ended, from waking to sleeping; MISSED those
/// of them that were late; a dash stands where a task has run and never slept, and so has none; EXHAUSTED
/// counts budgets that were used up.
///
/// Reserved memory (`andante reserve --memory`) has a table of its own: what a class USED of it; of that PRIVATE pages of
/// files that it has read itself and ANON programs' own memory; SHARED are pages of files that others have read first,
/// which are held for it; FREE is kept free for it, and LENT what others have of it at most. WAITED is the part of the
/// time in which some program of it waited for memory.
///
/// Contracts of the network (`andante net reserve`) are among the others, for root; what they USED is what was sent by
/// them. Without `andante run` they are all that is shown.
///
/// No privilege is needed for the rest. Learnt contracts are shown of one's own threads; of all to root and the group andante.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  andante status
  andante status --interval 10 --all
  andante status --json | jq '.classes[] | {path, share_received}'")]
pub struct Status {
    /// How long to watch [s].
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    interval: f64,
    /// Show idle classes too, and all learnt contracts.
    #[arg(long, short)]
    all: bool,
    /// Print the data as JSON (all classes).
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    /// Whether Andante is in charge.
    loaded: bool,
    /// Length of the interval [s].
    interval_s: f64,
    /// CPUs that can run tasks.
    cpus: u32,
    /// Domains that they are divided into, each with a class tree under a lock of its own.
    domains: u32,
    /// Every class, in tree order.
    classes: &'a [Row],
    /// Cgroups that have no class of their own, for there is no room for it.
    sharing: Option<Sharing>,
    /// How full the places for learnt contracts are.
    learnt_room: Option<LearntRoom>,
    /// Learnt contracts that the caller may see; who used most comes first.
    learnt: &'a [contracts::LearntRow],
    /// What the scheduler has counted since it was loaded, by the names in `bpf/intf.h`.
    counters: &'a BTreeMap<String, u64>,
    /// Every contract, oldest first; none if nobody could be asked.
    contracts: Option<&'a [contracts::Row]>,
    #[serde(flatten)]
    network: &'a network::Contracts,
    /// Who came to ask for contracts since the scheduler was loaded, and who was turned away.
    door: Option<DoorSeen>,
    /// Sessions of applications; none if nobody could be asked.
    sessions: Option<&'a [SessionSeen]>,
    /// Memory, and what is reserved of it; none if nobody could be asked, or none can be.
    memory: Option<serde_json::Value>,
    /// What the kernel's verifier made of the scheduler.
    programs: Vec<Program>,
}

/// The JSON where Andante is not in charge.
#[derive(Serialize)]
struct NotLoaded<'a> {
    loaded: bool,
    #[serde(flatten)]
    network: &'a network::Contracts,
}

impl Status {
    /// Watches for an interval and prints what it saw.
    pub fn run(self) -> Result<exit::Status> {
        if let Err(refusal) = in_charge() {
            self.without_charge()?;
            return Err(refusal.into());
        }
        let (before, earlier, sent) = (live::status()?, contracts::list(), Look::now());
        thread::sleep(live::until_next(
            &before,
            Duration::from_secs_f64(self.interval),
        ));
        let network = network::Contracts::now(sent.as_ref())?;
        let (after, later) = (live::status()?, contracts::list());
        let (seen, learnt_before) = (before.seen.snapshot, before.learnt);
        let learnt_before = (seen.now_ns, &learnt_before[..]);
        let before = seen;
        let StatusSeen {
            seen,
            learnt: learnt_now,
            ..
        } = after;
        let (after, sharing, learnt_room) = (seen.snapshot, seen.sharing, seen.learnt_room);
        let learnt = contracts::learnt_between(Some(learnt_before), (after.now_ns, &learnt_now));
        let door = later.as_ref().map(|later| later.door);
        let sessions = later.as_ref().map(|later| later.sessions.clone());
        let memory = later.as_ref().and_then(|later| {
            let seen = later.memory.clone()?;
            let before = earlier.as_ref().and_then(|earlier| {
                let ns = later.now_ns.saturating_sub(earlier.now_ns);
                earlier.memory.as_ref().zip(Some(ns))
            });
            let rows = memory::rows(before, &seen);
            Some((seen, rows))
        });
        let contracts = later.map(|later| contracts::between(earlier.as_ref(), &later));
        let rows = shares::between(&before, &after);
        // On a busy machine we may wake later than asked.
        let interval_s = after.now_ns.saturating_sub(before.now_ns) as f64 / 1e9;
        if self.json {
            let report = Report {
                loaded: true,
                interval_s,
                cpus: after.cpus,
                domains: after.domains,
                classes: &rows,
                sharing,
                learnt_room,
                learnt: &learnt,
                counters: &seen.counters,
                contracts: contracts.as_deref(),
                network: &network,
                door,
                sessions: sessions.as_deref(),
                memory: (memory.as_ref())
                    .map(|(seen, rows)| memory::json(seen, rows))
                    .transpose()?,
                programs: andante_sched::programs(),
            };
            output::print_json(&report)?;
        } else {
            let mut text = render(&after, &rows, interval_s, self.all, output::columns());
            let of_classes = sharing.and_then(|sharing| sharing.warning());
            let of_learnt = learnt_room.and_then(|room| room.warning());
            for (cause, mend) in of_classes.into_iter().chain(of_learnt) {
                text += &format!(
                    "\n{} {}\n",
                    paint(BAD, cause),
                    paint(MEND, format!("→ {mend}"))
                );
            }
            let mut lines = contracts::lines(&contracts.unwrap_or_default());
            lines.extend(contracts::network_lines(network.all()));
            let shown = if self.all { learnt.len() } else { LEARNT_SHOWN };
            lines.extend(learnt.iter().take(shown).map(contracts::LearntRow::line));
            if !lines.is_empty() {
                text += &format!("\n{}", contracts::table(&lines, output::columns()));
            }
            if let Some(more) = learnt.len().checked_sub(shown).filter(|more| *more > 0) {
                let more =
                    format!("and {more} more learnt ones, which used less (--all shows them)");
                text += &format!("{}\n", paint(DIM, more));
            }
            if let Some((seen, rows)) = memory.filter(|(_, rows)| !rows.is_empty()) {
                let table = memory::table(&rows, output::columns());
                text += &format!("\n{table}{}", memory::notes(&seen));
            }
            if let Some(why) = network.unseen {
                text += &format!("\n{why}\n");
            }
            if let Some(sessions) = sessions.filter(|sessions| !sessions.is_empty()) {
                text += &format!("\n{}\n", in_session(&sessions));
            }
            if let Some(turned_away) = door.as_ref().and_then(turned_away) {
                text += &format!("\n{turned_away}\n");
            }
            output::print(&text)?;
        }
        Ok(exit::Status::Ok)
    }

    /// The network's contracts need no `andante run`: without it they are all that is shown.
    fn without_charge(&self) -> Result<()> {
        let network = network::Contracts::now(None)?;
        if self.json {
            return output::print_json(&NotLoaded {
                loaded: false,
                network: &network,
            });
        }
        output::print(&contracts::network_alone(&network))
    }
}

/// Refuses unless Andante is the scheduler in charge, with its classes.
pub fn in_charge() -> Result<(), Refusal> {
    let loaded = Loaded::find();
    if let Some(policy) = loaded.as_ref().and_then(Loaded::policy) {
        let message = format!(
            "the historical policy {} is in charge ({}), which knows no classes and no contracts: end \
             it, then `sudo andante run`",
            policy.name(),
            policy.summary(),
        );
        return Err(Refusal::new(exit::Status::NotLoaded, message));
    }
    match loaded {
        Some(loaded) if loaded.is_andante() => Ok(()),
        Some(other) => Err(Refusal::new(
            exit::Status::NotLoaded,
            format!(
                "the sched_ext scheduler {} is in charge, not Andante: end it, then `sudo andante run`",
                other.name
            ),
        )),
        None => Err(Refusal::new(
            exit::Status::NotLoaded,
            "Andante is not loaded, the stock scheduler is in charge: start it with `sudo andante run`",
        )),
    }
}

/// Reads a time between two looks [s].
pub fn interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.05..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds between 0.05 and 3600".into()),
    }
}

/// Learnt contracts that are shown without --all: a screen has room for as many.
const LEARNT_SHOWN: usize = 10;

/// Sessions that are told of by name; of more only how many there are.
const SESSIONS_NAMED: usize = 8;

/// The applications that say what they wait for.
fn in_session(sessions: &[SessionSeen]) -> String {
    let named = |session: &SessionSeen| {
        let name = session.name.as_deref().map_or_else(
            || format!("process {}", session.pid),
            |name| format!("{} ({})", shown(name), session.pid),
        );
        let threads = match session.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        let place = match session.foreground {
            Some(true) => ", in front",
            Some(false) => ", not in front",
            None => "",
        };
        let asked_by = session
            .asked_by
            .as_deref()
            .map_or(String::new(), |program| {
                format!(", by the word of {}", shown(program))
            });
        format!(
            "{name}, {}, {threads}{place}{}{asked_by}",
            session.role,
            cycles(session.cycles)
        )
    };
    let first: Vec<_> = sessions.iter().take(SESSIONS_NAMED).map(named).collect();
    let more = match sessions.len().saturating_sub(SESSIONS_NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("In session: {}{more}.", first.join("; "))
}

/// How a thread keeps its deadlines, by its own word.
fn cycles(of: Option<CyclesSeen>) -> String {
    let Some(seen) = of.filter(|seen| seen.begun > 0) else {
        return String::new();
    };
    let CyclesSeen { begun, late, .. } = seen;
    let worked_ms = seen.worked_ns as f64 / 1e6;
    format!(", {late} of {begun} cycles late, the last took {worked_ms:.1} ms")
}

/// Who was turned away at the daemon's socket, and why; none if nobody was.
fn turned_away(door: &DoorSeen) -> Option<String> {
    let refused = door.refused_open + door.refused_rate;
    if refused + door.let_go + door.delayed == 0 {
        return None;
    }
    Some(format!(
        "Of those who asked for contracts {refused} connections were refused ({} of users with too many open, \
         {} of users who came too often), {} closed, and {} requests delayed.",
        door.refused_open, door.refused_rate, door.let_go, door.delayed
    ))
}

/// Beside a name so much is taken by the figures [columns].
const FIGURES: usize = 44;

/// The classes as a tree. Beyond `most` columns, if any, bars are shorter, or none.
fn render(
    snapshot: &Snapshot,
    rows: &[Row],
    interval_s: f64,
    all: bool,
    most: Option<usize>,
) -> String {
    let shown: Vec<_> = rows
        .iter()
        .filter(|row| all || row.is_busy() || row.class.depth == 0)
        .collect();
    let depths: Vec<_> = shown.iter().map(|row| row.class.depth as usize).collect();
    let lines = tree::lines(&depths);
    let width = |(line, row): (&String, &&Row)| line.width() + row.name().width();
    let width = lines
        .iter()
        .zip(&shown)
        .map(width)
        .max()
        .unwrap_or(0)
        .max(5);
    let behind: Vec<_> = shown.iter().map(|row| behind(row)).collect();
    let widest = behind.iter().map(|text| text.width()).max().unwrap_or(0);
    let bars = most.map_or(BAR_WIDTH, |most| {
        most.saturating_sub(width + FIGURES + 2 + widest)
            .min(BAR_WIDTH)
    });
    let hidden = rows.len() - shown.len();
    let mut text = headline(snapshot, rows.len(), hidden);
    let (over, fits) = over(interval_s, most, width);
    if !fits {
        text += &format!("RECEIVED is {over}.\n");
    }
    let head = format!(
        "{:width$}  WEIGHT  RUNNING  QUEUED    ASKED  RECEIVED{}",
        "CLASS",
        if fits {
            format!("  ({over})")
        } else {
            String::new()
        }
    );
    text += &format!("\n{}\n", paint(DIM, head));
    for ((line, row), behind) in lines.iter().zip(&shown).zip(behind) {
        let pad = " ".repeat(width - line.width() - row.name().width());
        let class = &row.class;
        let weight = shares::weight(class);
        let bar = match output::bar(row.share_received, bars) {
            none if none.is_empty() => none,
            bar => paint(BAR, bar),
        };
        let figures = format!(
            "{}{}{pad}  {weight:>6}  {:>7}  {:>6}  {}   {}  {}{behind}",
            paint(DIM, line),
            row.name(),
            class.running,
            class.queued,
            percent(class.share_asked),
            percent(row.share_received),
            bar,
        );
        text += &format!("{}\n", figures.trim_end());
    }
    text
}

/// Of how much time the shares are, and whether that fits behind the titles.
fn over(interval_s: f64, most: Option<usize>, width: usize) -> (String, bool) {
    let over = format!("over {interval_s:.1} s");
    let needed = width + FIGURES + "  ()".len() + over.len();
    (over, most.is_none_or(|most| needed <= most))
}

/// Behind the bar: a quota and a policy, which most classes do not have.
fn behind(row: &Row) -> String {
    let quota = row.quota().map(|quota| format!("  {quota}"));
    let policy = row.class.policy.map(|policy| format!("  {policy}"));
    quota.unwrap_or_default() + &policy.unwrap_or_default()
}

fn headline(snapshot: &Snapshot, classes: usize, hidden: usize) -> String {
    let hidden = if hidden > 0 {
        format!(", {hidden} idle ones hidden")
    } else {
        String::new()
    };
    let cpus = if snapshot.cpus == 1 { "CPU" } else { "CPUs" };
    let domains = match snapshot.domains {
        1 => String::new(),
        domains => format!(" in {domains} domains"),
    };
    format!(
        "{} is in charge of {} {cpus}{domains}, {classes} classes{hidden}\n",
        paint(BOLD, "Andante"),
        snapshot.cpus,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::tests::class;

    fn drawn(all: bool) -> String {
        drawn_with("film", all, None)
    }

    fn drawn_below(name: &str, most: Option<usize>) -> String {
        drawn_with(name, false, most)
    }

    fn drawn_with(name: &str, all: bool, most: Option<usize>) -> String {
        let film = format!("/media/{name}");
        let classes = |used: u64| {
            vec![
                class("/", 100, used),
                class("/idle.slice", 100, 0),
                class("/media", 600, used),
                class(&film, 100, used),
            ]
        };
        let before = Snapshot {
            now_ns: 0,
            cpus: 1,
            domains: 1,
            classes: classes(0),
        };
        let after = Snapshot {
            now_ns: 1_000,
            cpus: 1,
            domains: 1,
            classes: classes(500),
        };
        let text = render(&after, &shares::between(&before, &after), 1.0, all, most);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn sessions_are_named_with_who_is_in_front_and_how_late_they_are() {
        let seen = SessionSeen {
            session: 7,
            pid: 100,
            uid: 1000,
            name: Some("tetris".to_owned()),
            role: "game".to_owned(),
            threads: 2,
            foreground: Some(false),
            promised: None,
            cycles: Some(CyclesSeen {
                begun: 300,
                late: 5,
                worked_ns: 9_140_000,
            }),
            asked_by: None,
        };
        let silent = SessionSeen {
            name: None,
            foreground: None,
            cycles: Some(CyclesSeen {
                begun: 0,
                late: 0,
                worked_ns: 0,
            }),
            asked_by: Some("andante-bus".to_owned()),
            ..seen.clone()
        };
        assert_eq!(
            in_session(&[seen, silent]),
            "In session: tetris (100), game, 2 threads, not in front, 5 of 300 cycles late, the last took 9.1 ms; \
             process 100, game, 2 threads, by the word of andante-bus."
        );
    }

    #[test]
    fn columns_are_aligned_and_idle_classes_hidden() {
        let text = drawn(false);
        assert!(text.contains("1 idle ones hidden"), "{text}");
        assert!(!text.contains("idle.slice"), "{text}");
        let rows: Vec<_> = text.lines().skip(2).collect();
        assert!(rows[2].starts_with("└─ media"), "{text}");
        assert!(rows[3].starts_with("   └─ film"), "{text}");
        let ends: Vec<_> = rows
            .iter()
            .filter_map(|row| row.split(" %").next())
            .collect();
        assert!(
            ends[1..].iter().all(|end| end.width() == ends[1].width()),
            "{text}"
        );
    }

    #[test]
    fn bars_take_what_names_and_quotas_leave_of_the_terminal() {
        for (name, lines) in [("film", 2), (&"f".repeat(14), 2), (&"f".repeat(24), 3)] {
            let text = drawn_below(name, Some(80));
            let classes = text.lines().skip_while(|line| !line.starts_with("CLASS"));
            assert_eq!(text.lines().count() - classes.count(), lines, "{text}");
            assert!(text.lines().all(|line| line.width() <= 80), "{text}");
            assert!(text.contains("over 1.0 s"), "{text}");
        }
        let bars = |most| drawn_below("film", most).matches('█').count();
        assert_eq!(bars(Some(80)), bars(None), "there is room");
        assert_eq!(bars(Some(56)), 0);
    }

    #[test]
    fn all_shows_idle_classes_too() {
        let text = drawn(true);
        assert!(text.contains("├─ idle.slice"), "{text}");
        assert!(!text.contains("hidden"), "{text}");
    }

    #[test]
    fn who_was_turned_away_is_counted() {
        assert_eq!(turned_away(&DoorSeen::default()), None);
        let door = DoorSeen {
            refused_open: 3,
            refused_rate: 4,
            ..DoorSeen::default()
        };
        let text = turned_away(&door).unwrap();
        assert!(text.contains("7 connections were refused (3 of"), "{text}");
    }

    #[test]
    fn intervals_have_bounds() {
        assert_eq!(interval("0.5"), Ok(0.5));
        for bad in ["0", "-1", "nan", "1e9", "x"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}
