//! Work on as many threads as the machine has CPUs, watched from the one that asked for it.

use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The watcher is called at least so often, while work is under way.
const WATCH: Duration = Duration::from_millis(500);

/// What the watcher is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// Work on the item of this number begins.
    Begins(usize),
    /// It is done.
    Ended(usize),
    /// Time has passed.
    Tick,
}

/// Does `work` for every item; the results are in the order of the items, whoever was first.
///
/// # Panics
/// If `work` does.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    watch: &mut dyn FnMut(Watched),
) -> Vec<R> {
    let queue = Mutex::new(items.iter().enumerate());
    let next = || queue.lock().expect("nobody panics holding it").next();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..workers.min(items.len()) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((index, item)) = next() {
                    // The receiver lives as long as a sender does.
                    let _ = sender.send((index, None));
                    let _ = sender.send((index, Some(work(item))));
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(WATCH) {
                Ok((index, None)) => watch(Watched::Begins(index)),
                Ok((index, result)) => {
                    results[index] = result;
                    watch(Watched::Ended(index));
                }
                Err(RecvTimeoutError::Timeout) => watch(Watched::Tick),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    let done = |result: Option<R>| result.expect("every item was worked on");
    results.into_iter().map(done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<u64> = (0..40).collect();
        let mut ended = 0;
        let slow_first = |item: &u64| {
            thread::sleep(Duration::from_micros(40 - item));
            item * item
        };
        let results = map(&items, slow_first, &mut |at| {
            ended += usize::from(matches!(at, Watched::Ended(_)));
        });
        let squares: Vec<u64> = items.iter().map(|item| item * item).collect();
        assert_eq!((results, ended), (squares, 40));
        assert!(map(&[], slow_first, &mut |_| ()).is_empty());
    }
}
