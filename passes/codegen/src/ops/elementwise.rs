//! Element-wise operators.

mod activation;
mod binary;
mod cast;
#[cfg(test)]
mod tests;
mod unary;
mod variadic;

use super::Lower;
use crate::{
    emit::{Builder, Signature, V},
    error::{Result, unsupported},
    graph::{Id, Node, broadcast_strides},
    lowering::Lowering,
};
pub(super) use cast::convert;
use divi_onnx::{DType, Op};

/// Minimal number of elements per thread.
const GRAIN: i64 = 16 * 1024;

pub(super) fn find(op: Op) -> Option<Lower> {
    const PARTS: &[fn(Op) -> Option<Lower>] =
        &[binary::find, variadic::find, cast::find, activation::find, unary::find];
    PARTS.iter().find_map(|part| part(op))
}

/// Returns true if elements are compared, divided and extended as unsigned numbers.
pub(super) fn is_unsigned(dtype: DType) -> bool {
    dtype == DType::Bool || dtype.is_unsigned_int()
}

/// Checks that arithmetic is supported for the types of all operands and results of a node.
pub(super) fn check_numbers(cx: &Lowering<'_>, node: &Node) -> Result<()> {
    let ids = node.inputs.iter().chain(&node.outputs).flatten();
    let mut dtypes = ids.map(|&id| cx.dtype(id));
    match dtypes.find(|dtype| !(dtype.is_float() || dtype.is_int() || *dtype == DType::Bool)) {
        Some(dtype) => unsupported(format!("arithmetic on {dtype} is not supported; insert a Cast to another type")),
        None => Ok(()),
    }
}

/// Adds a call that computes each element of the result from the corresponding elements of the operands, which are broadcast to it.
pub(crate) fn map(cx: &mut Lowering<'_>, operands: &[Id], result: Id, compute: impl FnOnce(&Builder, &[V]) -> V) {
    let shape = cx.shape(result).to_vec();
    let operands: Vec<_> = operands.iter().map(|&id| StridedAccess::broadcast(cx, id, cx.dtype(id), &shape)).collect();
    let result = StridedAccess::broadcast(cx, result, cx.dtype(result), &shape);
    nest(cx, &shape, &operands, &result, compute);
}

/// Returns a value whose elements have their own type in memory; converts them if they have another one.
pub(crate) fn in_own_type(cx: &mut Lowering<'_>, id: Id) -> Id {
    if cx.type_in_memory(id) == cx.dtype(id) {
        return id;
    }
    let shape = cx.shape(id).to_vec();
    let copy = cx.temporary(cx.dtype(id), &shape);
    map(cx, &[id], copy, |_, values| values[0]);
    copy
}

/// Strided access to the elements of a value in a loop nest.
pub(super) struct StridedAccess {
    pub(super) id: Id,
    /// Type as which elements are loaded or stored.
    pub(super) dtype: DType,
    /// Offset of the first element.
    pub(super) start: i64,
    /// Stride for each loop.
    pub(super) strides: Vec<i64>,
}

impl StridedAccess {
    /// Returns the access to a value that is broadcast to a shape.
    pub(super) fn broadcast(cx: &Lowering<'_>, id: Id, dtype: DType, shape: &[i64]) -> Self {
        // A value with a single element may have a higher rank than the shape.
        let is_single = cx.count(id) == 1;
        let strides = if is_single { vec![0; shape.len()] } else { broadcast_strides(cx.shape(id), shape) };
        Self { id, dtype, start: 0, strides }
    }
}

