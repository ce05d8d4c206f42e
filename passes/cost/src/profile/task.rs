//! Task of an entry.

use super::{Entry, Member};
use crate::work::{Work, opaque_work, work};
use crate::{Class, Task};
use divi_onnx::infer::infer;
use divi_onnx::{Attr, DType, Dim, Error, Node, Op, TensorType, Value, schema};
use std::collections::VecDeque;

/// Operands of an entry that are not assigned to an operator yet.
struct Pool {
    data: VecDeque<Vec<u64>>,
    /// `None` if the weights of the entry are unknown.
    weights: Option<VecDeque<Vec<u64>>>,
}

/// Shape of an operand, and true if it is constant.
type Taken = (Vec<u64>, bool);

impl Entry {
    /// Returns the task at a batch size.
    ///
    /// Without the types of their values, the operators form a chain: each takes the result of its predecessor, and further
    /// operands from those of the entry, in order. If the weights of the entry are unknown, they are derived from its shapes,
    /// without biases.
    pub fn task(&self, batch: u64) -> Result<Task, Error> {
        match &self.types {
            Some(types) => self.typed_task(types, batch),
            None => self.chain(batch),
        }
    }

    fn chain(&self, batch: u64) -> Result<Task, Error> {
        let scaled = |shape: &Vec<u64>| scale(shape, batch);
        let mut pool = Pool {
            data: self.inputs.iter().map(scaled).collect(),
            weights: self.weights.as_ref().map(|weights| weights.iter().cloned().collect()),
        };
        let outputs: Vec<TensorType> = self.outputs.iter().map(|shape| self.ty(&scale(shape, batch))).collect();
        let mut members = vec![];
        let mut flow: Option<TensorType> = None;
        for (index, op) in self.ops.iter().enumerate() {
            let failed = |error: Error| Error::new(format!("{}: {error}", op.name));
            let first = match flow.take() {
                Some(ty) => (ty, false),
                None => pool
                    .data
                    .pop_front()
                    .map(|shape| (self.ty(&shape), false))
                    .ok_or_else(|| failed(Error::new("needs an operand")))?,
            };
            let rest = self.further(index, &first.0, &mut pool);
            // The further operand of a view is a shape, or a list of axes.
            let is_view = op.known().is_some_and(Op::is_view);
            let further_type = |shape: &[u64]| match self.ty(shape) {
                ty if is_view => TensorType { dtype: DType::I64, ..ty },
                ty => ty,
            };
            let operands: Vec<(Value, bool)> = std::iter::once(first)
                .chain(rest.into_iter().map(|(shape, is_constant)| (further_type(&shape), is_constant)))
                .map(|(ty, is_constant)| (Value::new(ty), is_constant))
                .collect();
            let inputs: Vec<Option<&Value>> = operands.iter().map(|(value, _)| Some(value)).collect();
            let constant: Vec<bool> = operands.iter().map(|(_, is_constant)| *is_constant).collect();
            let attributes = &op.attributes;
            let node = op.known().map(|op| Node { op, inputs: &inputs, attributes, outputs: 1 });
            let is_last = index + 1 == self.ops.len();
            let results = match &node {
                _ if is_last => outputs.clone(),
                Some(node) => infer(node).map_err(failed)?,
                None => return Err(failed(Error::new(format!("has no rule for the operator {}", op.name)))),
            };
            let counted = match &node {
                Some(node) => work(node, &results, &constant),
                None => opaque_work(&inputs, &results, &constant),
            };
            members.push(counted.map_err(failed)?);
            flow = results.into_iter().next();
        }
        let left = pool.data.len() + pool.weights.map_or(0, |weights| weights.len());
        if left > 0 {
            return Err(Error::new(format!("{left} of its operands are not used by its operators")));
        }
        Ok(match &members[..] {
            [member] => Task::from(*member),
            _ => self.cluster(members, batch),
        })
    }

    /// Returns the task of a cluster, whose traffic is that of the entry's operands and results.
    fn cluster(&self, members: Vec<Work>, batch: u64) -> Task {
        let bytes = |shapes: &[Vec<u64>], batch: u64| {
            let count =
                |shape: &Vec<u64>| scale(shape, batch).iter().fold(1, |count: u64, &size| count.saturating_mul(size));
            let bytes = |shape| self.dtype.byte_len(count(shape)).unwrap_or(u64::MAX);
            shapes.iter().map(bytes).fold(0, u64::saturating_add)
        };
        let weights = match &self.weights {
            Some(weights) => bytes(weights, 1),
            None => members.iter().map(|member| member.weights).fold(0, u64::saturating_add),
        };
        Task { members, read: bytes(&self.inputs, batch), weights, written: bytes(&self.outputs, batch) }
    }

