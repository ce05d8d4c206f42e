//! RoiAlign and MaxRoiPool: regions of images, resampled to a common size.

use crate::{
    emit::{Builder, Compare, Math, V},
    error::{Result, unsupported},
    graph::Node,
    lowering::Lowering,
    ops::elementwise::{check_numbers, convert},
};
use divi_onnx::DType;

/// Returns the maximum of two numbers; `x` if either is NaN.
fn larger(b: &Builder, x: V, y: V) -> V {
    b.select(b.less(x, y), y, x)
}

/// Returns the compute type: `float` for half precision.
fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Linear interpolation along one axis: two elements, their weights, and the condition that the point is outside.
struct LinearWeights {
    low: V,
    high: V,
    low_weight: V,
    high_weight: V,
    is_outside: V,
}

impl LinearWeights {
    fn new(b: &Builder, x: V, size: i64) -> Self {
        let ty = b.type_of(x);
        let float = |value| b.float(value, ty);
        let is_inside = b.and(
            b.compare(Compare::GreaterOrEqual, x, float(-1.0), false),
            b.compare(Compare::LessOrEqual, x, float(size as f64), false),
        );
        let x = b.select(b.and(is_inside, b.less(float(0.0), x)), x, float(0.0));
        let place = b.float_to_int(x, b.i64(), false);
        let last = b.index(size - 1);
        let is_last = b.compare(Compare::GreaterOrEqual, place, last, false);
        let low = b.select(is_last, last, place);
        let high = b.select(is_last, last, b.plus(place, 1));
        let high_weight = b.select(is_last, float(0.0), b.sub(x, b.floor(x)));
        let low_weight = b.sub(float(1.0), high_weight);
        Self { low, high, low_weight, high_weight, is_outside: b.not(is_inside) }
    }
}

pub(super) fn roi_align(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, regions, images, output) = (node.input(0)?, node.input(1)?, node.input(2)?, node.output()?);
    let attributes = node.attributes();
    let is_average = match attributes.str_or("mode", "avg")? {
        "avg" => true,
        "max" => false,
        other => return unsupported(format!("attribute 'mode' is '{other}', must be avg or max")),
    };
    let has_half_pixels = attributes.str_or("coordinate_transformation_mode", "half_pixel")? == "half_pixel";
    let samples = attributes.int_or("sampling_ratio", 0)?;
    let scale = attributes.float("spatial_scale")?.map_or(1.0, f64::from);
    let (&[batch, channels, height, width], &[count, _, rows, columns]) = (cx.shape(input), cx.shape(output)) else {
        return unsupported("images and the result must have rank 4");
    };
    if height * width == 0 && cx.count(output) > 0 {
        return unsupported("regions of an empty image are not supported");
    }
    let (dtype, region_dtype, image_dtype) = (cx.dtype(input), cx.dtype(regions), cx.dtype(images));
    let wide = wide(dtype);
    cx.call(count * channels, 1, &[input, regions, images], &[output], |b, kernel| {
        let ty = b.computed(wide);
        let float = |value| b.float(value, ty);
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (region, channel) = b.div_rem(number, channels);
            let image = b.resize(b.load(kernel.buffers[2], image_dtype, region), b.i64(), false);
            let image = b.checked_index(image, batch);
            let plane = b.times(b.add(b.times(image, channels), channel), height * width);
            let corner = |i: i64| {
                let value = b.load(kernel.buffers[1], region_dtype, b.plus(b.times(region, 4), i));
                let value = b.mul(convert(b, value, region_dtype, wide), float(scale));
                b.sub(value, float(if has_half_pixels { 0.5 } else { 0.0 }))
            };
            // Start of the region along an axis, size of a bin, and number of sampling points per bin.
            let axis = |first: i64, parts: i64| {
                let start = corner(first);
                let size = b.sub(corner(first + 2), start);
                let size = if has_half_pixels { size } else { larger(b, size, float(1.0)) };
                let part = b.div(size, float(parts as f64), false);
                let points = if samples > 0 {
                    b.index(samples)
                } else {
                    // The limits bound the loop for NaN and huge regions.
                    let points = larger(b, float(0.0), b.ceil(part));
                    let points = b.select(b.less(points, float(65_536.0)), points, float(65_536.0));
                    b.float_to_int(points, b.i64(), false)
                };
                (start, part, points)
            };
            let ((left, part_width, across), (top, part_height, down)) = (axis(0, columns), axis(1, rows));
            let total = b.mul(b.int_to_float(down, ty, false), b.int_to_float(across, ty, false));
            let point = |start: V, part: V, points: V, at: V, i: V| {
                let i = b.add(b.int_to_float(i, ty, false), float(0.5));
                let inside = b.div(b.mul(i, part), b.int_to_float(points, ty, false), false);
                b.add(b.add(start, b.mul(b.int_to_float(at, ty, false), part)), inside)
            };
            b.nest(&[rows, columns], |place| {
                let start = float(if is_average { 0.0 } else { f64::NEG_INFINITY });
                let result = b.for_loop_carried(b.index(0), down, 1, &[start], |i, state| {
                    let y = LinearWeights::new(b, point(top, part_height, down, place[0], i), height);
                    b.for_loop_carried(b.index(0), across, 1, state, |j, state| {
                        let x = LinearWeights::new(b, point(left, part_width, across, place[1], j), width);
                        let is_outside = b.or(x.is_outside, y.is_outside);
                        let corners = [
                            (y.low, x.low, b.mul(y.low_weight, x.low_weight)),
                            (y.low, x.high, b.mul(y.low_weight, x.high_weight)),
                            (y.high, x.low, b.mul(y.high_weight, x.low_weight)),
                            (y.high, x.high, b.mul(y.high_weight, x.high_weight)),
                        ];
                        let terms = corners.map(|(row, column, weight)| {
                            let at = b.add(plane, b.add(b.times(row, width), column));
                            let value = convert(b, b.load(kernel.buffers[0], dtype, at), dtype, wide);
                            b.select(is_outside, float(0.0), b.mul(value, weight))
                        });
                        let combine = |x, y| if is_average { b.add(x, y) } else { larger(b, x, y) };
                        vec![terms.into_iter().fold(state[0], combine)]
                    })
                })[0];
                let is_empty = b.equal(total, float(0.0));
                let result = if is_average { b.div(result, larger(b, total, float(1.0)), false) } else { result };
                let result = b.select(is_empty, float(0.0), result);
                let at = b.add(b.times(b.add(b.times(number, rows), place[0]), columns), place[1]);
                b.store(convert(b, result, wide, dtype), kernel.buffers[3], dtype, at);
            });
        });
    });
    Ok(())
}

