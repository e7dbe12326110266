use std::fs;

use andante_admission::memory::{MemoryLimit, MemoryRefusal};
use andante_sched::contracts::{HeldBy, Promise};

mod random;

use super::*;
use crate::books::fakes::{ROOT, USER, World};
use crate::protocol::{Holder, MemoryAsk, MemoryReserved, USUALLY_LENT_PER_MILLE};

const MIB: u64 = 1 << 20;

/// 1,000 MiB, of which 700 can be reserved.
#[allow(clippy::unnecessary_wraps)] // what a place asks for
fn machine() -> Result<Machine, MemoryError> {
    Ok(Machine {
        total: 1000 * MIB,
        floor: 40 * MIB,
        kernel: 60 * MIB,
        locked: 0,
        swap: 500 * MIB,
    })
}

struct Memory {
    folder: tempfile::TempDir,
    world: World,
    books: Reservations,
    place: Place,
}

impl Memory {
    /// Classes of their users, in folders; the keeper says this.
    fn saying(classes: &[(&str, u32)], said: &str) -> Self {
        let script = format!(
            "read line; while :; do echo '{said}'; sleep 0.02; done & cat >/dev/null; kill $!"
        );
        Self::with_keeper(classes, &["sh", "-c", &script])
    }

    fn with_keeper(classes: &[(&str, u32)], keeper: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("cgroup");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("cgroup.controllers"), "cpu memory\n").unwrap();
        fs::write(root.join("cgroup.subtree_control"), "cpu memory\n").unwrap();
        let mut world = World::new(1);
        world.host.root = root.clone();
        let place = Place {
            root,
            kept: folder.path().join("memory.json"),
            right: folder.path().join("memory.lock"),
            // It is given the root and the file as well.
            keeper: keeper.iter().chain(&["keeper"]).map(Into::into).collect(),
            machine,
            sysctl: Sysctl::at(folder.path()),
        };
        let mut memory = Self {
            folder,
            world,
            books: Reservations::new(MemorySettings::default(), place.clone()),
            place,
        };
        for (class, uid) in classes {
            memory.make(class, *uid);
        }
        memory
    }

    fn make(&mut self, class: &str, uid: u32) {
        self.world.class(class, uid);
        fs::create_dir_all(self.file(class, "")).unwrap();
        for (name, text) in [
            ("memory.min", "0"),
            ("memory.max", "max"),
            ("cgroup.subtree_control", "cpu memory\n"),
        ] {
            fs::write(self.file(class, name), text).unwrap();
        }
    }

    /// As if it had been killed: it puts nothing back.
    fn start_again(&mut self) {
        self.books.protection = Err("killed".into());
        // There is one at a time.
        self.books = Reservations::none("gone");
        self.books = Reservations::new(MemorySettings::default(), self.place.clone());
    }

    fn new(classes: &[(&str, u32)]) -> Self {
        Self::saying(classes, "{}")
    }

    fn ask(&mut self, caller: Caller, holder: Holder, mib: u64) -> Reply {
        let ask = MemoryAsk {
            holder,
            bytes: mib * MIB,
            lend_per_mille: USUALLY_LENT_PER_MILLE,
            until: None,
        };
        self.books
            .answer(&self.world.host, caller, &Request::ReserveMemory(ask))
    }

    /// This process is in `/film`, which has so much memory of its own, has a learnt contract, and wakes 30 times a second.
    fn film_is_learnt(&mut self, bytes: u64) -> i32 {
        let own = i32::try_from(std::process::id()).unwrap();
        self.world.host.process(own, "mpv", &[]);
        self.world.host.place(own, "/film");
        let stat = format!("anon {bytes}\n");
        fs::write(self.file("/film", "memory.stat"), stat).unwrap();
        self.has_learnt(own);
        self.world.kernel.rhythms.insert(own, 33_000_000);
        own
    }

    /// This thread has a learnt contract.
    fn has_learnt(&mut self, tid: i32) {
        let promise = Promise {
            budget_ns: 9_000_000,
            period_ns: 33_000_000,
            deadline_ns: 33_000_000,
            losses: 0,
            window: 0,
            flags: 0,
            cpu: 0,
        };
        let name = self.world.kernel.create(&promise, HeldBy::Thread, &[]);
        self.world.kernel.learnt.insert(name.unwrap().raw(), tid);
    }

    fn class(&mut self, caller: Caller, class: &str, mib: u64) -> Reply {
        self.ask(caller, Holder::Class(class.into()), mib)
    }

    fn reserved(&mut self, caller: Caller, class: &str, mib: u64) -> MemoryReserved {
        match self.class(caller, class, mib) {
            Reply::MemoryReserved(reserved) => *reserved,
            other => panic!("{other:?}"),
        }
    }

    fn refused(&mut self, caller: Caller, class: &str, mib: u64) -> MemoryRefusal {
        match self.class(caller, class, mib) {
            Reply::MemoryRefused(refusal) => *refusal,
            other => panic!("{other:?}"),
        }
    }

    fn fault(&mut self, caller: Caller, holder: Holder, mib: u64) -> FaultKind {
        match self.ask(caller, holder, mib) {
            Reply::Error(fault) => fault.kind,
            other => panic!("{other:?}"),
        }
    }

    fn file(&self, class: &str, name: &str) -> PathBuf {
        self.folder
            .path()
            .join("cgroup")
            .join(class.trim_start_matches('/'))
            .join(name)
    }

    fn min(&self, class: &str) -> u64 {
        fs::read_to_string(self.file(class, "memory.min"))
            .unwrap()
            .parse::<u64>()
            .unwrap()
            / MIB
    }

    fn look(&mut self) {
        self.books.look(&self.world.kernel, &self.world.host);
    }
}

