// SPDX-License-Identifier: GPL-2.0
//! Programs of several users on a machine and a kernel that are made up.

use andante_session::{Cycle, Offer, Request, Role, Wish};

use super::*;
use crate::books::Caller;
use crate::books::fakes::{MS, ROOT, World};
use crate::sessions::{Sinks, answer};

/// Programs, each with a session in which one thread takes part.
struct Programs {
    world: World,
    sinks: Sinks,
    number: u32,
    of: Vec<(Option<Session>, Peer)>,
}

fn user(uid: u32) -> Caller {
    Caller {
        uid,
        account: uid,
        privileged: false,
    }
}

impl Programs {
    fn new(cpus: u32) -> Self {
        Self {
            world: World::new(cpus),
            sinks: Sinks::default(),
            number: 0,
            of: Vec::new(),
        }
    }

    /// One more, of this user; its number.
    fn open(&mut self, caller: Caller) -> usize {
        let at = self.of.len();
        let pid = 100 + i32::try_from(at).unwrap();
        self.world.host.process(pid, "game", &[]);
        self.of.push((None, Peer { caller, pid }));
        self.ask(at, Request::Open(Wish::new(Role::Game, Cycle::default())));
        self.ask(
            at,
            Request::Join {
                thread: pid,
                cycle: None,
            },
        );
        at
    }

    fn ask(&mut self, at: usize, request: Request) -> Answer {
        let (session, peer) = &mut self.of[at];
        let mut with = Answering {
            books: &mut self.world.books,
            host: &self.world.host,
            kernel: &mut self.world.kernel,
            peer: *peer,
            number: &mut self.number,
            sinks: &mut self.sinks,
            passed: None,
            others: [0; 2],
        };
        let answer = answer(session, Ok(request), &mut with).0;
        assert!(!matches!(answer, Answer::Error(_)), "{answer:?}");
        answer
    }

    /// So much of every 10 ms is asked for.
    fn promise(&mut self, at: usize, budget_ms: u64) -> Answer {
        let terms = Terms {
            budget_ns: budget_ms * MS,
            period_ns: 10 * MS,
            deadline_ns: None,
            losses: 0,
            window: 0,
        };
        self.ask(at, Request::Promise { terms })
    }

    fn granted(&mut self, at: usize, budget_ms: u64) {
        let answer = self.promise(at, budget_ms);
        assert!(matches!(answer, Answer::Granted(_)), "{answer:?}");
    }

    fn refused(&mut self, at: usize, budget_ms: u64) -> Offer {
        match self.promise(at, budget_ms) {
            Answer::Offer(offer) => offer,
            answer => panic!("{answer:?}"),
        }
    }

    fn foreground(&mut self, at: usize, on: bool) {
        self.ask(at, Request::Foreground { on });
    }

    fn notice(&mut self, at: usize) -> Option<Notice> {
        let live = self.world.kernel.contracts();
        let (session, peer) = &mut self.of[at];
        let session = session.as_mut().unwrap();
        session.notice(&mut self.world.books, &live, *peer)
    }

    /// What each is promised of every 10 ms [ms].
    fn promised(&mut self) -> Vec<u64> {
        let list = self.world.list();
        let of = self.of.iter().map(|(_, peer)| {
            let held = list
                .contracts
                .iter()
                .find(|one| one.holder.holder == crate::protocol::Holder::Session(peer.pid));
            held.map_or(0, |held| held.terms.budget_ns / MS)
        });
        of.collect()
    }
}

#[test]
fn what_is_behind_gives_way_to_what_is_in_front() {
    let mut programs = Programs::new(4); // whose sessions may be promised 1.6 CPUs
    let [old, sound, new] = [(); 3].map(|()| programs.open(user(1000)));
    programs.granted(old, 8);
    programs.granted(sound, 1);
    let offer = programs.refused(new, 8);
    assert!(
        offer.reason.contains("160.0 % of a CPU"),
        "{}",
        offer.reason
    );
    assert!(offer.reason.contains("--session-quota"), "{}", offer.reason);
    assert_eq!(offer.terms.unwrap().budget_ns, 7 * MS);
    // Whoever looks elsewhere has not lost it yet.
    programs.foreground(old, false);
    assert_eq!(programs.notice(old), None);
    assert_eq!(programs.promised(), [8, 1, 0]);
    programs.foreground(new, true);
    programs.granted(new, 8);
    assert_eq!(programs.promised(), [0, 1, 8]);
    let Some(Notice::Ended { reason }) = programs.notice(old) else {
        panic!("it is not told");
    };
    assert!(reason.contains("in front"), "{reason}");
    assert_eq!([programs.notice(old), programs.notice(new)], [None, None]);
    // Looking back it asks again, and has it when the other is behind.
    programs.foreground(old, true);
    programs.refused(old, 8);
    programs.foreground(new, false);
    programs.granted(old, 8);
    assert_eq!(programs.promised(), [8, 1, 0]);
    assert_eq!(programs.world.kernel.made.len(), 2);
}

