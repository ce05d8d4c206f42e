//! Tables of a queue whose inputs pass in micro-batches.

use crate::model::instance::Instance;
use crate::model::units::{Bytes, Micros};
use crate::solvers::list;

/// Sizes above this one are not tried: tables have an entry for each count of inputs up to the largest size.
const LARGEST: u32 = 256;

/// Times of micro-batches of any size, each as launches in sequence.
pub(super) struct Model<'a> {
    pub(super) instance: &'a Instance,
    pub(super) inputs: u32,
    /// Sizes of micro-batches that are tried, ascending: batch sizes of devices.
    pub(super) sizes: Vec<u32>,
    largest: u32,
    /// By task, device and count of inputs: least time of launches that sum to the count; infinite if none do.
    times: Vec<Micros>,
    /// By task, device and count: size of the last launch of those.
    last: Vec<u32>,
    /// By task: least time from its start to the end of one micro-batch.
    pub(super) tails: Vec<Micros>,
    /// Longest of them.
    pub(super) length: Micros,
    /// By task: position in the topological order.
    pub(super) position: Vec<u32>,
    /// True if memory may be exceeded.
    pub(super) is_tight: bool,
    /// By co-location group: true if its tasks can only take the whole queue at once, as inputs and outputs of a model do.
    pub(super) is_undivided: Vec<bool>,
    /// True if all tasks have micro-batches of one size, each in one launch where there is a batch of that size.
    pub(super) keeps_groups: bool,
}

/// Ratio of the time of a whole micro-batch to that of its parts above which it is divided into parts for a task: taking
/// them out of a value and joining results again takes time that problems do not count.
const SPLIT_GAIN: f64 = 1.05;

impl<'a> Model<'a> {
    /// Builds the tables; `None` if no batch size is small enough.
    pub(super) fn new(instance: &'a Instance, keeps_groups: bool) -> Option<Self> {
        let (tasks, devices, inputs) = (instance.tasks(), instance.devices(), instance.inputs());
        let of_devices = (0..devices).flat_map(|device| instance.batch_sizes(device).iter().copied());
        let takes = |task: usize, size: u32| {
            instance.allowed(task).iter().any(|device| instance.time_at(task, *device, size).is_some())
        };
        let undivided = |task: usize| -> bool {
            let parts = instance.allowed(task).iter().flat_map(|device| instance.batch_sizes(*device));
            takes(task, inputs) && parts.filter(|size| **size < inputs).all(|size| !takes(task, *size))
        };
        let mut is_undivided: Vec<bool> =
            instance.groups().iter().map(|group| group.iter().all(|task| undivided(*task))).collect();
        if is_undivided.iter().all(|group| *group) {
            // The queue is a single batch.
            is_undivided.fill(false);
        }
        let divided: Vec<usize> = (0..tasks).filter(|task| !is_undivided[instance.group_of(*task)]).collect();
        let is_used = |size: &u32| *size <= LARGEST && divided.iter().any(|task| takes(*task, *size));
        let mut sizes: Vec<u32> = of_devices.collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.retain(is_used);
        let largest = *sizes.last()?;
        let split_gain = if keeps_groups { f64::INFINITY } else { SPLIT_GAIN };
        let row = largest as usize + 1;
        let mut times = vec![Micros::INFINITY; tasks * devices * row];
        let mut last = vec![0; times.len()];
        for task in 0..tasks {
            for &device in instance.allowed(task) {
                let base = (task * devices + device) * row;
                times[base] = Micros::ZERO;
                for count in 1..=largest {
                    for &size in instance.batch_sizes(device).iter().filter(|size| **size <= count) {
                        let Some(time) = instance.time_at(task, device, size) else { continue };
                        let total = times[base + (count - size) as usize] + time;
                        if total < times[base + count as usize] {
                            (times[base + count as usize], last[base + count as usize]) = (total, size);
                        }
                    }
                    let whole =
                        instance.batch_sizes(device).contains(&count).then(|| instance.time_at(task, device, count));
                    if let Some(whole) =
                        whole.flatten().filter(|whole| *whole <= times[base + count as usize] * split_gain)
                    {
                        (times[base + count as usize], last[base + count as usize]) = (whole, count);
                    }
                }
            }
        }
        let mut position = vec![0; tasks];
        instance.order().iter().enumerate().for_each(|(place, task)| position[*task] = place as u32);
        let tails = list::upward_ranks(instance);
        let length = tails.iter().copied().fold(Micros::ZERO, Micros::max);
        Some(Self {
            instance,
            inputs,
            sizes,
            largest,
            times,
            last,
            tails,
            length,
            position,
            is_tight: instance.memory_binds(),
            is_undivided,
            keeps_groups,
        })
    }

    /// Returns the least time of some inputs on a device; infinite if it cannot run them. A task that takes the whole queue
    /// at once counts by its share.
    #[inline]
    pub(super) fn time(&self, task: usize, device: usize, count: u32) -> Micros {
        if self.is_undivided[self.instance.group_of(task)] {
            let whole = self.instance.time_at(task, device, self.inputs);
            return whole.map_or(Micros::INFINITY, |time| time * (f64::from(count) / f64::from(self.inputs)));
        }
        if count > self.largest {
            return Micros::INFINITY;
        }
        self.times[self.cell(task, device, count)]
    }

    /// Returns the sizes of the launches that take [`Model::time`].
    pub(super) fn launches(&self, task: usize, device: usize, count: u32) -> Vec<u32> {
        if self.is_undivided[self.instance.group_of(task)] {
            return vec![count];
        }
        let mut sizes = Vec::new();
        let mut left = count;
        while left > 0 {
            let size = self.last[self.cell(task, device, left)];
            if size == 0 {
                break;
            }
            sizes.push(size);
            left -= size;
        }
        sizes
    }

    fn cell(&self, task: usize, device: usize, count: u32) -> usize {
        (task * self.instance.devices() + device) * (self.largest as usize + 1) + count as usize
    }

    /// Returns the time per input of a co-location group on a device, in micro-batches of a size.
    pub(super) fn rate(&self, group: usize, device: usize, size: u32) -> Micros {
        let time: Micros = self.instance.groups()[group].iter().map(|task| self.time(*task, device, size)).sum();
        time / f64::from(size)
    }

    /// Returns the weights of a co-location group.
    pub(super) fn weights(&self, group: usize) -> Bytes {
        self.instance.groups()[group].iter().map(|task| self.instance.weight_bytes(*task)).sum()
    }

    /// Returns the devices that may run a co-location group.
    pub(super) fn allowed(&self, group: usize) -> &[usize] {
        self.instance.allowed(self.instance.groups()[group][0])
    }
}
