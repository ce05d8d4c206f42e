//! Symmetry breaking for equal devices and equal hosts: of schedules that differ only by a permutation, one is enough
//! (DiviML VI).
//!
//! Interchangeable devices form a class, and so do hosts that can be swapped device by device. Each class is ordered:
//! by first use, or by a measure of load. Hosts are ordered first; permuting devices within a host does not change the
//! host's measure, so both orders are compatible. That requires classes of devices to lie within hosts; otherwise hosts
//! are not ordered.

use crate::mip::{Column, Program};
use crate::model::instance::Instance;
use crate::model::options::Symmetry;
use crate::model::plan::Batch;
use crate::model::units::Micros;

pub(super) struct Classes {
    criterion: Symmetry,
    /// Classes of two or more interchangeable devices, ascending.
    devices: Vec<Vec<usize>>,
    /// Classes of two or more hosts, each the list of its devices, that can be swapped device by device.
    nodes: Vec<Vec<Vec<usize>>>,
    /// Groups of tasks by their first task in topological order.
    order: Vec<usize>,
}

impl Classes {
    pub(super) fn new(instance: &Instance, criterion: Symmetry) -> Self {
        let mut devices: Vec<Vec<usize>> = Vec::new();
        for device in 0..instance.devices() {
            // Interchangeability is transitive, so one member represents its class.
            match devices.iter_mut().find(|class| interchangeable(instance, &[class[0]], &[device])) {
                Some(class) => class.push(device),
                None => devices.push(vec![device]),
            }
        }
        devices.retain(|class| class.len() > 1);
        let within = |class: &Vec<usize>| {
            let holds = |node: &&Vec<usize>| node.contains(&class[0]);
            instance.machines().iter().find(holds).is_some_and(|node| class.iter().all(|device| node.contains(device)))
        };
        let mut nodes: Vec<Vec<Vec<usize>>> = Vec::new();
        for node in instance.machines().iter().filter(|_| devices.iter().all(within)) {
            match nodes.iter_mut().find(|class| interchangeable(instance, &class[0], node)) {
                Some(class) => class.push(node.clone()),
                None => nodes.push(vec![node.clone()]),
            }
        }
        nodes.retain(|class| class.len() > 1);
        if criterion == Symmetry::Off {
            (devices, nodes) = (Vec::new(), Vec::new());
        }
        let mut order: Vec<usize> = instance.order().iter().map(|task| instance.group_of(*task)).collect();
        let mut seen = vec![false; instance.groups().len()];
        order.retain(|group| !std::mem::replace(&mut seen[*group], true));
        Self { criterion, devices, nodes, order }
    }

    /// Returns the group of the first task.
    pub(super) fn first_group(&self) -> Option<usize> {
        self.order.first().copied()
    }

    /// Returns pairs of devices, and of hosts, of which the first must not rank behind the second.
    fn pairs(&self) -> impl Iterator<Item = (Vec<usize>, Vec<usize>)> {
        let devices = self.devices.iter().flat_map(|class| class.windows(2));
        let nodes = self.nodes.iter().flat_map(|class| class.windows(2));
        let devices = devices.map(|pair| (vec![pair[0]], vec![pair[1]]));
        devices.chain(nodes.map(|pair| (pair[0].clone(), pair[1].clone())))
    }

    /// Adds symmetry-breaking rows. `used` returns the binaries of which one is set if a group uses a device; `has`
    /// returns the measure of a device.
    pub(super) fn break_ties(
        &self,
        program: &mut Program,
        used: impl Fn(usize, usize) -> Vec<Column>,
        has: impl Fn(Symmetry, usize) -> Vec<(Column, f64)>,
    ) {
        for (first, second) in self.pairs() {
            if self.criterion == Symmetry::FirstUse {
                self.use_in_order(program, &used, &first, &second);
            } else {
                let more = first.iter().flat_map(|device| has(self.criterion, *device));
                let less = second.iter().flat_map(|device| has(self.criterion, *device));
                let less: Vec<(Column, f64)> = less.map(|(column, amount)| (column, -amount)).collect();
                program.at_least(0.0, more.chain(less));
            }
        }
    }

