//! `divi-fuse`: operators that run as one task go into one `divi.cluster`.
//!
//! | kind | what is in it |
//! |---|---|
//! | `conv`, then any of `_bn` or `_bias`, `_ACT`, `_add`, `_ACT` | a convolution; `BatchNormalization` folds into its weights; `add` is a residual |
//! | `convtranspose…` | the same for `ConvTranspose` |
//! | `matmul`, `gemm`, then any of `_bias`, `_ACT`, `_add`, `_ACT` | a product of matrices; `bias` is an `Add` of a constant a column |
//! | `bn`, then any of `_ACT`, `_add`, `_ACT` | a `BatchNormalization` that folds into nothing: a scale and a shift |
//! | `softmax`, `logsoftmax` after any of `scale_`, `mask_` | with `Mul` or `Div` by a number and `Add` or `Where` before it |
//! | `layer_norm`, `rms_norm` | spelled out, with scale, shift and casts; or the operator with views |
//! | `gelu`, `silu`, `hardswish`, `mish`, … | an activation spelled out, behind nothing that it could go with |
//! | `elementwise` | other element-wise operators one behind the other |
//! | `transpose`, `maxpool`, … | one operator with views around it, by its name in lower case |
//! | `view` | views alone |
//!
//! `ACT` is an activation by its name in lower case: `relu`, `clip`, `hardswish`, `silu`, `gelu`, …; GELU and its
//! approximation by tanh are both `gelu`. Views change types, not bytes: `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`,
//! `Identity`, a `Cast` or `Expand` to the type that is there, a `Concat` of one tensor, a `Transpose` that moves
//! dimensions of size 1 only or that is done when the model is compiled, as its operand is a constant. They cost nothing,
//! do not count in levels or limits, and go with a neighbour.
//!
//! A cluster never delays or duplicates work. A value inside that somebody outside reads too ends it, so what others see
//! of it is its last operator's result; what a later member reads beside that must be there when the cluster could
//! start without it (its longest path, counted in tasks, is no longer).
//!
//! A cluster stands where its last member stood; members have no effects but their results, and nothing else moves.
//! `divi.members` and the location name the members in order (an operator without `onnx_node_name` by its operator).
//!
//! Constants stay outside, as operands that tasks share. `divi.pin` and `divi.device` must be the same on all members, also
//! in that they are there at all, views excepted, and are then on the cluster as well; so no constraint comes to hold for
//! work that it was not put on. Clusters that are there, operators that divi does not know, that have regions, random
//! results, or other `divi.…` attributes stay where and as they are.

mod cluster;
mod evaluate;
mod grammar;
mod graph;
mod idiom;
mod kind;
mod rewrite;
mod role;

use crate::ir::{Failure, blocks, error, operation_name, run, text, walk};
use cluster::{Family, clusters};
use graph::{Graph, Node};
use melior::ContextRef;
use mlir_sys::*;

/// How much is fused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Nothing.
    None,
    /// Convolutions and products of matrices with what is attached to them.
    Conv,
    #[default]
    Full,
}

impl std::str::FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "conv" => Ok(Self::Conv),
            "full" => Ok(Self::Full),
            _ => Err(format!("level is '{text}': it must be none, conv or full")),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub level: Level,
    /// The most operators that a cluster may have, views not counted; `None` for no limit.
    pub max_cluster_ops: Option<usize>,
}

/// What a run of the pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Clusters around a convolution.
    pub convolutions: u64,
    /// Clusters around a product of matrices.
    pub products: u64,
    /// Normalizations: `bn…`, `layer_norm`, `rms_norm`.
    pub normalizations: u64,
    pub softmaxes: u64,
    /// Element-wise clusters, activations among them.
    pub elementwise: u64,
    /// One operator with views, and views alone.
    pub others: u64,
    /// Operators before, without constants.
    pub tasks_before: u64,
    /// Operators and clusters after, without constants.
    pub tasks_after: u64,
}

impl Counts {
    pub fn clusters(&self) -> u64 {
        self.convolutions + self.products + self.normalizations + self.softmaxes + self.elementwise + self.others
    }

    fn add(&mut self, family: Family) {
        *match family {
            Family::Anchor(anchor) if anchor.convolves() => &mut self.convolutions,
            Family::Anchor(_) => &mut self.products,
            Family::BatchNorm | Family::Normalization => &mut self.normalizations,
            Family::Softmax => &mut self.softmaxes,
            Family::Elementwise => &mut self.elementwise,
            Family::Plain | Family::Views | Family::Opaque => &mut self.others,
        } += 1;
    }
}

//===----------------------------------------------------------------------===//
// --divi-fuse
//===----------------------------------------------------------------------===//

/// Fuses in every block of every function, not in regions of operators below. A second run finds nothing to do.
pub fn fuse(module: MlirOperation, options: &Options) -> Counts {
    // SAFETY: the context of a live operation is alive.
    let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(module)) };
    // SAFETY: the context outlives the pass.
    let context = unsafe { context.to_ref() };
    let mut functions = vec![];
    walk(module, &mut |operation| {
        if operation_name(operation) == "func.func" {
            functions.push(operation);
        }
    });
    let mut counts = Counts::default();
    for block in functions.into_iter().flat_map(blocks) {
        let graph = Graph::of(block);
        let tasks = graph.nodes.iter().filter(|node| !is_terminator(block, node)).count() as u64;
        counts.tasks_before += tasks;
        counts.tasks_after += tasks;
        if options.level == Level::None {
            continue;
        }
        for task in clusters(&graph, options) {
            rewrite::rewrite(context, &graph, &task);
            counts.add(task.family);
            counts.tasks_after -= task.nodes.len() as u64 - 1;
        }
    }
    counts
}

fn is_terminator(block: MlirBlock, node: &Node) -> bool {
    // SAFETY: the block is alive; where it has no terminator, that is null.
    unsafe { mlirOperationEqual(mlirBlockGetTerminator(block), node.operation) }
}

#[unsafe(no_mangle)]
extern "C" fn diviRunFuse(
    module: MlirOperation,
    level: MlirStringRef,
    max_cluster_ops: i64,
    counts: *mut Counts,
) -> bool {
    run(module, || {
        // SAFETY: the caller's string outlives the call.
        let level = unsafe { text(level) }.parse().map_err(|message: String| {
            error(module, &message);
            Failure
        })?;
        let Ok(limit) = usize::try_from(max_cluster_ops) else {
            let message = format!("max-cluster-ops is {max_cluster_ops}: it must be positive, or 0 for no limit");
            error(module, &message);
            return Err(Failure);
        };
        let options = Options { level, max_cluster_ops: (limit > 0).then_some(limit) };
        // SAFETY: the caller's counter outlives the call.
        unsafe { *counts = fuse(module, &options) };
        Ok(())
    })
}
