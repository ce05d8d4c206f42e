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
    /// The order in which calls run, with their times, for the arena. Calls of a CPU run one after the other; a GPU's run as soon as
    /// what they read is there, so that those of one time can run together.
    pub(super) fn ordered(&self, calls: Vec<PendingCall>) -> Vec<(usize, PendingCall)> {
        if self.simt.is_none() {
            return calls.into_iter().enumerate().collect();
        }
        let (mut written, mut read) = (FxHashMap::<Id, usize>::default(), FxHashMap::<Id, usize>::default());
        let mut ordered: Vec<(usize, PendingCall)> = Vec::with_capacity(calls.len());
        for call in calls {
            let (reads, writes) = [&call.reads, &call.writes].map(|ids| ids.iter().map(|&id| self.root(id))).into();
            let after = |times: &FxHashMap<Id, usize>, root| times.get(&root).map(|time| time + 1);
            let before_reads = reads.clone().filter_map(|root| after(&written, root)).max();
            let before_writes = writes.clone().filter_map(|root| after(&written, root).max(after(&read, root))).max();
            let time = before_reads.max(before_writes).unwrap_or(0);
            for root in reads {
                let last = read.entry(root).or_default();
                *last = time.max(*last);
            }
            written.extend(writes.map(|root| (root, time)));
            ordered.push((time, call));
        }
        ordered.sort_by_key(|(time, _)| *time);
        ordered
    }

    /// For each call of a GPU, those before it whose memory it touches, where one of the two writes; without those that others
    /// of them wait for.
    pub(super) fn dependencies(&self, calls: &[(usize, PendingCall)], plan: &Plan) -> Vec<Vec<usize>> {
        if self.simt.is_none() {
            return vec![vec![]; calls.len()];
        }
        let touches: Vec<Vec<Touch>> = calls.iter().map(|(_, call)| self.touches(call, plan)).collect();
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
                Storage::Constant(_) | Storage::Same(_) | Storage::Part(..) => return None,
                Storage::Unplaced => (Memory::Arena, plan.offset(root)),
            };
            let from = start + first;
            Some(Touch { memory, from, to: from + self.touched_bytes(id), is_write })
        })
        .collect()
    }
}

impl Touch {
    fn meets(&self, other: &Self) -> bool {
        self.memory == other.memory && (self.is_write || other.is_write) && self.from < other.to && other.from < self.to
    }
}
