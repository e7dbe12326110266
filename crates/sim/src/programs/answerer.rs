//! Programs that answer what happens at given instants.

use super::display::{Client, Note};
use crate::program::{Program, Step, World};
use crate::random::Random;
use crate::{NS_PER_S, Ns};

/// Sleeps to given instants, does some work, notes how long after the instant it was done.
pub struct Answerer {
    next: Box<dyn FnMut(Ns) -> Ns + Send>,
    /// How it is told, and what it does then; repeated.
    input_ns: Vec<Ns>,
    work_ns: Vec<Ns>,
    /// No events after this instant.
    until_ns: Ns,
    /// A display server that has to draw each answer.
    display: Option<Client>,
    at_ns: Ns,
    answered: usize,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Waits,
    Works,
    Turns,
    Asks,
    Hears,
    Notes,
}

/// Keys, and what they take.
#[derive(Debug, Clone)]
pub struct Typing {
    /// Mean rate [1/s].
    pub keys_per_s: f64,
    /// Whether they come at even distances, as of a key held down, and not at random.
    pub regular: bool,
    /// Of the instants.
    pub seed: u32,
    /// From the key to the program: the line, the driver [ns]. One or more, repeated.
    pub input_ns: Vec<Ns>,
    /// Work for a key [ns]. One or more, repeated.
    pub work_ns: Vec<Ns>,
    /// No keys after this instant.
    pub until_ns: Ns,
}

impl Answerer {
    /// Key presses at the instants of [`key_presses`].
    pub fn typist(begin_ns: Ns, typing: Typing, display: Option<Client>) -> Self {
        let (per_s, regular) = (typing.keys_per_s, typing.regular);
        let mut instants = key_presses(begin_ns, per_s, regular, typing.seed);
        let next = move |_| instants.next().expect("it never ends");
        Self {
            display,
            input_ns: typing.input_ns,
            work_ns: typing.work_ns,
            until_ns: typing.until_ns,
            ..Self::new(begin_ns, next)
        }
    }

    /// Timer expiries `interval_ns` apart; with a phase that comes near no simple fraction.
    pub fn waker(begin_ns: Ns, interval_ns: Ns) -> Self {
        let first_ns = begin_ns + (interval_ns as f64 * OFF_THE_GRID) as Ns;
        let mut number = 0;
        Self::new(begin_ns, move |_| {
            number += 1;
            first_ns + (number - 1) * interval_ns
        })
    }

    fn new(begin_ns: Ns, next: impl FnMut(Ns) -> Ns + Send + 'static) -> Self {
        Self {
            next: Box::new(next),
            input_ns: vec![0],
            work_ns: vec![0],
            until_ns: Ns::MAX,
            display: None,
            at_ns: begin_ns,
            answered: 0,
            phase: Phase::Waits,
        }
    }

    fn with_display(&self, step: impl Fn(&Client) -> Step) -> Step {
        self.display.as_ref().map_or(Step::Compute(0), step)
    }
}

/// A part of an interval that comes near no simple fraction of it: the golden section.
pub const OFF_THE_GRID: f64 = 0.618;

/// Instants of key presses [ns] after `begin_ns`, the same for the same seed everywhere: at random (a
/// Poisson process), or if they are `regular` at even distances, as of a key that is held down, where
/// the seed says when the first comes.
pub fn key_presses(
    begin_ns: Ns,
    keys_per_s: f64,
    regular: bool,
    seed: u32,
) -> impl Iterator<Item = Ns> + Send {
    let mut random = Random::new(u64::from(seed));
    let distance_ns = NS_PER_S as f64 / keys_per_s;
    let first_ns = random.clone().unit() * distance_ns;
    let mut at_ns = begin_ns;
    let mut number = 0_u64;
    std::iter::repeat_with(move || {
        if regular {
            // Each from the first: distances that are no whole nanoseconds do not add up to a drift.
            at_ns = begin_ns + (first_ns + number as f64 * distance_ns) as Ns;
            number += 1;
        } else {
            at_ns += random.exponential(distance_ns) as Ns;
        }
        at_ns
    })
}

impl Program for Answerer {
    /// The response is given when the work is done or, with a display server, when that has done
    /// its part and answered; with one that it does not wait for, when that has done its part.
    fn step(&mut self, world: &mut World<'_>) -> Step {
        let of = |list: &[Ns]| list[self.answered % list.len()];
        let note = Note::Response { to_ns: self.at_ns };
        let (step, phase) = match self.phase {
            Phase::Waits => {
                self.at_ns = (self.next)(self.at_ns);
                if self.at_ns > self.until_ns {
                    return Step::Exit;
                }
                let told_ns = self.at_ns + of(&self.input_ns);
                (Step::SleepUntil(told_ns), Phase::Works)
            }
            Phase::Works => (Step::Compute(of(&self.work_ns)), Phase::Turns),
            Phase::Turns => (self.with_display(Client::begin), Phase::Asks),
            Phase::Asks => {
                let ask = |display: &Client| display.ask(world, display.note(note));
                (self.with_display(ask), Phase::Hears)
            }
            Phase::Hears => (self.with_display(Client::hear), Phase::Notes),
            Phase::Notes => {
                self.answered += 1;
                if self.display.as_ref().is_none_or(|d| d.note(note).is_none()) {
                    let latency_ns = world.now_ns - self.at_ns;
                    world.record().latency_ns.push((self.at_ns, latency_ns));
                }
                (Step::Compute(0), Phase::Waits)
            }
        };
        self.phase = phase;
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_held_down_are_evenly_apart_and_begin_where_the_seed_says() {
        let keys = |seed| {
            key_presses(NS_PER_S, 30.0, true, seed)
                .take(3001)
                .collect::<Vec<_>>()
        };
        let (one, other) = (keys(1), keys(2));
        assert_ne!(one[0], other[0]);
        for keys in [&one, &other] {
            assert!((NS_PER_S..=NS_PER_S + NS_PER_S / 30).contains(&keys[0]));
            let apart = keys.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(apart.into_iter().all(|ns| ns.abs_diff(NS_PER_S / 30) <= 1));
            assert!((keys[3000] - keys[0]).abs_diff(100 * NS_PER_S) <= 1);
        }
        let random: Vec<_> = key_presses(0, 30.0, false, 1).take(3).collect();
        assert_ne!(random[1] - random[0], random[2] - random[1]);
    }
}