/// Lowers MaxRoiPool: maxima over bins of regions, with bounds rounded to integers.
pub(super) fn max_roi_pool(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, regions, output) = (node.input(0)?, node.input(1)?, node.output()?);
    let scale = node.attributes().float("spatial_scale")?.map_or(1.0, f64::from);
    let (&[batch, channels, height, width], &[count, _, rows, columns]) = (cx.shape(input), cx.shape(output)) else {
        return unsupported("images and the result must have rank 4");
    };
    let dtype = cx.dtype(input);
    let wide = wide(dtype);
    cx.call(count * channels, 1, &[input, regions], &[output], |b, kernel| {
        let ty = b.computed(wide);
        let float = |value| b.float(value, ty);
        let integer = |value| b.float_to_int(value, b.i64(), false);
        let real = |value| b.int_to_float(value, ty, false);
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (region, channel) = b.div_rem(number, channels);
            let entry = |i: i64| {
                let value = b.load(kernel.buffers[1], dtype, b.plus(b.times(region, 5), i));
                convert(b, value, dtype, wide)
            };
            let image = b.checked_index(integer(entry(0)), batch);
            let plane = b.times(b.add(b.times(image, channels), channel), height * width);
            let axis = |first: i64, parts: i64| {
                let border = |i| integer(b.math(Math::Round, b.mul(entry(i), float(scale))));
                let start = border(first);
                let size = b.max(b.plus(b.sub(border(first + 2), start), 1), b.index(1), false);
                (start, b.div(real(size), float(parts as f64), false))
            };
            let ((left, part_width), (top, part_height)) = (axis(1, columns), axis(2, rows));
            let span = |start: V, part: V, at: V, size: i64| {
                let inside = |place| b.max(b.min(b.add(place, start), b.index(size), false), b.index(0), false);
                let first = integer(b.floor(b.mul(real(at), part)));
                let end = integer(b.ceil(b.mul(real(b.plus(at, 1)), part)));
                (inside(first), inside(end))
            };
            b.nest(&[rows, columns], |place| {
                let (first_row, last_row) = span(top, part_height, place[0], height);
                let (first_column, last_column) = span(left, part_width, place[1], width);
                let start = float(f64::NEG_INFINITY);
                let result = b.for_loop_carried(first_row, last_row, 1, &[start], |row, state| {
                    b.for_loop_carried(first_column, last_column, 1, state, |column, state| {
                        let at = b.add(plane, b.add(b.times(row, width), column));
                        vec![larger(b, state[0], convert(b, b.load(kernel.buffers[0], dtype, at), dtype, wide))]
                    })
                })[0];
                let is_empty = b.or(
                    b.compare(Compare::GreaterOrEqual, first_row, last_row, false),
                    b.compare(Compare::GreaterOrEqual, first_column, last_column, false),
                );
                let result = b.select(is_empty, float(0.0), result);
                let at = b.add(b.times(b.add(b.times(number, rows), place[0]), columns), place[1]);
                b.store(convert(b, result, wide, dtype), kernel.buffers[2], dtype, at);
            });
        });
    });
    Ok(())
}
