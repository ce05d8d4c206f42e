//! `divi-inline-clusters`: takes clusters away, and leaves their members where they stood.

use crate::{
    declared::{InlineClusters, InlineClustersStatistics},
    ir::{Failure, attribute, blocks, operands, operation_name, operations, results, walk, warning},
};
use melior::StringRef;
use mlir_sys::*;
use rustc_hash::FxHashMap;
use std::ffi::c_void;

//===----------------------------------------------------------------------===//
// --divi-inline-clusters
//===----------------------------------------------------------------------===//

/// Inlines every cluster; returns how many there were.
///
/// A `divi.pin` or `divi.device` that a cluster got as a whole goes to its members. What holds for a cluster only as a whole
/// (`divi.cost`, `divi.start`) is lost, with a warning.
pub fn inline_clusters(module: MlirOperation) -> u64 {
    let mut clusters = vec![];
    walk(module, &mut |operation| {
        if operation_name(operation) == "divi.cluster" {
            clusters.push(operation);
        }
    });
    let planned = clusters
        .iter()
        .filter(|&&cluster| ["divi.cost", "divi.start"].iter().any(|name| attribute(cluster, name).is_some()))
        .count();
    if planned > 0 {
        warning(
            module,
            &format!("{planned} clusters lose their divi.cost and divi.start: they hold for no member alone"),
        );
    }
    let mut absent = FxHashMap::default();
    for &cluster in &clusters {
        inline(cluster, &mut absent);
    }
    clusters.len() as u64
}

/// Takes one cluster away. `absent` has the `onnx.NoValue` of each block: one is enough, and clusters have one each.
fn inline(cluster: MlirOperation, absent: &mut FxHashMap<*const c_void, MlirOperation>) {
    let Some(&body) = blocks(cluster).first() else { return };
    let mut members = operations(body);
    let Some(end) = members.pop() else { return };
    for name in ["divi.pin", "divi.device"] {
        hand_down(cluster, &members, name);
    }
    // SAFETY: everything is alive; a verified cluster's body has an argument an operand and ends in a yield of one value a
    // result. Members are moved out before the cluster is destroyed with its body.
    unsafe {
        for (i, operand) in operands(cluster).into_iter().enumerate() {
            mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(body, i as isize), operand);
        }
        for (value, result) in operands(end).into_iter().zip(results(cluster)) {
            mlirValueReplaceAllUsesOfWith(result, value);
        }
        let parent = mlirOperationGetBlock(cluster);
        for member in members {
            if operation_name(member) == "onnx.NoValue" {
                let shared = *absent.entry(parent.ptr.cast_const()).or_insert_with(|| first_absent(parent, member));
                if !mlirOperationEqual(shared, member) {
                    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(member, 0), mlirOperationGetResult(shared, 0));
                }
                continue;
            }
            mlirOperationRemoveFromParent(member);
            mlirBlockInsertOwnedOperationBefore(parent, cluster, member);
        }
        mlirOperationDestroy(cluster);
    }
}

/// A block's own `onnx.NoValue`, or else `member`, at the block's beginning, so that all of the block can use it.
fn first_absent(block: MlirBlock, member: MlirOperation) -> MlirOperation {
    let own = operations(block).into_iter().find(|&operation| operation_name(operation) == "onnx.NoValue");
    let absent = own.unwrap_or(member);
    // SAFETY: both are alive; the operation has no operands, so it may stand anywhere.
    unsafe {
        mlirOperationRemoveFromParent(absent);
        mlirBlockInsertOwnedOperation(block, 0, absent);
    }
    absent
}

/// Gives a cluster's decision to its members, unless it is theirs.
fn hand_down(cluster: MlirOperation, members: &[MlirOperation], name: &str) {
    let Some(decision) = attribute(cluster, name) else { return };
    if members.iter().any(|&member| attribute(member, name).is_some()) {
        return;
    }
    for &member in members.iter().filter(|&&member| operation_name(member) != "onnx.NoValue") {
        // SAFETY: the operation is alive, and the attribute belongs to its context.
        unsafe { mlirOperationSetAttributeByName(member, StringRef::new(name).to_raw(), decision) };
    }
}

impl InlineClusters {
    pub(crate) fn run(&self, module: MlirOperation) -> Result<InlineClustersStatistics, Failure> {
        Ok(InlineClustersStatistics { num_inlined: inline_clusters(module) })
    }
}
