//! Verifies pipelines: values only flow to later stages, and the bottleneck is the slowest device, link or bus.

use super::{
    Findings,
    certificate::{Certificate, PipelineCost},
    exceeds,
    graph::Graph,
    machine::Machine,
    memory::held_weights,
    micros,
    runs::{Run, Runs},
};
use crate::ir::describe;
use divi_dialect::Operation;
use divi_planner::units::{Bytes, Micros, human_bytes};
use std::collections::{BTreeMap, BTreeSet};

/// Pipeline, with the stage of each node that is a task.
pub(super) struct Pipeline<'a> {
    pub(super) graph: &'a Graph<'a>,
    pub(super) runs: &'a Runs,
    pub(super) stage: &'a [Option<i64>],
    pub(super) machine: &'a Machine,
    pub(super) certificate: &'a Certificate<'a>,
}

impl Pipeline<'_> {
    /// Checks stages and memory. Returns the time between two outputs. Starts within stages are not checked.
    pub(super) fn verify(&self, module: Operation<'_>, findings: &mut Findings) -> Micros {
        self.check_stages(module, findings);
        self.check_flow(findings);
        self.check_memory(findings);
        self.bottleneck(findings)
    }

    /// Checks that the tasks of a stage start one after the other, each after those that it reads from.
    pub(super) fn check_starts(&self, findings: &mut Findings) {
        for tensor in &self.graph.tensors {
            for &to in tensor.to.iter().filter(|&&to| self.is_one_stage(tensor.from, to)) {
                let (before, run) = (self.run(tensor.from), self.run(to));
                if exceeds(before.end, run.start) {
                    self.tell_early(run, before, "which it reads, ends at", findings);
                }
            }
        }
        let mut order: Vec<&Run> =
            self.runs.all.iter().filter(|run| self.graph.nodes[run.node].task().is_some()).collect();
        order.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
        let mut last: BTreeMap<i64, &Run> = BTreeMap::new();
        for run in order {
            let Some(stage) = self.stage[run.node] else { continue };
            let before = *last.entry(stage).or_insert(run);
            // Precedence has been checked above.
            let is_read = || self.graph.tensors.iter().any(|t| t.from == before.node && t.to.contains(&run.node));
            if before.node != run.node && exceeds(before.end, run.start) && !is_read() {
                self.tell_early(run, before, "of the same stage, runs until", findings);
            }
            if run.end > before.end {
                last.insert(stage, run);
            }
        }
    }

    fn tell_early(&self, run: &Run, before: &Run, why: &str, findings: &mut Findings) {
        let task = |run: &Run| self.graph.nodes[run.node].task().expect("only tasks have stages").operation;
        let message = format!(
            "{} starts at {} of its stage, but {}, {why} {}: start it {} later",
            describe(task(run)),
            micros(run.start),
            describe(task(before)),
            micros(before.end),
            micros(before.end - run.start)
        );
        findings.add(task(run), &message);
    }

    fn run(&self, node: usize) -> &Run {
        &self.runs.all[self.runs.of_node[node][0]]
    }

    fn is_one_stage(&self, a: usize, b: usize) -> bool {
        self.stage[a].is_some() && self.stage[a] == self.stage[b]
    }

    /// Checks that a stage is on one device, that a device has one stage unless devices are shared, and the number of
    /// stages.
    fn check_stages(&self, module: Operation<'_>, findings: &mut Findings) {
        let mut device_of: BTreeMap<i64, (usize, Operation<'_>)> = BTreeMap::new();
        for (node, task) in self.graph.tasks() {
            let Some(stage) = self.stage[node] else { continue };
            let device = self.run(node).device;
            let (other, with) = *device_of.entry(stage).or_insert((device, task.operation));
            if other != device {
                let message = format!(
                    "{} is in stage {stage} and on {}, but {} of that stage is on {}: give it that device, or a stage of \
                     its own",
                    describe(task.operation),
                    self.machine.label(device),
                    describe(with),
                    self.machine.label(other)
                );
                findings.add(task.operation, &message);
            }
        }
        let count = device_of.len() as i64;
        if let Some(missing) = (0..count).find(|stage| !device_of.contains_key(stage)) {
            let message = format!("has {count} stages, but none is stage {missing}: they are numbered from 0 on");
            findings.add(module, &message);
        }
        if let Some(most) = self.certificate.stages.filter(|&most| count > most) {
            findings.add(module, &format!("has {count} stages, but its divi.plan is for {most} at most (k)"));
        }
        if self.certificate.shared_devices {
            return;
        }
        let mut stages_of: BTreeMap<usize, BTreeSet<i64>> = BTreeMap::new();
        let is_work = self.work();
        for (node, task) in self.graph.tasks().filter(|(node, _)| is_work[*node]) {
            let device = self.run(node).device;
            let Some(stage) = self.stage[node] else { continue };
            let stages = stages_of.entry(device).or_default();
            if stages.insert(stage) && stages.len() > 1 {
                let message = format!(
                    "{} is in stage {stage} on {}, which has stage {} already: a device has one stage, unless divi.plan \
                     has shared_devices",
                    describe(task.operation),
                    self.machine.label(device),
                    stages.first().expect("has two")
                );
                findings.add(task.operation, &message);
            }
        }
    }

    /// Returns true for each node that does work. A node that takes no time on any device and has no operands or no
    /// readers does not, and may be anywhere.
    fn work(&self) -> Vec<bool> {
        let (mut hands_on, mut is_given) = (vec![false; self.stage.len()], vec![false; self.stage.len()]);
        for tensor in &self.graph.tensors {
            hands_on[tensor.from] |= !tensor.to.is_empty();
            tensor.to.iter().for_each(|&to| is_given[to] = true);
        }
        let takes_time = |node: usize| self.graph.nodes[node].task().is_some_and(|task| task.takes_time());
        (0..self.stage.len()).map(|node| takes_time(node) || (hands_on[node] && is_given[node])).collect()
    }

    /// Checks that values stay in their stage or go to a later one.
    fn check_flow(&self, findings: &mut Findings) {
        for tensor in &self.graph.tensors {
            let Some((from, producer)) = self.stage[tensor.from].zip(self.graph.nodes[tensor.from].task()) else {
                continue;
            };
            for &to in &tensor.to {
                let Some((stage, reader)) = self.stage[to].zip(self.graph.nodes[to].task()) else { continue };
                if stage < from {
                    let message = format!(
                        "{} is in stage {stage}, but reads the result of {} in stage {from}: values only go to later \
                         stages",
                        describe(reader.operation),
                        describe(producer.operation)
                    );
                    findings.add(reader.operation, &message);
                }
            }
        }
    }

    /// Checks memory. Several inputs are in flight at once, so a device holds all operands and results of its tasks.
    fn check_memory(&self, findings: &mut Findings) {
        let weights = |device: usize| {
            let own = self.graph.tasks().filter(|(node, _)| self.run(*node).device == device);
            held_weights(self.machine, device, own.map(|(_, task)| task.weight))
        };
        let mut held: Vec<Bytes> = (0..self.machine.devices.len()).map(weights).collect();
        let mut largest = vec![None; self.machine.devices.len()];
        for (node, task) in self.graph.tasks() {
            let device = self.run(node).device;
            let own = task.weight + task.input + task.output();
            held[device] += task.input + task.output();
            if largest[device].is_none_or(|(most, _)| own > most) {
                largest[device] = Some((own, task));
            }
        }
        // The model's inputs and outputs are held on the host.
        for tensor in &self.graph.tensors {
            let is_input = self.graph.nodes[tensor.from].task().is_none();
            let outputs = tensor.to.iter().filter(|&&to| self.graph.nodes[to].task().is_none()).count();
            held[self.machine.host] += tensor.bytes * (usize::from(is_input && !tensor.to.is_empty()) + outputs) as f64;
        }
        for (device, held) in held.into_iter().enumerate() {
            let memory = self.machine.devices[device].memory;
            if let Some((most, task)) = largest[device].filter(|_| exceeds(held, memory)) {
                let message = format!(
                    "{} needs {}, most of it, {}, for '{}', has {}: {} short; move tasks to another device",
                    self.machine.label(device),
                    human_bytes(held),
                    human_bytes(most),
                    task.name(),
                    human_bytes(memory),
                    human_bytes(held - memory)
                );
                findings.add(task.operation, &message);
            }
        }
    }

    /// Returns the bottleneck. A device takes the time of all its tasks, of each tensor that it receives, and of each
    /// that it sends, once, as the longest of its transfers. With overlap, devices and links count separately. Under
    /// contention, a bus takes the sum of its transfers, exclusive or shared.
    fn bottleneck(&self, findings: &mut Findings) -> Micros {
        let mut work: BTreeMap<usize, Micros> = BTreeMap::new();
        for run in &self.runs.all {
            *work.entry(run.device).or_default() += run.end - run.start;
        }
        let mut transfer_time: BTreeMap<usize, Micros> = BTreeMap::new();
        let mut links: BTreeMap<(usize, usize), Micros> = BTreeMap::new();
        let mut buses: BTreeMap<&str, Micros> = BTreeMap::new();
        for tensor in &self.graph.tensors {
            let home = self.run(tensor.from).device;
            let mut elsewhere: BTreeMap<usize, usize> = BTreeMap::new();
            for &to in tensor.to.iter().filter(|&&to| self.run(to).device != home) {
                elsewhere.entry(self.run(to).device).or_insert(to);
            }
            let mut longest = Micros::ZERO;
            for (device, reader) in elsewhere {
                let Some(takes) = self.machine.transfer(home, device, tensor.bytes) else {
                    let (from, to) = (self.run(tensor.from), self.run(reader));
                    super::flow::tell_missing_link(self.graph, from, to, self.machine, findings);
                    continue;
                };
                longest = longest.max(takes);
                *transfer_time.entry(device).or_default() += takes;
                *links.entry((home, device)).or_default() += takes;
                if let Some(bus) = self.machine.bus(home, device) {
                    *buses.entry(bus).or_default() += takes;
                }
            }
            *transfer_time.entry(home).or_default() += longest;
        }
        let of = |device: &usize| transfer_time.get(device).copied().unwrap_or_default();
        let busiest = buses.into_values().fold(Micros::ZERO, Micros::max);
        match self.certificate.pipeline_cost {
            PipelineCost::Serial => work.iter().map(|(device, work)| *work + of(device)).fold(busiest, Micros::max),
            PipelineCost::Overlap => work.into_values().chain(links.into_values()).fold(busiest, Micros::max),
        }
    }
}
