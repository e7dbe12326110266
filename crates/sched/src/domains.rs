//! Domains: the CPUs of a large machine in groups, each with a class tree and a lock of its own
//! (`core/domains.h`), and the scheduler's object in the kernel, which is another one then.

use std::mem::offset_of;
use std::ptr;

use libbpf_rs::{MapMut, ProgramMut};

use crate::domains_skel::{DomainsSkel, types as domains_types};
use crate::events_skel::{EventsSkel, types as events_types};
use crate::skel::{SchedSkel, types};

/// CPUs up to which one tree, under one lock, is best.
const CPUS_OF_ONE: u32 = 32;
/// CPUs of a domain where there are more.
const CPUS_OF_EACH: u32 = 16;
/// Domains at most (`AN_MAX_DOMAINS`).
const MAX_DOMAINS: u32 = 64;

/// CPUs that this process may use.
pub(crate) fn online_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// How the CPUs are divided: by their numbers, the first so many into the first domain, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Domains {
    /// CPUs of each, a power of two; the last may have fewer.
    pub cpus: u32,
    /// How many there are.
    pub count: u32,
}

impl Domains {
    /// Those of this machine. If `asked`, so many CPUs go into each domain, or as many as the next
    /// power of two says.
    pub fn here(asked: Option<u32>) -> Self {
        let possible = libbpf_rs::num_possible_cpus().unwrap_or(1) as u32;
        Self::of(possible, online_cpus(), asked)
    }

    fn of(possible_cpus: u32, online_cpus: u32, asked: Option<u32>) -> Self {
        let each = match asked {
            Some(cpus) => cpus,
            // Virtual machines often have room for far more CPUs than they will ever be given.
            None if online_cpus <= CPUS_OF_ONE => possible_cpus,
            None => CPUS_OF_EACH,
        };
        let least = possible_cpus.div_ceil(MAX_DOMAINS);
        let cpus = each.max(least).max(1).next_power_of_two();
        Self {
            cpus,
            count: possible_cpus.div_ceil(cpus).max(1),
        }
    }
}

