//! Who may come in: requests wait in line until one of the slots is free.

use crate::error::{Error, Result};
use divi_threads::sync::{Condition, Mutex};

pub(crate) struct Admission {
    line: Mutex<Line>,
    changed: Condition,
    slots: usize,
}

struct Line {
    free: Vec<usize>,
    /// The number of the next one who comes, and of the next one who is let in.
    next: u64,
    next_in: u64,
    is_closed: bool,
}

impl Admission {
    pub(crate) fn new(slots: usize) -> Self {
        let line = Line { free: (0..slots).rev().collect(), next: 0, next_in: 0, is_closed: false };
        Self { line: Mutex::new(line), changed: Condition::default(), slots }
    }

    /// Waits for a slot, behind those who came before. Returns it and the request's number.
    pub(crate) fn enter(&self) -> Result<(usize, u64)> {
        let mut line = self.line.lock();
        let number = line.next;
        line.next += 1;
        loop {
            if line.is_closed {
                return Err(Error::Closed);
            }
            if line.next_in == number
                && let Some(slot) = line.free.pop()
            {
                line.next_in += 1;
                if line.next_in < line.next {
                    self.changed.notify_all();
                }
                return Ok((slot, number));
            }
            line = self.changed.wait(line);
        }
    }

    pub(crate) fn leave(&self, slot: usize) {
        let mut line = self.line.lock();
        line.free.push(slot);
        if line.is_closed || line.next_in < line.next {
            self.changed.notify_all();
        }
    }

    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        let mut line = self.line.lock();
        line.is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until all slots are free.
    pub(crate) fn wait_until_empty(&self) {
        let mut line = self.line.lock();
        while line.free.len() < self.slots {
            line = self.changed.wait(line);
        }
    }
}
