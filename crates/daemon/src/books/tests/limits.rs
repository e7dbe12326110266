// SPDX-License-Identifier: GPL-2.0
//! What stands in the way beside the CPUs: who asks, quotas, nesting, windows.

use super::*;
use crate::books::fakes::{ROOT, USER};

const MEMBER: Caller = Caller {
    uid: 1000,
    account: 1000,
    privileged: true,
};

fn reserve_as(world: &mut World, caller: Caller, holder: Holder, ms: (u64, u64)) -> Reply {
    let ask = World::ask_for(holder, ms.0, ms.1);
    world.answer_to(caller, &Request::Reserve(ask))
}

fn users_process(world: &mut World, pid: i32) {
    world.host.process(pid, "mpv", &[]);
    world.host.change(pid).uids = [1000; 3];
}

#[test]
fn users_reserve_for_their_own_and_members_for_everybody() {
    let mut world = World::new(4);
    users_process(&mut world, 100);
    world.host.process(200, "init", &[]);
    users_process(&mut world, 300);
    world.host.change(300).uids = [1000, 0, 0]; // sudo, started by the user
    world.class("/system", 0);
    world.class("/user", 1000);
    for (holder, may) in [
        (Holder::Process(100), true),
        (Holder::Process(200), false),
        (Holder::Process(300), false),
        (Holder::Class("/system".into()), false),
        (Holder::Class("/user".into()), true),
    ] {
        let reply = reserve_as(&mut world, USER, holder.clone(), (1, 33));
        match reply {
            Reply::Reserved(_) => assert!(may, "{holder:?}"),
            Reply::Error(fault) => {
                assert!(!may, "{holder:?}: {fault}");
                assert_eq!(fault.kind, FaultKind::NotPermitted);
                assert!(fault.message.contains("user 0"), "{fault}");
            }
            reply => panic!("{reply:?}"),
        }
        if !may {
            let reply = reserve_as(&mut world, MEMBER, holder, (1, 33));
            assert!(matches!(reply, Reply::Reserved(_)), "{reply:?}");
        }
    }
}

#[test]
fn soft_contracts_are_for_the_privileged() {
    let mut world = World::new(1);
    users_process(&mut world, 100);
    let mut ask = World::ask_for(Holder::Process(100), 1, 33);
    ask.terms.soft = true;
    let Reply::Error(fault) = world.answer_to(USER, &Request::Reserve(ask.clone())) else {
        panic!("it may use more than the user's quota");
    };
    assert_eq!(fault.kind, FaultKind::NotPermitted);
    assert!(fault.message.contains("group andante"), "{fault}");
    let reply = world.answer_to(MEMBER, &Request::Reserve(ask));
    assert!(matches!(reply, Reply::Reserved(_)), "{reply:?}");
}

#[test]
fn contracts_are_released_by_those_who_asked_and_by_the_privileged() {
    let mut world = World::new(1);
    world.host.process(100, "mpv", &[]);
    world.reserve(100, 1, 33);
    let release = Request::Release {
        which: "100".into(),
    };
    let Reply::Error(fault) = world.answer_to(USER, &release) else {
        panic!("it is root's");
    };
    assert_eq!(fault.kind, FaultKind::NotPermitted);
    let reply = world.answer_to(MEMBER, &release);
    assert!(matches!(reply, Reply::Released { .. }));
    users_process(&mut world, 200);
    reserve_as(&mut world, USER, Holder::Process(200), (1, 33));
    let release = Request::Release {
        which: "200".into(),
    };
    let reply = world.answer_to(USER, &release);
    assert!(matches!(reply, Reply::Released { .. }));
}

#[test]
fn a_users_quota_is_a_part_of_the_machine_and_what_is_offered_is_within() {
    let mut world = World::new(2); // 0.2 CPUs
    users_process(&mut world, 100);
    users_process(&mut world, 200);
    reserve_as(&mut world, USER, Holder::Process(100), (1, 10));
    let Reply::Refused(refused) = reserve_as(&mut world, USER, Holder::Process(200), (9, 33))
    else {
        panic!("0.1 + 0.27 is above 0.2");
    };
    assert_eq!(
        refused.limits,
        [Limit::UserQuota {
            held_ppm: 100_000,
            asked_ppm: 272_727,
            limit_ppm: 200_000,
        }]
    );
    assert!(refused.refusal.cpus.is_empty());
    let offer = refused.refusal.nearest.largest_budget.unwrap().contract;
    assert_eq!(offer.budget_ns, 3_300_000);
    let ask = Ask {
        terms: Terms::new(offer.budget_ns, offer.period_ns),
        ..World::ask_for(Holder::Process(200), 1, 2)
    };
    let reply = world.answer_to(USER, &Request::Reserve(ask));
    assert!(matches!(reply, Reply::Reserved(_)), "{reply:?}");
    // Root's contracts count for nobody's quota, and root has none.
    world.host.process(300, "game", &[]);
    world.reserve(300, 9, 33);
}

