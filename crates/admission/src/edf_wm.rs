// SPDX-License-Identifier: GPL-2.0
//! EDF-WM: a task that fits on no CPU runs in s windows of D/s, each on a CPU of its own [1].
//!
//! ```text
//!     for s = 2 .. m:   d = D / s
//!         C'_k = the largest budget with which (C'_k, d, T) fits on CPU k
//!         take the s CPUs of the largest C'; if their sum >= C: done, the excess is cut off
//! ```
//!
//! The piece on the lowest CPU runs first. Every piece is an independent sporadic task to its CPU,
//! since it is released at a fixed distance from its job, whatever happens on other CPUs.
//!
//! Kato's `edf-wm.c` has three slips that are not repeated here: its cut of the last piece runs
//! below 0 if the excess is larger than the piece, it gives pieces that are already on a CPU the
//! window of the new one, and its differences of unsigned numbers wrap.
//!
//! \[1\] S. Kato, N. Yamasaki, Y. Ishikawa, *Semi-Partitioned Scheduling of Sporadic Task Systems
//! on Multiprocessors*, ECRTS 2009, section 3.

use std::cmp::Reverse;

use crate::demand::Workload;
use crate::placement::Piece;
use crate::policy::Excess;
use crate::task::Task;

/// Most pieces of one contract.
pub const MAX_PIECES: usize = 64;

/// The largest budget that one CPU carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    cpu: usize,
    budget_ns: u64,
}

/// The most that pieces of one number could carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// s.
    pub pieces: usize,
    /// D/s [ns].
    pub window_ns: u64,
    /// Sum of the s largest C' [ns].
    pub budget_ns: u64,
}

/// Numbers of pieces to try, and the window of each [ns].
fn windows(cpus: usize, deadline_ns: u64) -> impl Iterator<Item = (usize, u64)> {
    (2..=cpus.min(MAX_PIECES))
        .map(move |pieces| (pieces, deadline_ns / pieces as u64))
        .take_while(|&(_, window_ns)| window_ns > 0)
}

/// The pieces of `task`, in the order they run in, none smaller than `least_ns`; none if it cannot
/// be split so.
pub(crate) fn split(
    cpus: &[Workload],
    task: &Task,
    excess: Excess,
    least_ns: u64,
) -> Option<Vec<Piece>> {
    windows(cpus.len(), task.deadline_ns).find_map(|(pieces, window_ns)| {
        let request = Request {
            task,
            window_ns,
            least_ns,
        };
        let mut rooms = largest_rooms(cpus, &request, pieces, task.budget_ns)?;
        rooms.sort_by_key(|room| room.cpu);
        let over_ns = total_ns(&rooms) - task.budget_ns;
        match excess {
            Excess::Last => cut_last(&mut rooms, over_ns),
            Excess::Fair => cut_fairly(&mut rooms, over_ns),
        }
        rooms.retain(|room| room.budget_ns > 0);
        fill_up(&mut rooms, least_ns)?;
        Some(in_sequence(&rooms, window_ns))
    })
}

/// What splitting could carry at most, over all numbers of pieces; the fewest pieces of those.
pub(crate) fn capacity(cpus: &[Workload], task: &Task, least_ns: u64) -> Option<Capacity> {
    let capacities = windows(cpus.len(), task.deadline_ns).filter_map(|(pieces, window_ns)| {
        let request = Request {
            task,
            window_ns,
            least_ns,
        };
        let rooms = largest_rooms(cpus, &request, pieces, 0)?;
        Some(Capacity {
            pieces,
            window_ns,
            budget_ns: total_ns(&rooms),
        })
    });
    capacities.max_by_key(|capacity| (capacity.budget_ns, Reverse(capacity.pieces)))
}

/// What is asked of a CPU.
struct Request<'a> {
    task: &'a Task,
    window_ns: u64,
    least_ns: u64,
}

impl Request<'_> {
    /// `budget_ns`, or nothing if it is not worth a piece.
    fn worth(&self, budget_ns: u64) -> u64 {
        if budget_ns < self.least_ns {
            0
        } else {
            budget_ns
        }
    }

    /// A bound of what a CPU carries, quickly found [ns].
    fn bound_ns(&self, cpu: &Workload) -> u64 {
        self.worth(cpu.budget_left_ns(self.window_ns, self.task.period_ns))
    }

    /// What a CPU carries: C' [ns].
    fn budget_ns(&self, cpu: &Workload) -> u64 {
        self.worth(cpu.largest_budget_ns(self.window_ns, self.task.period_ns))
    }
}

