//! `divi-fuse`: forms one `divi.cluster` of operators that run as one task.
//!
//! | kind | content |
//! |---|---|
//! | `conv`, then any of `_bn` or `_bias`, `_ACT`, `_add`, `_ACT` | a convolution; `BatchNormalization` folds into its weights; `add` is a residual |
//! | `convtranspose…` | the same for `ConvTranspose` |
//! | `matmul`, `gemm`, then any of `_bias`, `_ACT`, `_add`, `_ACT` | a matrix product; `bias` is an `Add` of one constant per column |
//! | `bn`, then any of `_ACT`, `_add`, `_ACT` | a `BatchNormalization` that cannot be folded: a scale and a shift |
//! | `attention` | products of queries, keys and values, with scale, mask, Softmax, and the transpositions of operands and result |
//! | `softmax`, `logsoftmax` after any of `scale_`, `mask_` | with `Mul` or `Div` by a number and `Add` or `Where` before it |
//! | `layer_norm`, `rms_norm` | a decomposed normalization with scale, shift and casts; or the operator with views |
//! | `gelu`, `silu`, `hardswish`, `mish`, … | a decomposed activation that is not part of an epilogue |
//! | `elementwise` | a chain of other element-wise operators |
//! | `transpose`, `maxpool`, … | one operator with adjacent views, by its name in lower case |
//! | `view` | views alone |
//!
//! `ACT` is an activation by its name in lower case: `relu`, `clip`, `hardswish`, `silu`, `gelu`, …; GELU and its
//! approximation by tanh are both `gelu`. Views change types, not bytes: `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`,
//! `Identity`, a `Cast` or `Expand` to the operand's own type, a `Concat` of one tensor, a `Transpose` that moves only
//! dimensions of size 1, and a `Cast` or `Transpose` of a constant, which is evaluated at compile time. A `Cast` between
//! `f32` and half precision is one, too: CPU kernels convert elements when they load and store them. Views cost nothing, do
//! not count in depths or limits, and are fused with a neighbor.
//!
//! A cluster never delays or duplicates work. A value with a use outside ends the cluster, so only the results of its
//! last operator are used outside. Further operands of later members must not delay the start of the cluster: their
//! depth (longest path to them, counted in tasks) is at most that of the cluster's first operands.
//!
//! A cluster takes the position of its last member; members have no side effects, and nothing else moves.
//! `divi.members` and the location list the members in order (an operator without `onnx_node_name` by its operator).
//!
//! Constants stay outside, as operands that tasks share. `divi.pin` and `divi.device` must be equal, or absent, on all
//! members except views, and are then set on the cluster as well; so no operator that does work gets a pin or device
//! that it did not have. Existing clusters, unknown operators, and operators with regions, random results or other
//! `divi.…` attributes are not changed.

mod attention;
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

/// Extent of fusion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// No fusion.
    None,
    /// Convolutions and matrix products with their epilogues.
    Conv,
    /// All patterns.
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

/// Options of [`fuse`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Extent of fusion.
    pub level: Level,
    /// Maximum number of operators of a cluster, without views; `None` for no limit.
    pub max_cluster_ops: Option<usize>,
}

impl FuseStatistics {
    /// Returns the number of clusters of all kinds.
    pub fn clusters(&self) -> u64 {
        self.num_convolutions
            + self.num_products
            + self.num_normalizations
            + self.num_softmaxes
            + self.num_attentions
            + self.num_elementwise
            + self.num_others
    }

    fn add(&mut self, family: Family) {
        *match family {
            Family::Anchor(anchor) if anchor.convolves() => &mut self.num_convolutions,
            Family::Anchor(_) => &mut self.num_products,
            Family::BatchNorm | Family::Normalization => &mut self.num_normalizations,
            Family::Softmax => &mut self.num_softmaxes,
            Family::Attention => &mut self.num_attentions,
            Family::Elementwise => &mut self.num_elementwise,
            Family::Plain | Family::Views | Family::Opaque => &mut self.num_others,
        } += 1;
    }
}

//===----------------------------------------------------------------------===//
// --divi-fuse
//===----------------------------------------------------------------------===//

/// Fuses operators in every block of every function, but not in regions of operators. Idempotent.
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