#[test]
fn nobody_gives_way_for_nothing_or_to_others() {
    let mut programs = Programs::new(4);
    let [first, second] = [(); 2].map(|()| programs.open(user(1000)));
    let other = programs.open(user(1001));
    programs.granted(first, 7);
    programs.granted(second, 7);
    programs.foreground(first, false);
    programs.foreground(second, false);
    // No CPU has room for that, and all users together have no more left than 0.2.
    let big = programs.open(user(1000));
    programs.refused(big, 9);
    programs.refused(other, 3);
    assert_eq!(programs.promised(), [7, 7, 0, 0]);
    assert_eq!(
        [programs.notice(first), programs.notice(second)],
        [None, None]
    );
    // One is enough.
    programs.granted(big, 5);
    assert_eq!(programs.promised(), [0, 7, 0, 5]);
    assert_eq!(programs.notice(second), None);
}

#[test]
fn behind_there_is_what_a_user_could_reserve() {
    let mut programs = Programs::new(4); // of which 0.4
    let [one, other] = [(); 2].map(|()| programs.open(user(1000)));
    programs.foreground(one, false);
    let offer = programs.refused(one, 5);
    assert!(offer.reason.contains("not in front"), "{}", offer.reason);
    assert!(offer.reason.contains("40.0 %"), "{}", offer.reason);
    programs.granted(one, 4);
    // A refusal leaves what it had when it was in front.
    programs.granted(other, 6);
    programs.foreground(other, false);
    programs.refused(other, 7);
    assert_eq!(programs.promised(), [4, 6]);
    // And it gives way as before, the oldest first.
    let front = programs.open(user(1000));
    programs.granted(front, 7);
    assert_eq!(programs.promised(), [0, 6, 7]);
}

#[test]
fn a_users_sessions_leave_others_theirs_where_that_is_set() {
    let mut programs = Programs::new(10);
    let settings = crate::books::Settings {
        session_quota_per_mille: Some(200),
        ..Default::default()
    };
    programs.world.books = Books::new(settings, &programs.world.host).unwrap();
    let [mine, more] = [(); 2].map(|()| programs.open(user(1000)));
    let [theirs, last] = [1001, 1002].map(|uid| programs.open(user(uid)));
    programs.granted(mine, 8);
    programs.granted(theirs, 8);
    let third = programs.open(user(1000));
    programs.granted(third, 8);
    let offer = programs.refused(more, 8);
    assert_eq!(offer.terms.unwrap().budget_ns, 4 * MS);
    // What all users have together counts still, and root's own sessions have no limit but the CPUs.
    programs.granted(last, 8);
    let root = programs.open(ROOT);
    programs.granted(root, 8);
    // What sessions hold is not counted among what a user may reserve, nor the other way round.
    let ask = World::ask_for(crate::protocol::Holder::Process(100 + 2), 1, 10);
    programs.world.host.change(102).uids = [1001; 3];
    let reply = programs
        .world
        .answer_to(user(1001), &crate::protocol::Request::Ask(ask));
    assert!(matches!(reply, Reply::Reserved(_)), "{reply:?}");
}

#[test]
fn whoever_loses_its_place_is_told_each_time() {
    let mut programs = Programs::new(2);
    let [first, second] = [(); 2].map(|()| programs.open(ROOT));
    programs.granted(first, 6);
    programs.granted(second, 6);
    for _ in 0..2 {
        programs.world.host.online = vec![0, 1];
        programs.world.look();
        let none = [programs.notice(first), programs.notice(second)];
        assert_eq!(none, [None, None]);
        programs.world.host.online = vec![0];
        programs.world.look();
        assert_eq!(programs.notice(first), None);
        let Some(Notice::Weakened { reason }) = programs.notice(second) else {
            panic!("there is one CPU for both");
        };
        assert!(reason.contains("until one has"), "{reason}");
        assert_eq!(programs.notice(second), None);
    }
}

#[test]
fn whoever_is_joined_by_those_that_lose_periods_is_told() {
    let mut programs = Programs::new(1);
    let [first, second] = [(); 2].map(|()| programs.open(ROOT));
    let half = |programs: &mut Programs, at| {
        let terms = Terms {
            budget_ns: 5 * MS,
            period_ns: 10 * MS,
            deadline_ns: None,
            losses: 1,
            window: 2,
        };
        let answer = programs.ask(at, Request::Promise { terms });
        assert!(matches!(answer, Answer::Granted(_)), "{answer:?}");
    };
    half(&mut programs, first);
    assert_eq!(programs.notice(first), None);
    half(&mut programs, second);
    let told = programs.notice(first);
    assert!(matches!(told, Some(Notice::Weakened { .. })), "{told:?}");
    // The second has known what it was promised.
    assert_eq!(
        [programs.notice(first), programs.notice(second)],
        [None, None]
    );
}