#[test]
fn a_reservation_is_protected_until_it_is_released() {
    let mut memory = Memory::new(&[("/media", 0), ("/media/film", 0)]);
    let reserved = memory.reserved(ROOT, "media/film", 200);
    assert_eq!(
        (reserved.class.as_str(), reserved.bytes),
        ("/media/film", 200 * MIB)
    );
    assert_eq!(
        (memory.min("/media"), memory.min("/media/film")),
        (200, 200)
    );
    let seen = memory.books.seen().unwrap();
    assert_eq!((seen.reservable, seen.reserved), (700 * MIB, 200 * MIB));
    assert_eq!(seen.reservations.len(), 1);
    // Asked again it is changed, and does not count beside itself.
    memory.reserved(ROOT, "/media/film", 600);
    assert_eq!(memory.min("/media"), 600);
    assert_eq!(memory.books.seen().unwrap().reservations.len(), 1);
    assert_eq!(
        memory.books.release(ROOT, "/media/film"),
        Some(Ok("/media/film".into()))
    );
    assert_eq!((memory.min("/media"), memory.min("/media/film")), (0, 0));
    assert_eq!(memory.books.release(ROOT, "/media/film"), None);
}

#[test]
fn only_asking_changes_nothing() {
    let mut memory = Memory::new(&[("/film", 0)]);
    let ask = MemoryAsk {
        holder: Holder::Class("/film".into()),
        bytes: 100 * MIB,
        lend_per_mille: 0,
        until: None,
    };
    let reply = memory
        .books
        .answer(&memory.world.host, ROOT, &Request::AskMemory(ask));
    assert!(matches!(reply, Reply::MemoryReserved(_)), "{reply:?}");
    assert_eq!(memory.min("/film"), 0);
    assert!(memory.books.seen().unwrap().reservations.is_empty());
}

#[test]
fn a_refusal_names_the_limit_and_what_would_do() {
    let mut memory = Memory::new(&[("/a", 0), ("/b", 0), ("/a/c", 0)]);
    memory.reserved(ROOT, "/a", 500);
    let refusal = memory.refused(ROOT, "/b", 201);
    assert_eq!(
        (refusal.most, refusal.holders[0].name.as_str()),
        (Some(200 * MIB), "/a")
    );
    assert!(matches!(refusal.limit, MemoryLimit::Machine(_)));
    assert_eq!(memory.min("/b"), 0);
    // A nested one fits into the one around it, and takes nothing more.
    let refusal = memory.refused(ROOT, "/a/c", 501);
    assert!(matches!(&refusal.limit, MemoryLimit::Above { name, .. } if name == "/a"));
    memory.reserved(ROOT, "/a/c", 400);
    memory.reserved(ROOT, "/b", 200);
    assert_eq!(memory.refused(ROOT, "/a", 399).limit, MemoryLimit::Below);
    fs::write(memory.file("/b", "memory.max"), (100 * MIB).to_string()).unwrap();
    let refusal = memory.refused(ROOT, "/b", 150);
    assert_eq!(refusal.most, Some(100 * MIB));
    assert!(matches!(&refusal.limit, MemoryLimit::Most { name, .. } if name == "/b"));
}

