//! Contracts of a link.

use andante_admission::link::{
    Link, LinkAnswer, LinkContract, LinkError, LinkRefusal, LinkSystem, MAX_LINK_CONTRACTS,
};

const MS: u64 = 1_000_000;

fn contract(name: &str, bytes: u32, period_ms: u64) -> LinkContract {
    LinkContract {
        name: name.into(),
        bytes,
        period_ns: period_ms * MS,
    }
}

/// Ten Mbit/s in packets of 1250 bytes, which take a millisecond each.
fn link() -> LinkSystem {
    LinkSystem::new(Link {
        rate: 1_250_000,
        largest: 1250,
        left_for_others_per_mille: 0,
    })
    .unwrap()
}

fn refusal(system: &LinkSystem, asked: &LinkContract) -> LinkRefusal {
    match system.ask(asked).unwrap() {
        LinkAnswer::Refused(refusal) => refusal,
        LinkAnswer::Admitted => panic!("{asked:?} is admitted"),
    }
}

/// Alone it may have all of a period but for a packet that was begun, and one that is its own.
#[test]
fn one_contract_leaves_room_for_two_packets() {
    let system = link();
    assert_eq!(
        system.ask(&contract("film", 10_000, 10)),
        Ok(LinkAnswer::Admitted)
    );
    let refused = refusal(&system, &contract("film", 10_001, 10));
    assert_eq!(refused.most_bytes, Some(10_000));
    // 8000.8 us and two packets: rounded up to three digits.
    assert_eq!(refused.shortest_period_ns, Some(10_100_000));
    assert_eq!(refused.held_rate, 0);
}

/// Each that comes may be ahead by a packet: that is asked of those that are there, too.
#[test]
fn another_contract_needs_room_beyond_its_budget() {
    let mut system = link();
    let film = contract("film", 7000, 8); // 5.6 ms and two packets; with another contract three
    assert_eq!(system.admit(film), Ok(LinkAnswer::Admitted));
    // The little that this wants is there, but not the third packet.
    let refused = refusal(&system, &contract("call", 100, 1000));
    assert_eq!(
        (refused.most_bytes, refused.shortest_period_ns),
        (None, None)
    );
    assert_eq!(refused.held_rate, 875_000);
    assert!(system.release("film") && !system.release("film"));
    assert_eq!(
        system.admit(contract("call", 100, 1000)),
        Ok(LinkAnswer::Admitted)
    );
    assert_eq!(
        system.admit(contract("film", 5000, 8)),
        Ok(LinkAnswer::Admitted)
    );
    assert_eq!(system.held().len(), 2);
}

/// What is offered is admitted.
#[test]
fn offers_are_admitted() {
    for held in [500, 2000, 4000] {
        for bytes in [3000, 9000, 20_000, 200_000] {
            let mut system = link();
            system.admit(contract("held", held, 20)).unwrap();
            let asked = contract("asked", bytes, 12);
            let LinkAnswer::Refused(refused) = system.ask(&asked).unwrap() else {
                continue;
            };
            let offers = [
                refused.most_bytes.map(|bytes| LinkContract {
                    bytes,
                    ..asked.clone()
                }),
                refused.shortest_period_ns.map(|period_ns| LinkContract {
                    period_ns,
                    ..asked.clone()
                }),
            ];
            assert!(offers[0].is_some(), "nothing is offered beside {held}");
            for offer in offers.into_iter().flatten() {
                assert_eq!(system.ask(&offer), Ok(LinkAnswer::Admitted), "{offer:?}");
            }
        }
    }
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let rates = [0, u64::MAX];
    for rate in rates {
        let link = Link {
            rate,
            largest: 1500,
            left_for_others_per_mille: 0,
        };
        assert_eq!(LinkSystem::new(link).unwrap_err(), LinkError::Rate(rate));
    }
    let mut system = link();
    for asked in [
        contract("none", 0, 10),
        contract("long", 1, 5000),
        contract("no", 1, 0),
    ] {
        let error = system.ask(&asked).unwrap_err();
        assert!(matches!(error, LinkError::NoContract { .. }), "{error}");
    }
    let mut fast = LinkSystem::new(Link {
        rate: 125_000_000,
        largest: 1500,
        left_for_others_per_mille: 50,
    })
    .unwrap();
    for n in 0..MAX_LINK_CONTRACTS {
        let asked = contract(&n.to_string(), 1000, 100);
        assert_eq!(fast.admit(asked), Ok(LinkAnswer::Admitted), "{n}");
    }
    assert_eq!(fast.ask(&contract("more", 1, 1000)), Err(LinkError::Full));
    system.admit(contract("film", 100, 10)).unwrap();
    let error = system.ask(&contract("film", 100, 10)).unwrap_err();
    assert!(error.to_string().contains("`film` already"), "{error}");
}
