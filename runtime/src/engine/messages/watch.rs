//! Detection of ranks that have stalled. Each rank sends a sign of life to all others. Only with a stall timeout: a slow host is
//! not a dead one.

use crate::error::Error;
use std::time::{Duration, Instant};

/// Signs of life during a stall timeout, and looks for missing ones.
const SIGNS: u32 = 4;
const LOOKS: u32 = 16;

/// Times of the signs of life of all ranks.
pub(super) struct Watch {
    timeout: Duration,
    sent: Instant,
    looked: Instant,
    heard: Vec<Instant>,
}

impl Watch {
    pub(super) fn new(timeout: Duration, ranks: usize, now: Instant) -> Self {
        Self { timeout, sent: now, looked: now, heard: vec![now; ranks] }
    }

    /// Records a message of a rank.
    pub(super) fn hear(&mut self, rank: usize, now: Instant) {
        self.heard.iter_mut().skip(rank).take(1).for_each(|heard| *heard = now);
    }

    /// Returns true if this rank is to send a sign of life now.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now.duration_since(self.sent) >= self.timeout / SIGNS;
        if is_due {
            self.sent = now;
        }
        is_due
    }

    /// Returns a rank other than `own` that has stalled. All messages that have arrived must have been recorded.
    pub(super) fn stalled(&mut self, own: usize, now: Instant) -> Option<usize> {
        let pause = now.duration_since(self.looked);
        if pause < self.timeout / LOOKS {
            return None;
        }
        self.looked = now;
        if pause > self.timeout / SIGNS {
            // This rank was stopped: it has heard nothing because it has not listened.
            self.heard.fill(now);
        }
        let is_stalled = |heard: &Instant| now.duration_since(*heard) > self.timeout;
        (0..self.heard.len()).find(|&rank| rank != own && is_stalled(&self.heard[rank]))
    }

    /// Returns the error of a rank that has stalled. `is_ended` is true if a rank ends it.
    pub(super) fn error(&self, rank: usize, is_ended: bool) -> Error {
        Error::Stalled { rank, seconds: self.timeout.as_secs_f64(), is_ended }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Looks every millisecond, from one time to another. Rank 1 is heard at all of them.
    fn look(watch: &mut Watch, start: Instant, (from, to): (u64, u64)) -> Option<usize> {
        (from..to).map(|millis| start + Duration::from_millis(millis)).find_map(|now| {
            watch.hear(1, now);
            watch.stalled(0, now)
        })
    }

    #[test]
    fn a_silent_rank_has_stalled() {
        let start = Instant::now();
        let mut watch = Watch::new(SECOND, 3, start);
        assert_eq!(look(&mut watch, start, (0, 900)), None);
        watch.hear(2, start + Duration::from_millis(900));
        assert_eq!(look(&mut watch, start, (900, 1850)), None);
        assert_eq!(look(&mut watch, start, (1850, 2100)), Some(2));
    }

    #[test]
    fn a_rank_that_was_stopped_itself_listens_first() {
        let start = Instant::now();
        let mut watch = Watch::new(SECOND, 3, start);
        assert_eq!(watch.stalled(0, start + 5 * SECOND), None);
        assert_eq!(look(&mut watch, start + 5 * SECOND, (0, 900)), None);
        assert_eq!(look(&mut watch, start + 5 * SECOND, (900, 1200)), Some(2));
    }

    #[test]
    fn signs_of_life_are_sent_several_times_in_a_timeout() {
        let start = Instant::now();
        let mut watch = Watch::new(SECOND, 2, start);
        let due = (1..=1000).filter(|millis| watch.is_due(start + Duration::from_millis(*millis))).count();
        assert_eq!(due, SIGNS as usize);
    }
}
