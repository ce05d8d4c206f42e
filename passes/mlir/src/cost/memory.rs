//! Memory of a module that runs on a single device.

use super::read::Costs;
use crate::{
    ir::value_bytes,
    tasks::{is_constant_value, is_weight, reads, task_kind},
};
use divi_cost::{
    Bytes, Class, MemoryGraph, MemoryTask, MemoryTensor,
    memory::{ConstantId, TaskId, TensorId},
};
use divi_dialect::{Operation, Value};
use divi_onnx::Op;
use rustc_hash::FxHashMap;

/// Returns the peak memory of all tasks in the order of the IR at a batch size: weights once, activations over their
/// live ranges, and scratch memory.
pub(super) fn peak(costs: &Costs<'_>, batch: u32) -> Bytes {
    let mut graph = Builder::default();
    for &argument in &costs.function.arguments {
        graph.tensor(argument, None);
    }
    let mut tasks = vec![];
    for task in &costs.tasks {
        let values = reads(task.operation);
        let constants = values.iter().filter(|&&value| is_weight(value)).map(|&value| graph.constant(value)).collect();
        let computed = values.iter().filter(|&&value| !is_constant_value(value));
        let reads: Vec<TensorId> = computed.map(|value| graph.tensors_of[value]).collect();
        let shown = reads.first().copied().filter(|_| is_view(task.operation));
        let writes = task.operation.results().into_iter().map(|result| graph.tensor(result, shown)).collect();
        tasks.push(MemoryTask { reads, writes, constants, scratch: Bytes(task.scratch_bytes) });
    }
    for value in &costs.function.returned {
        if let Some(tensor) = graph.tensors_of.get(value) {
            graph.tensors[tensor.0].is_output = true;
        }
    }
    let order: Vec<TaskId> = (0..tasks.len()).map(TaskId).collect();
    let peak = MemoryGraph::new(graph.tensors, graph.constants, tasks)
        .and_then(|graph| graph.at_batch(batch.into()).peak(&order));
    peak.expect("values are defined once, before they are used").bytes
}

/// Returns true if a task's result is its first operand under another type, in the same memory.
fn is_view(task: Operation<'_>) -> bool {
    match task_kind(task) {
        "view" => task.operand_count() > 0 && bytes_of(task.operand(0)) == bytes_of(task.result(0)),
        kind => Op::from_name(kind).is_some_and(|op| op.class() == Class::View && !matches!(op, Op::Shape | Op::Size)),
    }
}

#[derive(Default)]
struct Builder<'m> {
    tensors: Vec<MemoryTensor>,
    constants: Vec<Bytes>,
    tensors_of: FxHashMap<Value<'m>, TensorId>,
    constants_of: FxHashMap<Value<'m>, ConstantId>,
}

impl<'m> Builder<'m> {
    fn tensor(&mut self, value: Value<'m>, alias: Option<TensorId>) -> TensorId {
        let id = TensorId(self.tensors.len());
        self.tensors.push(MemoryTensor { bytes: bytes_of(value), alias, is_output: false });
        self.tensors_of.insert(value, id);
        id
    }

    fn constant(&mut self, value: Value<'m>) -> ConstantId {
        let next = ConstantId(self.constants.len());
        let id = *self.constants_of.entry(value).or_insert(next);
        if id == next {
            self.constants.push(bytes_of(value));
        }
        id
    }
}

fn bytes_of(value: Value<'_>) -> Bytes {
    Bytes(value_bytes(value))
}
