//! Convolutions of blocked images: dense, depthwise, and grouped with groups of whole channel blocks or several groups in a block.

mod geometry;
mod kernel;
mod tile;
mod tiled;
mod winograd;

pub(super) use geometry::Geometry;
pub(super) use tiled::has_tiled_kernel;

use super::{
    epilogue_operand::{self, OperandAccess},
    pack::{Packing, Source},
};
use crate::{
    emit::{Builder, Signature},
    epilogue::{self, FusedEpilogue},
    error::Result,
    graph::{Id, Node},
    layout::Halo,
    lowering::Lowering,
};
use divi_onnx::DType;
use divi_runtime::prepare::Expression;
use kernel::ConvKernel;
use tile::Tile;
use tiled::TiledConv;
use winograd::WinogradConv;

/// Lowers a convolution with its epilogue. Returns the number of nodes; `None` if there is no fast kernel.
pub(super) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let node = &nodes[position];
    let Some(geometry) = Geometry::of(cx, node)? else { return Ok(None) };
    let (mut result, mut consumed) = (node.output()?, 1);
    let mut weights = Source::of(cx, node.input(1)?);
    let mut bias = node.optional(2).map(|id| Source::of(cx, id));
    // Fold a BatchNormalization into constant weights and bias.
    if let Source::Constant(source) = &weights
        && let Some(next) = epilogue::following_batch_norm(cx, nodes, position, result)
        && let Some(constant) = constant(bias.clone())
        && let Some((factor, shift)) = epilogue::batch_norm_affine(cx, next, constant)?
    {
        let inner = (geometry.channels * geometry.kernel.0 * geometry.kernel.1) as u64;
        weights = Source::Constant(Expression::Scale { source: Box::new(source.clone()), by: Box::new(factor), inner });
        bias = Some(Source::Constant(shift));
        (result, consumed) = (next.output()?, 2);
    }
    let shape = cx.shape(result).to_vec();
    let accept = |cx: &Lowering<'_>, id| OperandAccess::is_possible(cx, id, &shape);
    let absorbed = epilogue::fuse_epilogue(cx, nodes, position + consumed, result, &accept);
    let (more, fused, result) = absorbed;
    emit(cx, &geometry, node.input(0)?, weights, bias, &fused, result);
    Ok(Some(consumed + more))
}

/// Returns true if the only reader of a value, behind the node at a position, is a convolution that copies it in half precision.
pub(super) fn rounds_itself(cx: &Lowering<'_>, nodes: &[Node], position: usize, id: Id) -> bool {
    let Some(next) = nodes.get(position + 1).filter(|next| next.optional(0) == Some(id)) else { return false };
    let geometry = Geometry::of(cx, next).ok().flatten();
    let is_narrow = geometry.is_some_and(|geometry| tiled::narrow_lanes(&geometry).is_some());
    is_narrow && cx.dtype(id) == DType::BF16 && cx.is_read_only_by(id, position + 1..position + 2)
}

/// Returns the expression of a bias that is constant or absent; the outer `None` if it is computed.
fn constant(bias: Option<Source>) -> Option<Option<Expression>> {
    match bias {
        None => Some(None),
        Some(Source::Constant(bias)) => Some(Some(bias)),
        Some(Source::Computed(_)) => None,
    }
}

/// Adds the calls of a convolution: packing of weights, padding of the input, and the kernel.
fn emit(
    cx: &mut Lowering<'_>,
    geometry: &Geometry,
    input: Id,
    weights: Source,
    bias: Option<Source>,
    fused: &FusedEpilogue,
    result: Id,
) {
    let lanes = cx.lanes() as i64;
    let is_tiled = cx.dtype(input) == DType::BF16;
    let is_planar = !is_tiled
        && !geometry.is_depthwise
        && geometry.channels < lanes
        && geometry.groups == 1
        && !cx.is_blocked(input);
    let (input, source) = match is_tiled {
        true => tiled::image(cx, geometry, input),
        false if is_planar => cx.padded_planes(input, geometry.halo()),
        false => cx.blocked(input, geometry.halo()),
    };
    let shape = [geometry.batch, geometry.filters, geometry.output.0, geometry.output.1];
    let accesses: Vec<OperandAccess> = fused.operands.iter().map(|&id| OperandAccess::of(cx, id, &shape)).collect();
    let target = cx.make_blocked(result);
    let bias = channels(cx, bias, geometry.filters, target.blocks() * lanes);
    let (source, target, accesses) = (&source, &target, &accesses[..]);
    let kernel: Box<dyn Kernel> = if is_tiled {
        Box::new(TiledConv { geometry, source, target, fused, accesses })
    } else if geometry.is_winograd {
        Box::new(WinogradConv::new(cx, geometry, (source, target), fused, accesses))
    } else {
        let mut images = [source.halo, target.halo].into_iter();
        let has_gaps = images.any(|halo| !halo.is_empty()) || !accesses.iter().all(OperandAccess::is_flat);
        let tile = Tile::of(geometry, cx.lanes(), cx.registers(), is_planar, has_gaps);
        Box::new(ConvKernel { geometry, tile, source, target, fused, accesses, is_planar })
    };
    let weights = kernel.pack(cx, weights);
    let mut reads = vec![input, weights, bias];
    reads.extend(accesses.iter().map(OperandAccess::buffer));
    cx.call(kernel.extent(), kernel.grain(), &reads, &[result], |b, signature| kernel.emit(b, &signature));
    if kernel.is_by_pixels() {
        cx.set_row_parallel(result);
    }
    let mixes_lanes = !geometry.is_depthwise && !geometry.has_narrow_groups;
    if mixes_lanes || cx.has_finite_lanes(input, source) {
        epilogue_operand::keep_finite_lanes(cx, fused, accesses, result);
    }
}

/// Loop nest of a convolution. Buffers: input, weights, bias, operands of the epilogue, result.
trait Kernel {
    /// Returns the weights in the order in which the kernel reads them.
    fn pack(&self, cx: &mut Lowering<'_>, weights: Source) -> Id;

    /// Returns the number of tiles of all images and panels.
    fn extent(&self) -> i64;

    /// Returns the minimal number of tiles per thread.
    fn grain(&self) -> i64;

    /// Returns true if a thread computes all channels of the pixels that it computes.
    fn is_by_pixels(&self) -> bool;

    /// Emits the tiles of a thread.
    fn emit(&self, b: &Builder, signature: &Signature<'_>);
}

/// Returns a vector with one element per channel, padded with zeros to whole blocks.
fn channels(cx: &mut Lowering<'_>, numbers: Option<Source>, count: i64, padded: i64) -> Id {
    match numbers {
        None => cx.constant(DType::F32, &[padded], Expression::Zeros(padded as u64)),
        Some(Source::Constant(numbers)) => {
            cx.constant(DType::F32, &[padded], super::epilogue_operand::padded(numbers, count, padded))
        }
        Some(numbers) => Packing::padded(count, padded).apply(cx, numbers),
    }
}

/// Returns the halo that a convolution requires around its input; `None` if it has no fast kernel.
pub(super) fn wanted_halo(cx: &Lowering<'_>, node: &Node) -> Option<Halo> {
    Geometry::of(cx, node).ok().flatten().map(|geometry| geometry.halo())
}
