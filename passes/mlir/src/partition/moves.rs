//! Times of transfers under contention: `divi.moves` of the tasks that compute tensors, and of the function for its
//! arguments.

use crate::{cost::ModuleProblem, ir::Failure, tasks::moves_of};
use divi_dialect::{MoveAttribute, Operation, Value, attr};
use divi_planner::plan::Transfer;
use divi_planner::units::Micros;
use rustc_hash::FxHashMap;

/// Transfer of a value between devices, with its times in µs.
pub(crate) struct Moved<'a, 'm> {
    pub(crate) value: Value<'m>,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) start: Micros,
    pub(crate) end: Micros,
    /// Inputs of the launch that computes it; empty if it has only one launch on the source.
    pub(crate) inputs: Vec<i64>,
}

/// Writes the transfers of a plan.
pub(super) fn write_transfers(module_problem: &ModuleProblem<'_>, transfers: &[Transfer]) -> Result<(), Failure> {
    let values = module_problem.values();
    let name = |device: usize| module_problem.problem.devices[device].name.as_str();
    let moved = |transfer: &Transfer| {
        let Transfer { tensor, from, to, start, end, .. } = *transfer;
        let inputs = transfer.inputs.iter().flatten().map(|input| i64::from(*input)).collect();
        Some(Moved { value: values[tensor]?, from: name(from), to: name(to), start, end, inputs })
    };
    write(module_problem.function, transfers.iter().filter_map(moved))
}

/// Writes transfers onto the tasks that compute the values, or onto the entry function for arguments.
pub(crate) fn write<'a, 'm>(
    function: Operation<'m>,
    moves: impl Iterator<Item = Moved<'a, 'm>>,
) -> Result<(), Failure> {
    let mut lists: Vec<(Operation<'m>, Vec<MoveAttribute<'m>>)> = vec![];
    let mut list_of = FxHashMap::default();
    for Moved { value, from, to, start, end, inputs } in moves {
        let (operation, index) = source(value, function);
        let (location, times) = (operation.location(), [start.0, end.0]);
        let attribute = MoveAttribute::new(location, index, [from, to], times, &inputs).ok_or(Failure)?;
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

/// Returns the operation that a transfer of a value is written onto, and the value's index there.
fn source<'m>(value: Value<'m>, function: Operation<'m>) -> (Operation<'m>, usize) {
    let index = value.result_number().or_else(|| value.argument_number());
    (value.defining_op().unwrap_or(function), index.expect("a value is a result or an argument"))
}

/// Reads the transfers from tasks and function, in order of start.
pub(super) fn read(module_problem: &ModuleProblem<'_>) -> Vec<Transfer> {
    let values = module_problem.values().into_iter().enumerate().filter_map(|(tensor, value)| Some((value?, tensor)));
    let tensors: FxHashMap<_, usize> = values
        .map(|(value, tensor)| {
            let (operation, index) = source(value, module_problem.function);
            ((operation, index), tensor)
        })
        .collect();
    let mut transfers = vec![];
    for &operation in module_problem.tasks.iter().chain([&module_problem.function]) {
        // Unused arguments are not transferred.
        transfers.extend(moves_of(operation, attr::MOVES).into_iter().filter_map(|moved| {
            let tensor = *tensors.get(&(operation, moved.index()))?;
            let (from, to) = (module_problem.device(moved.from())?, module_problem.device(moved.to())?);
            let inputs: Vec<u32> = moved.inputs().into_iter().filter_map(|input| u32::try_from(input).ok()).collect();
            let inputs = Some(inputs).filter(|inputs| !inputs.is_empty());
            Some(Transfer { tensor, from, to, inputs, start: Micros(moved.start()), end: Micros(moved.end()) })
        }));
    }
    transfers.sort_by(|a: &Transfer, b| a.start.total_cmp(&b.start).then((a.tensor, a.to).cmp(&(b.tensor, b.to))));
    transfers
}
