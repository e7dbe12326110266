// SPDX-License-Identifier: GPL-2.0
//! What `andante run` may be told, by its options or in its files (`/etc/andante.toml`), and in which
//! bounds. Which files these are is the command's.

mod net;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use andante_document::{DocumentError, Node, Section};
use andante_sched::Options;

pub use net::NetDevice;

use crate::memory::MemorySettings;

/// What may be chosen; None: nothing is said of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// Service of one pick [µs].
    pub slice_us: Option<u32>,
    /// Of every CPU, for what is learnt [%].
    pub learn_percent: Option<u32>,
    /// Whether a server works with the share of the client it serves.
    pub binding: Option<bool>,
    /// Of every CPU, for everybody without a contract [%].
    pub leave_percent: Option<u32>,
    /// Of the machine, for contracts of a user [%].
    pub user_quota_percent: Option<u32>,
    /// Of the machine, for contracts of all users together [%].
    pub users_quota_percent: Option<u32>,
    /// Of the machine, for promises to the sessions of a user [%].
    pub session_quota_percent: Option<u32>,
    /// CPUs of a domain.
    pub domain_cpus: Option<u32>,
    /// Of memory, for what is learnt [%].
    pub learn_memory_percent: Option<u32>,
    /// Network devices by name, and what is said of each.
    pub net: BTreeMap<String, NetDevice>,
}

/// Service of one pick [µs].
pub const SLICE_US: RangeInclusive<u32> = 100..=100_000;
/// Of every CPU, for what is learnt [%].
pub const LEARN_PERCENT: RangeInclusive<u32> = 0..=90;
/// Of memory, for what is learnt [%].
pub const LEARN_MEMORY_PERCENT: RangeInclusive<u32> = 0..=90;
/// Of every CPU, for everybody without a contract [%].
pub const LEAVE_PERCENT: RangeInclusive<u32> = 1..=95;
/// Of the machine, for contracts of a user, of all users together, or of a user's sessions [%].
pub const USER_QUOTA_PERCENT: RangeInclusive<u32> = 0..=100;
/// CPUs of a domain.
pub const DOMAIN_CPUS: RangeInclusive<u32> = 1..=1024;

/// What a user without privilege may reserve if nothing is said [%].
const USER_QUOTA: u32 = 10;

impl Choices {
    /// These, and where they say nothing, those.
    pub fn or(self, other: Self) -> Self {
        Self {
            slice_us: self.slice_us.or(other.slice_us),
            learn_percent: self.learn_percent.or(other.learn_percent),
            binding: self.binding.or(other.binding),
            leave_percent: self.leave_percent.or(other.leave_percent),
            user_quota_percent: self.user_quota_percent.or(other.user_quota_percent),
            users_quota_percent: self.users_quota_percent.or(other.users_quota_percent),
            session_quota_percent: self.session_quota_percent.or(other.session_quota_percent),
            domain_cpus: self.domain_cpus.or(other.domain_cpus),
            learn_memory_percent: self.learn_memory_percent.or(other.learn_memory_percent),
            net: other.net.into_iter().chain(self.net).collect(),
        }
    }

    /// The scheduler's part of them.
    pub fn options(&self) -> Options {
        let default = Options::default();
        Options {
            slice_us: self.slice_us.unwrap_or(default.slice_us),
            leave_percent: self.leave_percent.unwrap_or(default.leave_percent),
            learn_percent: self.learn_percent.unwrap_or(default.learn_percent),
            binding: self.binding.unwrap_or(default.binding),
            domain_cpus: self.domain_cpus,
            events: None,
        }
    }

    /// What a user without privilege may reserve [%].
    pub fn user_quota_percent(&self) -> u32 {
        self.user_quota_percent.unwrap_or(USER_QUOTA)
    }

