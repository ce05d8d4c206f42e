//! How operations hang together: clusters seen through, and the subgraphs of control flow.

use crate::{
    ir::operation_name,
    tasks::{definer, outer_value},
};
use divi_onnx::{Op, operators::Family};
use mlir_sys::*;

/// The value that stands behind those of clusters: inside for their results, outside for their arguments.
pub(super) fn source(mut value: MlirValue) -> MlirValue {
    loop {
        value = outer_value(value);
        let Some(cluster) = definer(value).filter(|&definer| operation_name(definer) == "divi.cluster") else {
            return value;
        };
        // SAFETY: the value is a result of the cluster, whose body ends in a yield of one value a result.
        value = unsafe {
            let index = mlirOpResultGetResultNumber(value);
            let body = mlirRegionGetFirstBlock(mlirOperationGetRegion(cluster, 0));
            mlirOperationGetOperand(mlirBlockGetTerminator(body), index)
        };
    }
}

/// Whether an operation is in a block, directly or in clusters.
///
/// # Safety
/// Both must be alive.
pub(super) unsafe fn is_below(mut operation: MlirOperation, block: MlirBlock) -> bool {
    loop {
        // SAFETY: the caller's promise; the parent of an operation in a block is alive.
        unsafe {
            if mlirBlockEqual(mlirOperationGetBlock(operation), block) {
                return true;
            }
            operation = mlirOperationGetParentOperation(operation);
        }
        if operation.ptr.is_null() || operation_name(operation) != "divi.cluster" {
            return false;
        }
    }
}

/// The subgraphs of an operator, under the attributes that they have in ONNX.
pub(super) fn subgraphs(operation: MlirOperation, op: &str) -> Result<Vec<(&'static str, MlirRegion)>, String> {
    // SAFETY: the operation is alive, and indices are below the count; lists end with null.
    let regions: Vec<_> =
        unsafe { (0..mlirOperationGetNumRegions(operation)).map(|i| mlirOperationGetRegion(operation, i)).collect() };
    let names: &[&str] = match Op::from_name(op) {
        Some(Op::If) => &["then_branch", "else_branch"],
        Some(op) if op.family() == Family::ControlFlow => &["body"],
        _ => &[],
    };
    // SAFETY: regions and blocks are alive; lists end with null.
    let is_graph = |region: &MlirRegion| unsafe {
        let block = mlirRegionGetFirstBlock(*region);
        !block.ptr.is_null()
            && mlirBlockGetNextInRegion(block).ptr.is_null()
            && !mlirBlockGetTerminator(block).ptr.is_null()
    };
    if regions.len() != names.len() || !regions.iter().all(is_graph) {
        return Err(format!("has {} regions, but {op} has {} subgraphs of one block", regions.len(), names.len()));
    }
    Ok(names.iter().copied().zip(regions).collect())
}