/// Adds the call of a loop nest over a shape that computes an element of the result from one element of each operand.
pub(super) fn nest(
    cx: &mut Lowering<'_>,
    shape: &[i64],
    operands: &[StridedAccess],
    result: &StridedAccess,
    compute: impl FnOnce(&Builder, &[V]) -> V,
) {
    let walks: Vec<_> = operands.iter().chain([result]).collect();
    let (mut shape, strides) = collapse(shape, walks.iter().map(|walk| walk.strides.clone()).collect());
    let reads: Vec<_> = operands.iter().map(|walk| walk.id).collect();
    let at = |b: &Builder, place: &[V], i: usize| b.plus(b.offset(place, &strides[i]), walks[i].start);
    let compute = |b: &Builder, buffers: &[V], place: &[V]| {
        let load = |i: usize| b.load(buffers[i], operands[i].dtype, at(b, place, i));
        compute(b, &(0..operands.len()).map(load).collect::<Vec<_>>())
    };
    let lanes = cx.lanes() as i64;
    let has_whole_vectors =
        cx.is_streamed(result.id) && has_whole_vectors(result, &shape, &strides[operands.len()], lanes);
    let at_once = if has_whole_vectors { lanes } else { 1 };
    shape.last_mut().into_iter().for_each(|size| *size /= at_once);
    let loops = Loops::over(cx, &shape);
    let grain = grain(result.dtype, loops.extent(), GRAIN / (loops.inner_count() * at_once).max(1));
    cx.call(loops.extent(), grain, &reads, &[result.id], |b, kernel| {
        let (buffers, target) = (kernel.buffers, kernel.buffers[operands.len()]);
        loops.emit(b, &kernel, |place| {
            if !has_whole_vectors {
                let value = compute(b, buffers, place);
                return b.store(value, target, result.dtype, at(b, place, operands.len()));
            }
            // Elements are collected on the stack and written as one vector.
            let line = b.alloca(lanes, b.f32());
            let mut place = place.to_vec();
            let last = place.len() - 1;
            place[last] = b.times(place[last], lanes);
            b.repeat(lanes, |lane| {
                let mut place = place.clone();
                place[last] = b.add(place[last], lane);
                b.store(compute(b, buffers, &place), line, result.dtype, lane);
            });
            let values = b.load_vector(line, b.index(0), b.vector());
            b.store_aligned(values, target, at(b, &place, operands.len()));
        });
    });
}

/// Returns true if the elements that a walk writes form whole aligned vectors.
fn has_whole_vectors(walk: &StridedAccess, shape: &[i64], strides: &[i64], lanes: i64) -> bool {
    let (Some((&size, _)), Some((&step, others))) = (shape.split_last(), strides.split_last()) else { return false };
    let is_aligned = |number: &i64| number % lanes == 0;
    walk.dtype.bits() == 32
        && step == 1
        && is_aligned(&size)
        && is_aligned(&walk.start)
        && others.iter().all(is_aligned)
}

/// Loop nest over a shape. The outer axes are distributed over threads, the inner ones are loops: a CPU thread gets slices of the first
/// axis, a GPU thread single elements.
pub(super) struct Loops {
    outer: Vec<i64>,
    inner: Vec<i64>,
}

impl Loops {
    pub(super) fn over(cx: &Lowering<'_>, shape: &[i64]) -> Self {
        let split = if cx.is_simt() { shape.len() } else { shape.len().min(1) };
        let (outer, inner) = shape.split_at(split);
        Self { outer: outer.to_vec(), inner: inner.to_vec() }
    }

    pub(super) fn extent(&self) -> i64 {
        self.outer.iter().product()
    }

    pub(super) fn inner_count(&self) -> i64 {
        self.inner.iter().product()
    }

    /// Emits the loops of a kernel: `body` gets the coordinates.
    pub(super) fn emit(&self, b: &Builder, kernel: &Signature<'_>, body: impl FnOnce(&[V])) {
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let outer = b.coordinates(number, &self.outer);
            b.nest(&self.inner, |inner| body(&[&outer[..], inner].concat()));
        });
    }
}

/// Returns the minimal number of iterations per thread: all of them if elements are narrower than a byte, so that threads do not share
/// bytes.
pub(super) fn grain(dtype: DType, extent: i64, iterations: i64) -> i64 {
    if dtype.bits() < 8 { extent } else { iterations.max(1) }
}

/// Reduces the number of axes: drops those of size 1, and merges adjacent axes that are contiguous in all operands.
pub(super) fn collapse(shape: &[i64], strides: Vec<Vec<i64>>) -> (Vec<i64>, Vec<Vec<i64>>) {
    let mut axes: Vec<(i64, Vec<i64>)> = vec![];
    for (axis, &size) in shape.iter().enumerate() {
        if size == 1 {
            continue;
        }
        let steps: Vec<_> = strides.iter().map(|strides| strides[axis]).collect();
        match axes.last_mut() {
            Some((outer, outer_steps))
                if outer_steps.iter().zip(&steps).all(|(outer, inner)| *outer == inner * size) =>
            {
                *outer *= size;
                *outer_steps = steps;
            }
            _ => axes.push((size, steps)),
        }
    }
    if axes.is_empty() {
        axes.push((shape.iter().product(), vec![0; strides.len()]));
    }
    let shape = axes.iter().map(|(size, _)| *size).collect();
    let strides = (0..strides.len()).map(|i| axes.iter().map(|(_, steps)| steps[i]).collect()).collect();
    (shape, strides)
}
