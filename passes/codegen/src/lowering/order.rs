//! Which calls must wait for which, where several can run at once: on GPUs.

use super::{Lowering, PendingCall, Storage};
use crate::{arena::Plan, graph::Id};
use rustc_hash::FxHashMap;

/// What a call touches: a memory, a part of it, and whether it is written.
struct Touch {
    memory: Memory,
    from: u64,
    to: u64,
    is_write: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    Arena,
    Input(usize),
    Output(usize),
}

impl Lowering<'_> {
    /// When calls run, for the arena. Calls of a CPU run one after the other; a GPU's run as soon as what they read is there, so that
    /// those of one time can run together.
    pub(super) fn times(&self, calls: &[PendingCall]) -> Vec<usize> {
        if self.gpu.is_none() {
            return (0..calls.len()).collect();
        }
        let mut done: FxHashMap<Id, usize> = FxHashMap::default();
        let mut times = vec![];
        for call in calls {
            let roots = call.reads.iter().chain(&call.writes).map(|&id| self.root(id));
            let time = roots.filter_map(|root| done.get(&root).map(|time| time + 1)).max().unwrap_or(0);
            times.push(time);
            for &id in &call.writes {
                done.insert(self.root(id), time);
            }
        }
        times
    }

    /// For each call of a GPU, those before it whose memory it touches, where one of the two writes; without those that others
    /// of them wait for.
    pub(super) fn dependencies(&self, calls: &[PendingCall], plan: &Plan) -> Vec<Vec<usize>> {
        if self.gpu.is_none() {
            return vec![vec![]; calls.len()];
        }
        let touches: Vec<Vec<Touch>> = calls.iter().map(|call| self.touches(call, plan)).collect();
        // Everything that comes before a call, directly or not.
        let mut before: Vec<Vec<bool>> = vec![];
        let mut all = vec![];
        for (index, own) in touches.iter().enumerate() {
            let mut known = vec![false; index];
            let mut after = vec![];
            for other in (0..index).rev() {
                if known[other] || !own.iter().any(|a| touches[other].iter().any(|b| a.meets(b))) {
                    continue;
                }
                after.push(other);
                known[other] = true;
                for (place, is_before) in known.iter_mut().zip(&before[other]) {
                    *place |= is_before;
                }
            }
            after.reverse();
            before.push(known);
            all.push(after);
        }
        all
    }

    fn touches(&self, call: &PendingCall, plan: &Plan) -> Vec<Touch> {
        let ids = call.reads.iter().map(|&id| (id, false)).chain(call.writes.iter().map(|&id| (id, true)));
        ids.filter_map(|(id, is_write)| {
            let (root, first) = self.place(id);
            let (memory, start) = match self.storage[root.0] {
                Storage::Input(i) => (Memory::Input(i), 0),
                Storage::Output(i) => (Memory::Output(i), 0),
                Storage::Constant(_) | Storage::Same(..) => return None,
                Storage::Unplaced => (Memory::Arena, plan.offset(root)),
            };
            let from = start + first;
            Some(Touch { memory, from, to: from + self.bytes(id), is_write })
        })
        .collect()
    }
}

impl Touch {
    fn meets(&self, other: &Self) -> bool {
        self.memory == other.memory
            && (self.is_write || other.is_write)
            && self.from < other.to
            && other.from < self.to
    }
}
