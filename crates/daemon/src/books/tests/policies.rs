// SPDX-License-Identifier: GPL-2.0
//! Policies of classes.

use andante_sched::LeafPolicy;

use super::*;

fn world() -> World {
    let mut world = World::new(1);
    world.class("/film", 0);
    world.class("/build", 0);
    world
}

fn look(world: &mut World, class: &str) -> Reply {
    world.answer(&Request::Policy {
        class: class.to_owned(),
    })
}

fn id(world: &mut World, class: &str) -> u64 {
    world.host.class_facts(class).cgroup_id
}

#[test]
fn the_scheduler_is_told_what_is_kept_with_the_cgroup() {
    let mut world = world();
    let build = id(&mut world, "/build");
    let policy = LeafPolicy::RoundRobin(Some(20 * MS));
    world.host.policies.insert("/build".into(), policy);
    assert_eq!(look(&mut world, "/build"), Reply::Policy { policy });
    assert_eq!(world.kernel.policies[&build], policy);
    // Taken away again.
    world.host.policies.clear();
    let policy = LeafPolicy::Sfq;
    assert_eq!(look(&mut world, "/build"), Reply::Policy { policy });
    assert_eq!(world.kernel.policies[&build], policy);
}

#[test]
fn what_cannot_have_a_policy_is_told_why() {
    let mut world = world();
    let build = id(&mut world, "/build");
    world.kernel.inner.push(build);
    let policy = LeafPolicy::Fifo;
    world.host.policies.insert("/build".into(), policy);
    let fault = |reply| match reply {
        Reply::Error(fault) => fault,
        reply => panic!("{reply:?}"),
    };
    let inner = fault(look(&mut world, "/build"));
    assert_eq!(inner.kind, FaultKind::BadTerms);
    assert!(inner.message.contains("policies are for leaves"), "{inner}");
    let unknown = fault(look(&mut world, "/nobody"));
    assert_eq!(unknown.kind, FaultKind::UnknownClass);
}

#[test]
fn all_that_are_kept_are_told_at_once() {
    let mut world = world();
    let ids = [id(&mut world, "/film"), id(&mut world, "/build")];
    let policies = [LeafPolicy::Deadline(20 * MS), LeafPolicy::Svr4Ts];
    for (class, policy) in ["/film", "/build"].into_iter().zip(policies) {
        world.host.policies.insert(class.into(), policy);
    }
    crate::books::policies::look_at_all(&mut world.kernel, &world.host);
    for (id, policy) in ids.iter().zip(policies) {
        assert_eq!(world.kernel.policies[id], policy);
    }
}
