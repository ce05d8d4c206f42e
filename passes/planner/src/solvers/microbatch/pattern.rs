//! Pattern of a queue: where weights are held, and the size of micro-batches; and its schedule for all inputs.
//!
//! A pattern does not depend on the number of inputs, so a search over patterns may simulate a part of a long queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::model::Model;
use crate::model::instance::Arc;
use crate::model::plan::Batch;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros, Total};
use crate::solvers::expected;

/// Size of micro-batches and devices of each co-location group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Inputs of each micro-batch.
    pub(super) size: Vec<u32>,
    /// Devices that hold the weights, ascending. Each micro-batch runs on one of them.
    pub(super) holders: Vec<Vec<u16>>,
    /// Order in which a device runs what is ready.
    pub(super) rule: Rule,
    /// Share of a slow holder's additional time that does not count when a holder is chosen, in percent.
    pub(super) bias: u32,
    /// Maximum number of inputs in flight.
    pub(super) window: u32,
}

/// Choice of a device among micro-batches whose operands have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The one that arrived first.
    Arrival,
    /// The one with the first input; of the same input, the first in topological order.
    Oldest,
    /// The one with the longest path to the end.
    Rank,
    /// The one whose chunk arrived first. A chunk consists of the successive tasks of a micro-batch with the same holders;
    /// it stays on one device, and runs there without interruption.
    Chunk,
    /// The one whose chunk is due first: micro-batches advance at the same pace, and the last one is behind the first one
    /// by a share of the network, in per mille.
    Due(u32),
}

/// Of equally good ones, the first is taken: launches of a micro-batch that follow each other on a device become one stage.
pub(super) const RULES: [Rule; 4] = [Rule::Chunk, Rule::Oldest, Rule::Rank, Rule::Arrival];

impl Rule {
    /// Returns true if chunks stay together.
    fn keeps_chunks(self) -> bool {
        matches!(self, Self::Chunk | Self::Due(_))
    }
}

impl Pattern {
    /// Creates a pattern with micro-batches of one size. Tasks that take the whole queue at once are not divided.
    pub(super) fn uniform(model: &Model<'_>, size: u32, holders: Vec<Vec<u16>>) -> Self {
        let size_of = |undivided: &bool| if *undivided { model.inputs } else { size };
        let size = model.is_undivided.iter().map(size_of).collect();
        Self { size, holders, rule: Rule::Arrival, bias: 0, window: model.inputs }
    }

    /// Returns true if every group has a holder.
    pub(super) fn is_complete(&self) -> bool {
        self.holders.iter().all(|holders| !holders.is_empty())
    }

    /// Returns the weights on each device.
    pub(super) fn weights(&self, model: &Model<'_>) -> Vec<Bytes> {
        let mut held = vec![Bytes::ZERO; model.instance.devices()];
        for (group, holders) in self.holders.iter().enumerate() {
            let bytes = model.weights(group) + self.static_part(model, group);
            holders.iter().for_each(|device| held[usize::from(*device)] += bytes);
        }
        held
    }

    /// Returns the operands and results of all inputs that the static memory model reserves on each holder, if holders
    /// share the inputs equally.
    fn static_part(&self, model: &Model<'_>, group: usize) -> Bytes {
        if model.instance.memory_model() != MemoryModel::Static {
            return Bytes::ZERO;
        }
        let of = |task: &usize| model.instance.input_bytes(*task) + model.instance.output_bytes(*task);
        let each: Bytes = model.instance.groups()[group].iter().map(of).sum();
        each * f64::from(model.inputs) / self.holders[group].len() as f64
    }

    /// Returns true if the weights fit; values in flight are not counted.
    pub(super) fn weights_fit(&self, model: &Model<'_>) -> bool {
        !model.is_tight || model.instance.fits(&self.weights(model))
    }
}

