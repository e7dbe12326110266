//! What `top` shows and what its keys change.

use std::collections::{HashMap, VecDeque};

use andante_daemon::List;
use andante_sched::Snapshot;
use andante_sched::class::{WEIGHT_MAX, WEIGHT_MIN};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::{contracts, memory};
use super::source::Seen;
use crate::shares::{self, Row};

/// How many intervals the share of a class is remembered.
pub const HISTORY: usize = 64;

/// What a key asks the outside to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing outside.
    None,
    /// Leave.
    Quit,
    /// Give a class a new weight.
    SetWeight {
        /// Path of the class.
        path: String,
        /// Its new weight.
        weight: u32,
    },
}

/// How siblings are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// By name.
    Name,
    /// The greatest share received first.
    Share,
    /// The longest queue first.
    Queue,
}

impl Sort {
    /// For the footer.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Share => "share",
            Self::Queue => "queue",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Name => Self::Share,
            Self::Share => Self::Queue,
            Self::Queue => Self::Name,
        }
    }
}

/// What a class is known by, see `Class::key`.
type Key = (u64, bool);

/// Everything on the screen.
pub struct State {
    title: String,
    latest: Option<Seen>,
    rows: Vec<Row>,
    contracts: Vec<contracts::Line>,
    /// Reserved memory, and what happened to it since the last look.
    memory: Vec<memory::Row>,
    /// The rates at which classes send [bytes/s]; none: no device is seen to be attached.
    sent: Option<HashMap<Key, u64>>,
    history: HashMap<Key, VecDeque<f64>>,
    selected: Option<Key>,
    sort: Sort,
    all: bool,
    paused: bool,
    ended: bool,
    message: Option<String>,
    /// First row on the screen; the picture keeps the selected row visible by moving it.
    pub scroll: usize,
}

impl State {
    /// Nothing seen yet.
    pub fn new(title: String) -> Self {
        Self {
            title,
            latest: None,
            rows: Vec::new(),
            contracts: Vec::new(),
            memory: Vec::new(),
            sent: None,
            history: HashMap::new(),
            selected: None,
            sort: Sort::Name,
            all: false,
            paused: false,
            ended: false,
            message: None,
            scroll: 0,
        }
    }

    /// Takes in the next look; none says that there will be no more.
    pub fn advance(&mut self, seen: Option<Seen>) {
        let Some(seen) = seen else {
            self.ended = true;
            return;
        };
        let snapshot = &seen.snapshot;
        let promised = |seen: &'_ Seen| seen.contracts.clone();
        let earlier = self.latest.as_ref().and_then(promised);
        self.contracts = match &seen.contracts {
            Some(list) => contracts::lines(&contracts::between(earlier.as_ref(), list)),
            None => Vec::new(),
        };
        self.memory = memory_rows(earlier.as_ref(), seen.contracts.as_ref());
        let of_network = network_lines(self.latest.as_ref(), &seen);
        self.contracts.extend(of_network);
        let learnt = contracts::learnt_between(
            self.latest
                .as_ref()
                .map(|seen| (seen.snapshot.now_ns, &seen.learnt[..])),
            (snapshot.now_ns, &seen.learnt),
        );
        self.contracts
            .extend(learnt.iter().map(contracts::LearntRow::line));
        self.sent = None;
        if let Some(before) = &self.latest {
            self.rows = shares::between(&before.snapshot, snapshot);
            let looks = seen.network.as_ref().zip(before.network.as_ref());
            self.sent = looks.map(|(now, before)| now.sent(before, &self.rows));
            self.history
                .retain(|id, _| snapshot.classes.iter().any(|class| class.key() == *id));
            for row in &self.rows {
                let history = self.history.entry(row.class.key()).or_default();
                history.push_back(row.share_received);
                if history.len() > HISTORY {
                    history.pop_front();
                }
            }
        }
        self.latest = Some(seen);
    }

