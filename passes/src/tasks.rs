//! The tasks of a module: what a planner places. Every operator of the function that runs the model is one, and so is a
//! cluster; constants are none, they are wherever they are read.

use crate::ir::{
    Failure, ONNX_CONSTANT, arguments_of, array_attribute, attribute, blocks, describe, error, op_of, operands,
    operation_name, operations, results, string_attribute, symbol_attribute, text, type_of, walk,
};
use divi_cost::Class;
use divi_dialect::MoveAttribute;
use melior::ir::Attribute;
use mlir_sys::*;
use rustc_hash::FxHashSet;

/// The function that runs the model: the one that an entry point names, `@main`, or the only one that is not private.
pub(crate) fn entry(module: MlirOperation) -> Result<MlirOperation, Failure> {
    let all: Vec<_> = blocks(module).into_iter().flat_map(operations).collect();
    let functions: Vec<_> = all
        .iter()
        .copied()
        .filter(|&operation| operation_name(operation) == "func.func" && !blocks(operation).is_empty())
        .collect();
    let name = |function: MlirOperation| attribute(function, "sym_name").and_then(string_attribute).unwrap_or_default();
    let named = |wanted: &str| functions.iter().copied().find(|&function| name(function) == wanted);
    let entry_point = all
        .iter()
        .find(|&&operation| operation_name(operation) == "onnx.EntryPoint")
        .and_then(|&operation| attribute(operation, "func"))
        // SAFETY: the attribute is alive, and its text lives as long as its context.
        .and_then(|symbol| unsafe {
            mlirAttributeIsASymbolRef(symbol).then(|| text(mlirSymbolRefAttrGetRootReference(symbol)))
        });
    if let Some(function) = entry_point.and_then(named).or_else(|| named("main")) {
        return Ok(function);
    }
    let is_private =
        |function: MlirOperation| attribute(function, "sym_visibility").and_then(string_attribute) == Some("private");
    let public: Vec<_> = functions.iter().copied().filter(|&function| !is_private(function)).collect();
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

/// Name of the attribute of operators that compute constants of constants, with the bytes of the latter: see
/// `canonicalize::constants`.
pub(crate) const CONSTANT: &str = "divi.constant_bytes";

/// Whether an operation only stands for a value that is known when the model is compiled.
pub(crate) fn is_constant(operation: MlirOperation) -> bool {
    attribute(operation, CONSTANT).is_some()
        || matches!(
            operation_name(operation),
            ONNX_CONSTANT | "onnx.NoValue" | "arith.constant" | "tensor.empty" | "tosa.const" | "tosa.const_shape"
        )
}

/// Whether a value is a constant. What a cluster's body reads is what the cluster does.
pub(crate) fn is_constant_value(value: MlirValue) -> bool {
    definer(outer_value(value)).is_some_and(is_constant)
}

/// Whether a value is a constant with bytes: not an absent operand, nor a place for a result.
pub(crate) fn is_weight(value: MlirValue) -> bool {
    let definer = definer(outer_value(value));
    definer.is_some_and(|op| is_constant(op) && !matches!(operation_name(op), "tensor.empty" | "onnx.NoValue"))
}

/// The operation that a value is a result of.
pub(crate) fn definer(value: MlirValue) -> Option<MlirOperation> {
    // SAFETY: the value is alive.
    unsafe { mlirValueIsAOpResult(value).then(|| mlirOpResultGetOwner(value)) }
}

/// The value that an argument of a cluster's body stands for, out of all clusters around it; every other value itself.
pub(crate) fn outer_value(mut value: MlirValue) -> MlirValue {
    // SAFETY: the value is alive, and an argument's block and its parent are too; a cluster has an operand an argument.
    unsafe {
        while mlirValueIsABlockArgument(value) {
            let parent = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
            if parent.ptr.is_null() || operation_name(parent) != "divi.cluster" {
                break;
            }
            value = mlirOperationGetOperand(parent, mlirBlockArgumentGetArgNumber(value));
        }
    }
    value
}

/// Whether an operation is inside another, at any depth.
pub(crate) fn is_inside(operation: MlirOperation, outer: MlirOperation) -> bool {
    let mut next = operation;
    // SAFETY: operations are alive; the outermost has no parent.
    unsafe {
        while !next.ptr.is_null() {
            next = mlirOperationGetParentOperation(next);
            if !next.ptr.is_null() && mlirOperationEqual(next, outer) {
                return true;
            }
        }
    }
    false
}

/// The values that a task reads, each once: its operands, and what its regions read from outside.
pub(crate) fn reads(task: MlirOperation) -> Vec<MlirValue> {
    let mut seen = FxHashSet::default();
    let mut values = vec![];
    walk(task, &mut |operation| {
        for operand in operands(operation) {
            // SAFETY: the value is alive, and so are an argument's block and its parent.
            let owner = unsafe {
                match mlirValueIsABlockArgument(operand) {
                    true => mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(operand)),
                    false => mlirOpResultGetOwner(operand),
                }
            };
            // SAFETY: both operations are alive.
            let is_own = unsafe { mlirOperationEqual(owner, task) } && !is_result(operand);
            if !is_own && !is_inside(owner, task) && seen.insert(operand.ptr) {
                values.push(operand);
            }
        }
    });
    values
}

fn is_result(value: MlirValue) -> bool {
    definer(value).is_some()
}

