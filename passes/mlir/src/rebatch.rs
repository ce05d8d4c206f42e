//! Batch sizes: an analysis of a function's values at a multiple of its batch, and `divi-rebatch`, which rewrites the
//! function.
//!
//! The batch of a function is the size of the first dimension of its first argument that has one. Every argument whose
//! first dimension has that size is batched; others (scalars, positions, tables) are shared by all inputs. From there
//! the batch is followed through the operators: to other axes, into a dimension that it is merged with, and out again.
//! Results of unbatched operands are shared by all inputs and computed once. The computation at the present batch size
//! is called a *run*.
//!
//! An operator that mixes the inputs of a batch (a reduction or a softmax over it), or that cannot be proven not to, is
//! unrolled: it runs once for each multiple of the present batch, on a slice, and its results are concatenated.

mod analysis;
mod layout;
mod pass;
mod rewrite;
mod rules;

use crate::ir::{Failure, describe, error};
use analysis::Analysis;
use divi_dialect::{Operation, Value};
use divi_onnx::{Dim, Tensor, TensorType, Value as Known};
use layout::scaled;
use rules::Change;

pub use analysis::Batch;
pub use layout::Layout;
pub(crate) use pass::make;
pub use pass::rebatch;

/// Values of a function at a multiple of its batch. The function is not changed, and must not be while the analysis is
/// used.
///
/// A function with a dynamic batch stays as it is: its types hold for every batch size.
pub struct Rebatched<'m> {
    analysis: Analysis<'m>,
}

/// Batch size of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    /// No argument has a first dimension.
    None,
    /// The first dimension is dynamic.
    Open,
    /// The first dimension has this size.
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

/// Returns the name of a function in messages.
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

    /// Analyzes a function that was outlined from the analyzed one. Its arguments correspond to values of the latter.
    pub(crate) fn part(&self, function: Operation<'m>, arguments: &[Value<'m>]) -> Result<Self, Failure> {
        Ok(Self { analysis: self.analysis.part(function, arguments)? })
    }

    /// Returns the type of a value at the new batch size; `None` if it is not a tensor.
    ///
    /// This is the type between operators, which may differ from the type that an operator takes: a tensor that all
    /// inputs share is repeated for an operator that does not broadcast ([`Self::operands_of`] has the type). A
    /// constant that all its users need repeated or changed has the type that they need. An unrolled operator takes
    /// slices of its operands, and values inside an unrolled cluster keep their types in the module. A value without an
    /// axis to concatenate runs on (a scalar that a mixing operator computes) has the type of one run.
    pub fn type_of(&self, value: Value<'m>) -> Option<TensorType> {
        match self.common_change(value) {
            Some(Change::Constant(tensor)) => Some(Known::constant(tensor.clone()).ty),
            Some(&Change::Spread(axis)) => scaled(&value.tensor_type()?, axis, self.analysis.factor),
            None => self.scaled_type(value),
        }
    }

    /// Returns the facts about a value at the new batch size: its type and, for small constants, its elements. A
    /// constant that contains the batch size for all its users has the new elements; if they need different ones, only
    /// [`Self::operands_of`] has them.
    pub fn value_of(&self, value: Value<'m>) -> Option<Known> {
        match self.common_change(value) {
            Some(change) => self.changed(value, change),
            None => self.unchanged(value),
        }
    }

    /// Returns the facts about an operator's operands for one run of it, for `divi_onnx::infer`. `None` for absent
    /// operands and those that are not tensors.
    pub fn operands_of(&self, operation: Operation<'m>) -> Vec<Option<Known>> {
        let operands = operation.operands().into_iter();
        if self.is_unrolled(operation) {
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
        if self.is_unrolled(operation) { result.tensor_type() } else { self.scaled_type(result) }
    }

    /// Returns true if an operator is unrolled, because it mixes inputs. Each run has the types that the operator has
    /// in the module. A cluster is unrolled as a whole if a member is, and then all members are.
    pub fn is_unrolled(&self, operation: Operation<'m>) -> bool {
        self.analysis.all_unrolled.contains(&operation)
    }

    /// Returns the operators that are unrolled, in order; of an unrolled cluster, only the cluster.
    pub fn unrolled(&self) -> &[Operation<'m>] {
        &self.analysis.unrolled
    }

    /// Returns the position of the runs in a value.
    pub fn batch_of(&self, value: Value<'m>) -> Batch {
        self.analysis.batch(value)
    }

    fn scaled_type(&self, value: Value<'m>) -> Option<TensorType> {
        let ty = value.tensor_type()?;
        match self.analysis.batch(value) {
            Batch::At(layout) => scaled(&ty, layout.axis, self.analysis.factor),
            Batch::Same | Batch::Separate => Some(ty),
        }
    }

    fn change(&self, operation: Operation<'m>, operand: usize) -> Option<&Change> {
        self.analysis.changes.get(&(operation, operand))
    }

    /// Returns the change that all users need of a constant, or of an argument of a cluster, which may be one.
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
            Batch::Same => self.analysis.known(value),
            Batch::At(_) | Batch::Separate => self.scaled_type(value).map(Known::new),
        }
    }
}
