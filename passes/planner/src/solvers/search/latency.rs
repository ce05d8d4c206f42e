//! Local search for one input: a device for each task, and one order of all tasks.

mod window;

use super::memory::Limits;
use super::method::{Method, Step};
use super::model::{Arc, Graph, Model as _};
use super::schedule::{Choice, Schedule};
use crate::model::instance::Instance;
use crate::model::plan;
use crate::model::units::{Bytes, Micros};
use crate::random::Random;

use window::{MAX_WIDTH, Window};

/// Latency problem as flat tables: times of tasks and of transfers.
#[derive(Clone, Debug)]
pub struct Model {
    graph: Graph,
    /// Time in µs by task and device; infinite if the task may not run there.
    time: Vec<Micros>,
    /// Transfer times in µs, a `devices × devices` table per tensor, row = producer's device; infinite without a link.
    hops: Vec<Micros>,
    /// Lower bound on the memory of each task.
    bytes: Vec<Bytes>,
    capacity: Vec<Bytes>,
}

impl Model {
    /// Builds the tables; `None` if there are no tasks, or too many devices for their index type.
    pub fn new(instance: &Instance) -> Option<Self> {
        let (tasks, devices) = (instance.tasks(), instance.devices());
        if tasks == 0 || devices > usize::from(u8::MAX) {
            return None;
        }
        let limits = Limits::of(instance);
        let time = (0..tasks * devices).map(|cell| instance.time(cell / devices, cell % devices));
        let mut hops = Vec::with_capacity(instance.tensors().len() * devices * devices);
        for tensor in 0..instance.tensors().len() {
            for from in 0..devices {
                hops.extend((0..devices).map(|to| instance.transfer(tensor, from, to)));
            }
        }
        Some(Self {
            graph: Graph::new(instance),
            time: time.map(|time| time.unwrap_or(Micros::INFINITY)).collect(),
            hops,
            bytes: (0..tasks).map(|task| limits.bytes(instance, task, 1)).collect(),
            capacity: (0..devices).map(|device| instance.capacity_bytes(device)).collect(),
        })
    }

    /// Returns the choice of a schedule: its devices, and its tasks by start.
    pub(super) fn choice(instance: &Instance, device: &[usize], start: &[Micros]) -> Choice<u8> {
        Choice::by_start(instance, device.iter().map(|device| *device as u8).collect(), start)
    }

    /// Returns the time of a task on a device in µs, infinite if it may not run there.
    #[inline]
    fn time(&self, task: usize, device: usize) -> Micros {
        self.time[task * self.graph.devices + device]
    }

    /// Returns the transfer time in µs of an arc's tensor between devices.
    #[inline]
    fn hop(&self, arc: Arc, from: usize, to: usize) -> Micros {
        self.hops[arc.hop as usize + from * self.graph.devices + to]
    }

    /// Returns the mean over tasks of the time on the fastest device.
    fn mean_time(&self) -> Micros {
        let least =
            |task: usize| self.allowed(task).map(|device| self.time(task, device)).fold(Micros::INFINITY, Micros::min);
        (0..self.graph.tasks).map(least).sum::<Micros>() / self.graph.tasks.max(1) as f64
    }

    /// Returns the devices on which a task may run.
    fn allowed(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.graph.devices).filter(move |&device| self.time(task, device).is_finite())
    }
}

impl super::model::Model for Model {
    type Place = u8;
    type Window = Window;

    const WIDTH: usize = 14;
    const STRIDE: usize = 5;
    const TRIALS: usize = 100;
    /// A check takes no longer than a few of a window's many trials.
    const TASKS_A_TRIAL: usize = usize::MAX;

    #[inline]
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn width(&self) -> usize {
        1
    }

    #[inline]
    fn parts(&self, places: &[u8], task: usize) -> impl Iterator<Item = (usize, usize)> {
        std::iter::once((usize::from(places[task]), task))
    }

    #[inline]
    fn part_time(&self, task: usize, device: usize, _: u8) -> Micros {
        self.time(task, device)
    }

    #[inline]
    fn arrival(&self, arc: Arc, places: &[u8], ends: &[Micros], device: usize, _: u8) -> Micros {
        let from = arc.task as usize;
        ends[from] + self.hop(arc, usize::from(places[from]), device)
    }

    #[inline]
    fn path(&self, arc: Arc, places: &[u8], tails: &[Micros], (device, _): (usize, u8), end: Micros) -> Micros {
        let to = arc.task as usize;
        end + self.hop(arc, device, usize::from(places[to])) + tails[to]
    }

    fn room(&self, places: &[u8]) -> Vec<Bytes> {
        let mut room = self.capacity.clone();
        for (bytes, device) in self.bytes.iter().zip(places) {
            room[usize::from(*device)] -= *bytes;
        }
        room
    }

    fn peak_use(&self, instance: &Instance, schedule: &Schedule<Self>) -> Vec<Bytes> {
        instance.peak_use(&devices(&schedule.choice), &schedule.start)
    }

    fn mutate(&self, group: &[usize], row: &mut [u8], random: &mut Random) -> bool {
        let others: Vec<usize> = self.allowed(group[0]).filter(|device| *device != usize::from(row[0])).collect();
        if others.is_empty() {
            return false;
        }
        row[0] = others[random.below(others.len())] as u8;
        true
    }

    fn heat(&self, _: Method) -> Micros {
        self.mean_time()
    }

    fn step(method: Method, random: &mut Random) -> Step {
        if method == Method::Anneal && random.below(2) == 0 { Step::One } else { Step::Several }
    }

    fn plan(&self, schedule: &Schedule<Self>) -> plan::Schedule {
        let (device, start) = (devices(&schedule.choice), schedule.start.clone());
        plan::Schedule::Latency { device, start, makespan: schedule.makespan(self) }
    }
}

const _: () = assert!(Model::WIDTH <= MAX_WIDTH);

fn devices(choice: &Choice<u8>) -> Vec<usize> {
    choice.places.iter().map(|device| usize::from(*device)).collect()
}
