//! Other batch sizes: what a function's values become at a multiple of its batch, and `divi-rebatch`, which makes them so.
//!
//! The batch of a function is the size of the first dimension of its first argument that has one. Every argument whose first
//! dimension has that size is batched; others (scalars, positions, tables) are the same for all inputs. From there the
//! batch is followed through the operators, wherever it goes: to other axes, into a dimension that it is merged with, and
//! out again. What an operator computes from unbatched operands alone is the same for all inputs and computed once.
//!
//! An operator that mixes the inputs of a batch (a reduction or a softmax over it), or that divi cannot prove not to, runs
//! once for each multiple of the present batch, on its part, and its results are put together again.

mod analysis;
mod layout;
mod pass;
mod rewrite;
mod rules;

use crate::ir::{
    Failure, arguments_of, attribute, blocks, describe, error, operands, string_attribute, tensor_type_of_value, uses,
};
use analysis::Analysis;
use divi_dialect::node::value_of;
use divi_onnx::{Dim, Tensor, TensorType, Value};
use layout::scaled;
use mlir_sys::*;
use rules::Change;

pub use analysis::Batch;
pub use layout::Layout;
pub(crate) use pass::make;
pub use pass::rebatch;

/// What a function's values become at a multiple of its batch. The function is not changed, and must not be while this is
/// used.
///
/// A function whose batch is open stays as it is: its types hold for every batch.
pub struct Rebatched {
    analysis: Analysis,
}

/// The size of a function's batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// No argument has a first dimension.
    None,
    /// The first dimension is dynamic.
    Open,
    Size(i64),
}

impl Present {
    /// The first dimension of the first argument that has one.
    pub fn of(function: MlirOperation) -> Self {
        let Some(&entry) = blocks(function).first() else { return Self::None };
        let dims = arguments_of(entry).into_iter().filter_map(first_dimension);
        match dims.into_iter().next() {
            None => Self::None,
            Some(Dim::Known(size)) => Self::Size(size),
            Some(Dim::Symbol(_) | Dim::Unknown) => Self::Open,
        }
    }
}

fn first_dimension(value: MlirValue) -> Option<Dim> {
    tensor_type_of_value(value)?.shape?.first().copied()
}

/// What messages call a function.
fn describe_function(function: MlirOperation) -> String {
    match attribute(function, "sym_name").and_then(string_attribute) {
        Some(name) => format!("'func.func' op @{name}"),
        None => describe(function),
    }
}

impl Rebatched {
    /// Follows the batch through a function. Errors are emitted on the operations.
    pub fn of(function: MlirOperation, factor: i64) -> Result<Self, Failure> {
        if factor < 1 {
            error(function, &format!("{} cannot have {factor} times its batch", describe_function(function)));
            return Err(Failure);
        }
        Ok(Self { analysis: Analysis::of(function, factor)? })
    }

    /// The same for a function that was cut out of the one that this is of, and stands by itself. Its arguments stand for
    /// values of that one.
    pub(crate) fn part(&self, function: MlirOperation, arguments: &[MlirValue]) -> Result<Self, Failure> {
        Ok(Self { analysis: self.analysis.part(function, arguments)? })
    }

    /// The value's type at the new batch; `None` if it is no tensor.
    ///
    /// This is the type between operators, which is not always what an operator takes: a tensor that is the same for all
    /// inputs is repeated for an operator that does not broadcast, and [`Self::operands_of`] tells. A constant that all its
    /// users need repeated or changed has the type that they need. Operands and results of an operator that repeats are parts of it, and values
    /// inside a cluster that repeats have the types that they have in the module. A value that has no axis to put several
    /// runs on (a scalar that a mixing operator computes) has its type for one run.
    pub fn type_of(&self, value: MlirValue) -> Option<TensorType> {
        match self.common_change(value) {
            Some(Change::Constant(tensor)) => Some(Value::constant(tensor.clone()).ty),
            Some(&Change::Spread(axis)) => scaled(&tensor_type_of_value(value)?, axis, self.analysis.factor),
            None => self.scaled_type(value),
        }
    }

    /// What is known of a value at the new batch: its type and, for small constants, its elements. A constant that names
    /// the batch for all its users has the new elements; if they need different ones, only [`Self::operands_of`] tells.
    pub fn value_of(&self, value: MlirValue) -> Option<Value> {
        match self.common_change(value) {
            Some(change) => self.changed(value, change),
            None => self.unchanged(value),
        }
    }

    /// What is known of an operator's operands for one run of it: what `divi_onnx::infer` needs. `None` for absent operands
    /// and those that are no tensors.
    pub fn operands_of(&self, operation: MlirOperation) -> Vec<Option<Value>> {
        let operands = operands(operation).into_iter();
        if self.repeats(operation) {
            return operands.map(|value| self.analysis.known(value)).collect();
        }
        let value = |(i, value)| match self.change(operation, i) {
            Some(change) => self.changed(value, change),
            None => self.unchanged(value),
        };
        operands.enumerate().map(value).collect()
    }

    /// The type of an operator's result for one run of it.
    pub fn result_of(&self, operation: MlirOperation, result: MlirValue) -> Option<TensorType> {
        if self.repeats(operation) { tensor_type_of_value(result) } else { self.scaled_type(result) }
    }

    /// Whether an operator runs once for each multiple of the batch, because it mixes inputs. Each run has the types that
    /// the operator has in the module. A cluster repeats as a whole if a member does, and then all members do.
    pub fn repeats(&self, operation: MlirOperation) -> bool {
        self.analysis.repeats.contains(&operation.ptr)
    }

    /// The operators that repeat, in order; of a cluster that does, only the cluster.
    pub fn repeated(&self) -> &[MlirOperation] {
        &self.analysis.repeated
    }

    /// Where a value has the runs: nowhere, if it is the same in all of them.
    pub fn batch_of(&self, value: MlirValue) -> Batch {
        self.analysis.batch(value)
    }

    fn scaled_type(&self, value: MlirValue) -> Option<TensorType> {
        let ty = tensor_type_of_value(value)?;
        match self.analysis.batch(value) {
            Batch::At(layout) => scaled(&ty, layout.axis, self.analysis.factor),
            Batch::Same | Batch::Apart => Some(ty),
        }
    }

    fn change(&self, operation: MlirOperation, operand: usize) -> Option<&Change> {
        self.analysis.changes.get(&(operation.ptr, operand))
    }

    /// The change that all users of a constant make to it; a cluster's argument may be one.
    fn common_change(&self, value: MlirValue) -> Option<&Change> {
        if self.analysis.changes.is_empty() || !analysis::may_be_constant(value) {
            return None;
        }
        let mut changes = uses(value).into_iter().map(|(user, index)| match analysis::cluster_argument(user, index) {
            Some(argument) => self.common_change(argument),
            None => self.change(user, index as usize),
        });
        let first = changes.next()??;
        changes.all(|change| change == Some(first)).then_some(first)
    }

    fn changed(&self, value: MlirValue, change: &Change) -> Option<Value> {
        match change {
            Change::Constant(tensor) => Some(Value::constant(Tensor::clone(tensor))),
            &Change::Spread(axis) => {
                Some(Value::new(scaled(&tensor_type_of_value(value)?, axis, self.analysis.factor)?))
            }
        }
    }

    fn unchanged(&self, value: MlirValue) -> Option<Value> {
        match self.analysis.batch(value) {
            Batch::Same => self.analysis.known(value).or_else(|| value_of(value)),
            Batch::At(_) | Batch::Apart => self.scaled_type(value).map(Value::new),
        }
    }
}
