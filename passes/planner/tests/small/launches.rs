//! Enumeration of all schedules of a small queue with any number of launches. Only the problem's data is used, no code of
//! the planner.

use divi_planner::Problem;
use divi_planner::plan::Batch;
use divi_planner::units::{Bytes, Micros};

use super::edges::{edges, moving};

/// Returns the best schedule that `accept` accepts: `Ok(None)` if there is none, an error if there are too many steps.
///
/// Launches are added in the order of their starts, each as early as possible. Inputs that were in the same launches so
/// far are interchangeable: the first of them are taken.
pub(crate) fn best(
    problem: &Problem,
    most_steps: u64,
    accept: &dyn Fn(&[Batch]) -> bool,
) -> Result<Option<Micros>, ()> {
    let (nodes, inputs) = (problem.nodes.len(), problem.inputs as usize);
    let mut search = Search {
        problem,
        edges: edges(problem),
        accept,
        best: None,
        steps: most_steps,
        launch_of: vec![None; nodes * inputs],
        done: Vec::new(),
        free: vec![Micros::ZERO; problem.devices.len()],
    };
    search.extend();
    if search.steps == 0 { Err(()) } else { Ok(search.best) }
}

struct Done {
    batch: Batch,
    end: Micros,
}

struct Search<'a> {
    problem: &'a Problem,
    edges: Vec<(usize, usize, Bytes)>,
    accept: &'a dyn Fn(&[Batch]) -> bool,
    best: Option<Micros>,
    steps: u64,
    /// By node and input.
    launch_of: Vec<Option<usize>>,
    done: Vec<Done>,
    free: Vec<Micros>,
}

impl Search<'_> {
    fn of(&self, node: usize, input: u32) -> Option<usize> {
        self.launch_of[node * self.problem.inputs as usize + input as usize]
    }

    fn extend(&mut self) {
        if self.steps == 0 {
            return;
        }
        self.steps -= 1;
        let makespan = self.done.iter().map(|done| done.end).fold(Micros::ZERO, Micros::max);
        if self.best.is_some_and(|best| makespan.max(self.least_end()) >= best) {
            return;
        }
        if self.launch_of.iter().all(Option::is_some) {
            let batches: Vec<Batch> = self.done.iter().map(|done| done.batch.clone()).collect();
            if (self.accept)(&batches) {
                self.best = Some(makespan);
            }
            return;
        }
        for node in 0..self.problem.nodes.len() {
            let before: Vec<usize> = self.edges.iter().filter(|edge| edge.1 == node).map(|edge| edge.0).collect();
            let is_ready = |input: &u32| {
                self.of(node, *input).is_none() && before.iter().all(|other| self.of(*other, *input).is_some())
            };
            let ready: Vec<u32> = (0..self.problem.inputs).filter(is_ready).collect();
            for device in 0..self.problem.devices.len() {
                for &size in &self.problem.devices[device].batch_sizes {
                    for inputs in self.choices(&ready, size as usize) {
                        self.add(node, device, inputs);
                    }
                }
            }
        }
    }

    /// Returns a lower bound on the end of all inputs: the quickest launches on the longest path of what is left.
    fn least_end(&self) -> Micros {
        let quickest = |node: usize| {
            let times = self.problem.nodes[node].time.values().flatten().flatten();
            times.fold(Micros::INFINITY, |least, time| least.min(*time))
        };
        let mut last = Micros::ZERO;
        for input in 0..self.problem.inputs {
            let mut end = vec![None; self.problem.nodes.len()];
            // Nodes may be in any order: relax until nothing changes.
            for _ in 0..self.problem.nodes.len() {
                for node in 0..end.len() {
                    let own = match self.of(node, input) {
                        Some(launch) => self.done[launch].end,
                        None => {
                            let before = self.edges.iter().filter(|edge| edge.1 == node);
                            let ready =
                                before.map(|edge| end[edge.0].unwrap_or(Micros::ZERO)).fold(Micros::ZERO, Micros::max);
                            ready + quickest(node)
                        }
                    };
                    end[node] = Some(own);
                }
            }
            last = end.into_iter().flatten().fold(last, Micros::max);
        }
        last
    }

    /// Returns the sets of a size, up to exchange of inputs with the same history.
    fn choices(&self, ready: &[u32], size: usize) -> Vec<Vec<u32>> {
        let history = |input: u32| -> Vec<Option<usize>> {
            (0..self.problem.nodes.len()).map(|node| self.of(node, input)).collect()
        };
        let mut classes: Vec<(Vec<Option<usize>>, Vec<u32>)> = Vec::new();
        for &input in ready {
            let own = history(input);
            match classes.iter_mut().find(|(other, _)| *other == own) {
                Some((_, inputs)) => inputs.push(input),
                None => classes.push((own, vec![input])),
            }
        }
        let mut sets: Vec<Vec<u32>> = vec![Vec::new()];
        for (_, inputs) in classes {
            let longer = |set: &Vec<u32>| -> Vec<Vec<u32>> {
                (0..=inputs.len().min(size - set.len()))
                    .map(|count| set.iter().chain(&inputs[..count]).copied().collect())
                    .collect()
            };
            sets = sets.iter().flat_map(longer).collect();
        }
        sets.retain(|set| set.len() == size);
        sets
    }

    fn add(&mut self, node: usize, device: usize, mut inputs: Vec<u32>) {
        let problem = self.problem;
        let figures = &problem.nodes[node];
        if figures.pin.is_some_and(|pin| pin != device) {
            return;
        }
        let Some(time) = figures.time.get(&(inputs.len() as u32)).and_then(|times| times[device]) else { return };
        for group in problem.colocate.iter().flatten().filter(|group| group.contains(&node)) {
            let others = group.iter().flat_map(|other| inputs.iter().filter_map(|input| self.of(*other, *input)));
            if others.into_iter().any(|launch| self.done[launch].batch.device != device) {
                return;
            }
        }
        let mut start = self.free[device];
        for &(from, _, bytes) in self.edges.iter().filter(|edge| edge.1 == node) {
            for (index, producer) in self.done.iter().enumerate().filter(|(_, done)| done.batch.node == from) {
                let common = inputs.iter().filter(|input| self.of(from, **input) == Some(index)).count();
                if common > 0 {
                    let Some(moving) = moving(self.problem, producer.batch.device, device, common as f64 * bytes)
                    else {
                        return;
                    };
                    start = start.max(producer.end + moving);
                }
            }
        }
        // In the order of starts; at the same time, in the order of nodes, unless one reads the other's result.
        if let Some(last) = self.done.last() {
            let key = (start, node, device);
            let before = (last.batch.start, last.batch.node, last.batch.device);
            let reads = self.edges.iter().any(|edge| (edge.0, edge.1) == (last.batch.node, node));
            if start < last.batch.start
                || start == before.0
                    && !reads
                    && (key.1, key.2) < (before.1, before.2)
                    && last.end > last.batch.start
                    && time > Micros::ZERO
            {
                return;
            }
        }
        inputs.sort_unstable();
        let launch = self.done.len();
        for input in &inputs {
            self.launch_of[node * problem.inputs as usize + *input as usize] = Some(launch);
        }
        let before = std::mem::replace(&mut self.free[device], start + time);
        self.done.push(Done { batch: Batch { node, device, inputs: inputs.clone(), start }, end: start + time });
        self.extend();
        self.done.pop();
        self.free[device] = before;
        for input in &inputs {
            self.launch_of[node * problem.inputs as usize + *input as usize] = None;
        }
    }
}