    /// A group uses the second device only if this group or an earlier one uses the first.
    fn use_in_order(
        &self,
        program: &mut Program,
        used: &impl Fn(usize, usize) -> Vec<Column>,
        first: &[usize],
        second: &[usize],
    ) {
        for (place, group) in self.order.iter().enumerate() {
            let earlier: Vec<(Column, f64)> = self.order[..=place]
                .iter()
                .flat_map(|group| first.iter().flat_map(|device| used(*group, *device)))
                .map(|column| (column, 1.0))
                .collect();
            // A device runs one batch of a group, a host possibly several.
            for device in second {
                let later = used(*group, *device).into_iter().map(|column| (column, -1.0));
                program.at_least(0.0, later.chain(earlier.iter().copied()));
            }
        }
    }

    /// Permutes equal hosts and devices in launches so that they are in order.
    pub(super) fn rename(&self, instance: &Instance, launches: &mut [Batch]) {
        for class in &self.nodes {
            let key = |node: &Vec<usize>| self.rank(instance, launches, node);
            let mut members = class.clone();
            members.sort_by(|a, b| key(a).total_cmp(&key(b)));
            let pairs = members.iter().zip(class).flat_map(|(old, new)| old.iter().copied().zip(new.iter().copied()));
            swap(instance, launches, pairs.collect());
        }
        for class in &self.devices {
            let key = |device: &usize| self.rank(instance, launches, &[*device]);
            let mut members = class.clone();
            members.sort_by(|a, b| key(a).total_cmp(&key(b)));
            swap(instance, launches, members.into_iter().zip(class.iter().copied()).collect());
        }
    }

    /// Returns the sort key of some devices, ascending.
    fn rank(&self, instance: &Instance, launches: &[Batch], devices: &[usize]) -> f64 {
        let here = launches.iter().filter(|launch| devices.contains(&launch.device));
        let first = |launch: &Batch| {
            let group = instance.group_of(launch.node);
            self.order.iter().position(|other| *other == group).map_or(f64::INFINITY, |place| place as f64)
        };
        let time = |launch: &Batch| {
            instance.time_at(launch.node, launch.device, launch.inputs.len() as u32).unwrap_or_default()
        };
        match self.criterion {
            Symmetry::Off => 0.0,
            Symmetry::FirstUse => here.map(first).fold(f64::INFINITY, f64::min),
            Symmetry::Batches => -(here.count() as f64),
            Symmetry::Tasks => -here.map(|launch| launch.inputs.len() as f64).sum::<f64>(),
            Symmetry::Time => -here.map(time).sum::<Micros>().0,
        }
    }
}

/// Renames devices by pairs of old and new.
fn swap(instance: &Instance, launches: &mut [Batch], names: Vec<(usize, usize)>) {
    let mut name: Vec<usize> = (0..instance.devices()).collect();
    names.into_iter().for_each(|(old, new)| name[old] = new);
    launches.iter_mut().for_each(|launch| launch.device = name[launch.device]);
}

/// Returns true if swapping some devices with as many others, pairwise, changes nothing.
fn interchangeable(instance: &Instance, some: &[usize], others: &[usize]) -> bool {
    let devices = instance.devices();
    let mut counterpart: Vec<usize> = (0..devices).collect();
    for (a, b) in some.iter().zip(others) {
        (counterpart[*a], counterpart[*b]) = (*b, *a);
    }
    let same_device = |(a, b): (&usize, &usize)| {
        let sizes = instance.batch_sizes(*a);
        let same = |task: usize, size: u32| instance.time_at(task, *a, size) == instance.time_at(task, *b, size);
        instance.capacity_bytes(*a) == instance.capacity_bytes(*b)
            && sizes == instance.batch_sizes(*b)
            && (0..instance.tasks()).all(|task| sizes.iter().all(|size| same(task, *size)))
    };
    let same_links = || {
        (0..instance.tensors().len()).all(|tensor| {
            (0..devices * devices).all(|pair| {
                let (from, to) = (pair / devices, pair % devices);
                // A transfer time is affine in bytes: two points determine bandwidth and latency.
                [0, 1].into_iter().all(|count| {
                    instance.transfer_of(tensor, from, to, count)
                        == instance.transfer_of(tensor, counterpart[from], counterpart[to], count)
                })
            })
        })
    };
    some.len() == others.len() && some.iter().zip(others).all(same_device) && same_links()
}
