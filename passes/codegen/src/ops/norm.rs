//! Normalizations: computes statistics of parts of a tensor, then scales its elements.

mod statistics;

use super::{
    Lower,
    blocks::{accumulator, grain, to_float, view},
    elementwise::map,
};
use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::Op;
use divi_onnx::{
    DType,
    node::{normalize_axes, normalize_axis},
};
use statistics::{mean_of_squares, moments, sum_of_powers};

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::BatchNormalization => batch_normalization,
        Op::BatchNormalizationInferenceMode => batch_normalization_inference,
        Op::InstanceNormalization => instance_normalization,
        Op::GroupNormalization => group_normalization,
        Op::LayerNormalization => layer_normalization,
        Op::RMSNormalization => rms_normalization,
        Op::RMSLayerNormalization => rms_layer_normalization,
        Op::MeanVarianceNormalization => mean_variance_normalization,
        Op::LpNormalization => lp_normalization,
        Op::LRN => lrn,
        _ => return None,
    })
}

fn epsilon(node: &Node) -> Result<f64> {
    Ok(node.attributes().float("epsilon")?.unwrap_or(1e-5).into())
}

/// Adds a call that computes `(x - mean) / sqrt(variance + epsilon) * scale + bias`; all operands are broadcast to `x`.
fn normalize(cx: &mut Lowering<'_>, x: Id, [mean, variance]: [Id; 2], affine: [Option<Id>; 2], epsilon: f64, y: Id) {
    let operands: Vec<_> = [x, mean, variance].into_iter().chain(affine.into_iter().flatten()).collect();
    let dtypes: Vec<_> = operands.iter().map(|&id| cx.dtype(id)).collect();
    let computed = accumulator(dtypes[0]);
    let result = cx.dtype(y);
    map(cx, &operands, y, |b, values| {
        let ty = b.computed(computed);
        let values: Vec<_> = values.iter().zip(&dtypes).map(|(&value, &dtype)| to_float(b, value, dtype, ty)).collect();
        let mut affine_values = values[3..].iter();
        let inverse = inverse_deviation(b, values[2], epsilon);
        let factor = match affine[0].and_then(|_| affine_values.next()) {
            Some(&scale) => b.mul(inverse, scale),
            None => inverse,
        };
        let normalized = b.mul(b.sub(values[0], values[1]), factor);
        let value = match affine[1].and_then(|_| affine_values.next()) {
            Some(&bias) => b.add(normalized, bias),
            None => normalized,
        };
        b.resize_float(value, b.computed(result))
    });
}

/// Returns `1 / sqrt(variance + epsilon)`.
fn inverse_deviation(b: &Builder, variance: V, epsilon: f64) -> V {
    let ty = b.type_of(variance);
    b.div(b.float(1.0, ty), b.sqrt(b.add(variance, b.float(epsilon, ty))), false)
}

/// Returns a view of a vector with one element per channel that broadcasts along axis 1 of a tensor of this rank.
fn by_channel(cx: &mut Lowering<'_>, id: Id, rank: usize) -> Id {
    let mut shape = vec![1; rank.saturating_sub(1)];
    if let Some(first) = shape.first_mut() {
        *first = cx.count(id);
    }
    view(cx, id, &shape)
}

fn batch_normalization(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    if !node.attributes().flag("training_mode", false)? {
        return batch_normalization_inference(cx, node);
    }
    let (x, y) = (node.input(0)?, node.output()?);
    let rank = cx.shape(x).len();
    let reduced: Vec<_> = (0..rank).filter(|&axis| axis != 1).collect();
    let current = moments(cx, x, &reduced);
    let momentum = node.attributes().float("momentum")?.unwrap_or(0.9);
    for (i, statistics) in current.into_iter().enumerate() {
        let running = node.input(3 + i)?;
        if let Some(result) = node.result(1 + i) {
            let shape = cx.shape(running).to_vec();
            let statistics = view(cx, statistics, &shape);
            let (dtype, now) = (cx.dtype(running), cx.dtype(statistics));
            let stored = cx.dtype(result);
            map(cx, &[running, statistics], result, |b, values| {
                let ty = b.computed(now);
                let before = b.mul(to_float(b, values[0], dtype, ty), b.float(momentum.into(), ty));
                // Computed in `f32`, whose rounding is visible in the result.
                let rest = f64::from(1.0 - momentum);
                b.resize_float(b.add(before, b.mul(values[1], b.float(rest, ty))), b.computed(stored))
            });
        }
    }
    let affine = [node.input(1)?, node.input(2)?].map(|id| Some(by_channel(cx, id, rank)));
    normalize(cx, x, current, affine, epsilon(node)?, y);
    Ok(())
}

