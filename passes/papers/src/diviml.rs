//! DiviML's MILP for the latency of one input, equations (1) to (7), for comparison: a start time for each task and
//! device, an order binary for each pair of tasks, and the horizon as big-M.
//!
//! Follows the paper except for its misprints: in eq. (3), i is a parent of j, and device pairs without a link are
//! forbidden; in eq. (7), the second line has the time of task j, and both tasks are on device u.

use std::time::Instant;

use divi_planner::mip::{Column, Program};
use divi_planner::plan::Batch;
use divi_planner::problem::MemoryModel;
use divi_planner::solvers::milp::{Formulation, check_orders, limit_memory, solve_formulation};
use divi_planner::units::Micros;
use divi_planner::{Error, Instance, Objective, Options, Problem, Solution, algorithm};

/// Solves the paper's program. The HEFT makespan is the horizon; the HEFT plan is the result if HiGHS finds none.
pub(crate) fn milp(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    let clock = Instant::now();
    let instance = Instance::new(problem, objective)?;
    let (_, heft) = algorithm("heft", objective)?;
    let start = heft(problem, objective, options).map(|solution| solution.schedule);
    solve_formulation(&instance, objective, options, clock, start, |horizon, program| {
        Paper::new(&instance, horizon, program)
    })
}

struct Paper<'a> {
    instance: &'a Instance,
    horizon: Micros,
    tasks: Vec<Vec<On>>,
    /// Two tasks and the binary that is 1 if the first precedes the second.
    pairs: Vec<(usize, usize, Column)>,
}

/// Variables of a task on a device.
#[derive(Clone, Copy)]
struct On {
    device: usize,
    chosen: Column,
    start: Column,
    /// Duration, in units of the horizon.
    time: f64,
}

impl<'a> Paper<'a> {
    fn new(instance: &'a Instance, horizon: Micros, program: &mut Program) -> Result<Self, Error> {
        check_orders(instance.tasks() * instance.tasks().saturating_sub(1) / 2, instance.tasks())?;
        let makespan = program.column(0.0, 1.0, 1.0);
        let mut on = |task: usize, device: usize| On {
            device,
            chosen: program.binary(),
            start: program.column(0.0, 1.0, 0.0),
            time: instance.time(task, device).unwrap_or(Micros::INFINITY) / horizon,
        };
        let devices = |task: usize| instance.allowed(task).iter().map(|device| on(task, *device)).collect();
        let tasks: Vec<Vec<On>> = (0..instance.tasks()).map(devices).collect();
        for task in &tasks {
            // Eq. (1) and (2).
            program.exactly(1.0, task.iter().map(|on| (on.chosen, 1.0)));
            for on in task {
                program.at_least(0.0, [(makespan, 1.0), (on.start, -1.0), (on.chosen, -on.time)]);
            }
        }
        let mut model = Self { instance, horizon, tasks, pairs: Vec::new() };
        model.connect(program);
        model.limit_memory(program);
        model.sequence(program);
        Ok(model)
    }

    /// Eq. (3), and co-location groups.
    fn connect(&mut self, program: &mut Program) {
        for (tensor, moved) in self.instance.tensors().iter().enumerate() {
            for &reader in &moved.consumers {
                for from in &self.tasks[moved.producer] {
                    for to in &self.tasks[reader] {
                        let hop = self.instance.transfer(tensor, from.device, to.device) / self.horizon;
                        let hop = if hop.is_finite() {
                            hop
                        } else {
                            program.at_most(1.0, [(from.chosen, 1.0), (to.chosen, 1.0)]);
                            0.0
                        };
                        let row =
                            [(to.start, 1.0), (from.start, -1.0), (from.chosen, -from.time - hop), (to.chosen, -hop)];
                        program.at_least(-hop, row);
                    }
                }
            }
        }
        for pair in self.instance.groups().iter().flat_map(|group| group.windows(2)) {
            for (one, other) in self.tasks[pair[0]].iter().zip(&self.tasks[pair[1]]) {
                program.exactly(0.0, [(one.chosen, 1.0), (other.chosen, -1.0)]);
            }
        }
    }

    /// Eq. (6); under the liveness model, only weights count.
    fn limit_memory(&mut self, program: &mut Program) {
        let bytes = |task: usize| match self.instance.memory_model() {
            MemoryModel::Static => self.instance.static_bytes(task, 1),
            MemoryModel::Liveness => self.instance.weight_bytes(task),
        };
        limit_memory(program, self.instance, |device| {
            (0..self.tasks.len()).filter_map(|task| Some((self.on(task, device)?.chosen, bytes(task)))).collect()
        });
    }

    /// Eq. (7).
    fn sequence(&mut self, program: &mut Program) {
        for i in 0..self.tasks.len() {
            for j in i + 1..self.tasks.len() {
                let first = program.binary();
                self.pairs.push((i, j, first));
                for one in &self.tasks[i] {
                    let Some(other) = self.on(j, one.device).copied() else { continue };
                    let both = [(one.chosen, 1.0), (other.chosen, 1.0)];
                    let row = [(one.start, 1.0), (one.chosen, one.time), (other.start, -1.0), (first, 1.0)];
                    program.at_most(3.0, row.into_iter().chain(both));
                    let row = [(other.start, 1.0), (other.chosen, other.time), (one.start, -1.0), (first, -1.0)];
                    program.at_most(2.0, row.into_iter().chain(both));
                }
            }
        }
    }

    fn on(&self, task: usize, device: usize) -> Option<&On> {
        self.tasks[task].iter().find(|on| on.device == device)
    }

    /// Returns the variables of the device that a solution assigns to a task.
    fn place(&self, task: usize, values: &[f64]) -> Option<&On> {
        self.tasks[task].iter().max_by(|a, b| a.chosen.of(values).total_cmp(&b.chosen.of(values)))
    }
}

impl Formulation for Paper<'_> {
    /// Returns `None`: the paper's program has no warm start.
    fn solution(&self, _: &Program, _: &[Batch]) -> Option<Vec<f64>> {
        None
    }

    fn launches(&self, values: &[f64]) -> Vec<Batch> {
        let launch = |node: usize| {
            let on = self.place(node, values)?;
            Some(Batch { node, device: on.device, inputs: vec![0], start: on.start.of(values) * self.horizon })
        };
        (0..self.tasks.len()).filter_map(launch).collect()
    }

    fn decisions(&self, values: &[f64], orders: bool) -> Vec<(Column, bool)> {
        let places: Vec<&On> = (0..self.tasks.len()).filter_map(|task| self.place(task, values)).collect();
        let meet = |(i, j, _): &&(usize, usize, Column)| orders && places[*i].device == places[*j].device;
        let firsts = self.pairs.iter().filter(meet).map(|(.., first)| (*first, first.of(values) > 0.5));
        places.iter().map(|on| (on.chosen, true)).chain(firsts).collect()
    }
}
