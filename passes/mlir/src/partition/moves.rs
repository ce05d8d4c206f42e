//! When tensors move, where buses are given out in turn: `divi.moves` of the tasks that compute them, and of the function for
//! its arguments.

use crate::{cost::Posed, ir::Failure, tasks::moves_of};
use divi_dialect::{MoveAttribute, Operation, Value, attr};
use divi_planner::plan::Transfer;
use rustc_hash::FxHashMap;

/// A value that goes from one device to another, and when.
pub(crate) struct Moved<'a, 'm> {
    pub(crate) value: Value<'m>,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) start: f64,
    pub(crate) end: f64,
}

/// Writes the transfers of a plan.
pub(super) fn write_transfers(posed: &Posed<'_>, transfers: &[Transfer]) -> Result<(), Failure> {
    let values = posed.values();
    let name = |device: usize| posed.problem.devices[device].name.as_str();
    let moved = |transfer: &Transfer| {
        let Transfer { tensor, from, to, start, end } = *transfer;
        Some(Moved { value: values[tensor]?, from: name(from), to: name(to), start, end })
    };
    write(posed.function, transfers.iter().filter_map(moved))
}

/// Says on tasks, and on the function that runs the model, when what they compute, or are given, moves.
pub(crate) fn write<'a, 'm>(
    function: Operation<'m>,
    moves: impl Iterator<Item = Moved<'a, 'm>>,
) -> Result<(), Failure> {
    let mut lists: Vec<(Operation<'m>, Vec<MoveAttribute<'m>>)> = vec![];
    let mut list_of = FxHashMap::default();
    for Moved { value, from, to, start, end } in moves {
        let (operation, index) = source(value, function);
        let attribute = MoveAttribute::new(operation.location(), index, from, to, start, end).ok_or(Failure)?;
        let list = *list_of.entry(operation).or_insert_with(|| {
            lists.push((operation, vec![]));
            lists.len() - 1
        });
        lists[list].1.push(attribute);
    }
    for (operation, list) in lists {
        operation.set(attr::MOVES, &list);
    }
    Ok(())
}

/// The operation that says when a value moves, and what it calls the value: the task that computes it, or the function.
fn source<'m>(value: Value<'m>, function: Operation<'m>) -> (Operation<'m>, usize) {
    let index = value.result_number().or_else(|| value.argument_number());
    (value.definer().unwrap_or(function), index.expect("a value is a result or an argument"))
}

/// The transfers that tasks and function say, by start.
pub(super) fn read(posed: &Posed<'_>) -> Vec<Transfer> {
    let values = posed.values().into_iter().enumerate().filter_map(|(tensor, value)| Some((value?, tensor)));
    let tensors: FxHashMap<_, usize> = values
        .map(|(value, tensor)| {
            let (operation, index) = source(value, posed.function);
            ((operation, index), tensor)
        })
        .collect();
    let mut transfers = vec![];
    for &operation in posed.tasks.iter().chain([&posed.function]) {
        // Of an argument that nobody uses, nothing moves.
        transfers.extend(moves_of(operation, attr::MOVES).into_iter().filter_map(|moved| {
            let tensor = *tensors.get(&(operation, moved.index()))?;
            let (from, to) = (posed.device(moved.from())?, posed.device(moved.to())?);
            Some(Transfer { tensor, from, to, start: moved.start(), end: moved.end() })
        }));
    }
    transfers.sort_by(|a: &Transfer, b| a.start.total_cmp(&b.start).then((a.tensor, a.to).cmp(&(b.tensor, b.to))));
    transfers
}
