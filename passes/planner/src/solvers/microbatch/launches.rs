//! Annealing over single launches: their inputs, devices and order.

use super::Flow;
use crate::model::instance::Instance;
use crate::model::plan::Batch;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};
use crate::random::Random;
use crate::solvers::chains::Allowance;
use crate::solvers::search::batch::greatest_common_divisor;

/// Maximum number of units of inputs, one bit each, and of launches.
const MOST_UNITS: u32 = 64;
const MOST_LAUNCHES: usize = 1500;
/// Initial temperature, as a share of the makespan. It falls to zero several times; each time the search starts from the
/// best schedule again.
const HOT: f64 = 0.03;
const CYCLES: f64 = 4.0;

/// Launch of a task for some units of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Launch {
    task: u32,
    device: u32,
    units: u64,
}

/// Improves a schedule; `None` if nothing better is found, or if there are too many inputs or launches.
pub(super) fn improve(instance: &Instance, start: &Flow, allowance: &Allowance) -> Option<Flow> {
    let model = Model::new(instance)?;
    let order = model.order(&start.launches)?;
    let found = allowance.best_of(|random| {
        let (value, order) = Chain::new(&model, order.clone(), random).run(allowance);
        (value, (value, order))
    });
    let (value, order) = found.filter(|(value, _)| *value < start.value)?;
    let launches = model.batches(&order);
    instance.fits_launches(&launches).then_some(Flow { value, launches })
}

/// Tables of the queue, counted in units.
struct Model<'a> {
    instance: &'a Instance,
    /// Inputs per unit.
    unit: u32,
    units: usize,
    /// By task, device and number of units; infinite if there is no such batch.
    times: Vec<Micros>,
    is_tight: bool,
}

impl<'a> Model<'a> {
    fn new(instance: &'a Instance) -> Option<Self> {
        let (tasks, devices) = (instance.tasks(), instance.devices());
        let sizes = (0..devices).flat_map(|device| instance.batch_sizes(device));
        let unit = sizes.fold(instance.inputs(), |common, size| greatest_common_divisor(common, *size));
        let units = instance.inputs() / unit;
        if units > MOST_UNITS || tasks * units as usize > MOST_LAUNCHES * 4 {
            return None;
        }
        let mut times = Vec::with_capacity(tasks * devices * (units as usize + 1));
        for task in 0..tasks {
            for device in 0..devices {
                times.extend(
                    (0..=units).map(|count| instance.time_at(task, device, count * unit).unwrap_or(Micros::INFINITY)),
                );
            }
        }
        Some(Self { instance, unit, units: units as usize, times, is_tight: instance.memory_binds() })
    }

    #[inline]
    fn time(&self, launch: &Launch) -> Micros {
        let row = launch.task as usize * self.instance.devices() + launch.device as usize;
        self.times[row * (self.units + 1) + launch.units.count_ones() as usize]
    }

    /// Returns the launches of a schedule by start; `None` if they do not consist of whole units.
    fn order(&self, batches: &[Batch]) -> Option<Vec<Launch>> {
        if batches.len() > MOST_LAUNCHES {
            return None;
        }
        let mut sorted: Vec<&Batch> = batches.iter().collect();
        sorted.sort_by(|a, b| a.start.total_cmp(&b.start));
        let launch = |batch: &&Batch| {
            let mut counts = vec![0; self.units];
            batch.inputs.iter().for_each(|input| counts[(input / self.unit) as usize] += 1);
            let is_whole = counts.iter().all(|count| *count == 0 || *count == self.unit);
            let mask = |units: u64, (unit, count): (usize, &u32)| units | u64::from(*count > 0) << unit;
            let units = counts.iter().enumerate().fold(0, mask);
            is_whole.then_some(Launch { task: batch.node as u32, device: batch.device as u32, units })
        };
        sorted.iter().map(launch).collect()
    }

