//! Operators that move elements without arithmetic.

mod compress;
mod concat;
mod gather;
mod generate;
mod pad;
mod scatter;
mod slice;
#[cfg(test)]
mod tests;
mod transpose;

use super::{
    Lower,
    elementwise::{Loops, StridedAccess, nest},
};
use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::{Id, strides},
    lowering::Lowering,
};
use divi_onnx::{DType, Op};
use divi_runtime::prepare::Expression;

/// Minimal number of bytes per thread.
const GRAIN: i64 = 64 * 1024;

pub(super) fn find(op: Op) -> Option<Lower> {
    const PARTS: &[fn(Op) -> Option<Lower>] = &[
        concat::find,
        slice::find,
        gather::find,
        generate::find,
        pad::find,
        scatter::find,
        compress::find,
        transpose::find,
    ];
    PARTS.iter().find_map(|part| part(op))
}

/// Returns the unsigned integer type of the same width, as which elements are copied without conversion.
pub(super) fn raw(dtype: DType) -> Result<DType> {
    Ok(match dtype.bits() {
        2 => DType::U2,
        4 => DType::U4,
        8 => DType::U8,
        16 => DType::U16,
        32 => DType::U32,
        64 => DType::U64,
        _ => return unsupported(format!("elements of type {dtype} are not supported")),
    })
}

/// Copies all bytes of a value.
pub(super) fn copy(cx: &mut Lowering<'_>, from: Id, to: Id) {
    let bytes = byte_len(cx, from);
    cx.call(bytes, GRAIN, &[from], &[to], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |i| {
            let byte = b.load(kernel.buffers[0], DType::U8, i);
            b.store(byte, kernel.buffers[1], DType::U8, i);
        });
    });
}

impl Lowering<'_> {
    /// Places a value at an offset in bytes inside another value, or copies it there if it cannot be placed.
    pub(crate) fn place_or_copy_subview(&mut self, part: Id, whole: Id, first: u64, node_count: usize) {
        if self.try_place_subview(part, whole, first, node_count) {
            return;
        }
        let (dtype, shape) = (self.dtype(part), self.shape(part).to_vec());
        let target = self.temporary(dtype, &shape);
        self.place_subview(target, whole, first);
        copy(self, part, target);
    }
}

/// As [`copy`], to an output of the stage; with non-temporal stores if they are requested.
pub(crate) fn copy_to_output(cx: &mut Lowering<'_>, from: Id, to: Id) {
    let (bytes, lanes) = (byte_len(cx, from), cx.lanes() as i64);
    let line = lanes * 4;
    if !cx.is_streamed(to) || bytes % line != 0 {
        return copy(cx, from, to);
    }
    cx.call(bytes / line, GRAIN / line, &[from], &[to], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |i| {
            let at = b.times(i, lanes);
            b.store_aligned(b.load_vector(kernel.buffers[0], at, b.vector()), kernel.buffers[1], at);
        });
    });
}

fn byte_len(cx: &Lowering<'_>, id: Id) -> i64 {
    cx.dtype(id).byte_len(cx.count(id) as u64).expect("tensors fit into memory") as i64
}

/// Strided part of a value: offset of its first element, and stride along each axis.
struct Part {
    id: Id,
    start: i64,
    strides: Vec<i64>,
}

impl Part {
    /// Returns the whole value.
    fn whole(cx: &Lowering<'_>, id: Id) -> Self {
        Self { id, start: 0, strides: strides(cx.shape(id)) }
    }
}

/// Copies elements from one part to another of the same shape.
fn copy_part(cx: &mut Lowering<'_>, shape: &[i64], from: Part, to: Part) -> Result<()> {
    let dtype = raw(cx.dtype(to.id))?;
    let walk = |Part { id, start, strides }| StridedAccess { id, dtype, start, strides };
    nest(cx, shape, &[walk(from)], &walk(to), |_, values| values[0]);
    Ok(())
}

/// Returns a constant table of integers.
pub(super) fn table(cx: &mut Lowering<'_>, values: &[i64]) -> Id {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    cx.constant(DType::I64, &[values.len() as i64], Expression::bytes(&bytes))
}

/// Copies elements by tables: for each axis of the result, a table maps an index to an offset in the operand. The offsets of all axes are
/// added.
pub(super) fn copy_by_tables(cx: &mut Lowering<'_>, from: Id, to: Id, tables: &[Vec<i64>]) -> Result<()> {
    let dtype = raw(cx.dtype(to))?;
    let shape = cx.shape(to).to_vec();
    let ids: Vec<_> = tables.iter().map(|values| table(cx, values)).collect();
    if shape.is_empty() {
        copy(cx, from, to);
        return Ok(());
    }
    let mut reads = vec![from];
    reads.extend(&ids);
    let loops = Loops::over(cx, &shape);
    let grain = super::elementwise::grain(dtype, loops.extent(), GRAIN / loops.inner_count().max(1));
    cx.call(loops.extent(), grain, &reads, &[to], |b, kernel| {
        loops.emit(b, &kernel, |place| {
            let offsets = place.iter().zip(&kernel.buffers[1..]).zip(tables);
            let offsets = offsets.map(|((&at, &buffer), table)| {
                let size = table.iter().max().map_or(1, |largest| largest + 1);
                b.bounded_index(b.load(buffer, DType::I64, at), size)
            });
            let offset = offsets.reduce(|sum, offset| b.add(sum, offset)).unwrap_or_else(|| b.index(0));
            let value = b.load(kernel.buffers[0], dtype, offset);
            b.store(value, kernel.buffers[reads.len()], dtype, b.offset(place, &strides(&shape)));
        });
    });
    Ok(())
}

/// Loads an index of 32 or 64 bits as `i64`.
fn load_index(b: &Builder, pointer: V, dtype: DType, at: V) -> V {
    b.resize(b.load(pointer, dtype, at), b.i64(), false)
}

/// Returns the product of the sizes before an axis, the size of the axis, and the product of the sizes after it.
pub(super) fn sizes_around(shape: &[i64], axis: usize) -> (i64, i64, i64) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}
