//! Signal processing. Fourier transforms are direct O(n^2) sums, for any length; windows and filters are computed at compile time.

mod table;

use super::{
    Lower,
    blocks::{accumulator, grain},
};
use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::{DType, Op, Tensor, node::normalize_axis};
use divi_runtime::prepare::Expression;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::DFT => dft,
        Op::STFT => stft,
        Op::HannWindow | Op::HammingWindow | Op::BlackmanWindow => table::window,
        Op::MelWeightMatrix => table::mel_weight_matrix,
        _ => return None,
    })
}

/// Returns the integer of a constant operand with one element.
fn known_int(cx: &Lowering<'_>, id: Id, what: &str) -> Result<i64> {
    match cx.known_ints(id, what)?[..] {
        [value] => Ok(value),
        _ => unsupported(format!("{what} must be one number")),
    }
}

/// Returns a constant table of cosine and sine of the angles `2π i / parts`.
fn circle(cx: &mut Lowering<'_>, dtype: DType, parts: i64) -> Id {
    let angle = |i: i64| std::f64::consts::TAU * i as f64 / parts as f64;
    let values: Vec<_> = (0..parts).flat_map(|i| [angle(i).cos(), angle(i).sin()]).collect();
    let table = Tensor::from_floats(dtype, vec![parts, 2], &values).expect("tables have two numbers for each part");
    cx.constant(dtype, &[parts, 2], Expression::bytes(table.bytes()))
}

/// Discrete Fourier transform without normalization.
struct Transform {
    /// Period of the transform.
    length: i64,
    /// Number of elements of the signal.
    count: i64,
    is_inverse: bool,
    /// Type of the table of cosines and sines.
    table: DType,
}

impl Transform {
    /// Returns real and imaginary part of `sum(x[j] * e^(±2πijk/length))`, where `element` returns both parts of `x[j]`.
    fn emit(&self, b: &Builder, table: V, k: V, element: impl FnOnce(V) -> [V; 2]) -> [V; 2] {
        let ty = b.computed(self.table);
        let (zero, length) = (b.index(0), b.index(self.length));
        // The index into the table, `j * k` modulo `length`, is updated incrementally.
        let start = [b.zero(ty), b.zero(ty), zero];
        let sums = b.for_loop_carried(zero, b.index(self.count), 1, &start, |j, state| {
            let [re, im] = element(j);
            let cosine = b.load(table, self.table, b.times(state[2], 2));
            let sine = b.load(table, self.table, b.plus(b.times(state[2], 2), 1));
            let sine = if self.is_inverse { sine } else { b.neg(sine) };
            let next = b.add(state[2], k);
            let next = b.select(b.less(next, length), next, b.sub(next, length));
            let real = b.sub(b.mul(re, cosine), b.mul(im, sine));
            let imaginary = b.add(b.mul(re, sine), b.mul(im, cosine));
            vec![b.accumulate(state[0], real), b.accumulate(state[1], imaginary), next]
        });
        [sums[0], sums[1]]
    }
}

fn dft(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let (input, result) = (cx.shape(x).to_vec(), cx.shape(y).to_vec());
    let axis = node.optional(2).map_or(Ok(-2), |id| known_int(cx, id, "the axis"))?;
    let axis = normalize_axis(axis, input.len())?;
    let (is_inverse, is_onesided) =
        (node.attributes().flag("inverse", false)?, node.attributes().flag("onesided", false)?);
    let is_mirrored = is_inverse && is_onesided;
    let length = match node.optional(1) {
        Some(id) => known_int(cx, id, "the length of the transform")?,
        None if is_mirrored => 2 * (input[axis] - 1),
        None => input[axis],
    };
    let dtype = cx.dtype(x);
    let table_dtype = accumulator(dtype);
    let [parts, result_parts] = [&input, &result].map(|shape| shape[shape.len() - 1]);
    // Number of elements of a one-sided spectrum.
    let most = if is_mirrored { length / 2 + 1 } else { length };
    let transform = Transform { length, count: input[axis].min(most), is_inverse, table: table_dtype };
    let table = circle(cx, table_dtype, length);
    let outer: i64 = result[..axis].iter().product();
    let inner: i64 = result[axis + 1..result.len() - 1].iter().product();
    let (bins, signal) = (result[axis], input[axis]);
    cx.call(outer * bins * inner, grain(transform.count * 8), &[x, table], &[y], |b, kernel| {
        let ty = b.computed(table_dtype);
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let place = b.coordinates(number, &[outer, bins, inner]);
            let origin = b.add(b.times(place[0], signal * inner), place[2]);
            let sums = transform.emit(b, kernel.buffers[1], place[1], |j| {
                let at = b.times(b.add(origin, b.times(j, inner)), parts);
                let re = b.load(kernel.buffers[0], dtype, at);
                let im = if parts == 2 { b.load(kernel.buffers[0], dtype, b.plus(at, 1)) } else { b.zero(ty) };
                if !is_mirrored {
                    return [re, im];
                }
                // All elements but the first and the middle one also represent their complex conjugate.
                let is_alone = b.or(b.equal(j, b.index(0)), b.equal(b.times(j, 2), b.index(length)));
                let weight = b.select(is_alone, b.float(1.0, ty), b.float(2.0, ty));
                [b.mul(re, weight), b.mul(im, weight)]
            });
            for (i, sum) in sums.into_iter().enumerate().take(result_parts as usize) {
                let value = if is_inverse { b.div(sum, b.float(length as f64, ty), false) } else { sum };
                b.store(value, kernel.buffers[2], dtype, b.plus(b.times(number, result_parts), i as i64));
            }
        });
    });
    Ok(())
}

fn stft(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y, window) = (node.input(0)?, node.output()?, node.optional(2));
    let step = known_int(cx, node.input(1)?, "the frame's step")?;
    let &[batch, signal, parts] = cx.shape(x) else { return unsupported("the signal must have rank 3") };
    let (frames, bins) = (cx.shape(y)[1], cx.shape(y)[2]);
    let length = match (node.optional(3), window) {
        (Some(id), _) => known_int(cx, id, "the frame's length")?,
        (None, Some(window)) => cx.count(window),
        (None, None) => signal,
    };
    let dtype = cx.dtype(x);
    let table_dtype = accumulator(dtype);
    let transform = Transform { length, count: length, is_inverse: false, table: table_dtype };
    let table = circle(cx, table_dtype, length);
    let reads: Vec<_> = [x, table].into_iter().chain(window).collect();
    cx.call(batch * frames * bins, grain(length * 8), &reads, &[y], |b, kernel| {
        let ty = b.computed(table_dtype);
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let place = b.coordinates(number, &[batch, frames, bins]);
            let origin = b.add(b.times(place[0], signal), b.times(place[1], step));
            let sums = transform.emit(b, kernel.buffers[1], place[2], |j| {
                let at = b.times(b.add(origin, j), parts);
                let re = b.load(kernel.buffers[0], dtype, at);
                let im = if parts == 2 { b.load(kernel.buffers[0], dtype, b.plus(at, 1)) } else { b.zero(ty) };
                match window {
                    Some(_) => {
                        let weight = b.load(kernel.buffers[2], dtype, j);
                        [b.mul(re, weight), b.mul(im, weight)]
                    }
                    None => [re, im],
                }
            });
            for (i, sum) in sums.into_iter().enumerate() {
                b.store(sum, kernel.buffers[reads.len()], dtype, b.plus(b.times(number, 2), i as i64));
            }
        });
    });
    Ok(())
}

#[cfg(test)]
mod tests;