/// Simulator of patterns; it keeps its memory from one to the next.
pub(super) struct Simulator<'a> {
    model: &'a Model<'a>,
    /// Number of inputs that are simulated: the first ones of the queue.
    inputs: u32,
    /// First and last tasks of those that take parts of the queue.
    sources: Vec<usize>,
    sinks: Vec<usize>,
    /// By task: its first micro-batch; last, their number.
    first: Vec<usize>,
    task_of: Vec<u32>,
    waiting: Vec<u32>,
    device: Vec<u16>,
    start: Vec<Micros>,
    end: Vec<Micros>,
    /// By micro-batch: priority of its chunk.
    priority: Vec<f64>,
    /// By task: first task of its chunk; and by task and device: time of the tasks of the chunk from it on.
    chunk: Vec<u32>,
    chunk_time: Vec<Micros>,
    /// Number of results of micro-batches that are read on another device.
    transfers: usize,
    /// Micro-batch whose results are released, and the next one of its chunk if that starts without delay.
    running: Option<usize>,
    following: Option<usize>,
    /// By device.
    free: Vec<Micros>,
    backlog: Vec<Micros>,
    pending: Vec<BinaryHeap<Reverse<(Total, u32)>>>,
    ready: Vec<BinaryHeap<Reverse<(Total, u32)>>>,
}

/// Difference between the first and the last micro-batch, as a share of the network, that breaks ties.
const TIE: f64 = 1e-6;
/// Device of a micro-batch that is not placed.
const NOWHERE: u16 = u16::MAX;

impl<'a> Simulator<'a> {
    pub(super) fn new(model: &'a Model<'a>, inputs: u32) -> Self {
        let (instance, devices) = (model.instance, model.instance.devices());
        let is_divided = |task: usize| !model.is_undivided[instance.group_of(task)];
        let none = |arcs: &[Arc]| arcs.iter().all(|arc| !is_divided(arc.task));
        let divided = || (0..instance.tasks()).filter(|task| is_divided(*task));
        Self {
            model,
            inputs,
            sources: divided().filter(|task| none(instance.predecessors(*task))).collect(),
            sinks: divided().filter(|task| none(instance.successors(*task))).collect(),
            first: Vec::new(),
            task_of: Vec::new(),
            waiting: Vec::new(),
            device: Vec::new(),
            start: Vec::new(),
            end: Vec::new(),
            priority: Vec::new(),
            chunk: Vec::new(),
            chunk_time: Vec::new(),
            transfers: 0,
            running: None,
            following: None,
            free: vec![Micros::ZERO; devices],
            backlog: vec![Micros::ZERO; devices],
            pending: (0..devices).map(|_| BinaryHeap::new()).collect(),
            ready: (0..devices).map(|_| BinaryHeap::new()).collect(),
        }
    }

    /// Returns the number of micro-batches of all tasks.
    pub(super) fn jobs(&self) -> usize {
        self.task_of.len()
    }

    /// Schedules all inputs, and returns the value by which patterns are compared: the makespan, or the expected time of plans
    /// that are executed.
    pub(super) fn cost(&mut self, pattern: &Pattern) -> Micros {
        let makespan = self.run(pattern);
        if self.model.keeps_groups { expected::time(makespan, self.transfers, self.jobs()) } else { makespan }
    }

    /// Schedules all inputs, and returns the makespan; infinite if a micro-batch has no device.
    ///
    /// Devices start what is ready without delay. A micro-batch is assigned when its operands are computed, to the holder
    /// on which it would end first. Starts never decrease from one step to the next, so everything that could start
    /// earlier on a device is known when the device chooses.
    pub(super) fn run(&mut self, pattern: &Pattern) -> Micros {
        self.reset(pattern);
        let tasks = self.model.instance.tasks();
        for task in 0..tasks {
            for job in self.first[task]..self.first[task + 1] {
                if self.waiting[job] == 0 && !self.assign(pattern, job) {
                    return Micros::INFINITY;
                }
            }
        }
        let mut done = 0;
        let mut makespan = Micros::ZERO;
        while let Some((device, start)) = self.next() {
            while let Some(&Reverse((arrival, job))) = self.pending[device].peek()
                && arrival.0 <= start.0
            {
                self.pending[device].pop();
                let key = self.key(pattern, job as usize, arrival);
                self.ready[device].push(Reverse((key, job)));
            }
            let Some(Reverse((_, job))) = self.ready[device].pop() else { return Micros::INFINITY };
            let mut next = Some((job as usize, start));
            while let Some((job, start)) = next {
                let task = self.task_of[job] as usize;
                let (from, until) = self.range(pattern, job);
                let time = self.model.time(task, device, until - from);
                (self.start[job], self.end[job]) = (start, start + time);
                self.free[device] = start + time;
                self.backlog[device] -= time;
                makespan = makespan.max(start + time);
                done += 1;
                self.running = Some(job);
                if !self.release(pattern, task, from, until) {
                    return Micros::INFINITY;
                }
                next = self.following.take().map(|next| (next, self.free[device]));
            }
        }
        if done == self.jobs() { makespan } else { Micros::INFINITY }
    }

