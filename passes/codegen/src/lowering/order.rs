//! Order and dependencies of calls. Those of GPUs may run concurrently.

use super::{Lowering, PendingCall, Storage};
use crate::{arena::ArenaPlan, graph::Id};
use rustc_hash::FxHashMap;

/// Access of a call to a range of bytes.
struct Access {
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
    /// Returns the calls in topological order, with their times for live ranges in the arena. Calls of a CPU run sequentially. The time of
    /// a GPU call is its depth in the dependency graph, so calls of equal time may run concurrently.
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

    /// Returns, for each call of a GPU, the earlier calls with conflicting accesses (overlapping bytes, at least one write), without those
    /// that are implied transitively.
    pub(super) fn dependencies(&self, calls: &[(usize, PendingCall)], plan: &ArenaPlan) -> Vec<Vec<usize>> {
        if self.simt.is_none() {
            return vec![vec![]; calls.len()];
        }
        let accesses: Vec<Vec<Access>> = calls.iter().map(|(_, call)| self.accesses(call, plan)).collect();
        // Transitive predecessors of each call.
        let mut before: Vec<Vec<bool>> = vec![];
        let mut all = vec![];
        for (index, own) in accesses.iter().enumerate() {
            let mut known = vec![false; index];
            let mut after = vec![];
            for other in (0..index).rev() {
                if known[other] || !own.iter().any(|a| accesses[other].iter().any(|b| a.conflicts_with(b))) {
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

    fn accesses(&self, call: &PendingCall, plan: &ArenaPlan) -> Vec<Access> {
        let ids = call.reads.iter().map(|&id| (id, false)).chain(call.writes.iter().map(|&id| (id, true)));
        ids.filter_map(|(id, is_write)| {
            let (root, first) = self.place(id);
            let (memory, start) = match self.storage[root.0] {
                Storage::Input(i) => (Memory::Input(i), 0),
                Storage::Output(i) => (Memory::Output(i), 0),
                Storage::Constant(_) | Storage::Alias(_) | Storage::Subview(..) => return None,
                Storage::Unassigned => (Memory::Arena, plan.offset(root)),
            };
            let from = start + first;
            Some(Access { memory, from, to: from + self.touched_bytes(id), is_write })
        })
        .collect()
    }
}

impl Access {
    fn conflicts_with(&self, other: &Self) -> bool {
        self.memory == other.memory && (self.is_write || other.is_write) && self.from < other.to && other.from < self.to
    }
}
