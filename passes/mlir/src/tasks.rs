//! Tasks of a module, which a planner places. Every operator of the entry function is one, and so is a cluster.
//! Constants are not tasks: they are wherever they are read.

use crate::ir::{Failure, ONNX_CONSTANT, describe, error};
use divi_cost::Class;
use divi_dialect::{MoveAttribute, Operation, Value, attr, is_memory, node::attributes_of, op};
use divi_onnx::{Attr, Op, node::normalize_axis};
use divi_planner::units::Micros;
use rustc_hash::FxHashSet;

/// Returns a key that orders times. Negative times and -0.0, whose bits are larger than those of all other times, count
/// as zero.
pub(crate) fn time_key(time: Micros) -> u64 {
    (time.0.max(0.0) + 0.0).to_bits()
}

/// Returns the entry function: the one that an entry point names, `@main`, or the only one that is not private.
pub(crate) fn entry(module: Operation<'_>) -> Result<Operation<'_>, Failure> {
    let all = module.children();
    let functions: Vec<_> = all
        .iter()
        .copied()
        .filter(|&operation| operation.name() == op::FUNC && !operation.blocks().is_empty())
        .collect();
    let name = |function: Operation<'_>| function.symbol_name().unwrap_or_default().to_owned();
    let named = |wanted: &str| functions.iter().copied().find(|&function| name(function) == wanted);
    let entry_point = all
        .iter()
        .find(|&&operation| operation.name() == op::ENTRY_POINT)
        .and_then(|&operation| operation.attribute("func"))
        .and_then(attr::root_symbol);
    if let Some(function) = entry_point.and_then(named).or_else(|| named("main")) {
        return Ok(function);
    }
    let public: Vec<_> = functions.iter().copied().filter(|function| !function.is_private()).collect();
    match public[..] {
        [function] => Ok(function),
        [] => {
            error(module, "has no function with a body that is not private: there is nothing to plan");
            Err(Failure)
        }
        _ => {
            let names: Vec<_> = public.iter().map(|&function| format!("@{}", name(function))).collect();
            error(
                module,
                &format!(
                    "has several functions that may be the model ({}): call one of them @main, or name it with \
                     onnx.EntryPoint",
                    names.join(", ")
                ),
            );
            Err(Failure)
        }
    }
}

/// Returns true if the results of an operation are known at compile time: a constant, or an operator that computes
/// constants (see `canonicalize::constants`).
pub(crate) fn is_constant(operation: Operation<'_>) -> bool {
    operation.has(attr::CONSTANT_BYTES)
        || matches!(
            operation.name(),
            ONNX_CONSTANT | "onnx.NoValue" | "arith.constant" | "tensor.empty" | "tosa.const" | "tosa.const_shape"
        )
}

/// Returns true if a value is a constant, also if it is an argument of a cluster's body.
pub(crate) fn is_constant_value(value: Value<'_>) -> bool {
    outer_value(value).defining_op().is_some_and(is_constant)
}

/// Returns true if a value is a constant with bytes, not an absent operand or an empty destination tensor.
pub(crate) fn is_weight(value: Value<'_>) -> bool {
    let definer = outer_value(value).defining_op();
    definer.is_some_and(|op| is_constant(op) && !matches!(op.name(), "tensor.empty" | "onnx.NoValue"))
}

/// Returns true if a task computes an operand of a concatenation inside the result, so that it is not copied: the operand has no
/// other use, and its elements are contiguous in the result.
pub(crate) fn is_placed(operation: Operation<'_>, operand: Value<'_>) -> bool {
    let outer = outer_value(operand);
    let is_computed = outer.defining_op().is_some_and(|definer| !is_constant(definer));
    let is_contiguous = || {
        let shape = operation.results().first()?.tensor_type()?.static_shape()?;
        let Some(&Attr::Int(axis)) = attributes_of(operation).get("axis") else { return None };
        let axis = normalize_axis(axis, shape.len()).ok()?;
        Some(shape[..axis].iter().all(|&size| size == 1))
    };
    operation.op() == Some(Op::Concat) && is_computed && outer.uses().len() == 1 && is_contiguous() == Some(true)
}

/// Returns the value outside all clusters that an argument of a cluster's body corresponds to; any other value itself.
pub(crate) fn outer_value(mut value: Value<'_>) -> Value<'_> {
    while let (Some(block), Some(number)) = (value.argument_block(), value.argument_number())
        && let Some(parent) = block.parent().filter(|parent| parent.name() == op::CLUSTER)
    {
        value = parent.operand(number);
    }
    value
}

/// Returns the values that a task reads, each once: its operands, and values from outside that its regions use.
pub(crate) fn reads(task: Operation<'_>) -> Vec<Value<'_>> {
    let mut seen = FxHashSet::default();
    let mut values = vec![];
    task.walk(|operation| {
        for operand in operation.operands() {
            let definer = operand.defining_op();
            let owner = definer.or_else(|| operand.argument_block()?.parent());
            let is_inside = owner.is_some_and(|owner| (owner == task && definer.is_none()) || owner.is_inside(task));
            if !is_inside && seen.insert(operand) {
                values.push(operand);
            }
        }
    });
    values
}

/// Returns the operators of a task: those of a cluster and of nested clusters, or the task itself.
pub(crate) fn members(task: Operation<'_>) -> Vec<Operation<'_>> {
    if task.name() != op::CLUSTER {
        return vec![task];
    }
    task.children()
        .into_iter()
        .filter(|&member| !is_constant(member) && member.name() != op::YIELD)
        .flat_map(members)
        .collect()
}

/// Returns the device that a task, or an operator in it, is pinned to.
pub(crate) fn pin(task: Operation<'_>) -> Result<Option<&str>, Failure> {
    let mut pins: Vec<&str> = vec![];
    task.walk(|operation| {
        if let Some(device) = operation.get(attr::PIN)
            && !pins.contains(&device)
        {
            pins.push(device);
        }
    });
    if let [first, second, ..] = pins[..] {
        let message = format!(
            "{} is one task, but parts of it are pinned to @{first} and to @{second}: pin it to one of them",
            describe(task)
        );
        error(task, &message);
        return Err(Failure);
    }
    Ok(pins.first().copied())
}

/// Returns the devices that a task, or an operator in it, must not run on.
pub(crate) fn exclusions(task: Operation<'_>) -> Vec<&str> {
    let mut devices: Vec<&str> = vec![];
    task.walk(|operation| {
        for device in operation.get(attr::EXCLUDE).unwrap_or_default() {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
    });
    devices
}

/// Returns true if a task, or an operator in it, reads its weights from the host's memory on any device.
pub(crate) fn keeps_weights_on_host(task: Operation<'_>) -> bool {
    let mut keeps = false;
    task.walk(|operation| {
        keeps |= operation.get(attr::WEIGHTS) == Some("host");
    });
    keeps
}

/// Returns the co-location groups of a task and of the operators in it.
pub(crate) fn groups_of(task: Operation<'_>) -> Vec<&str> {
    let mut groups: Vec<&str> = vec![];
    task.walk(|operation| {
        if let Some(group) = operation.get(attr::COLOCATE)
            && !groups.contains(&group)
        {
            groups.push(group);
        }
    });
    groups
}

/// Body of the entry function: tasks, arguments and returned values.
pub(crate) struct Tasks<'m> {
    pub(crate) function: Operation<'m>,
    /// In the order of the IR, which is a topological order.
    pub(crate) operations: Vec<Operation<'m>>,
    pub(crate) arguments: Vec<Value<'m>>,
    pub(crate) returned: Vec<Value<'m>>,
}

impl<'m> Tasks<'m> {
    pub(crate) fn of(function: Operation<'m>) -> Result<Self, Failure> {
        let blocks = function.blocks();
        let &[block] = &blocks[..] else {
            let message = format!(
                "{} has {} blocks: tasks are planned by data flow, so branches must be If operators",
                describe(function),
                blocks.len()
            );
            error(function, &message);
            return Err(Failure);
        };
        let terminator = block.terminator().expect("the verifier requires a terminator");
        let mut tasks = block.operations();
        tasks.retain(|&operation| !is_constant(operation) && operation != terminator);
        for &task in &tasks {
            let problem = match task.name() {
                op::CALL => "calls a function: inline it first, with --inline",
                op::LAUNCH | op::TRANSFER | op::SLICE | op::GATHER => {
                    "belongs to a plan: start from the module that was planned"
                }
                _ if task.operands().into_iter().chain(task.results()).any(|value| is_memory(value.r#type())) => {
                    "accesses memory, and the order of accesses is not planned: use tensors"
                }
                _ => continue,
            };
            error(task, &format!("{} {problem}", describe(task)));
            return Err(Failure);
        }
        Ok(Self { function, operations: tasks, arguments: block.arguments(), returned: terminator.operands() })
    }
}

/// Returns true for an operator that names its task: neither a view nor a conversion.
pub(crate) fn is_work(member: Operation<'_>) -> bool {
    member.op().is_none_or(|op| op.class() != Class::View && op != Op::Cast)
}

/// Returns the name of a task in reports: its node, the first node of a cluster that is neither a view nor a conversion, or the
/// operation's name.
pub(crate) fn task_name(task: Operation<'_>) -> &str {
    let first_worker =
        || members(task).into_iter().find(|&member| is_work(member)).and_then(|member| member.get(attr::NODE_NAME));
    let first_member = || task.get(attr::MEMBERS)?.first().copied();
    let member = || (task.name() == op::CLUSTER).then(first_worker).flatten().or_else(first_member);
    task.get(attr::NODE_NAME).or_else(member).unwrap_or_else(|| task.name())
}

/// Returns the transfers that an operation lists under [`attr::MOVES`] or [`attr::COPIES`].
pub(crate) fn moves_of(operation: Operation<'_>, key: attr::Key<attr::Moves>) -> Vec<MoveAttribute<'_>> {
    operation.get(key).unwrap_or_default()
}

/// Returns the kind of a cluster, or the name of an operator.
pub(crate) fn task_kind(task: Operation<'_>) -> &str {
    let name = task.name();
    match name {
        op::CLUSTER => task.get(attr::KIND).unwrap_or(name),
        _ => name.strip_prefix("onnx.").unwrap_or(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_zero_is_ordered_like_zero() {
        assert_eq!(time_key(Micros(-0.0)), time_key(Micros(0.0)));
        assert!(time_key(Micros(-0.0)) < time_key(Micros(1.5)));
        assert!(time_key(Micros(1.5)) < time_key(Micros(2.0)));
    }
}
