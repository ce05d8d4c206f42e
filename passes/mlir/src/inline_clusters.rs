//! `divi-inline-clusters`: replaces clusters by their members.

use crate::{
    declared::{InlineClusters, InlineClustersStatistics},
    ir::{Failure, warning},
};
use divi_dialect::{Block, Operation, attr, op};
use rustc_hash::FxHashMap;

//===----------------------------------------------------------------------===//
// --divi-inline-clusters
//===----------------------------------------------------------------------===//

/// Inlines every cluster and returns their number.
///
/// A `divi.pin` or `divi.device` of a cluster is moved to its members. Attributes that apply only to the whole cluster
/// (`divi.cost`, `divi.start`) are lost, with a warning.
pub fn inline_clusters(module: Operation<'_>) -> u64 {
    let mut clusters = vec![];
    module.walk(|operation| {
        if operation.name() == op::CLUSTER {
            clusters.push(operation);
        }
    });
    let planned = clusters.iter().filter(|cluster| cluster.has(attr::COST) || cluster.has(attr::START)).count();
    if planned > 0 {
        warning(
            module,
            &format!("{planned} clusters lose their divi.cost and divi.start: they do not apply to single members"),
        );
    }
    let mut absent = FxHashMap::default();
    for &cluster in &clusters {
        inline(cluster, &mut absent);
    }
    clusters.len() as u64
}

/// Inlines one cluster. `absent` has the `onnx.NoValue` of each block: one is enough, while every cluster has its own.
fn inline<'m>(cluster: Operation<'m>, absent: &mut FxHashMap<Block<'m>, Operation<'m>>) {
    let (Some(&body), Some(parent)) = (cluster.blocks().first(), cluster.block()) else { return };
    let mut members = body.operations();
    let Some(end) = members.pop() else { return };
    for key in [attr::PIN, attr::DEVICE] {
        push_down(cluster, &members, key);
    }
    for (i, operand) in cluster.operands().into_iter().enumerate() {
        body.argument(i).replace_all_uses_with(operand);
    }
    for (value, result) in end.operands().into_iter().zip(cluster.results()) {
        result.replace_all_uses_with(value);
    }
    for member in members {
        if member.name() == "onnx.NoValue" {
            let shared = *absent.entry(parent).or_insert_with(|| first_absent(parent, member));
            if shared != member {
                member.result(0).replace_all_uses_with(shared.result(0));
            }
            continue;
        }
        member.detach();
        member.insert_before(cluster);
    }
    cluster.erase();
}

/// Returns a block's own `onnx.NoValue`, or else `member`, moved to the beginning of the block, so that it dominates
/// all of it.
fn first_absent<'m>(block: Block<'m>, member: Operation<'m>) -> Operation<'m> {
    let own = block.operations().into_iter().find(|&operation| operation.name() == "onnx.NoValue");
    let absent = own.unwrap_or(member);
    // It has no operands, so it can be moved.
    absent.detach();
    absent.insert_at(block, 0)
}

/// Sets a cluster's decision on its members, unless one has it already.
fn push_down(cluster: Operation<'_>, members: &[Operation<'_>], key: attr::Key<attr::Symbol>) {
    let Some(decision) = cluster.get(key) else { return };
    if members.iter().any(|member| member.has(key)) {
        return;
    }
    for &member in members.iter().filter(|&&member| member.name() != "onnx.NoValue") {
        member.set(key, decision);
    }
}

impl InlineClusters {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<InlineClustersStatistics, Failure> {
        Ok(InlineClustersStatistics { num_inlined: inline_clusters(module) })
    }
}
