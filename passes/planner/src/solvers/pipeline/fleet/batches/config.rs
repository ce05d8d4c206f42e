//! Configurations: batch sizes of the devices, and devices that take turns.

use std::collections::BTreeSet;

use super::turns::{gcd, largest_share};
use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::Objective;
use crate::model::problem::{Contention, Device, Domains, Node, Problem};
use crate::model::units::{BytesPerMicro, Micros};
use crate::solvers::pipeline::fleet::{Fleet, Scaling, ports_among};

/// Maximum number of batch sizes of a device that are tried.
const MOST_SIZES: usize = 24;

/// Devices that take turns, and the batch size of each launch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) devices: Vec<usize>,
    pub(super) size: u32,
}

/// Groups of distinct devices. Devices in no group are not used.
pub(super) type Config = Vec<Group>;

/// Batch sizes and replicas that a request allows.
pub(super) struct Space<'a> {
    pub(super) problem: &'a Problem,
    pub(super) options: &'a Options,
    /// Maximum batch size.
    pub(super) most: u32,
    /// Usable batch sizes of each device, ascending.
    pub(super) sizes: Vec<Vec<u32>>,
    /// Maximum number of devices of a stage.
    pub(super) replicas: usize,
    pub(super) domains: Domains,
}

impl<'a> Space<'a> {
    pub(super) fn new(problem: &'a Problem, options: &'a Options) -> Self {
        let most = problem.largest_batch(options.max_batch);
        let sizes_of = |device: &Device| -> Vec<u32> {
            let runs = |size: &u32| {
                problem.nodes.iter().any(|node| node.time.get(size).is_some_and(|times| times[device.id].is_some()))
            };
            let sizes: BTreeSet<u32> = device.batch_sizes.iter().copied().filter(|size| *size <= most).collect();
            sizes.into_iter().filter(runs).collect()
        };
        Self {
            problem,
            options,
            most,
            sizes: problem.devices.iter().map(sizes_of).collect(),
            replicas: options.replicas().min(problem.devices.len()),
            domains: Domains::up_to(problem, Objective::Pipeline, most),
        }
    }

    /// Returns configurations without replicas in which each device has its largest size up to a limit, for all limits,
    /// or else its least one; and the one of the fastest size of each device.
    pub(super) fn uniform(&self) -> Vec<Config> {
        let all: BTreeSet<u32> = self.sizes.iter().flatten().copied().collect();
        let mut configs: Vec<Config> = Vec::new();
        for limit in thinned(all.into_iter().collect()) {
            let of = |sizes: &Vec<u32>| sizes.iter().copied().rfind(|size| *size <= limit).or(sizes.first().copied());
            configs.push(self.alone(|device| of(&self.sizes[device])));
        }
        let time = |device: usize, size: u32| -> Micros {
            let times = (0..self.problem.nodes.len()).filter_map(|node| self.time(node, device, size));
            times.sum::<Micros>() / f64::from(size)
        };
        configs.push(self.alone(|device| {
            let sizes = self.tried(device).into_iter();
            sizes.min_by(|a, b| time(device, *a).total_cmp(&time(device, *b)))
        }));
        configs.reverse();
        let mut seen = BTreeSet::new();
        configs.retain(|config| seen.insert(config.clone()));
        configs
    }

    /// Returns the batch sizes of a device that a search tries.
    pub(super) fn tried(&self, device: usize) -> Vec<u32> {
        thinned(self.sizes[device].clone())
    }

    /// Returns the configuration of single devices with these sizes.
    pub(super) fn alone(&self, size: impl Fn(usize) -> Option<u32>) -> Config {
        let group = |device: usize| size(device).map(|size| Group { devices: vec![device], size });
        (0..self.sizes.len()).filter_map(group).collect()
    }

    /// Returns the time of a launch of a node; `None` if the device does not run it.
    pub(super) fn time(&self, node: usize, device: usize, size: u32) -> Option<Micros> {
        let is_allowed = self.domains.allowed[node].contains(&device) && self.sizes[device].contains(&size);
        self.problem.nodes[node].time.get(&size).filter(|_| is_allowed).and_then(|times| times[device])
    }

    /// Returns true if devices can take turns beside other devices: memory, batch sizes, and links to the others are equal,
    /// and also their buses, so that one bus has all transfers.
    pub(super) fn are_alike(&self, one: usize, other: usize, others: impl Iterator<Item = usize>) -> bool {
        let problem = self.problem;
        let link = |from: usize, to: usize| {
            let latency = problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default();
            let bus = problem.bus.as_ref().filter(|_| problem.contention != Contention::Off);
            (problem.bandwidth[from][to], latency, bus.and_then(|bus| bus[from][to].as_deref()))
        };
        let mut thirds = others.filter(|third| *third != one && *third != other);
        problem.devices[one].memory == problem.devices[other].memory
            && self.sizes_of(one) == self.sizes_of(other)
            && thirds.all(|third| link(one, third) == link(other, third) && link(third, one) == link(third, other))
    }

    fn sizes_of(&self, device: usize) -> BTreeSet<u32> {
        self.problem.devices[device].batch_sizes.iter().copied().collect()
    }

    /// Returns true if the devices of each group can take turns.
    pub(super) fn is_valid(&self, config: &Config) -> bool {
        config.iter().all(|group| {
            let others = || {
                let all = config.iter().flat_map(|group| &group.devices).copied();
                all.filter(|device| !group.devices.contains(device))
            };
            group.devices.windows(2).all(|pair| self.are_alike(pair[0], pair[1], others()))
        })
    }

