//! Linear relaxation of a queue with any number of launches.
//!
//! For a plan with makespan C, let y(t, c, s) be the share of the inputs that task t runs in launches of size s on devices
//! of class c (equal devices), and e(t) the mean over all inputs of the end of t's launch. With L inputs, launch times p,
//! and heads h and tails g (see [`super::ways`]), the following hold:
//!
//! 1. The shares of a task sum to one.
//! 2. Devices of a class are busy for Σ (L / s) · p · y, which is at most their number times C.
//! 3. An input's launch of t starts after its launch of a predecessor u has ended, and after the tensor has arrived: e(t) is at
//!    least e(u) plus the mean of p and the mean of the transfer times. The latter are at least those of the cheapest
//!    assignment of inputs to pairs of classes, and those of one input, since the two launches may have one in common.
//! 4. e(t) is at least the mean of h + p, and C − e(t) is at least the mean of g. Launches on one device run in sequence.
//! 5. A device runs tasks with heads of at least a and tails of at least b between a and C − b: on the devices of a class
//!    they take at most C − a − b times the number of devices, provided that a + b is no more than C.
//! 6. A device holds the weights of the tasks that it runs, and under the static memory model operands and results of the
//!    inputs that it runs. With n(t, c) holders, y is at most n, and the weights of all holders fit.
//!
//!    So many devices have the task's launch as their first one, at most, or as their last one. A device is idle before its
//!    first launch: that task's ancestors run on other devices. Likewise behind its last launch. A device without a launch is
//!    idle for C.
//! 7. The launches of a task have integer numbers, and their sizes sum to L: y is a convex combination of all such sets, where
//!    there are few enough of them.
//! 8. For launches j on one device, all of them not before a, let m(j) be the middle of j and q the sum of their times p(j).
//!    Then Σ p(j) · (m(j) − a) is at least q² / 2 (Queyranne, "Structure of a simple scheduling polyhedron", 1993); on k
//!    devices, at least q² / 2k. With m(t, c, s) as the sum over launches of their middles, times their shares of the inputs,
//!    the left side is linear, and the right side is at least its tangents. The same holds backwards from C.
//!
//! All are linear in y, e, m, n and C, so the least C that satisfies them is a lower bound. They are stronger for plans within a
//! horizon U: a launch with h + p + g > U is impossible, and one device runs at most (U − h − g) / p launches of a size,
//! rounded down. Let b be the least C with these rows. A plan takes more than U, or it is within the horizon and takes at
//! least b. So the smaller of U and b is a lower bound; the best U is found by bisection.
//!
//! Bounds are computed from dual values in exact arithmetic. For small programs, a search tree takes one set of launches for
//! each task: see [`integer_bound`].

use std::ops::ControlFlow;
use std::time::Instant;

use super::fill::largest_sum;
use super::mean::device_classes;
use super::ways::Ways;
use crate::mip::{self, Column, Limits, Program, Relaxation};
use crate::model::error::Error;
use crate::model::instance::{Arc, Instance};
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

/// Larger programs take too long.
const MOST_COLUMNS: usize = 30_000;
/// Maximum number of launches, of different sizes and classes, for programs with their middles.
const MOST_MIDDLES: usize = 400;
/// Maximum number of devices of a class whose idle times are computed.
const MOST_IDLE: usize = 64;
/// Maximum number of tasks for a search tree.
const MOST_TREE_TASKS: usize = 24;
/// Maximum number of sets of launches of a task.
const MOST_SETS: usize = 200;
/// Simplex iterations of one program, in all rounds.
const ITERATIONS: u64 = 60_000;
/// First horizon, relative to the bound that is known, number of horizons, and relative difference to the bound at which the
/// bisection stops.
const FIRST_HORIZON: f64 = 1.5;
const HORIZONS: usize = 6;
const NEAR: f64 = 4e-3;
/// Number of rounds in which violated windows are added, minimum violation of one, and maximum number of heads and tails
/// that are tried.
const ROUNDS: usize = 12;
const BROKEN: f64 = 1e-4;
const WINDOW_ENDS: usize = 32;
/// Maximum number of orders of a class that are added in a round, and minimum share of launches in one.
const ORDERS: usize = 3;
const SHARE: f64 = 1e-6;
/// Relative rounding error of times that are compared with a horizon.
const ROUNDING: f64 = 1e-9;