fn batch_normalization_inference(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let rank = cx.shape(x).len();
    let [scale, bias, mean, variance] =
        [node.input(1)?, node.input(2)?, node.input(3)?, node.input(4)?].map(|id| by_channel(cx, id, rank));
    normalize(cx, x, [mean, variance], [Some(scale), Some(bias)], epsilon(node)?, y);
    Ok(())
}

fn instance_normalization(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let rank = cx.shape(x).len();
    let reduced: Vec<_> = (2..rank).collect();
    let statistics = moments(cx, x, &reduced);
    let affine = [node.input(1)?, node.input(2)?].map(|id| Some(by_channel(cx, id, rank)));
    normalize(cx, x, statistics, affine, epsilon(node)?, y);
    Ok(())
}

fn group_normalization(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let groups = node.attributes().int_or("num_groups", 1)?;
    let &[batch, channels, ref rest @ ..] = cx.shape(x) else { return unsupported("needs a batch and channels") };
    let shape = [batch, groups, channels / groups.max(1), rest.iter().product()];
    let (x, y) = (view(cx, x, &shape), view(cx, y, &shape));
    let statistics = moments(cx, x, &[2, 3]);
    let affine = [node.input(1)?, node.input(2)?].map(|id| Some(view(cx, id, &[groups, shape[2], 1])));
    normalize(cx, x, statistics, affine, epsilon(node)?, y);
    Ok(())
}

/// Returns the axes from the attribute 'axis' on.
fn last_axes(cx: &Lowering<'_>, node: &Node) -> Result<Vec<usize>> {
    let rank = cx.shape(node.input(0)?).len();
    Ok((normalize_axis(node.attributes().int_or("axis", -1)?, rank)?..rank).collect())
}

fn layer_normalization(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let axes = last_axes(cx, node)?;
    let statistics = moments(cx, x, &axes);
    let epsilon = epsilon(node)?;
    if let Some(mean) = node.result(1) {
        store_as(cx, statistics[0], mean, |_, value| value);
    }
    if let Some(inverse) = node.result(2) {
        store_as(cx, statistics[1], inverse, |b, value| inverse_deviation(b, value, epsilon));
    }
    normalize(cx, x, statistics, [node.optional(1), node.optional(2)], epsilon, y);
    Ok(())
}

/// Adds a call that applies a function to floating-point numbers and stores the results as another type.
fn store_as(cx: &mut Lowering<'_>, from: Id, to: Id, compute: impl FnOnce(&Builder, V) -> V) {
    let dtype = cx.dtype(to);
    map(cx, &[from], to, |b, values| b.resize_float(compute(b, values[0]), b.computed(dtype)));
}

fn rms_normalization(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    scale_by_root_mean_square(cx, node, None)
}

/// Lowers onnx-mlir's form, with a bias, and the inverse deviation as second result.
fn rms_layer_normalization(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    scale_by_root_mean_square(cx, node, node.optional(2))
}