    /// Returns the launches of an order with their starts.
    fn batches(&self, order: &[Launch]) -> Vec<Batch> {
        let mut evaluation = Evaluation::new(self);
        let mut order = order.to_vec();
        evaluation.run(self, &mut order, Micros::INFINITY);
        let batch = |(launch, start): (&Launch, &Micros)| {
            let units = (0..self.units as u32).filter(|unit| launch.units >> unit & 1 == 1);
            let inputs = units.flat_map(|unit| unit * self.unit..(unit + 1) * self.unit).collect();
            Batch { node: launch.task as usize, device: launch.device as usize, inputs, start: *start }
        };
        order.iter().zip(&evaluation.start).map(batch).collect()
    }

    /// Returns true if weights fit, and under the static model everything.
    fn weights_fit(&self, order: &[Launch]) -> bool {
        if !self.is_tight {
            return true;
        }
        let instance = self.instance;
        let devices = instance.devices();
        let mut has_weights = vec![false; instance.tasks() * devices];
        let mut held = vec![Bytes::ZERO; devices];
        for launch in order {
            let (task, device) = (launch.task as usize, launch.device as usize);
            if !std::mem::replace(&mut has_weights[task * devices + device], true) {
                held[device] += instance.weight_bytes(task);
            }
            if instance.memory_model() == MemoryModel::Static {
                let count = launch.units.count_ones() * self.unit;
                held[device] += (instance.input_bytes(task) + instance.output_bytes(task)) * f64::from(count);
            }
        }
        instance.fits(&held)
    }
}

/// Times of an order, and memory that evaluations share.
struct Evaluation {
    /// By task and unit: index of the launch.
    launch_of: Vec<u32>,
    start: Vec<Micros>,
    end: Vec<Micros>,
    free: Vec<Micros>,
    placed: Vec<bool>,
    sorted: Vec<Launch>,
    stack: Vec<u32>,
}

impl Evaluation {
    fn new(model: &Model<'_>) -> Self {
        Self {
            launch_of: vec![0; model.instance.tasks() * model.units],
            start: Vec::new(),
            end: Vec::new(),
            free: vec![Micros::ZERO; model.instance.devices()],
            placed: Vec::new(),
            sorted: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// Moves launches behind those whose results they read, and returns the makespan; infinite as soon as it exceeds the
    /// limit.
    fn run(&mut self, model: &Model<'_>, order: &mut Vec<Launch>, limit: Micros) -> Micros {
        self.number(model, order);
        self.sort(model, order);
        std::mem::swap(order, &mut self.sorted);
        self.number(model, order);
        self.free.fill(Micros::ZERO);
        self.start.clear();
        self.end.clear();
        let mut makespan = Micros::ZERO;
        for launch in order.iter() {
            let device = launch.device as usize;
            let mut start = self.free[device];
            for arc in model.instance.predecessors(launch.task as usize) {
                let mut left = launch.units;
                while left != 0 {
                    let index = self.launch_of[arc.task * model.units + left.trailing_zeros() as usize] as usize;
                    let producer = order[index];
                    let common = producer.units & launch.units;
                    left &= !common;
                    let count = common.count_ones() * model.unit;
                    let hop = model.instance.transfer_of(arc.tensor, producer.device as usize, device, count);
                    start = start.max(self.end[index] + hop);
                }
            }
            let end = start + model.time(launch);
            self.start.push(start);
            self.end.push(end);
            self.free[device] = end;
            makespan = makespan.max(end);
            if makespan > limit || end.is_infinite() {
                return Micros::INFINITY;
            }
        }
        makespan
    }

    fn number(&mut self, model: &Model<'_>, order: &[Launch]) {
        for (index, launch) in order.iter().enumerate() {
            let mut left = launch.units;
            while left != 0 {
                self.launch_of[launch.task as usize * model.units + left.trailing_zeros() as usize] = index as u32;
                left &= left - 1;
            }
        }
    }

    /// Sorts topologically; otherwise the order is kept.
    fn sort(&mut self, model: &Model<'_>, order: &[Launch]) {
        self.placed.clear();
        self.placed.resize(order.len(), false);
        self.sorted.clear();
        for first in 0..order.len() as u32 {
            self.stack.push(first);
            while let Some(&index) = self.stack.last() {
                let launch = order[index as usize];
                if self.placed[index as usize] {
                    self.stack.pop();
                    continue;
                }
                let depth = self.stack.len();
                for arc in model.instance.predecessors(launch.task as usize) {
                    let mut left = launch.units;
                    while left != 0 {
                        let producer = self.launch_of[arc.task * model.units + left.trailing_zeros() as usize];
                        left &= !order[producer as usize].units;
                        if !self.placed[producer as usize] {
                            self.stack.push(producer);
                        }
                    }
                }
                if self.stack.len() == depth {
                    self.stack.pop();
                    self.placed[index as usize] = true;
                    self.sorted.push(launch);
                }
            }
        }
    }
}

/// One chain of the search.
struct Chain<'a> {
    model: &'a Model<'a>,
    evaluation: Evaluation,
    order: Vec<Launch>,
    value: Micros,
    best: Vec<Launch>,
    best_value: Micros,
    random: Random,
    trials: u64,
}

impl<'a> Chain<'a> {
    fn new(model: &'a Model<'a>, mut order: Vec<Launch>, random: Random) -> Self {
        let mut evaluation = Evaluation::new(model);
        let value = evaluation.run(model, &mut order, Micros::INFINITY);
        Self { model, evaluation, value, best: order.clone(), best_value: value, order, random, trials: 0 }
    }