/// Returns the bound, or zero if the program is too large. `known` is another lower bound.
pub(super) fn bound(instance: &Instance, known: Micros) -> Result<Micros, Error> {
    if known <= Micros::ZERO || !known.is_finite() {
        return Ok(Micros::ZERO);
    }
    let model = Model::new(instance, known);
    if model.columns() > MOST_COLUMNS {
        return Ok(Micros::ZERO);
    }
    let mut cuts = Vec::new();
    let (mut best, mut horizon) = (1.0, FIRST_HORIZON);
    let mut above = FIRST_HORIZON;
    for _ in 0..HORIZONS {
        let found = model.within(horizon, &mut cuts)?;
        if found < horizon {
            above = horizon;
        }
        best = f64::max(best, found.min(horizon));
        if above <= best * (1.0 + NEAR) {
            break;
        }
        horizon = f64::midpoint(best, above);
    }
    Ok(known * best)
}

/// Returns true if a search tree over the sets of launches makes progress within seconds.
pub(super) fn is_small(instance: &Instance, known: Micros) -> bool {
    let is_positive = known > Micros::ZERO && known.is_finite();
    is_positive && Model::new(instance, known).has_middles && instance.tasks() <= MOST_TREE_TASKS
}

/// Returns the bound of a search tree in which each task has one set of launches, for plans that take no longer than
/// `horizon`. The bound is at most the horizon.
pub(super) fn integer_bound(
    instance: &Instance,
    known: Micros,
    horizon: Micros,
    limits: &Limits,
) -> Result<Micros, Error> {
    let since = Instant::now();
    let model = Model::new(instance, known);
    let most = f64::max(horizon / known, 1.0);
    let (relaxed, program) = model.relaxed(most, &mut Vec::new())?;
    let Some(program) = program.filter(|_| relaxed < most) else { return Ok(known * relaxed.min(most)) };
    let outcome = program.prove(&limits.left_since(since), None, &mut |_| ControlFlow::Continue(()))?;
    let verified = mip::rounded(outcome.verified);
    Ok(known * f64::max(relaxed, verified).min(most))
}

/// Heads and tails by class, and sizes of the program. Times are in units of the known bound.
struct Model<'a> {
    instance: &'a Instance,
    unit: Micros,
    classes: Vec<Vec<usize>>,
    /// By task and class; infinite where the task cannot run.
    head: Vec<f64>,
    tail: Vec<f64>,
    /// By task and class: least time before the task if it is the first one on its device, and behind it if it is the last.
    idle: [Vec<f64>; 2],
    /// True if programs have the middles of launches.
    has_middles: bool,
}

/// Launches of a size on a class of devices.
struct Part {
    column: Column,
    /// Sum over the launches of their shares of the inputs, times the middle of the launch: after the start, and before the
    /// end.
    middle: Option<[Column; 2]>,
    class: usize,
    size: u32,
    time: f64,
}

/// Set of launches of a task, with its mean end and the mean time from an end to the end of the plan.
struct Set {
    weight: Column,
    end: f64,
    tail: f64,
}

/// Row that a solution violates: see the module's description.
#[derive(Clone, Debug)]
enum Cut {
    /// Tasks whose work on a class is between two times, which sum to `ends`.
    Window { class: usize, tasks: Vec<usize>, ends: f64 },
    /// Launches on a class, by task and size, that start at `head` at the earliest, and the work at which the square is
    /// linearized. Backwards, they end at `head` before the end of the plan at the latest.
    Order { class: usize, is_backward: bool, launches: Vec<(usize, u32)>, head: f64, work: f64 },
}

/// Columns of a program.
struct Columns {
    makespan: Column,
    /// By task.
    parts: Vec<Vec<Part>>,
    end: Vec<Column>,
}

