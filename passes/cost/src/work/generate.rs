//! Work of operators that create tensors from shapes, seeds and attributes.

use super::elementwise::RANDOM;
use super::normalize::{SOFTMAX_EACH, SOFTMAX_ROW};
use super::operator::{Count, Operator, levels, plus, times};
use super::{Class, Geometry};
use divi_onnx::Error;

/// Counts a fill with a constant. The operand, which determines the shape, is not read.
pub(super) fn fill(op: &Operator<'_>) -> Result<Count, Error> {
    random(op, 0)
}

/// Counts `flops` operations per element of the result. The operand is not read.
pub(super) fn random(op: &Operator<'_>, flops: u64) -> Result<Count, Error> {
    let count = op.each(flops)?.read_bytes(0, 0);
    let dtype = op.results.first().map_or(count.dtype, |result| result.dtype);
    Ok(count.dtype(dtype))
}

/// Counts `Multinomial`: a softmax of each row, the cumulative sum, and for each sample a random number and a binary search.
pub(super) fn multinomial(op: &Operator<'_>) -> Result<Count, Error> {
    let dims = op.dims(0)?;
    let &[outer, inner] = &dims[..] else { return Err(op.wrong(0, "of rank 2")) };
    let samples = times(&[op.result_count(0)?, plus(&[RANDOM, levels(inner)])]);
    let flops = plus(&[times(&[outer, inner, SOFTMAX_EACH + 1]), times(&[outer, SOFTMAX_ROW]), samples]);
    Ok(op.does(flops, Geometry::Reduce { outer, inner }))
}

/// Counts `Dropout`: a view in inference; in training a random number, a comparison and a scale. Inference is assumed if the
/// operand `training_mode` is unknown. A mask is written in either case.
pub(super) fn dropout(op: &Operator<'_>) -> Result<Count, Error> {
    if op.node.int_of(2).is_some_and(|training| training != 0) {
        return Ok(op.each(RANDOM + 2)?.class(Class::Elementwise));
    }
    let mut count = op.view();
    if op.results.len() > 1 {
        count = count.class(Class::Copy);
        count.written = Some(op.result_bytes(1)?);
        count.geometry = Geometry::Elements { count: op.result_count(1)? };
    }
    Ok(count)
}
