//! When tensors move, as tasks say where buses are given out in turn: every tensor that is read elsewhere, once for each device
//! that reads it, for all inputs at once.

use super::{
    Findings,
    buses::{Buses, too_short},
    exceeds,
    flow::Handed,
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

/// A tensor, from where, to where.
pub(super) type Way = (usize, usize, usize);

/// What the tasks and the function say.
pub(super) struct Moves<'m> {
    times: BTreeMap<Way, (Micros, Micros)>,
    /// By tensor, the operation that says when it moves, and what messages call it.
    said_by: BTreeMap<usize, (Operation<'m>, String)>,
}

/// What has to move one way.
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
                let what = format!("what {} computes", describe(task));
                moves.read(task, index, what, graph.tensor_of(result), machine);
            }
        }
        moves
    }

    fn read(&mut self, at: Operation<'m>, index: usize, what: String, tensor: Option<usize>, machine: &Machine) {
        let Some(tensor) = tensor else { return };
        self.said_by.insert(tensor, (at, what));
        for moved in moves_of(at, attr::MOVES).into_iter().filter(|moved| moved.index() == index) {
            // The dialect's own verifier has seen that the devices are there, and each way once.
            if let (Some(from), Some(to)) = (machine.find(moved.from()), machine.find(moved.to())) {
                self.times.insert((tensor, from, to), (moved.start(), moved.end()));
            }
        }
    }

    /// Times of what is handed on are those that are said.
    pub(super) fn apply(&self, runs: &Runs, handed: &mut [Handed]) {
        for way in handed {
            way.listed = self.times.get(&way.way(runs)).copied();
        }
    }

    /// Every tensor that has to moves when it is there, and long enough; and no other does. Takes their buses.
    pub(super) fn check(
        &self,
        graph: &Graph<'_>,
        runs: &Runs,
        handed: &[Handed],
        machine: &Machine,
        buses: &mut Buses<'_, 'm>,
        findings: &mut Findings,
    ) {
        let mut needs: BTreeMap<Way, Need> = BTreeMap::new();
        for way in handed.iter().filter(|way| runs.all[way.from].device != runs.all[way.to].device) {
            let none_yet = || Need { ready: runs.all[way.from].end, inputs: BTreeSet::new() };
            needs.entry(way.way(runs)).or_insert_with(none_yet).inputs.extend(&way.inputs);
        }
        for (&(tensor, from, to), &(start, end)) in &self.times {
            let (at, what) = &self.said_by[&tensor];
            let (here, there) = (machine.label(from), machine.label(to));
            let Some(need) = needs.get(&(tensor, from, to)) else {
                let message = format!("{what} goes from {here} to {there}, but is not read there: take the move away");
                findings.add(*at, &message);
                continue;
            };
            if exceeds(need.ready, start) {
                let message = format!(
                    "{what} goes from {here} to {there} at {}, but is there at {}: move it {} later",
                    micros(start),
                    micros(need.ready),
                    micros(need.ready - start)
                );
                findings.add(*at, &message);
            }
            let bytes = graph.tensors[tensor].bytes * need.inputs.len() as f64;
            // That there is no link has been said.
            let Some(takes) = machine.transfer(from, to, bytes) else { continue };
            if let Some(problem) = too_short((start, end), takes) {
                findings.add(*at, &format!("{what} goes from {here} to {there} {problem}"));
            }
            let label = format!("the move of {what} from {here} to {there}");
            buses.take((from, to), bytes, (start, end), *at, label);
        }
        for (way, _) in needs.iter().filter(|(way, _)| !self.times.contains_key(way)) {
            let (at, what) = &self.said_by[&way.0];
            let message = format!(
                "{what} is read on {}, but no divi.moves says when it goes there from {}: add that, or run divi-partition",
                machine.label(way.2),
                machine.label(way.1)
            );
            findings.add(*at, &message);
        }
    }
}
