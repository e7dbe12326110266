//! Showing how far the runs are: bars on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A phase that takes less than this needs no word.
const WORTH_A_WORD: Duration = Duration::from_secs(2);
/// Plain lines say something about a run that goes on at least this often.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);
/// Parts of the whole of which plain lines tell.
const PARTS: usize = 10;

/// What a run says about how far it is.
#[derive(Debug, Clone, PartialEq)]
pub struct At {
    /// What is being done.
    pub phase: String,
    /// Seconds of the measurement passed; negative in the warm-up.
    pub at_s: Option<f64>,
}

impl At {
    /// Being busy with `phase`, outside the measurement.
    pub fn phase(phase: impl Into<String>) -> Self {
        Self {
            phase: phase.into(),
            at_s: None,
        }
    }
}

/// Where a laboratory reports to while it works.
pub trait Progress {
    /// Something is being prepared, before any run.
    fn preparing(&mut self, what: &str);
    /// The runs that will be carried out, by name.
    fn runs(&mut self, names: &[String]);
    /// How far the run `index` is in a measurement of `duration_s`.
    fn run(&mut self, index: usize, at: &At, duration_s: f64);
    /// The run `index` is over.
    fn ended(&mut self, index: usize, outcome: &str);
    /// Called at least once a second, for signs of life.
    fn tick(&mut self);
}

/// The right way to show progress on standard error.
pub fn on_stderr() -> Box<dyn Progress> {
    if stderr().is_terminal() {
        Box::new(Bars::default())
    } else {
        Box::new(Lines::default())
    }
}

/// Shows nothing.
pub struct Silent;

impl Progress for Silent {
    fn preparing(&mut self, _: &str) {}
    fn runs(&mut self, _: &[String]) {}
    fn run(&mut self, _: usize, _: &At, _: f64) {}
    fn ended(&mut self, _: usize, _: &str) {}
    fn tick(&mut self) {}
}

/// `measuring 3.5 of 12.5 s`.
pub fn phrase(at: &At, duration_s: f64) -> String {
    match at.at_s {
        Some(at_s) if at_s < 0.0 => format!("{}, {:.0} s to go", at.phase, -at_s),
        Some(at_s) if at_s <= duration_s => {
            format!("{} {at_s:.1} of {duration_s:.1} s", at.phase)
        }
        Some(at_s) => format!("{} {at_s:.1} s", at.phase),
        None => at.phase.clone(),
    }
}

/// One bar per run.
#[derive(Default)]
struct Bars {
    all: MultiProgress,
    bars: Vec<ProgressBar>,
}

impl Progress for Bars {
    fn preparing(&mut self, what: &str) {
        let _ = self.all.println(what);
    }

    fn runs(&mut self, names: &[String]) {
        let width = names.iter().map(String::len).max().unwrap_or(0);
        let template =
            format!("{{spinner}} {{prefix:{width}}} [{{bar:30}}] {{elapsed:>4}} {{msg}}");
        let style = ProgressStyle::with_template(&template).expect("a valid template");
        for name in names {
            let bar = self
                .all
                .add(ProgressBar::new(1000).with_style(style.clone()));
            bar.set_prefix(name.clone());
            bar.set_message("waiting");
            self.bars.push(bar);
        }
    }

