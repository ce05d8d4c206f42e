//! Pipeline under local search: costs of blocks, maintained incrementally.

use super::anneal::Stages;
use super::model::Model;
use crate::model::units::Micros;

/// Block numbers are topological: values never go to a lower one.
#[derive(Clone)]
pub(super) struct State<'a> {
    pub(super) model: &'a Model,
    pub(super) block: Vec<u32>,
    /// Order of the tasks within blocks.
    pub(super) order: Vec<u32>,
    /// By tensor and block: number of tasks there that read it.
    readers: Vec<u32>,
    pub(super) work: Vec<Micros>,
    pub(super) io: Vec<Micros>,
    pub(super) cost: Vec<Micros>,
    /// By block: part of its cost that counts.
    pub(super) parts: Vec<f64>,
    /// Initial bottleneck, the unit of costs in the energy.
    scale: Micros,
    /// Sum over blocks of a high power of their costs, maintained incrementally: a smooth approximation of the maximum.
    pub(super) energy: f64,
}

/// Change of transfer times of the two blocks of a move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) from_io: Micros,
    pub(super) to_io: Micros,
}

impl<'a> State<'a> {
    pub(super) fn new(model: &'a Model, block: Vec<u32>, order: Vec<u32>) -> Self {
        let (readers, cost) = (Vec::new(), vec![Micros::ZERO; model.k]);
        let (work, io) = (Vec::new(), Vec::new());
        let parts = if model.parts.is_empty() { vec![1.0; model.k] } else { model.parts.clone() };
        let mut state = Self { model, block, order, readers, work, io, cost, parts, scale: Micros(1.0), energy: 0.0 };
        state.recount();
        state.scale = state.value();
        state.energy = state.total();
        state
    }

    /// Recomputes everything from the blocks, which removes accumulated rounding errors.
    pub(super) fn recount(&mut self) {
        let (model, k) = (self.model, self.model.k);
        self.readers.clear();
        self.readers.resize(model.tensors.len() * k, 0);
        self.work = vec![Micros::ZERO; k];
        self.io = vec![Micros::ZERO; k];
        for (task, block) in self.block.iter().enumerate() {
            self.work[*block as usize] += model.work[task];
        }
        for (index, tensor) in model.tensors.iter().enumerate() {
            let counts = &mut self.readers[index * k..(index + 1) * k];
            tensor.readers.iter().for_each(|reader| counts[self.block[*reader as usize] as usize] += 1);
            let home = self.block[tensor.producer as usize] as usize;
            if (counts[home] as usize) < tensor.readers.len() {
                self.io[home] += tensor.time;
            }
            for (block, count) in counts.iter().enumerate() {
                if block != home && *count > 0 {
                    self.io[block] += tensor.time;
                }
            }
        }
        (0..k).for_each(|block| self.cost[block] = self.cost_of(block));
        self.energy = self.total();
    }

    fn total(&self) -> f64 {
        self.cost.iter().map(|cost| power(*cost / self.scale)).sum()
    }

    fn cost_of(&self, block: usize) -> Micros {
        self.model.block_cost(self.work[block], self.overflow(block), self.io[block]) * self.parts[block]
    }

    /// Overflow by eq. (2), recomputed: the peak depends on the whole block.
    fn overflow(&self, block: usize) -> Micros {
        let Some(memory) = &self.model.memory else { return Micros::ZERO };
        let is_here = |task: &u32| self.block[*task as usize] as usize == block;
        let tasks: Vec<u32> = self.order.iter().copied().filter(is_here).collect();
        memory.overflow(self.model, &tasks)
    }

    /// Returns the change by a move. Only the two blocks change: for all others the task is outside before and after.
    pub(super) fn change(&self, task: usize, to: usize) -> Change {
        let (model, k, from) = (self.model, self.model.k, self.block[task] as usize);
        let (mut from_io, mut to_io) = (Micros::ZERO, Micros::ZERO);
        for &index in &model.makes[task] {
            let tensor = &model.tensors[index as usize];
            let all = tensor.readers.len() as u32;
            let (here, there) = (self.readers[index as usize * k + from], self.readers[index as usize * k + to]);
            // It left this block if any reader is in another one; it will enter it if any reader stays.
            let (left, enters) = (here < all, here > 0);
            let (entered, leaves) = (there > 0, there < all);
            from_io += tensor.time * (f64::from(u8::from(enters)) - f64::from(u8::from(left)));
            to_io += tensor.time * (f64::from(u8::from(leaves)) - f64::from(u8::from(entered)));
        }
        for &index in &model.reads[task] {
            let tensor = &model.tensors[index as usize];
            let all = tensor.readers.len() as u32;
            let (here, there) = (self.readers[index as usize * k + from], self.readers[index as usize * k + to]);
            let home = self.block[tensor.producer as usize] as usize;
            if home == from {
                // It stayed in its block, and leaves it now.
                from_io += if here == all { tensor.time } else { Micros::ZERO };
            } else if here == 1 {
                from_io -= tensor.time;
            }
            if home == to {
                to_io -= if there + 1 == all { tensor.time } else { Micros::ZERO };
            } else if there == 0 {
                to_io += tensor.time;
            }
        }
        Change { from_io, to_io }
    }

    /// Returns the costs of both blocks after a move.
    pub(super) fn costs_after(&mut self, task: usize, to: usize, change: Change) -> (Micros, Micros) {
        let (from, work) = (self.block[task] as usize, self.model.work[task]);
        let (mut from_overflow, mut to_overflow) = (Micros::ZERO, Micros::ZERO);
        if self.model.memory.is_some() {
            self.block[task] = to as u32;
            (from_overflow, to_overflow) = (self.overflow(from), self.overflow(to));
            self.block[task] = from as u32;
        }
        let cost = |block: usize, work: Micros, overflow: Micros, io: Micros| {
            self.model.block_cost(self.work[block] + work, overflow, self.io[block] + io) * self.parts[block]
        };
        (cost(from, -work, from_overflow, change.from_io), cost(to, work, to_overflow, change.to_io))
    }

    /// Makes a move with known costs.
    pub(super) fn make(&mut self, task: usize, to: usize, change: Change, costs: (Micros, Micros)) {
        let (model, k, from) = (self.model, self.model.k, self.block[task] as usize);
        for &index in &model.reads[task] {
            self.readers[index as usize * k + from] -= 1;
            self.readers[index as usize * k + to] += 1;
        }
        self.block[task] = to as u32;
        self.work[from] -= model.work[task];
        self.work[to] += model.work[task];
        self.io[from] += change.from_io;
        self.io[to] += change.to_io;
        let energy = |(from, to): (Micros, Micros)| power(from / self.scale) + power(to / self.scale);
        self.energy -= energy((self.cost[from], self.cost[to]));
        self.energy += energy(costs);
        (self.cost[from], self.cost[to]) = costs;
    }
}

/// Returns the range of blocks between those of the predecessors and those of the successors.
pub(super) fn range(before: &[u32], after: &[u32], block: &[u32], k: usize) -> (u32, u32) {
    let block = |task: &u32| block[*task as usize];
    let low = before.iter().map(block).max().unwrap_or(0);
    let high = after.iter().map(block).min().unwrap_or(k as u32 - 1);
    (low, high)
}

/// Returns the sixteenth power.
pub(super) fn power(x: f64) -> f64 {
    let x2 = x * x;
    let x4 = x2 * x2;
    let x8 = x4 * x4;
    x8 * x8
}