impl<'a> Model<'a> {
    fn new(instance: &'a Instance, unit: Micros) -> Self {
        let class_of = device_classes(instance);
        let count = class_of.iter().max().map_or(0, |last| last + 1);
        let of_class = |class: usize| (0..instance.devices()).filter(|device| class_of[*device] == class).collect();
        let classes: Vec<Vec<usize>> = (0..count).map(of_class).collect();
        let least = |ways: &Ways| -> Vec<f64> {
            let on = |task: usize, class: &Vec<usize>| {
                class.iter().map(|device| ways.on(task, *device)).fold(Micros::INFINITY, Micros::min) / unit
            };
            (0..instance.tasks()).flat_map(|task| classes.iter().map(move |class| on(task, class))).collect()
        };
        let (head, tail) = (least(&Ways::heads(instance, None)), least(&Ways::tails(instance, None)));
        let idle = [Ways::heads_of_first, Ways::tails_of_last].map(|ways| {
            let mut idle = vec![f64::INFINITY; head.len()];
            for (class, devices) in classes.iter().enumerate() {
                let looked_at = if devices.len() <= MOST_IDLE { devices.as_slice() } else { &[] };
                for &device in looked_at {
                    let ways = ways(instance, device);
                    for task in 0..instance.tasks() {
                        let cell = &mut idle[task * classes.len() + class];
                        *cell = cell.min(ways.on(task, device) / unit);
                    }
                }
                if looked_at.is_empty() {
                    (0..instance.tasks()).for_each(|task| idle[task * classes.len() + class] = 0.0);
                }
            }
            idle
        });
        let sizes: usize = classes.iter().map(|class| instance.batch_sizes(class[0]).len()).sum();
        Self { instance, unit, classes, head, tail, idle, has_middles: instance.tasks() * sizes <= MOST_MIDDLES }
    }

    fn cell(&self, task: usize, class: usize) -> usize {
        task * self.classes.len() + class
    }

    /// Returns the number of columns, roughly.
    fn columns(&self) -> usize {
        let instance = self.instance;
        let sizes: usize = self.classes.iter().map(|class| instance.batch_sizes(class[0]).len()).sum();
        let arcs: usize = (0..instance.tasks()).map(|task| instance.predecessors(task).len()).sum();
        instance.tasks() * (sizes + 1) + arcs * self.classes.len() * self.classes.len()
    }

    /// Returns the least makespan of the relaxation within a horizon, from dual values; infinite if there is none.
    fn within(&self, horizon: f64, cuts: &mut Vec<Cut>) -> Result<f64, Error> {
        Ok(self.relaxed(horizon, cuts)?.0)
    }

    /// Returns also the program with all cuts.
    fn relaxed(&self, horizon: f64, cuts: &mut Vec<Cut>) -> Result<(f64, Option<Program>), Error> {
        let mut program = Program::default();
        let Some(columns) = self.program(&mut program, horizon) else { return Ok((f64::INFINITY, None)) };
        for cut in cuts.iter() {
            let (least, terms) = self.row(&columns, cut);
            program.at_least(least, terms);
        }
        let limits = Limits { seed: 1, iterations: ITERATIONS, seconds: None };
        let mut relaxation: Relaxation = program.relaxation(&limits)?;
        let mut best = 0.0;
        for _ in 0..ROUNDS {
            let outcome = relaxation.solve()?;
            best = f64::max(best, mip::rounded(program.safe_bound(&outcome)));
            let Some(values) = outcome.values.filter(|_| outcome.finished && best < horizon) else { break };
            let mut more = self.windows(&columns, &values);
            if self.has_middles {
                more.extend(
                    [false, true].into_iter().flat_map(|is_backward| self.orders(&columns, &values, is_backward)),
                );
            }
            if more.is_empty() {
                break;
            }
            for cut in more {
                let (least, terms) = self.row(&columns, &cut);
                relaxation.at_least(least, &terms)?;
                program.at_least(least, terms);
                cuts.push(cut);
            }
        }
        Ok((best, Some(program)))
    }

