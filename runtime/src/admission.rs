//! Admission control: requests wait in FIFO order for a free slot.

use crate::error::{Error, Result};
use divi_threads::sync::{Condition, Mutex};

/// Free slots and the queue of waiting requests.
pub(crate) struct Admission {
    queue: Mutex<WaitQueue>,
    changed: Condition,
    slots: usize,
}

struct WaitQueue {
    free: Vec<usize>,
    /// Number of the next request to arrive.
    next: u64,
    /// Number of the next request to be admitted.
    next_in: u64,
    is_closed: bool,
}

impl Admission {
    pub(crate) fn new(slots: usize) -> Self {
        let queue = WaitQueue { free: (0..slots).rev().collect(), next: 0, next_in: 0, is_closed: false };
        Self { queue: Mutex::new(queue), changed: Condition::default(), slots }
    }

    /// Waits for a free slot, in order of arrival. Returns its index and the request's number.
    pub(crate) fn acquire(&self) -> Result<(usize, u64)> {
        let mut queue = self.queue.lock();
        let number = queue.next;
        queue.next += 1;
        loop {
            if queue.is_closed {
                return Err(Error::Closed);
            }
            if queue.next_in == number
                && let Some(slot) = queue.free.pop()
            {
                queue.next_in += 1;
                if queue.next_in < queue.next {
                    self.changed.notify_all();
                }
                return Ok((slot, number));
            }
            queue = self.changed.wait(queue);
        }
    }

    /// Takes a slot that rank 0 has chosen. Returns false if it is not free.
    pub(crate) fn take(&self, slot: usize) -> bool {
        let mut queue = self.queue.lock();
        let position = queue.free.iter().position(|free| *free == slot);
        position.map(|position| queue.free.swap_remove(position)).is_some()
    }

    /// Releases a slot.
    pub(crate) fn release(&self, slot: usize) {
        let mut queue = self.queue.lock();
        queue.free.push(slot);
        if queue.is_closed || queue.next_in < queue.next {
            self.changed.notify_all();
        }
    }

    /// Rejects all waiting and future requests.
    pub(crate) fn close(&self) {
        let mut queue = self.queue.lock();
        queue.is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until all slots are free.
    pub(crate) fn wait_until_empty(&self) {
        let mut queue = self.queue.lock();
        while queue.free.len() < self.slots {
            queue = self.changed.wait(queue);
        }
    }
}
