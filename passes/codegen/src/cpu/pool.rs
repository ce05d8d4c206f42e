//! Pooling of blocked images.

use crate::layout::Halo;
use crate::{
    emit::Compare,
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::Op;

/// Minimal row length in pixels for which iterating over blocks within rows pays off.
const LONG_ROW: i64 = 48;

/// Window of a pooling whose padding is provided by the halo, so that the kernel needs no bounds checks.
struct Window {
    kernel: (i64, i64),
    strides: (i64, i64),
    padding: (i64, i64),
    is_maximum: bool,
    halo: Halo,
}

impl Window {
    fn of(cx: &Lowering<'_>, node: &Node) -> Result<Option<Self>> {
        let is_maximum = match node.op {
            Op::MaxPool | Op::MaxPoolSingleOut => true,
            Op::AveragePool => false,
            _ => return Ok(None),
        };
        let (input, output) = (node.input(0)?, node.output()?);
        let (&[batch, _, height, width], &[_, _, out_height, out_width]) = (cx.shape(input), cx.shape(output)) else {
            return Ok(None);
        };
        let attributes = node.attributes();
        let pair = |name: &str, default: i64| {
            let values = attributes.ints(name)?;
            Ok(values.and_then(|values| Some((*values.first()?, *values.get(1)?))).unwrap_or((default, default)))
        };
        let (kernel, strides, padding) = (pair("kernel_shape", 1)?, pair("strides", 1)?, pair("pads", 0)?);
        let beyond = |output: i64, stride: i64, kernel: i64, padding: i64, size: i64| {
            ((output - 1) * stride + kernel - padding - size).max(0)
        };
        let halo = Halo {
            top: padding.0,
            left: padding.1,
            bottom: beyond(out_height, strides.0, kernel.0, padding.0, height),
            right: beyond(out_width, strides.1, kernel.1, padding.1, width),
            is_negative_infinity: false,
        };
        let halo = Halo { is_negative_infinity: is_maximum && !halo.is_empty(), ..halo };
        // Averages divide by the full window: there must be no padding, or it must be counted. 'ceil_mode' counts differently.
        let counts = is_maximum || halo.is_empty() || attributes.flag("count_include_pad", false)?;
        let is_plain = pair("dilations", 1)? == (1, 1)
            && attributes.str_or("auto_pad", "NOTSET")? == "NOTSET"
            && (is_maximum || !attributes.flag("ceil_mode", false)?)
            && node.outputs.iter().skip(1).all(Option::is_none)
            && cx.is_computed_in_f32(input)
            && batch > 0;
        Ok((counts && is_plain).then_some(Self { kernel, strides, padding, is_maximum, halo }))
    }
}

/// Returns the halo that a pooling requires around its input; `None` if it has no fast kernel.
pub(super) fn wanted_halo(cx: &Lowering<'_>, node: &Node) -> Option<Halo> {
    Window::of(cx, node).ok().flatten().map(|window| window.halo)
}

/// Lowers a pooling whose input is blocked already.
pub(super) fn lower(cx: &mut Lowering<'_>, node: &Node) -> Result<Option<usize>> {
    let (input, result) = (node.input(0)?, node.output()?);
    if !cx.is_blocked(input) {
        return Ok(None);
    }
    let Some(window) = Window::of(cx, node)? else { return Ok(None) };
    let (input, source) = cx.blocked(input, window.halo);
    let is_by_rows = cx.is_row_parallel_and_cached(input) && source.width >= LONG_ROW;
    let target = cx.make_blocked(result);
    if cx.has_finite_lanes(input, &source) {
        cx.set_finite_lanes(result);
    }
    let rows = target.batch * target.blocks() * target.height;
    let grain = (2048 / (target.width * window.kernel.0 * window.kernel.1)).max(1);
    cx.call(rows, grain, &[input], &[result], |b, kernel| {
        let ty = b.vector();
        let area = (window.kernel.0 * window.kernel.1) as f64;
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (plane, y) = match is_by_rows {
                true => {
                    let place = b.coordinates(number, &[target.batch, target.height, target.blocks()]);
                    (b.add(b.times(place[0], target.blocks()), place[2]), place[1])
                }
                false => b.div_rem(number, target.height),
            };
            let top = b.plus(b.times(y, window.strides.0), -window.padding.0);
            b.repeat(target.width, |x| {
                let left = b.plus(b.times(x, window.strides.1), -window.padding.1);
                let corner = source.at(b, plane, top, left);
                // Start with the first pixel inside the image: NaN is the maximum only if it comes first, as in ONNX's reference.
                let start = match window.is_maximum {
                    true => {
                        let inside = |at, padding| if padding > 0 { b.max(at, b.index(0), false) } else { at };
                        let first = (inside(top, window.padding.0), inside(left, window.padding.1));
                        b.load_vector(kernel.buffers[0], source.at(b, plane, first.0, first.1), ty)
                    }
                    false => b.float(0.0, ty),
                };
                let sums = b.for_loop_carried(b.index(0), b.index(window.kernel.0), 1, &[start], |ky, state| {
                    let row = b.add(corner, b.times(ky, source.row()));
                    let columns = 0..window.kernel.1;
                    let pixels = columns.map(|kx| b.load_vector(kernel.buffers[0], b.plus(row, kx * source.lanes), ty));
                    vec![pixels.fold(state[0], |state, pixel| match window.is_maximum {
                        true => b.select(b.compare(Compare::Greater, pixel, state, false), pixel, state),
                        false => b.add(state, pixel),
                    })]
                });
                let value = if window.is_maximum { sums[0] } else { b.mul(sums[0], b.float(1.0 / area, ty)) };
                b.store_aligned(value, kernel.buffers[1], target.at(b, plane, y, x));
            });
        });
    });
    Ok(Some(1))
}

