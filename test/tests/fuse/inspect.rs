//! Ways to look at functions and clusters.

use melior::{
    StringRef,
    ir::{Attribute, Module},
};
use mlir_sys::*;
use std::{collections::BTreeMap, ffi::c_void};

/// The operations of the module's functions, in order, without what is inside clusters.
pub(crate) fn body(module: &Module<'_>) -> Vec<MlirOperation> {
    let mut functions = vec![];
    divi_test::walk(module, &mut |operation| {
        if divi_test::operation_name(operation) == "func.func" {
            functions.push(operation);
        }
    });
    functions.into_iter().flat_map(operations_below).collect()
}

/// The operations in the blocks of an operation's first region.
pub(crate) fn operations_below(operation: MlirOperation) -> Vec<MlirOperation> {
    let mut operations = vec![];
    // SAFETY: the operation is alive and has a region; lists end with null.
    unsafe {
        let mut block = mlirRegionGetFirstBlock(mlirOperationGetRegion(operation, 0));
        while !block.ptr.is_null() {
            let mut next = mlirBlockGetFirstOperation(block);
            while !next.ptr.is_null() {
                operations.push(next);
                next = mlirOperationGetNextInBlock(next);
            }
            block = mlirBlockGetNextInRegion(block);
        }
    }
    operations
}

/// Whether an operation is work for a device.
pub(crate) fn is_task(operation: MlirOperation) -> bool {
    !matches!(
        divi_test::operation_name(operation),
        "onnx.Constant" | "onnx.NoValue" | "func.return" | "onnx.Return" | "divi.yield"
    )
}

/// What a task is: the kind of a cluster, the name of an operator.
pub(crate) fn kind<'a>(operation: MlirOperation) -> &'a str {
    match divi_test::operation_name(operation) {
        "divi.cluster" => string(operation, "kind").expect("a cluster has a kind"),
        name => name,
    }
}

/// How many tasks there are of each kind.
pub(crate) fn kinds<'a>(module: &Module<'_>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for task in body(module).into_iter().filter(|&operation| is_task(operation)) {
        *counts.entry(kind(task)).or_default() += 1;
    }
    counts
}

pub(crate) fn string<'a>(operation: MlirOperation, name: &str) -> Option<&'a str> {
    let attribute = divi_test::attribute(operation, name)?;
    // SAFETY: the attribute is a string, which lives as long as the context.
    unsafe { StringRef::from_raw(mlirStringAttrGetValue(attribute)) }.as_str().ok()
}

/// The node that an operator was.
pub(crate) fn node_name<'a>(operation: MlirOperation) -> &'a str {
    string(operation, "onnx_node_name").unwrap_or_default()
}

/// `divi.members`
pub(crate) fn members<'a>(cluster: MlirOperation) -> Vec<&'a str> {
    let attribute = divi_test::attribute(cluster, "divi.members").expect("a cluster has members");
    // SAFETY: the attribute is an array of strings, which live as long as the context.
    unsafe {
        (0..mlirArrayAttrGetNumElements(attribute))
            .map(|i| StringRef::from_raw(mlirStringAttrGetValue(mlirArrayAttrGetElement(attribute, i))))
            .map(|text| text.as_str().expect("names are UTF-8"))
            .collect()
    }
}

pub(crate) fn operands(operation: MlirOperation) -> Vec<MlirValue> {
    // SAFETY: the operation is alive, and indices are below the count.
    unsafe { (0..mlirOperationGetNumOperands(operation)).map(|i| mlirOperationGetOperand(operation, i)).collect() }
}

/// The operation that computes a value; `None` for arguments.
pub(crate) fn producer(value: MlirValue) -> Option<MlirOperation> {
    // SAFETY: the value is alive, and a result has an owner.
    unsafe { mlirValueIsAOpResult(value).then(|| mlirOpResultGetOwner(value)) }
}

pub(crate) fn key(operation: MlirOperation) -> *const c_void {
    operation.ptr.cast_const()
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

fn source(value: MlirValue) -> String {
    let Some(owner) = producer(value) else {
        // SAFETY: a value that is no result is an argument.
        return format!("argument {}", unsafe { mlirBlockArgumentGetArgNumber(value) });
    };
    match divi_test::operation_name(owner) {
        name @ ("onnx.Constant" | "onnx.NoValue") => format!("{name} {}", attributes(owner)),
        // SAFETY: the value is a result.
        _ => format!("{}#{}", node_name(owner), unsafe { mlirOpResultGetResultNumber(value) }),
    }
}

fn attributes(operation: MlirOperation) -> String {
    // SAFETY: the operation is alive, and indices are below the count.
    unsafe {
        (0..mlirOperationGetNumAttributes(operation))
            .map(|i| {
                let named = mlirOperationGetAttribute(operation, i);
                let name = StringRef::from_raw(mlirIdentifierStr(named.name));
                format!("{}={}", name.as_str().unwrap_or_default(), Attribute::from_raw(named.attribute))
            })
            .collect::<Vec<_>>()
            .join(" ")
    }
}
