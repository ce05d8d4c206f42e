//! Model of the placement problem: layers in the order in which they are placed, machines, and the links between them.

use crate::model::error::{Error, Finding};
use crate::model::plan::Objective;
use crate::model::problem::{Domains, EdgeNetwork, Problem};
use crate::model::units::{Bytes, BytesPerMicro, Micros};

use super::symmetry;
use super::tree::Placed;

/// Tolerance for sums of bytes in a different order.
const ROUNDED: f64 = 1.0 + 1e-12;

/// A value shared by a layer and one placed before it; it moves unless both are on the same machine.
#[derive(Clone, Copy)]
pub(super) struct Read {
    /// Layer that is placed first.
    pub(super) with: u32,
    pub(super) bytes: Bytes,
    /// True if the later layer produces the value and the earlier one reads it, which occurs if layers are reordered.
    pub(super) backwards: bool,
    /// Index of a value that several layers read and that moves once to each machine.
    pub(super) shared: Option<u32>,
}

/// Layers and machines, numbered. A layer comes after its producers unless layers are reordered.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) machines: usize,
    /// The node of each layer.
    pub(super) nodes: Vec<usize>,
    /// By layer and machine; infinite if it may not run there.
    time: Vec<Micros>,
    pub(super) reads: Vec<Vec<Read>>,
    /// Later layers that share a value with a layer.
    pub(super) readers: Vec<Vec<u32>>,
    /// Number of values that move once to each machine.
    pub(super) shared: usize,
    /// By pair of machines: zero without a link.
    bandwidth: Vec<BytesPerMicro>,
    latency: Vec<Micros>,
    /// Maximum number of changes of machine along the order.
    pub(super) splits: usize,
    /// Maximum number of runs of layers on each machine.
    pub(super) threads: Vec<usize>,
    /// First layer of the group that shares a machine with a layer.
    pub(super) leader: Vec<u32>,
    /// Bytes that each layer holds, and capacities of machines; empty if memory is unlimited.
    pub(super) held: Vec<Bytes>,
    pub(super) capacity: Vec<Bytes>,
    /// Previous machine that is identical to this one.
    pub(super) identical_before: Vec<Option<usize>>,
    /// Work per microsecond of each machine, in a unit in which no layer has less work than `left` assumes.
    pub(super) speed: Vec<f64>,
    /// Minimum work of this layer and all later ones; has one more entry than there are layers.
    pub(super) left: Vec<f64>,
}

impl Model {
    /// Builds the model of the problem's edge network, whose form has been checked. Each edge moves its own bytes.
    pub(super) fn of_view(problem: &Problem, view: &EdgeNetwork, splits: Option<u32>) -> Result<Self, Error> {
        let machines = view.rate.len();
        let pin = |node: usize| view.pin.as_ref().and_then(|pins| pins[node]);
        let time = |node: usize, machine: usize| {
            let here = pin(node).is_none_or(|pin| pin == machine);
            if here { Micros(view.flops[node] / view.rate[machine]) } else { Micros::INFINITY }
        };
        let mut model = Self::empty(problem, machines, time)?;
        model.bandwidth = pairs(machines, |from, to| view.bandwidth[from][to].unwrap_or(BytesPerMicro::INFINITY));
        model.splits = splits.or(view.splits).map_or(usize::MAX, |splits| splits as usize);
        if let Some(threads) = &view.threads {
            model.threads = threads.iter().map(|count| *count as usize).collect();
        }
        let layer_of = model.layers_of_nodes();
        for (&(from, to), &bytes) in problem.edges.iter().flatten().zip(&view.edge_bytes) {
            model.reads[layer_of[to]].push(Read { with: layer_of[from] as u32, bytes, backwards: false, shared: None });
        }
        model.gather(problem, &layer_of)?;
        model.finish(Some(&view.rate));
        Ok(model)
    }