    /// The contracts there are, promised ones first; of those that were learnt, first who uses most.
    pub fn contracts(&self) -> &[contracts::Line] {
        &self.contracts
    }

    /// Reserved memory.
    pub fn memory(&self) -> &[memory::Row] {
        &self.memory
    }

    /// Whether any device is seen to be attached.
    pub fn has_network(&self) -> bool {
        self.sent.is_some()
    }

    /// The rate at which the class of this row sends [bytes/s].
    pub fn sent(&self, row: &Row) -> u64 {
        let sent = self.sent.as_ref();
        let of = |sent: &HashMap<Key, u64>| sent.get(&row.class.key()).copied();
        sent.and_then(of).unwrap_or(0)
    }

    /// The rows to show, in the order to show them.
    pub fn rows(&self) -> Vec<&Row> {
        let mut shown = Vec::new();
        self.collect(0, self.rows.len(), &mut shown);
        shown
    }

    /// Appends the subtrees among `rows[from..to]`, sorted as siblings.
    fn collect<'a>(&'a self, from: usize, to: usize, shown: &mut Vec<&'a Row>) {
        let mut subtrees = Vec::new();
        let mut at = from;
        while at < to {
            let depth = self.rows[at].class.depth;
            let below = self.rows[at + 1..to].iter();
            let end = at + 1 + below.take_while(|row| row.class.depth > depth).count();
            subtrees.push((at, end));
            at = end;
        }
        match self.sort {
            Sort::Name => {}
            Sort::Share => subtrees.sort_by(|&(a, _), &(b, _)| {
                self.rows[b]
                    .share_received
                    .total_cmp(&self.rows[a].share_received)
            }),
            Sort::Queue => subtrees.sort_by_key(|&(at, _)| {
                std::cmp::Reverse(self.rows[at].class.queued + self.rows[at].class.running)
            }),
        }
        for (at, end) in subtrees {
            let row = &self.rows[at];
            // What a class does counts for its parents too, so an idle one hides no busy one.
            let busy =
                row.is_busy() || self.sent(row) > 0 || self.history(row).any(|share| share > 0.0);
            if self.all || busy || row.class.depth == 0 {
                shown.push(row);
                self.collect(at + 1, end, shown);
            }
        }
    }

    /// The shares a class received, oldest first.
    pub fn history(&self, row: &Row) -> impl DoubleEndedIterator<Item = f64> {
        self.history
            .get(&row.class.key())
            .into_iter()
            .flatten()
            .copied()
    }

    /// Where the selected class is in [`State::rows`].
    pub fn selected(&self) -> usize {
        let position = |id| self.rows().iter().position(|row| row.class.key() == id);
        self.selected.and_then(position).unwrap_or(0)
    }

    /// Whether time stands still.
    pub fn paused(&self) -> bool {
        self.paused || self.ended
    }

    /// The latest snapshot.
    pub fn latest(&self) -> Option<&Snapshot> {
        self.latest.as_ref().map(|seen| &seen.snapshot)
    }

    /// The headline's right end: what is watched, and whether time stands still.
    pub fn title(&self) -> String {
        match (self.ended, self.paused) {
            (true, _) => format!("{}, at its end", self.title),
            (false, true) => format!("{}, paused", self.title),
            (false, false) => self.title.clone(),
        }
    }

    /// How siblings are ordered.
    pub fn sort(&self) -> Sort {
        self.sort
    }

    /// What happened last, until the next key.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Shows a message.
    pub fn tell(&mut self, message: String) {
        self.message = Some(message);
    }

    /// Answers a key.
    pub fn press(&mut self, key: KeyEvent) -> Action {
        self.message = None;
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Action::Quit;
            }
            KeyCode::Char('q') | KeyCode::Esc => return Action::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::PageUp => self.select(-10),
            KeyCode::PageDown => self.select(10),
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('a') => self.all = !self.all,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('+' | '=') => return self.weigh(heavier),
            KeyCode::Char('-') => return self.weigh(lighter),
            _ => {}
        }
        Action::None
    }

    fn select(&mut self, by: isize) {
        let (at, rows) = (self.selected(), self.rows());
        let Some(last) = rows.len().checked_sub(1) else {
            return;
        };
        let id = rows[at.saturating_add_signed(by).min(last)].class.key();
        self.selected = Some(id);
    }

    fn weigh(&mut self, change: fn(u32) -> u32) -> Action {
        let at = self.selected();
        let Some((id, path, weight)) = self.rows().get(at).map(|row| {
            (
                row.class.key(),
                row.class.path.clone(),
                change(row.class.weight),
            )
        }) else {
            return Action::None;
        };
        if path == "/" {
            self.tell("the root competes with nobody and has no weight".into());
            return Action::None;
        }
        // Shown at once, so that the next key press starts from it.
        let rows = self.rows.iter_mut().filter(|row| row.class.key() == id);
        rows.for_each(|row| row.class.weight = weight);
        Action::SetWeight { path, weight }
    }
}

