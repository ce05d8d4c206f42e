//! Tests of peaks against values by hand and against a simulation that checks every tensor at every task.

use super::*;
use crate::testing::Random;

fn tensor(bytes: u64) -> MemoryTensor {
    MemoryTensor { bytes: Bytes(bytes), ..MemoryTensor::default() }
}

fn task(reads: &[usize], writes: &[usize]) -> MemoryTask {
    let ids = |ids: &[usize]| ids.iter().copied().map(TensorId).collect();
    MemoryTask { reads: ids(reads), writes: ids(writes), ..MemoryTask::default() }
}

fn order(tasks: &[usize]) -> Vec<TaskId> {
    tasks.iter().copied().map(TaskId).collect()
}

/// Returns a graph with tensors of these sizes, the last of which the model returns.
fn graph(sizes: &[u64], tasks: Vec<MemoryTask>) -> MemoryGraph {
    let mut tensors: Vec<_> = sizes.iter().copied().map(tensor).collect();
    tensors.last_mut().expect("a model returns something").is_output = true;
    MemoryGraph::new(tensors, vec![], tasks).expect("a graph")
}

/// Returns a chain of tensors 0 (the input, 100 bytes), 1 (10), 2 (20) and 3 (5).
fn chain() -> MemoryGraph {
    graph(&[100, 10, 20, 5], vec![task(&[0], &[1]), task(&[1], &[2]), task(&[2], &[3])])
}

#[test]
fn two_tensors_of_a_chain_are_live() {
    let peak = chain().peak(&order(&[0, 1, 2])).expect("a peak");
    assert_eq!((peak.bytes, peak.activations, peak.at), (Bytes(100 + 10), Bytes(100 + 10), Some(TaskId(0))));
    // Without the first task, tensor 1 arrives.
    let peak = chain().peak(&order(&[1, 2])).expect("a peak");
    assert_eq!((peak.bytes, peak.at), (Bytes(10 + 20), Some(TaskId(1))));
    assert_eq!(chain().peak(&[]).expect("a peak"), Peak::default());
}

#[test]
fn outgoing_results_are_live_to_the_end() {
    // Task 2 is elsewhere: it reads 1, which is live while 4 and 5 are computed.
    let graph = graph(
        &[100, 10, 20, 5, 40, 50],
        vec![task(&[0], &[1]), task(&[1], &[2]), task(&[1], &[3]), task(&[2], &[4]), task(&[4], &[5])],
    );
    let here = order(&[0, 1, 3, 4]);
    let peak = graph.peak(&here).expect("a peak");
    assert_eq!((peak.bytes, peak.at), (Bytes(100 + 10), Some(TaskId(0))));
    let early = graph.peak_with(&here, |_| LiveRange { first: None, last: Some(1) }).expect("a peak");
    assert_eq!(early.bytes, Bytes(100 + 10));
    let last = order(&[1, 3, 4]);
    assert_eq!(graph.peak(&last).expect("a peak").bytes, Bytes(40 + 50));
    // The outgoing tensor of 10 bytes is live while that of 50 is computed, unless its transfer ends early.
    let mut small = graph.clone();
    small.tensors[0].bytes = Bytes(1);
    assert_eq!(small.peak(&here).expect("a peak").bytes, Bytes(10 + 40 + 50));
    let early = small.peak_with(&here, |_| LiveRange { first: None, last: Some(1) }).expect("a peak");
    assert_eq!(early.bytes, Bytes(40 + 50));
}

