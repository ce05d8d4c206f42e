//! Ways to look at functions and clusters.

use divi_dialect::{Operation, Value, attr};
use melior::ir::Module;
use std::collections::BTreeMap;

/// The operations of the module's functions, in order, without what is inside clusters.
pub(crate) fn body<'m>(module: &'m Module<'_>) -> Vec<Operation<'m>> {
    let functions = Operation::from(module).children().into_iter().filter(|operation| operation.name() == "func.func");
    functions.flat_map(operations_below).collect()
}

/// The operations in the blocks of an operation.
pub(crate) fn operations_below(operation: Operation<'_>) -> Vec<Operation<'_>> {
    operation.children()
}

/// Whether an operation is work for a device.
pub(crate) fn is_task(operation: Operation<'_>) -> bool {
    !matches!(
        divi_test::operation_name(operation),
        "onnx.Constant" | "onnx.NoValue" | "func.return" | "onnx.Return" | "divi.yield"
    )
}

/// What a task is: the kind of a cluster, the name of an operator.
pub(crate) fn kind(operation: Operation<'_>) -> &str {
    match divi_test::operation_name(operation) {
        "divi.cluster" => string(operation, "kind").expect("a cluster has a kind"),
        name => name,
    }
}

/// How many tasks there are of each kind.
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

/// The node that an operator was.
pub(crate) fn node_name(operation: Operation<'_>) -> &str {
    string(operation, "onnx_node_name").unwrap_or_default()
}

/// `divi.members`
pub(crate) fn members(cluster: Operation<'_>) -> Vec<&str> {
    cluster.get(attr::MEMBERS).expect("a cluster has members")
}

pub(crate) fn operands(operation: Operation<'_>) -> Vec<Value<'_>> {
    operation.operands()
}

/// The operation that computes a value; `None` for arguments.
pub(crate) fn producer(value: Value<'_>) -> Option<Operation<'_>> {
    value.definer()
}

/// What a function computes, as sorted lines that do not depend on the order of its operations: each has an operator with
/// its attributes and says where its operands come from.
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
        return format!("argument {}", value.argument_number().expect("a value that is no result is an argument"));
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