    fn ty(&self, shape: &[u64]) -> TensorType {
        let dims: Vec<Dim> = shape.iter().map(|&size| Dim::Known(i64::try_from(size).unwrap_or(i64::MAX))).collect();
        TensorType::new(self.dtype, dims)
    }

    /// Removes the operands of an operator after its first from the pool and returns them.
    fn further(&self, index: usize, first: &TensorType, pool: &mut Pool) -> Vec<Taken> {
        let op = &self.ops[index];
        let later = &self.ops[index + 1..];
        let needs = needs(op);
        if needs.is_variadic {
            return pool.data.drain(..).map(|shape| (shape, false)).collect();
        }
        let mut taken = vec![];
        let Some(weights) = &mut pool.weights else {
            taken.extend((0..needs.either).filter_map(|_| pool.data.pop_front()).map(|shape| (shape, false)));
            if taken.is_empty() {
                taken.extend(self.derived_weights(op, first).into_iter().map(|shape| (shape, true)));
            }
            return taken;
        };
        for _ in 0..needs.either {
            let data = pool.data.pop_front().map(|shape| (shape, false));
            taken.extend(data.or_else(|| weights.pop_front().map(|shape| (shape, true))));
        }
        let reserved: usize = later.iter().map(|op| needs_of_weights(op, pool.data.len())).sum();
        let spare = weights.len().saturating_sub(needs.constants + reserved);
        let constants = needs.constants + needs.optional.min(spare);
        taken.extend((0..constants).filter_map(|_| weights.pop_front()).map(|shape| (shape, true)));
        taken
    }

    /// Returns the shapes of the weights that the shapes of an operator imply.
    fn derived_weights(&self, op: &Member, first: &TensorType) -> Vec<Vec<u64>> {
        let sizes = |ty: &TensorType| -> Vec<u64> {
            ty.static_shape().unwrap_or_default().into_iter().map(i64::unsigned_abs).collect()
        };
        let (x, y) = (sizes(first), self.outputs.first().cloned().unwrap_or_default());
        let channels = |shape: &[u64]| shape.get(1).copied().unwrap_or(1);
        let last = |shape: &[u64]| shape.last().copied().unwrap_or(1);
        let int = |name: &str| match op.attributes.get(name) {
            Some(Attr::Int(value)) => value.unsigned_abs(),
            _ => 0,
        };
        match op.known().map(Op::onnx_op) {
            Some(Op::Conv) => {
                let kernel = match op.attributes.get("kernel_shape") {
                    Some(Attr::Ints(kernel)) => kernel.iter().map(|size| size.unsigned_abs()).collect(),
                    _ => vec![1; x.len().saturating_sub(2)],
                };
                vec![[vec![channels(&y), channels(&x) / int("group").max(1)], kernel].concat()]
            }
            Some(Op::MatMul) => vec![vec![last(&x), last(&y)]],
            Some(Op::Gemm) if int("transB") == 1 => vec![vec![last(&y), last(&x)]],
            Some(Op::Gemm) => vec![vec![last(&x), last(&y)]],
            Some(Op::BatchNormalization) => vec![vec![channels(&x)]; 4],
            Some(Op::LayerNormalization) => vec![vec![last(&x)]],
            _ => vec![],
        }
    }
}

/// Operands of an operator after its first.
struct Needs {
    /// True if it takes any number of operands.
    is_variadic: bool,
    /// Number of operands that may be computed or constant.
    either: usize,
    /// Number of operands that are constant.
    constants: usize,
    /// Number of optional constants.
    optional: usize,
}

fn needs(op: &Member) -> Needs {
    let known = op.known();
    let Some(schema) = schema::find(known.map_or(&op.name, |op| op.onnx_op().name())) else {
        return Needs { is_variadic: true, either: 0, constants: 0, optional: 0 };
    };
    let required = schema.inputs.required.saturating_sub(1);
    let optional = schema.inputs.named.saturating_sub(schema.inputs.required);
    let has_weights = known.is_some_and(|op| {
        matches!(op.class(), Class::Conv | Class::BatchNorm | Class::Normalization | Class::Recurrent) || op == Op::Gemm
    });
    let (either, constants) = if has_weights { (0, required) } else { (required, 0) };
    Needs { is_variadic: schema.inputs.variadic, either, constants, optional }
}

/// Returns the number of constants that a later operator requires, given the number of remaining computed operands.
fn needs_of_weights(op: &Member, data: usize) -> usize {
    let needs = needs(op);
    needs.constants + needs.either.saturating_sub(data)
}

/// Returns a shape at a batch size.
fn scale(shape: &[u64], batch: u64) -> Vec<u64> {
    match shape {
        [first, rest @ ..] => [&[first.saturating_mul(batch)], rest].concat(),
        [] => vec![],
    }
}
