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
