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

use crate::{
    declared::{Fuse, FuseStatistics},
    ir::{Failure, error},
};
use cluster::{Family, clusters};
use divi_dialect::{Block, Operation, op};
use graph::{Graph, Node};

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

impl FuseStatistics {
    /// Returns the number of clusters of all kinds.
    pub fn clusters(&self) -> u64 {
        self.num_convolutions
            + self.num_products
            + self.num_normalizations
            + self.num_softmaxes
            + self.num_elementwise
            + self.num_others
    }

    fn add(&mut self, family: Family) {
        *match family {
            Family::Anchor(anchor) if anchor.convolves() => &mut self.num_convolutions,
            Family::Anchor(_) => &mut self.num_products,
            Family::BatchNorm | Family::Normalization => &mut self.num_normalizations,
            Family::Softmax => &mut self.num_softmaxes,
            Family::Elementwise => &mut self.num_elementwise,
            Family::Plain | Family::Views | Family::Opaque => &mut self.num_others,
        } += 1;
    }
}

//===----------------------------------------------------------------------===//
// --divi-fuse
//===----------------------------------------------------------------------===//

/// Fuses in every block of every function, not in regions of operators below. A second run finds nothing to do.
pub fn fuse(module: Operation<'_>, options: &Options) -> FuseStatistics {
    let mut functions = vec![];
    module.walk(|operation| {
        if operation.name() == op::FUNC {
            functions.push(operation);
        }
    });
    let mut statistics = FuseStatistics::default();
    for block in functions.into_iter().flat_map(Operation::blocks) {
        let graph = Graph::of(block);
        let tasks = graph.nodes.iter().filter(|node| !is_terminator(block, node)).count() as u64;
        statistics.num_tasks_before += tasks;
        statistics.num_tasks_after += tasks;
        if options.level == Level::None {
            continue;
        }
        for task in clusters(&graph, options) {
            rewrite::rewrite(module.context(), &graph, &task);
            statistics.add(task.family);
            statistics.num_tasks_after -= task.nodes.len() as u64 - 1;
        }
    }
    statistics
}

fn is_terminator(block: Block<'_>, node: &Node<'_>) -> bool {
    block.terminator() == Some(node.operation)
}

impl Fuse {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<FuseStatistics, Failure> {
        let fail = |message: String| {
            error(module, &message);
            Failure
        };
        let level = self.level.parse().map_err(fail)?;
        let limit = usize::try_from(self.max_cluster_ops).map_err(|_| {
            fail(format!("max-cluster-ops is {}: it must be positive, or 0 for no limit", self.max_cluster_ops))
        })?;
        Ok(fuse(module, &Options { level, max_cluster_ops: (limit > 0).then_some(limit) }))
    }
}
