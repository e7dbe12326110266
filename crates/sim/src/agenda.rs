//! What is going to happen, in the order of time.

use crate::Ns;

/// Children of a node. Four of them lie side by side, so that a sift-down takes half as many cache
/// misses as in a binary heap; with a hundred thousand sleepers these are what an event costs.
const ARITY: usize = 4;

/// A priority queue by instant; what is due at the same instant comes in the order in which it was
/// put in. Putting in and taking out cost the logarithm of what is in it.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    /// A heap: no node is due before its parent.
    nodes: Vec<Node<T>>,
    /// Put in so far.
    sequence: u64,
}

#[derive(Debug, Clone, Copy)]
struct Node<T> {
    at_ns: Ns,
    sequence: u64,
    item: T,
}

impl<T> Node<T> {
    fn order(&self) -> (Ns, u64) {
        (self.at_ns, self.sequence)
    }
}

impl<T: Copy> Agenda<T> {
    pub fn new() -> Self {
        Self {
            nodes: Vec::new(),
            sequence: 0,
        }
    }

    /// When the next one is due.
    pub fn next_ns(&self) -> Option<Ns> {
        self.nodes.first().map(|node| node.at_ns)
    }

    pub fn put(&mut self, at_ns: Ns, item: T) {
        let node = Node {
            at_ns,
            sequence: self.sequence,
            item,
        };
        self.sequence += 1;
        let mut place = self.nodes.len();
        self.nodes.push(node);
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.nodes[parent].order() <= node.order() {
                break;
            }
            self.nodes[place] = self.nodes[parent];
            place = parent;
        }
        self.nodes[place] = node;
    }

    /// Takes the next one out if it is due by `now_ns`.
    pub fn take_due(&mut self, now_ns: Ns) -> Option<T> {
        let first = self.nodes.first().filter(|node| node.at_ns <= now_ns)?;
        let item = first.item;
        let last = self.nodes.pop().expect("there is a first");
        if !self.nodes.is_empty() {
            self.sift_down(last);
        }
        Some(item)
    }

    /// Finds the place of `node`, which replaces the root.
    fn sift_down(&mut self, node: Node<T>) {
        let mut place = 0;
        loop {
            let begin = place * ARITY + 1;
            let end = (begin + ARITY).min(self.nodes.len());
            let Some(least) = (begin..end).min_by_key(|child| self.nodes[*child].order()) else {
                break;
            };
            if node.order() <= self.nodes[least].order() {
                break;
            }
            self.nodes[place] = self.nodes[least];
            place = least;
        }
        self.nodes[place] = node;
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
}
