// SPDX-License-Identifier: GPL-2.0
//! CPUs that leave and come back, affinities that change.

use super::*;

/// Where each contract is, by the list.
fn places(world: &mut World) -> Vec<(String, Option<Placement>)> {
    let listed = world.list().contracts.into_iter();
    listed
        .map(|listed| (listed.name, listed.placement))
        .collect()
}

fn on(cpu: u32) -> Option<Placement> {
    Some(Placement::Whole { cpu })
}

/// Contracts of half a CPU each for p-100, p-200 and so on.
fn with_halves(cpus: u32, halves: i32) -> World {
    let mut world = World::new(cpus);
    for pid in (1..=halves).map(|n| n * 100) {
        world.host.process(pid, "p", &[pid + 1]);
        world.reserve(pid, 5, 10);
    }
    world
}

#[test]
fn who_is_on_a_cpu_that_leaves_moves_and_nobody_else_does() {
    let mut world = with_halves(4, 3);
    world.host.online = vec![0, 2, 3];
    world.look();
    let expected = [("p-100", on(0)), ("p-200", on(3)), ("p-300", on(2))];
    let expected = expected.map(|(name, place)| (name.to_owned(), place));
    assert_eq!(places(&mut world), expected);
    // Moved as it was: the same contract in the kernel, on another CPU.
    assert_eq!(world.kernel.made.len(), 3);
    assert_eq!(world.kernel.made[1].promise.cpu, 3);
    let moved = Event::Moved {
        name: "p-200".into(),
        to: Placement::Whole { cpu: 3 },
    };
    assert_eq!(world.books.take_events(), [moved]);
    assert!(world.books.take_events().is_empty());
    // A place that is free again is nobody's reason to move.
    world.host.online = vec![0, 1, 2, 3];
    world.look();
    assert_eq!(places(&mut world), expected);
}

#[test]
fn who_fits_nowhere_waits_for_room_on_its_share() {
    let mut world = with_halves(2, 2);
    world.host.online = vec![0];
    world.look();
    assert_eq!(places(&mut world)[1], ("p-200".into(), None));
    assert_eq!(world.kernel.only().bound, [100, 101]);
    let events = world.books.take_events();
    assert!(events[0].is_bad() && events.len() == 1, "{events:?}");
    assert!(events[0].to_string().contains("p-200"), "{}", events[0]);
    // It still counts, is found, and comes back when there is room: another one ends ...
    world.release("100");
    assert_eq!(places(&mut world), [("p-200".into(), on(0))]);
    assert_eq!(world.kernel.only().bound, [200, 201]);
    let housed = &world.books.take_events()[0];
    assert!(matches!(housed, Event::Housed { .. }), "{housed:?}");
    // ... or a CPU comes back.
    world.reserve(100, 1, 10);
    world.host.online = vec![1];
    world.look();
    world.books.take_events();
    world.host.online = vec![0, 1];
    world.look();
    assert!(places(&mut world).iter().all(|(_, place)| place.is_some()));
}

#[test]
fn who_has_no_place_and_ends_is_forgotten() {
    let mut world = with_halves(2, 2);
    world.host.online = vec![1];
    world.look();
    let homeless: Vec<_> = places(&mut world)
        .into_iter()
        .filter(|(_, place)| place.is_none())
        .collect();
    assert_eq!(homeless, [("p-100".to_owned(), None)]);
    world.host.exit(100);
    assert_eq!(places(&mut world).len(), 1);
}

#[test]
fn a_split_contract_is_made_anew_where_a_piece_loses_its_cpu() {
    let mut world = with_halves(3, 3);
    for pid in [400, 500] {
        world.host.process(pid, "p", &[pid + 1]);
    }
    // 0.3 are left of each of three CPUs.
    let reserved = world.reserve(400, 5, 10);
    let Placement::Split { pieces } = reserved.placement else {
        panic!("no CPU has 0.5 left");
    };
    assert_eq!(pieces.len(), 2);
    let before = world.kernel.made.last().unwrap().name;
    world.release("300"); // room for all of it on CPU 2
    world.host.online = vec![0, 2];
    world.look();
    // p-200 was on CPU 1 and comes first; what is left for p-400 is 0.3 on each.
    assert_eq!(places(&mut world)[1], ("p-200".into(), on(2)));
    let (_, place) = places(&mut world).pop().unwrap();
    assert!(place.unwrap().is_split());
    let made = world.kernel.made.last().unwrap();
    assert_ne!(made.name, before);
    assert_eq!(made.bound, [400, 401]);
    assert_eq!(
        made.pieces.iter().map(|p| p.cpu).collect::<Vec<_>>(),
        [0, 2]
    );
    assert_eq!(world.kernel.made.len(), 3, "the old one has ended");
}

#[test]
fn a_class_moves_with_a_new_contract_too() {
    let mut world = with_halves(3, 3);
    world.class("/film", 0);
    let reply = world.try_reserve(Holder::Class("/film".into()), 5, 10);
    let Reply::Reserved(reserved) = reply else {
        panic!("{reply:?}");
    };
    assert!(reserved.placement.is_split());
    world.release("300");
    world.host.online = vec![0, 2];
    world.look();
    assert_eq!(world.kernel.made.len(), 3);
    assert!(
        world
            .kernel
            .made
            .iter()
            .any(|made| { matches!(made.held_by, HeldBy::Class(_)) && made.pieces.len() == 2 })
    );
}