fn total_ns(rooms: &[Room]) -> u64 {
    rooms.iter().map(|room| room.budget_ns).sum()
}

/// The `count` CPUs that carry most, by decreasing budget, ties by number; none if they cannot carry
/// `needed_ns` together.
///
/// What a CPU carries takes long to find. Bounds are at hand, so it is sought only where these leave
/// something open: CPU by CPU from the largest bound down, until no bound left can enter the
/// `count` largest, or until even the bounds together are too little.
fn largest_rooms(
    cpus: &[Workload],
    request: &Request<'_>,
    count: usize,
    needed_ns: u64,
) -> Option<Vec<Room>> {
    let by_size = |room: &Room| (Reverse(room.budget_ns), room.cpu);
    let bound = |(cpu, workload): (usize, &Workload)| Room {
        cpu,
        budget_ns: request.bound_ns(workload),
    };
    let mut bounds: Vec<Room> = cpus.iter().enumerate().map(bound).collect();
    bounds.sort_by_key(by_size);
    let mut rooms: Vec<Room> = Vec::with_capacity(count + 1);
    for (done, bound) in bounds.iter().enumerate() {
        // The most that is possible: the `count` largest of what is known and of what bounds allow.
        if merged_total_ns(&rooms, &bounds[done..], count) < needed_ns {
            return None;
        }
        if rooms.len() == count && rooms[count - 1].budget_ns > bound.budget_ns {
            break;
        }
        let room = Room {
            budget_ns: request.budget_ns(&cpus[bound.cpu]),
            ..*bound
        };
        let at = rooms.partition_point(|before| by_size(before) < by_size(&room));
        rooms.insert(at, room);
        rooms.truncate(count);
    }
    (total_ns(&rooms) >= needed_ns).then_some(rooms)
}

/// The sum of the `count` largest budgets of two lists, each by decreasing budget [ns].
fn merged_total_ns(a: &[Room], b: &[Room], count: usize) -> u64 {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut total_ns = 0;
    for _ in 0..count {
        let first = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.budget_ns < y.budget_ns => b.next(),
            (None, _) => b.next(),
            _ => a.next(),
        };
        total_ns += first.map_or(0, |room| room.budget_ns);
    }
    total_ns
}

/// Cuts the last piece, and those before it where it is not enough.
fn cut_last(rooms: &mut [Room], mut over_ns: u64) {
    for room in rooms.iter_mut().rev() {
        let cut_ns = over_ns.min(room.budget_ns);
        room.budget_ns -= cut_ns;
        over_ns -= cut_ns;
    }
}

/// Cuts all alike; what is too small for its part vanishes, and the others take over its rest.
fn cut_fairly(rooms: &mut [Room], mut over_ns: u64) {
    let mut smallest_first: Vec<usize> = (0..rooms.len()).collect();
    smallest_first.sort_by_key(|&at| (rooms[at].budget_ns, at));
    for (done, &at) in smallest_first.iter().enumerate() {
        let part_ns = over_ns.div_ceil((rooms.len() - done) as u64);
        let cut_ns = part_ns.min(rooms[at].budget_ns);
        rooms[at].budget_ns -= cut_ns;
        over_ns -= cut_ns;
    }
}

/// Fills the piece that cutting left too small up to `least_ns`, from the others by number, the last
/// first; none if they have too little themselves.
fn fill_up(rooms: &mut [Room], least_ns: u64) -> Option<()> {
    for at in 0..rooms.len() {
        let mut missing_ns = least_ns.saturating_sub(rooms[at].budget_ns);
        rooms[at].budget_ns += missing_ns;
        for other in (0..rooms.len()).rev().filter(|&other| other != at) {
            let spare_ns = rooms[other].budget_ns.saturating_sub(least_ns);
            let moved_ns = spare_ns.min(missing_ns);
            rooms[other].budget_ns -= moved_ns;
            missing_ns -= moved_ns;
        }
        if missing_ns > 0 {
            return None;
        }
    }
    Some(())
}

