//! Static memory allocation of a stage: intermediate values with disjoint live ranges share bytes of one buffer, the arena.

use crate::graph::Id;
use divi_runtime::bundle::ALIGNMENT;
use rustc_hash::FxHashMap;

/// Live ranges of values.
#[derive(Default)]
pub(crate) struct LiveRanges {
    live_ranges: FxHashMap<Id, LiveRange>,
}

/// Size of a value and the times of its first and last access, inclusive.
#[derive(Clone, Copy)]
struct LiveRange {
    bytes: u64,
    first: usize,
    last: usize,
}

/// Offset of each value in the arena, and the size of the arena.
pub(crate) struct ArenaPlan {
    offsets: FxHashMap<Id, u64>,
    pub(crate) bytes: u64,
}

impl LiveRanges {
    /// Extends the live range of a value by an access at `time`.
    pub(crate) fn add_access(&mut self, id: Id, bytes: u64, time: usize) {
        let live_range = self.live_ranges.entry(id).or_insert(LiveRange { bytes, first: time, last: time });
        live_range.last = live_range.last.max(time);
        live_range.first = live_range.first.min(time);
    }

    /// Assigns offsets greedily: in order of decreasing size, each value gets the lowest gap that is free during its live range.
    pub(crate) fn plan(self) -> ArenaPlan {
        let mut order: Vec<_> = self.live_ranges.into_iter().collect();
        order.sort_by(|(id, a), (other, b)| b.bytes.cmp(&a.bytes).then(a.first.cmp(&b.first)).then(id.cmp(other)));
        let mut placed: Vec<(u64, LiveRange)> = vec![];
        let mut plan = ArenaPlan { offsets: FxHashMap::default(), bytes: 0 };
        for (id, live_range) in order {
            let mut taken: Vec<_> = placed
                .iter()
                .filter(|(_, other)| other.first <= live_range.last && live_range.first <= other.last)
                .map(|(offset, other)| (*offset, offset + other.bytes))
                .collect();
            taken.sort_unstable();
            let mut offset = 0;
            for (from, to) in taken {
                if offset + live_range.bytes <= from {
                    break;
                }
                offset = offset.max(to.next_multiple_of(ALIGNMENT));
            }
            placed.push((offset, live_range));
            plan.bytes = plan.bytes.max(offset + live_range.bytes);
            plan.offsets.insert(id, offset);
        }
        plan
    }
}

impl ArenaPlan {
    pub(crate) fn offset(&self, id: Id) -> u64 {
        self.offsets[&id]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_with_disjoint_live_ranges_share_bytes() {
        let mut live_ranges = LiveRanges::default();
        for (id, first, last) in [(0, 0, 1), (1, 1, 2), (2, 2, 3), (3, 0, 3)] {
            live_ranges.add_access(Id(id), 100, first);
            live_ranges.add_access(Id(id), 100, last);
        }
        let plan = live_ranges.plan();
        let apart = |a, b| plan.offset(Id(a)).abs_diff(plan.offset(Id(b))) >= 100;
        assert!(apart(0, 1) && apart(1, 2) && (0..3).all(|id| apart(id, 3)));
        assert_eq!(plan.offset(Id(0)), plan.offset(Id(2)));
        assert_eq!(plan.bytes, 2 * 128 + 100);
    }
}
