//! Work of signal processing: Fourier transforms and windows.

use super::Geometry;
use super::elementwise::{EXP, LOG};
use super::operator::{Count, Operator, levels, plus, times};
use divi_onnx::{Error, node::normalize_axis};

/// Returns the operations of a complex FFT: `5 n log2(n)`.
fn fourier(length: u64) -> u64 {
    times(&[5, length, levels(length)])
}

/// Counts `DFT` along one axis, by default the last one of the signal.
pub(super) fn dft(op: &Operator<'_>) -> Result<Count, Error> {
    let (x, y) = (op.dims(0)?, op.result_dims(0)?);
    if x.len() < 2 || x.len() != y.len() {
        return Err(op.wrong(0, "a signal with real and imaginary parts"));
    }
    let axis = match op.node.int_of(2) {
        Some(axis) => normalize_axis(axis, x.len())?,
        None => x.len() - 2,
    };
    // The one-sided spectrum is shorter than the signal: the result of the transform, or the operand of the inverse.
    let length = x[axis].max(y[axis]);
    let others = y[..y.len() - 1].iter().enumerate().filter(|(other, _)| *other != axis).map(|(_, &size)| size);
    let outer = times(&others.collect::<Vec<_>>());
    Ok(op.does(times(&[outer, fourier(length)]), Geometry::Reduce { outer, inner: length }))
}

/// Counts `STFT`: one transform per frame, whose elements are multiplied by the optional window.
pub(super) fn stft(op: &Operator<'_>) -> Result<Count, Error> {
    let (y, signal) = (op.result_dims(0)?, op.dims(0)?);
    let (&[batch, frames, bins, _], [_, whole, ..]) = (&y[..], &signal[..]) else {
        return Err(op.wrong(0, "a batch of signals"));
    };
    let length = match (op.has(2), op.node.int_of(3)) {
        (true, _) => op.count(2)?,
        (false, Some(length)) => length.max(0).unsigned_abs(),
        (false, None) if op.has(3) => bins,
        (false, None) => *whole,
    };
    let outer = times(&[batch, frames]);
    let weighting = if op.has(2) { length } else { 0 };
    Ok(op.does(times(&[outer, plus(&[fourier(length), weighting])]), Geometry::Reduce { outer, inner: length }))
}

pub(super) fn window(op: &Operator<'_>, each: u64) -> Result<Count, Error> {
    let count = op.each(each)?;
    let dtype = op.results.first().map_or(count.dtype, |result| result.dtype);
    Ok(count.dtype(dtype))
}

/// Counts `MelWeightMatrix`: each weight is the minimum of two slopes (a difference and a quotient each), at least 0. Each edge of
/// a band takes a logarithm and an exponential.
pub(super) fn mel_weight_matrix(op: &Operator<'_>) -> Result<Count, Error> {
    let edges = op.result_dims(0)?.last().copied().unwrap_or(0).saturating_add(2);
    let mut count = window(op, 6)?;
    count.flops = plus(&[count.flops, times(&[edges, LOG + EXP])]);
    Ok(count)
}