    fn reset(&mut self, pattern: &Pattern) {
        let instance = self.model.instance;
        self.first.clear();
        self.task_of.clear();
        for task in 0..instance.tasks() {
            self.first.push(self.task_of.len());
            let count = self.inputs.div_ceil(pattern.size[instance.group_of(task)]) as usize;
            self.task_of.resize(self.task_of.len() + count, task as u32);
        }
        let jobs = self.task_of.len();
        self.first.push(jobs);
        self.waiting.clear();
        self.waiting.resize(jobs, 0);
        self.device.clear();
        self.device.resize(jobs, NOWHERE);
        self.start.resize(jobs, Micros::ZERO);
        self.end.resize(jobs, Micros::ZERO);
        self.priority.resize(jobs, 0.0);
        self.free.fill(Micros::ZERO);
        self.backlog.fill(Micros::ZERO);
        (self.transfers, self.running, self.following) = (0, None, None);
        self.pending.iter_mut().chain(&mut self.ready).for_each(BinaryHeap::clear);
        self.set_chunks(pattern);
        for job in 0..jobs {
            let (from, until) = self.range(pattern, job);
            let task = self.task_of[job] as usize;
            let before =
                instance.predecessors(task).iter().map(|arc| self.overlaps(pattern, arc.task, from, until).len());
            self.waiting[job] = before.sum::<usize>() as u32;
            if self.is_throttled(pattern, task, from) {
                self.waiting[job] += self.sinks.len() as u32;
            }
        }
    }

    /// Finds the chunk of each task: without a rule for chunks, each task is one.
    fn set_chunks(&mut self, pattern: &Pattern) {
        let instance = self.model.instance;
        let (tasks, devices) = (instance.tasks(), instance.devices());
        self.chunk.clear();
        self.chunk.extend(0..tasks as u32);
        self.chunk_time.clear();
        self.chunk_time.resize(tasks * devices, Micros::ZERO);
        for &task in instance.order() {
            let group = instance.group_of(task);
            if let Some(before) = Self::before_in_chunk(self.model, pattern, task) {
                self.chunk[task] = self.chunk[before];
            }
            let head = self.chunk[task] as usize;
            for &device in &pattern.holders[group] {
                let device = usize::from(device);
                let count = pattern.size[group].min(self.inputs);
                self.chunk_time[head * devices + device] += self.model.time(task, device, count);
            }
        }
    }

    /// Returns the inputs of a micro-batch.
    fn range(&self, pattern: &Pattern, job: usize) -> (u32, u32) {
        let task = self.task_of[job] as usize;
        let size = pattern.size[self.model.instance.group_of(task)];
        let from = (job - self.first[task]) as u32 * size;
        (from, (from + size).min(self.inputs))
    }

    /// Returns the micro-batches of a task that have some of the inputs.
    fn overlaps(&self, pattern: &Pattern, task: usize, from: u32, until: u32) -> std::ops::Range<usize> {
        let size = pattern.size[self.model.instance.group_of(task)];
        let first = self.first[task];
        first + (from / size) as usize..first + until.div_ceil(size) as usize
    }

