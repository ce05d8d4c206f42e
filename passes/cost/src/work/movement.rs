//! Work of operators that move elements without changing them: copies, gathers and scatters.

use super::Geometry;
use super::operator::{Count, Operator, bytes, times};
use divi_onnx::{Error, Op};

/// Returns the number of elements of all results.
fn moved(op: &Operator<'_>) -> Result<u64, Error> {
    (0..op.results.len()).map(|result| op.result_count(result)).sum_saturating()
}

pub(super) fn copy(op: &Operator<'_>) -> Result<Count, Error> {
    Ok(op.does(0, Geometry::Elements { count: moved(op)? }))
}

/// Counts `Transpose`, which is a view if only axes of size 1 move.
pub(super) fn transpose(op: &Operator<'_>) -> Result<Count, Error> {
    let dims = op.dims(0)?;
    let reversed: Vec<i64> = (0..dims.len() as i64).rev().collect();
    let order = op.node.ints("perm")?.unwrap_or(&reversed).iter();
    let large: Vec<i64> = order
        .copied()
        .filter(|&axis| usize::try_from(axis).is_ok_and(|axis| dims.get(axis).is_some_and(|&d| d != 1)))
        .collect();
    if large.is_sorted() { Ok(op.view()) } else { copy(op) }
}

/// Counts operators that read as many elements of operand 0 as they write, at most all of it.
pub(super) fn pick(op: &Operator<'_>) -> Result<Count, Error> {
    let count = op.result_count(0)?;
    let read = bytes(op.node.dtype(0)?, count).min(op.bytes(0)?);
    Ok(op.does(0, Geometry::Elements { count }).read_bytes(0, read))
}

/// Returns a count of at most `count` elements. The bytes of the results are those of their types if known, else `bytes`.
fn at_most(op: &Operator<'_>, flops: u64, count: u64, bytes: u64) -> Count {
    let known = (0..op.results.len()).map(|result| op.result_bytes(result)).sum_saturating();
    let mut work = op.does(flops, Geometry::Elements { count });
    work.written = Some(known.unwrap_or(bytes));
    work
}

/// Counts `Compress`. If the size of the result depends on the condition, all elements are counted.
pub(super) fn compress(op: &Operator<'_>) -> Result<Count, Error> {
    let (count, all) = (op.count(0)?, op.bytes(0)?);
    let count = op.result_count(0).unwrap_or(count);
    let read = bytes(op.node.dtype(0)?, count).min(all);
    Ok(at_most(op, 0, count, all).read_bytes(0, read))
}

/// Counts `NonZero`: one comparison per element, and the indices of at most all elements.
pub(super) fn non_zero(op: &Operator<'_>) -> Result<Count, Error> {
    let (count, rank) = (op.count(0)?, op.dims(0)?.len() as u64);
    Ok(at_most(op, count, count, times(&[8, rank, count])))
}

/// Counts scatter operators: a copy of the data, and one operation per update if there is a reduction.
pub(super) fn scatter(op: &Operator<'_>) -> Result<Count, Error> {
    let updates = if op.node.op == Op::TensorScatter { 1 } else { 2 };
    let combines = op.node.str_or("reduction", "none")? != "none";
    let flops = if combines { op.count(updates)? } else { 0 };
    Ok(op.does(flops, Geometry::Elements { count: op.result_count(0)? }))
}

/// Counts `NegativeLogLikelihoodLoss`: one score per sample, optionally weighted, and their sum.
pub(super) fn negative_log_likelihood(op: &Operator<'_>) -> Result<Count, Error> {
    let count = op.count(1)?;
    let read = bytes(op.node.dtype(0)?, count).min(op.bytes(0)?);
    Ok(op.does(times(&[count, 2 + u64::from(op.has(2))]), Geometry::Elements { count }).read_bytes(0, read))
}

/// Estimates `Unique`: a sort with log2(n) comparisons per element. All elements may be unique, which bounds the size of the
/// values and of the three lists of indices.
pub(super) fn unique(op: &Operator<'_>) -> Result<Count, Error> {
    let count = op.count(0)?;
    let lists = times(&[8, count, op.results.len().saturating_sub(1) as u64]);
    let flops = times(&[count, super::operator::levels(count)]);
    Ok(at_most(op, flops, count, op.bytes(0)?.saturating_add(lists)))
}

/// Estimates `NonMaxSuppression`: for each class of each image, sorting the boxes, and the overlap (16 operations) of every
/// selected box with every other. The number of selected boxes is at most `max_output_boxes_per_class`, by default 0.
pub(super) fn non_max_suppression(op: &Operator<'_>) -> Result<Count, Error> {
    let scores = op.dims(1)?;
    let &[images, classes, boxes] = &scores[..] else { return Err(op.wrong(1, "of rank 3")) };
    let most = match (op.has(2), op.node.int_of(2)) {
        (true, Some(most)) => u64::try_from(most).unwrap_or(0).min(boxes),
        (true, None) => boxes,
        (false, _) => 0,
    };
    let lists = times(&[images, classes]);
    let sorting = times(&[boxes, super::operator::levels(boxes)]);
    let flops = times(&[lists, sorting.saturating_add(times(&[16, most, boxes]))]);
    let selected = times(&[lists, most]);
    Ok(at_most(op, flops, selected, times(&[8, 3, selected])))
}

/// Estimates `TfIdfVectorizer`: one lookup per position, n-gram length and skip.
pub(super) fn tf_idf_vectorizer(op: &Operator<'_>) -> Result<Count, Error> {
    let attribute = |name| Ok::<_, Error>(op.node.int_or(name, 0)?.max(0).unsigned_abs());
    let lengths = attribute("max_gram_length")?.saturating_sub(attribute("min_gram_length")?).saturating_add(1);
    let skips = attribute("max_skip_count")?.saturating_add(1);
    let count = op.count(0)?;
    Ok(op.does(times(&[count, lengths, skips]), Geometry::Elements { count }))
}

/// Saturating sum of counts that may be errors.
trait SumSaturating {
    fn sum_saturating(self) -> Result<u64, Error>;
}

impl<I: Iterator<Item = Result<u64, Error>>> SumSaturating for I {
    fn sum_saturating(mut self) -> Result<u64, Error> {
        self.try_fold(0u64, |sum, count| Ok(sum.saturating_add(count?)))
    }
}
