//! Convolutions of images in blocks: dense, grouped where groups are whole blocks, and depthwise.

mod geometry;
mod kernel;
mod tile;

pub(super) use geometry::Geometry;

use super::{
    image::Access,
    layout::{Blocked, Margin},
    program::{self, Program},
};
use crate::{
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::DType;
use divi_runtime::prepare::{Expression, Loop, Pack};
use kernel::Work;
use tile::Tile;

/// Lowers a convolution and what follows it, if there is a fast kernel for it; says how many nodes that are.
pub(super) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let node = &nodes[position];
    let Some(geometry) = Geometry::of(cx, node)? else { return Ok(None) };
    let (mut result, mut consumed) = (node.output()?, 1);
    let weights = cx.expression(node.input(1)?).cloned().expect("geometries have constant weights");
    let constant = |id| cx.expression(id).cloned().expect("geometries have a constant bias");
    let mut bias = node.optional(2).map(constant);
    let mut scale = None;
    if let Some(next) = program::normalization_behind(cx, nodes, position, result)
        && let Some((factor, shift)) = program::affine(cx, next, bias.clone())?
    {
        (scale, bias) = (Some(factor), Some(shift));
        (result, consumed) = (next.output()?, 2);
    }
    let shape = cx.shape(result).to_vec();
    let accept = |cx: &Lowering<'_>, id| Access::is_possible(cx, id, &shape);
    let absorbed = program::absorb(cx, nodes, position + consumed, result, &accept);
    let (more, program, result) = absorbed;
    let weights = match scale {
        Some(by) => {
            let inner = (geometry.channels * geometry.kernel.0 * geometry.kernel.1) as u64;
            Expression::Scale { source: Box::new(weights), by: Box::new(by), inner }
        }
        None => weights,
    };
    emit(cx, &geometry, node.input(0)?, weights, bias, &program, result)?;
    Ok(Some(consumed + more))
}

fn emit(
    cx: &mut Lowering<'_>,
    geometry: &Geometry,
    input: Id,
    weights: Expression,
    bias: Option<Expression>,
    program: &Program,
    result: Id,
) -> Result<()> {
    let lanes = cx.lanes() as i64;
    let is_planar =
        !geometry.is_depthwise && geometry.channels < lanes && geometry.groups == 1 && !cx.is_blocked(input);
    let (input, source) =
        if is_planar { cx.padded_planes(input, geometry.margin()) } else { cx.blocked(input, geometry.margin()) };
    let shape = [geometry.batch, geometry.filters, geometry.output.0, geometry.output.1];
    let accesses: Vec<Access> = program.operands.iter().map(|&id| Access::of(cx, id, &shape)).collect();
    let target = cx.make_blocked(result);
    let has_gaps = !source.margin.is_empty() || !target.margin.is_empty() || !accesses.iter().all(Access::is_flat);
    let tile = Tile::of(geometry, cx.lanes(), cx.registers(), is_planar, has_gaps);
    let blocks = target.blocks();
    let bias = channels(cx, bias, geometry.filters, blocks * lanes);
    let weights = match geometry.is_depthwise {
        true => pack_depthwise(geometry, weights, blocks, lanes),
        false => pack(geometry, weights, &tile, lanes, is_planar),
    };
    let count = weights.1;
    let weights = cx.constant(DType::F32, &[count], weights.0);
    let mut reads = vec![input, weights, bias];
    reads.extend(accesses.iter().map(Access::buffer));
    let work =
        Work { geometry, tile: &tile, source: &source, target: &target, program, accesses: &accesses, is_planar };
    cx.call(work.extent(), work.grain(), &reads, &[result], |b, signature| work.emit(b, &signature));
    if !tile.panels_outside {
        cx.write_by_rows(result);
    }
    Ok(())
}

/// A number for each channel, with zeros up to the last block's end.
fn channels(cx: &mut Lowering<'_>, numbers: Option<Expression>, count: i64, padded: i64) -> Id {
    let source = match numbers {
        None => Expression::Zeros(padded as u64),
        Some(numbers) => super::image::padded(numbers, count, padded),
    };
    cx.constant(DType::F32, &[padded], source)
}

/// Weights in the order in which the kernel reads them: `[panels][channel blocks][kernel rows][kernel columns][channels][filters of
/// a panel]`, the channels of the last block that is not whole behind all others.
fn pack(geometry: &Geometry, source: Expression, tile: &Tile, lanes: i64, is_planar: bool) -> (Expression, i64) {
    let (rows, columns) = geometry.kernel;
    let shape = [geometry.filters, geometry.channels, rows, columns].map(|size| size as u64).to_vec();
    let (whole, rest) = if is_planar { (0, geometry.channels) } else { geometry.split(lanes) };
    let mut parts = vec![];
    let mut count = 0;
    // (axis, count, step)
    let mut add = |start: [i64; 2], loops: &[(usize, i64, i64)]| {
        if loops.iter().any(|&(_, count, _)| count == 0) {
            return;
        }
        count += loops.iter().map(|&(_, count, _)| count).product::<i64>();
        let loops =
            loops.iter().map(|&(axis, count, step)| Loop { axis, count: count as u64, step: step as u64 }).collect();
        parts.push(Expression::Pack(Pack {
            source: Box::new(source.clone()),
            shape: shape.clone(),
            start: vec![start[0] as u64, start[1] as u64, 0, 0],
            end: shape.clone(),
            loops,
        }));
    };
    let panel = tile.vectors as i64 * lanes;
    let panels = tile.blocks / tile.vectors as i64;
    let last = (tile.blocks % tile.vectors as i64) * lanes;
    let kernel = [(2, rows, 1), (3, columns, 1)];
    for (first, panels, width) in [(0, panels, panel), (panels * panel, i64::from(last > 0), last)] {
        add([first, 0], &[(0, panels, panel), (1, whole, lanes), kernel[0], kernel[1], (1, lanes, 1), (0, width, 1)]);
    }
    for (first, panels, width) in [(0, panels, panel), (panels * panel, i64::from(last > 0), last)] {
        add([first, whole * lanes], &[(0, panels, panel), kernel[0], kernel[1], (1, rest, 1), (0, width, 1)]);
    }
    let expression = if parts.len() == 1 { parts.remove(0) } else { Expression::Concat(parts) };
    (expression, count)
}

/// `[blocks][kernel rows][kernel columns][lanes]`
fn pack_depthwise(geometry: &Geometry, source: Expression, blocks: i64, lanes: i64) -> (Expression, i64) {
    let (rows, columns) = geometry.kernel;
    let shape = [geometry.filters, 1, rows, columns].map(|size| size as u64).to_vec();
    let loops = [(0, blocks, lanes), (2, rows, 1), (3, columns, 1), (0, lanes, 1)];
    let loops = loops.map(|(axis, count, step)| Loop { axis, count: count as u64, step: step as u64 }).to_vec();
    let pack = Pack { source: Box::new(source), shape: shape.clone(), start: vec![0; 4], end: shape, loops };
    (Expression::Pack(pack), blocks * rows * columns * lanes)
}

/// The margin that a convolution wants around its input, if it has a fast kernel.
pub(super) fn wanted_margin(cx: &Lowering<'_>, node: &Node) -> Option<Margin> {
    Geometry::of(cx, node).ok().flatten().map(|geometry| geometry.margin())
}

/// The layout of a convolution's input as it is, without blocks: planes of channels with a margin.
pub(crate) fn planes(shape: &[i64], margin: Margin) -> Blocked {
    // A block of one channel is a plane.
    Blocked::of(shape, 1, margin).expect("convolutions are of images")
}