fn user(uid: u32, account: u32) -> Caller {
    Caller {
        uid,
        account,
        privileged: false,
    }
}

/// Reserves a tenth of ten CPUs for each of these, which is what one user may have.
fn with_quotas(callers: impl IntoIterator<Item = Caller>) -> (World, Vec<Reply>) {
    let mut world = World::new(10);
    let mut replies = Vec::new();
    for (pid, caller) in (100..).zip(callers) {
        for (more, part) in [(0, 6), (1000, 4)] {
            world.host.process(pid + more, "p", &[]);
            world.host.change(pid + more).uids = [caller.uid; 3];
            let holder = Holder::Process(pid + more);
            replies.push(reserve_as(&mut world, caller, holder, (part, 10)));
        }
    }
    (world, replies)
}

#[test]
fn all_users_together_have_half_of_what_is_promised_at_all() {
    let (mut world, replies) = with_quotas((1000..1007).map(|uid| user(uid, uid)));
    let admitted = |reply: &&Reply| matches!(reply, Reply::Reserved(_));
    // Four have all of their quota, and the fifth is told why it has none.
    assert_eq!(replies.iter().filter(admitted).count(), 8);
    let Reply::Refused(refused) = &replies[8] else {
        panic!("{:?}", replies[8]);
    };
    let limit = Limit::UsersQuota {
        held_ppm: 4_000_000,
        asked_ppm: 600_000,
        limit_ppm: 4_000_000,
    };
    assert_eq!(refused.limits, [limit]);
    // The other half is there for the privileged.
    for pid in 1..=5 {
        world.host.process(pid, "p", &[]);
        world.reserve(pid, 8, 10);
    }
    assert_eq!(world.list().machine.users_quota_per_mille, 400);
    // With more left to everybody else, half of what remains.
    let settings = Settings {
        left_for_others_per_mille: 500,
        ..Settings::default()
    };
    assert_eq!(settings.users_quota_per_mille(), 250);
    // What one user may have can be had.
    let settings = Settings {
        user_quota_per_mille: 400,
        ..settings
    };
    assert_eq!(settings.users_quota_per_mille(), 400);
}

#[test]
fn subordinate_ids_take_from_the_quota_of_their_owner() {
    let ids = [1000, 100_000, 100_001, 100_002];
    let (_, replies) = with_quotas(ids.map(|uid| user(uid, 1000)));
    for (at, reply) in replies.iter().enumerate() {
        match reply {
            Reply::Reserved(_) => assert!(at < 2, "{at}"),
            Reply::Refused(refused) => {
                assert!(at >= 2, "{at}");
                let quota = &refused.limits[0];
                assert!(
                    matches!(
                        quota,
                        Limit::UserQuota {
                            held_ppm: 1_000_000,
                            ..
                        }
                    ),
                    "{quota:?}"
                );
            }
            reply => panic!("{reply:?}"),
        }
    }
}