#[test]
fn with_a_removed_class_its_contract_is_gone_before_the_kernel_notices() {
    let mut world = World::new(1);
    world.class("/film", 0);
    world.try_reserve(Holder::Class("/film".into()), 5, 10);
    assert_eq!(world.kernel.made.len(), 1);
    world.host.remove_class("/film");
    assert!(world.list().contracts.is_empty());
    assert!(world.kernel.made.is_empty());
    world.host.process(7, "p", &[]);
    world.reserve(7, 8, 10);
}

#[test]
fn a_contract_follows_its_holder_to_the_cpus_that_it_may_use() {
    let mut world = with_halves(3, 1);
    world.class("/film", 0);
    world.try_reserve(Holder::Class("/film".into()), 5, 10);
    for tid in [100, 101] {
        world.host.change(tid).allowed = 0b100;
    }
    world.host.class_facts("/film").allowed = 0b001;
    world.look();
    let expected = [("p-100".to_owned(), on(2)), ("/film".to_owned(), on(0))];
    assert_eq!(places(&mut world), expected);
    // Where it may go is no reason to leave.
    world.host.class_facts("/film").allowed = 0b111;
    world.look();
    assert_eq!(places(&mut world), expected);
}

#[test]
fn cpus_are_said_in_the_machines_numbers() {
    let mut world = World::new(1);
    world.host.online = vec![3, 9];
    world.host.process(100, "p", &[]);
    world.host.process(200, "p", &[]);
    assert_eq!(
        world.reserve(100, 6, 10).placement,
        Placement::Whole { cpu: 3 }
    );
    assert_eq!(world.kernel.only().promise.cpu, 3);
    let refused = world.refused(200, 9, 10);
    let cpus: Vec<_> = refused.refusal.cpus.iter().map(|found| found.cpu).collect();
    assert_eq!(cpus, [3, 9]);
    let offer = refused.refusal.nearest.largest_budget.unwrap();
    assert_eq!(offer.admission.placement, Placement::Whole { cpu: 9 });
}

/// What must hold between any two calls.
fn check(world: &mut World, before: &[(String, Option<Placement>)], gone: Option<u32>) {
    let now = places(world);
    let placed = now.iter().filter(|(_, place)| place.is_some()).count();
    assert_eq!(
        world.kernel.made.len(),
        placed,
        "the kernel has what has a place"
    );
    for (name, place) in &now {
        let Some(place) = place else { continue };
        let cpus = cpus::mask(place);
        let online = world
            .host
            .online
            .iter()
            .fold(0, |mask, cpu| mask | cpus::bit(*cpu));
        assert_eq!(cpus & !online, 0, "{name} is on CPUs that are there");
        assert_eq!(
            world.books.system.promise(&key_of(0, name)),
            Some(Promised::EveryDeadline)
        );
        // Who was nowhere near the CPU that left is where he was.
        let earlier = before.iter().find(|(known, _)| known == name);
        if let Some((_, Some(earlier))) = earlier
            && gone.is_none_or(|gone| cpus::mask(earlier) & cpus::bit(gone) == 0)
        {
            assert_eq!(earlier, place, "{name} has not moved");
        }
    }
    // Admission, asked anew, has room for all of them where they are.
    let mut again = empty_system(&world.books.settings, &world.books.online).unwrap();
    for held in &world.books.held {
        let Some(place) = &held.place else { continue };
        let placement = cpus::to_admission(&place.placement, &world.books.online).unwrap();
        again
            .restore(held.terms.contract(&held.name), placement)
            .unwrap();
    }
    for held in world.books.held.iter().filter(|held| held.place.is_some()) {
        assert_eq!(again.promise(&held.name), Some(Promised::EveryDeadline));
    }
}

/// Programs and CPUs come and go at random; nothing that was promised is broken.
#[test]
fn whatever_comes_and_goes_the_books_are_right() {
    let mut state: u64 = 1;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut world = World::new(4);
    let (mut split, mut homeless) = (0, 0);
    for _ in 0..3000 {
        let before = places(&mut world);
        let pid = 1 + random(12) as i32;
        let mut gone = None;
        match random(8) {
            0..4 => {
                world.host.process(pid, "p", &[]);
                let period_ms = 5 + random(50);
                let budget_ms = 1 + random(period_ms * 7 / 10);
                world.try_reserve(Holder::Process(pid), budget_ms, period_ms);
            }
            4 => drop(world.release(&pid.to_string())),
            5 => {
                world.host.exit(pid);
                world.kernel.made.retain(|made| made.bound != [pid]);
            }
            6 if world.host.online.len() > 1 => {
                let at = random(world.host.online.len() as u64) as usize;
                gone = Some(world.host.online.remove(at));
            }
            _ => {
                world.host.online = vec![0, 1, 2, 3];
            }
        }
        world.look();
        check(&mut world, &before, gone);
        split += places(&mut world)
            .iter()
            .filter(|(_, place)| is_split(place))
            .count();
        homeless += places(&mut world)
            .iter()
            .filter(|(_, place)| place.is_none())
            .count();
    }
    assert!(
        split > 100 && homeless > 100,
        "all of it is tried: {split}, {homeless}"
    );
}

fn is_split(place: &Option<Placement>) -> bool {
    place.as_ref().is_some_and(Placement::is_split)
}
