//! What is learnt of a task that nobody has said anything about: `core/learn.h`.

unsafe extern "C" {
    fn an_sys_learn_obstacle(learner: *const Learner, bound: u32) -> u32;
    fn an_sys_learn_goes_on(learner: *const Learner) -> bool;
    fn an_sys_learn_part(learner: *const Learner) -> u32;
    fn an_sys_rhythm_ns(rhythm: *const Rhythm) -> u32;
}

/// `struct an_learner`: what has been seen of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Learner {
    /// When the job in progress, or the last one, began [ns].
    pub woken_ns: u64,
    /// When it went to sleep last [ns]; 0: not known.
    pub slept_ns: u64,
    /// Start tag in its class by all that it was given, in its turn or not; 0: none yet.
    pub given: u64,
    /// CPU time of that job so far [ns].
    pub service_ns: u32,
    /// The largest CPU time of a job, lately [ns].
    pub largest_ns: u32,
    /// CPU time of a job on average [ns].
    pub mean_ns: u32,
    /// From one job's beginning to the next on average [ns].
    pub distance_ns: u32,
    /// Mean deviation of that [ns].
    pub spread_ns: u32,
    /// Jobs seen so far, up to as many as averages are over.
    pub jobs: u32,
    /// Of the window in which the largest is looked for, so far [ns].
    pub window_ns: u32,
    /// Jobs in it so far.
    pub window_jobs: u32,
    /// The largest within it [ns].
    pub within_ns: u32,
    /// The largest of the window before [ns].
    pub before_ns: u32,
    /// CPU time of a job that nobody waits for, not long ago [ns]; 0: there was none.
    pub long_ns: u32,
    /// CPU time that `given` does not have yet [ns].
    pub given_ns: u32,
    /// Events that have woken it since it last slept for long, up to one more than it takes to judge it.
    pub events: u32,
    /// 1: when its last job began nobody seemed to wait for it, and it had been given much more than its share.
    pub ahead: u32,
    /// Of its wake-ups by the clock or a device.
    pub rhythm: Rhythm,
}

/// `struct an_rhythm`: whether something comes in a rhythm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Rhythm {
    /// When the last beat was [ns].
    pub last_ns: u64,
    /// Beats so far, up to as many as averages are over.
    pub beats: u32,
    /// From one beat to the next on average [ns].
    pub beat_ns: u32,
    /// Mean deviation of that [ns].
    pub uneven_ns: u32,
    /// Of the sleep that a beat ends, on average [ns].
    pub rest_ns: u32,
    /// Mean deviation of that [ns].
    pub rest_uneven_ns: u32,
    /// So many beats long was the last distance.
    pub times: u16,
    /// As were so many before it.
    pub in_a_row: u16,
}

impl Rhythm {
    /// How far the beats are from one another [ns]; none: they come at any time.
    pub fn steady_ns(&self) -> Option<u32> {
        // SAFETY: the core only reads the structure, which is laid out as its own.
        match unsafe { an_sys_rhythm_ns(self) } {
            0 => None,
            beat_ns => Some(beat_ns),
        }
    }
}

/// What keeps a task from being taken for an interactive one: `enum an_learn_obstacle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// It wakes too often, and so does not wait, but talks.
    Talks,
    /// A job of it took too long, not long ago.
    Long,
    /// It uses more than the bound on average.
    Much,
    /// It has not been seen for long enough.
    New,
}

impl Learner {
    /// What speaks against a learnt contract, if what is learnt may have `bound` of a CPU [1/1024].
    pub fn obstacle(&self, bound: u32) -> Option<Obstacle> {
        // SAFETY: the core only reads the structure, which is laid out as its own.
        match unsafe { an_sys_learn_obstacle(self, bound) } {
            0 => None,
            1 => Some(Obstacle::Talks),
            2 => Some(Obstacle::Long),
            3 => Some(Obstacle::Much),
            _ => Some(Obstacle::New),
        }
    }

    /// Whether the job in progress takes longer than anybody waits for.
    pub fn goes_on(&self) -> bool {
        // SAFETY: as above.
        unsafe { an_sys_learn_goes_on(self) }
    }

    /// What the task uses of a CPU on average [1/1024].
    pub fn part(&self) -> u32 {
        // SAFETY: as above.
        unsafe { an_sys_learn_part(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u32 = 1_000_000;

    #[test]
    fn obstacles_are_those_of_the_core() {
        let film = Learner {
            jobs: 16,
            distance_ns: 33 * MS,
            mean_ns: 7 * MS,
            largest_ns: 16 * MS,
            ..Learner::default()
        };
        assert_eq!(film.obstacle(512), None);
        assert_eq!(film.part(), 217);
        let seen = |change: fn(&mut Learner)| {
            let mut learner = film;
            change(&mut learner);
            learner.obstacle(512)
        };
        assert_eq!(seen(|l| l.distance_ns = MS / 10), Some(Obstacle::Talks));
        assert_eq!(seen(|l| l.long_ns = 50 * MS), Some(Obstacle::Long));
        assert_eq!(seen(|l| l.mean_ns = 20 * MS), Some(Obstacle::Much));
        assert_eq!(seen(|l| l.jobs = 2), Some(Obstacle::New));
        assert!(!film.goes_on());
        assert!(
            Learner {
                service_ns: 50 * MS,
                ..film
            }
            .goes_on()
        );
    }

    #[test]
    fn a_rhythm_is_the_cores() {
        let film = Rhythm {
            last_ns: 1,
            beats: 16,
            beat_ns: 33 * MS,
            uneven_ns: MS,
            rest_ns: 20 * MS,
            rest_uneven_ns: 3 * MS,
            ..Rhythm::default()
        };
        assert_eq!(film.steady_ns(), Some(33 * MS));
        assert_eq!(Rhythm { beats: 3, ..film }.steady_ns(), None);
        let rest_uneven_ns = MS / 3; // a closed loop, whose sleeps are the steadier
        let closed = Rhythm {
            rest_uneven_ns,
            ..film
        };
        assert_eq!(closed.steady_ns(), None);
        let uneven_ns = 9 * MS;
        assert_eq!(Rhythm { uneven_ns, ..film }.steady_ns(), None);
    }
}
