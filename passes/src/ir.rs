//! Small conveniences over MLIR's C API that several passes share.

pub(crate) use divi_dialect::{emit_error as error, emit_warning as warning, text};
use melior::StringRef;
use mlir_sys::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What went wrong has been said in diagnostics: MLIR's `failure()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure;

/// The body of a pass, called from C++: a panic is a bug of ours, reported on the module, never an abort.
pub(crate) fn run(module: MlirOperation, body: impl FnOnce() -> Result<(), Failure>) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    if outcome.is_err() {
        error(module, "divi panicked, which is a bug: please report it with this module");
    }
    matches!(outcome, Ok(Ok(())))
}

pub(crate) fn operation_name<'a>(operation: MlirOperation) -> &'a str {
    // SAFETY: an operation's name lives as long as its context.
    unsafe { text(mlirIdentifierStr(mlirOperationGetName(operation))) }
}

/// An attribute by name; `None` if the operation does not have it.
pub(crate) fn attribute(operation: MlirOperation, name: &str) -> Option<MlirAttribute> {
    // SAFETY: the operation is alive.
    let attribute = unsafe { mlirOperationGetAttributeByName(operation, StringRef::new(name).to_raw()) };
    (!attribute.ptr.is_null()).then_some(attribute)
}

pub(crate) fn string_attribute<'a>(attribute: MlirAttribute) -> Option<&'a str> {
    // SAFETY: the attribute is alive, and its text lives as long as its context.
    unsafe { mlirAttributeIsAString(attribute).then(|| text(mlirStringAttrGetValue(attribute))) }
}

/// What messages call an operation: the ONNX node it came from, if it says so.
pub(crate) fn describe(operation: MlirOperation) -> String {
    let op = operation_name(operation);
    match attribute(operation, "onnx_node_name").and_then(string_attribute) {
        Some(name) => format!("'{op}' op '{name}'"),
        None => format!("'{op}' op"),
    }
}

/// The operations of a block, as they are when this is called.
pub(crate) fn operations(block: MlirBlock) -> Vec<MlirOperation> {
    let mut operations = vec![];
    // SAFETY: the block is alive; the list ends with null.
    unsafe {
        let mut next = mlirBlockGetFirstOperation(block);
        while !next.ptr.is_null() {
            operations.push(next);
            next = mlirOperationGetNextInBlock(next);
        }
    }
    operations
}

/// The blocks of all regions of an operation.
pub(crate) fn blocks(operation: MlirOperation) -> Vec<MlirBlock> {
    let mut blocks = vec![];
    // SAFETY: the operation is alive; lists end with null.
    unsafe {
        for i in 0..mlirOperationGetNumRegions(operation) {
            let mut next = mlirRegionGetFirstBlock(mlirOperationGetRegion(operation, i));
            while !next.ptr.is_null() {
                blocks.push(next);
                next = mlirBlockGetNextInRegion(next);
            }
        }
    }
    blocks
}

/// Calls `visit` on every operation below `root`, parents first.
pub(crate) fn walk(root: MlirOperation, visit: &mut dyn FnMut(MlirOperation)) {
    let mut pending = vec![root];
    while let Some(operation) = pending.pop() {
        visit(operation);
        let children: Vec<_> = blocks(operation).into_iter().flat_map(operations).collect();
        pending.extend(children.into_iter().rev());
    }
}
