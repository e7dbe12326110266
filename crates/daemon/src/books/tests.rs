// SPDX-License-Identifier: GPL-2.0
//! The books over a kernel and a machine that are made up. Admission is the real one.

mod limits;
mod machine;
mod policies;

use andante_admission::{Placement, Promise as Promised, Tolerance, Unproved};
use andante_sched::contracts::{HeldBy, Promise};

use super::fakes::{MS, World};
use super::*;
use crate::protocol::{Holder, Limit};

#[test]
fn a_process_gets_its_contract_with_all_its_threads() {
    let mut world = World::new(2);
    world.host.process(100, "mpv", &[101, 102]);
    let reserved = world.reserve(100, 9, 33);
    assert_eq!(reserved.name, "mpv-100");
    assert_eq!(reserved.placement, Placement::Whole { cpu: 0 });
    assert_eq!(reserved.promise, Promised::EveryDeadline);
    let made = world.kernel.only();
    assert_eq!(made.held_by, HeldBy::Process);
    assert_eq!(made.bound, [100, 101, 102]);
    assert_eq!(made.promise.flags, Promise::HARD);
    assert_eq!(made.promise.budget_ns, 9 * MS);
    assert_eq!(made.promise.deadline_ns, 33 * MS);
}

#[test]
fn a_question_changes_nothing() {
    let mut world = World::new(1);
    world.host.process(100, "mpv", &[]);
    let ask = World::ask_for(Holder::Process(100), 9, 33);
    let asked = world.answer(&Request::Ask(ask.clone()));
    assert!(world.kernel.made.is_empty() && world.books.held.is_empty());
    assert_eq!(world.answer(&Request::Reserve(ask)), asked);
    assert_eq!(world.kernel.made.len(), 1);
}

#[test]
fn a_refusal_names_the_holders_and_what_is_offered_is_given() {
    let mut world = World::new(1);
    world.host.process(100, "mpv", &[]);
    world.host.process(200, "game", &[]);
    world.reserve(100, 9, 33);
    let refused = world.refused(200, 20, 33);
    let holders = &refused.refusal.cpus[0].holders;
    assert_eq!(holders[0].name, "mpv (100)");
    assert!(refused.limits.is_empty());
    let nearest = refused.refusal.nearest;
    let budget_ns = nearest.largest_budget.unwrap().contract.budget_ns;
    let period_ns = nearest.shortest_period.unwrap().contract.period_ns;
    // 0.8 less 9/33, of 33 ms; and 20 ms out of that, 37.931035 ms, of which three digits are offered.
    assert_eq!(budget_ns, 17_400_000);
    assert_eq!(period_ns, 38_000_000);
    for terms in [
        Terms::new(budget_ns, 33 * MS),
        Terms::new(20 * MS, period_ns),
    ] {
        let ask = Ask {
            terms,
            ..World::ask_for(Holder::Process(200), 1, 2)
        };
        let reply = world.answer(&Request::Ask(ask));
        assert!(matches!(reply, Reply::Reserved(_)), "{reply:?}");
    }
}

#[test]
fn plain_dwcs_asks_no_test_and_serves_all_by_windows() {
    let mut world = World::new(2);
    let settings = Settings {
        plain_dwcs: true,
        ..Settings::default()
    };
    world.books = Books::new(settings, &world.host).unwrap();
    for pid in [100, 200, 300] {
        world.host.process(pid, "film", &[]);
    }
    let fits = world.reserve(100, 9, 10);
    assert_eq!(fits.placement, Placement::Whole { cpu: 0 });
    assert_eq!(
        world.reserve(200, 8, 10).placement,
        Placement::Whole { cpu: 1 }
    );
    let beyond = world.reserve(300, 5, 10);
    assert_eq!(
        beyond.placement,
        Placement::Whole { cpu: 1 },
        "the emptier one"
    );
    assert_eq!(beyond.promise, Promised::Nothing(Unproved::Overload));
    for made in &world.kernel.made {
        assert_eq!(made.promise.flags, Promise::WINDOW);
        assert_eq!((made.promise.losses, made.promise.window), (0, 1));
    }
    world.host.online = vec![0];
    world.books.refresh(&mut world.kernel, &world.host);
    let all_there = world.kernel.made.iter().all(|made| made.promise.cpu == 0);
    assert!(all_there && world.kernel.made.len() == 3);
}

