//! Non-maximum suppression of boxes.

use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::Node,
    lowering::Lowering,
    ops::elementwise::check_numbers,
};
use divi_onnx::DType;
use divi_runtime::bundle::Status;

/// Lowers NonMaxSuppression. For each image and class, selects the remaining box with the highest score and removes those whose overlap
/// with it exceeds the threshold, until none is left or enough are selected. The total number must match the shape of the result, else the
/// kernel fails.
pub(super) fn non_max_suppression(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (boxes, scores, output) = (node.input(0)?, node.input(1)?, node.output()?);
    let is_centered = node.attributes().flag("center_point_box", false)?;
    let (&[_, count, _], &[images, classes, _]) = (cx.shape(boxes), cx.shape(scores)) else {
        return unsupported("boxes and scores must have rank 3");
    };
    let expected = cx.shape(output)[0];
    let (box_dtype, score_dtype) = (cx.dtype(boxes), cx.dtype(scores));
    let is_out = cx.temporary(DType::Bool, &[count]);
    let mut reads = vec![boxes, scores];
    let mut limit = |index: usize| {
        node.optional(index).map(|id| {
            reads.push(id);
            reads.len() - 1
        })
    };
    let (most, overlap, score) = (limit(2), limit(3), limit(4));
    cx.call(1, 1, &reads, &[output, is_out], |b, kernel| {
        let [output, is_out] = [kernel.buffers[reads.len()], kernel.buffers[reads.len() + 1]];
        let float = b.f32();
        let scalar = |index: Option<usize>, dtype| index.map(|i| b.load(kernel.buffers[i], dtype, b.index(0)));
        let most = scalar(most, DType::I64).unwrap_or_else(|| b.index(0));
        let overlap = scalar(overlap, DType::F32).unwrap_or_else(|| b.float(0.0, float));
        let lowest_score = scalar(score, DType::F32).unwrap_or_else(|| b.float(f64::NEG_INFINITY, float));
        let (yes, no) = (b.integer(-1, b.i1()), b.integer(0, b.i1()));
        let load = |pointer, dtype: DType, at| {
            let value = b.load(pointer, dtype, at);
            if dtype == DType::F64 { b.resize_float(value, float) } else { value }
        };
        let total = b.fold_nest(&[images, classes], &[b.index(0)], |place, state| {
            let first_box = b.times(place[0], count);
            let first_score = b.times(b.add(b.times(place[0], classes), place[1]), count);
            let rectangle = |i| {
                let start = b.times(b.add(first_box, i), 4);
                let sides = [0, 1, 2, 3].map(|side| load(kernel.buffers[0], box_dtype, b.plus(start, side)));
                Rectangle::new(b, sides, is_centered)
            };
            b.repeat(count, |i| b.store(no, is_out, DType::Bool, i));
            let none = b.index(-1);
            let state = b.while_loop(
                &[state[0], b.index(0), yes],
                |state| b.and(state[2], b.less(state[1], most)),
                |state| {
                    let lowest = lowest_score;
                    let best = b.for_loop_carried(b.index(0), b.index(count), 1, &[lowest, none], |i, best| {
                        let score = load(kernel.buffers[1], score_dtype, b.add(first_score, i));
                        let is_better = b.and(b.less(best[0], score), b.not(b.load(is_out, DType::Bool, i)));
                        vec![b.select(is_better, score, best[0]), b.select(is_better, i, best[1])]
                    })[1];
                    let is_found = b.not(b.equal(best, none));
                    b.if_then(is_found, || {
                        b.if_then(b.less(state[0], b.index(expected)), || {
                            for (i, value) in [place[0], place[1], best].into_iter().enumerate() {
                                b.store(value, output, DType::I64, b.plus(b.times(state[0], 3), i as i64));
                            }
                        });
                        let chosen = rectangle(best);
                        b.repeat(count, |i| {
                            let overlaps = chosen.overlaps(b, &rectangle(i), overlap);
                            let is_out_now = b.or(overlaps, b.load(is_out, DType::Bool, i));
                            b.store(is_out_now, is_out, DType::Bool, i);
                        });
                        b.store(yes, is_out, DType::Bool, best);
                    });
                    let one = b.resize(is_found, b.i64(), true);
                    vec![b.add(state[0], one), b.add(state[1], one), is_found]
                },
            );
            vec![state[0]]
        })[0];
        b.fail_if(b.not(b.equal(total, b.index(expected))), Status::BadValue);
    });
    Ok(())
}

/// Bounds of a box along both axes.
struct Rectangle {
    low: [V; 2],
    high: [V; 2],
}

impl Rectangle {
    /// Creates a box from two opposite corners, or from its center and size.
    fn new(b: &Builder, sides: [V; 4], is_centered: bool) -> Self {
        let half = b.float(0.5, b.f32());
        let axis = |i: usize| {
            let (first, second) = (sides[i], sides[i + 2]);
            if is_centered {
                let half = b.mul(second, half);
                return (b.sub(first, half), b.add(first, half));
            }
            (b.min(first, second, false), b.max(first, second, false))
        };
        let ((low_0, high_0), (low_1, high_1)) = (axis(0), axis(1));
        Self { low: [low_0, low_1], high: [high_0, high_1] }
    }

    fn area(&self, b: &Builder) -> V {
        b.mul(b.sub(self.high[0], self.low[0]), b.sub(self.high[1], self.low[1]))
    }

    /// Emits the condition that the intersection over union of two boxes exceeds a threshold.
    fn overlaps(&self, b: &Builder, other: &Self, threshold: V) -> V {
        let zero = b.float(0.0, b.f32());
        let shared = |i: usize| {
            let low = b.max(self.low[i], other.low[i], false);
            b.max(b.sub(b.min(self.high[i], other.high[i], false), low), zero, false)
        };
        let intersection = b.mul(shared(0), shared(1));
        let union = b.sub(b.add(self.area(b), other.area(b)), intersection);
        let ratio = b.div(intersection, union, false);
        b.and(b.less(zero, intersection), b.less(threshold, ratio))
    }
}
