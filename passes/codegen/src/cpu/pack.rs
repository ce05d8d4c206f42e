//! Packing of weights into the order in which kernels read them. Constants are packed when the bundle is built or loaded, computed weights
//! by a kernel: at load if they depend on constants only, else in each request.

use crate::{graph::Id, half_precision, lowering::Lowering, ops::blocks::grain};
use divi_onnx::DType;
use divi_runtime::prepare::{Expression, Loop, Pack};

/// Source of weights.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Constant(Expression),
    Computed(Id),
}

impl Source {
    /// Returns weights that are computed with in `f32`.
    pub(super) fn of(cx: &Lowering<'_>, id: Id) -> Self {
        cx.f32_expression(id).map_or(Self::Computed(id), Self::Constant)
    }
}

/// Permutation of the elements of a row-major source, with zeros for coordinates outside of it.
#[derive(Debug)]
pub(super) struct Packing {
    dtype: DType,
    shape: Vec<i64>,
    parts: Vec<Part>,
}

/// Loop nest over a contiguous part of the result; the first loop is the outermost.
#[derive(Debug)]
struct Part {
    /// Coordinates in the source of the first element.
    start: Vec<i64>,
    loops: Vec<Step>,
}

/// Axis of the source, trip count of the loop, and step along the axis.
type Step = (usize, i64, i64);

impl Packing {
    /// Returns an empty packing of `f32` elements.
    pub(super) fn of(shape: &[i64]) -> Self {
        Self::of_type(DType::F32, shape)
    }

    pub(super) fn of_type(dtype: DType, shape: &[i64]) -> Self {
        Self { dtype, shape: shape.to_vec(), parts: vec![] }
    }

    /// Returns a packing that appends zeros to a vector of `count` elements.
    pub(super) fn padded(count: i64, padded: i64) -> Self {
        let mut packing = Self::of(&[count]);
        packing.add(&[0], &[(0, padded, 1)]);
        packing
    }

    /// Appends a part to the result.
    pub(super) fn add(&mut self, start: &[i64], loops: &[Step]) {
        if loops.iter().all(|&(_, count, _)| count > 0) {
            self.parts.push(Part { start: start.to_vec(), loops: loops.to_vec() });
        }
    }

    /// Returns the packed weights as a one-dimensional value.
    pub(super) fn apply(self, cx: &mut Lowering<'_>, source: Source) -> Id {
        let count = self.parts.iter().map(Part::count).sum();
        match source {
            Source::Constant(source) => {
                let dtype = self.dtype;
                let mut packed = self.expression(source);
                if let Some(element) = half_precision::element(dtype) {
                    packed = Expression::Narrow { source: Box::new(packed), element };
                }
                cx.constant(dtype, &[count], packed)
            }
            Source::Computed(source) => {
                let source = cx.dense(source);
                let result = cx.temporary(self.dtype, &[count]);
                cx.at_load_if_constant(source, |cx| self.pack(cx, source, result));
                result
            }
        }
    }

    fn expression(self, source: Expression) -> Expression {
        let words = |numbers: &[i64]| numbers.iter().map(|&number| number as u64).collect::<Vec<_>>();
        let shape = words(&self.shape);
        let pack = |part: Part| {
            let step = |&(axis, count, step): &Step| Loop { axis, count: count as u64, step: step as u64 };
            Expression::Pack(Pack {
                source: Box::new(source.clone()),
                shape: shape.clone(),
                start: words(&part.start),
                end: shape.clone(),
                loops: part.loops.iter().map(step).collect(),
            })
        };
        let mut parts: Vec<_> = self.parts.into_iter().map(pack).collect();
        if parts.len() == 1 { parts.remove(0) } else { Expression::Concat(parts) }
    }

    /// Adds the call of a kernel for each part.
    fn pack(&self, cx: &mut Lowering<'_>, source: Id, result: Id) {
        let mut first = 0;
        for part in &self.parts {
            let (extent, inner) = (part.loops[0].1, part.count() / part.loops[0].1);
            cx.call(extent, grain(inner), &[source], &[result], |b, kernel| {
                let counts: Vec<_> = part.loops[1..].iter().map(|&(_, count, _)| count).collect();
                let result_steps = crate::graph::strides(&[&[extent], &counts[..]].concat());
                b.for_each(kernel.begin, kernel.end, 1, |outer| {
                    b.nest(&counts, |rest| {
                        let place = [&[outer], rest].concat();
                        let mut at: Vec<_> = part.start.iter().map(|&start| b.index(start)).collect();
                        for (&(axis, _, step), &i) in part.loops.iter().zip(&place) {
                            at[axis] = b.add(at[axis], b.times(i, step));
                        }
                        let overrun = (0..at.len()).filter(|&axis| part.last(axis) >= self.shape[axis]);
                        let inside = overrun.map(|axis| b.less(at[axis], b.index(self.shape[axis])));
                        let inside = inside.reduce(|all, one| b.and(all, one));
                        let offset = b.offset(&at, &crate::graph::strides(&self.shape));
                        let value = match inside {
                            None => b.load(kernel.buffers[0], self.dtype, offset),
                            Some(inside) => {
                                let safe = b.select(inside, offset, b.index(0));
                                b.select(inside, b.load(kernel.buffers[0], self.dtype, safe), b.zero(b.f32()))
                            }
                        };
                        let target = b.plus(b.offset(&place, &result_steps), first);
                        b.store(value, kernel.buffers[1], self.dtype, target);
                    });
                });
            });
            first += part.count();
        }
    }
}

impl Part {
    fn count(&self) -> i64 {
        self.loops.iter().map(|&(_, count, _)| count).product()
    }

    /// Returns the largest coordinate that the loops reach along an axis.
    fn last(&self, axis: usize) -> i64 {
        let reach = self.loops.iter().filter(|step| step.0 == axis).map(|&(_, count, step)| (count - 1) * step);
        self.start[axis] + reach.sum::<i64>()
    }
}
