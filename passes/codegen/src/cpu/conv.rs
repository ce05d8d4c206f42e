//! Convolutions of blocked images: dense, depthwise, and grouped with groups of whole channel blocks.

mod geometry;
mod kernel;
mod tile;
mod tiled;

pub(super) use geometry::Geometry;
pub(super) use tiled::reads_half;

use super::{
    epilogue_operand::OperandAccess,
    pack::{Packing, Source},
};
use crate::{
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
    emit(cx, &geometry, node.input(0)?, weights, bias, &fused, result)?;
    Ok(Some(consumed + more))
}

/// Returns true if the only reader of a value, behind the node at a position, is a convolution that copies it in half precision.
pub(super) fn rounds_itself(cx: &Lowering<'_>, nodes: &[Node], position: usize, id: Id) -> bool {
    let Some(next) = nodes.get(position + 1).filter(|next| next.optional(0) == Some(id)) else { return false };
    let geometry = Geometry::of(cx, next).ok().flatten();
    let is_narrow = geometry.is_some_and(|geometry| tiled::narrow_lanes(&geometry).is_some());
    is_narrow && cx.dtype(id) == DType::BF16 && cx.is_read_only_by(id, position + 1..position + 2)
}

/// Adds the calls of a convolution on tile registers.
fn emit_tiled(
    cx: &mut Lowering<'_>,
    geometry: &Geometry,
    input: Id,
    weights: Source,
    bias: Option<Source>,
    fused: &FusedEpilogue,
    result: Id,
) {
    let (input, source) = match tiled::narrow_lanes(geometry).filter(|_| !cx.is_blocked(input)) {
        Some(lanes) => cx.narrow_blocks(input, lanes, tiled::narrow_halo(geometry, lanes)),
        None => {
            let (input, layout) = cx.blocked(input, geometry.halo());
            (cx.with_finite_lanes(input, &layout), layout)
        }
    };
    let shape = [geometry.batch, geometry.filters, geometry.output.0, geometry.output.1];
    let accesses: Vec<OperandAccess> = fused.operands.iter().map(|&id| OperandAccess::of(cx, id, &shape)).collect();
    let target = cx.make_blocked(result);
    let bias = channels(cx, bias, geometry.filters, target.blocks() * target.lanes);
    let work = TiledConv { geometry, source: &source, target: &target, fused, accesses: &accesses };
    let weights = work.packed(cx, weights);
    let mut reads = vec![input, weights, bias];
    reads.extend(accesses.iter().map(OperandAccess::buffer));
    cx.call(work.extent(), work.grain(), &reads, &[result], |b, signature| work.emit(b, &signature));
    if work.is_by_pixels() {
        cx.set_row_parallel(result);
    }
    if fused.is_finite() && accesses.iter().all(|access| access.has_finite_lanes(cx)) {
        cx.set_finite_lanes(result);
    }
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
) -> Result<()> {
    if cx.dtype(input) == DType::BF16 {
        emit_tiled(cx, geometry, input, weights, bias, fused, result);
        return Ok(());
    }
    let lanes = cx.lanes() as i64;
    let is_planar =
        !geometry.is_depthwise && geometry.channels < lanes && geometry.groups == 1 && !cx.is_blocked(input);
    let (input, source) =
        if is_planar { cx.padded_planes(input, geometry.halo()) } else { cx.blocked(input, geometry.halo()) };
    let shape = [geometry.batch, geometry.filters, geometry.output.0, geometry.output.1];
    let accesses: Vec<OperandAccess> = fused.operands.iter().map(|&id| OperandAccess::of(cx, id, &shape)).collect();
    let target = cx.make_blocked(result);
    let has_gaps = !source.halo.is_empty() || !target.halo.is_empty() || !accesses.iter().all(OperandAccess::is_flat);
    let tile = Tile::of(geometry, cx.lanes(), cx.registers(), is_planar, has_gaps);
    let blocks = target.blocks();
    let bias = channels(cx, bias, geometry.filters, blocks * lanes);
    let packing = match geometry.is_depthwise {
        true => pack_depthwise(geometry, blocks, lanes),
        false => pack(geometry, &tile, lanes, is_planar),
    };
    let weights = packing.apply(cx, weights);
    let mut reads = vec![input, weights, bias];
    reads.extend(accesses.iter().map(OperandAccess::buffer));
    let work =
        ConvKernel { geometry, tile: &tile, source: &source, target: &target, fused, accesses: &accesses, is_planar };
    cx.call(work.extent(), work.grain(), &reads, &[result], |b, signature| work.emit(b, &signature));
    if !tile.panels_outermost {
        cx.set_row_parallel(result);
    }
    let reads_finite = !geometry.is_depthwise || cx.has_finite_lanes(input, &source);
    if reads_finite && fused.is_finite() && accesses.iter().all(|access| access.has_finite_lanes(cx)) {
        cx.set_finite_lanes(result);
    }
    Ok(())
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

/// Packs weights in the order in which the kernel reads them: `[panels][channel blocks][kernel rows][kernel columns][channels][filters
/// of a panel]`. The channels of a last partial block follow those of all whole blocks.
fn pack(geometry: &Geometry, tile: &Tile, lanes: i64, is_planar: bool) -> Packing {
    let (rows, columns) = geometry.kernel;
    let mut packing = Packing::of(&[geometry.filters, geometry.channels, rows, columns]);
    let (whole, rest) = if is_planar { (0, geometry.channels) } else { geometry.split(lanes) };
    let panel = tile.vectors as i64 * lanes;
    let panels = tile.blocks / tile.vectors as i64;
    let last = (tile.blocks % tile.vectors as i64) * lanes;
    let kernel = [(2, rows, 1), (3, columns, 1)];
    let widths = [(0, panels, panel), (panels * panel, i64::from(last > 0), last)];
    for (first, panels, width) in widths {
        let loops = [(0, panels, panel), (1, whole, lanes), kernel[0], kernel[1], (1, lanes, 1), (0, width, 1)];
        packing.add(&[first, 0, 0, 0], &loops);
    }
    for (first, panels, width) in widths {
        let loops = [(0, panels, panel), kernel[0], kernel[1], (1, rest, 1), (0, width, 1)];
        packing.add(&[first, whole * lanes, 0, 0], &loops);
    }
    packing
}

/// Packs weights of a depthwise convolution as `[blocks][kernel rows][kernel columns][lanes]`.
fn pack_depthwise(geometry: &Geometry, blocks: i64, lanes: i64) -> Packing {
    let (rows, columns) = geometry.kernel;
    let mut packing = Packing::of(&[geometry.filters, 1, rows, columns]);
    packing.add(&[0; 4], &[(0, blocks, lanes), (2, rows, 1), (3, columns, 1), (0, lanes, 1)]);
    packing
}

/// Returns the halo that a convolution requires around its input; `None` if it has no fast kernel.
pub(super) fn wanted_halo(cx: &Lowering<'_>, node: &Node) -> Option<Halo> {
    Geometry::of(cx, node).ok().flatten().map(|geometry| geometry.halo())
}
