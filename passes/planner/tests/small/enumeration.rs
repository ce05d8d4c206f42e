//! Enumeration of all pipelines of batches on the devices of a small problem.

use std::collections::{BTreeMap, BTreeSet};

use divi_planner::problem::{Contention, Tensor};
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Options, PipelineCost, Problem};

use super::batches::{SIZES, is_port};

/// Number of inputs after which every pattern of these sizes on up to three devices repeats.
const PERIOD: u32 = 24;

/// Devices that take turns, and their batch size.
pub(crate) type Unit = (Vec<usize>, u32);

/// Two devices, and the share of the inputs that the first computes and the second reads.
type Share = (usize, usize, f64);

/// Enumeration of all pipelines of batches of a problem.
pub(crate) struct Enumeration<'a> {
    problem: &'a Problem,
    tensors: Vec<Tensor>,
    cost: PipelineCost,
    units: Vec<Unit>,
    /// By pair of units: share of the inputs on each pair of their devices.
    shares: BTreeMap<(usize, usize), Vec<Share>>,
    working: Vec<usize>,
    ports: Vec<usize>,
    k: usize,
    best: Option<Micros>,
}

impl<'a> Enumeration<'a> {
    /// Returns the least value of all pipelines.
    pub(crate) fn optimum(problem: &'a Problem, options: &Options) -> Option<Micros> {
        let devices = problem.devices.len();
        let most = options.max_batch.unwrap_or(1).max(problem.default_batch());
        let replicas = options.max_replicas.unwrap_or(1) as usize;
        let subsets = (1..1_usize << devices).map(|set| (0..devices).filter(|on| set >> on & 1 == 1).collect());
        let subsets: Vec<Vec<usize>> = subsets.filter(|set: &Vec<usize>| set.len() <= replicas).collect();
        let sizes = SIZES.into_iter().filter(|size| *size <= most);
        let units: Vec<Unit> =
            sizes.flat_map(|size| subsets.iter().map(move |set| (set.clone(), size)).collect::<Vec<_>>()).collect();
        let (ports, working): (Vec<usize>, Vec<usize>) =
            (0..problem.nodes.len()).partition(|node| is_port(problem, *node));
        let pairs = (0..units.len()).flat_map(|a| (0..units.len()).map(move |b| (a, b)));
        let shares = pairs.map(|(a, b)| ((a, b), counted(&units[a], &units[b]))).collect();
        let k = options.stages.map_or(devices, |k| k as usize);
        let cost = options.pipeline_cost.unwrap_or_default();
        let tensors = problem.all_tensors();
        let mut all = Self { problem, tensors, cost, units, shares, working, ports, k, best: None };
        all.place(0, &mut vec![usize::MAX; problem.nodes.len()]);
        all.best
    }

    /// Places the tasks from the given one on, ports last.
    fn place(&mut self, index: usize, on: &mut Vec<usize>) {
        let tasks = self.working.len();
        if index == tasks + self.ports.len() {
            if let Some(value) = self.value(on).filter(|value| self.best.is_none_or(|best| *value < best)) {
                self.best = Some(value);
            }
            return;
        }
        let node = if index < tasks { self.working[index] } else { self.ports[index - tasks] };
        for unit in 0..self.units.len() {
            if !self.runs(node, unit) || index < tasks && !self.is_apart(index, unit, on) {
                continue;
            }
            on[node] = unit;
            if index + 1 != tasks || self.has_order(on) {
                self.place(index + 1, on);
            }
            on[node] = usize::MAX;
        }
    }

    /// Returns true if all devices of a unit run a node, in the same time.
    fn runs(&self, node: usize, unit: usize) -> bool {
        let (devices, size) = &self.units[unit];
        let node = &self.problem.nodes[node];
        let times: Vec<Option<Micros>> = devices.iter().map(|on| node.time[size][*on]).collect();
        let known = devices.iter().all(|on| self.problem.devices[*on].batch_sizes.contains(size));
        known
            && node.pin.is_none_or(|pin| *devices == [pin])
            && times[0].is_some()
            && times.iter().all(|t| *t == times[0])
    }

    /// Returns true if a stage on this unit shares no device with another stage.
    fn is_apart(&self, index: usize, unit: usize, on: &[usize]) -> bool {
        self.working[..index].iter().all(|other| {
            let other = on[*other];
            other == unit || self.units[other].0.iter().all(|device| !self.units[unit].0.contains(device))
        })
    }

    /// Returns true if the stages are not too many, and form no cycle.
    fn has_order(&self, on: &[usize]) -> bool {
        let stages: BTreeSet<usize> = self.working.iter().map(|node| on[*node]).collect();
        let mut left = stages.clone();
        let follows = |stage: usize, other: usize| {
            let edges = self.tensors.iter().flat_map(|tensor| tensor.to.iter().map(|to| (tensor.from, *to)));
            edges.into_iter().any(|(from, to)| on[from] == other && on[to] == stage && stage != other)
        };
        while let Some(next) = left.iter().copied().find(|stage| left.iter().all(|other| !follows(*stage, *other))) {
            left.remove(&next);
        }
        left.is_empty() && stages.len() <= self.k
    }

