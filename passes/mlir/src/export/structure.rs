//! Structure of functions: definitions seen through clusters, and the subgraphs of control flow.

use crate::tasks::outer_value;
use divi_dialect::{Block, Operation, Region, Value, op};
use divi_onnx::{Op, operators::Family};

/// Returns the definition of a value across cluster boundaries: from results to the yielded values, from arguments to
/// the operands.
pub(super) fn source(mut value: Value<'_>) -> Value<'_> {
    loop {
        value = outer_value(value);
        let yielded = value.defining_op().filter(|definer| definer.name() == op::CLUSTER).and_then(|cluster| {
            // A cluster's body ends in a yield with one value per result.
            let body = *cluster.blocks().first()?;
            Some(body.terminator()?.operand(value.result_number()?))
        });
        match yielded {
            Some(yielded) => value = yielded,
            None => return value,
        }
    }
}

/// Returns true if an operation is in a block, directly or in clusters.
pub(super) fn is_below<'m>(mut operation: Operation<'m>, block: Block<'m>) -> bool {
    loop {
        if operation.block() == Some(block) {
            return true;
        }
        match operation.parent() {
            Some(parent) if parent.name() == op::CLUSTER => operation = parent,
            _ => return false,
        }
    }
}

/// Returns the subgraphs of an operator, under the attributes that they have in ONNX.
pub(super) fn subgraphs<'m>(operation: Operation<'m>, op: &str) -> Result<Vec<(&'static str, Block<'m>)>, String> {
    let regions = operation.regions();
    let names: &[&str] = match Op::from_name(op) {
        Some(Op::If) => &["then_branch", "else_branch"],
        Some(op) if op.family() == Family::ControlFlow => &["body"],
        _ => &[],
    };
    let graph = |region: &Region<'m>| match region.blocks()[..] {
        [block] if block.terminator().is_some() => Some(block),
        _ => None,
    };
    let graphs: Option<Vec<_>> = regions.iter().map(graph).collect();
    match graphs.filter(|graphs| graphs.len() == names.len()) {
        Some(graphs) => Ok(names.iter().copied().zip(graphs).collect()),
        None => Err(format!("has {} regions, but {op} has {} subgraphs of one block", regions.len(), names.len())),
    }
}