    /// Builds the program; `None` if some task has no launch within the horizon.
    fn program(&self, program: &mut Program, horizon: f64) -> Option<Columns> {
        let instance = self.instance;
        let makespan = program.column(0.0, horizon, 1.0);
        let mut parts = Vec::with_capacity(instance.tasks());
        let mut end = Vec::with_capacity(instance.tasks());
        let mut sets = Vec::with_capacity(instance.tasks());
        for task in 0..instance.tasks() {
            let own = self.parts(program, task, horizon);
            if own.is_empty() {
                return None;
            }
            sets.push(self.combine(program, task, &own)?);
            parts.push(own);
            end.push(program.column(0.0, horizon, 0.0));
        }
        let columns = Columns { makespan, parts, end };
        for (task, sets) in sets.iter().enumerate() {
            let own = &columns.parts[task];
            let from_start = sets.iter().map(|set| (set.weight, -set.end));
            program.at_least(0.0, from_start.chain([(columns.end[task], 1.0)]));
            let to_end = sets.iter().map(|set| (set.weight, -set.tail));
            program.at_least(0.0, to_end.chain([(makespan, 1.0), (columns.end[task], -1.0)]));
            if self.has_middles {
                self.middles(program, &columns, task, horizon);
            }
            for arc in instance.predecessors(task) {
                let hops = self.hops(program, &columns, arc, task);
                let times = own.iter().map(|part| (part.column, -part.time));
                let ends = [(columns.end[task], 1.0), (columns.end[arc.task], -1.0)];
                program.at_least(0.0, times.chain(hops).chain(ends));
            }
        }
        for class in 0..self.classes.len() {
            let all = Cut::Window { class, tasks: (0..instance.tasks()).collect(), ends: 0.0 };
            program.at_least(0.0, self.row(&columns, &all).1);
            self.memory(program, &columns, class, horizon);
        }
        Some(columns)
    }

    /// Adds the middles of a task's launches: relative to the start and to the end they sum to the makespan.
    fn middles(&self, program: &mut Program, columns: &Columns, task: usize, horizon: f64) {
        let own = &columns.parts[task];
        let of = |end: usize| own.iter().filter_map(move |part| Some((part.middle?[end], 1.0)));
        program.exactly(0.0, of(0).chain(of(1)).chain([(columns.makespan, -1.0)]));
        let halves = own.iter().map(|part| (part.column, part.time / 2.0));
        program.exactly(0.0, of(0).chain(halves).chain([(columns.end[task], -1.0)]));
        for part in own {
            let Some(middle) = part.middle else { continue };
            let cell = self.cell(task, part.class);
            for (column, ends) in middle.into_iter().zip([self.head[cell], self.tail[cell]]) {
                program.at_least(0.0, [(column, 1.0), (part.column, -(ends + part.time / 2.0))]);
            }
            // The share times the makespan, which is between the known bound and the horizon.
            let sum = middle.map(|column| (column, 1.0));
            program.at_least(0.0, sum.into_iter().chain([(part.column, -1.0)]));
            program.at_most(0.0, sum.into_iter().chain([(part.column, -horizon)]));
        }
    }

    /// Adds the launches of a task that a horizon admits.
    fn parts(&self, program: &mut Program, task: usize, horizon: f64) -> Vec<Part> {
        let instance = self.instance;
        let inputs = f64::from(instance.inputs());
        let mut parts = Vec::new();
        for (class, devices) in self.classes.iter().enumerate() {
            let left = horizon - self.head[self.cell(task, class)] - self.tail[self.cell(task, class)];
            for &size in instance.batch_sizes(devices[0]) {
                let Some(time) = instance.time_at(task, devices[0], size) else { continue };
                let time = time / self.unit;
                // A launch takes no longer than the time that is left; up to rounding.
                let most = (left + horizon * ROUNDING) / time.max(f64::MIN_POSITIVE);
                if most >= 1.0 || time <= left {
                    let launches = (most * (1.0 + ROUNDING)).floor().max(1.0) * devices.len() as f64;
                    let upper = (launches * f64::from(size) / inputs).min(1.0);
                    let column = program.column(0.0, upper, 0.0);
                    let mut middle = || program.column(0.0, horizon, 0.0);
                    let middle = self.has_middles.then(|| [middle(), middle()]);
                    parts.push(Part { column, middle, class, size, time });
                }
            }
        }
        parts
    }