#[test]
fn incoming_tensors_are_live_from_the_start_by_default() {
    // Task 2 adds an input (7) to the end of a chain.
    let graph = graph(&[1, 50, 2, 7, 3], vec![task(&[0], &[1]), task(&[1], &[2]), task(&[2, 3], &[4])]);
    let all = order(&[0, 1, 2]);
    let peak = graph.peak(&all).expect("a peak");
    assert_eq!((peak.bytes, peak.at), (Bytes(50 + 2 + 7), Some(TaskId(1))));
    let late = graph.peak_with(&all, |_| LiveRange { first: Some(2), last: None }).expect("a peak");
    assert_eq!((late.bytes, late.at), (Bytes(50 + 2), Some(TaskId(1))));
    // The first reader limits the arrival.
    let never = graph.peak_with(&all, |_| LiveRange { first: Some(9), last: None }).expect("a peak");
    assert_eq!(never, late);
}

#[test]
fn constants_are_counted_once() {
    let mut tasks = vec![task(&[0], &[1]), task(&[1], &[2]), task(&[2], &[3])];
    tasks[0].constants = vec![ConstantId(0), ConstantId(1)];
    tasks[1].constants = vec![ConstantId(1), ConstantId(1)];
    tasks[2].constants = vec![ConstantId(2)];
    let tensors = vec![tensor(1); 4];
    let graph = MemoryGraph::new(tensors, vec![Bytes(1000), Bytes(200), Bytes(30)], tasks).expect("a graph");
    let weights = |tasks: &[usize]| graph.peak(&order(tasks)).expect("a peak").weights;
    assert_eq!(weights(&[0, 1]), Bytes(1000 + 200));
    assert_eq!(weights(&[1, 2]), Bytes(200 + 30));
    assert_eq!(weights(&[]), Bytes(0));
}

#[test]
fn scratch_counts_while_its_task_runs() {
    let mut tasks = vec![task(&[0], &[1]), task(&[1], &[2])];
    tasks[1].scratch = Bytes(500);
    let graph = graph(&[100, 10, 20], tasks);
    let peak = graph.peak(&order(&[0, 1])).expect("a peak");
    let expected = Peak {
        bytes: Bytes(10 + 20 + 500),
        weights: Bytes(0),
        activations: Bytes(10 + 20),
        scratch: Bytes(500),
        at: Some(TaskId(1)),
    };
    assert_eq!(peak, expected);
}

#[test]
fn batches_scale_activations_and_not_weights() {
    let mut tasks = vec![task(&[0], &[1])];
    tasks[0].scratch = Bytes(3);
    tasks[0].constants = vec![ConstantId(0)];
    let graph = MemoryGraph::new(vec![tensor(10), tensor(20)], vec![Bytes(1000)], tasks).expect("a graph");
    let peak = graph.at_batch(8).peak(&order(&[0])).expect("a peak");
    assert_eq!(peak.bytes, Bytes(1000 + 8 * (10 + 20 + 3)));
}

#[test]
fn views_share_memory() {
    let mut tensors = vec![tensor(1), tensor(100), tensor(100), tensor(7), tensor(8)];
    tensors[2].alias = Some(TensorId(1));
    // 0 -> 1 -> view 2 -> 3 -> 4, the model's output.
    tensors[4].is_output = true;
    let tasks = vec![task(&[0], &[1]), task(&[1], &[2]), task(&[2], &[3]), task(&[3], &[4])];
    let graph = MemoryGraph::new(tensors, vec![], tasks).expect("a graph");
    let peak = graph.peak(&order(&[0, 1, 2, 3])).expect("a peak");
    assert_eq!((peak.bytes, peak.at), (Bytes(100 + 7), Some(TaskId(2))));
    // The view is created elsewhere: it is an incoming tensor with its own buffer, and its operand is outgoing.
    let peak = graph.peak(&order(&[0, 2, 3])).expect("a peak");
    assert_eq!((peak.bytes, peak.at), (Bytes(100 + 100 + 7), Some(TaskId(2))));
}

#[test]
fn sums_beyond_64_bits_saturate() {
    let graph = graph(&[u64::MAX, u64::MAX, 5], vec![task(&[0], &[1]), task(&[1], &[2])]).at_batch(3);
    assert_eq!(graph.peak(&order(&[0, 1])).expect("a peak").bytes, Bytes(u64::MAX));
}

