//! Operators that move elements, and compute nothing.

mod arrange;
mod cut;
mod gather;
mod generate;
mod pad;
mod scatter;
mod select;
#[cfg(test)]
mod tests;
mod transpose;

use super::{
    Lower,
    elementwise::{Loops, Walk, nest},
};
use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::{Id, strides},
    lowering::Lowering,
};
use divi_onnx::{DType, Op};
use divi_runtime::prepare::Expression;

/// Fewer bytes are not worth a thread.
const GRAIN: i64 = 64 * 1024;

pub(super) fn find(op: Op) -> Option<Lower> {
    const PARTS: &[fn(Op) -> Option<Lower>] = &[
        arrange::find,
        cut::find,
        gather::find,
        generate::find,
        pad::find,
        scatter::find,
        select::find,
        transpose::find,
    ];
    PARTS.iter().find_map(|part| part(op))
}

/// The type as which elements are moved: integers of their width, which no conversion touches.
pub(super) fn raw(dtype: DType) -> Result<DType> {
    Ok(match dtype.bits() {
        2 => DType::U2,
        4 => DType::U4,
        8 => DType::U8,
        16 => DType::U16,
        32 => DType::U32,
        64 => DType::U64,
        _ => return unsupported(format!("there is no code that moves elements of {dtype}")),
    })
}

/// Copies all bytes of a value.
fn copy(cx: &mut Lowering<'_>, from: Id, to: Id) {
    let bytes = byte_len(cx, from);
    cx.call(bytes, GRAIN, &[from], &[to], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |i| {
            let byte = b.load(kernel.buffers[0], DType::U8, i);
            b.store(byte, kernel.buffers[1], DType::U8, i);
        });
    });
}

impl Lowering<'_> {
    /// Makes a value be written into a part of another one, from a byte on, or copies it there if it lies elsewhere already.
    pub(crate) fn place_part(&mut self, part: Id, whole: Id, first: u64, node_count: usize) {
        if self.try_place_part(part, whole, first, node_count) {
            return;
        }
        let (dtype, shape) = (self.dtype(part), self.shape(part).to_vec());
        let place = self.temporary(dtype, &shape);
        self.place_in_part(place, whole, first);
        copy(self, part, place);
    }
}

/// As [`copy`], to where nothing of the stage reads it again.
pub(crate) fn copy_out(cx: &mut Lowering<'_>, from: Id, to: Id) {
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

/// A part of a value: where it begins, and how far apart its elements are on each axis.
struct Part {
    id: Id,
    start: i64,
    strides: Vec<i64>,
}

impl Part {
    /// All of a value.
    fn whole(cx: &Lowering<'_>, id: Id) -> Self {
        Self { id, start: 0, strides: strides(cx.shape(id)) }
    }
}

/// Copies elements from one part to another, both of this shape.
fn copy_part(cx: &mut Lowering<'_>, shape: &[i64], from: Part, to: Part) -> Result<()> {
    let dtype = raw(cx.dtype(to.id))?;
    let walk = |Part { id, start, strides }| Walk { id, dtype, start, strides };
    nest(cx, shape, &[walk(from)], &walk(to), |_, values| values[0]);
    Ok(())
}

/// Integers that kernels look up, known when code is generated.
pub(super) fn table(cx: &mut Lowering<'_>, values: &[i64]) -> Id {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    cx.constant(DType::I64, &[values.len() as i64], Expression::bytes(&bytes))
}

/// Copies elements that tables tell: on each axis of the result, the table has the offset of every place in the operand.
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

/// An index of 32 or 64 bits as it is computed with.
fn load_index(b: &Builder, pointer: V, dtype: DType, at: V) -> V {
    b.resize(b.load(pointer, dtype, at), b.i64(), false)
}

/// Sizes before, at and behind an axis.
pub(super) fn around(shape: &[i64], axis: usize) -> (i64, i64, i64) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}
