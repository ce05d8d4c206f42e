//! Places and batch sizes of a model's inputs and outputs. They are no stages, so they may be on one of the devices of a
//! stage, and have a batch size of their own.
//!
//! The models of `config` keep them on groups of devices in the group's size. Here they are placed again, and the
//! pipeline is evaluated device by device.

use std::collections::BTreeMap;

use super::config::{Config, Group, Space};
use super::turns::{Rotation, gcd, shares};
use crate::model::options::PipelineCost;
use crate::model::problem::Tensor;
use crate::model::units::{Bytes, BytesPerMicro, Micros};
use crate::solvers::pipeline::fleet::ROUNDED;
use crate::solvers::pipeline::state::power;

/// Maximum number of passes over all ports.
const PASSES: usize = 3;
/// Maximum number of evaluations, times tensors.
const MOST_STEPS: usize = 4_000_000;

/// Group of each node.
pub(super) type Units = Vec<Group>;

/// Value of a pipeline, and a smooth approximation of it that also counts smaller loads.
type Quality = (Micros, f64);

/// Evaluation of pipelines, device by device.
pub(super) struct Evaluator<'a> {
    space: &'a Space<'a>,
    tensors: Vec<Tensor>,
    results: Vec<Bytes>,
    ports: Vec<usize>,
    bus: Vec<Option<usize>>,
    buses: usize,
    cost: PipelineCost,
    /// Shares of a transfer by a pair of rotations.
    shares: BTreeMap<(Rotation, Rotation), Vec<f64>>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(space: &'a Space<'a>) -> Self {
        let problem = space.problem;
        let (bus, buses) = problem.buses();
        Self {
            space,
            tensors: problem.all_tensors(),
            results: problem.output_bytes(),
            ports: space.ports(),
            bus,
            buses,
            cost: space.options.pipeline_cost.unwrap_or_default(),
            shares: BTreeMap::new(),
        }
    }

    /// Returns the best found placement of ports for tasks on groups, with its value; `None` if none is feasible. `home` is
    /// a device of the group of each node.
    pub(super) fn with_ports(&mut self, config: &Config, home: &[usize]) -> Option<(Units, Micros)> {
        let group = |device: &usize| config.iter().find(|group| group.devices.contains(device)).cloned();
        let mut units: Units = home.iter().map(group).collect::<Option<_>>()?;
        let choices: Vec<Vec<Group>> = self.ports.iter().map(|port| self.choices(*port, config)).collect();
        for (port, choices) in self.ports.clone().into_iter().zip(&choices) {
            if !choices.contains(&units[port]) {
                units[port] = choices.first()?.clone();
            }
        }
        let mut best = self.quality(&units);
        let mut steps = 0;
        for _ in 0..PASSES {
            let before = best;
            for (port, choices) in self.ports.clone().into_iter().zip(&choices) {
                for choice in choices {
                    steps += self.tensors.len() + self.space.problem.nodes.len();
                    if units[port] == *choice || steps > MOST_STEPS {
                        continue;
                    }
                    let was = std::mem::replace(&mut units[port], choice.clone());
                    let found = self.quality(&units);
                    if is_better(found, best) {
                        best = found;
                    } else {
                        units[port] = was;
                    }
                }
            }
            if before == best {
                break;
            }
        }
        best.map(|(value, _)| (units, value))
    }

    /// Returns the single devices and groups that a port may be on.
    fn choices(&self, port: usize, config: &Config) -> Vec<Group> {
        let active = config.iter().flat_map(|group| group.devices.iter().copied());
        let single = |device: usize| {
            let sizes = self.space.tried(device).into_iter().rev();
            sizes.map(move |size| Group { devices: vec![device], size })
        };
        let singles = active.flat_map(single);
        let groups = config.iter().filter(|group| group.devices.len() > 1).cloned();
        let runs = |group: &Group| {
            let time = |device: &usize| self.space.time(port, *device, group.size);
            group.devices.iter().all(|device| time(device).is_some())
        };
        singles.chain(groups).filter(runs).collect()
    }

    /// Returns the quality of a pipeline; `None` if it is infeasible.
    fn quality(&mut self, units: &[Group]) -> Option<Quality> {
        let (problem, devices) = (self.space.problem, self.space.sizes.len());
        let (mut work, mut moving) = (vec![Micros::ZERO; devices], vec![Micros::ZERO; devices]);
        let mut links = vec![Micros::ZERO; if self.cost == PipelineCost::Overlap { devices * devices } else { 0 }];
        let mut buses = vec![Micros::ZERO; self.buses];
        let mut held = vec![Bytes::ZERO; devices];
        for node in &problem.nodes {
            let unit = &units[node.id];
            let size = f64::from(unit.size);
            let time = self.space.time(node.id, unit.devices[0], unit.size)?;
            for &device in &unit.devices {
                work[device] += time / (size * unit.devices.len() as f64);
                held[device] += node.weight + (node.input + self.results[node.id]) * size;
            }
        }
        let capacity = |on: usize| problem.devices[on].memory.unwrap_or(Bytes::INFINITY) * ROUNDED;
        let together = |group: &Vec<usize>| {
            let same = |node: &usize| {
                let (one, other) = (&units[*node], &units[group[0]]);
                one.devices == other.devices && (one.devices.len() == 1 || one.size == other.size)
            };
            group.iter().all(same)
        };
        if (0..devices).any(|on| held[on] > capacity(on)) || !problem.colocate.iter().flatten().all(together) {
            return None;
        }
        let mut longest = vec![Micros::ZERO; devices];
        for index in 0..self.tensors.len() {
            let home = &units[self.tensors[index].from];
            for (unit, together) in destinations(&self.tensors[index], units) {
                self.load_pattern(home, unit);
                let tensor = &self.tensors[index];
                let pattern = &self.shares[&(rotation(home), rotation(unit))];
                for (one, &from) in home.devices.iter().enumerate() {
                    let mut sent = Micros::ZERO;
                    for (other, &to) in unit.devices.iter().enumerate() {
                        let share = pattern[one * unit.devices.len() + other];
                        if from == to || share == 0.0 {
                            continue;
                        }
                        let load = self.move_time(tensor.bytes, from, to, together)? * share;
                        sent += load;
                        moving[to] += load;
                        links.get_mut(from * devices + to).into_iter().for_each(|link| *link += load);
                        if let Some(bus) = self.bus[from * devices + to] {
                            buses[bus] += load;
                        }
                    }
                    longest[from] = longest[from].max(sent);
                }
            }
            for &from in &home.devices {
                moving[from] += std::mem::take(&mut longest[from]);
            }
        }
        let serial = self.cost == PipelineCost::Serial;
        let own = work.iter().zip(&moving).map(|(work, moving)| if serial { *work + *moving } else { *work });
        let loads: Vec<Micros> = own.chain(links).chain(buses).collect();
        let value = loads.iter().copied().fold(Micros::ZERO, Micros::max);
        let scale = Micros(value.0.max(f64::MIN_POSITIVE));
        Some((value, loads.into_iter().map(|load| power(load / scale)).sum()))
    }

    fn load_pattern(&mut self, home: &Group, unit: &Group) {
        let pair = (rotation(home), rotation(unit));
        self.shares.entry(pair).or_insert_with(|| shares(pair.0, pair.1));
    }

    /// Returns the time for one input of a transfer of several; `None` without a link.
    fn move_time(&self, bytes: Bytes, from: usize, to: usize, together: u32) -> Option<Micros> {
        let problem = self.space.problem;
        let bandwidth = problem.bandwidth[from][to];
        let latency = problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default();
        let flow = bandwidth.map_or(Micros::ZERO, |bandwidth| bytes / bandwidth);
        (bandwidth != Some(BytesPerMicro::ZERO)).then(|| flow + latency / f64::from(together))
    }
}