#[test]
fn long_chains_take_linear_time() {
    let length = 200_000;
    let tasks = (0..length).map(|i| task(&[i], &[i + 1])).collect();
    let graph = graph(&vec![3; length + 1], tasks);
    let all: Vec<_> = (0..length).map(TaskId).collect();
    assert_eq!(graph.peak(&all).expect("a peak").bytes, Bytes(3 + 3));
}

#[test]
fn contradictions_are_errors() {
    let fails = |error: MemoryError, message: &str| assert_eq!(error.to_string(), message);
    let make = |tensors: Vec<MemoryTensor>, tasks| MemoryGraph::new(tensors, vec![], tasks).expect_err("an error");
    fails(make(vec![], vec![task(&[3], &[])]), "task 0 names tensor 3, which does not exist");
    fails(make(vec![tensor(1)], vec![task(&[], &[0]), task(&[], &[0])]), "tasks 0 and 1 both write tensor 0");
    let mut no_weights = task(&[], &[]);
    no_weights.constants = vec![ConstantId(2)];
    fails(make(vec![], vec![no_weights]), "task 0 names constant 2, which does not exist");
    let aliased = MemoryTensor { alias: Some(TensorId(0)), ..tensor(1) };
    fails(
        make(vec![tensor(1), aliased], vec![task(&[], &[1])]),
        "tensor 1 shares the memory of tensor 0, which is not an operand of the task that writes it",
    );
    let wrong = |tasks: &[usize]| chain().peak(&order(tasks)).expect_err("an error");
    fails(wrong(&[0, 9]), "task 9 does not exist");
    fails(wrong(&[0, 0]), "task 0 is in the order twice");
    fails(wrong(&[1, 0]), "task 1 reads tensor 1 before task 0, which writes it: swap them");
}

impl Random {
    fn graph(&mut self) -> MemoryGraph {
        let inputs = 1 + self.below(3);
        let mut tensors: Vec<_> = (0..inputs).map(|_| tensor(self.below(100) as u64)).collect();
        let constants: Vec<_> = (0..4).map(|_| Bytes(self.below(1000) as u64)).collect();
        let mut tasks = vec![];
        for _ in 0..1 + self.below(12) {
            let reads: Vec<_> = (0..self.below(4)).map(|_| self.below(tensors.len())).collect();
            let mut writes = vec![];
            for _ in 0..self.below(3) {
                let mut result = tensor(self.below(100) as u64);
                result.is_output = self.below(8) == 0;
                result.alias = (self.below(3) == 0).then(|| reads.first().copied().map(TensorId)).flatten();
                writes.push(tensors.len());
                tensors.push(result);
            }
            let mut made = task(&reads, &writes);
            made.scratch = Bytes(self.below(50) as u64);
            made.constants = (0..self.below(3)).map(|_| ConstantId(self.below(4))).collect();
            tasks.push(made);
        }
        MemoryGraph::new(tensors, constants, tasks).expect("a graph")
    }

    /// Returns a random subset of the tasks in a topological order.
    fn order(&mut self, graph: &MemoryGraph) -> Vec<TaskId> {
        let mut waiting: Vec<_> = (0..graph.tasks.len()).filter(|_| self.below(3) > 0).map(TaskId).collect();
        let mut order = vec![];
        while !waiting.is_empty() {
            let ready = |task: &TaskId| {
                let needs = |other: &TaskId| {
                    graph.tasks[other.0].writes.iter().any(|tensor| graph.tasks[task.0].reads.contains(tensor))
                };
                !waiting.iter().any(needs)
            };
            let ready: Vec<_> = waiting.iter().copied().filter(ready).collect();
            let chosen = ready[self.below(ready.len())];
            waiting.retain(|&task| task != chosen);
            order.push(chosen);
        }
        order
    }
}

