//! Columns and rows of the linear program, without the rows that are added where a solution violates them.

use super::{Columns, Cut, Model, Part, ROUNDING};
use crate::mip::{Column, Program};
use crate::model::instance::Arc;
use crate::model::units::Micros;

impl Model<'_> {
    /// Builds the program; `None` if some task has no launch within the horizon.
    pub(super) fn program(&self, program: &mut Program, horizon: f64) -> Option<Columns> {
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

    /// Returns the time of launches of one size that run all inputs.
    pub(super) fn work(&self, part: &Part) -> f64 {
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
}
