//! Tensors while it is decided who is in a block.

/// Who is at a tensor.
#[derive(Clone, Debug, Default)]
pub(super) struct Wire {
    pub(super) time: i64,
    pub(super) ends: Vec<u32>,
    pub(super) inside: i64,
    pub(super) outside: i64,
    /// What each end bears while nothing is decided: in sum nothing, and none of it more than the time.
    pub(super) shift: Vec<i64>,
}

/// How an open end of a tensor changes what that costs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// By its shift.
    Own,
    /// As all others do.
    Same(i64),
}

impl Wire {
    /// What it costs at least, and by how much each open end changes that.
    pub(super) fn cost(&self) -> (i64, Share) {
        let open = self.ends.len() as i64 - self.inside - self.outside;
        match (self.inside > 0, self.outside > 0) {
            (false, false) => (0, Share::Own),
            (true, true) => (self.time, Share::Same(0)),
            (true, false) if open > 0 => (self.time, Share::Same(-((self.time + open - 1) / open))),
            // Not a share of each number, so that it does not change each time.
            (false, true) if open > 0 => (0, Share::Same(self.time / (open as u64).next_power_of_two() as i64)),
            _ => (0, Share::Same(0)),
        }
    }
}