fn in_sequence(rooms: &[Room], window_ns: u64) -> Vec<Piece> {
    let piece = |(at, room): (usize, &Room)| Piece {
        cpu: room.cpu as u32,
        budget_ns: room.budget_ns,
        offset_ns: at as u64 * window_ns,
        window_ns,
    };
    rooms.iter().enumerate().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Supply;

    fn cpus(loads: &[(u64, u64, u64)]) -> Vec<Workload> {
        let cpu = |&(budget, deadline, period): &(u64, u64, u64)| {
            let task = Task::new(budget, deadline, period).unwrap();
            Workload::of(Supply::WHOLE, &[task])
        };
        loads.iter().map(cpu).collect()
    }

    fn budgets(pieces: &[Piece]) -> Vec<(u32, u64, u64)> {
        let short = |piece: &Piece| (piece.cpu, piece.budget_ns, piece.offset_ns);
        pieces.iter().map(short).collect()
    }

    #[test]
    fn the_emptiest_cpus_carry_the_pieces_in_the_order_of_their_numbers() {
        // Free in each 10: 4, 1, 6 of the whole; within half of it 4, 1, 5.
        let cpus = cpus(&[(60, 100, 100), (90, 100, 100), (40, 100, 100)]);
        let task = Task::new(8, 10, 10).unwrap();
        let pieces = split(&cpus, &task, Excess::Last, 1).unwrap();
        assert_eq!(budgets(&pieces), [(0, 4, 0), (2, 4, 5)]);
        let task = Task::new(7, 10, 10).unwrap();
        let pieces = split(&cpus, &task, Excess::Fair, 1).unwrap();
        assert_eq!(budgets(&pieces), [(0, 3, 0), (2, 4, 5)]);
        assert!(pieces.iter().all(|piece| piece.window_ns == 5));
    }

    #[test]
    fn an_excess_above_the_last_piece_is_cut_from_those_before_it() {
        let rooms = |budgets: [u64; 3]| {
            let room = |(cpu, budget_ns)| Room { cpu, budget_ns };
            budgets
                .into_iter()
                .enumerate()
                .map(room)
                .collect::<Vec<_>>()
        };
        let budgets = |rooms: &[Room]| rooms.iter().map(|r| r.budget_ns).collect::<Vec<_>>();
        let mut last = rooms([5, 4, 2]);
        cut_last(&mut last, 3);
        assert_eq!(budgets(&last), [5, 3, 0]);
        let mut fair = rooms([5, 1, 4]);
        cut_fairly(&mut fair, 7);
        assert_eq!(budgets(&fair), [2, 0, 1]);
    }

    #[test]
    fn no_piece_is_smaller_than_the_least() {
        let cpus = cpus(&[(60, 100, 100), (60, 100, 100), (98, 100, 100)]);
        let pieces = |budget, excess, least| {
            let task = Task::new(budget, 100, 100).unwrap();
            split(&cpus, &task, excess, least).map(|pieces| budgets(&pieces))
        };
        // 40 on each of two CPUs; cutting leaves 2 on the second, which takes 8 of the first.
        assert_eq!(
            pieces(42, Excess::Last, 1).unwrap(),
            [(0, 40, 0), (1, 2, 50)]
        );
        let filled = Some(vec![(0, 32, 0), (1, 10, 50)]);
        assert_eq!(pieces(42, Excess::Last, 10), filled);
        assert_eq!(
            pieces(42, Excess::Last, 22),
            None,
            "42 are not two pieces of 22"
        );
    }

    #[test]
    fn room_below_the_least_piece_is_none() {
        let cpus = cpus(&[(80, 100, 100), (80, 100, 100), (98, 100, 100)]);
        let task = Task::new(42, 100, 100).unwrap();
        for excess in [Excess::Last, Excess::Fair] {
            let pieces = split(&cpus, &task, excess, 2).unwrap();
            assert_eq!(budgets(&pieces), [(0, 20, 0), (1, 20, 33), (2, 2, 66)]);
            assert_eq!(split(&cpus, &task, excess, 3), None);
        }
    }

    #[test]
    fn what_no_number_of_pieces_carries_is_not_split() {
        let cpus = cpus(&[(90, 100, 100), (90, 100, 100), (90, 100, 100)]);
        let task = Task::new(4, 10, 10).unwrap();
        assert_eq!(split(&cpus, &task, Excess::Last, 1), None);
        let capacity = capacity(&cpus, &task, 1).unwrap();
        assert_eq!((capacity.pieces, capacity.budget_ns), (3, 3));
        assert_eq!(split(&cpus[..1], &task, Excess::Last, 1), None);
    }
}
