//! By which rule a decision was taken: `core/rule.h`.

use std::ffi::{CStr, c_char};

unsafe extern "C" {
    fn an_sys_rule_name(rule: u32) -> *const c_char;
}

/// A rule, by its number in `enum an_rule`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule(pub u32);

impl Rule {
    /// Nothing to run, nothing happened.
    pub const NONE: Self = Self(0);
    /// No contract: the class tree's share.
    pub const SHARE: Self = Self(9);
    /// The sink of the first event, selected anyway; rules 2 to 5 follow.
    pub const EVENT_1: Self = Self(11);
    /// Nobody else was to be preferred.
    pub const GOES_ON: Self = Self(19);
    /// It was its resource container's turn.
    pub const TURN: Self = Self(20);

    /// As it is written in traces and explanations.
    pub fn name(self) -> &'static str {
        // SAFETY: returns a string constant, whatever the number.
        let name = unsafe { CStr::from_ptr(an_sys_rule_name(self.0)) };
        name.to_str().expect("the names are ASCII")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_those_of_the_core() {
        let named = [
            (Rule::NONE, "none"),
            (Rule::SHARE, "share"),
            (Rule::EVENT_1, "event-rule-1"),
            (Rule(Rule::EVENT_1.0 + 4), "event-rule-5"),
            (Rule::GOES_ON, "goes-on"),
            (Rule::TURN, "turn"),
            (Rule(999), "unknown"),
        ];
        for (rule, name) in named {
            assert_eq!(rule.name(), name);
        }
    }
}