/// The scheduler's object: with one tree, with several, or with one and coordinated events.
pub(crate) enum Object {
    One(SchedSkel<'static>),
    Several(DomainsSkel<'static>),
    Events(EventsSkel<'static>),
}

/// Variables of the objects are laid out alike.
macro_rules! alike {
    ($($of:ident),*) => {$(
        const _: () = assert!(size_of::<types::$of>() == size_of::<domains_types::$of>());
        const _: () = assert!(size_of::<types::$of>() == size_of::<events_types::$of>());
    )*};
}
alike!(bss, an_tree, bss_bandwidths, bss_policies, bss_contracts);

/// What is looked for in the largest of them lies in the same place.
macro_rules! in_place {
    ($($field:ident),*) => {$(
        const _: () = assert!(
            offset_of!(types::bss_contracts, $field) == offset_of!(domains_types::bss_contracts, $field)
        );
        const _: () = assert!(
            offset_of!(types::bss_contracts, $field) == offset_of!(events_types::bss_contracts, $field)
        );
    )*};
}
in_place!(contracts, holders, contract_call, event_call);

impl Object {
    /// The variables, as the kernel has them; it writes them at any time. None: they are not mapped.
    pub fn variables(&self) -> Option<*const types::bss> {
        Some(match self {
            Self::One(skel) => ptr::from_ref(skel.maps.bss_data.as_deref()?),
            Self::Several(skel) => ptr::from_ref(skel.maps.bss_data.as_deref()?).cast(),
            Self::Events(skel) => ptr::from_ref(skel.maps.bss_data.as_deref()?).cast(),
        })
    }

    /// The tree of the first domain; all have the same classes.
    pub fn tree(&self) -> Option<*const types::an_tree> {
        Some(match self {
            Self::One(skel) => ptr::from_ref(skel.maps.bss_trees_data.as_deref()?).cast(),
            Self::Several(skel) => ptr::from_ref(skel.maps.bss_trees_data.as_deref()?).cast(),
            Self::Events(skel) => ptr::from_ref(skel.maps.bss_trees_data.as_deref()?).cast(),
        })
    }

    /// The quotas of classes, by leaf.
    pub fn bandwidths(&self) -> Option<*const types::bss_bandwidths> {
        Some(match self {
            Self::One(skel) => ptr::from_ref(skel.maps.bss_bandwidths_data.as_deref()?),
            Self::Several(skel) => ptr::from_ref(skel.maps.bss_bandwidths_data.as_deref()?).cast(),
            Self::Events(skel) => ptr::from_ref(skel.maps.bss_bandwidths_data.as_deref()?).cast(),
        })
    }

    /// The policies of classes, by leaf.
    pub fn policies(&self) -> Option<*const types::bss_policies> {
        Some(match self {
            Self::One(skel) => ptr::from_ref(skel.maps.bss_policies_data.as_deref()?),
            Self::Several(skel) => ptr::from_ref(skel.maps.bss_policies_data.as_deref()?).cast(),
            Self::Events(skel) => ptr::from_ref(skel.maps.bss_policies_data.as_deref()?).cast(),
        })
    }

    /// Those of contracts.
    pub fn contracts(&self) -> Option<*const types::bss_contracts> {
        Some(match self {
            Self::One(skel) => ptr::from_ref(skel.maps.bss_contracts_data.as_deref()?),
            Self::Several(skel) => ptr::from_ref(skel.maps.bss_contracts_data.as_deref()?).cast(),
            Self::Events(skel) => ptr::from_ref(skel.maps.bss_contracts_data.as_deref()?).cast(),
        })
    }

    /// The same, to write what is asked for.
    pub fn contracts_mut(&mut self) -> Option<*mut types::bss_contracts> {
        Some(match self {
            Self::One(skel) => ptr::from_mut(skel.maps.bss_contracts_data.as_deref_mut()?),
            Self::Several(skel) => {
                ptr::from_mut(skel.maps.bss_contracts_data.as_deref_mut()?).cast()
            }
            Self::Events(skel) => {
                ptr::from_mut(skel.maps.bss_contracts_data.as_deref_mut()?).cast()
            }
        })
    }

    /// What is kept of every task.
    pub fn task_states(&self) -> &libbpf_rs::MapMut<'static> {
        match self {
            Self::One(skel) => &skel.maps.task_states,
            Self::Several(skel) => &skel.maps.task_states,
            Self::Events(skel) => &skel.maps.task_states,
        }
    }

    /// What is kept of the pages of threads in sessions.
    pub fn thread_pages(&self) -> &libbpf_rs::MapMut<'static> {
        match self {
            Self::One(skel) => &skel.maps.thread_pages,
            Self::Several(skel) => &skel.maps.thread_pages,
            Self::Events(skel) => &skel.maps.thread_pages,
        }
    }

    /// The program that gives a cgroup which shares its parent's class one of its own.
    pub fn class_program(&self) -> &ProgramMut<'static> {
        match self {
            Self::One(skel) => &skel.progs.andante_class,
            Self::Several(skel) => &skel.progs.andante_class,
            Self::Events(skel) => &skel.progs.andante_class,
        }
    }

    /// What is known of policies of classes, to write what is asked for.
    pub fn policies_mut(&mut self) -> Option<*mut types::bss_policies> {
        Some(match self {
            Self::One(skel) => ptr::from_mut(skel.maps.bss_policies_data.as_deref_mut()?),
            Self::Several(skel) => {
                ptr::from_mut(skel.maps.bss_policies_data.as_deref_mut()?).cast()
            }
            Self::Events(skel) => ptr::from_mut(skel.maps.bss_policies_data.as_deref_mut()?).cast(),
        })
    }