/// Lowers a global average pooling whose input is blocked already.
pub(super) fn lower_global(cx: &mut Lowering<'_>, node: &Node) -> Result<Option<usize>> {
    let (input, result) = (node.input(0)?, node.output()?);
    if !cx.is_blocked(input) || !is_over_images(cx, node)? {
        return Ok(None);
    }
    let (input, source) = cx.blocked(input, Halo::NONE);
    let target = cx.make_blocked(result);
    if cx.has_finite_lanes(input, &source) {
        cx.set_finite_lanes(result);
    }
    let planes = target.batch * target.blocks();
    let scale = 1.0 / (source.height * source.width) as f64;
    cx.call(planes, (2048 / (source.height * source.width)).max(1), &[input], &[result], |b, kernel| {
        let ty = b.vector();
        b.for_each(kernel.begin, kernel.end, 1, |plane| {
            let zero = b.float(0.0, ty);
            let sums = b.fold_nest(&[source.height, source.width], &[zero], |place, state| {
                let pixel = b.load_vector(kernel.buffers[0], source.at(b, plane, place[0], place[1]), ty);
                vec![b.accumulate(state[0], pixel)]
            });
            let mean = b.mul(sums[0], b.float(scale, ty));
            b.store_vector(mean, kernel.buffers[1], target.at(b, plane, b.index(0), b.index(0)));
        });
    });
    Ok(Some(1))
}

/// Returns true if a node is a pooling with a fast kernel.
pub(super) fn is_of_images(cx: &Lowering<'_>, node: &Node) -> bool {
    wanted_halo(cx, node).is_some()
        || matches!(node.op, Op::GlobalAveragePool | Op::ReduceMean) && is_over_images(cx, node).unwrap_or(false)
}

/// Returns true if a node averages over both spatial axes and keeps them with size 1.
fn is_over_images(cx: &Lowering<'_>, node: &Node) -> Result<bool> {
    if node.op == Op::GlobalAveragePool {
        return Ok(true);
    }
    let axes = |id: Id| cx.ints(id);
    let Some(mut axes) = node.optional(1).and_then(axes) else { return Ok(false) };
    axes.iter_mut().filter(|axis| **axis < 0).for_each(|axis| *axis += 4);
    axes.sort_unstable();
    Ok(axes == [2, 3] && node.attributes().flag("keepdims", true)?)
}
