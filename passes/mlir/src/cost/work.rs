//! Work of a module's tasks at any batch size.

use super::linalg;
use crate::{
    ir::{Failure, byte_length, describe, error, value_bytes},
    rebatch::Rebatched,
    tasks::{is_constant, is_constant_value, is_placed, is_weight, members, outer_value, reads},
};
use divi_cost::{Class, Geometry, Task, Work, work::work};
use divi_dialect::{
    Operation, Value,
    node::{attributes_of, present_results},
    op,
};
use divi_onnx::{DType, Dim, Node, Op, TensorType, Value as Known};
use rustc_hash::FxHashSet;

/// Counts the work of tasks at one batch size.
pub(super) struct Counter<'a, 'm> {
    rebatched: &'a Rebatched<'m>,
    /// Operations with a result of dynamic size. Each dynamic dimension is counted as 1.
    pub(super) open: Vec<Operation<'m>>,
}

impl<'a, 'm> Counter<'a, 'm> {
    pub(super) fn new(rebatched: &'a Rebatched<'m>) -> Self {
        Self { rebatched, open: vec![] }
    }

    /// Returns the work of a task. Values between members of a cluster count neither as read nor as written.
    pub(super) fn task(&mut self, task: Operation<'m>) -> Result<Task, Failure> {
        let before = self.open.len();
        let counted = self.count(task);
        // A task is listed once, however many of its members have such results.
        self.open.truncate(before + usize::from(self.open.len() > before));
        counted
    }

    fn count(&mut self, task: Operation<'m>) -> Result<Task, Failure> {
        if task.name() != op::CLUSTER {
            return Ok(self.operation(task)?.into());
        }
        let mut counted = vec![];
        let (mut read, mut weights, mut placed) = (0u64, 0u64, 0u64);
        let mut seen = FxHashSet::default();
        for member in members(task) {
            let work = self.operation(member)?;
            let mut passed = 0u64;
            for operand in member.operands() {
                let outer = outer_value(operand);
                let is_passed = outer.defining_op().is_some_and(|definer| definer.is_inside(task));
                if !is_constant_value(operand) && (is_passed || !seen.insert(outer)) {
                    passed = passed.saturating_add(self.bytes(operand));
                }
            }
            read = read.saturating_add(work.read.saturating_sub(passed));
            weights = weights.saturating_add(work.weights);
            placed = placed.saturating_add(self.placed_bytes(member));
            counted.push(work);
        }
        let written = task.results().into_iter().map(|result| self.bytes(result)).fold(0, u64::saturating_add);
        Ok(Task { members: counted, read, weights, written: written.saturating_sub(placed) })
    }

    fn operation(&mut self, operation: Operation<'m>) -> Result<Work, Failure> {
        self.note_open_results(operation);
        let nested = operation.children();
        if operation.name().starts_with("linalg.") {
            let moved = self.moved(operation);
            return Ok(linalg::work(operation, moved).unwrap_or(moved));
        }
        if !nested.is_empty() {
            return self.control_flow(operation, &nested);
        }
        match operation.op().filter(|op| op.is_inferred()) {
            Some(op) => self.operator(operation, op),
            None => Ok(self.moved(operation)),
        }
    }

    /// Returns the work of an ONNX operator. If the rank of an operand is unknown, only its bytes are counted: the
    /// rules need shapes.
    fn operator(&mut self, operation: Operation<'m>, op: Op) -> Result<Work, Failure> {
        let values = self.rebatched.operands_of(operation);
        if values.iter().flatten().any(|value| value.ty.shape.is_none()) {
            return Ok(self.moved(operation));
        }
        let is_open = values.iter().flatten().any(|value| !value.ty.is_static());
        let values: Vec<_> = values.into_iter().map(|value| value.map(closed)).collect();
        let inputs: Vec<_> = values.iter().map(Option::as_ref).collect();
        let attributes = attributes_of(operation);
        let node = Node { op, inputs: &inputs, attributes: &attributes, outputs: present_results(operation) };
        let results: Vec<_> = self.result_types(operation);
        let constant: Vec<_> = operation.operands().iter().map(|&operand| is_constant_value(operand)).collect();
        match work(&node, &results, &constant) {
            Ok(work) => Ok(work.without_copies(self.placed_bytes(operation))),
            // Sizes assumed for dynamic dimensions may contradict each other.
            Err(_) if is_open => Ok(self.moved(operation)),
            Err(message) => {
                error(operation, &format!("{} {message}", describe(operation)));
                Err(Failure)
            }
        }
    }

