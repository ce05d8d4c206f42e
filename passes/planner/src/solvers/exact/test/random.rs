//! Random graphs from a seed.

use crate::model::units::{Bytes, Micros};
use crate::random::Random;
use crate::solvers::exact::graph::Graph;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) tasks: usize,
    pub(crate) devices: usize,
    /// Probability of an edge between two tasks.
    pub(crate) density: f64,
    /// Maximum delay.
    pub(crate) communication: usize,
    /// Probability that a device does not support a task.
    pub(crate) unsupported: f64,
    /// Probability that a pair of devices has no link.
    pub(crate) unlinked: f64,
    pub(crate) equal_devices: bool,
    /// True if there are release and delivery times.
    pub(crate) boundary: bool,
    pub(crate) memory: bool,
    pub(crate) groups: bool,
    /// True if times are not integers.
    pub(crate) fractions: bool,
    /// Probability that a task has zero duration.
    pub(crate) idle: f64,
}

impl Graph {
    pub(crate) fn random(shape: &Shape, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (tasks, devices) = (shape.tasks, shape.devices);
        let scale = if shape.fractions { 0.37 } else { 1.0 };
        let mut graph = Self {
            tasks,
            devices,
            time_us: vec![Micros::ZERO; tasks * devices],
            release_us: vec![Micros::ZERO; tasks * devices],
            delivery_us: vec![Micros::ZERO; tasks * devices],
            predecessors: vec![Vec::new(); tasks],
            successors: vec![Vec::new(); tasks],
            delay_us: Vec::new(),
            need: (0..tasks).map(|_| Bytes(1.0 + random.below(5) as f64)).collect(),
            capacity: vec![Bytes::INFINITY; devices],
            groups: Vec::new(),
        };
        for task in 0..tasks {
            let idle = random.chance(shape.idle);
            let sure = random.below(devices);
            for device in 0..devices {
                let at = task * devices + device;
                let same = shape.equal_devices && device > 0;
                let time = scale * Micros((1 + random.below(20)) as f64);
                let supported = device == sure || !random.chance(shape.unsupported);
                graph.time_us[at] = match (same, idle, supported) {
                    (true, ..) => graph.time_us[at - 1],
                    (_, true, _) => Micros::ZERO,
                    (_, _, false) if !shape.equal_devices => Micros::INFINITY,
                    _ => time,
                };
                if shape.boundary && !shape.equal_devices {
                    graph.release_us[at] = scale * Micros(random.below(15) as f64);
                    graph.delivery_us[at] = scale * Micros(random.below(15) as f64);
                }
            }
        }
        let mut linked = vec![true; devices * devices];
        if !shape.equal_devices {
            linked.iter_mut().for_each(|linked| *linked = !random.chance(shape.unlinked));
        }
        for from in 0..tasks {
            for to in from + 1..tasks {
                if !random.chance(shape.density) {
                    continue;
                }
                let delay = scale * Micros(random.below(shape.communication + 1) as f64);
                let factor = if shape.equal_devices { 1 } else { 2 };
                let delays =
                    (0..devices * devices).map(|pair| match (pair / devices == pair % devices, linked[pair]) {
                        (true, _) => Micros::ZERO,
                        (_, false) => Micros::INFINITY,
                        _ => delay * (1 + random.below(factor)) as f64,
                    });
                graph.join(from, to, &delays.collect::<Vec<_>>());
            }
        }
        if shape.memory {
            let total: Bytes = graph.need.iter().sum();
            let each = Bytes((total.0 / devices as f64 + 3.0).floor());
            graph.capacity = (0..devices).map(|device| if device == 2 { Bytes::INFINITY } else { each }).collect();
        }
        if shape.groups && tasks >= 3 {
            graph.groups.push(vec![0, tasks - 1]);
            if tasks >= 5 {
                graph.groups.push(vec![1, 2, 3]);
            }
        }
        graph
    }
}
