//! A segment between two cuts as a subproblem, for each pair of devices of its ends.

use crate::model::instance::Instance;
use crate::model::units::Micros;
use crate::solvers::cuts::Segment;
use crate::solvers::exact::graph::{Footprint, Graph};
use crate::solvers::exact::symmetry::Classes;

#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// The instance's task for each of the graph's.
    pub(crate) tasks: Vec<usize>,
    /// The cut that it begins with has zero duration: it has ended when the module begins.
    pub(crate) graph: Graph,
    pub(crate) entered: bool,
    pub(crate) left: bool,
    classes: Classes,
}

/// Devices of the cuts at both ends; `None` without a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ends {
    pub(crate) entry: Option<usize>,
    pub(crate) exit: Option<usize>,
}

impl Module {
    pub(crate) fn new(instance: &Instance, segment: &Segment) -> Self {
        let tasks = instance.order()[segment.places.clone()].to_vec();
        let mut graph = Graph::new(instance, &tasks, Footprint::Least);
        if segment.entered {
            for time in &mut graph.time_us[..graph.devices] {
                *time = if time.is_finite() { Micros::ZERO } else { Micros::INFINITY };
            }
        }
        let order = canonical_order(&graph, segment);
        let tasks: Vec<usize> = order.iter().map(|task| tasks[*task]).collect();
        let graph = graph.reordered(&order);
        let classes = Classes::new(&graph);
        Self { tasks, graph, entered: segment.entered, left: segment.left, classes }
    }

    /// Returns every pair of devices that the ends may be on.
    pub(crate) fn ends(&self) -> Vec<Ends> {
        let devices = self.graph.devices;
        let on = |task: usize| -> Vec<Option<usize>> {
            let row = &self.graph.time_us[task * devices..(task + 1) * devices];
            (0..devices).filter(|device| row[*device].is_finite()).map(Some).collect()
        };
        let entries = if self.entered { on(0) } else { vec![None] };
        let exits = if self.left { on(self.graph.tasks - 1) } else { vec![None] };
        let pair = |entry: Option<usize>| exits.iter().map(move |exit| Ends { entry, exit: *exit });
        entries.into_iter().flat_map(pair).collect()
    }

    /// Returns the graph with its ends pinned.
    pub(crate) fn pinned(&self, ends: Ends) -> Graph {
        let mut graph = self.graph.clone();
        let mut pin = |task: usize, to: Option<usize>| {
            let Some(to) = to else { return };
            for device in (0..graph.devices).filter(|device| *device != to) {
                graph.time_us[task * graph.devices + device] = Micros::INFINITY;
            }
        };
        pin(0, ends.entry);
        pin(self.graph.tasks - 1, ends.exit);
        graph
    }

    /// Returns equivalent ends up to renaming of equal devices, and the renaming `name[device]`.
    pub(crate) fn representative(&self, ends: Ends) -> (Ends, Vec<usize>) {
        let mut name: Vec<usize> = (0..self.graph.devices).collect();
        let mut rename = |device: usize, taken: Option<usize>| {
            let to = self.classes.first_but(device, taken);
            // Swap the names, so that the renaming stays a permutation.
            if let (Some(a), Some(b)) = (name.iter().position(|n| *n == to), name.get(device).copied()) {
                name[a] = b;
                name[device] = to;
            }
            to
        };
        let entry = ends.entry.map(|device| rename(device, None));
        let exit = match (ends.exit, ends.entry) {
            (Some(exit), Some(same)) if exit == same => entry,
            (exit, _) => exit.map(|device| rename(device, entry)),
        };
        (Ends { entry, exit }, name)
    }

    /// Returns the time of a module without tasks between its cuts.
    pub(crate) fn direct(&self, ends: Ends) -> Option<Micros> {
        let (Some(entry), Some(exit), [_, _]) = (ends.entry, ends.exit, self.tasks.as_slice()) else { return None };
        let devices = self.graph.devices;
        let delay: Micros =
            self.graph.predecessors[1].iter().map(|arc| self.graph.delays(arc)[entry * devices + exit]).sum();
        Some(delay + self.graph.time_us[devices + exit])
    }

    /// Returns a key of the subproblem, so that equal modules are solved once.
    pub(crate) fn key(&self) -> Vec<u64> {
        let mut key = vec![u64::from(self.entered) * 2 + u64::from(self.left)];
        key.extend(self.graph.key());
        key
    }
}

/// Returns a topological order that does not depend on the numbering of tasks, as far as their neighborhoods
/// distinguish them (color refinement).
fn canonical_order(graph: &Graph, segment: &Segment) -> Vec<usize> {
    let devices = graph.devices;
    let mix = |state: u64, value: u64| (state.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    let row = |task: usize| graph.time_us[task * devices..(task + 1) * devices].iter().map(|time| time.0.to_bits());
    let mut label: Vec<u64> = (0..graph.tasks).map(|task| row(task).fold(graph.need[task].0.to_bits(), mix)).collect();
    for _ in 0..3 {
        let refined = |task: usize| {
            let around = |arcs: &Vec<crate::solvers::exact::graph::Arc>, salt: u64| {
                let one = |arc: &crate::solvers::exact::graph::Arc| {
                    graph.delays(arc).iter().fold(label[arc.task] ^ salt, |state, delay| mix(state, delay.0.to_bits()))
                };
                // A sum does not depend on the order of neighbors.
                arcs.iter().map(one).fold(0, u64::wrapping_add)
            };
            let before = around(&graph.predecessors[task], 1);
            mix(mix(label[task], before), around(&graph.successors[task], 2))
        };
        label = (0..graph.tasks).map(refined).collect();
    }
    let mut waiting: Vec<usize> = graph.predecessors.iter().map(Vec::len).collect();
    let mut ready: std::collections::BTreeSet<(u64, usize)> =
        (0..graph.tasks).filter(|task| waiting[*task] == 0).map(|task| (label[task], task)).collect();
    let mut order = Vec::with_capacity(graph.tasks);
    while let Some((_, task)) = ready.pop_first() {
        order.push(task);
        for arc in &graph.successors[task] {
            waiting[arc.task] -= 1;
            if waiting[arc.task] == 0 {
                ready.insert((label[arc.task], arc.task));
            }
        }
    }
    debug_assert!(!segment.entered || order.first() == Some(&0));
    order
}