/// Reserved memory, with all that happened since the look before.
fn memory_rows(before: Option<&List>, now: Option<&List>) -> Vec<memory::Row> {
    let Some((list, seen)) = now.and_then(|list| Some((list, list.memory.as_ref()?))) else {
        return Vec::new();
    };
    let before = before.and_then(|before| {
        let ns = list.now_ns.saturating_sub(before.now_ns);
        before.memory.as_ref().zip(Some(ns))
    });
    memory::rows(before, seen)
}

/// The contracts of the network; classes have the paths that the CPU's have.
fn network_lines(before: Option<&Seen>, seen: &Seen) -> Vec<contracts::Line> {
    let path = |id| {
        let classes = seen.snapshot.classes.iter();
        let mut of = classes.filter(|class| class.cgroup_id == id);
        of.next().map(|class| class.path.clone())
    };
    let Some(now) = &seen.network else {
        return Vec::new();
    };
    let before = before.and_then(|before| before.network.as_ref());
    contracts::network_lines(&now.contracts(before, path))
}

/// A tenth more, at least one.
fn heavier(weight: u32) -> u32 {
    (weight + (weight / 10).max(1)).min(WEIGHT_MAX)
}

/// A tenth less, at least one.
fn lighter(weight: u32) -> u32 {
    weight.saturating_sub((weight / 10).max(1)).max(WEIGHT_MIN)
}

#[cfg(test)]
pub mod tests {
    use andante_sched::Class;

    use super::*;
    use crate::commands::contracts::tests::list;
    use crate::network::tests::look;
    use crate::shares::tests::class;

    fn seen(now_ns: u64, classes: Vec<Class>) -> Seen {
        Seen {
            snapshot: Snapshot {
                now_ns,
                cpus: 1,
                domains: 1,
                classes,
            },
            contracts: None,
            learnt: Vec::new(),
            network: None,
        }
    }

    /// The same with a device that `/a` and `/a/x` send by, and a contract of `/a` there.
    pub fn state_with_network() -> State {
        let mut state = state();
        for now_ns in [8_000, 12_000] {
            let classes = ["/", "/a", "/a/x"].map(|path| class(path, 100, now_ns));
            let mut seen = seen(now_ns, classes.into());
            seen.network = Some(look(now_ns, now_ns));
            state.advance(Some(seen));
        }
        state
    }

    /// The same with so many contracts of the network, in classes far down in the tree.
    pub fn state_with_contracts(number: u64) -> State {
        let mut state = state();
        for now_ns in [1_000_000_000, 2_000_000_000] {
            let paths = (0..number).map(|n| format!("/user.slice/user-1000.slice/call{n}"));
            let mut classes = vec![class("/", 100, now_ns)];
            classes.extend(paths.map(|path| class(&path, 100, 0)));
            let mut look = look(now_ns, now_ns / 1000);
            let [.., promised] = &look.devices[0].classes[..] else {
                panic!("no class");
            };
            let of = |class: &Class| andante_net::Class {
                cgroup_id: class.cgroup_id,
                ..promised.clone()
            };
            look.devices[0].classes = classes[1..].iter().map(of).collect();
            let mut seen = seen(now_ns, classes);
            seen.network = Some(look);
            state.advance(Some(seen));
        }
        state
    }