    /// Adds the sets of launches of a task, or single launches if there are too many; `None` if there is none.
    fn combine(&self, program: &mut Program, task: usize, parts: &[Part]) -> Option<Vec<Set>> {
        let inputs = self.instance.inputs();
        let mut lists = Vec::new();
        if !sets_of(parts, inputs, &mut Vec::new(), &mut lists) {
            program.exactly(1.0, parts.iter().map(|part| (part.column, 1.0)));
            let alone = |part: &Part| {
                let cell = self.cell(task, part.class);
                Set { weight: part.column, end: self.head[cell] + part.time, tail: self.tail[cell] }
            };
            return Some(parts.iter().map(alone).collect());
        }
        let weights: Vec<Column> = lists.iter().map(|_| program.binary()).collect();
        for (index, part) in parts.iter().enumerate() {
            let share = |launches: &Vec<usize>| {
                let count = launches.iter().filter(|launch| **launch == index).count();
                count as f64 * f64::from(part.size) / f64::from(inputs)
            };
            let shares = weights.iter().zip(&lists).map(|(weight, launches)| (*weight, -share(launches)));
            program.exactly(0.0, shares.chain([(part.column, 1.0)]));
        }
        program.exactly(1.0, weights.iter().map(|weight| (*weight, 1.0)));
        let set = |(weight, launches): (&Column, &Vec<usize>)| {
            let [end, tail] = self.mean_ends(task, parts, launches);
            Set { weight: *weight, end, tail }
        };
        let sets: Vec<Set> = weights.iter().zip(&lists).map(set).collect();
        if sets.is_empty() { None } else { Some(sets) }
    }

    /// Returns lower bounds on the mean end of a set of launches of a task, and on the mean time from the end of a launch to
    /// the end of the plan. On a single device they run in sequence: by Smith's rule, the least mean has the launches in the
    /// order of their time per input.
    fn mean_ends(&self, task: usize, parts: &[Part], launches: &[usize]) -> [f64; 2] {
        let inputs = f64::from(self.instance.inputs());
        let (mut end, mut tail) = (0.0, 0.0);
        for (class, devices) in self.classes.iter().enumerate() {
            let mut here: Vec<(f64, f64)> = launches
                .iter()
                .filter(|launch| parts[**launch].class == class)
                .map(|launch| (f64::from(parts[*launch].size) / inputs, parts[*launch].time))
                .collect();
            here.sort_by(|a, b| (a.1 * b.0).total_cmp(&(b.1 * a.0)));
            let cell = self.cell(task, class);
            let mut before = 0.0;
            for (share, time) in here {
                end += share * (self.head[cell] + before + time);
                tail += share * (self.tail[cell] + before);
                if devices.len() == 1 {
                    before += time;
                }
            }
        }
        [end, tail]
    }

    /// Returns the row of a cut: its terms are at least a number.
    fn row(&self, columns: &Columns, cut: &Cut) -> (f64, Vec<(Column, f64)>) {
        match cut {
            Cut::Window { class, tasks, ends } => {
                let count = self.classes[*class].len() as f64;
                let of_task = |task: &usize| columns.parts[*task].iter().filter(|part| part.class == *class);
                let work = tasks.iter().flat_map(of_task).map(|part| (part.column, -self.work(part) / count));
                (*ends, work.chain([(columns.makespan, 1.0)]).collect())
            }
            Cut::Order { class, is_backward, launches, head, work } => {
                let count = self.classes[*class].len() as f64;
                let of_launch = |(task, size): &(usize, u32)| {
                    columns.parts[*task].iter().find(|part| part.class == *class && part.size == *size)
                };
                let terms = |part: &Part| {
                    let own = self.work(part);
                    let middle = part.middle.map(|middle| (middle[usize::from(*is_backward)], own));
                    [Some((part.column, -own * (head + work / count))), middle]
                };
                let terms = launches.iter().filter_map(of_launch).flat_map(terms).flatten().collect();
                (-work * work / (2.0 * count), terms)
            }
        }
    }

    /// Returns the time of launches of one size that run all inputs.
    fn work(&self, part: &Part) -> f64 {
        part.time * f64::from(self.instance.inputs()) / f64::from(part.size)
    }

    /// Adds the share of inputs on each pair of classes, and returns their transfer times.
    fn hops(&self, program: &mut Program, columns: &Columns, arc: &Arc, task: usize) -> Vec<(Column, f64)> {
        let time = |from: usize, to: usize| {
            let between = |here: &usize, there: &usize| self.instance.transfer(arc.tensor, *here, *there);
            let pairs =
                self.classes[from].iter().flat_map(|here| self.classes[to].iter().map(move |there| (here, there)));
            pairs.map(|(here, there)| between(here, there)).fold(Micros::INFINITY, Micros::min) / self.unit
        };
        let classes = 0..self.classes.len();
        let cells = classes.clone().flat_map(|from| classes.clone().map(move |to| (from, to)));
        let hops: Vec<(usize, usize, Column, f64)> = cells
            .map(|(from, to)| (from, to, if from == to { 0.0 } else { time(from, to) }))
            .filter(|(.., time)| time.is_finite())
            .map(|(from, to, time)| (from, to, program.column(0.0, 1.0, 0.0), time))
            .collect();
        for class in classes {
            let shares = |task: usize| {
                let here = columns.parts[task].iter().filter(move |part| part.class == class);
                here.map(|part| (part.column, -1.0))
            };
            let leaving = hops.iter().filter(|hop| hop.0 == class).map(|hop| (hop.2, 1.0));
            program.exactly(0.0, leaving.chain(shares(arc.task)));
            let arriving = hops.iter().filter(|hop| hop.1 == class).map(|hop| (hop.2, 1.0));
            program.exactly(0.0, arriving.chain(shares(task)));
        }
        hops.into_iter().filter(|hop| hop.3 > 0.0).map(|(.., column, time)| (column, -time)).collect()
    }

