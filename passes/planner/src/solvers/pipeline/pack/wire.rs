//! Tensors during the search for a block.

/// Ends of a tensor, and how many of them are decided.
#[derive(Clone, Debug, Default)]
pub(super) struct Wire {
    pub(super) time: i64,
    pub(super) ends: Vec<u32>,
    pub(super) inside: i64,
    pub(super) outside: i64,
    /// Cost share of each end while none is decided: the shares sum to zero, and the positive ones to at most the time.
    pub(super) shift: Vec<i64>,
}

/// Effect of an open end on the cost of a tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// Its own shift.
    Own,
    /// The same for all open ends.
    Same(i64),
}

impl Wire {
    /// Returns a lower bound on its cost, and the effect of each open end.
    pub(super) fn cost(&self) -> (i64, Share) {
        let open = self.ends.len() as i64 - self.inside - self.outside;
        match (self.inside > 0, self.outside > 0) {
            (false, false) => (0, Share::Own),
            (true, true) => (self.time, Share::Same(0)),
            (true, false) if open > 0 => (self.time, Share::Same(-((self.time + open - 1) / open))),
            // Rounded to a power of two, so that it changes rarely.
            (false, true) if open > 0 => (0, Share::Same(self.time / (open as u64).next_power_of_two() as i64)),
            _ => (0, Share::Same(0)),
        }
    }
}