#[test]
fn users_have_quotas_and_classes_of_their_own() {
    let mut memory = Memory::new(&[("/own", 1000), ("/other", 1001), ("/own2", 1000)]);
    let other = Holder::Class("/other".into());
    assert_eq!(memory.fault(USER, other, 10), FaultKind::NotPermitted);
    let refusal = memory.refused(USER, "/own", 101);
    assert!(matches!(
        refusal.limit,
        MemoryLimit::Quota {
            all_users: false,
            ..
        }
    ));
    memory.reserved(USER, "/own", 60);
    assert_eq!(memory.refused(USER, "/own2", 41).most, Some(40 * MIB));
    memory.reserved(ROOT, "/other", 100);
    let released = memory.books.release(USER, "/other").unwrap();
    assert_eq!(released.unwrap_err().kind, FaultKind::NotPermitted);
    memory.reserved(USER, "/own", 100);
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let mut memory = Memory::new(&[("/film", 0)]);
    let class = |path: &str| Holder::Class(path.into());
    assert_eq!(memory.fault(ROOT, class("/film"), 0), FaultKind::BadTerms);
    assert_eq!(
        memory.fault(ROOT, class("/none"), 10),
        FaultKind::UnknownClass
    );
    assert_eq!(memory.fault(ROOT, class("/"), 10), FaultKind::UnknownClass);
    assert_eq!(
        memory.fault(ROOT, Holder::Process(7), 10),
        FaultKind::NoProcess
    );
    assert_eq!(
        memory.fault(ROOT, Holder::Thread(7), 10),
        FaultKind::BadTerms
    );
    memory.world.host.process(7, "mpv", &[]);
    assert_eq!(
        memory.fault(ROOT, Holder::Process(7), 10),
        FaultKind::UnknownClass,
        "in the root class"
    );
    fs::write(memory.file("/film", "cgroup.type"), "threaded\n").unwrap();
    assert_eq!(
        memory.fault(ROOT, class("/film"), 10),
        FaultKind::UnknownClass
    );
}

#[test]
fn a_keeper_that_is_slow_to_end_makes_its_follower_wait_and_not_give_up() {
    let mut memory = Memory::new(&[("/film", 0)]);
    memory.reserved(ROOT, "/film", 100);
    memory.books.protection = Err("killed".into());
    memory.books = Reservations::none("gone");
    let keeper = Right::take(&memory.place.right, Duration::ZERO).unwrap();
    memory.books = Reservations::new(MemorySettings::default(), memory.place.clone());
    let film = Holder::Class("/film".into());
    assert_eq!(memory.fault(ROOT, film, 50), FaultKind::Failed);
    assert_eq!(memory.min("/film"), 100);
    drop(keeper);
    memory.look();
    assert_eq!(memory.min("/film"), 0);
    memory.reserved(ROOT, "/film", 50);
}

#[test]
fn without_the_controller_nothing_can_be_reserved() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cgroup.controllers"), "cpu\n").unwrap();
    let place = Place {
        root: folder.path().to_owned(),
        kept: folder.path().join("memory.json"),
        right: folder.path().join("memory.lock"),
        keeper: Vec::new(),
        machine,
        sysctl: Sysctl::at(folder.path()),
    };
    let mut books = Reservations::new(MemorySettings::default(), place);
    assert_eq!(books.seen(), None);
    let ask = MemoryAsk {
        holder: Holder::Class("/film".into()),
        bytes: MIB,
        lend_per_mille: 0,
        until: None,
    };
    let reply = books.answer(&World::new(1).host, ROOT, &Request::ReserveMemory(ask));
    assert!(
        matches!(&reply, Reply::Error(fault) if fault.message.contains("cgroup_disable=memory")),
        "{reply:?}"
    );
}

