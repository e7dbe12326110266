//! Pipes and sockets: byte counts in finite buffers, with tasks waiting at either end.

use std::collections::VecDeque;

use crate::spec::TaskId;

/// One direction of a pipe or socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChannelId(pub u32);

/// Bytes on their way, and who waits for some or for room.
#[derive(Debug)]
pub(crate) struct Channel {
    capacity: u32,
    filled: u32,
    /// In order of arrival, with how many bytes each wants.
    readers: VecDeque<(TaskId, u32)>,
    writers: VecDeque<(TaskId, u32)>,
}

impl Channel {
    pub fn new(capacity: u32, filled: u32) -> Self {
        Self {
            capacity,
            filled: filled.min(capacity),
            readers: VecDeque::new(),
            writers: VecDeque::new(),
        }
    }

    /// Puts bytes in; false: no room, the task waits.
    pub fn send(&mut self, task: TaskId, bytes: u32) -> bool {
        let bytes = bytes.min(self.capacity);
        let room = self.writers.is_empty() && self.filled + bytes <= self.capacity;
        if room {
            self.filled += bytes;
        } else {
            self.writers.push_back((task, bytes));
        }
        room
    }

    /// Takes bytes out; false: not enough of them, the task waits.
    pub fn receive(&mut self, task: TaskId, bytes: u32) -> bool {
        let bytes = bytes.min(self.capacity);
        let enough = self.readers.is_empty() && self.filled >= bytes;
        if enough {
            self.filled -= bytes;
        } else {
            self.readers.push_back((task, bytes));
        }
        enough
    }

    /// The next task whose wait is over, now that bytes came or went.
    pub fn next_served(&mut self) -> Option<TaskId> {
        if let Some((task, bytes)) = self.readers.front().copied()
            && self.filled >= bytes
        {
            self.filled -= bytes;
            self.readers.pop_front();
            return Some(task);
        }
        if let Some((task, bytes)) = self.writers.front().copied()
            && self.filled + bytes <= self.capacity
        {
            self.filled += bytes;
            self.writers.pop_front();
            return Some(task);
        }
        None
    }

    /// The task waits no more: it has ended.
    pub fn forget(&mut self, task: TaskId) {
        self.readers.retain(|(waiting, _)| *waiting != task);
        self.writers.retain(|(waiting, _)| *waiting != task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_channel_blocks_its_writers_in_order() {
        let (a, b, reader) = (TaskId(1), TaskId(2), TaskId(3));
        let mut channel = Channel::new(10, 0);
        assert!(channel.send(a, 8));
        assert!(!channel.send(a, 4));
        assert!(!channel.send(b, 1), "it has room, but a comes first");
        assert!(channel.receive(reader, 6));
        assert_eq!(channel.next_served(), Some(a));
        assert_eq!(channel.next_served(), Some(b));
        assert_eq!(channel.next_served(), None);
        assert_eq!(channel.filled, 7);
        assert!(!channel.receive(reader, 9));
        channel.forget(reader);
        assert!(channel.receive(reader, 7));
    }
}
