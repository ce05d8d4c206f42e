//! `divi-rebatch`: changes the batch size of a module.

use super::{Batch, Present, Rebatched, describe_function, rewrite::rewrite, rules::Change};
use crate::{
    declared::{Rebatch, RebatchStatistics},
    import::Options,
    infer_shapes::infer_shapes,
    ir::{Failure, describe, error, warning},
};
use divi_dialect::{Operation, Value, attr, op};
use divi_onnx::DType;
use rustc_hash::FxHashSet;

//===----------------------------------------------------------------------===//
// --divi-rebatch
//===----------------------------------------------------------------------===//

/// Changes the batch size of every function that is not called to `batch`, which must be a multiple of the present
/// size, unless that is dynamic. Errors are emitted on the operations.
///
/// Operators that mix the inputs of a batch are unrolled and named in a warning. Functions that are called are not
/// changed: calls are unrolled. Costs and plans are not updated.
pub fn rebatch(module: Operation<'_>, batch: i64) -> Result<RebatchStatistics, Failure> {
    if batch < 1 {
        error(module, &format!("batch is {batch}: it must be positive"));
        return Err(Failure);
    }
    if entries(module).into_iter().any(|function| Present::of(function) == Present::Open) {
        infer_shapes(module, &Options { batch: Some(batch), ..Options::default() })?;
    }
    let mut plans = vec![];
    for function in entries(module) {
        let Present::Size(present) = Present::of(function) else { continue };
        if present < 1 || batch % present != 0 {
            let name = describe_function(function);
            error(
                function,
                &format!(
                    "{name} has a batch of {present}, which cannot be changed to {batch}: choose a multiple of {present}, or \
                     give its arguments other shapes"
                ),
            );
            return Err(Failure);
        }
        if batch != present {
            let plan = Rebatched::of(function, batch / present)?;
            check(function, &plan)?;
            plans.push((function, plan));
        }
    }
    let mut statistics = RebatchStatistics::default();
    let mut names = vec![];
    for (function, plan) in plans {
        names.extend(plan.unrolled().iter().map(|&operation| describe(operation)));
        statistics.num_repeated += plan.unrolled().len() as u64;
        statistics.num_constants += rewrite(function, &plan);
    }
    if !names.is_empty() {
        warning(module, &format!("mixes the inputs of a batch, so it runs once for each: {}", names.join(", ")));
    }
    Ok(statistics)
}

/// Rewrites a function to the analyzed batch size. The analysis is invalid afterwards.
pub(crate) fn make<'m>(function: Operation<'m>, plan: &Rebatched<'m>) -> Result<(), Failure> {
    check(function, plan)?;
    rewrite(function, plan);
    Ok(())
}

/// Rejects functions that cannot be rewritten.
fn check<'m>(function: Operation<'m>, plan: &Rebatched<'m>) -> Result<(), Failure> {
    check_runs(plan)?;
    check_elements(function, plan)
}

/// Maximum number of operators that unrolling creates.
const MAX_UNROLLED: u64 = 1 << 16;

/// Rejects batches and models for which unrolling creates too many operators.
fn check_runs(plan: &Rebatched<'_>) -> Result<(), Failure> {
    let Some(&first) = plan.unrolled().first() else { return Ok(()) };
    let factor = plan.analysis.factor.unsigned_abs();
    let mut count = 0u64;
    plan.unrolled().iter().for_each(|&operation| operation.walk(|_| count += 1));
    if count.checked_mul(factor).is_some_and(|runs| runs <= MAX_UNROLLED) {
        return Ok(());
    }
    let others = match count {
        1 => String::new(),
        _ => format!(", as do others, {count} operators in all"),
    };
    error(
        first,
        &format!(
            "{} mixes the inputs of a batch, so it has to run {factor} times{others}: at most {MAX_UNROLLED} operators are \
             created by unrolling; choose a smaller batch",
            describe(first)
        ),
    );
    Err(Failure)
}

/// Rejects tensors of ONNX's narrowest types that would be sliced, concatenated or repeated, which ONNX does not
/// support.
fn check_elements<'m>(function: Operation<'m>, plan: &Rebatched<'m>) -> Result<(), Failure> {
    let mut failed = false;
    let unrolled: FxHashSet<_> = plan.unrolled().iter().copied().collect();
    function.walk(|operation| {
        let values = operation.operands().into_iter().enumerate();
        let is_unrolled = unrolled.contains(&operation);
        let moved = |&(i, value): &(usize, Value<'_>)| match plan.change(operation, i) {
            Some(change) => matches!(change, Change::Spread(_)),
            None => is_unrolled && plan.batch_of(value) != Batch::Same,
        };
        let results = operation.results().into_iter().filter(|_| is_unrolled);
        for value in values.filter(moved).map(|(_, value)| value).chain(results) {
            if let Some(dtype) = value.tensor_type().map(|ty| ty.dtype).filter(|&dtype| is_narrow(dtype)) {
                let name = describe(operation);
                let why = if is_unrolled { "mixes the inputs of a batch" } else { "does not broadcast" };
                error(
                    operation,
                    &format!("{name} {why}, and {dtype} tensors cannot be sliced or repeated: insert a Cast"),
                );
                failed = true;
                return;
            }
        }
    });
    if failed { Err(Failure) } else { Ok(()) }
}

/// Returns true if Slice, Concat and Tile do not support an element type.
fn is_narrow(dtype: DType) -> bool {
    !(matches!(dtype, DType::String | DType::Bool | DType::I8 | DType::U8) || dtype.bits() > 8)
}

/// Returns the functions with a body that are not called in the module.
fn entries(module: Operation<'_>) -> Vec<Operation<'_>> {
    let mut called = FxHashSet::default();
    module.walk(|operation| {
        if operation.name() == op::ENTRY_POINT {
            return;
        }
        called.extend(operation.attributes().into_iter().filter_map(|(_, attribute)| attr::as_symbol(attribute)));
    });
    let is_entry = |operation: &Operation<'_>| {
        operation.name() == op::FUNC
            && !operation.blocks().is_empty()
            && operation.symbol_name().is_none_or(|name| !called.contains(name))
    };
    module.children().into_iter().filter(is_entry).collect()
}

impl Rebatch {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<RebatchStatistics, Failure> {
        rebatch(module, self.batch)
    }
}