    /// The bounds of reserved memory: the parts that hold for a CPU hold for it as well.
    pub fn memory(&self) -> MemorySettings {
        let default = MemorySettings::default();
        let left = self.leave_percent.map(|percent| percent * 10);
        let left = left.unwrap_or(default.left_for_others_per_mille);
        let own = self.user_quota_percent() * 10;
        let all = self.users_quota_percent.map(|percent| percent * 10);
        MemorySettings {
            left_for_others_per_mille: left,
            user_quota_per_mille: own,
            users_quota_per_mille: all.unwrap_or((1000 - left) / 2).max(own),
            learnt_per_mille: self
                .learn_memory_percent
                .map_or(default.learnt_per_mille, |percent| percent * 10),
        }
    }

    /// Reads the text of `file`.
    ///
    /// # Errors
    /// The first thing wrong, with line and key.
    pub fn parse(file: &str, text: &str) -> Result<Self, DocumentError> {
        let document = Node::parse(file, text)?;
        let mut top = Section::new(&document, "")?;
        let choices = Self {
            slice_us: whole(&mut top, "slice_us", SLICE_US)?,
            learn_percent: whole(&mut top, "learn_percent", LEARN_PERCENT)?,
            binding: top.get("binding")?,
            leave_percent: whole(&mut top, "leave_percent", LEAVE_PERCENT)?,
            user_quota_percent: whole(&mut top, "user_quota_percent", USER_QUOTA_PERCENT)?,
            users_quota_percent: whole(&mut top, "users_quota_percent", USER_QUOTA_PERCENT)?,
            session_quota_percent: whole(&mut top, "session_quota_percent", USER_QUOTA_PERCENT)?,
            domain_cpus: whole(&mut top, "domain_cpus", DOMAIN_CPUS)?,
            learn_memory_percent: whole(&mut top, "learn_memory_percent", LEARN_MEMORY_PERCENT)?,
            net: net::net(&mut top)?,
        };
        top.finish()?;
        Ok(choices)
    }
}