#[test]
fn what_cannot_be_asked_is_told_apart() {
    let mut world = World::new(1);
    world.host.process(100, "mpv", &[101]);
    world.host.process(2, "kthreadd", &[]);
    world.host.change(2).kernel_thread = true;
    world.host.process(300, "jackd", &[]);
    world.host.change(300).realtime = true;
    world.class("/film", 0);
    let fault = |world: &mut World, holder| match world.try_reserve(holder, 9, 33) {
        Reply::Error(fault) => fault,
        reply => panic!("{reply:?}"),
    };
    for (holder, kind, says) in [
        (Holder::Process(7), FaultKind::NoProcess, "no process 7"),
        (Holder::Process(0), FaultKind::NoProcess, "no process 0"),
        (Holder::Thread(-1), FaultKind::NoProcess, "no thread -1"),
        (Holder::Process(101), FaultKind::NoProcess, "--thread"),
        (Holder::Process(2), FaultKind::KernelThread, "kthreadd"),
        (Holder::Process(300), FaultKind::Unschedulable, "chrt"),
        (
            Holder::Class("/no".into()),
            FaultKind::UnknownClass,
            "class list",
        ),
        (
            Holder::Class("/".into()),
            FaultKind::UnknownClass,
            "root class",
        ),
        (
            Holder::Class("a/../b".into()),
            FaultKind::UnknownClass,
            "a/../b",
        ),
    ] {
        let fault = fault(&mut world, holder);
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.message.contains(says), "{fault}");
    }
    // A cgroup whose parent hands out no cpu controller.
    world.kernel.leaves.clear();
    let part = fault(&mut world, Holder::Class("film".into()));
    assert!(part.message.contains("class set /film"), "{part}");
    assert!(world.kernel.made.is_empty());
}

#[test]
fn names_are_unique_and_no_numbers() {
    let mut world = World::new(2);
    world.host.process(100, "my film", &[]);
    world.host.process(200, "game", &[]);
    let mut named = |pid, name: Option<&str>| {
        let ask = Ask {
            name: name.map(str::to_owned),
            ..World::ask_for(Holder::Process(pid), 1, 33)
        };
        match world.answer(&Request::Reserve(ask)) {
            Reply::Reserved(reserved) => Ok(reserved.name),
            Reply::Error(fault) => Err(fault.kind),
            reply => panic!("{reply:?}"),
        }
    };
    for wrong in ["", "12", "-1", "/film", "a b", &"x".repeat(MAX_NAME + 1)] {
        assert_eq!(named(100, Some(wrong)), Err(FaultKind::BadTerms), "{wrong}");
    }
    assert_eq!(named(100, None), Ok("my_film-100".into()));
    assert_eq!(named(100, Some("again")), Err(FaultKind::Taken));
    assert_eq!(named(200, Some("my_film-100")), Err(FaultKind::Taken));
    assert_eq!(named(200, Some("the-game")), Ok("the-game".into()));
}

#[test]
fn a_contract_is_released_by_name_or_holder() {
    let mut world = World::new(2);
    world.host.process(100, "mpv", &[]);
    world.class("/film", 0);
    for which in ["mpv-100", "100"] {
        world.reserve(100, 9, 33);
        let reply = world.release(which);
        let name = "mpv-100".to_owned();
        assert_eq!(reply, Reply::Released { name });
        assert!(world.kernel.made.is_empty());
    }
    for which in ["/film", "film", "film/"] {
        world.try_reserve(Holder::Class("film".into()), 9, 33);
        let name = "/film".to_owned();
        assert_eq!(world.release(which), Reply::Released { name });
    }
    let Reply::Error(fault) = world.release("100") else {
        panic!("it is gone");
    };
    assert_eq!(fault.kind, FaultKind::NoContract);
}

#[test]
fn with_the_holder_the_contract_is_gone_and_its_room_free() {
    let mut world = World::new(1);
    world.host.process(100, "mpv", &[]);
    world.host.process(200, "game", &[]);
    world.reserve(100, 20, 33);
    world.refused(200, 20, 33);
    world.host.exit(100);
    world.kernel.made.clear(); // the kernel has seen it first
    world.reserve(200, 20, 33);
    let list = world.list();
    let names: Vec<_> = list.contracts.iter().map(|listed| &listed.name).collect();
    assert_eq!(names, ["game-200"]);
}

