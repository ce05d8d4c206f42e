//! What a profile knows a task by.

use crate::{
    ir::{operands, operation_name, results, tensor_type_of_value},
    tasks::{definer, is_constant_value, is_inside, members, outer_value},
};
use divi_cost::{
    Task,
    estimate::Keys,
    profile::{Entry, Key, Member, Operand},
};
use divi_dialect::node::{attributes_of, is_none};
use divi_onnx::{Attributes, DType};
use divi_runtime::bundle::Profile;
use melior::ir::operation::OperationRef;
use mlir_sys::*;

/// What a profile may know a task by, `counted` being what the task does.
pub(super) fn keys_of(task: MlirOperation, counted: &Task, batch: u64) -> Keys {
    let main = || {
        let main = counted.main()?;
        let position = counted.members.iter().position(|member| std::ptr::eq(member, main))?;
        key_of(*members(task).get(position)?, batch)
    };
    let is_cluster = operation_name(task) == "divi.cluster";
    Keys { whole: key_of(task, batch), main: is_cluster.then(main).flatten() }
}

/// The key of a task of a module whose batch is `batch`; `None` for tasks that no profile can have: operators of other
/// dialects, open shapes, results without the batch.
fn key_of(task: MlirOperation, batch: u64) -> Option<Key> {
    let Parts { ops, operands, results, dtype } = Parts::of(task)?;
    let ops: Vec<(&str, &Attributes)> = ops.iter().map(|(op, attributes)| (*op, attributes)).collect();
    let operands: Vec<_> =
        operands.iter().map(|(shape, is_constant)| Operand { shape, is_constant: *is_constant }).collect();
    let results: Vec<&[u64]> = results.iter().map(Vec::as_slice).collect();
    Key::new(&ops, &operands, &results, dtype, batch)
}

/// The entry that a profile has for a task which was measured at a batch, but for its times; `None` as for keys.
pub(crate) fn profile_entry(task: MlirOperation, batch: u64) -> Option<Profile> {
    key_of(task, batch)?;
    let Parts { ops, operands, results, dtype } = Parts::of(task)?;
    let one = |mut shape: Vec<u64>| {
        shape.iter_mut().take(1).for_each(|first| *first /= batch);
        shape
    };
    let (weights, inputs): (Vec<_>, Vec<_>) = operands.into_iter().partition(|(_, is_constant)| *is_constant);
    let entry = Entry {
        ops: ops.into_iter().map(|(name, attributes)| Member { name: name.to_owned(), attributes }).collect(),
        inputs: inputs.into_iter().map(|(shape, _)| one(shape)).collect(),
        weights: Some(weights.into_iter().map(|(shape, _)| shape).collect()),
        outputs: results.into_iter().map(one).collect(),
        dtype,
        micros: Default::default(),
        count: 1,
    };
    Some(Profile { batch, entry: entry.without_times() })
}

/// What a task is made of.
struct Parts {
    ops: Vec<(&'static str, Attributes)>,
    /// Shapes of operands from outside, and whether they are constants.
    operands: Vec<(Vec<u64>, bool)>,
    results: Vec<Vec<u64>>,
    dtype: DType,
}

impl Parts {
    fn of(task: MlirOperation) -> Option<Self> {
        let mut ops = vec![];
        let mut shapes = vec![];
        for member in members(task) {
            // SAFETY: the operation is alive.
            let reference = unsafe { OperationRef::from_raw(member) };
            let name = operation_name(member).strip_prefix("onnx.")?;
            ops.push((name, own_attributes(&attributes_of(&reference))));
            for operand in operands(member) {
                let is_passed = definer(outer_value(operand)).is_some_and(|definer| is_inside(definer, task));
                if !is_passed && !is_none(operand) {
                    shapes.push((shape(operand)?, is_constant_value(operand)));
                }
            }
        }
        let results: Vec<_> = results(task).into_iter().filter(|&result| !is_none(result)).collect();
        let dtype = tensor_type_of_value(*results.first()?)?.dtype;
        let results: Vec<Vec<u64>> = results.into_iter().map(shape).collect::<Option<_>>()?;
        Some(Self { ops, operands: shapes, results, dtype })
    }
}

fn shape(value: MlirValue) -> Option<Vec<u64>> {
    let sizes = tensor_type_of_value(value)?.static_shape()?;
    sizes.into_iter().map(|size| u64::try_from(size).ok()).collect()
}

/// The attributes that are the operator's, not divi's or the importer's.
fn own_attributes(all: &Attributes) -> Attributes {
    let own = all.iter().filter(|(name, _)| *name != "onnx_node_name" && !name.contains('.'));
    own.map(|(name, attribute)| (name.to_owned(), attribute.clone())).collect()
}