    fn run(&mut self, index: usize, at: &At, duration_s: f64) {
        let bar = &self.bars[index];
        if bar.position() == 0 {
            bar.reset_elapsed();
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        let done = at
            .at_s
            .map_or(0.0, |at_s| (at_s / duration_s).clamp(0.0, 1.0));
        bar.set_position(bar.position().max((done * 1000.0) as u64).max(1));
        bar.set_message(phrase(at, duration_s));
    }

    fn ended(&mut self, index: usize, outcome: &str) {
        self.bars[index].set_position(1000);
        self.bars[index].abandon_with_message(outcome.to_owned());
    }

    fn tick(&mut self) {}
}

/// Plain lines, each for something that has changed: for logs, which are read later.
struct Lines {
    begun: Instant,
    /// The preparation that was told of last.
    prepared: String,
    names: Vec<String>,
    /// Each run that is under way.
    now: Vec<Option<UnderWay>>,
}

/// A run that is under way, and what has been said of it.
#[derive(Debug, Clone, PartialEq)]
struct UnderWay {
    at: At,
    duration_s: f64,
    /// The last line, or the beginning of the run [since the laboratory began].
    told: Duration,
    /// That line's content: the phase, and how many tenths of the measurement were over.
    said: Option<(String, usize)>,
}

impl UnderWay {
    /// The line that is due, if one is.
    fn line(&mut self, now: Duration) -> Option<String> {
        let passed = now.saturating_sub(self.told);
        let tenths = self.at.at_s.map_or(0, |at_s| {
            (at_s / self.duration_s.max(f64::MIN_POSITIVE) * PARTS as f64).clamp(0.0, PARTS as f64)
                as usize
        });
        let is = (self.at.phase.clone(), tenths);
        let changed = self.said.as_ref() != Some(&is);
        if !(changed && passed >= WORTH_A_WORD || passed >= SIGN_OF_LIFE) {
            return None;
        }
        let mut line = phrase(&self.at, self.duration_s);
        if !changed && self.at.at_s.is_none() {
            line += &format!(", still ({} s)", passed.as_secs());
        }
        (self.told, self.said) = (now, Some(is));
        Some(line)
    }
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            prepared: String::new(),
            names: Vec::new(),
            now: Vec::new(),
        }
    }
}

impl Progress for Lines {
    fn preparing(&mut self, what: &str) {
        if self.prepared != what {
            eprintln!("{what}");
            what.clone_into(&mut self.prepared);
        }
    }

    fn runs(&mut self, names: &[String]) {
        self.names = names.to_vec();
        self.now = vec![None; names.len()];
    }

    fn run(&mut self, index: usize, at: &At, duration_s: f64) {
        let told = self.begun.elapsed();
        let run = self.now[index].get_or_insert_with(|| UnderWay {
            at: at.clone(),
            duration_s,
            told,
            said: None,
        });
        (run.at, run.duration_s) = (at.clone(), duration_s);
        self.tick();
    }

    fn ended(&mut self, index: usize, outcome: &str) {
        self.now[index] = None;
        eprintln!("{}: {outcome}", self.names[index]);
    }

    fn tick(&mut self) {
        let now = self.begun.elapsed();
        for (name, run) in self.names.iter().zip(&mut self.now) {
            if let Some(line) = run.as_mut().and_then(|run| run.line(now)) {
                eprintln!("{name}: {line}");
            }
        }
    }
}

/// Shows how many of many short pieces of work are done, once that takes longer than two seconds.
pub struct Count {
    bar: Option<ProgressBar>,
    all: usize,
    done: usize,
    now: String,
    begun: Instant,
    /// When a plain line was written last, and how many were done then.
    said: Option<(Instant, usize)>,
}

/// Whether a plain line about `done` of `all` is due, so long after the last one, of which `said` were done.
fn is_due(passed: Duration, (said, done, all): (Option<usize>, usize, usize)) -> bool {
    let tenth = |done: usize| done * PARTS / all.max(1);
    let changed = match said {
        None => true,
        Some(said) => tenth(said) != tenth(done),
    };
    changed && passed >= WORTH_A_WORD || passed >= SIGN_OF_LIFE
}

impl Count {
    /// A bar if standard error is a terminal, else plain lines.
    pub fn on_stderr() -> Self {
        let bar = || {
            let style = ProgressStyle::with_template("{spinner} [{bar:30}] {pos} of {len}  {msg}");
            ProgressBar::hidden().with_style(style.expect("a valid template"))
        };
        Self {
            bar: stderr().is_terminal().then(bar),
            all: 0,
            done: 0,
            now: String::new(),
            begun: Instant::now(),
            said: None,
        }
    }

    /// There are so many.
    pub fn begins(&mut self, all: usize) {
        (self.all, self.done, self.begun) = (all, 0, Instant::now());
        if let Some(bar) = &self.bar {
            bar.set_length(all as u64);
        }
    }

    /// One of them, of this name, begins.
    pub fn at(&mut self, name: &str) {
        self.now = name.to_owned();
        if let Some(bar) = &self.bar {
            bar.set_message(self.now.clone());
        }
        self.tick();
    }

    /// One is done.
    pub fn done(&mut self) {
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
        self.tick();
    }

