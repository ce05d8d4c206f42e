//! When tensors move, where buses are given out in turn: `divi.moves` of the tasks that compute them, and of the function for
//! its arguments.

use crate::{
    cost::Posed,
    ir::{Failure, array, set_attribute},
    tasks::{definer, moves_of},
};
use divi_dialect::MoveAttribute;
use divi_planner::plan::Transfer;
use melior::{
    Context,
    ir::{AttributeLike, Location},
};
use mlir_sys::*;
use rustc_hash::FxHashMap;

/// A value that goes from one device to another, and when.
pub(crate) struct Moved<'a> {
    pub(crate) value: MlirValue,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) start: f64,
    pub(crate) end: f64,
}

/// Writes the transfers of a plan.
pub(super) fn write_transfers(context: &Context, posed: &Posed, transfers: &[Transfer]) -> Result<(), Failure> {
    let values = posed.values();
    let name = |device: usize| posed.problem.devices[device].name.as_str();
    let moved = |transfer: &Transfer| {
        let Transfer { tensor, from, to, start, end } = *transfer;
        Some(Moved { value: values[tensor]?, from: name(from), to: name(to), start, end })
    };
    write(context, posed.function, transfers.iter().filter_map(moved))
}

/// Says on tasks, and on the function that runs the model, when what they compute, or are given, moves.
pub(crate) fn write<'a>(
    context: &Context,
    function: MlirOperation,
    moves: impl Iterator<Item = Moved<'a>>,
) -> Result<(), Failure> {
    let mut lists: Vec<(MlirOperation, Vec<MlirAttribute>)> = vec![];
    let mut list_of = FxHashMap::default();
    for Moved { value, from, to, start, end } in moves {
        let (operation, index) = source(value, function);
        // SAFETY: the operation is alive.
        let location = unsafe { Location::from_raw(mlirOperationGetLocation(operation)) };
        let attribute = MoveAttribute::new(location, index, from, to, start, end).ok_or(Failure)?;
        let list = *list_of.entry(operation.ptr).or_insert_with(|| {
            lists.push((operation, vec![]));
            lists.len() - 1
        });
        lists[list].1.push(attribute.as_attribute().to_raw());
    }
    for (operation, list) in lists {
        set_attribute(operation, "divi.moves", array(context, &list));
    }
    Ok(())
}

/// The operation that says when a value moves, and what it calls the value: the task that computes it, or the function.
fn source(value: MlirValue, function: MlirOperation) -> (MlirOperation, usize) {
    match definer(value) {
        // SAFETY: the value is alive, and a result.
        Some(task) => (task, unsafe { mlirOpResultGetResultNumber(value) } as usize),
        // SAFETY: the value is alive, and an argument.
        None => (function, unsafe { mlirBlockArgumentGetArgNumber(value) } as usize),
    }
}

/// The transfers that tasks and function say, by start.
pub(super) fn read(posed: &Posed) -> Vec<Transfer> {
    let values = posed.values().into_iter().enumerate().filter_map(|(tensor, value)| Some((value?, tensor)));
    let tensors: FxHashMap<_, usize> = values
        .map(|(value, tensor)| {
            let (operation, index) = source(value, posed.function);
            ((operation.ptr, index), tensor)
        })
        .collect();
    let mut transfers = vec![];
    for &operation in posed.tasks.iter().chain([&posed.function]) {
        // Of an argument that nobody uses, nothing moves.
        transfers.extend(moves_of(operation, "divi.moves").into_iter().filter_map(|moved| {
            let tensor = *tensors.get(&(operation.ptr, moved.index()))?;
            let (from, to) = (posed.device(moved.from())?, posed.device(moved.to())?);
            Some(Transfer { tensor, from, to, start: moved.start(), end: moved.end() })
        }));
    }
    transfers.sort_by(|a: &Transfer, b| a.start.total_cmp(&b.start).then((a.tensor, a.to).cmp(&(b.tensor, b.to))));
    transfers
}