    /// Adds the holders of weights on a class of devices, if they do not fit everywhere.
    fn memory(&self, program: &mut Program, columns: &Columns, class: usize, horizon: f64) {
        let instance = self.instance;
        let (device, count) = (self.classes[class][0], self.classes[class].len() as f64);
        let capacity = instance.capacity_bytes(device);
        let inputs = f64::from(instance.inputs());
        let is_static = instance.memory_model() == MemoryModel::Static;
        let values = |task: usize| {
            let of_input = instance.input_bytes(task) + instance.output_bytes(task);
            if is_static { of_input * inputs } else { Bytes::ZERO }
        };
        let here: Vec<usize> =
            (0..instance.tasks()).filter(|task| columns.parts[*task].iter().any(|part| part.class == class)).collect();
        let weights: Vec<Bytes> =
            here.iter().map(|task| instance.weight_bytes(*task)).filter(|bytes| *bytes > Bytes::ZERO).collect();
        let all: Bytes = weights.iter().sum::<Bytes>() + here.iter().map(|task| values(*task)).sum::<Bytes>();
        if all <= capacity {
            return;
        }
        let room = if is_static { capacity } else { largest_sum(weights, capacity) };
        let scale = all.max(Bytes(1.0));
        let mut held = Vec::new();
        // Devices without a launch are idle for the whole makespan.
        let unused = program.column(0.0, count, 0.0);
        let mut load = vec![(columns.makespan, count), (unused, -1.0)];
        let mut ends = [vec![(unused, 1.0)], vec![(unused, 1.0)]];
        for task in here {
            let own = || columns.parts[task].iter().filter(|part| part.class == class);
            load.extend(own().map(|part| (part.column, -self.work(part))));
            let outer = [0, 1].map(|end: usize| {
                let idle = self.idle[end][self.cell(task, class)];
                let column = program.column(0.0, if idle.is_finite() { count } else { 0.0 }, 0.0);
                ends[end].push((column, 1.0));
                load.push((column, if idle.is_finite() { -idle } else { 0.0 }));
                column
            });
            held.extend(own().map(|part| (part.column, values(task) / scale)));
            let weight = instance.weight_bytes(task);
            if weight == Bytes::ZERO {
                continue;
            }
            let holders = program.column(0.0, count, 0.0);
            held.push((holders, weight / scale));
            program.at_least(0.0, own().map(|part| (part.column, -1.0)).chain([(holders, 1.0)]));
            outer.into_iter().for_each(|column| program.at_least(0.0, [(holders, 1.0), (column, -1.0)]));
            // One device runs the task between its head and its tail.
            let left =
                horizon * (1.0 + ROUNDING) - self.head[self.cell(task, class)] - self.tail[self.cell(task, class)];
            let work = own().map(|part| (part.column, -part.time * inputs / f64::from(part.size)));
            program.at_least(0.0, work.chain([(holders, left)]));
        }
        program.at_most(room / scale * count, held);
        ends.into_iter().for_each(|end| program.exactly(count, end));
        program.at_least(0.0, load);
    }