    /// Returns the time of the slowest device, link or bus; `None` if a constraint is violated.
    fn value(&self, on: &[usize]) -> Option<Micros> {
        let (problem, devices) = (self.problem, self.problem.devices.len());
        let (mut work, mut moving) = (vec![Micros::ZERO; devices], vec![Micros::ZERO; devices]);
        let mut links = vec![vec![Micros::ZERO; devices]; devices];
        let mut buses: BTreeMap<&str, Micros> = BTreeMap::new();
        let mut held = vec![Bytes::ZERO; devices];
        let results = problem.output_bytes();
        for node in &problem.nodes {
            let (set, size) = &self.units[on[node.id]];
            for &device in set {
                work[device] += node.time[size][device]? / (f64::from(*size) * set.len() as f64);
                held[device] += node.weight + (node.input + results[node.id]) * f64::from(*size);
            }
        }
        if self.best.is_some_and(|best| work.iter().any(|work| *work >= best)) {
            return None;
        }
        let fits = |on: usize| problem.devices[on].memory.is_none_or(|memory| held[on] <= memory);
        let together = |group: &Vec<usize>| {
            let first = &self.units[on[group[0]]];
            let same = |node: &usize| {
                let own = &self.units[on[*node]];
                own.0 == first.0 && (own.0.len() == 1 || own.1 == first.1)
            };
            group.iter().all(same)
        };
        if !(0..devices).all(fits) || !problem.colocate.iter().flatten().all(together) || !self.are_equal(on) {
            return None;
        }
        for tensor in &self.tensors {
            let (home, size) = (on[tensor.from], self.units[on[tensor.from]].1);
            // Blocks on one device share a transfer; others have their own.
            let mut destinations: BTreeMap<(Vec<usize>, u32), (usize, u32)> = BTreeMap::new();
            for reader in &tensor.to {
                let (set, batch) = &self.units[on[*reader]];
                let key = (set.clone(), if set.len() == 1 { 0 } else { *batch });
                let entry = destinations.entry(key).or_insert((on[*reader], size));
                entry.1 = gcd(entry.1, *batch);
            }
            let mut longest = vec![Micros::ZERO; devices];
            for (unit, together) in destinations.into_values() {
                let mut sent = vec![Micros::ZERO; devices];
                for &(from, to, share) in &self.shares[&(home, unit)] {
                    if from == to {
                        continue;
                    }
                    let bandwidth = problem.bandwidth[from][to].unwrap_or(BytesPerMicro::INFINITY);
                    if bandwidth == BytesPerMicro::ZERO {
                        return None;
                    }
                    let latency = problem.link_latency.as_ref().and_then(|all| all[from][to]).unwrap_or_default();
                    let load = (tensor.bytes / bandwidth + latency / f64::from(together)) * share;
                    sent[from] += load;
                    moving[to] += load;
                    links[from][to] += load;
                    if problem.contention != Contention::Off
                        && let Some(name) = problem.bus.as_ref().and_then(|bus| bus[from][to].as_deref())
                    {
                        *buses.entry(name).or_default() += load;
                    }
                }
                longest.iter_mut().zip(sent).for_each(|(longest, sent)| *longest = longest.max(sent));
            }
            moving.iter_mut().zip(longest).for_each(|(moving, longest)| *moving += longest);
        }
        let serial = work.iter().zip(moving).map(|(a, b)| *a + b);
        let slowest = match self.cost {
            PipelineCost::Serial => serial.fold(Micros::ZERO, Micros::max),
            PipelineCost::Overlap => {
                work.iter().copied().chain(links.into_iter().flatten()).fold(Micros::ZERO, Micros::max)
            }
        };
        Some(buses.into_values().fold(slowest, Micros::max))
    }

    /// Returns true if the devices of each unit have the same memory, sizes and links to the others in use.
    fn are_equal(&self, on: &[usize]) -> bool {
        let problem = self.problem;
        let used: BTreeSet<usize> = on.iter().flat_map(|unit| self.units[*unit].0.iter().copied()).collect();
        let link = |from: usize, to: usize| {
            let latency = problem.link_latency.as_ref().and_then(|all| all[from][to]).unwrap_or_default();
            (problem.bandwidth[from][to], latency)
        };
        on.iter().all(|unit| {
            let set = &self.units[*unit].0;
            set.iter().all(|&device| {
                let (first, own) = (&problem.devices[set[0]], &problem.devices[device]);
                let others = || used.iter().copied().filter(|other| !set.contains(other));
                let sizes = |sizes: &[u32]| sizes.iter().copied().collect::<BTreeSet<u32>>();
                first.memory == own.memory
                    && sizes(&first.batch_sizes) == sizes(&own.batch_sizes)
                    && others().all(|other| link(set[0], other) == link(device, other))
                    && others().all(|other| link(other, set[0]) == link(other, device))
            })
        })
    }
}

/// Counts the inputs that each pair of devices of two units has, one by one.
fn counted(one: &Unit, other: &Unit) -> Vec<Share> {
    let mut counts: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    let device = |unit: &Unit, input: u32| unit.0[(input / unit.1) as usize % unit.0.len()];
    for input in 0..PERIOD {
        *counts.entry((device(one, input), device(other, input))).or_default() += 1;
    }
    counts.into_iter().map(|((from, to), count)| (from, to, f64::from(count) / f64::from(PERIOD))).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