    /// Builds the model of the problem's own devices; a tensor moves once to each device that reads it.
    pub(super) fn of_devices(problem: &Problem) -> Result<Self, Error> {
        let machines = problem.devices.len();
        let domains = Domains::new(problem, Objective::Latency);
        if let Some(finding) = domains.contradiction() {
            return Err(Error::Infeasible(vec![finding]));
        }
        let time = |node: usize, machine: usize| {
            let time = problem.nodes[node].time.get(&1).and_then(|times| times[machine]);
            time.filter(|_| domains.allowed[node].contains(&machine)).unwrap_or(Micros::INFINITY)
        };
        let mut model = Self::empty(problem, machines, time)?;
        model.bandwidth = pairs(machines, |from, to| problem.bandwidth[from][to].unwrap_or(BytesPerMicro::INFINITY));
        model.latency = pairs(machines, |from, to| {
            problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default()
        });
        let results = problem.output_bytes();
        let held_by = |node: &usize| problem.nodes[*node].weight + problem.nodes[*node].input + results[*node];
        model.held = model.nodes.iter().map(held_by).collect();
        model.capacity =
            problem.devices.iter().map(|device| device.memory.unwrap_or(Bytes::INFINITY) * ROUNDED).collect();
        let layer_of = model.layers_of_nodes();
        for tensor in problem.all_tensors() {
            let shared = (tensor.to.len() > 1).then_some(model.shared as u32);
            model.shared += usize::from(shared.is_some());
            let read = Read { with: layer_of[tensor.from] as u32, bytes: tensor.bytes, backwards: false, shared };
            tensor.to.iter().for_each(|to| model.reads[layer_of[*to]].push(read));
        }
        model.gather(problem, &layer_of)?;
        model.finish(None);
        Ok(model)
    }

    /// Returns layers without operands, on machines without links.
    fn empty(problem: &Problem, machines: usize, time: impl Fn(usize, usize) -> Micros) -> Result<Self, Error> {
        let nodes = problem.topological_order().map_err(|finding| Error::Problem(vec![finding]))?;
        let layers = nodes.len();
        Ok(Self {
            machines,
            time: nodes.iter().flat_map(|node| (0..machines).map(|machine| time(*node, machine))).collect(),
            reads: vec![Vec::new(); layers],
            readers: vec![Vec::new(); layers],
            shared: 0,
            bandwidth: Vec::new(),
            latency: vec![Micros::ZERO; machines * machines],
            splits: usize::MAX,
            threads: vec![usize::MAX; machines],
            leader: (0..layers as u32).collect(),
            held: Vec::new(),
            capacity: Vec::new(),
            identical_before: Vec::new(),
            speed: Vec::new(),
            left: Vec::new(),
            nodes,
        })
    }

    fn layers_of_nodes(&self) -> Vec<usize> {
        let mut layer_of = vec![0; self.nodes.len()];
        self.nodes.iter().enumerate().for_each(|(layer, node)| layer_of[*node] = layer);
        layer_of
    }

    /// Restricts co-located layers to the machines that all of them may run on, and sets their leader.
    fn gather(&mut self, problem: &Problem, layer_of: &[usize]) -> Result<(), Error> {
        if problem.colocate.is_none() {
            return Ok(());
        }
        for group in Domains::new(problem, Objective::Latency).groups {
            let first = group.iter().map(|node| layer_of[*node]).min().unwrap_or(0);
            for machine in 0..self.machines {
                let everywhere = group.iter().all(|node| self.time(layer_of[*node], machine).is_finite());
                for node in group.iter().filter(|_| !everywhere) {
                    self.time[layer_of[*node] * self.machines + machine] = Micros::INFINITY;
                }
            }
            if (0..self.machines).all(|machine| self.time(first, machine).is_infinite()) {
                let names: Vec<String> = group.iter().map(|node| problem.node_label(*node)).collect();
                let message = format!("tasks that share a machine have none in common: {}", names.join("; "));
                return Err(Error::Infeasible(vec![Finding::new("colocate", message)]));
            }
            group.iter().for_each(|node| self.leader[layer_of[*node]] = first as u32);
        }
        Ok(())
    }

    /// Computes derived tables. Without rates, the speed of a machine is the reciprocal of its time for the layers that
    /// run on all machines.
    fn finish(&mut self, rate: Option<&[f64]>) {
        for layer in 0..self.layers() {
            for read in &self.reads[layer] {
                self.readers[read.with as usize].push(layer as u32);
            }
        }
        for readers in &mut self.readers {
            readers.dedup();
        }
        let anywhere = |layer: &usize| (0..self.machines).all(|machine| self.time(*layer, machine).is_finite());
        let common: Vec<usize> = (0..self.layers()).filter(anywhere).collect();
        let of_common = |machine: usize| {
            let sum: Micros = common.iter().map(|layer| self.time(*layer, machine)).sum();
            if sum > Micros::ZERO { 1.0 / sum.0 } else { 1.0 }
        };
        self.speed = rate.map_or_else(|| (0..self.machines).map(of_common).collect(), <[f64]>::to_vec);
        let mut left = vec![0.0; self.layers() + 1];
        for layer in (0..self.layers()).rev() {
            let work = |machine: usize| self.time(layer, machine).0 * self.speed[machine];
            let least = (0..self.machines).map(work).fold(f64::INFINITY, f64::min);
            left[layer] = left[layer + 1] + if least.is_finite() { least } else { 0.0 };
        }
        self.left = left;
        self.identical_before = symmetry::identical_before(self);
    }

