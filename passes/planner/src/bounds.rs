//! Lower bounds that hold for every plan, whichever algorithm made it: each with its name and why it is true.
//!
//! For a queue, what must have happened before a task's first launch is one launch of each task before it, of whatever
//! size; what must happen in all is the whole queue. Bounds that take more than that for granted are wrong as soon as
//! modules have several channels.

mod load;
mod windows;

use crate::instance::Instance;
use crate::plan::Bound;
use crate::units::Micros;

use load::Prices;

/// Every bound there is, in a fixed order.
pub fn all(instance: &Instance) -> Vec<Bound> {
    let ways = Ways::new(instance);
    let prices = Prices::new(instance);
    vec![
        Bound::new(ways.longest(instance), "critical-path"),
        Bound::new(prices.load(), "load"),
        Bound::new(windows::bound(instance, &ways, &prices), "load-in-windows"),
    ]
}

/// The best of them.
pub fn best(instance: &Instance) -> Bound {
    let better = |best: Bound, bound: Bound| if bound.value > best.value { bound } else { best };
    all(instance).into_iter().fold(Bound::new(0.0, "nothing"), better)
}

/// Earliest times along ways through the graph, each task on its best device but with the transfers that the choice of
/// devices costs. Devices are taken to be free always.
struct Ways {
    /// By task and device: no launch there ends earlier after the beginning.
    earliest_end: Vec<Micros>,
    /// By task and device: no launch there starts later before the end.
    latest_start: Vec<Micros>,
    devices: usize,
}

impl Ways {
    fn new(instance: &Instance) -> Self {
        let (tasks, devices) = (instance.tasks(), instance.devices());
        let mut earliest_end = vec![f64::INFINITY; tasks * devices];
        let mut latest_start = vec![f64::INFINITY; tasks * devices];
        let across = |from: &[Micros], other: usize, tensor: usize, link: &dyn Fn(usize) -> (usize, usize)| -> Micros {
            let arrivals = (0..devices).map(|device| {
                let (sender, receiver) = link(device);
                from[other * devices + device] + instance.transfer(tensor, sender, receiver)
            });
            arrivals.fold(f64::INFINITY, f64::min)
        };
        for &task in instance.order() {
            for &device in instance.allowed(task) {
                let before = instance
                    .predecessors(task)
                    .iter()
                    .map(|arc| across(&earliest_end, arc.task, arc.tensor, &|sender| (sender, device)));
                earliest_end[task * devices + device] = before.fold(0.0, f64::max) + quickest(instance, task, device);
            }
        }
        for &task in instance.order().iter().rev() {
            for &device in instance.allowed(task) {
                let after = instance
                    .successors(task)
                    .iter()
                    .map(|arc| across(&latest_start, arc.task, arc.tensor, &|receiver| (device, receiver)));
                latest_start[task * devices + device] = after.fold(0.0, f64::max) + quickest(instance, task, device);
            }
        }
        Self { earliest_end, latest_start, devices }
    }

    /// The longest of the ways through each task, over its best device.
    fn longest(&self, instance: &Instance) -> Micros {
        let through = |task: usize| {
            let on = |device: &usize| {
                let index = task * self.devices + device;
                self.earliest_end[index] + self.latest_start[index] - quickest(instance, task, *device)
            };
            instance.allowed(task).iter().map(on).fold(f64::INFINITY, f64::min)
        };
        (0..instance.tasks()).map(through).fold(0.0, f64::max)
    }

    /// No launch of the task starts earlier.
    fn head(&self, instance: &Instance, task: usize) -> Micros {
        let start =
            |device: &usize| self.earliest_end[task * self.devices + device] - quickest(instance, task, *device);
        instance.allowed(task).iter().map(start).fold(f64::INFINITY, f64::min)
    }

    /// No launch of the task ends later before the end.
    fn tail(&self, instance: &Instance, task: usize) -> Micros {
        let rest = |device: &usize| self.latest_start[task * self.devices + device] - quickest(instance, task, *device);
        instance.allowed(task).iter().map(rest).fold(f64::INFINITY, f64::min)
    }
}

/// The shortest launch of a task on a device.
fn quickest(instance: &Instance, task: usize, device: usize) -> Micros {
    let sizes = instance.batch_sizes(device).iter();
    sizes.filter_map(|size| instance.time_at(task, device, *size)).fold(f64::INFINITY, f64::min)
}