#[test]
fn nobody_takes_anothers_name() {
    let mut world = World::new(4);
    let other = user(1001, 1001);
    for (pid, uid) in [(100, 1000), (200, 1001), (201, 1001), (300, 0)] {
        world.host.process(pid, "mpv", &[]);
        world.host.change(pid).uids = [uid; 3];
    }
    let named = |world: &mut World, caller, pid, name: Option<&str>| {
        let ask = Ask {
            name: name.map(str::to_owned),
            ..World::ask_for(Holder::Process(pid), 1, 33)
        };
        match world.answer_to(caller, &Request::Reserve(ask)) {
            Reply::Reserved(reserved) => reserved.name,
            reply => panic!("{reply:?}"),
        }
    };
    // Another one is quicker, and takes the name that ours would have; and that of root's.
    assert_eq!(named(&mut world, other, 200, Some("mpv-100")), "mpv-100");
    assert_eq!(named(&mut world, other, 201, Some("mpv-300")), "mpv-300");
    assert_eq!(named(&mut world, USER, 100, None), "mpv-100");
    assert_eq!(named(&mut world, ROOT, 300, None), "mpv-300");
    let release = |world: &mut World, caller, which: &str| {
        let which = which.to_owned();
        world.answer_to(caller, &Request::Release { which })
    };
    // Each means its own.
    let left = |world: &mut World| -> Vec<_> {
        let listed = world.list().contracts.into_iter();
        listed.map(|listed| listed.holder.holder).collect()
    };
    release(&mut world, ROOT, "mpv-300");
    let processes = [200, 201, 100].map(Holder::Process);
    assert_eq!(left(&mut world), processes);
    // Of two that are both others' nobody guesses.
    let Reply::Error(fault) = release(&mut world, ROOT, "mpv-100") else {
        panic!("there are two");
    };
    assert!(fault.message.contains("users 1001 and 1000"), "{fault}");
    release(&mut world, USER, "mpv-100");
    assert_eq!(left(&mut world), processes[..2]);
    // And of one's own: what one has called another is left to it.
    assert_eq!(named(&mut world, USER, 100, Some("mpv-102")), "mpv-102");
    world.host.process(102, "mpv", &[]);
    world.host.change(102).uids = [1000; 3];
    assert_eq!(named(&mut world, USER, 102, None), "mpv-102-2");
    let list = world.list();
    assert!(
        list.contracts.iter().all(|listed| listed.promise.is_some()),
        "{list:?}"
    );
}

#[test]
fn a_user_reserves_for_no_more_threads_than_are_bound_at_once() {
    let mut world = World::new(1);
    let threads: Vec<i32> = (1001..1001 + 1024).collect();
    world.host.process(1000, "many", &threads);
    for tid in threads.iter().copied().chain([1000]) {
        world.host.change(tid).uids = [1000; 3];
    }
    let holder = Holder::Process(1000);
    let Reply::Error(fault) = reserve_as(&mut world, USER, holder.clone(), (1, 33)) else {
        panic!("it has 1025 threads");
    };
    assert_eq!(fault.kind, FaultKind::NotPermitted);
    assert!(fault.message.contains("--thread"), "{fault}");
    let reply = reserve_as(&mut world, MEMBER, holder, (1, 33));
    assert!(matches!(reply, Reply::Reserved(_)), "{reply:?}");
    assert_eq!(world.kernel.only().bound.len(), 1025);
}

#[test]
fn what_others_are_called_reaches_no_terminal_as_it_is() {
    let mut world = World::new(1);
    let evil = "\x1b[2J\u{202e}x";
    world.host.process(100, evil, &[101]);
    world.host.process(200, evil, &[]);
    world.host.change(200).realtime = true;
    world.class("/a\x1b[31m", 0);
    let mut said = Vec::new();
    for holder in [
        Holder::Process(101),
        Holder::Process(200),
        Holder::Process(100),
        Holder::Process(100),
        Holder::Class("/b\x1b[31m".into()),
        Holder::Class("/a\x1b[31m".into()),
        Holder::Class("/a\x1b[31m".into()),
    ] {
        match world.try_reserve(holder, 6, 10) {
            Reply::Error(fault) => said.push(fault.message),
            Reply::Reserved(reserved) => said.extend([reserved.name, reserved.holder.to_string()]),
            Reply::Refused(refused) => said.push(refused.refusal.cpus[0].holders[0].name.clone()),
            reply => panic!("{reply:?}"),
        }
    }
    for which in ["\x1b[2J", "/c\x1b"] {
        if let Reply::Error(fault) = world.release(which) {
            said.push(fault.message);
        }
    }
    for caller in [USER, MEMBER] {
        for holder in [Holder::Process(100), Holder::Class("/a\x1b[31m".into())] {
            if let Reply::Error(fault) = reserve_as(&mut world, caller, holder, (1, 10)) {
                said.push(fault.message);
            }
        }
    }
    assert!(said.len() >= 10, "{said:?}");
    for text in said {
        assert!(!text.contains(andante_sched::text::is_unseen), "{text:?}");
    }
}

#[test]
fn no_user_fills_the_table() {
    let mut world = World::new(64);
    for pid in 1..=MAX_OF_USER as i32 + 1 {
        users_process(&mut world, pid);
        let reply = reserve_as(&mut world, USER, Holder::Process(pid), (1, 4000));
        if pid <= MAX_OF_USER as i32 {
            assert!(matches!(reply, Reply::Reserved(_)), "{reply:?}");
        } else {
            let full = matches!(&reply, Reply::Error(fault) if fault.kind == FaultKind::Full);
            assert!(full, "{reply:?}");
        }
    }
    world.host.process(1000, "p", &[]);
    world.reserve(1000, 1, 4000);
}