#[test]
fn it_ends_with_its_class_and_its_process_and_the_daemon() {
    let mut memory = Memory::new(&[("/film", 0), ("/game", 0), ("/call", 0)]);
    memory.world.host.process(7, "mpv", &[]);
    let ask = MemoryAsk {
        holder: Holder::Class("/film".into()),
        bytes: 100 * MIB,
        lend_per_mille: 0,
        until: Some(7),
    };
    memory
        .books
        .answer(&memory.world.host, ROOT, &Request::ReserveMemory(ask));
    memory.reserved(ROOT, "/game", 100);
    memory.reserved(ROOT, "/call", 100);
    memory.look();
    assert_eq!(memory.min("/film"), 100);
    memory.world.host.exit(7);
    memory.world.host.remove_class("/game");
    memory.look();
    assert_eq!(
        (
            memory.min("/film"),
            memory.min("/game"),
            memory.min("/call")
        ),
        (0, 0, 100)
    );
    let Memory { folder, books, .. } = memory;
    drop(books);
    let call = folder.path().join("cgroup/call/memory.min");
    assert_eq!(fs::read_to_string(call).unwrap(), "0");
}

#[test]
fn a_change_by_somebody_else_is_said_and_mended() {
    let mut memory = Memory::new(&[("/film", 0)]);
    memory.reserved(ROOT, "/film", 100);
    memory.look();
    assert_eq!(memory.books.take_events(), []);
    fs::write(memory.file("/film", "memory.min"), "0").unwrap();
    memory.look();
    let events = memory.books.take_events();
    assert!(matches!(&events[..], [MemoryEvent::Changed { class, .. }] if class == "/film"));
    assert!(events[0].is_bad() && events[0].to_string().contains("100M"));
    assert_eq!(memory.min("/film"), 100);
}

#[test]
fn a_program_that_is_learnt_of_has_something_before_the_keeper_has_looked() {
    let mut memory = Memory::new(&[("/film", 1000)]);
    memory.film_is_learnt(MIB);
    memory.look();
    assert_eq!(memory.min("/film"), 1);
}

#[test]
fn of_many_that_are_learnt_of_one_that_begins_is_seen_at_once() {
    let mut memory = Memory::new(&[("/film", 1000)]);
    for tid in 0..100 {
        memory.has_learnt(1_000_000_000 + tid);
    }
    // Sixteen at a time.
    for _ in 0..7 {
        memory.look();
    }
    memory.film_is_learnt(MIB);
    memory.look();
    assert_eq!(memory.min("/film"), 1);
}

#[test]
fn a_service_that_answers_now_and_then_gets_none() {
    let mut memory = Memory::new(&[("/film", 1000)]);
    let own = memory.film_is_learnt(MIB);
    // Once a second, and never again.
    for rhythm in [Some(1_000_000_000), None] {
        memory.world.kernel.rhythms.clear();
        memory
            .world
            .kernel
            .rhythms
            .extend(rhythm.map(|beat_ns| (own, beat_ns)));
        memory.look();
        assert_eq!(memory.min("/film"), 0);
    }
}

#[test]
fn a_program_that_is_learnt_of_gets_what_it_needs_and_keeps_it() {
    let needs = 80 * MIB;
    let said = format!(
        r#"{{"free":0,"floor":0,"swap":0,"held":0,"taken":0,"classes":[],"needed":[[1,{needs}]]}}"#
    );
    let mut memory = Memory::saying(&[("/film", 1000)], &said);
    let own = memory.film_is_learnt(4096);
    let begun = std::time::Instant::now();
    while memory.min("/film") == 0 {
        memory.look();
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "nothing was reserved"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(memory.min("/film"), 80);
    let listed = memory.books.seen().unwrap().reservations;
    assert_eq!(
        (listed[0].learnt, listed[0].lend_per_mille),
        (Some(own), 1000)
    );
    // It is paused: the contract is gone, and what it needs is not.
    memory.world.kernel.learnt.clear();
    memory.look();
    assert_eq!(memory.min("/film"), 80);
    // Asked for, it is that; and with the program it ends.
    memory.reserved(ROOT, "/film", 200);
    memory.look();
    assert_eq!(memory.min("/film"), 200);
    assert_eq!(memory.books.seen().unwrap().reservations.len(), 1);
    memory.books.release(ROOT, "/film").unwrap().unwrap();
    memory.look();
    assert_eq!(memory.min("/film"), 80);
    memory.world.host.exit(own);
    memory.look();
    assert_eq!(memory.min("/film"), 0);
}