    /// Called at least once a second, for signs of life.
    pub fn tick(&mut self) {
        let (since, said) = match self.said {
            None => (self.begun, None),
            Some((since, done)) => (since, Some(done)),
        };
        match &self.bar {
            Some(bar) if bar.is_hidden() && since.elapsed() > WORTH_A_WORD => {
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(Duration::from_millis(500));
            }
            Some(_) => {}
            None if is_due(since.elapsed(), (said, self.done, self.all)) => {
                eprintln!("{} of {} done; {}", self.done, self.all, self.now);
                self.said = Some((Instant::now(), self.done));
            }
            None => {}
        }
    }

    /// All are done.
    pub fn ends(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Many runs, of which only the number is of interest.
pub struct Many {
    count: Count,
    names: Vec<String>,
}

impl Many {
    /// On standard error.
    pub fn on_stderr() -> Self {
        Self {
            count: Count::on_stderr(),
            names: Vec::new(),
        }
    }
}

impl Progress for Many {
    fn preparing(&mut self, what: &str) {
        self.count.now = what.to_owned();
        self.count.tick();
    }

    fn runs(&mut self, names: &[String]) {
        self.names = names.to_vec();
        self.count.begins(names.len());
    }

    fn run(&mut self, index: usize, _: &At, _: f64) {
        self.count.at(&self.names[index]);
    }

    fn ended(&mut self, _: usize, _: &str) {
        self.count.done();
        if self.count.done == self.count.all {
            self.count.ends();
        }
    }

    fn tick(&mut self) {
        self.count.tick();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a run of 100 s that is asked about every second.
    #[test]
    fn plain_lines_tell_of_changes_and_of_nothing_twice() {
        let mut run = UnderWay {
            at: At::phase("booting"),
            duration_s: 100.0,
            told: Duration::ZERO,
            said: None,
        };
        let mut lines = Vec::new();
        for second in 0..180_u32 {
            if second >= 75 {
                run.at = At {
                    phase: "measuring".to_owned(),
                    at_s: Some(f64::from(second) - 75.0),
                };
            }
            lines.extend(run.line(Duration::from_secs(second.into())));
        }
        assert_eq!(lines[0], "booting");
        assert_eq!(lines[1], "booting, still (30 s)");
        assert_eq!(lines[3], "measuring 0.0 of 100.0 s");
        assert_eq!(lines[4], "measuring 10.0 of 100.0 s");
        // Three of the boot, and one for each tenth, the first and the last included.
        assert_eq!(lines.len(), 3 + 11, "{lines:?}");
        let mut once = lines.clone();
        once.dedup();
        assert_eq!(
            once.len() + 1,
            lines.len(),
            "only the sign of life: {lines:?}"
        );
    }

    #[test]
    fn many_short_pieces_are_told_of_by_tenths() {
        let mut said: Vec<(u64, usize)> = Vec::new();
        let mut last = (0, None);
        // Three a second, of a thousand.
        for second in 0..330 {
            let done = second as usize * 3;
            let passed = Duration::from_secs(second - last.0);
            if is_due(passed, (last.1, done, 1000)) {
                said.push((second, done));
                last = (second, Some(done));
            }
        }
        assert_eq!(said[0], (2, 6));
        let tenths = said
            .windows(2)
            .filter(|pair| pair[0].1 / 100 != pair[1].1 / 100);
        assert_eq!(tenths.count(), 9);
        assert!(said.windows(2).all(|pair| pair[1].0 - pair[0].0 <= 30));
        assert!(said.len() <= 22, "{said:?}");
    }

    #[test]
    fn phrases_tell_warm_up_measurement_and_overtime_apart() {
        let at = |phase: &str, at_s| At {
            phase: phase.into(),
            at_s,
        };
        assert_eq!(phrase(&at("booting", None), 10.0), "booting");
        assert_eq!(
            phrase(&at("warming up", Some(-3.2)), 10.0),
            "warming up, 3 s to go"
        );
        assert_eq!(
            phrase(&at("measuring", Some(2.5)), 10.0),
            "measuring 2.5 of 10.0 s"
        );
        assert_eq!(phrase(&at("waiting", Some(12.0)), 10.0), "waiting 12.0 s");
    }
}