    /// The same with a contract that has used a quarter of a CPU since.
    pub fn state_with_contract() -> State {
        let mut state = state();
        for now_ns in [8_000, 12_000] {
            let mut seen = seen(now_ns, vec![class("/", 100, now_ns)]);
            seen.contracts = Some(list(now_ns, now_ns / 4));
            state.advance(Some(seen));
        }
        state
    }

    /// Two snapshots of a machine on which `/b` got three times what `/a` got.
    pub fn state() -> State {
        let classes = |used: u64| {
            let mut all = vec![
                class("/", 100, 4 * used),
                class("/a", 100, used),
                class("/a/x", 100, used),
                class("/b", 300, 3 * used),
                class("/idle", 100, 0),
            ];
            all[0].queued = 5;
            all[1].queued = 5;
            all[1].share_asked = 0.25;
            all[2].share_asked = 0.25;
            all[3].share_asked = 0.75;
            all
        };
        let mut state = State::new("test".into());
        state.advance(Some(seen(0, classes(0))));
        state.advance(Some(seen(4_000, classes(1_000))));
        state
    }

    fn press(state: &mut State, key: char) -> Action {
        state.press(KeyEvent::from(KeyCode::Char(key)))
    }

    fn paths(state: &State) -> Vec<&str> {
        state
            .rows()
            .iter()
            .map(|row| row.class.path.as_str())
            .collect()
    }

    #[test]
    fn idle_classes_are_hidden_until_asked_for() {
        let mut state = state();
        assert_eq!(paths(&state), ["/", "/a", "/a/x", "/b"]);
        press(&mut state, 'a');
        assert_eq!(paths(&state), ["/", "/a", "/a/x", "/b", "/idle"]);
    }

    #[test]
    fn sorting_moves_whole_subtrees() {
        let mut state = state();
        press(&mut state, 's');
        assert_eq!(paths(&state), ["/", "/b", "/a", "/a/x"], "by share");
        press(&mut state, 's');
        assert_eq!(paths(&state), ["/", "/a", "/a/x", "/b"], "by queue");
    }

    #[test]
    fn the_selection_stays_with_its_class_and_within_the_rows() {
        let mut state = state();
        press(&mut state, 'k');
        assert_eq!(state.selected(), 0);
        press(&mut state, 'j');
        press(&mut state, 's');
        assert_eq!(state.rows()[state.selected()].class.path, "/a");
        (0..9).for_each(|_| drop(press(&mut state, 'j')));
        assert_eq!(state.selected(), 3);
    }

    #[test]
    fn weights_change_by_a_tenth_within_their_range() {
        let mut state = state();
        assert_eq!(press(&mut state, '+'), Action::None, "the root has none");
        press(&mut state, 'j');
        let set = |weight| Action::SetWeight {
            path: "/a".into(),
            weight,
        };
        assert_eq!(press(&mut state, '+'), set(110));
        assert_eq!(press(&mut state, '+'), set(121));
        assert_eq!(press(&mut state, '-'), set(109));
        assert_eq!(
            (heavier(1), lighter(1), heavier(WEIGHT_MAX)),
            (2, 1, WEIGHT_MAX)
        );
    }

    #[test]
    fn a_class_that_goes_takes_its_history_along() {
        let mut state = state();
        assert_eq!(state.history(&state.rows[3]).collect::<Vec<_>>(), [0.75]);
        let classes = vec![class("/", 100, 4_000)];
        state.advance(Some(seen(8_000, classes)));
        assert_eq!(state.history.len(), 1);
        assert_eq!(state.selected(), 0);
    }
}
