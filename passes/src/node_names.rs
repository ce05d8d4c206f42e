//! What tasks are called, for patterns: the names of the operators that they came from.

use crate::{
    ir::{array_attribute, attribute, operation_name, string_attribute},
    tasks::members,
};
use mlir_sys::*;

/// The names of the nodes that a task was made of: its own, its members', and those that a cluster lists.
pub(crate) fn node_names<'a>(task: MlirOperation) -> Vec<&'a str> {
    let mut names: Vec<&str> = vec![];
    let own = [task].into_iter().chain(members(task));
    let listed = attribute(task, "divi.members").and_then(array_attribute).unwrap_or_default();
    let all = own
        .filter_map(|operation| attribute(operation, "onnx_node_name").and_then(string_attribute))
        .chain(listed.into_iter().filter_map(string_attribute));
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Type and name of each operator of a task, as onnx-mlir has them: `onnx.Conv` and the node's name.
pub(crate) fn typed_names<'a>(task: MlirOperation) -> Vec<(&'a str, &'a str)> {
    let typed = |operation| {
        let name = attribute(operation, "onnx_node_name").and_then(string_attribute).unwrap_or_default();
        (operation_name(operation), name)
    };
    members(task).into_iter().map(typed).collect()
}
