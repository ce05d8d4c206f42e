//! Checks the times of transfers that tasks state under contention: the tensor of a run that is read on another device is
//! transferred once to each such device, for all inputs that are read there.

use super::{
    Findings,
    buses::{Buses, too_short},
    exceeds,
    flow::Dependence,
    graph::Graph,
    list,
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

/// Tensor of a transfer, the run that computes it, and the destination.
pub(super) type Route = (usize, usize, usize);

/// Times of a transfer, and its inputs; without inputs, all that are read on the destination.
struct Stated {
    times: (Micros, Micros),
    inputs: Vec<i64>,
}

/// Transfers that the tasks and the function state.
pub(super) struct Moves<'m> {
    of_route: BTreeMap<Route, Stated>,
    /// Tensor, source and destination of transfers that no run on the source computes.
    unused: Vec<(usize, usize, usize)>,
    /// Operation that states the transfers of each tensor, and the tensor's name in messages.
    said_by: BTreeMap<usize, (Operation<'m>, String)>,
}

/// Transfer that is required.
struct Need {
    ready: Micros,
    inputs: BTreeSet<i64>,
}

impl<'m> Moves<'m> {
    pub(super) fn of(tasks: &Tasks<'m>, graph: &Graph<'m>, runs: &Runs, machine: &Machine) -> Self {
        let mut moves = Self { of_route: BTreeMap::new(), unused: vec![], said_by: BTreeMap::new() };
        let mut read = |at: Operation<'m>, index: usize, what: String, tensor: Option<usize>| {
            let Some(tensor) = tensor else { return };
            moves.said_by.insert(tensor, (at, what));
            let computing = &runs.of_node[graph.tensors[tensor].from];
            for moved in moves_of(at, attr::MOVES).into_iter().filter(|moved| moved.index() == index) {
                // The dialect's verifier has checked that the devices are declared, and that each transfer is listed once.
                let (Some(from), Some(to)) = (machine.find(moved.from()), machine.find(moved.to())) else { continue };
                let (inputs, times) = (moved.inputs(), (Micros(moved.start()), Micros(moved.end())));
                let is_source = |run: &&usize| {
                    let run = &runs.all[**run];
                    let has_some = || inputs.iter().any(|input| run.inputs.binary_search(input).is_ok());
                    run.device == from && (inputs.is_empty() || has_some())
                };
                match computing.iter().find(is_source) {
                    Some(&run) => _ = moves.of_route.insert((tensor, run, to), Stated { times, inputs }),
                    None => moves.unused.push((tensor, from, to)),
                }
            }
        };
        for (index, &argument) in tasks.arguments.iter().enumerate() {
            read(tasks.function, index, format!("argument {index}"), graph.tensor_of(argument));
        }
        for &task in &tasks.operations {
            for (index, result) in task.results().into_iter().enumerate() {
                let what = format!("the result of {}", describe(task));
                read(task, index, what, graph.tensor_of(result));
            }
        }
        moves
    }

    /// Sets the stated times of transfers.
    pub(super) fn apply(&self, runs: &Runs, dependences: &mut [Dependence]) {
        for dependence in dependences {
            dependence.stated_times = self.of_route.get(&dependence.route(runs)).map(|stated| stated.times);
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
        let mut tell_unused = |(tensor, from, to): (usize, usize, usize)| {
            let (at, what) = &self.said_by[&tensor];
            let (here, there) = (machine.label(from), machine.label(to));
            let message = format!("{what} goes from {here} to {there}, but is not read there: remove the move");
            findings.add(*at, &message);
        };
        self.unused.iter().copied().for_each(&mut tell_unused);
        let mut stated = vec![];
        for (route, moved) in &self.of_route {
            let (tensor, run, to) = *route;
            let from = runs.all[run].device;
            match needs.get(route) {
                Some(need) => stated.push((tensor, from, to, need, moved)),
                None => tell_unused((tensor, from, to)),
            }
        }
        for (tensor, from, to, need, Stated { times: (start, end), inputs }) in stated {
            let (start, end) = (*start, *end);
            let (at, what) = &self.said_by[&tensor];
            let (here, there) = (machine.label(from), machine.label(to));
            if !inputs.is_empty() && !need.inputs.iter().eq(inputs) {
                let read: Vec<i64> = need.inputs.iter().copied().collect();
                let (moved, read) = (list(inputs), list(&read));
                let message =
                    format!("{what} goes from {here} to {there} for inputs {moved}, but is read there for {read}");
                findings.add(*at, &message);
            }
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
        for (route, _) in needs.iter().filter(|(route, _)| !self.of_route.contains_key(route)) {
            let (at, what) = &self.said_by[&route.0];
            let message = format!(
                "{what} is read on {}, but no divi.moves lists its transfer from {}: add one, or run divi-partition",
                machine.label(route.2),
                machine.label(runs.all[route.1].device)
            );
            findings.add(*at, &message);
        }
    }
}