#[test]
fn contracts_nested_in_a_class_add_up_to_no_more_than_its_own() {
    let mut world = World::new(4);
    for class in ["/media", "/media/film", "/media/film/decoder"] {
        world.class(class, 0);
    }
    for (pid, class) in [(100, "/media/film"), (200, "/media"), (300, "/other")] {
        world.host.process(pid, "p", &[]);
        world.host.place(pid, class);
    }
    let class = |path: &str| Holder::Class(path.to_owned());
    world.try_reserve(class("/media"), 5, 10);
    world.reserve(100, 3, 10);
    let refused = world.refused(200, 3, 10);
    let parent = Limit::Parent {
        name: "/media".into(),
        limit_ppm: 500_000,
        held_ppm: 300_000,
        asked_ppm: 300_000,
    };
    assert_eq!(refused.limits, [parent]);
    let offer = refused.refusal.nearest.largest_budget.unwrap();
    assert_eq!(offer.contract.budget_ns, 2 * MS);
    // Elsewhere there is no such limit.
    world.reserve(300, 6, 10);

    // A contract in between takes over what is below it, and must cover that.
    let Reply::Refused(refused) = world.try_reserve(class("/media/film"), 2, 10) else {
        panic!("it holds 0.3 already");
    };
    let names = vec!["p-100".to_owned()];
    let children = Limit::Children {
        names,
        held_ppm: 300_000,
        asked_ppm: 200_000,
    };
    assert_eq!(refused.limits, [children]);
    world.release("100");
    world.try_reserve(class("/media/film"), 4, 10);
    world.reserve(100, 3, 10);
    let decoder = world.try_reserve(class("/media/film/decoder"), 1, 10);
    assert!(matches!(decoder, Reply::Reserved(_)), "{decoder:?}");
    // 0.4 are nested in /media, not those and what is nested in them.
    world.reserve(200, 1, 10);
}

#[test]
fn a_contract_is_charged_to_the_nearest_one_around_it() {
    let mut world = World::new(4);
    for class in ["/media", "/media/film"] {
        world.class(class, 0);
    }
    world.host.process(100, "p", &[]);
    world.host.place(100, "/media/film");
    let class = |path: &str| Holder::Class(path.to_owned());
    let around = |world: &World, at: usize| {
        let around = world.kernel.made[at].around;
        around.map(|around| {
            world
                .kernel
                .made
                .iter()
                .position(|made| made.name == around)
        })
    };
    world.reserve(100, 2, 10);
    assert_eq!(around(&world, 0), None);
    world.try_reserve(class("/media"), 5, 10);
    assert_eq!(around(&world, 0), Some(Some(1)));
    world.try_reserve(class("/media/film"), 4, 10);
    assert_eq!(around(&world, 0), Some(Some(2)));
    assert_eq!(around(&world, 2), Some(Some(1)));
    world.release("/media/film");
    assert_eq!(around(&world, 0), Some(Some(1)));
    // A class that goes without a word.
    world.host.remove_class("/media");
    world.look();
    assert_eq!(world.kernel.only().around, None);
}

#[test]
fn a_program_bound_to_some_cpus_is_placed_there_and_never_split() {
    let mut world = World::new(4);
    for pid in [100, 200, 300] {
        world.host.process(pid, "p", &[pid + 1]);
        world.host.change(pid).allowed = 0b1100;
    }
    let place = |world: &mut World, pid| world.reserve(pid, 5, 10).placement;
    assert_eq!(place(&mut world, 100), Placement::Whole { cpu: 2 });
    assert_eq!(place(&mut world, 200), Placement::Whole { cpu: 3 });
    let refused = world.refused(300, 5, 10);
    let cpus: Vec<_> = refused.refusal.cpus.iter().map(|found| found.cpu).collect();
    assert_eq!(cpus, [2, 3]);
    let offer = refused.refusal.nearest.largest_budget.unwrap();
    assert_eq!(offer.admission.placement, Placement::Whole { cpu: 2 });
    assert_eq!(offer.contract.cpu, None);
    // Threads that have no CPU in common have no place in common.
    world.host.change(301).allowed = 0b0001;
    let Reply::Error(fault) = world.try_reserve(Holder::Process(300), 5, 10) else {
        panic!("nowhere");
    };
    assert_eq!(fault.kind, FaultKind::Unschedulable);
}

