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

mod cuts;
mod memory;
mod program;
mod sets;

use std::ops::ControlFlow;
use std::time::Instant;

use super::mean::device_classes;
use super::ways::Ways;
use crate::mip::{self, Column, Limits, Program, Relaxation};
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::units::Micros;

use cuts::Cut;

/// Larger programs take too long.
const MOST_COLUMNS: usize = 30_000;
/// Maximum number of launches, of different sizes and classes, for programs with their middles.
const MOST_MIDDLES: usize = 400;
/// Maximum number of devices of a class whose idle times are computed.
const MOST_IDLE: usize = 64;
/// Maximum number of tasks for a search tree.
const MOST_TREE_TASKS: usize = 24;
/// Simplex iterations of one program, in all rounds.
const ITERATIONS: u64 = 60_000;
/// First horizon, relative to the bound that is known, number of horizons, and relative difference to the bound at which the
/// bisection stops.
const FIRST_HORIZON: f64 = 1.5;
const HORIZONS: usize = 6;
const NEAR: f64 = 4e-3;
/// Number of rounds in which violated rows are added.
const ROUNDS: usize = 12;
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
}
