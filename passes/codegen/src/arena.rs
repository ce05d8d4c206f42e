//! One buffer for all that a stage computes: values share bytes where they do not live at the same time.

use crate::graph::Id;
use divi_runtime::bundle::ALIGNMENT;
use rustc_hash::FxHashMap;

/// When values are written and read.
#[derive(Default)]
pub(crate) struct Lives {
    lives: FxHashMap<Id, Life>,
}

#[derive(Clone, Copy)]
struct Life {
    bytes: u64,
    first: usize,
    last: usize,
}

/// Where values are.
pub(crate) struct Plan {
    offsets: FxHashMap<Id, u64>,
    pub(crate) bytes: u64,
}

impl Lives {
    /// A call at `time` reads or writes a value.
    pub(crate) fn touch(&mut self, id: Id, bytes: u64, time: usize) {
        let life = self.lives.entry(id).or_insert(Life { bytes, first: time, last: time });
        life.last = life.last.max(time);
        life.first = life.first.min(time);
    }

    /// Large values first, each at the lowest place where nothing that lives at the same time is.
    pub(crate) fn plan(self) -> Plan {
        let mut order: Vec<_> = self.lives.into_iter().collect();
        order.sort_by(|(id, a), (other, b)| b.bytes.cmp(&a.bytes).then(a.first.cmp(&b.first)).then(id.cmp(other)));
        let mut placed: Vec<(u64, Life)> = vec![];
        let mut plan = Plan { offsets: FxHashMap::default(), bytes: 0 };
        for (id, life) in order {
            let mut taken: Vec<_> = placed
                .iter()
                .filter(|(_, other)| other.first <= life.last && life.first <= other.last)
                .map(|(offset, other)| (*offset, offset + other.bytes))
                .collect();
            taken.sort_unstable();
            let mut offset = 0;
            for (from, to) in taken {
                if offset + life.bytes <= from {
                    break;
                }
                offset = offset.max(to.next_multiple_of(ALIGNMENT));
            }
            placed.push((offset, life));
            plan.bytes = plan.bytes.max(offset + life.bytes);
            plan.offsets.insert(id, offset);
        }
        plan
    }
}

impl Plan {
    pub(crate) fn offset(&self, id: Id) -> u64 {
        self.offsets[&id]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_share_bytes_only_at_different_times() {
        let mut lives = Lives::default();
        for (id, first, last) in [(0, 0, 1), (1, 1, 2), (2, 2, 3), (3, 0, 3)] {
            lives.touch(Id(id), 100, first);
            lives.touch(Id(id), 100, last);
        }
        let plan = lives.plan();
        let apart = |a, b| plan.offset(Id(a)).abs_diff(plan.offset(Id(b))) >= 100;
        assert!(apart(0, 1) && apart(1, 2) && (0..3).all(|id| apart(id, 3)));
        assert_eq!(plan.offset(Id(0)), plan.offset(Id(2)));
        assert_eq!(plan.bytes, 2 * 128 + 100);
    }
}