/// Returns the peak by checking, at each task, whether each tensor is live.
fn simulated(graph: &MemoryGraph, order: &[TaskId], live_range: &dyn Fn(TensorId) -> LiveRange) -> u64 {
    let is_here = |task: TaskId| order.contains(&task);
    let position = |task: TaskId| order.iter().position(|&other| other == task).expect("a task of the set");
    let writer =
        |tensor: TensorId| (0..graph.tasks.len()).map(TaskId).find(|t| graph.tasks[t.0].writes.contains(&tensor));
    let root = |mut tensor: TensorId| {
        while let (Some(alias), Some(true)) = (graph.tensors[tensor.0].alias, writer(tensor).map(is_here)) {
            tensor = alias;
        }
        tensor
    };
    let touches = |task: TaskId, tensor: TensorId| {
        graph.tasks[task.0].reads.contains(&tensor) || graph.tasks[task.0].writes.contains(&tensor)
    };
    let end = order.len().saturating_sub(1);
    let span = |tensor: TensorId| {
        let uses: Vec<_> = order.iter().filter(|&&task| touches(task, tensor)).map(|&task| position(task)).collect();
        let (mut first, mut last) = (*uses.first()?, *uses.last()?);
        match writer(tensor).filter(|&task| is_here(task)) {
            Some(_) => {
                let tasks = (0..graph.tasks.len()).map(TaskId);
                let read_elsewhere = tasks.filter(|&t| !is_here(t)).any(|t| graph.tasks[t.0].reads.contains(&tensor));
                if read_elsewhere || graph.tensors[tensor.0].is_output {
                    last = last.max(live_range(tensor).last.unwrap_or(end).min(end));
                }
            }
            None => first = first.min(live_range(tensor).first.unwrap_or(0)),
        }
        Some((first, last))
    };
    let mut constants: Vec<_> = order.iter().flat_map(|task| graph.tasks[task.0].constants.clone()).collect();
    constants.sort_unstable();
    constants.dedup();
    let weights: u64 = constants.iter().map(|constant| graph.constants[constant.0].0).sum();
    let all = || (0..graph.tensors.len()).map(TensorId);
    let mut peak = weights;
    for (now, task) in order.iter().enumerate() {
        let mut sum = weights + graph.tasks[task.0].scratch.0;
        for owner in all() {
            let sharing: Vec<_> = all().filter(|&tensor| root(tensor) == owner && span(tensor).is_some()).collect();
            let spans: Vec<_> = sharing.iter().filter_map(|&tensor| span(tensor)).collect();
            let is_live = spans.iter().any(|span| span.0 <= now) && spans.iter().any(|span| now <= span.1);
            if is_live {
                sum += sharing.iter().map(|tensor| graph.tensors[tensor.0].bytes.0).max().unwrap_or(0);
            }
        }
        peak = peak.max(sum);
    }
    peak
}

#[test]
fn agrees_with_a_simulation() {
    let mut random = Random::new();
    let mut peaks = 0;
    for _ in 0..600 {
        let graph = random.graph();
        for _ in 0..2 {
            let order = random.order(&graph);
            let stays: Vec<_> = (0..graph.tensors.len())
                .map(|_| {
                    let mut some = || (random.below(2) == 0).then(|| random.below(12));
                    LiveRange { first: some(), last: some() }
                })
                .collect();
            let known = |tensor: TensorId| stays[tensor.0];
            let peak = graph.peak_with(&order, known).expect("a peak");
            assert_eq!(peak.bytes.0, simulated(&graph, &order, &known), "{graph:#?} in {order:?} with {stays:?}");
            assert_eq!(peak.bytes, peak.weights + peak.activations + peak.scratch);
            assert!(peak.bytes <= graph.peak(&order).expect("a peak").bytes, "knowing more never needs more");
            peaks += u64::from(peak.activations.0 > 0);
        }
    }
    assert!(peaks > 600, "most cases are not empty");
}
