//! What is going to happen, in the order of time.

use std::collections::VecDeque;

use crate::Ns;

/// A bucket for each bit in which an instant may differ from the last one, and one for that itself.
const BUCKETS: usize = Ns::BITS as usize + 1;

/// A priority queue by instant; what is due at the same instant comes in the order in which it was
/// put in. Nothing may be put in before what was taken out last, as time does not go back: a radix
/// heap [1].
///
/// Bucket b holds what differs from the last instant in bit b - 1, counted from 1, and in none above,
/// so that everything in it comes before all of bucket b + 1. When the first bucket is reached its
/// least becomes the last instant, and the others go to buckets below, never up again. So putting in
/// is one write at an end, and taking out costs a few moves one after the other in memory, where a
/// heap of a hundred thousand sleepers has a cache miss at every level.
///
/// \[1\] R. Ahuja, K. Mehlhorn, J. Orlin, R. Tarjan, *Faster Algorithms for the Shortest Path
/// Problem*, Journal of the ACM 37(2), 1990.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    /// Of what was taken out last.
    last_ns: Ns,
    /// Bucket 0: due at that instant too.
    due: VecDeque<T>,
    /// The others, each in the order of putting in; the first is never used.
    buckets: Vec<Vec<Node<T>>>,
    /// The least instant in each that is filled.
    least_ns: [Ns; BUCKETS],
    /// What is due then, first put in.
    least: [Option<T>; BUCKETS],
    /// Buckets that are not empty, one bit each.
    filled: u128,
}

#[derive(Debug, Clone, Copy)]
struct Node<T> {
    at_ns: Ns,
    item: T,
}

impl<T: Copy> Agenda<T> {
    pub fn new() -> Self {
        Self {
            last_ns: 0,
            due: VecDeque::new(),
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
            least_ns: [Ns::MAX; BUCKETS],
            least: [None; BUCKETS],
            filled: 0,
        }
    }

    /// When the next one is due.
    pub fn next_ns(&self) -> Option<Ns> {
        if !self.due.is_empty() {
            return Some(self.last_ns);
        }
        (self.filled != 0).then(|| self.least_ns[self.first()])
    }

    pub fn put(&mut self, at_ns: Ns, item: T) {
        assert!(at_ns >= self.last_ns, "time does not go back");
        self.sort_in(Node { at_ns, item });
    }

    /// Takes the next one out if it is due by `now_ns`.
    pub fn take_due(&mut self, now_ns: Ns) -> Option<T> {
        if self.next_ns()? > now_ns {
            return None;
        }
        if self.due.is_empty() {
            self.advance();
        }
        self.due.pop_front()
    }

    /// The first bucket that is not empty.
    fn first(&self) -> usize {
        self.filled.trailing_zeros() as usize
    }

    fn sort_in(&mut self, node: Node<T>) {
        let differs = node.at_ns ^ self.last_ns;
        if differs == 0 {
            self.due.push_back(node.item);
            return;
        }
        let bucket = (Ns::BITS - differs.leading_zeros()) as usize;
        self.buckets[bucket].push(node);
        if node.at_ns < self.least_ns[bucket] || self.filled & 1 << bucket == 0 {
            self.least_ns[bucket] = node.at_ns;
            self.least[bucket] = Some(node.item);
        }
        self.filled |= 1 << bucket;
    }

    /// The least instant becomes the last one. All buckets below the first are empty, so what goes
    /// there stays in the order of putting in.
    fn advance(&mut self) {
        let first = self.first();
        self.last_ns = self.least_ns[first];
        self.filled &= !(1 << first);
        let mut nodes = std::mem::take(&mut self.buckets[first]);
        for node in nodes.drain(..) {
            self.sort_in(node);
        }
        // Its memory is of use again.
        self.buckets[first] = nodes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn comes_in_the_order_of_time_then_of_putting_in() {
        let mut random = Random::new(1);
        let mut agenda = Agenda::new();
        let mut due: Vec<(Ns, u32)> = Vec::new();
        let mut now_ns = 0;
        for number in 0..10_000 {
            let at_ns = now_ns + random.below(50);
            agenda.put(at_ns, number);
            due.push((at_ns, number));
            if random.below(3) > 0 {
                now_ns += random.below(4);
                due.sort_unstable();
                while let Some(item) = agenda.take_due(now_ns) {
                    assert_eq!(item, due.remove(0).1);
                }
                assert!(due.first().is_none_or(|(at_ns, _)| *at_ns > now_ns));
                assert_eq!(agenda.next_ns(), due.first().map(|(at_ns, _)| *at_ns));
            }
        }
        assert!(due.len() < 1000, "few are left: {}", due.len());
    }

    #[test]
    fn near_and_far_come_in_order() {
        let mut random = Random::new(2);
        let mut agenda = Agenda::new();
        let mut due: Vec<(Ns, u32)> = Vec::new();
        let mut now_ns = 0;
        for number in 0..10_000 {
            // From the same instant to half of all time ahead.
            let at_ns = now_ns + (1_u64 << random.below(63)) - 1;
            agenda.put(at_ns, number);
            due.push((at_ns, number));
            due.sort_unstable();
            if random.below(2) == 0 && due[0].0 < 1 << 62 {
                now_ns = due[0].0;
                assert_eq!(agenda.next_ns(), Some(now_ns));

                assert_eq!(agenda.take_due(now_ns), Some(due.remove(0).1));
            }
        }
        agenda.put(Ns::MAX, 10_000);
        due.push((Ns::MAX, 10_000));
        for (at_ns, number) in due {
            assert_eq!(agenda.take_due(at_ns.saturating_sub(1)), None);
            assert_eq!(agenda.take_due(at_ns), Some(number));
        }
        assert_eq!(agenda.next_ns(), None);
    }

    #[test]
    #[should_panic(expected = "time does not go back")]
    fn nothing_is_put_before_what_was_taken() {
        let mut agenda = Agenda::new();
        agenda.put(5, 0);
        agenda.take_due(5);
        agenda.put(4, 1);
    }
}