    /// The program that gives a class a policy of its own.
    pub fn policy_program(&self) -> &ProgramMut<'static> {
        match self {
            Self::One(skel) => &skel.progs.andante_policy,
            Self::Several(skel) => &skel.progs.andante_policy,
            Self::Events(skel) => &skel.progs.andante_policy,
        }
    }

    /// The cgroups that share their parent's class.
    pub fn class_sharing(&self) -> &MapMut<'static> {
        match self {
            Self::One(skel) => &skel.maps.class_sharing,
            Self::Several(skel) => &skel.maps.class_sharing,
            Self::Events(skel) => &skel.maps.class_sharing,
        }
    }

    /// The program that raises events, of the object that has it.
    pub fn event_program(&self) -> Option<&ProgramMut<'static>> {
        match self {
            Self::Events(skel) => Some(&skel.progs.andante_event),
            Self::One(_) | Self::Several(_) => None,
        }
    }

    /// Those that are sources.
    pub fn eventfds(&self) -> &MapMut<'static> {
        match self {
            Self::One(skel) => &skel.maps.eventfds,
            Self::Several(skel) => &skel.maps.eventfds,
            Self::Events(skel) => &skel.maps.eventfds,
        }
    }

    /// The programs that see what is written to them, and their end.
    pub fn eventfd_programs(&self) -> [&ProgramMut<'static>; 2] {
        macro_rules! both {
            ($skel:expr) => {
                [
                    &$skel.progs.andante_eventfd,
                    &$skel.progs.andante_eventfd_ends,
                ]
            };
        }
        match self {
            Self::One(skel) => both!(skel),
            Self::Several(skel) => both!(skel),
            Self::Events(skel) => both!(skel),
        }
    }

    /// The rings by which sinks are told of their events.
    pub fn rings(&self) -> &MapMut<'static> {
        match self {
            Self::One(skel) => &skel.maps.rings,
            Self::Several(skel) => &skel.maps.rings,
            Self::Events(skel) => &skel.maps.rings,
        }
    }

    /// The ring of sinks that are told by who has loaded the scheduler.
    pub fn late(&self) -> &MapMut<'static> {
        match self {
            Self::One(skel) => &skel.maps.late,
            Self::Several(skel) => &skel.maps.late,
            Self::Events(skel) => &skel.maps.late,
        }
    }

    /// What is noted with sockets.
    pub fn sources(&self) -> &libbpf_rs::MapMut<'static> {
        match self {
            Self::One(skel) => &skel.maps.sources,
            Self::Several(skel) => &skel.maps.sources,
            Self::Events(skel) => &skel.maps.sources,
        }
    }

    /// The program that sees what comes to sockets.
    pub fn source_program(&self) -> &ProgramMut<'static> {
        match self {
            Self::One(skel) => &skel.progs.andante_data_comes,
            Self::Several(skel) => &skel.progs.andante_data_comes,
            Self::Events(skel) => &skel.progs.andante_data_comes,
        }
    }

    /// The program that hears fast calls.
    pub fn fast_call_program(&self) -> &ProgramMut<'static> {
        match self {
            Self::One(skel) => &skel.progs.andante_fast_call,
            Self::Several(skel) => &skel.progs.andante_fast_call,
            Self::Events(skel) => &skel.progs.andante_fast_call,
        }
    }

    /// The program that general calls run.
    pub fn call_program(&self) -> &ProgramMut<'static> {
        match self {
            Self::One(skel) => &skel.progs.andante_call,
            Self::Several(skel) => &skel.progs.andante_call,
            Self::Events(skel) => &skel.progs.andante_call,
        }
    }

    /// The program that does what is asked for.
    pub fn contract_program(&self) -> &ProgramMut<'static> {
        match self {
            Self::One(skel) => &skel.progs.andante_contract,
            Self::Several(skel) => &skel.progs.andante_contract,
            Self::Events(skel) => &skel.progs.andante_contract,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_cpus_are_one_domain() {
        for cpus in 1..=CPUS_OF_ONE {
            assert_eq!(Domains::of(cpus, cpus, None).count, 1, "{cpus} CPUs");
            assert_eq!(Domains::of(512, cpus, None).count, 1, "{cpus} CPUs online");
        }
        let three = Domains { cpus: 16, count: 3 };
        let most = Domains {
            cpus: 16,
            count: 64,
        };
        assert_eq!(Domains::of(33, 33, None), three);
        assert_eq!(Domains::of(1024, 1024, None), most);
    }

    #[test]
    fn domains_are_powers_of_two_and_not_too_many() {
        assert_eq!(Domains::of(4, 4, Some(2)), Domains { cpus: 2, count: 2 });
        assert_eq!(Domains::of(4, 4, Some(3)), Domains { cpus: 4, count: 1 });
        assert_eq!(Domains::of(1024, 8, Some(1)).cpus, 16);
    }
}
