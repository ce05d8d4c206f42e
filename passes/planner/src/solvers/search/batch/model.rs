//! Tables of a queue problem for fast simulation.

use super::cut::{self, Candidates};
use super::window::Window;
use crate::bounds::worth;
use crate::model::instance::Instance;
use crate::model::plan;
use crate::model::units::{Bytes, Micros, MicrosPerByte};
use crate::random::Random;
use crate::solvers::search::memory::Limits;
use crate::solvers::search::method::{Method, Step};
use crate::solvers::search::model::{self, Arc, Graph};
use crate::solvers::search::schedule::Schedule;

/// Limit on units: one bit each in a mask.
const MOST_UNITS: u32 = 64;

/// Factors of the mean task time that give the temperature scale: every step here is followed by a local optimization.
/// If memory binds, few changes are possible without making something worse first.
const HEAT: f64 = 0.5;
const HEAT_IF_TIGHT: f64 = 2.0;

/// Queue problem as flat tables, counted in units of inputs. A cut of a task's queue is a mask of units for each
/// device.
#[derive(Clone, Debug)]
pub struct Model {
    pub(super) graph: Graph,
    /// Inputs per unit.
    pub(super) unit: u32,
    pub(super) units: u32,
    /// By task, device and number of units; infinite if there is no such batch.
    time: Vec<Micros>,
    /// Transfer times of one unit, a `devices × devices` table per tensor; infinite without a link.
    per_unit: Vec<Micros>,
    latency: Vec<Micros>,
    /// Lower bound on the memory of a task: a fixed part, and a part per unit.
    fixed: Vec<Bytes>,
    each: Vec<Bytes>,
    capacity: Vec<Bytes>,
    /// True if memory binds.
    pub(super) tight: bool,
    /// All cuts, unless there are too many.
    pub(super) candidates: Option<Candidates>,
    /// Price of a device's time, and of a byte of its memory.
    time_worth: Vec<f64>,
    byte_worth: Vec<MicrosPerByte>,
}

impl Model {
    /// Builds the tables; `None` if masks are too small for the problem.
    pub fn new(instance: &Instance) -> Option<Self> {
        let (tasks, devices) = (instance.tasks(), instance.devices());
        if tasks == 0 || devices > usize::from(u8::MAX) {
            return None;
        }
        let unit = unit(instance)?;
        let units = instance.inputs() / unit;
        let mut time = Vec::with_capacity(tasks * devices * (units as usize + 1));
        for task in 0..tasks {
            for device in 0..devices {
                let of = |count: u32| instance.time_at(task, device, count * unit).unwrap_or(Micros::INFINITY);
                time.push(Micros::ZERO);
                time.extend((1..=units).map(of));
            }
        }
        let pairs = || (0..devices * devices).map(|pair| (pair / devices, pair % devices));
        let mut per_unit = Vec::new();
        let mut latency = vec![Micros::ZERO; devices * devices];
        for tensor in 0..instance.tensors().len() {
            for (index, (from, to)) in pairs().enumerate() {
                // A transfer time is affine in bytes: two sizes give latency and time per unit.
                let (one, two) =
                    (instance.transfer_of(tensor, from, to, 0), instance.transfer_of(tensor, from, to, unit));
                per_unit.push(if two.is_finite() { two - one } else { two });
                latency[index] = if one.is_finite() { one } else { Micros::ZERO };
            }
        }
        let (time_worth, memory) = worth(instance);
        let limits = Limits::of(instance);
        let fixed = |task: usize| limits.bytes(instance, task, 0);
        Some(Self {
            graph: Graph::new(instance),
            unit,
            units,
            time,
            per_unit,
            latency,
            fixed: (0..tasks).map(fixed).collect(),
            each: (0..tasks).map(|task| limits.bytes(instance, task, unit) - fixed(task)).collect(),
            capacity: (0..devices).map(|device| instance.capacity_bytes(device)).collect(),
            tight: limits != Limits::None,
            candidates: Candidates::full(devices, units),
            time_worth,
            byte_worth: (0..devices)
                .map(|device| memory[device] / instance.capacity_bytes(device).max(Bytes(1.0)))
                .collect(),
        })
    }

    /// Returns the time of a batch; infinite if there is no such batch, zero for an empty one.
    #[inline]
    pub(super) fn time(&self, task: usize, device: usize, units: u32) -> Micros {
        self.time[(task * self.graph.devices + device) * (self.units as usize + 1) + units as usize]
    }

    /// Returns the transfer time of a tensor of `units` units between devices.
    #[inline]
    pub(super) fn hop(&self, arc: Arc, from: usize, to: usize, units: u32) -> Micros {
        if from == to {
            return Micros::ZERO;
        }
        let pair = from * self.graph.devices + to;
        self.per_unit[arc.hop as usize + pair] * f64::from(units) + self.latency[pair]
    }

    /// Returns true if every part of a cut is a batch that its device supports.
    pub fn runs(&self, task: usize, cut: &[u64]) -> bool {
        cut.iter().enumerate().all(|(device, part)| self.time(task, device, part.count_ones()).is_finite())
    }

    /// Returns a lower bound on the memory of a part.
    pub(super) fn bytes(&self, task: usize, part: u64) -> Bytes {
        if part == 0 { Bytes::ZERO } else { self.fixed[task] + self.each[task] * f64::from(part.count_ones()) }
    }

    /// Returns the price of a part's time and memory.
    pub(super) fn worth(&self, task: usize, device: usize, part: u64) -> Micros {
        let time = self.time(task, device, part.count_ones());
        self.time_worth[device] * time + self.bytes(task, part) * self.byte_worth[device]
    }

