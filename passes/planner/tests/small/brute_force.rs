//! Every schedule of a small problem: every way to spread inputs over devices, in every order of launches. Nothing of
//! the planner is used but the problem's own words.

use std::collections::BTreeSet;

use divi_planner::Problem;
use divi_planner::plan::Batch;

/// The best schedule that a judge accepts, as launches; none where there is none.
///
/// Each launch starts as early as the order allows, which loses nothing: starting later helps no other launch.
pub(crate) fn best(problem: &Problem, accept: &dyn Fn(&[Batch]) -> bool) -> Option<(f64, Vec<Batch>)> {
    let mut search = Search { problem, edges: edges(problem), accept, best: None };
    let mut spread = Vec::new();
    search.spread(0, &mut spread);
    search.best
}

struct Launch {
    node: usize,
    device: usize,
    inputs: Vec<u32>,
    duration: f64,
}

struct Search<'a> {
    problem: &'a Problem,
    /// From, to, bytes.
    edges: Vec<(usize, usize, f64)>,
    accept: &'a dyn Fn(&[Batch]) -> bool,
    best: Option<(f64, Vec<Batch>)>,
}

fn edges(problem: &Problem) -> Vec<(usize, usize, f64)> {
    let single = problem.edges.iter().flatten().map(|(i, j)| (*i, *j, problem.nodes[*i].output.unwrap_or(0.0)));
    let several = problem.tensors.iter().flatten().flat_map(|t| t.to.iter().map(|to| (t.from, *to, t.bytes)));
    single.chain(several).collect()
}

impl Search<'_> {
    /// Chooses where each input of each node runs.
    fn spread(&mut self, node: usize, launches: &mut Vec<Launch>) {
        if node == self.problem.nodes.len() {
            if self.groups_share(launches) {
                self.order(launches, &mut Vec::new(), &mut vec![0.0; self.problem.devices.len()]);
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

    /// Chooses which launch comes next, until all have; `done` has each launch's index and start.
    fn order(&mut self, launches: &[Launch], done: &mut Vec<(usize, f64)>, free: &mut Vec<f64>) {
        let makespan = done.iter().map(|(launch, start)| start + launches[*launch].duration).fold(0.0, f64::max);
        if self.best.as_ref().is_some_and(|(best, _)| makespan >= *best) {
            return;
        }
        if done.len() == launches.len() {
            let batch = |(launch, start): &(usize, f64)| {
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

    /// When all that a launch reads has arrived; none where something is missing or cannot come.
    fn ready(&self, launches: &[Launch], done: &[(usize, f64)], next: usize) -> Option<f64> {
        let to = &launches[next];
        let mut ready: f64 = 0.0;
        for (from, _, bytes) in self.edges.iter().filter(|(_, reader, _)| *reader == to.node) {
            let producers = launches.iter().enumerate().filter(|(_, launch)| launch.node == *from);
            for (index, producer) in producers {
                let shared = producer.inputs.iter().filter(|input| to.inputs.contains(input)).count();
                if shared == 0 {
                    continue;
                }
                let (_, start) = done.iter().find(|(launch, _)| *launch == index)?;
                let moving = self.moving(producer.device, to.device, shared as f64 * bytes)?;
                ready = ready.max(start + producer.duration + moving);
            }
        }
        Some(ready)
    }

    fn moving(&self, from: usize, to: usize, bytes: f64) -> Option<f64> {
        if from == to {
            return Some(0.0);
        }
        let bandwidth = self.problem.bandwidth[from][to].unwrap_or(f64::INFINITY);
        let latency = self.problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or(0.0);
        (bandwidth > 0.0).then(|| bytes / bandwidth + latency)
    }
}