    fn run(mut self, allowance: &Allowance) -> (Micros, Vec<Launch>) {
        let mut cycle = 0.0;
        let mut candidate = Vec::new();
        loop {
            let spent = allowance.spent(self.trials);
            if spent >= 1.0 {
                return (self.best_value, self.best);
            }
            if (spent * CYCLES).floor() > cycle {
                cycle = (spent * CYCLES).floor();
                self.order.clone_from(&self.best);
                self.value = self.best_value;
            }
            self.trials += 1;
            candidate.clone_from(&self.order);
            if !self.mutate(&mut candidate) || !self.model.weights_fit(&candidate) {
                continue;
            }
            let temperature = HOT * (1.0 - (spent * CYCLES).fract()) * self.best_value;
            let limit = self.value + temperature * -(1.0 - self.random.unit()).ln();
            let value = self.evaluation.run(self.model, &mut candidate, limit);
            if value.is_infinite() {
                continue;
            }
            if value < self.best_value {
                if self.model.is_tight && !self.model.instance.fits_launches(&self.model.batches(&candidate)) {
                    continue;
                }
                (self.best_value, self.best) = (value, candidate.clone());
                allowance.report(value);
            }
            self.value = value;
            std::mem::swap(&mut self.order, &mut candidate);
        }
    }

    /// Changes the launches at random; false if nothing changes, or a batch would not exist.
    fn mutate(&mut self, order: &mut Vec<Launch>) -> bool {
        let place = self.random.below(order.len());
        let launch = order[place];
        match self.random.below(12) {
            0..=3 => {
                let near = self.random.chance(0.5);
                let reach = if near { 4.min(order.len()) } else { order.len() };
                let to = (place + order.len() + self.random.below(2 * reach + 1) - reach) % order.len();
                let launch = order.remove(place);
                order.insert(to.min(order.len()), launch);
                to != place
            }
            4..=6 => self.relocate(order, launch),
            7 | 8 => self.merge(order, place),
            9 => self.split(order, place),
            10 => self.exchange(order, place),
            _ => self.align(order, launch.task as usize),
        }
    }

    /// Returns true if some tasks share a device with this one.
    fn is_colocated(&self, task: usize) -> bool {
        self.model.instance.groups()[self.model.instance.group_of(task)].len() > 1
    }

    /// Moves a launch to another device, with those of co-located tasks for the same inputs.
    fn relocate(&mut self, order: &mut [Launch], launch: Launch) -> bool {
        let instance = self.model.instance;
        let group = &instance.groups()[instance.group_of(launch.task as usize)];
        let allowed = instance.allowed(launch.task as usize);
        let device = allowed[self.random.below(allowed.len())] as u32;
        let mut moved = 0;
        for other in order.iter_mut().filter(|other| group.contains(&(other.task as usize))) {
            if other.units == launch.units {
                other.device = device;
                moved += 1;
            }
        }
        moved == group.len() && device != launch.device
    }

