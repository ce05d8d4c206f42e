//! Enumeration of all schedules of a small problem: all assignments of inputs to devices, in all orders of launches. Only
//! the problem's data is used, no code of the planner.

use std::collections::BTreeSet;

use divi_planner::Problem;
use divi_planner::plan::Batch;
use divi_planner::units::{Bytes, Micros};

use super::edges::{edges, moving};

/// Returns the best schedule that `accept` accepts, as launches; `None` if there is none.
///
/// Each launch starts as early as the order allows, which loses nothing: a later start helps no other launch.
pub(crate) fn best(problem: &Problem, accept: &dyn Fn(&[Batch]) -> bool) -> Option<(Micros, Vec<Batch>)> {
    let mut search = Search { problem, edges: edges(problem), accept, best: None };
    let mut spread = Vec::new();
    search.spread(0, &mut spread);
    search.best
}

struct Launch {
    node: usize,
    device: usize,
    inputs: Vec<u32>,
    duration: Micros,
}

struct Search<'a> {
    problem: &'a Problem,
    /// From, to, bytes.
    edges: Vec<(usize, usize, Bytes)>,
    accept: &'a dyn Fn(&[Batch]) -> bool,
    best: Option<(Micros, Vec<Batch>)>,
}

impl Search<'_> {
    /// Enumerates the devices of each input of each node.
    fn spread(&mut self, node: usize, launches: &mut Vec<Launch>) {
        if node == self.problem.nodes.len() {
            if self.groups_share(launches) {
                self.order(launches, &mut Vec::new(), &mut vec![Micros::ZERO; self.problem.devices.len()]);
            }
            return;
        }
        let (devices, inputs) = (self.problem.devices.len(), self.problem.inputs);
        for choice in 0..devices.pow(inputs) {
            let on = |input: u32| choice / devices.pow(input) % devices;
            let before = launches.len();
            let possible = (0..devices).all(|device| {
                let own: Vec<u32> = (0..inputs).filter(|input| on(*input) == device).collect();
                own.is_empty()
                    || self.launch(node, device, own).is_some_and(|launch| {
                        launches.push(launch);
                        true
                    })
            });
            if possible {
                self.spread(node + 1, launches);
            }
            launches.truncate(before);
        }
    }

    fn launch(&self, node: usize, device: usize, inputs: Vec<u32>) -> Option<Launch> {
        let size = inputs.len() as u32;
        let known = &self.problem.nodes[node];
        if known.pin.is_some_and(|pin| pin != device) || !self.problem.devices[device].batch_sizes.contains(&size) {
            return None;
        }
        Some(Launch { node, device, inputs, duration: known.time[&size][device]? })
    }

    fn groups_share(&self, launches: &[Launch]) -> bool {
        let placed = |node: usize| -> BTreeSet<(usize, &[u32])> {
            launches.iter().filter(|launch| launch.node == node).map(|l| (l.device, l.inputs.as_slice())).collect()
        };
        let mut groups = self.problem.colocate.iter().flatten();
        groups.all(|group| group.iter().all(|node| placed(*node) == placed(group[0])))
    }

    /// Enumerates the next launch, until all have started; `done` has each launch's index and start.
    fn order(&mut self, launches: &[Launch], done: &mut Vec<(usize, Micros)>, free: &mut Vec<Micros>) {
        let makespan = done.iter().map(|(launch, start)| *start + launches[*launch].duration);
        let makespan = makespan.fold(Micros::ZERO, Micros::max);
        if self.best.as_ref().is_some_and(|(best, _)| makespan >= *best) {
            return;
        }
        if done.len() == launches.len() {
            let batch = |(launch, start): &(usize, Micros)| {
                let launch = &launches[*launch];
                Batch { node: launch.node, device: launch.device, inputs: launch.inputs.clone(), start: *start }
            };
            let batches: Vec<Batch> = done.iter().map(batch).collect();
            if (self.accept)(&batches) {
                self.best = Some((makespan, batches));
            }
            return;
        }
        for next in 0..launches.len() {
            if done.iter().any(|(launch, _)| *launch == next) {
                continue;
            }
            if let Some(ready) = self.ready(launches, done, next) {
                let launch = &launches[next];
                let start = ready.max(free[launch.device]);
                let before = std::mem::replace(&mut free[launch.device], start + launch.duration);
                done.push((next, start));
                self.order(launches, done, free);
                done.pop();
                free[launches[next].device] = before;
            }
        }
    }

    /// Returns the time when all operands of a launch have arrived; `None` if one is missing or has no link.
    fn ready(&self, launches: &[Launch], done: &[(usize, Micros)], next: usize) -> Option<Micros> {
        let to = &launches[next];
        let mut ready = Micros::ZERO;
        for (from, _, bytes) in self.edges.iter().filter(|(_, reader, _)| *reader == to.node) {
            let producers = launches.iter().enumerate().filter(|(_, launch)| launch.node == *from);
            for (index, producer) in producers {
                let shared = producer.inputs.iter().filter(|input| to.inputs.contains(input)).count();
                if shared == 0 {
                    continue;
                }
                let (_, start) = done.iter().find(|(launch, _)| *launch == index)?;
                let moving = moving(self.problem, producer.device, to.device, shared as f64 * *bytes)?;
                ready = ready.max(*start + producer.duration + moving);
            }
        }
        Some(ready)
    }
}