#[test]
fn the_list_tells_what_became_of_each() {
    let mut world = World::new(2);
    world.host.process(100, "andante", &[]);
    world.reserve(100, 9, 33);
    world.host.change(100).name = "mpv".into(); // executed since
    let list = world.list();
    assert_eq!(list.machine.cpus, [0, 1]);
    assert_eq!(list.machine.left_for_others_per_mille, 200);
    let listed = &list.contracts[0];
    assert_eq!(listed.holder.to_string(), "mpv (100)");
    assert_eq!(listed.kept.unwrap().threads, 1);
    assert_eq!(listed.promise, Some(Promised::EveryDeadline));
}

#[test]
fn threads_that_come_while_others_are_bound_are_bound_too() {
    let mut world = World::new(1);
    world.host.process(100, "mpv", &[101]);
    // The thread 101 starts 102 before it is bound itself.
    world.host.starts_when_looked_at.set(Some(102));
    world.reserve(100, 9, 33);
    assert_eq!(world.kernel.only().bound, [100, 101, 102]);
}

#[test]
fn nothing_is_left_of_a_contract_whose_holder_goes_meanwhile() {
    let mut world = World::new(1);
    world.host.process(100, "mpv", &[]);
    world.kernel.dead.push(100);
    let Reply::Error(fault) = world.try_reserve(Holder::Process(100), 9, 33) else {
        panic!("it is gone");
    };
    assert_eq!(fault.kind, FaultKind::NoProcess);
    assert!(world.kernel.made.is_empty() && world.books.held.is_empty());
    // All of its room is there for others.
    world.host.process(200, "game", &[]);
    world.reserve(200, 26, 33);
}

#[test]
fn one_thread_alone_may_hold_a_contract() {
    let mut world = World::new(1);
    world.host.process(100, "mpv", &[101]);
    world.try_reserve(Holder::Thread(101), 1, 3);
    let made = world.kernel.only();
    assert_eq!(
        (made.held_by, &made.bound[..]),
        (HeldBy::Thread, &[101][..])
    );
}

#[test]
fn soft_contracts_are_not_throttled_and_flexible_ones_borrow_and_catch_up() {
    let mut world = World::new(1);
    let all = Promise::RECLAIM | Promise::BORROW | Promise::CATCH_UP;
    for (pid, flexible, flags) in [(100, false, 0), (200, true, all)] {
        world.host.process(pid, "film", &[]);
        let mut ask = World::ask_for(Holder::Process(pid), 3, 10);
        ask.terms.soft = true;
        ask.terms.flexible = flexible;
        world.answer(&Request::Reserve(ask));
        assert_eq!(world.kernel.made.last().unwrap().promise.flags, flags);
    }
}

#[test]
fn a_soft_contract_with_a_window_is_work_conserving_under_plain_dwcs() {
    let mut world = World::new(1);
    world.host.process(100, "film", &[]);
    let mut ask = World::ask_for(Holder::Process(100), 3, 10);
    ask.terms.soft = true;
    ask.terms.tolerance = Tolerance {
        losses: 1,
        window: 5,
    };
    let refused = world.answer(&Request::Reserve(ask.clone()));
    assert!(matches!(refused, Reply::Error(fault) if fault.kind == FaultKind::BadTerms));
    let settings = Settings {
        plain_dwcs: true,
        ..Settings::default()
    };
    world.books = Books::new(settings, &world.host).unwrap();
    world.answer(&Request::Reserve(ask));
    let made = &world.kernel.only().promise;
    assert_eq!(made.flags, Promise::WINDOW | Promise::WORK_CONSERVING);
    assert_eq!((made.losses, made.window), (1, 5));
}

#[test]
fn flexible_contracts_reclaim_and_split_ones_cannot() {
    let mut world = World::new(2);
    for (pid, flags) in [
        (100, Promise::HARD | Promise::RECLAIM),
        (200, Promise::HARD | Promise::RECLAIM),
        (300, Promise::HARD),
    ] {
        world.host.process(pid, "film", &[]);
        let mut ask = World::ask_for(Holder::Process(pid), 5, 10);
        ask.terms.flexible = true;
        let Reply::Reserved(reserved) = world.answer(&Request::Reserve(ask)) else {
            panic!("there is room");
        };
        assert_eq!(reserved.placement.is_split(), pid == 300);
        assert_eq!(world.kernel.made.last().unwrap().promise.flags, flags);
    }
    let split = world.kernel.made.last().unwrap();
    let budgets_ns: u64 = split.pieces.iter().map(|piece| piece.budget_ns).sum();
    assert_eq!((split.pieces.len(), budgets_ns), (2, 5 * MS));
    assert_eq!(split.promise.cpu, split.pieces[0].cpu);
}