#[test]
fn those_who_tolerate_losses_share_a_cpu_with_each_other_only() {
    let lossy = |pid| {
        let mut ask = World::ask_for(Holder::Process(pid), 5, 10);
        ask.terms.tolerance = Tolerance {
            losses: 1,
            window: 2,
        };
        Request::Reserve(ask)
    };
    let world_with = |plain: bool| {
        let mut world = World::new(1);
        for pid in [100, 200] {
            world.host.process(pid, "p", &[]);
        }
        let first = if plain {
            world.try_reserve(Holder::Process(100), 5, 10)
        } else {
            world.answer(&lossy(100))
        };
        assert!(matches!(first, Reply::Reserved(_)), "{first:?}");
        world
    };

    // Half and half of half: windows hold where only windows are.
    let mut world = world_with(false);
    let made = world.kernel.only();
    assert_eq!(made.promise.flags, Promise::WINDOW);
    assert_eq!((made.promise.losses, made.promise.window), (1, 2));
    let Reply::Reserved(second) = world.answer(&lossy(200)) else {
        panic!("DWCS's condition holds");
    };
    assert_eq!(second.promise, Promised::Windows);
    assert_eq!(second.weakened, ["p (100)"]);

    // Beside a server of its own budget nothing follows from them.
    let mut world = world_with(true);
    assert_eq!(world.kernel.only().promise.flags, Promise::HARD);
    let reply = world.answer(&lossy(200));
    assert!(matches!(reply, Reply::Refused(_)), "{reply:?}");
}

#[test]
fn who_tolerates_nothing_is_served_in_every_window() {
    let mut world = World::new(1);
    for (pid, tolerance) in [(100, (1, 2)), (200, (0, 0))] {
        world.host.process(pid, "p", &[]);
        let mut ask = World::ask_for(Holder::Process(pid), 4, 12);
        let (losses, window) = tolerance;
        ask.terms.tolerance = Tolerance { losses, window };
        let reply = world.answer(&Request::Reserve(ask));
        assert!(matches!(reply, Reply::Reserved(_)), "{reply:?}");
    }
    // A third and a third: a place for both without windows, and the second one is plain.
    assert_eq!(world.kernel.made[1].promise.flags, Promise::HARD);
    world.release("200");
    let mut ask = World::ask_for(Holder::Process(200), 4, 12);
    ask.terms.tolerance = Tolerance {
        losses: 1,
        window: 2,
    };
    world.answer(&Request::Reserve(ask));
    world.host.process(300, "p", &[]);
    // A third one that may lose nothing: 1/2 + 1/2 + 1 of two slots.
    let reserved = world.reserve(300, 4, 12);
    assert_eq!(reserved.promise, Promised::Windows);
    let third = &world.kernel.made[2].promise;
    assert_eq!(third.flags, Promise::WINDOW);
    assert_eq!((third.losses, third.window), (0, 1));
}

/// Classes are seen by everybody; what was learnt of a thread by its own user, by root and by members.
#[test]
fn what_was_learnt_is_seen_by_its_own_user() {
    let mut world = World::new(2);
    users_process(&mut world, 100);
    world.host.process(200, "init", &[]);
    for (at, pid) in [100, 200].into_iter().enumerate() {
        reserve_as(&mut world, ROOT, Holder::Process(pid), (1, 33));
        let made = world.kernel.made[at].name.raw();
        world.kernel.learnt.insert(made, pid);
    }
    let mut seen_by = |caller| match world.answer_to(caller, &Request::Status {}) {
        Reply::Status(status) => {
            assert_eq!(status.seen.counters["picks"], 7);
            let learnt = status.learnt.iter().map(|learnt| learnt.pid);
            learnt.collect::<Vec<_>>()
        }
        reply => panic!("{reply:?}"),
    };
    assert_eq!(seen_by(USER), [100]);
    assert_eq!(seen_by(MEMBER), [100, 200]);
    assert_eq!(seen_by(ROOT), [100, 200]);
    let mut why = |caller, pid| match world.answer_to(caller, &Request::Why { pid }) {
        Reply::Why { .. } => None,
        Reply::Error(fault) => Some(fault.kind),
        reply => panic!("{reply:?}"),
    };
    assert_eq!(why(USER, 100), None);
    assert_eq!(why(USER, 200), Some(FaultKind::NotPermitted));
    assert_eq!(why(MEMBER, 200), None);
    for nobody in [0, -1, 999] {
        assert_eq!(why(ROOT, nobody), Some(FaultKind::NoProcess));
    }
}
