//! Inspection of functions and clusters.

use divi_dialect::{Operation, Value, attr};
use melior::ir::Module;
use std::collections::BTreeMap;

/// Returns the operations of the module's functions in order, without the contents of clusters.
pub(crate) fn body<'m>(module: &'m Module<'_>) -> Vec<Operation<'m>> {
    let functions = Operation::from(module).children().into_iter().filter(|operation| operation.name() == "func.func");
    functions.flat_map(operations_below).collect()
}

/// Returns the operations in the blocks of an operation.
pub(crate) fn operations_below(operation: Operation<'_>) -> Vec<Operation<'_>> {
    operation.children()
}

/// Returns true if an operation is a task for a device.
pub(crate) fn is_task(operation: Operation<'_>) -> bool {
    !matches!(
        divi_test::operation_name(operation),
        "onnx.Constant" | "onnx.NoValue" | "func.return" | "onnx.Return" | "divi.yield"
    )
}

/// Returns the kind of a cluster, or the name of an operator.
pub(crate) fn kind(operation: Operation<'_>) -> &str {
    match divi_test::operation_name(operation) {
        "divi.cluster" => string(operation, "kind").expect("a cluster has a kind"),
        name => name,
    }
}

/// Counts the tasks of each kind.
pub(crate) fn kinds<'m>(module: &'m Module<'_>) -> BTreeMap<&'m str, usize> {
    let mut counts = BTreeMap::new();
    for task in body(module).into_iter().filter(|&operation| is_task(operation)) {
        *counts.entry(kind(task)).or_default() += 1;
    }
    counts
}

pub(crate) fn string<'m>(operation: Operation<'m>, name: &str) -> Option<&'m str> {
    operation.attribute(name).and_then(attr::as_string)
}

/// Returns the name of the node that an operator was imported from.
pub(crate) fn node_name(operation: Operation<'_>) -> &str {
    string(operation, "onnx_node_name").unwrap_or_default()
}

/// Returns `divi.members`.
pub(crate) fn members(cluster: Operation<'_>) -> Vec<&str> {
    cluster.get(attr::MEMBERS).expect("a cluster has members")
}

pub(crate) fn operands(operation: Operation<'_>) -> Vec<Value<'_>> {
    operation.operands()
}

/// Returns the operation that defines a value; `None` for arguments.
pub(crate) fn producer(value: Value<'_>) -> Option<Operation<'_>> {
    value.defining_op()
}

/// Returns a representation of a function that is independent of the order of its operations: sorted lines, each with an
/// operator, its attributes and the definitions of its operands.
pub(crate) fn canonical(module: &Module<'_>) -> Vec<String> {
    let mut lines: Vec<_> = body(module)
        .into_iter()
        .filter(|&operation| !matches!(divi_test::operation_name(operation), "onnx.Constant" | "onnx.NoValue"))
        .map(|operation| {
            let sources: Vec<_> = operands(operation).into_iter().map(source).collect();
            format!("{} {} ({})", divi_test::operation_name(operation), attributes(operation), sources.join(", "))
        })
        .collect();
    lines.sort();
    lines
}

fn source(value: Value<'_>) -> String {
    let Some(owner) = producer(value) else {
        return format!("argument {}", value.argument_number().expect("a value is a result or an argument"));
    };
    match divi_test::operation_name(owner) {
        name @ ("onnx.Constant" | "onnx.NoValue") => format!("{name} {}", attributes(owner)),
        _ => format!("{}#{}", node_name(owner), value.result_number().expect("the value is a result")),
    }
}

fn attributes(operation: Operation<'_>) -> String {
    let texts = operation.attributes().into_iter().map(|(name, attribute)| format!("{name}={attribute}"));
    texts.collect::<Vec<_>>().join(" ")
}
