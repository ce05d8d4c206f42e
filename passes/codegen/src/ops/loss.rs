//! Loss functions of classification.

use super::{
    Lower,
    blocks::{accumulator, grain, to_index},
};
use crate::{
    emit::{Builder, Math, V},
    error::{Result, unsupported},
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::Op;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::NegativeLogLikelihoodLoss => |cx, node| negative_log_likelihood(cx, node, node.input(0)?),
        Op::SoftmaxCrossEntropyLoss => softmax_cross_entropy,
        _ => return None,
    })
}

/// Returns the shape of scores as batch, classes, and the product of the other axes.
fn dimensions(cx: &Lowering<'_>, scores: Id) -> Result<[i64; 3]> {
    match cx.shape(scores) {
        [batch, classes, rest @ ..] => Ok([*batch, *classes, rest.iter().product()]),
        _ => unsupported("scores must have rank 2 or more"),
    }
}

fn softmax_cross_entropy(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let scores = node.input(0)?;
    let [batch, classes, places] = dimensions(cx, scores)?;
    let dtype = cx.dtype(scores);
    // The loss is computed from unrounded logarithms, even if the optional result has half precision.
    let wide = accumulator(dtype);
    let log_result = node.result(1);
    let shape = cx.shape(scores).to_vec();
    let logs = match log_result {
        Some(id) if wide == dtype => id,
        _ => cx.temporary(wide, &shape),
    };
    let copy = log_result.filter(|&id| id != logs);
    let writes: Vec<_> = [logs].into_iter().chain(copy).collect();
    cx.call(batch * places, grain(classes * 16), &[scores], &writes, |b, kernel| {
        let ty = b.computed(dtype);
        b.for_each(kernel.begin, kernel.end, 1, |sample| {
            let (number, place) = b.div_rem(sample, places);
            let at = |class: V| b.add(b.times(b.add(b.times(number, classes), class), places), place);
            let load = |class: V| b.load(kernel.buffers[0], dtype, at(class));
            let lowest = b.float(f64::NEG_INFINITY, ty);
            let most = b.fold_nest(&[classes], &[lowest], |class, most| vec![b.max(most[0], load(class[0]), false)])[0];
            let sum = b.fold_nest(&[classes], &[b.zero(ty)], |class, sum| {
                vec![b.accumulate(sum[0], b.exp(b.sub(load(class[0]), most)))]
            })[0];
            let base = b.add(most, b.math(Math::Log, sum));
            b.repeat(classes, |class| {
                let value = b.sub(load(class), base);
                b.store(value, kernel.buffers[1], wide, at(class));
                if copy.is_some() {
                    b.store(value, kernel.buffers[2], dtype, at(class));
                }
            });
        });
    });
    negative_log_likelihood(cx, node, logs)
}

fn negative_log_likelihood(cx: &mut Lowering<'_>, node: &Node, scores: Id) -> Result<()> {
    let [batch, classes, places] = dimensions(cx, scores)?;
    let (targets, weights, y) = (node.input(1)?, node.optional(2), node.output()?);
    let ignored = node.attributes().int("ignore_index")?;
    let reduction = node.attributes().str_or("reduction", "mean")?;
    let (dtype, target_dtype, result) = (cx.dtype(scores), cx.dtype(targets), cx.dtype(y));
    let computed = accumulator(dtype);
    let reads: Vec<_> = [scores, targets].into_iter().chain(weights).collect();
    // Emits the weighted loss of a sample, and its weight.
    let loss = |b: &Builder, buffers: &[V], sample: V| {
        let ty = b.computed(computed);
        let (number, place) = b.div_rem(sample, places);
        let target = to_index(b, b.load(buffers[1], target_dtype, sample), target_dtype);
        let is_ignored = ignored.map(|ignored| b.equal(target, b.index(ignored)));
        let target = is_ignored.map_or(target, |is_ignored| b.select(is_ignored, b.index(0), target));
        let target = b.checked_index(target, classes);
        let weight = match weights {
            Some(_) => b.load(buffers[2], result, target),
            None => b.float(1.0, ty),
        };
        let offset = b.add(b.times(b.add(b.times(number, classes), target), places), place);
        let loss = b.neg(b.mul(b.load(buffers[0], dtype, offset), weight));
        match is_ignored {
            Some(is_ignored) => [loss, weight].map(|value| b.select(is_ignored, b.zero(ty), value)),
            None => [loss, weight],
        }
    };
    if reduction == "none" {
        cx.call(batch * places, grain(4), &reads, &[y], |b, kernel| {
            b.for_each(kernel.begin, kernel.end, 1, |sample| {
                let [loss, _] = loss(b, kernel.buffers, sample);
                b.store(loss, kernel.buffers[reads.len()], result, sample);
            });
        });
        return Ok(());
    }
    let is_mean = reduction == "mean";
    let (samples, is_weighted) = (batch * places, weights.is_some() || ignored.is_some());
    cx.call(1, 1, &reads, &[y], |b, kernel| {
        let zero = b.zero(b.computed(computed));
        let sums = b.fold_nest(&[samples], &[zero, zero], |sample, sums| {
            let [loss, weight] = loss(b, kernel.buffers, sample[0]);
            vec![b.accumulate(sums[0], loss), b.accumulate(sums[1], weight)]
        });
        let total = if is_weighted { sums[1] } else { b.float(samples as f64, b.type_of(sums[0])) };
        let value = if is_mean { b.div(sums[0], total, false) } else { sums[0] };
        b.store(value, kernel.buffers[reads.len()], result, b.index(0));
    });
    Ok(())
}

#[cfg(test)]
mod tests;