    /// Returns true if a first task waits until earlier inputs have passed.
    fn is_throttled(&self, pattern: &Pattern, task: usize, from: u32) -> bool {
        from >= pattern.window && self.sources.contains(&task)
    }

    /// Returns the priority of a micro-batch among those that have arrived; smaller is first.
    fn key(&self, pattern: &Pattern, job: usize, arrival: Total) -> Total {
        let task = self.task_of[job] as usize;
        match pattern.rule {
            Rule::Arrival => arrival,
            Rule::Oldest => {
                let (from, _) = self.range(pattern, job);
                Total(f64::from(from) * self.model.instance.tasks() as f64 + f64::from(self.model.position[task]))
            }
            Rule::Rank => Total(-self.model.tails[task].0),
            Rule::Chunk | Rule::Due(_) => Total(self.priority[job]),
        }
    }

    /// Returns the device that starts next, and its start.
    fn next(&self) -> Option<(usize, Micros)> {
        let mut best: Option<(usize, Micros)> = None;
        for device in 0..self.free.len() {
            let start = if !self.ready[device].is_empty() {
                self.free[device]
            } else if let Some(Reverse((arrival, _))) = self.pending[device].peek() {
                self.free[device].max(Micros(arrival.0))
            } else {
                continue;
            };
            if best.is_none_or(|(_, earliest)| start < earliest) {
                best = Some((device, start));
            }
        }
        best
    }

    /// Assigns a micro-batch to a device; false if it can run on none.
    fn assign(&mut self, pattern: &Pattern, job: usize) -> bool {
        let instance = self.model.instance;
        let task = self.task_of[job] as usize;
        let group = instance.group_of(task);
        let (from, until) = self.range(pattern, job);
        let members = &instance.groups()[group];
        // Co-located tasks run the same inputs on the same device.
        let index = job - self.first[task];
        let decided = members.iter().map(|other| self.device[self.first[*other] + index]).find(|on| *on != NOWHERE);
        let before = Self::before_in_chunk(self.model, pattern, task).map(|before| self.first[before] + index);
        let only = decided.or(before.map(|before| self.device[before])).map(|device| [device]);
        let candidates = only.as_ref().map_or(pattern.holders[group].as_slice(), |only| only);
        let devices = instance.devices();
        let whole = |device: u16| self.chunk_time[task * devices + usize::from(device)];
        let least = candidates.iter().map(|device| whole(*device)).fold(Micros::INFINITY, Micros::min);
        let mut best: Option<(Micros, u16, Micros)> = None;
        for &device in candidates {
            let on = usize::from(device);
            let time = self.model.time(task, on, until - from);
            if members.len() > 1 && members.iter().any(|other| self.model.time(*other, on, until - from).is_infinite())
            {
                continue;
            }
            let mut arrival = if self.is_throttled(pattern, task, from) {
                self.sinks
                    .iter()
                    .map(|sink| self.end[self.of_input(pattern, *sink, from - pattern.window)])
                    .fold(Micros::ZERO, Micros::max)
            } else {
                Micros::ZERO
            };
            for arc in instance.predecessors(task) {
                let size = pattern.size[instance.group_of(arc.task)];
                for other in self.overlaps(pattern, arc.task, from, until) {
                    let begin = (other - self.first[arc.task]) as u32 * size;
                    let count = until.min(begin + size) - from.max(begin);
                    let hop = instance.transfer_of(arc.tensor, usize::from(self.device[other]), on, count);
                    arrival = arrival.max(self.end[other] + hop);
                }
            }
            let counted = whole(device) - (whole(device) - least) * (f64::from(pattern.bias) / 100.0);
            let end = arrival.max(self.free[on] + self.backlog[on]) + if only.is_some() { time } else { counted };
            if end.is_finite() && best.is_none_or(|(earliest, ..)| end < earliest) {
                best = Some((end, device, arrival));
            }
        }
        let Some((_, device, arrival)) = best else { return false };
        self.device[job] = device;
        for arc in instance.predecessors(task) {
            let elsewhere = |other: &usize| self.device[*other] != device;
            self.transfers += self.overlaps(pattern, arc.task, from, until).filter(elsewhere).count();
        }
        let on = usize::from(device);
        if pattern.rule.keeps_chunks() {
            let place = |share: f64| self.model.length.0 * share * f64::from(from) / f64::from(self.inputs);
            self.priority[job] = match (before, pattern.rule) {
                (Some(before), _) if self.device[before] == device => self.priority[before],
                // Of equal ones, the first input.
                (_, Rule::Due(behind)) => place(f64::from(behind) / 1000.0 + TIE) - self.model.tails[task].0,
                _ => arrival.0 + place(TIE),
            };
        }
        // The first task of a chunk counts for all of them.
        match before.map(|before| usize::from(self.device[before])) {
            None => self.backlog[on] += self.chunk_time[task * devices + on],
            Some(expected) if expected != on => {
                self.backlog[expected] -= self.model.time(task, expected, until - from);
                self.backlog[on] += self.model.time(task, on, until - from);
            }
            _ => {}
        }
        let continues = before.is_some()
            && self.running.is_some_and(|running| {
                let other = self.task_of[running] as usize;
                let is_same = self.chunk[other] == self.chunk[task] && running - self.first[other] == index;
                is_same && self.device[running] == device
            });
        if continues && self.following.is_none() && arrival <= self.free[on] {
            self.following = Some(job);
        } else {
            self.pending[on].push(Reverse((Total(arrival.0), job as u32)));
        }
        true
    }

