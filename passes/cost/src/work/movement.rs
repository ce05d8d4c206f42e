//! Operators that move elements without changing them: views, copies, gathers and scatters.

use super::Geometry;
use super::operator::{Count, Operator, bytes, times};
use divi_onnx::{Error, Op};

/// The elements of all results.
fn moved(op: &Operator<'_>) -> Result<u64, Error> {
    (0..op.results.len()).map(|result| op.result_count(result)).sum_saturating()
}

pub(super) fn copy(op: &Operator<'_>) -> Result<Count, Error> {
    Ok(op.does(0, Geometry::Elements { count: moved(op)? }))
}

/// Where axes of one element alone change places, the bytes stay.
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

/// Reads of operand 0 as much as it writes, or all of it if that is less.
pub(super) fn pick(op: &Operator<'_>) -> Result<Count, Error> {
    let count = op.result_count(0)?;
    let read = bytes(op.node.dtype(0)?, count).min(op.bytes(0)?);
    Ok(op.does(0, Geometry::Elements { count }).touched(0, read))
}

/// A count of `count` elements at most, whose results have at most `bytes`, unless their types say how many.
fn at_most(op: &Operator<'_>, flops: u64, count: u64, bytes: u64) -> Count {
    let known = (0..op.results.len()).map(|result| op.result_bytes(result)).sum_saturating();
    let mut work = op.does(flops, Geometry::Elements { count });
    work.written = Some(known.unwrap_or(bytes));
    work
}

/// The condition decides how much is left: at most everything.
pub(super) fn compress(op: &Operator<'_>) -> Result<Count, Error> {
    let (count, all) = (op.count(0)?, op.bytes(0)?);
    let count = op.result_count(0).unwrap_or(count);
    let read = bytes(op.node.dtype(0)?, count).min(all);
    Ok(at_most(op, 0, count, all).touched(0, read))
}

/// A comparison an element, and the indices of those that are not zero: at most all.
pub(super) fn non_zero(op: &Operator<'_>) -> Result<Count, Error> {
    let (count, rank) = (op.count(0)?, op.dims(0)?.len() as u64);
    Ok(at_most(op, count, count, times(&[8, rank, count])))
}

/// The data are copied, and the updates, each an operation if it is combined with what is there, take their places.
pub(super) fn scatter(op: &Operator<'_>) -> Result<Count, Error> {
    let updates = if op.node.op == Op::TensorScatter { 1 } else { 2 };
    let combines = op.node.str_or("reduction", "none")? != "none";
    let flops = if combines { op.count(updates)? } else { 0 };
    Ok(op.does(flops, Geometry::Elements { count: op.result_count(0)? }))
}

/// Of each sample one score, weighted, and the sum of them.
pub(super) fn negative_log_likelihood(op: &Operator<'_>) -> Result<Count, Error> {
    let count = op.count(1)?;
    let read = bytes(op.node.dtype(0)?, count).min(op.bytes(0)?);
    Ok(op.does(times(&[count, 2 + u64::from(op.has(2))]), Geometry::Elements { count }).touched(0, read))
}

/// An estimate: sorting, a comparison for each element on each level of a tree. At most everything is unique, and each of
/// the three lists of indices has at most as many.
pub(super) fn unique(op: &Operator<'_>) -> Result<Count, Error> {
    let count = op.count(0)?;
    let lists = times(&[8, count, op.results.len().saturating_sub(1) as u64]);
    let flops = times(&[count, super::operator::levels(count)]);
    Ok(at_most(op, flops, count, op.bytes(0)?.saturating_add(lists)))
}

/// An estimate: for each class of each image, sorting the boxes, and the overlap (16 operations) of every box that is
/// selected with every other. Which are selected is up to the data: at most `max_output_boxes_per_class`, by default none.
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

/// An estimate: each position starts an n-gram of each length with each skip, which is looked up and counted.
pub(super) fn tf_idf_vectorizer(op: &Operator<'_>) -> Result<Count, Error> {
    let attribute = |name| Ok::<_, Error>(op.node.int_or(name, 0)?.max(0).unsigned_abs());
    let lengths = attribute("max_gram_length")?.saturating_sub(attribute("min_gram_length")?).saturating_add(1);
    let skips = attribute("max_skip_count")?.saturating_add(1);
    let count = op.count(0)?;
    Ok(op.does(times(&[count, lengths, skips]), Geometry::Elements { count }))
}

/// A sum of counts that may be errors.
trait SumSaturating {
    fn sum_saturating(self) -> Result<u64, Error>;
}

impl<I: Iterator<Item = Result<u64, Error>>> SumSaturating for I {
    fn sum_saturating(mut self) -> Result<u64, Error> {
        self.try_fold(0u64, |sum, count| Ok(sum.saturating_add(count?)))
    }
}