/// The operators of a task: those of a cluster and of clusters in it, or the task itself.
pub(crate) fn members(task: MlirOperation) -> Vec<MlirOperation> {
    if operation_name(task) != "divi.cluster" {
        return vec![task];
    }
    let body = blocks(task).into_iter().flat_map(operations);
    body.filter(|&member| !is_constant(member) && operation_name(member) != "divi.yield").flat_map(members).collect()
}

/// The device that a task is pinned to, by itself or by what is in it.
pub(crate) fn pin<'a>(task: MlirOperation) -> Result<Option<&'a str>, Failure> {
    let mut pins: Vec<&str> = vec![];
    walk(task, &mut |operation| {
        if let Some(device) = attribute(operation, "divi.pin").and_then(symbol_attribute)
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

/// The devices that a task must not run on, because it or something in it must not.
pub(crate) fn exclusions<'a>(task: MlirOperation) -> Vec<&'a str> {
    let mut devices: Vec<&str> = vec![];
    walk(task, &mut |operation| {
        let excluded = attribute(operation, "divi.exclude").and_then(array_attribute).unwrap_or_default();
        for device in excluded.into_iter().filter_map(symbol_attribute) {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
    });
    devices
}

/// Whether a task, or something in it, reads its weights from the host's memory wherever it runs.
pub(crate) fn keeps_weights_on_host(task: MlirOperation) -> bool {
    let mut keeps = false;
    walk(task, &mut |operation| {
        keeps |= attribute(operation, "divi.weights").and_then(string_attribute) == Some("host");
    });
    keeps
}

/// The groups that share a device and that a task, or something in it, belongs to.
pub(crate) fn groups_of<'a>(task: MlirOperation) -> Vec<&'a str> {
    let mut groups: Vec<&str> = vec![];
    walk(task, &mut |operation| {
        if let Some(group) = attribute(operation, "divi.colocate").and_then(string_attribute)
            && !groups.contains(&group)
        {
            groups.push(group);
        }
    });
    groups
}

/// The body of the function that runs a model, as a planner sees it.
pub(crate) struct Tasks {
    pub(crate) function: MlirOperation,
    /// In the order of the IR, which is one that the tasks can run in.
    pub(crate) operations: Vec<MlirOperation>,
    pub(crate) arguments: Vec<MlirValue>,
    pub(crate) returned: Vec<MlirValue>,
}

impl Tasks {
    pub(crate) fn of(function: MlirOperation) -> Result<Self, Failure> {
        let blocks = blocks(function);
        let &[block] = &blocks[..] else {
            let message = format!(
                "{} has {} blocks: tasks are planned by data flow, so branches must be If operators",
                describe(function),
                blocks.len()
            );
            error(function, &message);
            return Err(Failure);
        };
        // SAFETY: the block is alive, and a function's body ends in a terminator.
        let terminator = unsafe { mlirBlockGetTerminator(block) };
        let mut tasks = operations(block);
        // SAFETY: both operations are alive.
        tasks.retain(|&operation| !is_constant(operation) && !unsafe { mlirOperationEqual(operation, terminator) });
        for &task in &tasks {
            let problem = match operation_name(task) {
                "func.call" => "calls a function: inline it first, with --inline",
                "divi.launch" | "divi.transfer" | "divi.slice" | "divi.gather" => {
                    "belongs to a plan: start from the module that was planned"
                }
                _ if operands(task).into_iter().chain(results(task)).any(is_memory) => {
                    "works on memory, whose order is not planned: let it work on tensors"
                }
                _ => continue,
            };
            error(task, &format!("{} {problem}", describe(task)));
            return Err(Failure);
        }
        Ok(Self { function, operations: tasks, arguments: arguments_of(block), returned: operands(terminator) })
    }
}

fn is_memory(value: MlirValue) -> bool {
    let r#type = type_of(value);
    // SAFETY: the type of a live value is alive.
    unsafe { mlirTypeIsAMemRef(r#type) || mlirTypeIsAUnrankedMemRef(r#type) }
}

/// What users call a task: the node that it came from, the first of a cluster's that does more than to view, or the
/// operation's name.
pub(crate) fn task_name<'a>(task: MlirOperation) -> &'a str {
    let node_name = |operation| attribute(operation, "onnx_node_name").and_then(string_attribute);
    let is_work = |member: &MlirOperation| op_of(*member).is_none_or(|op| op.class() != Class::View);
    let first_worker = || members(task).into_iter().find(is_work).and_then(node_name);
    let first_member = || {
        let members = array_attribute(attribute(task, "divi.members")?)?;
        string_attribute(*members.first()?)
    };
    let member = || (operation_name(task) == "divi.cluster").then(first_worker).flatten().or_else(first_member);
    node_name(task).or_else(member).unwrap_or_else(|| operation_name(task))
}

/// What an operation says about when something goes from device to device: `divi.moves`, or `divi.copies`.
pub(crate) fn moves_of<'c>(operation: MlirOperation, name: &str) -> Vec<MoveAttribute<'c>> {
    let list = attribute(operation, name).and_then(array_attribute).unwrap_or_default();
    // SAFETY: the attributes live as long as their context.
    let list = list.into_iter().map(|moved| unsafe { Attribute::from_raw(moved) });
    list.filter_map(MoveAttribute::from_attribute).collect()
}

/// What a task is: the kind of a cluster, or the operator's name.
pub(crate) fn task_kind<'a>(task: MlirOperation) -> &'a str {
    let name = operation_name(task);
    match name {
        "divi.cluster" => attribute(task, "kind").and_then(string_attribute).unwrap_or(name),
        _ => name.strip_prefix("onnx.").unwrap_or(name),
    }
}
