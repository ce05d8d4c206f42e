//! Equal devices: of schedules that differ only in their names, one is enough.

use crate::instance::Instance;
use crate::mip::{Column, Program};
use crate::plan::Batch;

pub(super) struct Classes {
    /// Two or more devices that are equal in every respect, ascending.
    classes: Vec<Vec<usize>>,
    /// Groups of tasks by their first task in the graph's order.
    order: Vec<usize>,
}

impl Classes {
    pub(super) fn new(instance: &Instance) -> Self {
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for device in 0..instance.devices() {
            // Swaps that change nothing can be chained, so one member stands for its class.
            match classes.iter_mut().find(|class| interchangeable(instance, class[0], device)) {
                Some(class) => class.push(device),
                None => classes.push(vec![device]),
            }
        }
        classes.retain(|class| class.len() > 1);
        let mut order: Vec<usize> = instance.order().iter().map(|task| instance.group_of(*task)).collect();
        let mut seen = vec![false; instance.groups().len()];
        order.retain(|group| !std::mem::replace(&mut seen[*group], true));
        Self { classes, order }
    }

    /// The group with the first task of all.
    pub(super) fn first_group(&self) -> Option<usize> {
        self.order.first().copied()
    }

    /// Equal devices come into use in the order of their numbers: a group uses one only if the one before it is used by
    /// this group or one before it.
    pub(super) fn break_ties(&self, program: &mut Program, used: impl Fn(usize, usize) -> Vec<Column>) {
        for pair in self.classes.iter().flat_map(|class| class.windows(2)) {
            for (place, group) in self.order.iter().enumerate() {
                let later = used(*group, pair[1]).into_iter().map(|column| (column, -1.0));
                let earlier = self.order[..=place].iter().flat_map(|group| used(*group, pair[0]));
                program.at_least(0.0, later.chain(earlier.map(|column| (column, 1.0))));
            }
        }
    }

    /// Renames equal devices in launches so that they come into use as they must.
    pub(super) fn rename(&self, instance: &Instance, launches: &mut [Batch]) {
        let mut place_of = vec![0; instance.groups().len()];
        self.order.iter().enumerate().for_each(|(place, group)| place_of[*group] = place);
        let mut name: Vec<usize> = (0..instance.devices()).collect();
        for class in &self.classes {
            let first_use = |device: &usize| {
                let here = launches.iter().filter(|launch| launch.device == *device);
                here.map(|launch| place_of[instance.group_of(launch.node)]).min().unwrap_or(usize::MAX)
            };
            let mut members = class.clone();
            members.sort_by_key(first_use);
            for (new, old) in class.iter().zip(members) {
                name[old] = *new;
            }
        }
        launches.iter_mut().for_each(|launch| launch.device = name[launch.device]);
    }
}

fn interchangeable(instance: &Instance, a: usize, b: usize) -> bool {
    let devices = instance.devices();
    let swap = |device: usize| match device {
        device if device == a => b,
        device if device == b => a,
        device => device,
    };
    let same_times = || {
        let sizes = instance.batch_sizes(a);
        sizes == instance.batch_sizes(b)
            && (0..instance.tasks()).all(|task| {
                sizes.iter().all(|size| instance.time_at(task, a, *size) == instance.time_at(task, b, *size))
            })
    };
    let same_links = || {
        (0..instance.tensors().len()).all(|tensor| {
            (0..devices * devices).all(|pair| {
                let (from, to) = (pair / devices, pair % devices);
                // A line through two points: bandwidth and latency.
                [0, 1].into_iter().all(|count| {
                    instance.transfer_of(tensor, from, to, count)
                        == instance.transfer_of(tensor, swap(from), swap(to), count)
                })
            })
        })
    };
    instance.capacity_bytes(a) == instance.capacity_bytes(b) && same_times() && same_links()
}
