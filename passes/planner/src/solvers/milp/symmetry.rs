//! Equal devices and equal nodes: of schedules that differ only in their names, one is enough (DiviML VI).
//!
//! Devices that can be swapped form a class, and so do nodes of a cluster that can be swapped device by device. One order
//! is enough for each class: by first use, or by how much of something each has. Nodes are put into order first; what
//! follows within a node changes nothing about what it has as a whole, so both orders hold at once. That takes classes of
//! devices that lie within nodes: where they do not, nodes are left alone.

use crate::mip::{Column, Program};
use crate::model::instance::Instance;
use crate::model::options::Symmetry;
use crate::model::plan::Batch;

pub(super) struct Classes {
    criterion: Symmetry,
    /// Two or more devices that are equal in every respect, ascending.
    devices: Vec<Vec<usize>>,
    /// Two or more nodes, each the list of its devices, that can be swapped device by device.
    nodes: Vec<Vec<Vec<usize>>>,
    /// Groups of tasks by their first task in the graph's order.
    order: Vec<usize>,
}

impl Classes {
    pub(super) fn new(instance: &Instance, criterion: Symmetry) -> Self {
        let mut devices: Vec<Vec<usize>> = Vec::new();
        for device in 0..instance.devices() {
            // Swaps that change nothing can be chained, so one member stands for its class.
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

    /// The group with the first task of all.
    pub(super) fn first_group(&self) -> Option<usize> {
        self.order.first().copied()
    }

    /// Pairs of which the first must not be behind the second: single devices, and nodes.
    fn pairs(&self) -> impl Iterator<Item = (Vec<usize>, Vec<usize>)> {
        let devices = self.devices.iter().flat_map(|class| class.windows(2));
        let nodes = self.nodes.iter().flat_map(|class| class.windows(2));
        let devices = devices.map(|pair| (vec![pair[0]], vec![pair[1]]));
        devices.chain(nodes.map(|pair| (pair[0].clone(), pair[1].clone())))
    }

    /// Keeps one of the schedules that are the same but for names. `used` are the columns of which one is set where a
    /// group uses a device; `has` is what a device has of what counts.
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

    /// A group uses the second only if the first is used by this group or one before it.
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
            // A device takes one batch of a group, a node maybe several.
            for device in second {
                let later = used(*group, *device).into_iter().map(|column| (column, -1.0));
                program.at_least(0.0, later.chain(earlier.iter().copied()));
            }
        }
    }

    /// Renames equal nodes and devices in launches so that they are in order.
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

    /// What some devices are put into order by, least first.
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
            Symmetry::Time => -here.map(time).sum::<f64>(),
        }
    }
}

/// Gives devices other names, old and new.
fn swap(instance: &Instance, launches: &mut [Batch], names: Vec<(usize, usize)>) {
    let mut name: Vec<usize> = (0..instance.devices()).collect();
    names.into_iter().for_each(|(old, new)| name[old] = new);
    launches.iter_mut().for_each(|launch| launch.device = name[launch.device]);
}

/// Whether some devices and as many others can be swapped, each with its counterpart, and nothing changes.
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
                // A line through two points: bandwidth and latency.
                [0, 1].into_iter().all(|count| {
                    instance.transfer_of(tensor, from, to, count)
                        == instance.transfer_of(tensor, counterpart[from], counterpart[to], count)
                })
            })
        })
    };
    some.len() == others.len() && some.iter().zip(others).all(same_device) && same_links()
}