    /// Returns the model of pipelines under a configuration.
    pub(super) fn fleet(&self, config: &Config) -> Result<Fleet, Error> {
        let time = |node: usize, group: &Group| -> Option<Micros> {
            let mut times = group.devices.iter().map(|device| self.time(node, *device, group.size));
            let first = times.next()??;
            let launches = f64::from(group.size) * group.devices.len() as f64;
            times.all(|time| time == Some(first)).then(|| first / launches)
        };
        let together = |from: &Group, to: &Group| gcd(from.size.into(), to.size.into()) as f64;
        let mut problem = self.skeleton(config, time, together);
        let is_port = ports_among(self.problem, |node| self.takes_none(node, true));
        for (node, own) in problem.nodes.iter_mut().zip(&self.problem.nodes) {
            let Some(pin) = own.pin else { continue };
            // A pinned task runs on one device: a group that contains it has no time for it. A pinned port counts as if it
            // were on the whole group, until ports are placed.
            let holds = |group: &Group| group.devices == [pin] || is_port[own.id] && group.devices.contains(&pin);
            node.pin = config.iter().position(holds);
            let times = node.time.values_mut().next();
            times.into_iter().for_each(|times| {
                let keeps = |group: usize| node.pin == Some(group);
                let time = |(group, time): (usize, Option<Micros>)| {
                    if !keeps(group) {
                        return None;
                    }
                    if is_port[own.id] && self.time(own.id, pin, config[group].size).is_some() {
                        return Some(Micros::ZERO);
                    }
                    time
                };
                *times = std::mem::take(times).into_iter().enumerate().map(time).collect();
            });
        }
        let rotation = |group: &Group| (group.size, group.devices.len());
        let pairs = config.iter().flat_map(|from| config.iter().map(move |to| (from, to)));
        let scaling = Scaling {
            size: config.iter().map(|group| f64::from(group.size)).collect(),
            part: config.iter().map(|group| 1.0 / group.devices.len() as f64).collect(),
            link: pairs.map(|(from, to)| largest_share(rotation(from), rotation(to))).collect(),
            replicas: 1.0,
        };
        Fleet::scaled(&problem, self.options, scaling, &is_port)
    }

    /// Returns true if a node takes no time in each allowed batch size, or in some.
    pub(super) fn takes_none(&self, node: usize, in_each: bool) -> bool {
        let times = self.problem.nodes[node].time.range(..=self.most);
        let allowed = times.filter(|(_, times)| times.iter().any(Option::is_some));
        let mut none = allowed.map(|(_, times)| times.iter().flatten().all(|time| *time == Micros::ZERO)).peekable();
        if in_each { none.peek().is_some() && none.all(|none| none) } else { none.any(|none| none) }
    }

    /// Returns the problem of one input on groups of devices, without pins.
    pub(super) fn skeleton(
        &self,
        groups: &[Group],
        time: impl Fn(usize, &Group) -> Option<Micros>,
        together: impl Fn(&Group, &Group) -> f64,
    ) -> Problem {
        let own = self.problem;
        let device = |(id, group): (usize, &Group)| {
            let first = &own.devices[group.devices[0]];
            Device { id, name: first.name.clone(), memory: first.memory, batch_sizes: vec![1] }
        };
        let first = |group: &Group| group.devices[0];
        let bandwidth = |from: &Group, to: &Group| -> Option<BytesPerMicro> { own.bandwidth[first(from)][first(to)] };
        let mut problem =
            Problem::new(own.name.clone(), groups.iter().enumerate().map(device).collect(), matrix(groups, bandwidth));
        problem.link_latency = own.link_latency.as_ref().map(|latency| {
            matrix(groups, |from, to| latency[first(from)][first(to)].map(|latency| latency / together(from, to)))
        });
        problem.bus = own.bus.as_ref().map(|bus| matrix(groups, |from, to| bus[first(from)][first(to)].clone()));
        problem.contention = own.contention;
        problem.memory_model = own.memory_model;
        let node = |node: &Node| Node {
            id: node.id,
            name: node.name.clone(),
            time: [(1, groups.iter().map(|group| time(node.id, group)).collect())].into(),
            weight: node.weight,
            input: node.input,
            output: node.output,
            scratch: node.scratch,
            pin: None,
            module: None,
        };
        problem.nodes = own.nodes.iter().map(node).collect();
        (problem.edges, problem.tensors) = (own.edges.clone(), own.tensors.clone());
        problem.colocate.clone_from(&own.colocate);
        problem
    }
}

fn matrix<T>(groups: &[Group], entry: impl Fn(&Group, &Group) -> Option<T>) -> Vec<Vec<Option<T>>> {
    let row = |from: &Group| {
        groups.iter().map(|to| if from.devices == to.devices { None } else { entry(from, to) }).collect()
    };
    groups.iter().map(row).collect()
}

/// Keeps at most [`MOST_SIZES`] sizes, spread over all of them.
fn thinned(sizes: Vec<u32>) -> Vec<u32> {
    if sizes.len() <= MOST_SIZES {
        return sizes;
    }
    let last = sizes.len() - 1;
    (0..MOST_SIZES).map(|index| sizes[index * last / (MOST_SIZES - 1)]).collect()
}