    /// Returns the bytes of the operands of a concatenation that are computed inside its result.
    fn placed_bytes(&self, operation: Operation<'m>) -> u64 {
        let placed = operation.operands().into_iter().filter(|&operand| is_placed(operation, operand));
        placed.map(|operand| self.bytes(operand)).fold(0, u64::saturating_add)
    }

    /// Returns the work of control flow: both branches of an If and one iteration of a Loop, as nothing more is known
    /// statically.
    fn control_flow(&mut self, operation: Operation<'m>, nested: &[Operation<'m>]) -> Result<Work, Failure> {
        let mut total = self.moved(operation);
        total.flops = 0;
        for &inner in nested {
            if is_constant(inner) {
                continue;
            }
            let work = self.operation(inner)?;
            total.flops = total.flops.saturating_add(work.flops);
            total.weights = total.weights.saturating_add(work.weights);
            total.resident_weights = total.resident_weights.saturating_add(work.resident_weights);
            total.read = total.read.saturating_add(work.read);
            total.written = total.written.saturating_add(work.written);
            total.scratch = total.scratch.max(work.scratch);
        }
        Ok(total)
    }

    /// Returns the work of an operation without a rule: its bytes, and one operation per element of the results.
    fn moved(&self, operation: Operation<'m>) -> Work {
        let reads = reads(operation);
        let bytes = |is_counted: &dyn Fn(Value<'m>) -> bool| {
            let values = reads.iter().copied().filter(|&value| is_counted(value));
            values.map(|value| self.bytes(value)).fold(0, u64::saturating_add)
        };
        let types = self.result_types(operation);
        let count = types.iter().filter_map(TensorType::count).map(|count| count.max(0) as u64);
        let count = count.fold(0, u64::saturating_add);
        let weights = bytes(&is_weight);
        Work {
            class: Class::Other,
            flops: count,
            read: bytes(&|value| !is_constant_value(value)),
            weights,
            resident_weights: weights,
            written: operation.results().into_iter().map(|result| self.bytes(result)).fold(0, u64::saturating_add),
            scratch: 0,
            dtype: types.first().map_or(DType::F32, |ty| ty.dtype),
            geometry: Geometry::Elements { count },
        }
    }

    fn bytes(&self, value: Value<'m>) -> u64 {
        self.rebatched.type_of(value).map_or_else(|| value_bytes(value), |ty| byte_length(&ty))
    }

    /// Returns the types of the present results, for one run.
    fn result_types(&self, operation: Operation<'m>) -> Vec<TensorType> {
        let types = operation.results().into_iter().filter_map(|result| self.rebatched.result_of(operation, result));
        types.map(counted).collect()
    }

    fn note_open_results(&mut self, operation: Operation<'m>) {
        let open = |result: Value<'m>| self.rebatched.type_of(result).is_some_and(|ty| !ty.is_static());
        if operation.results().into_iter().any(|result| !result.is_none() && open(result)) {
            self.open.push(operation);
        }
    }
}

/// Replaces dynamic dimensions of a type by 1.
fn counted(ty: TensorType) -> TensorType {
    let close = |dim: Dim| Dim::Known(dim.known().unwrap_or(1));
    TensorType { shape: Some(ty.shape.unwrap_or_default().into_iter().map(close).collect()), dtype: ty.dtype }
}

fn closed(value: Known) -> Known {
    Known { ty: counted(value.ty), content: value.content }
}

/// Bytes that a task reads and writes, at the module's own batch size.
pub(super) struct Traffic {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) weight: u64,
}

impl Traffic {
    pub(super) fn of(task: Operation<'_>) -> Self {
        let bytes = |values: &mut dyn Iterator<Item = Value<'_>>| values.map(value_bytes).fold(0, u64::saturating_add);
        let reads = reads(task);
        Self {
            input: bytes(&mut reads.iter().copied().filter(|&value| !is_constant_value(value))),
            output: bytes(&mut task.results().into_iter()),
            weight: bytes(&mut reads.iter().copied().filter(|&value| is_weight(value))),
        }
    }
}

/// Returns true if only the host can hold a value: strings, sequences, optionals and anything else but numeric tensors.
pub(super) fn is_host_only(value: Value<'_>) -> bool {
    let ty = value.tensor_type();
    !value.is_none() && ty.is_none_or(|ty| ty.dtype == DType::String)
}
