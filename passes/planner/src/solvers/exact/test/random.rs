//! Random graphs from a seed.

use crate::random::Random;
use crate::solvers::exact::graph::Graph;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) tasks: usize,
    pub(crate) devices: usize,
    /// The share of pairs that are joined.
    pub(crate) density: f64,
    /// The longest delay.
    pub(crate) communication: usize,
    /// The share of tasks and devices that do not go together.
    pub(crate) unsupported: f64,
    /// The share of pairs of devices without a link.
    pub(crate) unlinked: f64,
    pub(crate) equal_devices: bool,
    /// Whether there are releases and deliveries.
    pub(crate) boundary: bool,
    pub(crate) memory: bool,
    pub(crate) groups: bool,
    /// Whether times are not whole.
    pub(crate) fractions: bool,
    /// The share of tasks that take no time.
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
            time_us: vec![0.0; tasks * devices],
            release_us: vec![0.0; tasks * devices],
            delivery_us: vec![0.0; tasks * devices],
            predecessors: vec![Vec::new(); tasks],
            successors: vec![Vec::new(); tasks],
            delay_us: Vec::new(),
            need: (0..tasks).map(|_| 1.0 + random.below(5) as f64).collect(),
            capacity: vec![f64::INFINITY; devices],
            groups: Vec::new(),
        };
        for task in 0..tasks {
            let idle = random.chance(shape.idle);
            let sure = random.below(devices);
            for device in 0..devices {
                let at = task * devices + device;
                let same = shape.equal_devices && device > 0;
                let time = scale * (1 + random.below(20)) as f64;
                let supported = device == sure || !random.chance(shape.unsupported);
                graph.time_us[at] = match (same, idle, supported) {
                    (true, ..) => graph.time_us[at - 1],
                    (_, true, _) => 0.0,
                    (_, _, false) if !shape.equal_devices => f64::INFINITY,
                    _ => time,
                };
                if shape.boundary && !shape.equal_devices {
                    graph.release_us[at] = scale * random.below(15) as f64;
                    graph.delivery_us[at] = scale * random.below(15) as f64;
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
                let delay = scale * random.below(shape.communication + 1) as f64;
                let factor = if shape.equal_devices { 1 } else { 2 };
                let delays =
                    (0..devices * devices).map(|pair| match (pair / devices == pair % devices, linked[pair]) {
                        (true, _) => 0.0,
                        (_, false) => f64::INFINITY,
                        _ => delay * (1 + random.below(factor)) as f64,
                    });
                graph.join(from, to, &delays.collect::<Vec<_>>());
            }
        }
        if shape.memory {
            let total: f64 = graph.need.iter().sum();
            let each = (total / devices as f64 + 3.0).floor();
            graph.capacity = (0..devices).map(|device| if device == 2 { f64::INFINITY } else { each }).collect();
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
