//! Checks the times of transfers that tasks state under contention: every tensor that is read on another device is
//! transferred once to each such device, for all inputs at once.

use super::{
    Findings,
    buses::{Buses, too_short},
    exceeds,
    flow::Dependence,
    graph::Graph,
    machine::Machine,
    micros,
    runs::Runs,
};
use crate::{
    ir::describe,
    tasks::{Tasks, moves_of},
};
use divi_dialect::{Operation, attr};
use divi_planner::units::Micros;
use std::collections::{BTreeMap, BTreeSet};

/// Tensor, source and destination of a transfer.
pub(super) type Route = (usize, usize, usize);

/// Transfers that the tasks and the function state.
pub(super) struct Moves<'m> {
    times: BTreeMap<Route, (Micros, Micros)>,
    /// Operation that states the transfers of each tensor, and the tensor's name in messages.
    said_by: BTreeMap<usize, (Operation<'m>, String)>,
}

/// Transfer that is required.
struct Need {
    ready: Micros,
    inputs: BTreeSet<i64>,
}

impl<'m> Moves<'m> {
    pub(super) fn of(tasks: &Tasks<'m>, graph: &Graph<'m>, machine: &Machine) -> Self {
        let mut moves = Self { times: BTreeMap::new(), said_by: BTreeMap::new() };
        for (index, &argument) in tasks.arguments.iter().enumerate() {
            moves.read(tasks.function, index, format!("argument {index}"), graph.tensor_of(argument), machine);
        }
        for &task in &tasks.operations {
            for (index, result) in task.results().into_iter().enumerate() {
                let what = format!("the result of {}", describe(task));
                moves.read(task, index, what, graph.tensor_of(result), machine);
            }
        }
        moves
    }

    fn read(&mut self, at: Operation<'m>, index: usize, what: String, tensor: Option<usize>, machine: &Machine) {
        let Some(tensor) = tensor else { return };
        self.said_by.insert(tensor, (at, what));
        for moved in moves_of(at, attr::MOVES).into_iter().filter(|moved| moved.index() == index) {
            // The dialect's verifier has checked that the devices are declared, and that each transfer is listed once.
            if let (Some(from), Some(to)) = (machine.find(moved.from()), machine.find(moved.to())) {
                self.times.insert((tensor, from, to), (Micros(moved.start()), Micros(moved.end())));
            }
        }
    }

    /// Sets the stated times of transfers.
    pub(super) fn apply(&self, runs: &Runs, dependences: &mut [Dependence]) {
        for dependence in dependences {
            dependence.stated_times = self.times.get(&dependence.route(runs)).copied();
        }
    }

    /// Checks that every required transfer starts when its tensor is ready and is long enough, and that there are no
    /// others. Adds them to their buses.
    pub(super) fn check(
        &self,
        graph: &Graph<'_>,
        runs: &Runs,
        dependences: &[Dependence],
        machine: &Machine,
        buses: &mut Buses<'_, 'm>,
        findings: &mut Findings,
    ) {
        let mut needs: BTreeMap<Route, Need> = BTreeMap::new();
        for dependence in
            dependences.iter().filter(|dependence| runs.all[dependence.from].device != runs.all[dependence.to].device)
        {
            let none_yet = || Need { ready: runs.all[dependence.from].end, inputs: BTreeSet::new() };
            needs.entry(dependence.route(runs)).or_insert_with(none_yet).inputs.extend(&dependence.inputs);
        }
        for (&(tensor, from, to), &(start, end)) in &self.times {
            let (at, what) = &self.said_by[&tensor];
            let (here, there) = (machine.label(from), machine.label(to));
            let Some(need) = needs.get(&(tensor, from, to)) else {
                let message = format!("{what} goes from {here} to {there}, but is not read there: remove the move");
                findings.add(*at, &message);
                continue;
            };
            if exceeds(need.ready, start) {
                let message = format!(
                    "{what} goes from {here} to {there} at {}, but is ready at {}: move it {} later",
                    micros(start),
                    micros(need.ready),
                    micros(need.ready - start)
                );
                findings.add(*at, &message);
            }
            let bytes = graph.tensors[tensor].bytes * need.inputs.len() as f64;
            // A missing link has been reported.
            let Some(takes) = machine.transfer(from, to, bytes) else { continue };
            if let Some(problem) = too_short((start, end), takes) {
                findings.add(*at, &format!("{what} goes from {here} to {there} {problem}"));
            }
            let label = format!("the move of {what} from {here} to {there}");
            buses.take((from, to), bytes, (start, end), *at, label);
        }
        for (route, _) in needs.iter().filter(|(route, _)| !self.times.contains_key(route)) {
            let (at, what) = &self.said_by[&route.0];
            let message = format!(
                "{what} is read on {}, but no divi.moves lists its transfer from {}: add one, or run divi-partition",
                machine.label(route.2),
                machine.label(route.1)
            );
            findings.add(*at, &message);
        }
    }
}