    /// Returns a predecessor with micro-batches of the same size and the same holders.
    fn before_in_chunk(model: &Model<'_>, pattern: &Pattern, task: usize) -> Option<usize> {
        if !pattern.rule.keeps_chunks() {
            return None;
        }
        let group = model.instance.group_of(task);
        let is_same = |arc: &&Arc| {
            let other = model.instance.group_of(arc.task);
            pattern.size[other] == pattern.size[group] && pattern.holders[other] == pattern.holders[group]
        };
        model.instance.predecessors(task).iter().find(is_same).map(|arc| arc.task)
    }

    /// Returns the micro-batch of a task that has an input.
    fn of_input(&self, pattern: &Pattern, task: usize, input: u32) -> usize {
        self.first[task] + (input / pattern.size[self.model.instance.group_of(task)]) as usize
    }

    /// Counts down what waits for a micro-batch, and assigns what is complete; false if something has no device.
    fn release(&mut self, pattern: &Pattern, task: usize, from: u32, until: u32) -> bool {
        let instance = self.model.instance;
        for arc in instance.successors(task) {
            for reader in self.overlaps(pattern, arc.task, from, until) {
                self.waiting[reader] -= 1;
                if self.waiting[reader] == 0 && !self.assign(pattern, reader) {
                    return false;
                }
            }
        }
        if pattern.window >= self.inputs || !self.sinks.contains(&task) {
            return true;
        }
        // First tasks wait for one of these inputs.
        for index in 0..self.sources.len() {
            let source = self.sources[index];
            for job in self.first[source]..self.first[source + 1] {
                let (begin, _) = self.range(pattern, job);
                if begin >= pattern.window && (from..until).contains(&(begin - pattern.window)) {
                    self.waiting[job] -= 1;
                    if self.waiting[job] == 0 && !self.assign(pattern, job) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Returns the launches of the last run.
    pub(super) fn launches(&self, pattern: &Pattern) -> Vec<Batch> {
        let mut batches = Vec::with_capacity(self.jobs());
        for job in 0..self.jobs() {
            let (mut from, until) = self.range(pattern, job);
            let (node, device) = (self.task_of[job] as usize, usize::from(self.device[job]));
            let mut start = self.start[job];
            for size in self.model.launches(node, device, until - from) {
                batches.push(Batch { node, device, inputs: (from..from + size).collect(), start });
                start += self.model.instance.time_at(node, device, size).unwrap_or(Micros::ZERO);
                from += size;
            }
        }
        batches
    }
}
