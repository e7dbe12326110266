//! Where `top` gets its snapshots from: the loaded scheduler, or a recording of it.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

use andante_daemon::{LearntSeen, List, StatusSeen};
use andante_sched::Snapshot;
use andante_sched::class::{ClassPath, Tree};
use andante_terminal::exit::{Refusal, Status};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::super::contracts;
use crate::live;
use crate::network::Look;

/// What is seen at one look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The classes.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// The contracts, where anybody could be asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contracts: Option<List>,
    /// Those that were learnt, as far as this user may see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learnt: Vec<LearntSeen>,
    /// The network's devices, where any is attached and this user may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Look>,
}

/// Something that can be watched.
pub trait Source {
    /// The next look; none when there will be no more.
    fn next(&mut self) -> Result<Option<Seen>>;
    /// Gives a class a new weight.
    fn set_weight(&mut self, path: &str, weight: u32) -> Result<()>;
    /// What is being watched, for the headline.
    fn title(&self) -> String;
    /// How long to wait for the next snapshot, given what the user asked for.
    fn pace(&self, asked: Duration) -> Duration {
        asked
    }
}

/// The scheduler of this machine.
pub struct Live {
    tree: Tree,
    /// For how long the last look stands.
    stands: Duration,
}

impl Live {
    /// Watches the loaded scheduler.
    pub fn open() -> Result<Self> {
        Ok(Self {
            tree: Tree::open()?,
            stands: Duration::ZERO,
        })
    }
}

impl Source for Live {
    fn next(&mut self) -> Result<Option<Seen>> {
        let looked = live::status()?;
        self.stands = live::until_next(&looked, Duration::ZERO);
        let StatusSeen { seen, learnt, .. } = looked;
        Ok(Some(Seen {
            snapshot: seen.snapshot,
            contracts: contracts::list(),
            learnt,
            network: Look::now(),
        }))
    }

    fn set_weight(&mut self, path: &str, weight: u32) -> Result<()> {
        Ok(self
            .tree
            .set_weight(&ClassPath::parse(path)?, i64::from(weight))?)
    }

    fn title(&self) -> String {
        "andante".into()
    }

    fn pace(&self, asked: Duration) -> Duration {
        asked.max(self.stands)
    }
}

/// Another source whose snapshots are kept in a file.
pub struct Recorder<S> {
    source: S,
    file: File,
}

impl<S: Source> Recorder<S> {
    /// Appends to `file`.
    pub fn new(source: S, file: &Path) -> Result<Self> {
        let opened = OpenOptions::new().create(true).append(true).open(file);
        let file = opened.with_context(|| format!("could not write {}", file.display()))?;
        Ok(Self { source, file })
    }
}

impl<S: Source> Source for Recorder<S> {
    fn next(&mut self) -> Result<Option<Seen>> {
        let snapshot = self.source.next()?;
        if let Some(snapshot) = &snapshot {
            // One write per line: a recording that is cut short ends with a whole line.
            let line = serde_json::to_string(snapshot)? + "\n";
            self.file
                .write_all(line.as_bytes())
                .context("could not write the recording")?;
        }
        Ok(snapshot)
    }

    fn set_weight(&mut self, path: &str, weight: u32) -> Result<()> {
        self.source.set_weight(path, weight)
    }

    fn title(&self) -> String {
        format!("{}, recording", self.source.title())
    }

    fn pace(&self, asked: Duration) -> Duration {
        self.source.pace(asked)
    }
}

/// A recording, played at the speed it was made.
#[derive(Debug)]
pub struct Replay {
    snapshots: VecDeque<Seen>,
    /// When the last snapshot handed out was taken [ns].
    last_ns: Option<u64>,
}

impl Replay {
    /// Reads a recording.
    pub fn open(file: &Path) -> Result<Self> {
        let name = file.display();
        let opened = File::open(file).with_context(|| format!("could not read {name}"))?;
        let mut snapshots = VecDeque::new();
        for (number, line) in BufReader::new(opened).lines().enumerate() {
            let line = line.with_context(|| format!("could not read {name}"))?;
            let snapshot = serde_json::from_str(&line)
                .with_context(|| format!("{name}, line {} is no snapshot", number + 1))?;
            snapshots.push_back(snapshot);
        }
        if snapshots.len() < 2 {
            let message = format!("{name} holds fewer than two snapshots: record for longer");
            return Err(Refusal::new(Status::Usage, message).into());
        }
        Ok(Self {
            snapshots,
            last_ns: None,
        })
    }
}

impl Source for Replay {
    fn next(&mut self) -> Result<Option<Seen>> {
        let next = self.snapshots.pop_front();
        if let Some(snapshot) = &next {
            self.last_ns = Some(snapshot.snapshot.now_ns);
        }
        Ok(next)
    }

    fn set_weight(&mut self, _: &str, _: u32) -> Result<()> {
        bail!("a recording cannot be changed")
    }

    fn title(&self) -> String {
        "recording".into()
    }

    fn pace(&self, asked: Duration) -> Duration {
        match (self.last_ns, self.snapshots.front()) {
            (Some(last_ns), Some(next)) => {
                Duration::from_nanos(next.snapshot.now_ns.saturating_sub(last_ns)).min(asked)
            }
            _ => asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::contracts::tests::list;
    use crate::network::tests::look;
    use crate::shares::tests::class;

    /// A source that counts up.
    struct Counter(u64);

    impl Source for Counter {
        fn next(&mut self) -> Result<Option<Seen>> {
            self.0 += 1_000_000;
            let snapshot = Snapshot {
                now_ns: self.0,
                cpus: 1,
                domains: 1,
                classes: vec![class("/", 100, self.0)],
            };
            Ok(Some(Seen {
                snapshot,
                contracts: Some(list(self.0, self.0 / 2)),
                learnt: Vec::new(),
                network: Some(look(self.0, self.0)),
            }))
        }
        fn set_weight(&mut self, _: &str, _: u32) -> Result<()> {
            Ok(())
        }
        fn title(&self) -> String {
            "counter".into()
        }
    }

    #[test]
    fn a_recording_plays_back_what_was_seen_at_its_own_pace() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut recorder = Recorder::new(Counter(0), file.path()).unwrap();
        let seen = [recorder.next().unwrap(), recorder.next().unwrap()];
        let mut replay = Replay::open(file.path()).unwrap();
        assert_eq!(replay.next().unwrap(), seen[0]);
        assert_eq!(
            replay.pace(Duration::from_secs(1)),
            Duration::from_millis(1)
        );
        assert_eq!(replay.next().unwrap(), seen[1]);
        assert_eq!(replay.next().unwrap(), None);
        assert!(replay.set_weight("/a", 1).is_err());
    }

    #[test]
    fn a_damaged_recording_names_its_line() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "{{\"now_ns\":1,\"cpus\":1,\"classes\":[]}}\nnonsense").unwrap();
        let error = Replay::open(file.path()).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
