//! Keys of tasks in profiles.

use crate::tasks::{is_constant_value, is_placed, members, outer_value};
use divi_cost::{
    Task,
    estimate::ProfileKeys,
    profile::{Entry, Key, Member, MemberTypes, Operand, OperandType, Origin, ValueType},
};
use divi_dialect::{Operation, Value, attr, node::attributes_of, op};
use divi_onnx::{Attributes, DType};
use divi_runtime::bundle::Profile;
use rustc_hash::FxHashSet;

/// Returns the keys under which a profile may have a task, whose work is `counted`.
pub(super) fn keys_of(task: Operation<'_>, counted: &Task, batch: u64) -> ProfileKeys {
    let main = || {
        let main = counted.main()?;
        let position = counted.members.iter().position(|member| std::ptr::eq(member, main))?;
        key_of(*members(task).get(position)?, batch)
    };
    let is_cluster = task.name() == op::CLUSTER;
    ProfileKeys { whole: key_of(task, batch), main: is_cluster.then(main).flatten() }
}

/// Returns the key of a task of a module whose batch size is `batch`; `None` for tasks that no profile can have:
/// operators of other dialects, dynamic shapes, results without the batch dimension.
fn key_of(task: Operation<'_>, batch: u64) -> Option<Key> {
    let Parts { ops, operands, results, dtype } = Parts::of(task)?;
    let ops: Vec<(&str, &Attributes)> = ops.iter().map(|(op, attributes)| (*op, attributes)).collect();
    let operands: Vec<_> =
        operands.iter().map(|(shape, is_constant)| Operand { shape, is_constant: *is_constant }).collect();
    let results: Vec<&[u64]> = results.iter().map(Vec::as_slice).collect();
    Key::new(&ops, &operands, &results, dtype, batch)
}

/// Returns the profile entry of a task measured at a batch size, without times; `None` as for keys.
pub(crate) fn profile_entry(task: Operation<'_>, batch: u64) -> Option<Profile> {
    key_of(task, batch)?;
    let Parts { ops, operands, results, dtype } = Parts::of(task)?;
    let types = types_of(task).and_then(|types| types.into_iter().map(|types| types.at_batch_one(batch)).collect());
    let one = |mut shape: Vec<u64>| {
        shape.iter_mut().take(1).for_each(|first| *first /= batch);
        shape
    };
    let (weights, inputs): (Vec<_>, Vec<_>) = operands.into_iter().partition(|(_, is_constant)| *is_constant);
    let entry = Entry {
        ops: ops.into_iter().map(|(name, attributes)| Member { name: name.to_owned(), attributes }).collect(),
        types,
        inputs: inputs.into_iter().map(|(shape, _)| one(shape)).collect(),
        weights: Some(weights.into_iter().map(|(shape, _)| shape).collect()),
        outputs: results.into_iter().map(one).collect(),
        dtype,
        micros: Default::default(),
        count: 1,
    };
    Some(Profile { batch, entry: entry.without_times() })
}

/// Operators, shapes and element type of a task.
struct Parts<'m> {
    ops: Vec<(&'m str, Attributes)>,
    /// Shapes of operands from outside the task; true for constants.
    operands: Vec<(Vec<u64>, bool)>,
    results: Vec<Vec<u64>>,
    dtype: DType,
}

impl<'m> Parts<'m> {
    fn of(task: Operation<'m>) -> Option<Self> {
        let mut ops = vec![];
        let mut shapes = vec![];
        for member in members(task) {
            let name = member.name().strip_prefix("onnx.")?;
            ops.push((name, own_attributes(&attributes_of(member))));
            for operand in member.operands() {
                let is_passed = outer_value(operand).defining_op().is_some_and(|definer| definer.is_inside(task));
                if !is_passed && !operand.is_none() {
                    shapes.push((shape(operand)?, is_constant_value(operand)));
                }
            }
        }
        let results: Vec<_> = task.results().into_iter().filter(|&result| !result.is_none()).collect();
        let dtype = results.first()?.tensor_type()?.dtype;
        let results: Vec<Vec<u64>> = results.into_iter().map(shape).collect::<Option<_>>()?;
        Some(Self { ops, operands: shapes, results, dtype })
    }
}

/// Returns the types of the values of each operator of a task, at the module's batch size; `None` if one is not a static tensor.
fn types_of<'m>(task: Operation<'m>) -> Option<Vec<MemberTypes>> {
    let (mut read, mut without_batch) = (FxHashSet::default(), FxHashSet::default());
    let mut types = vec![];
    for member in members(task) {
        let mut operand_type = |operand: Value<'m>| {
            let outer = outer_value(operand);
            let is_passed = outer.defining_op().is_some_and(|definer| definer.is_inside(task));
            let origin = match () {
                () if is_constant_value(operand) => Origin::Constant,
                () if is_placed(member, operand) => Origin::Placed,
                () if is_passed || !read.insert(outer) => Origin::Inner,
                () => Origin::Outer,
            };
            let has_batch = origin != Origin::Constant && !without_batch.contains(&outer);
            Some(OperandType { origin, ty: value_type(operand, has_batch)? })
        };
        let operands = member.operands().into_iter();
        let operands =
            operands.map(|operand| if operand.is_none() { Some(None) } else { operand_type(operand).map(Some) });
        let operands: Vec<Option<OperandType>> = operands.collect::<Option<_>>()?;
        // Values that are computed from constants, such as transposed weights, have no batch dimension.
        let has_batch = operands.iter().flatten().any(|operand| operand.ty.has_batch);
        let results = member.results().into_iter().filter(|result| !result.is_none());
        let result_type = |result: Value<'m>| {
            if !has_batch {
                without_batch.insert(result);
            }
            value_type(result, has_batch)
        };
        types.push(MemberTypes { results: results.map(result_type).collect::<Option<_>>()?, operands });
    }
    Some(types)
}

fn value_type(value: Value<'_>, has_batch: bool) -> Option<ValueType> {
    let shape = shape(value)?;
    Some(ValueType { dtype: value.tensor_type()?.dtype, has_batch: has_batch && !shape.is_empty(), shape })
}

fn shape(value: Value<'_>) -> Option<Vec<u64>> {
    let sizes = value.tensor_type()?.static_shape()?;
    sizes.into_iter().map(|size| u64::try_from(size).ok()).collect()
}

/// Returns the operator's own attributes, without those of divi and the importer.
fn own_attributes(all: &Attributes) -> Attributes {
    let own = all.iter().filter(|(name, _)| *name != attr::NODE_NAME.name() && !name.contains('.'));
    own.map(|(name, attribute)| (name.to_owned(), attribute.clone())).collect()
}
