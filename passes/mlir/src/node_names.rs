//! Names of the ONNX nodes of tasks, for matching patterns.

use crate::tasks::members;
use divi_dialect::{Operation, attr};

/// Returns the names of a task's nodes: its own, its members', and those that a cluster lists.
pub(crate) fn node_names(task: Operation<'_>) -> Vec<&str> {
    let mut names: Vec<&str> = vec![];
    let own = [task].into_iter().chain(members(task));
    let listed = task.get(attr::MEMBERS).unwrap_or_default();
    let all = own.filter_map(|operation| operation.get(attr::NODE_NAME)).chain(listed);
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns type and name of each operator of a task, as in onnx-mlir: `onnx.Conv` and the node's name.
pub(crate) fn typed_names(task: Operation<'_>) -> Vec<(&str, &str)> {
    members(task)
        .into_iter()
        .map(|operation| (operation.name(), operation.get(attr::NODE_NAME).unwrap_or_default()))
        .collect()
}
