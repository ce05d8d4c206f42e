//! The tasks of a module: what a planner places. Every operator of the function that runs the model is one, and so is a
//! cluster; constants are none, they are wherever they are read.

use crate::ir::{
    Failure, arguments_of, array_attribute, attribute, blocks, describe, error, operands, operation_name, operations,
    string_attribute, text,
};
use divi_cost::{Class, class};
use mlir_sys::*;

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

/// Whether an operation only stands for a value that is known when the model is compiled.
pub(crate) fn is_constant(operation: MlirOperation) -> bool {
    matches!(operation_name(operation), "onnx.Constant" | "onnx.NoValue" | "arith.constant" | "tensor.empty")
}

/// Whether a value is a constant. What a cluster's body reads is what the cluster does.
pub(crate) fn is_constant_value(value: MlirValue) -> bool {
    definer(outer_value(value)).is_some_and(is_constant)
}

/// The operation that a value is a result of.
pub(crate) fn definer(value: MlirValue) -> Option<MlirOperation> {
    // SAFETY: the value is alive.
    unsafe { mlirValueIsAOpResult(value).then(|| mlirOpResultGetOwner(value)) }
}

/// The value that an argument of a cluster's body stands for; every other value itself.
pub(crate) fn outer_value(value: MlirValue) -> MlirValue {
    // SAFETY: the value is alive, and an argument's block and its parent are too.
    unsafe {
        if !mlirValueIsABlockArgument(value) {
            return value;
        }
        let parent = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
        if parent.ptr.is_null() || operation_name(parent) != "divi.cluster" {
            return value;
        }
        mlirOperationGetOperand(parent, mlirBlockArgumentGetArgNumber(value))
    }
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
            if matches!(operation_name(task), "func.call" | "divi.launch") {
                error(task, &format!("{} calls a function: inline it first, with --inline", describe(task)));
                return Err(Failure);
            }
        }
        Ok(Self { function, operations: tasks, arguments: arguments_of(block), returned: operands(terminator) })
    }
}

/// What users call a task: the node that it came from, the first of a cluster's that does more than to view, or the
/// operation's name.
pub(crate) fn task_name<'a>(task: MlirOperation) -> &'a str {
    let node_name = |operation| attribute(operation, "onnx_node_name").and_then(string_attribute);
    let is_work = |&member: &MlirOperation| {
        !is_constant(member) && class(operation_name(member).trim_start_matches("onnx.")) != Class::View
    };
    let first_worker = || blocks(task).into_iter().flat_map(operations).find(is_work).and_then(node_name);
    let first_member = || {
        let members = array_attribute(attribute(task, "divi.members")?)?;
        string_attribute(*members.first()?)
    };
    let member = || (operation_name(task) == "divi.cluster").then(first_worker).flatten().or_else(first_member);
    node_name(task).or_else(member).unwrap_or_else(|| operation_name(task))
}

/// What a task is: the kind of a cluster, or the operator's name.
pub(crate) fn task_kind<'a>(task: MlirOperation) -> &'a str {
    let name = operation_name(task);
    match name {
        "divi.cluster" => attribute(task, "kind").and_then(string_attribute).unwrap_or(name),
        _ => name.strip_prefix("onnx.").unwrap_or(name),
    }
}
