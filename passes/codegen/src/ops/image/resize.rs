//! Resize and Upsample, one axis after the other.

use super::weights::{Axis, Interpolation, Mode, Rounding, Taps};
use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::{Id, Node, strides},
    lowering::Lowering,
    ops::{
        elementwise::{check_numbers, convert},
        movement::{copy_by_tables, sizes_around, table},
    },
};
use divi_onnx::{DType, Tensor, node::normalize_axes};
use divi_runtime::prepare::Expression;

/// Maximal number of taps for which the loop over them is unrolled.
const FEW_TAPS: usize = 8;
/// Function that emits a loop with a given body.
type LoopOver<'a> = &'a dyn Fn(&dyn Fn(V));

/// Minimal number of elements per thread.
const GRAIN: i64 = 8 * 1024;

pub(super) fn resize(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let attributes = node.attributes();
    let interpolation = Interpolation::of(&attributes)?;
    let (shape, result) = (cx.shape(input).to_vec(), cx.shape(output).to_vec());
    let chosen = match attributes.ints("axes")? {
        Some(axes) => normalize_axes(axes, shape.len())?,
        None => (0..shape.len()).collect(),
    };
    let scales = match present(cx, node, 2) {
        Some(scales) => known_floats(cx, scales, "the scales")?,
        None => {
            let ratio = |&axis: &usize| result[axis] as f64 / shape[axis].max(1) as f64;
            let sizes = cx.known_ints(node.input(3)?, "the sizes")?;
            let wanted = chosen.iter().zip(sizes).map(|(&axis, size)| size as f64 / shape[axis].max(1) as f64);
            match attributes.str_or("keep_aspect_ratio_policy", "stretch")? {
                "not_larger" => vec![wanted.fold(f64::INFINITY, f64::min); chosen.len()],
                "not_smaller" => vec![wanted.fold(0.0, f64::max); chosen.len()],
                _ => chosen.iter().map(ratio).collect(),
            }
        }
    };
    let parts = match present(cx, node, 1) {
        Some(parts) if interpolation.crops() => known_floats(cx, parts, "the region of interest")?,
        _ => [vec![0.0; chosen.len()], vec![1.0; chosen.len()]].concat(),
    };
    if scales.len() != chosen.len() || parts.len() != 2 * chosen.len() {
        return unsupported("scales and regions of interest must have an element for each axis");
    }
    let mut axes: Vec<Option<Axis>> = vec![None; shape.len()];
    for (i, &axis) in chosen.iter().enumerate() {
        let part = (parts[i], parts[i + chosen.len()]);
        axes[axis] = Some(Axis { from: shape[axis], to: result[axis], scale: scales[i], part });
    }
    interpolate(cx, node, &interpolation, &axes)
}

/// Lowers Upsample, the predecessor of Resize.
pub(super) fn upsample(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let mode = match node.attributes().str_or("mode", "nearest")? {
        "nearest" => Mode::Nearest(Rounding::Floor),
        "linear" => Mode::Linear,
        other => return unsupported(format!("attribute 'mode' is '{other}', must be nearest or linear")),
    };
    let scales = known_floats(cx, node.input(1)?, "the scales")?;
    let sizes = cx.shape(input).iter().zip(cx.shape(output));
    let axis = |((&from, &to), scale)| Some(Axis { from, to, scale, part: (0.0, 1.0) });
    let axes: Vec<_> = sizes.zip(scales).map(axis).collect();
    interpolate(cx, node, &Interpolation::upsample(mode), &axes)
}

/// Returns an operand unless it is empty, which means omitted in older models.
fn present(cx: &Lowering<'_>, node: &Node, index: usize) -> Option<Id> {
    node.optional(index).filter(|&id| cx.count(id) > 0)
}

fn known_floats(cx: &Lowering<'_>, id: Id, what: &str) -> Result<Vec<f64>> {
    match cx.tensor(id).and_then(Tensor::floats) {
        Some(values) => Ok(values),
        None => unsupported(format!("{what} must be constant: kernels are generated for fixed shapes")),
    }
}

fn interpolate(cx: &mut Lowering<'_>, node: &Node, interpolation: &Interpolation, axes: &[Option<Axis>]) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    if cx.count(output) == 0 {
        return Ok(());
    }
    let mut passes = vec![];
    for (i, axis) in axes.iter().enumerate() {
        let changes = |axis: &&Axis| axis.from != axis.to || axis.scale != 1.0 || axis.part != (0.0, 1.0);
        if let Some(axis) = axis.as_ref().filter(changes) {
            passes.push((i, *axis, interpolation.taps(axis)?));
        }
    }
    if passes.is_empty() {
        cx.alias(output, input);
        return Ok(());
    }
    let is_outside = passes.iter().any(|(_, _, taps)| taps.is_outside.contains(&true));
    if matches!(interpolation.mode, Mode::Nearest(_)) && !is_outside {
        let shape = cx.shape(input);
        let mut places: Vec<Vec<i64>> = shape.iter().map(|&size| (0..size).collect()).collect();
        for (i, _, taps) in passes {
            places[i] = taps.places;
        }
        for (places, stride) in places.iter_mut().zip(strides(shape)) {
            places.iter_mut().for_each(|place| *place *= stride);
        }
        return copy_by_tables(cx, input, output, &places);
    }
    check_numbers(cx, node)?;
    // The axis that shrinks most goes first, to minimize the work for the others.
    passes.sort_by(|(_, a, _), (_, b, _)| (a.to * b.from).cmp(&(b.to * a.from)));
    let dtype = cx.dtype(input);
    let wide = if dtype.bits() < 32 || dtype == DType::F32 { DType::F32 } else { DType::F64 };
    let (mut from, mut shape) = (input, cx.shape(input).to_vec());
    let last = passes.len() - 1;
    for (number, (i, axis, taps)) in passes.into_iter().enumerate() {
        let sizes = sizes_around(&shape, i);
        shape[i] = axis.to;
        let to = if number == last { output } else { cx.temporary(wide, &shape) };
        pass(cx, from, to, wide, sizes, &taps, interpolation.extrapolation_value);
        from = to;
    }
    Ok(())
}