    /// Returns true if two lists of tasks are isomorphic: same times, and same tensors among them.
    pub(super) fn alike(&self, some: &[usize], others: &[usize]) -> bool {
        let row = self.graph.devices * (self.units as usize + 1);
        let square = self.graph.devices * self.graph.devices;
        let time = |task: usize| &self.time[task * row..(task + 1) * row];
        let read = |task: usize, list: &[usize]| -> Vec<(Option<usize>, Vec<u64>)> {
            let arcs = self.graph.preds(task).iter();
            let hop =
                |arc: &Arc| self.per_unit[arc.hop as usize..][..square].iter().map(|hop| hop.0.to_bits()).collect();
            let place = |arc: &Arc| list.iter().position(|other| *other == arc.task as usize);
            let mut read: Vec<_> = arcs.map(|arc| (place(arc), hop(arc))).collect();
            read.sort();
            read
        };
        let same = |(a, b): (&usize, &usize)| time(*a) == time(*b) && read(*a, some) == read(*b, others);
        some.len() == others.len() && some.iter().zip(others).all(same)
    }

    /// Returns the mean over tasks of the queue's time at the best rate.
    pub(super) fn mean_time(&self) -> Micros {
        let rate = |task: usize| {
            let on = |device: usize| {
                let per = |units: u32| self.time(task, device, units) / f64::from(units);
                (1..=self.units).map(per).fold(Micros::INFINITY, Micros::min)
            };
            (0..self.graph.devices).map(on).fold(Micros::INFINITY, Micros::min)
        };
        let sum: Micros = (0..self.graph.tasks).map(rate).filter(|rate| rate.is_finite()).sum();
        sum * f64::from(self.units) / self.graph.tasks as f64
    }
}

impl model::Model for Model {
    type Place = u64;
    type Window = Window;

    const WIDTH: usize = 16;
    const STRIDE: usize = 6;
    const TRIALS: usize = 16;
    const TASKS_A_TRIAL: usize = 16;

    #[inline]
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn width(&self) -> usize {
        self.graph.devices
    }

    #[inline]
    fn parts(&self, cuts: &[u64], task: usize) -> impl Iterator<Item = (usize, usize)> {
        let row = task * self.graph.devices;
        (0..self.graph.devices).map(move |device| (device, row + device)).filter(|(_, cell)| cuts[*cell] != 0)
    }

    #[inline]
    fn part_time(&self, task: usize, device: usize, part: u64) -> Micros {
        self.time(task, device, part.count_ones())
    }

    #[inline]
    fn arrival(&self, arc: Arc, cuts: &[u64], ends: &[Micros], device: usize, part: u64) -> Micros {
        let mut arrival = Micros::ZERO;
        let row = arc.task as usize * self.graph.devices;
        let cells = row..row + self.graph.devices;
        for (from, (other, end)) in cuts[cells.clone()].iter().zip(&ends[cells]).enumerate() {
            let shared = other & part;
            if shared != 0 {
                arrival = later(arrival, *end + self.hop(arc, from, device, shared.count_ones()));
            }
        }
        arrival
    }

    #[inline]
    fn path(&self, arc: Arc, cuts: &[u64], tails: &[Micros], (device, part): (usize, u64), end: Micros) -> Micros {
        let mut rest = Micros::ZERO;
        let row = arc.task as usize * self.graph.devices;
        let cells = row..row + self.graph.devices;
        for (to, (other, tail)) in cuts[cells.clone()].iter().zip(&tails[cells]).enumerate() {
            let shared = other & part;
            if shared != 0 {
                rest = later(rest, *tail + self.hop(arc, device, to, shared.count_ones()));
            }
        }
        end + rest
    }

    fn room(&self, cuts: &[u64]) -> Vec<Bytes> {
        let mut room = self.capacity.clone();
        for (task, cut) in cuts.chunks(self.graph.devices).enumerate() {
            for (room, part) in room.iter_mut().zip(cut) {
                *room -= self.bytes(task, *part);
            }
        }
        room
    }

    fn peak_use(&self, instance: &Instance, schedule: &Schedule<Self>) -> Vec<Bytes> {
        instance.peak_use_of(&self.batches(schedule))
    }

    fn mutate(&self, group: &[usize], cut: &mut [u64], random: &mut Random) -> bool {
        cut::mutate(cut, random);
        group.iter().all(|task| self.runs(*task, cut))
    }

    /// Large neighborhood search accepts nothing that is worse.
    fn heat(&self, method: Method) -> Micros {
        match method {
            Method::Anneal => self.mean_time() * if self.tight { HEAT_IF_TIGHT } else { HEAT },
            Method::Neighbourhoods => Micros::ZERO,
        }
    }

    fn step(_: Method, _: &mut Random) -> Step {
        Step::Several
    }

    fn plan(&self, schedule: &Schedule<Self>) -> plan::Schedule {
        plan::Schedule::Batch { batches: self.batches(schedule), makespan: schedule.makespan(self) }
    }
}

/// Returns the larger of two times, neither of which is NaN: a single instruction, unlike `f64::max`.
#[inline]
pub(super) fn later(a: Micros, b: Micros) -> Micros {
    if a > b { a } else { b }
}

/// Returns the number of inputs per unit: a divisor of all batch sizes. It is larger if a mask could not hold the queue
/// otherwise: then some batch sizes are not used. `None` if the queue cannot be divided so.
fn unit(instance: &Instance) -> Option<u32> {
    let inputs = instance.inputs();
    let sizes = (0..instance.devices()).flat_map(|device| instance.batch_sizes(device));
    let common = sizes.fold(inputs, |common, size| greatest_common_divisor(common, *size));
    (common..=inputs).find(|unit| unit % common == 0 && inputs.is_multiple_of(*unit) && inputs / unit <= MOST_UNITS)
}

pub(crate) fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
