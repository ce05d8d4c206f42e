//! Quantization and dequantization.

use super::{
    Lower,
    blocks::{grain, to_float, view},
    elementwise::map,
};
use crate::{
    emit::{Builder, Compare, Type, V},
    error::{Result, unsupported},
    graph::{Id, Node, strides},
    lowering::Lowering,
};
use divi_onnx::{DType, Op, node::normalize_axis};

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::QuantizeLinear => quantize_linear,
        Op::DequantizeLinear => dequantize_linear,
        Op::DynamicQuantizeLinear => dynamic_quantize_linear,
        _ => return None,
    })
}

/// Converts an integral floating-point number to an integer with saturation. NaN becomes the smallest one, as in ONNX Runtime and ONNX's
/// reference.
pub(super) fn saturate(b: &Builder, value: V, dtype: DType) -> V {
    let ty = b.type_of(value);
    let bits = dtype.bits() as i32;
    let (least, most) = match dtype.is_unsigned_int() {
        true => (0.0, 2f64.powi(bits) - 1.0),
        false => (-2f64.powi(bits - 1), 2f64.powi(bits - 1) - 1.0),
    };
    let at_least = b.select(b.compare(Compare::Greater, value, b.float(least, ty), false), value, b.float(least, ty));
    let clamped = b.select(b.less(at_least, b.float(most, ty)), at_least, b.float(most, ty));
    b.resize(b.float_to_int(clamped, b.int(32), false), computed_integer(b, dtype), true)
}

/// Returns the compute type of integers; at least 8 bits.
fn computed_integer(b: &Builder, dtype: DType) -> Type {
    b.int((dtype.bits() as u32).max(8))
}

/// Checks that a type of quantized numbers is supported: integers of at most 32 bits, or floating-point numbers of at most 8.
fn check(dtype: DType) -> Result<()> {
    if dtype.is_int() && dtype.bits() <= 32 || Builder::is_small_float(dtype) {
        return Ok(());
    }
    unsupported(format!("quantized numbers of type {dtype} are not supported; use int8 or uint8"))
}

/// Shapes of data and parameter (scale or zero point) under which the parameter broadcasts: a blocked axis is split in two.
struct Shared {
    shape: Vec<i64>,
    parameter: Vec<i64>,
}

/// Returns the shapes under which a scale or zero point broadcasts: per tensor, per axis, or per block of an axis.
fn shared(cx: &Lowering<'_>, node: &Node, x: Id, parameter: Id) -> Result<Shared> {
    let shape = cx.shape(x).to_vec();
    if cx.count(parameter) == 1 {
        return Ok(Shared { shape, parameter: vec![] });
    }
    let rank = shape.len();
    let axis = if rank == 1 { 0 } else { normalize_axis(node.attributes().int_or("axis", 1)?, rank)? };
    let block = node.attributes().int_or("block_size", 0)?;
    if block == 0 {
        let mut parameter = vec![1; rank];
        parameter[axis] = shape[axis];
        return Ok(Shared { shape, parameter });
    }
    let split = |middle: [i64; 2]| [&shape[..axis], &middle, &shape[axis + 1..]].concat();
    let blocks = shape[axis] / block;
    Ok(Shared { parameter: split([blocks, 1]), shape: split([blocks, block]) })
}

/// Returns the shape of the data, and views of scale and zero point that broadcast to it. The zero point of floating-point numbers is 0
/// and omitted.
fn parameters(cx: &mut Lowering<'_>, node: &Node, is_float: bool) -> Result<(Vec<i64>, Vec<Id>)> {
    let x = node.input(0)?;
    let ids: Vec<_> = [node.input(1)?].into_iter().chain(node.optional(2).filter(|_| !is_float)).collect();
    let block = node.attributes().int_or("block_size", 0)?;
    let rank = cx.shape(x).len();
    if block > 0 && cx.count(ids[0]) > 1 {
        let axis = normalize_axis(node.attributes().int_or("axis", 1)?, rank)?;
        if cx.shape(x)[axis] % block != 0 {
            let shape = cx.shape(x).to_vec();
            let ids = ids.iter().map(|&id| repeated(cx, id, &shape, axis, block)).collect();
            return Ok((shape, ids));
        }
    }
    let Shared { shape, .. } = shared(cx, node, x, ids[0])?;
    let mut views = vec![];
    for id in ids {
        let Shared { parameter, .. } = shared(cx, node, x, id)?;
        views.push(view(cx, id, &parameter));
    }
    Ok((shape, views))
}