/// Adds the call that resizes one axis: each element is a weighted sum of taps.
fn pass(
    cx: &mut Lowering<'_>,
    from: Id,
    to: Id,
    wide: DType,
    (outer, size, inner): (i64, i64, i64),
    taps: &Taps,
    value_outside: f64,
) {
    let new_size = taps.is_outside.len() as i64;
    let steps: Vec<_> = taps.places.iter().map(|place| place * inner).collect();
    let places = table(cx, &steps);
    let weights = numbers(cx, wide, &zero_outside(taps));
    let mut reads = vec![from, places, weights];
    if taps.is_outside.contains(&true) {
        let value = |&is_outside: &bool| if is_outside { value_outside } else { 0.0 };
        reads.push(numbers(cx, wide, &taps.is_outside.iter().map(value).collect::<Vec<_>>()));
    }
    let (dtype, result) = (cx.dtype(from), cx.dtype(to));
    let is_last_axis = inner == 1;
    let extent = if is_last_axis { outer } else { outer * new_size };
    let per_iteration = if is_last_axis { new_size } else { inner };
    let grain = crate::ops::elementwise::grain(result, extent, GRAIN / per_iteration.max(1));
    cx.call(extent, grain, &reads, &[to], |b, kernel| {
        let count = taps.count as i64;
        let source = kernel.buffers[0];
        let tap = |at| {
            let place = b.bounded_index(b.load(kernel.buffers[1], DType::I64, at), (size - 1) * inner + 1);
            (place, b.load(kernel.buffers[2], wide, at))
        };
        let term = |sum: Option<V>, base: V, (place, weight): (V, V)| {
            let value = convert(b, b.load(source, dtype, b.add(base, place)), dtype, wide);
            let product = b.mul(value, weight);
            sum.map_or(product, |sum| b.add(sum, product))
        };
        // Emits an element. Its taps, if there are few, are loaded outside of the loop over the inner axes.
        let element = |outer: V, at: V, inner_loop: LoopOver<'_>| {
            let first = b.times(at, count);
            let base = b.times(outer, size * inner);
            let target = b.times(b.add(b.times(outer, new_size), at), inner);
            let start = (reads.len() > 3).then(|| b.load(kernel.buffers[3], wide, at));
            let few: Vec<_> =
                if taps.count > FEW_TAPS { vec![] } else { (0..count).map(|t| tap(b.plus(first, t))).collect() };
            inner_loop(&|i| {
                let base = b.add(base, i);
                let sum = if few.is_empty() {
                    let start = start.unwrap_or_else(|| b.zero(b.computed(wide)));
                    b.for_loop_carried(b.index(0), b.index(count), 1, &[start], |t, state| {
                        vec![term(Some(state[0]), base, tap(b.add(first, t)))]
                    })[0]
                } else {
                    few.iter().fold(start, |sum, &tap| Some(term(sum, base, tap))).expect("there are taps")
                };
                b.store(saturated(b, sum, wide, result), kernel.buffers[reads.len()], result, b.add(target, i));
            });
        };
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            if is_last_axis {
                b.repeat(new_size, |at| element(number, at, &|body| body(b.index(0))));
            } else {
                let (outer, at) = b.div_rem(number, new_size);
                element(outer, at, &|body| b.repeat(inner, body));
            }
        });
    });
}

/// Returns the weights, with zeros for elements that get the extrapolation value.
fn zero_outside(taps: &Taps) -> Vec<f64> {
    let weights = taps.weights.chunks(taps.count.max(1)).zip(&taps.is_outside);
    weights.flat_map(|(weights, &is_outside)| weights.iter().map(move |w| if is_outside { 0.0 } else { *w })).collect()
}

fn numbers(cx: &mut Lowering<'_>, dtype: DType, values: &[f64]) -> Id {
    let shape = [values.len() as i64];
    let tensor = Tensor::from_floats(dtype, shape.to_vec(), values).expect("weights are floating-point numbers");
    cx.constant(dtype, &shape, Expression::bytes(tensor.bytes()))
}

/// Converts a number to a type; rounds and saturates for integers.
fn saturated(b: &Builder, value: V, wide: DType, dtype: DType) -> V {
    if dtype.is_float() {
        return convert(b, value, wide, dtype);
    }
    let ty = b.computed(wide);
    let (low, high) = match dtype {
        DType::Bool => (0.0, 1.0),
        _ if dtype.is_unsigned_int() => (0.0, 2f64.powi(dtype.bits() as i32) - 1.0),
        _ => (-(2f64.powi(dtype.bits() as i32 - 1)), 2f64.powi(dtype.bits() as i32 - 1) - 1.0),
    };
    let rounded = b.round_even(value);
    let above = b.select(b.less(b.float(low, ty), rounded), rounded, b.float(low, ty));
    convert(b, b.select(b.less(above, b.float(high, ty)), above, b.float(high, ty)), wide, dtype)
}