    /// Returns the model with the bandwidth of all links multiplied by `factor`.
    pub(super) fn with_links(&self, factor: f64) -> Self {
        let faster = |bandwidth: &BytesPerMicro| {
            if *bandwidth == BytesPerMicro::ZERO { *bandwidth } else { *bandwidth * factor }
        };
        Self { bandwidth: self.bandwidth.iter().map(faster).collect(), ..self.clone() }
    }

    /// Returns the model with the longest layers first, so that short ones fill the remaining time. `None` if order
    /// matters, or values move once for several readers.
    pub(super) fn longest_first(&self) -> Option<Self> {
        if self.counts_runs(self.splits) || self.shared > 0 {
            return None;
        }
        let work: Vec<f64> = self.left.windows(2).map(|two| two[0] - two[1]).collect();
        let mut order: Vec<usize> = (0..self.layers()).collect();
        order.sort_by(|one, other| work[*other].total_cmp(&work[*one]).then(one.cmp(other)));
        let mut place = vec![0; self.layers()];
        order.iter().enumerate().for_each(|(index, layer)| place[*layer] = index);
        let mut model = self.clone();
        model.nodes = order.iter().map(|layer| self.nodes[*layer]).collect();
        model.time = order.iter().flat_map(|layer| (0..self.machines).map(|m| self.time(*layer, m))).collect();
        if !self.held.is_empty() {
            model.held = order.iter().map(|layer| self.held[*layer]).collect();
        }
        let mut first = place.clone();
        for (layer, leader) in self.leader.iter().enumerate() {
            first[*leader as usize] = first[*leader as usize].min(place[layer]);
        }
        model.leader = order.iter().map(|layer| first[self.leader[*layer] as usize] as u32).collect();
        (model.reads, model.readers) = (vec![Vec::new(); self.layers()], vec![Vec::new(); self.layers()]);
        for (layer, reads) in self.reads.iter().enumerate() {
            for read in reads {
                let (maker, reader) = (place[read.with as usize], place[layer]);
                let (before, after, backwards) = (maker.min(reader), maker.max(reader), maker > reader);
                model.reads[after].push(Read { with: before as u32, backwards, ..*read });
            }
        }
        let speed = self.speed.clone();
        model.finish(Some(&speed));
        Some(model)
    }

    /// Converts a placement of a model with the same layers in another order.
    pub(super) fn placed_as_in(&self, other: &Self, placed: &Placed) -> Placed {
        let mut machine = vec![0; self.layers()];
        other.nodes.iter().zip(&placed.on).for_each(|(node, on)| machine[*node] = *on);
        Placed { on: self.nodes.iter().map(|node| machine[*node]).collect(), period: placed.period }
    }

    pub(super) fn layers(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn time(&self, layer: usize, machine: usize) -> Micros {
        self.time[layer * self.machines + machine]
    }

    /// Returns the duration of a transfer; infinite without a link.
    pub(super) fn move_time(&self, bytes: Bytes, from: usize, to: usize) -> Micros {
        let pair = from * self.machines + to;
        if self.bandwidth[pair] == BytesPerMicro::ZERO {
            return Micros::INFINITY;
        }
        bytes / self.bandwidth[pair] + self.latency[pair]
    }

    /// Returns bandwidth and latency of a link.
    pub(super) fn link(&self, from: usize, to: usize) -> (BytesPerMicro, Micros) {
        let pair = from * self.machines + to;
        (self.bandwidth[pair], self.latency[pair])
    }

    /// Returns the ordered pairs of different machines.
    pub(super) fn links(&self) -> impl Iterator<Item = (usize, usize)> {
        let machines = self.machines;
        (0..machines * machines).map(move |pair| (pair / machines, pair % machines)).filter(|(from, to)| from != to)
    }

    /// Returns true if the machines allowed for a layer depend on the previous one: split points or threads are
    /// limited.
    pub(super) fn counts_runs(&self, splits: usize) -> bool {
        splits.saturating_add(1) < self.layers() || self.threads.iter().any(|count| *count < self.layers())
    }
}

fn pairs<T>(machines: usize, of: impl Fn(usize, usize) -> T) -> Vec<T> {
    (0..machines * machines).map(|pair| of(pair / machines, pair % machines)).collect()
}