/// Repeats each element of an axis `block` times, up to the size of the axis: the last block may be partial.
fn repeated(cx: &mut Lowering<'_>, id: Id, shape: &[i64], axis: usize, block: i64) -> Id {
    let dtype = cx.dtype(id);
    let result = cx.temporary(dtype, shape);
    let from = strides(cx.shape(id));
    let to = strides(shape);
    // Threads must not share bytes.
    let grain = if dtype.bits() < 8 { shape[0] } else { grain(shape[1..].iter().product()) };
    cx.call(shape[0], grain, &[id], &[result], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |first| {
            b.nest(&shape[1..], |rest| {
                let mut place = vec![first];
                place.extend(rest);
                let target = b.offset(&place, &to);
                place[axis] = b.div_rem(place[axis], block).0;
                let value = b.load(kernel.buffers[0], dtype, b.offset(&place, &from));
                b.store(value, kernel.buffers[1], dtype, target);
            });
        });
    });
    result
}

fn quantize_linear(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let (dtype, result) = (cx.dtype(x), cx.dtype(y));
    check(result)?;
    let scale_dtype = cx.dtype(node.input(1)?);
    let saturates = node.attributes().flag("saturate", true)?;
    let adds_zero = result == DType::F4E2M1 && node.optional(2).is_some();
    let (shape, parameters) = parameters(cx, node, Builder::is_small_float(result))?;
    let (x, y) = (view(cx, x, &shape), view(cx, y, &shape));
    let operands = [vec![x], parameters].concat();
    map(cx, &operands, y, |b, values| {
        let ty = if dtype == DType::F64 || scale_dtype == DType::F64 { b.f64() } else { b.f32() };
        let quotient = b.div(to_float(b, values[0], dtype, ty), to_float(b, values[1], scale_dtype, ty), false);
        if Builder::is_small_float(result) {
            let quotient = b.resize_float(quotient, b.f32());
            // Adding the zero point 0 turns negative zero into zero.
            let sum = if adds_zero { b.add(quotient, b.zero(b.f32())) } else { quotient };
            return b.encode_small_float(sum, result, saturates);
        }
        let rounded = b.round_even(quotient);
        let shifted = values.get(2).map_or(rounded, |&zero| b.add(rounded, to_float(b, zero, result, ty)));
        saturate(b, shifted, result)
    });
    Ok(())
}

fn dequantize_linear(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let (dtype, result) = (cx.dtype(x), cx.dtype(y));
    check(dtype)?;
    let scale_dtype = cx.dtype(node.input(1)?);
    let (shape, parameters) = parameters(cx, node, Builder::is_small_float(dtype))?;
    let (x, y) = (view(cx, x, &shape), view(cx, y, &shape));
    let operands = [vec![x], parameters].concat();
    map(cx, &operands, y, |b, values| {
        let ty = b.computed(result);
        let scale = to_float(b, values[1], scale_dtype, ty);
        if Builder::is_small_float(dtype) {
            return b.mul(b.resize_float(b.decode_small_float(values[0], dtype), ty), scale);
        }
        // The difference of two 16-bit integers needs more than 16 bits.
        let wide = |value| b.resize(value, b.int(32), dtype.is_unsigned_int());
        let value = values.get(2).map_or(wide(values[0]), |&zero| b.sub(wide(values[0]), wide(zero)));
        b.mul(b.int_to_float(value, ty, false), scale)
    });
    Ok(())
}

/// Lowers quantization to `uint8` with a scale and zero point whose range covers all elements and 0.
fn dynamic_quantize_linear(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let dtype = cx.dtype(x);
    let scale = node.result(1).unwrap_or_else(|| cx.temporary(DType::F32, &[]));
    let zero_point = node.result(2).unwrap_or_else(|| cx.temporary(DType::U8, &[]));
    let count = cx.count(x);
    cx.call(1, 1, &[x], &[scale, zero_point], |b, kernel| {
        let ty = b.f32();
        let float = |value| b.float(value, ty);
        let range = b.fold_nest(&[count], &[float(0.0), float(0.0)], |place, range| {
            let value = b.load(kernel.buffers[0], dtype, place[0]);
            vec![b.min(range[0], value, false), b.max(range[1], value, false)]
        });
        let width = b.sub(range[1], range[0]);
        let is_flat = b.equal(width, float(0.0));
        let scale = b.div(b.select(is_flat, float(1.0), width), float(255.0), false);
        // Clamped before rounding: NaN becomes 255, as in ONNX Runtime and ONNX's reference.
        let zero_point = b.div(b.neg(range[0]), scale, false);
        let zero_point = b.select(b.less(zero_point, float(255.0)), zero_point, float(255.0));
        let zero_point = b.round_even(zero_point);
        b.store(scale, kernel.buffers[1], DType::F32, b.index(0));
        b.store(saturate(b, zero_point, DType::U8), kernel.buffers[2], DType::U8, b.index(0));
    });
    map(cx, &[x, scale, zero_point], y, |b, values| {
        let rounded = b.round_even(b.div(values[0], values[1], false));
        saturate(b, b.add(rounded, to_float(b, values[2], DType::U8, b.f32())), DType::U8)
    });
    Ok(())
}

#[cfg(test)]
mod tests;
