//! Roles of operators in clusters.

use super::graph::{Graph, NodeId};
use divi_dialect::{Operation, attr};
use divi_onnx::{DType, Dim, Op, operators::FusionRole};

/// Role of an operator in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Not fused: unknown, with regions or side effects, a cluster, of another dialect, planned already.
    Opaque,
    /// Fused only with views: pools, `Concat`, `Transpose`, …
    Plain,
    /// The same bytes under another type.
    View,
    /// Main operator of a cluster, which epilogues are attached to.
    Anchor(Anchor),
    /// A scale and a shift per channel, both known at compile time.
    BatchNorm,
    /// An element-wise function of operand 0; other operands are constants.
    Activation,
    Elementwise,
    Softmax,
}

/// Kind of main operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Conv,
    ConvTranspose,
    Gemm,
    MatMul,
}

impl Anchor {
    pub(super) fn convolves(self) -> bool {
        matches!(self, Self::Conv | Self::ConvTranspose)
    }
}

pub(super) fn role_of(graph: &Graph<'_>, id: NodeId) -> Role {
    let node = &graph.nodes[id];
    if !may_move(graph, id) {
        return Role::Opaque;
    }
    let others_static = || node.operands.iter().skip(1).all(|&operand| graph.is_static(operand));
    if is_view(graph, id) {
        return Role::View;
    }
    let Some(role) = node.op.and_then(Op::fusion_role) else { return Role::Opaque };
    match role {
        // A view whose shape operand is not constant.
        FusionRole::Plain | FusionRole::View => Role::Plain,
        FusionRole::Conv => Role::Anchor(Anchor::Conv),
        FusionRole::ConvTranspose => Role::Anchor(Anchor::ConvTranspose),
        FusionRole::Gemm => Role::Anchor(Anchor::Gemm),
        FusionRole::MatMul => Role::Anchor(Anchor::MatMul),
        FusionRole::BatchNorm if !in_inference(graph, id) => Role::Plain,
        FusionRole::BatchNorm if others_static() => Role::BatchNorm,
        FusionRole::Activation if others_static() => Role::Activation,
        FusionRole::BatchNorm | FusionRole::Activation | FusionRole::Elementwise => Role::Elementwise,
        FusionRole::Softmax => Role::Softmax,
    }
}

/// Returns true for a known operator on tensors without side effects or attributes that a cluster could not have.
fn may_move(graph: &Graph<'_>, id: NodeId) -> bool {
    let node = &graph.nodes[id];
    if node.op.and_then(Op::fusion_role).is_none() {
        return false;
    }
    let tensor = |&value: &usize| graph.ty(value).is_some() || graph.values[value].handle.is_none();
    let is_plan = |name| attr::is_divi(name) && name != attr::PIN.name() && name != attr::DEVICE.name();
    let planned = node.operation.discardable_attributes().into_iter().any(|(name, _)| is_plan(name));
    let has_regions = !node.operation.regions().is_empty();
    !planned && !has_regions && node.operands.iter().all(tensor) && node.results.iter().all(tensor)
}

/// Returns true if the statistics are operands, not computed from the batch.
fn in_inference(graph: &Graph<'_>, id: NodeId) -> bool {
    let node = &graph.nodes[id];
    let training = node.operation.attribute("training_mode").and_then(attr::as_integer).is_some_and(|mode| mode != 0);
    !training && node.operands.len() == 5 && graph.output(id).is_some()
}

/// Returns true if an operator only changes the type of operand 0, or is evaluated at compile time.
fn is_view(graph: &Graph<'_>, id: NodeId) -> bool {
    let node = &graph.nodes[id];
    let (&[result], Some(&operand)) = (&node.results[..], node.operands.first()) else { return false };
    // A view that depends on another computed operand would have to wait for it.
    if node.operands[1..].iter().any(|&other| !graph.is_static(other)) {
        return false;
    }
    let Some(op) = node.op else { return false };
    match op {
        _ if op.is_view() => true,
        Op::Cast => {
            graph.is_constant(operand) || graph.same_type(operand, result) || only_rounds(graph, operand, result)
        }
        Op::Expand => is_fixed(graph, result) && graph.same_type(operand, result),
        Op::Concat => node.operands.len() == 1,
        Op::Transpose => graph.is_constant(operand) || keeps_order(graph, operand, result, node.operation),
        _ => false,
    }
}

/// Returns true for types that kernels convert to and from `f32` when they load and store elements.
pub(super) fn only_rounds(graph: &Graph<'_>, operand: usize, result: usize) -> bool {
    let is_float = |dtype: DType| matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
    [operand, result].iter().all(|&value| graph.ty(value).is_some_and(|ty| is_float(ty.dtype)))
}

fn is_fixed(graph: &Graph<'_>, value: usize) -> bool {
    graph.ty(value).is_some_and(|ty| ty.static_shape().is_some())
}

/// Returns true if a `Transpose` moves only dimensions of size 1, so that elements keep their order.
fn keeps_order(graph: &Graph<'_>, operand: usize, result: usize, operation: Operation<'_>) -> bool {
    let Some(shape) = graph.ty(operand).and_then(|ty| ty.shape.as_ref()) else { return false };
    let Some(permutation) = operation.attribute("perm") else { return shape.len() <= 1 };
    if graph.ty(result).and_then(|ty| ty.shape.as_ref()).is_none_or(|after| after.len() != shape.len()) {
        return false;
    }
    let axes = attr::as_array(permutation).into_iter().flatten().map(attr::as_integer).collect::<Option<Vec<_>>>();
    let Some(axes) = axes else { return false };
    let moved = axes.iter().filter(|&&axis| {
        usize::try_from(axis).ok().and_then(|axis| shape.get(axis)).is_none_or(|dim| *dim != Dim::Known(1))
    });
    axes.len() == shape.len() && moved.is_sorted()
}