/// Returns true if a quality is better than another one: a smaller value, or the same with smaller other loads.
fn is_better(one: Option<Quality>, other: Option<Quality>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let same = one.0 <= other.0 * (1.0 + 1e-12);
            one.0 < other.0 * (1.0 - 1e-12) || same && one.1 < other.1 * (1.0 - 1e-9)
        }
        (one, other) => one.is_some() && other.is_none(),
    }
}

fn rotation(unit: &Group) -> Rotation {
    (unit.size, unit.devices.len())
}

/// Returns the groups that read a tensor, each with the number of inputs that move at a time. Blocks on one device share a
/// transfer.
fn destinations<'a>(tensor: &Tensor, units: &'a [Group]) -> Vec<(&'a Group, u32)> {
    let size = units[tensor.from].size;
    let mut all: Vec<(&Group, u32)> = Vec::new();
    for reader in &tensor.to {
        let unit = &units[*reader];
        let is_same = |known: &&mut (&Group, u32)| {
            known.0.devices == unit.devices && (unit.devices.len() == 1 || known.0.size == unit.size)
        };
        let with = |together: u32| gcd(together.into(), unit.size.into()) as u32;
        match all.iter_mut().find(is_same) {
            Some(known) => known.1 = with(known.1),
            None => all.push((unit, with(size))),
        }
    }
    all
}

impl Space<'_> {
    /// Returns the nodes that are a model's inputs and outputs in every batch size.
    pub(super) fn ports(&self) -> Vec<usize> {
        let ports = crate::solvers::pipeline::fleet::ports_among(self.problem, |node| self.takes_none(node, true));
        (0..ports.len()).filter(|node| ports[*node]).collect()
    }
}