    /// Returns the most violated window of each class.
    fn windows(&self, columns: &Columns, values: &[f64]) -> Vec<Cut> {
        let makespan = columns.makespan.of(values);
        let mut found = Vec::new();
        for (class, devices) in self.classes.iter().enumerate() {
            let work = |task: usize| -> f64 {
                let own = columns.parts[task].iter().filter(|part| part.class == class);
                own.map(|part| part.column.of(values) * self.work(part)).sum()
            };
            let here: Vec<(f64, f64, f64, usize)> = (0..self.instance.tasks())
                .map(|task| (self.head[self.cell(task, class)], self.tail[self.cell(task, class)], work(task), task))
                .filter(|(head, tail, ..)| head.is_finite() && tail.is_finite())
                .collect();
            let mut worst = (BROKEN, None);
            for head in some_of(here.iter().map(|task| task.0).collect()) {
                for tail in some_of(here.iter().map(|task| task.1).collect()) {
                    if head + tail > 1.0 {
                        continue;
                    }
                    let inside = here.iter().filter(|task| task.0 >= head && task.1 >= tail);
                    let excess = inside.map(|task| task.2).sum::<f64>() / devices.len() as f64 + head + tail - makespan;
                    if excess > worst.0 {
                        worst = (excess, Some((head, tail)));
                    }
                }
            }
            if let Some((head, tail)) = worst.1 {
                let inside = here.iter().filter(|task| task.0 >= head && task.1 >= tail);
                found.push(Cut::Window { class, tasks: inside.map(|task| task.3).collect(), ends: head + tail });
            }
        }
        found
    }

    /// Returns the most violated orders of launches of each class: those with the earliest middles, or the latest ones.
    fn orders(&self, columns: &Columns, values: &[f64], is_backward: bool) -> Vec<Cut> {
        let mut found = Vec::new();
        for (class, devices) in self.classes.iter().enumerate() {
            let count = devices.len() as f64;
            let mut here: Vec<(f64, f64, f64, (usize, u32))> = Vec::new();
            for (task, parts) in columns.parts.iter().enumerate() {
                for part in parts.iter().filter(|part| part.class == class && part.column.of(values) > SHARE) {
                    let Some(middle) = part.middle.map(|middle| middle[usize::from(is_backward)]) else { continue };
                    let share = part.column.of(values);
                    let ends = if is_backward { &self.tail } else { &self.head };
                    let work = share * self.work(part);
                    here.push((middle.of(values) / share, work, ends[self.cell(task, class)], (task, part.size)));
                }
            }
            here.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.3.cmp(&b.3)));
            // By head: launches that start later, up to the one that makes the row most violated.
            let mut heads: Vec<f64> = here.iter().map(|launch| launch.2).collect();
            heads = some_of(std::mem::take(&mut heads));
            let mut worst: Vec<(f64, f64, f64, usize)> = Vec::new();
            for head in heads {
                let (mut work, mut weighted, mut most) = (0.0, 0.0, (BROKEN, 0.0, 0));
                let later = here.iter().enumerate().filter(|(_, launch)| launch.2 >= head);
                for (place, (middle, own, ..)) in later {
                    work += own;
                    weighted += own * (middle - head);
                    let excess = work * work / (2.0 * count) - weighted;
                    if excess > most.0 {
                        most = (excess, work, place);
                    }
                }
                if most.0 > BROKEN {
                    worst.push((most.0, head, most.1, most.2));
                }
            }
            worst.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (_, head, work, last) in worst.into_iter().take(ORDERS) {
                let inside = here[..=last].iter().filter(|launch| launch.2 >= head);
                let launches = inside.map(|launch| launch.3).collect();
                found.push(Cut::Order { class, is_backward, launches, head, work });
            }
        }
        found
    }
}

/// Lists the sets of launches with some inputs in all, by index of their parts in descending order, each with the launches
/// `chosen`; false if there are too many.
fn sets_of(parts: &[Part], left: u32, chosen: &mut Vec<usize>, sets: &mut Vec<Vec<usize>>) -> bool {
    if left == 0 {
        sets.push(chosen.clone());
        return sets.len() <= MOST_SETS;
    }
    let most = chosen.last().map_or(parts.len(), |last| last + 1);
    for index in 0..most {
        if parts[index].size <= left {
            chosen.push(index);
            let is_listed = sets_of(parts, left - parts[index].size, chosen, sets);
            chosen.pop();
            if !is_listed {
                return false;
            }
        }
    }
    true
}

/// Returns at most [`WINDOW_ENDS`] of the values, evenly spaced in their order, without the largest ones.
fn some_of(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values.dedup();
    let step = values.len().div_ceil(WINDOW_ENDS).max(1);
    values.into_iter().step_by(step).collect()
}