    /// Merges a launch with another one of its task, at the position of the second.
    fn merge(&mut self, order: &mut Vec<Launch>, place: usize) -> bool {
        let launch = order[place];
        let Some(other) = self.another(order, place) else { return false };
        let units = launch.units | order[other].units;
        let merged = Launch { units, ..if self.random.chance(0.5) { launch } else { order[other] } };
        if self.is_colocated(launch.task as usize) && launch.device != order[other].device {
            return false;
        }
        order[place.max(other)] = merged;
        order.remove(place.min(other));
        self.model.time(&merged).is_finite()
    }

    /// Returns the position of another launch of the same task.
    fn another(&mut self, order: &[Launch], place: usize) -> Option<usize> {
        let same = |other: &usize| *other != place && order[*other].task == order[place].task;
        let others: Vec<usize> = (0..order.len()).filter(same).collect();
        if others.is_empty() { None } else { Some(others[self.random.below(others.len())]) }
    }

    /// Splits a launch in two.
    fn split(&mut self, order: &mut Vec<Launch>, place: usize) -> bool {
        let launch = order[place];
        let count = launch.units.count_ones() as usize;
        if count < 2 {
            return false;
        }
        let mut left = 1 + self.random.below(count - 1);
        let mut first = 0;
        let mut rest = launch.units;
        while left > 0 {
            first |= rest & rest.wrapping_neg();
            rest &= rest - 1;
            left -= 1;
        }
        let (one, other) = (Launch { units: first, ..launch }, Launch { units: rest, ..launch });
        order[place] = one;
        order.insert(place + 1, other);
        self.model.time(&one).is_finite() && self.model.time(&other).is_finite()
    }

    /// Moves some units from a launch to another one of its task, or swaps one of each.
    fn exchange(&mut self, order: &mut [Launch], place: usize) -> bool {
        let Some(other) = self.another(order, place) else { return false };
        if self.is_colocated(order[place].task as usize) && order[place].device != order[other].device {
            return false;
        }
        let unit = self.pick(order[place].units);
        let back = if self.random.chance(0.5) { self.pick(order[other].units) } else { 0 };
        order[place].units = order[place].units & !unit | back;
        order[other].units = order[other].units & !back | unit;
        order[place].units != 0
            && self.model.time(&order[place]).is_finite()
            && self.model.time(&order[other]).is_finite()
    }

    /// Returns one of the units.
    fn pick(&mut self, units: u64) -> u64 {
        let mut skip = self.random.below(units.count_ones() as usize);
        let mut left = units;
        while skip > 0 {
            left &= left - 1;
            skip -= 1;
        }
        left & left.wrapping_neg()
    }

    /// Splits a task as one of its neighbors is split, on the same devices where it can run there.
    fn align(&mut self, order: &mut Vec<Launch>, task: usize) -> bool {
        let instance = self.model.instance;
        let arcs: Vec<usize> =
            instance.predecessors(task).iter().chain(instance.successors(task)).map(|arc| arc.task).collect();
        if arcs.is_empty() || self.is_colocated(task) {
            return false;
        }
        let neighbor = arcs[self.random.below(arcs.len())];
        let own = order.iter().find(|launch| launch.task as usize == task).copied();
        let keeps_device = self.random.chance(0.5);
        let place = order.iter().position(|launch| launch.task as usize == task).unwrap_or(0);
        let aligned: Vec<Launch> = order
            .iter()
            .filter(|launch| launch.task as usize == neighbor)
            .map(|launch| {
                let same = Launch { task: task as u32, ..*launch };
                let elsewhere = Launch { device: own.map_or(0, |own| own.device), ..same };
                if keeps_device || self.model.time(&same).is_infinite() { elsewhere } else { same }
            })
            .collect();
        order.retain(|launch| launch.task as usize != task);
        let place = place.min(order.len());
        let is_possible = aligned.iter().all(|launch| self.model.time(launch).is_finite());
        order.splice(place..place, aligned);
        is_possible
    }
}