fn whole(
    top: &mut Section<'_>,
    key: &'static str,
    range: RangeInclusive<u32>,
) -> Result<Option<u32>, DocumentError> {
    let number: Option<u32> = top.get(key)?;
    match number {
        Some(number) if !range.contains(&number) => {
            let (least, most) = range.into_inner();
            let message = format!("{number} is out of range: give {least} to {most}");
            Err(top.error(key, message))
        }
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use andante_net::Wanted;
    use andante_net::receive::{Hook, How, Order};
    use andante_sched::class::ClassPath;

    use super::*;
    use crate::books::Settings;

    fn read(text: &str) -> Result<Choices, String> {
        Choices::parse("my.toml", text).map_err(|error| error.to_string())
    }

    #[test]
    fn one_key_switches_learning_off() {
        let choices = read("learn_percent = 0").unwrap();
        assert_eq!(choices.options().learn_percent, 0);
        let other = Options {
            learn_percent: 0,
            ..Options::default()
        };
        assert_eq!(choices.options(), other);
        // What the command line says comes first.
        let option = Choices {
            learn_percent: Some(30),
            ..Choices::default()
        };
        assert_eq!(option.or(choices).options().learn_percent, 30);
    }

    #[test]
    fn devices_are_told_apart_and_the_later_file_says_what_holds() {
        let first =
            read("[net.eth0]\nrate = \"10mbit\"\n[net.\"eth0.10\"]\nreplace = true").unwrap();
        let then = read("[net.eth0]\nrate = \"20mbit\"").unwrap();
        let net = then.or(first).net;
        assert_eq!(net["eth0"].attach.rate, "20mbit".parse().ok());
        let vlan = Wanted {
            rate: None,
            replace: true,
        };
        assert_eq!(net["eth0.10"].attach, vlan);
    }

    #[test]
    fn a_device_has_weights_of_its_own_and_a_class_for_what_comes() {
        let text = "[net.eth0]\nreceive = \"film\"\nreceive_last = true\nreceive_hook = \"nowhere\"\n\
                    weights = { \"/a/b\" = 300, c = 1 }";
        let eth0 = &read(text).unwrap().net["eth0"];
        let class = |path| ClassPath::parse(path).unwrap();
        assert_eq!(eth0.receive, Some(class("/film")));
        let how = How {
            order: Order::Last,
            early: Some(Hook::Nowhere),
        };
        assert_eq!(eth0.how, how);
        assert_eq!(
            eth0.weights,
            [(class("/a/b"), 300), (class("/c"), 1)].into()
        );
        let nothing = &read("[net.eth0]").unwrap().net["eth0"];
        assert_eq!(*nothing, NetDevice::default());
    }

    #[test]
    fn mistakes_are_told_with_line_and_key() {
        for (text, says) in [
            (
                "\nlern_percent = 0",
                "my.toml:2: lern_percent: unknown key, did you mean `learn_percent`?",
            ),
            (
                "leave_percent = 0",
                "my.toml:1: leave_percent: 0 is out of range: give 1 to 95",
            ),
            (
                "binding = 1",
                "my.toml:1: binding: expected true or false, found a whole number",
            ),
            ("slice_us = ", "my.toml:1: "),
            (
                "[net.eth0]\nrate = \"0bit\"",
                "my.toml:2: net.eth0.rate: 0bit is out of range",
            ),
            (
                "[net.eth0]\nrat = \"10mbit\"",
                "my.toml:2: net.eth0.rat: unknown key, did you mean `rate`?",
            ),
            (
                "[net]\nrate = \"10mbit\"",
                "my.toml:2: net.rate: expected a table",
            ),
            (
                "[net.eth0]\nreceive = \"/a/../b\"",
                "my.toml:2: net.eth0.receive: `/a/../b` is not a class path",
            ),
            (
                "[net.eth0]\nreceive_hook = \"drive\"",
                "my.toml:2: net.eth0.receive_hook: `drive` is not known: give one of \"driver\"",
            ),
            (
                "[net.eth0.weights]\n\"/film\" = 0",
                "my.toml:2: net.eth0.weights.\"/film\": no weight: give a whole number from 1",
            ),
            (
                "[net.eth0.weights]\n\"/film\" = \"much\"",
                "my.toml:2: net.eth0.weights.\"/film\": no weight",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(says), "{text}: {error}");
        }
    }

    /// The file that is shipped says what holds anyway, behind comment signs.
    #[test]
    fn the_sample_names_every_key_and_its_default() {
        let sample = include_str!("../../../dist/andante.toml");
        assert_eq!(read(sample).unwrap(), Choices::default());
        let keys = sample.lines().filter_map(|line| line.strip_prefix("#"));
        let keys: Vec<_> = keys.filter(|line| !line.starts_with(' ')).collect();
        let choices = read(&keys.join("\n")).unwrap();
        let default = Options {
            domain_cpus: Some(16),
            ..Options::default()
        };
        assert_eq!(choices.options(), default);
        assert_eq!(choices.user_quota_percent, Some(USER_QUOTA));
        let settings = Settings::default();
        let users_quota_percent = settings.users_quota_per_mille() / 10;
        assert_eq!(choices.users_quota_percent, Some(users_quota_percent));
        let session_quota_percent = settings.session_quota_per_mille() / 10;
        assert_eq!(choices.session_quota_percent, Some(session_quota_percent));
        let film = ClassPath::parse("/film").unwrap();
        let eth0 = NetDevice {
            attach: Wanted {
                rate: "10mbit".parse().ok(),
                replace: false,
            },
            weights: [(film.clone(), 300)].into(),
            receive: Some(film),
            how: How {
                order: Order::Equal,
                early: Some(Hook::Ingress),
            },
        };
        assert_eq!(choices.net, [("eth0".to_owned(), eth0)].into());
        let of_memory = choices.memory();
        assert_eq!(
            of_memory,
            MemorySettings::default(),
            "and so are those of memory"
        );
        assert_eq!(choices.learn_memory_percent, Some(25));
        assert_eq!(keys.len(), 9 + 3 + 5);
    }
}
