// SPDX-License-Identifier: GPL-2.0
//! Events whose sinks are contracts with windows (`core/event.h`, `bpf/events.h`).

use std::fmt;
use std::str::FromStr;

use libbpf_rs::ProgramInput;

use crate::contracts::{CallError, ContractName};
use crate::loader::Scheduler;
use crate::skel::types;

/// Services whose events a contract can wait for at a time (`AN_SERVICES`).
pub const SERVICES: u32 = 4;

/// By which rules the sink of an event may run in the place of what was selected (`core/event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRules {
    /// Rules 2 to 5. Rule 1, a sink that is selected anyway, is always there.
    pub rules: [bool; 4],
    /// Whether every CPU has a task server, of what its contracts leave, for rule 5.
    pub server: bool,
}

impl Default for EventRules {
    fn default() -> Self {
        Self {
            rules: [true; 4],
            server: true,
        }
    }
}

impl EventRules {
    /// Those left out: `AN_EVENT_NO_RULE_2` and so on.
    pub fn left_out(self) -> u32 {
        let bits = (4..).zip(self.rules);
        bits.map(|(bit, given)| u32::from(!given) << bit).sum()
    }
}

/// As it is read.
impl fmt::Display for EventRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = ["2", "3", "4", "5"].into_iter().zip(self.rules);
        let given = rules.chain([("server", self.server)]);
        let words = given.filter_map(|(word, given)| given.then_some(word));
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for EventRules {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut rules = Self {
            rules: [false; 4],
            server: false,
        };
        for word in text.split(',') {
            match word {
                "2" | "3" | "4" | "5" => rules.rules[usize::from(word.as_bytes()[0] - b'2')] = true,
                "server" => rules.server = true,
                _ => return Err(format!("`{word}` is none of 2, 3, 4, 5 and server")),
            }
        }
        Ok(rules)
    }
}

/// Whose event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sink {
    /// This contract's.
    Contract(ContractName),
    /// That of the contract which this thread of the root pid namespace holds.
    Thread(i32),
}

/// `enum an_event_op`.
mod op {
    pub const RAISE: u32 = 1;
    pub const SERVERS: u32 = 2;
}

impl Scheduler {
    /// The sink has an event of this service, to be delivered at `deliver_ns` of `CLOCK_MONOTONIC`, or now if
    /// that is past. Of one service there is one event at a time: the last.
    ///
    /// # Errors
    /// [`CallError::Ended`]: there is no such contract; any other: it has no window, or events are off.
    pub fn event_raise(
        &mut self,
        sink: Sink,
        service: u32,
        deliver_ns: u64,
    ) -> Result<(), CallError> {
        let (name, pid) = match sink {
            Sink::Contract(name) => (name.0, 0),
            Sink::Thread(tid) => (0, tid),
        };
        self.event_call(types::an_event_call {
            op: op::RAISE,
            name,
            pid,
            service,
            deliver_ns,
        })
    }

    /// The task servers are what contracts leave. To be called every second or so.
    pub(crate) fn event_servers(&mut self) -> Result<(), CallError> {
        if !self.events.is_some_and(|rules| rules.server) {
            return Ok(());
        }
        self.event_call(types::an_event_call {
            op: op::SERVERS,
            ..Default::default()
        })
    }

    fn event_call(&mut self, call: types::an_event_call) -> Result<(), CallError> {
        let without = || CallError::Other("it was loaded without events".into());
        let unmapped = || CallError::Other("its memory is not mapped".into());
        let section = self.object.contracts_mut().ok_or_else(unmapped)?;
        // SAFETY: the pointer is to the mapped section, which lives as long as the skeleton. Only this
        // process writes there and, while the program below runs, the kernel.
        unsafe { (&raw mut (*section).event_call).write_volatile(call) };
        let ran = self
            .object
            .event_program()
            .ok_or_else(without)?
            .test_run(ProgramInput::default())
            .map_err(|error| CallError::Other(error.to_string()))?;
        match ran.return_value as i32 {
            0 => Ok(()),
            -2 => Err(CallError::Ended),
            other => Err(CallError::Other(format!("status {other}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named_one_by_one() {
        assert_eq!("2,3,4,5,server".parse(), Ok(EventRules::default()));
        assert_eq!(EventRules::default().left_out(), 0);
        let one: EventRules = "4".parse().unwrap();
        assert_eq!((one.left_out(), one.server), (0b1011 << 4, false));
        assert!("1".parse::<EventRules>().is_err());
        assert!("".parse::<EventRules>().is_err());
    }

    /// The constant above is the core's.
    #[test]
    fn there_are_as_many_services_as_in_the_kernel() {
        let services = |contract: &types::an_contract| contract.event_ns.len();
        assert_eq!(services(&types::an_contract::default()), SERVICES as usize);
    }
}
