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

use crate::ir::{Failure, describe, error};
use analysis::Analysis;
use divi_dialect::{Operation, Value, node::value_of};
use divi_onnx::{Dim, Tensor, TensorType, Value as Known};
use layout::scaled;
use rules::Change;

pub use analysis::Batch;
pub use layout::Layout;
pub(crate) use pass::make;
pub use pass::rebatch;

/// Values of a function at a multiple of its batch. The function is not changed, and must not be while this is
/// used.
///
/// A function whose batch is open stays as it is: its types hold for every batch.
pub struct Rebatched<'m> {
    analysis: Analysis<'m>,
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
    /// Returns the first dimension of the first argument that has one.
    pub fn of(function: Operation<'_>) -> Self {
        let Some(&entry) = function.blocks().first() else { return Self::None };
        let dims = entry.arguments().into_iter().filter_map(first_dimension);
        match dims.into_iter().next() {
            None => Self::None,
            Some(Dim::Known(size)) => Self::Size(size),
            Some(Dim::Symbol(_) | Dim::Unknown) => Self::Open,
        }
    }
}

fn first_dimension(value: Value<'_>) -> Option<Dim> {
    value.tensor_type()?.shape?.first().copied()
}

/// Returns what messages call a function.
fn describe_function(function: Operation<'_>) -> String {
    match function.symbol_name() {
        Some(name) => format!("'func.func' op @{name}"),
        None => describe(function),
    }
}

impl<'m> Rebatched<'m> {
    /// Follows the batch through a function. Errors are emitted on the operations.
    pub fn of(function: Operation<'m>, factor: i64) -> Result<Self, Failure> {
        if factor < 1 {
            error(function, &format!("{} cannot have {factor} times its batch", describe_function(function)));
            return Err(Failure);
        }
        Ok(Self { analysis: Analysis::of(function, factor)? })
    }

    /// Does the same for a function that was cut out of the one that this is of, and stands by itself. Its arguments stand for
    /// values of that one.
    pub(crate) fn part(&self, function: Operation<'m>, arguments: &[Value<'m>]) -> Result<Self, Failure> {
        Ok(Self { analysis: self.analysis.part(function, arguments)? })
    }

    /// Returns the value's type at the new batch; `None` if it is no tensor.
    ///
    /// This is the type between operators, which is not always what an operator takes: a tensor that is the same for all
    /// inputs is repeated for an operator that does not broadcast, and [`Self::operands_of`] tells. A constant that all its
    /// users need repeated or changed has the type that they need. Operands and results of an operator that repeats are parts of it, and values
    /// inside a cluster that repeats have the types that they have in the module. A value that has no axis to put several
    /// runs on (a scalar that a mixing operator computes) has its type for one run.
    pub fn type_of(&self, value: Value<'m>) -> Option<TensorType> {
        match self.common_change(value) {
            Some(Change::Constant(tensor)) => Some(Known::constant(tensor.clone()).ty),
            Some(&Change::Spread(axis)) => scaled(&value.tensor_type()?, axis, self.analysis.factor),
            None => self.scaled_type(value),
        }
    }

    /// Returns what is known of a value at the new batch: its type and, for small constants, its elements. A constant that names
    /// the batch for all its users has the new elements; if they need different ones, only [`Self::operands_of`] tells.
    pub fn value_of(&self, value: Value<'m>) -> Option<Known> {
        match self.common_change(value) {
            Some(change) => self.changed(value, change),
            None => self.unchanged(value),
        }
    }

    /// Returns what is known of an operator's operands for one run of it: what `divi_onnx::infer` needs. `None` for absent operands
    /// and those that are no tensors.
    pub fn operands_of(&self, operation: Operation<'m>) -> Vec<Option<Known>> {
        let operands = operation.operands().into_iter();
        if self.repeats(operation) {
            return operands.map(|value| self.analysis.known(value)).collect();
        }
        let value = |(i, value)| match self.change(operation, i) {
            Some(change) => self.changed(value, change),
            None => self.unchanged(value),
        };
        operands.enumerate().map(value).collect()
    }

    /// Returns the type of an operator's result for one run of it.
    pub fn result_of(&self, operation: Operation<'m>, result: Value<'m>) -> Option<TensorType> {
        if self.repeats(operation) { result.tensor_type() } else { self.scaled_type(result) }
    }

    /// Returns true if an operator runs once for each multiple of the batch, because it mixes inputs. Each run has the types that
    /// the operator has in the module. A cluster repeats as a whole if a member does, and then all members do.
    pub fn repeats(&self, operation: Operation<'m>) -> bool {
        self.analysis.repeats.contains(&operation)
    }

    /// Returns the operators that repeat, in order; of a cluster that does, only the cluster.
    pub fn repeated(&self) -> &[Operation<'m>] {
        &self.analysis.repeated
    }

    /// Returns where a value has the runs: nowhere, if it is the same in all of them.
    pub fn batch_of(&self, value: Value<'m>) -> Batch {
        self.analysis.batch(value)
    }

    fn scaled_type(&self, value: Value<'m>) -> Option<TensorType> {
        let ty = value.tensor_type()?;
        match self.analysis.batch(value) {
            Batch::At(layout) => scaled(&ty, layout.axis, self.analysis.factor),
            Batch::Same | Batch::Apart => Some(ty),
        }
    }

    fn change(&self, operation: Operation<'m>, operand: usize) -> Option<&Change> {
        self.analysis.changes.get(&(operation, operand))
    }

    /// Returns the change that all users of a constant make to it; a cluster's argument may be one.
    fn common_change(&self, value: Value<'m>) -> Option<&Change> {
        if self.analysis.changes.is_empty() || !analysis::may_be_constant(value) {
            return None;
        }
        let mut changes = value.uses().into_iter().map(|(user, index)| match analysis::cluster_argument(user, index) {
            Some(argument) => self.common_change(argument),
            None => self.change(user, index),
        });
        let first = changes.next()??;
        changes.all(|change| change == Some(first)).then_some(first)
    }

    fn changed(&self, value: Value<'m>, change: &Change) -> Option<Known> {
        match change {
            Change::Constant(tensor) => Some(Known::constant(Tensor::clone(tensor))),
            &Change::Spread(axis) => Some(Known::new(scaled(&value.tensor_type()?, axis, self.analysis.factor)?)),
        }
    }

    fn unchanged(&self, value: Value<'m>) -> Option<Known> {
        match self.analysis.batch(value) {
            Batch::Same => self.analysis.known(value).or_else(|| value_of(value)),
            Batch::At(_) | Batch::Apart => self.scaled_type(value).map(Known::new),
        }
    }
}