fn scale_by_root_mean_square(cx: &mut Lowering<'_>, node: &Node, bias: Option<Id>) -> Result<()> {
    let (x, scale, y) = (node.input(0)?, node.input(1)?, node.output()?);
    let axes = last_axes(cx, node)?;
    let squares = mean_of_squares(cx, x, &axes);
    let epsilon = epsilon(node)?;
    if let Some(inverse) = node.result(1) {
        store_as(cx, squares, inverse, |b, value| inverse_deviation(b, value, epsilon));
    }
    let operands: Vec<_> = [x, squares, scale].into_iter().chain(bias).collect();
    let dtypes: Vec<_> = operands.iter().map(|&id| cx.dtype(id)).collect();
    let (computed, result) = (cx.dtype(squares), cx.dtype(y));
    map(cx, &operands, y, |b, values| {
        let ty = b.computed(computed);
        let values: Vec<_> = values.iter().zip(&dtypes).map(|(&value, &dtype)| to_float(b, value, dtype, ty)).collect();
        let normalized = b.mul(values[0], inverse_deviation(b, values[1], epsilon));
        let scaled = b.mul(normalized, values[2]);
        b.resize_float(values.get(3).map_or(scaled, |&bias| b.add(scaled, bias)), b.computed(result))
    });
    Ok(())
}

fn mean_variance_normalization(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    /// Number that the definition of the operator adds to the standard deviation.
    const EPSILON: f64 = 1e-9;
    let (x, y) = (node.input(0)?, node.output()?);
    let axes = normalize_axes(node.attributes().ints("axes")?.unwrap_or(&[0, 2, 3]), cx.shape(x).len())?;
    let [mean, variance] = moments(cx, x, &axes);
    map(cx, &[x, mean, variance], y, |b, values| {
        let deviation = b.sqrt(values[2]);
        let deviation = b.add(deviation, b.float(EPSILON, b.type_of(deviation)));
        b.div(b.sub(values[0], values[1]), deviation, false)
    });
    Ok(())
}

fn lp_normalization(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let p = node.attributes().int_or("p", 2)?;
    let axis = normalize_axis(node.attributes().int_or("axis", -1)?, cx.shape(x).len())?;
    let sums = sum_of_powers(cx, x, &[axis], p == 1);
    map(cx, &[x, sums], y, |b, values| {
        let ty = b.type_of(values[0]);
        let norm = if p == 1 { values[1] } else { b.sqrt(values[1]) };
        let is_zero = b.equal(norm, b.zero(ty));
        let divisor = b.select(is_zero, b.float(1.0, ty), norm);
        b.select(is_zero, b.zero(ty), b.div(values[0], divisor, false))
    });
    Ok(())
}

/// Lowers LRN: divides each element by a power of the mean square over neighboring channels.
fn lrn(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let attributes = node.attributes();
    let size = attributes.int_or("size", 1)?;
    let number = |name: &str, default: f32| -> Result<f64> { Ok(attributes.float(name)?.unwrap_or(default).into()) };
    let (alpha, beta, bias) = (number("alpha", 0.0001)?, number("beta", 0.75)?, number("bias", 1.0)?);
    let &[batch, channels, ref rest @ ..] = cx.shape(x) else { return unsupported("needs a batch and channels") };
    let plane: i64 = rest.iter().product();
    let (before, after) = ((size - 1) / 2, size / 2);
    let dtype: DType = cx.dtype(x);
    cx.call(batch * channels, grain(plane * size), &[x], &[y], |b, kernel| {
        let ty = b.computed(dtype);
        b.for_each(kernel.begin, kernel.end, 1, |row| {
            let channel = b.div_rem(row, channels).1;
            let first = b.max(b.plus(channel, -before), b.index(0), false);
            let last = b.min(b.plus(channel, after + 1), b.index(channels), false);
            let origin = b.times(b.sub(row, channel), plane);
            b.repeat(plane, |i| {
                let sum = b.for_loop_carried(first, last, 1, &[b.zero(ty)], |channel, sum| {
                    let at = b.add(b.add(origin, b.times(channel, plane)), i);
                    let value = b.load(kernel.buffers[0], dtype, at);
                    vec![b.accumulate(sum[0], b.mul(value, value))]
                })[0];
                let base = b.add(b.float(bias, ty), b.mul(b.float(alpha / size as f64, ty), sum));
                let at = b.add(b.times(row, plane), i);
                let power = b.powf(base, b.float(beta, ty));
                b.store(b.div(b.load(kernel.buffers[0], dtype, at), power, false), kernel.buffers[1], dtype, at);
            });
        });
    });
    Ok(())
}

#[cfg(test)]
mod tests;
