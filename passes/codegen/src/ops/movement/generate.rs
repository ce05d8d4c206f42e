//! Operators that generate tensors from shapes and scalars.

use super::{Lower, pad::fill, raw};
use crate::{
    emit::Compare,
    error::{Result, unsupported},
    graph::{Id, Node},
    lowering::Lowering,
    ops::elementwise::{check_numbers, convert, grain},
};
use divi_onnx::{DType, Op, Tensor, node::normalize_axis};
use divi_runtime::prepare::Expression;

/// Minimal number of elements per thread.
const GRAIN: i64 = 16 * 1024;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Constant => constant,
        Op::ConstantOfShape => constant_of_shape,
        Op::EyeLike => eye_like,
        Op::OneHot => one_hot,
        Op::Range => range,
        Op::Shape => shape,
        Op::Size => size,
        Op::Trilu => trilu,
        _ => return None,
    })
}

/// Makes a result a constant.
fn known(cx: &mut Lowering<'_>, output: Id, tensor: &Tensor) {
    let constant = cx.constant(tensor.dtype(), tensor.dims(), Expression::bytes(tensor.bytes()));
    cx.alias(output, constant);
}

fn constant(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let output = node.output()?;
    let attributes = node.attributes();
    let dims = cx.shape(output).to_vec();
    let ints = |values: &[i64]| Tensor::from_ints(DType::I64, dims.clone(), values);
    let floats = |values: &[f32]| {
        let values: Vec<_> = values.iter().map(|&value| value.into()).collect();
        Tensor::from_floats(DType::F32, dims.clone(), &values)
    };
    let tensor = match attributes.attributes.iter().next() {
        Some(("value", _)) => attributes.tensor("value")?.cloned(),
        Some(("value_int", _)) => attributes.int("value_int")?.and_then(|value| ints(&[value])),
        Some(("value_ints", _)) => attributes.ints("value_ints")?.and_then(ints),
        Some(("value_float", _)) => attributes.float("value_float")?.and_then(|value| floats(&[value])),
        Some(("value_floats", _)) => attributes.floats("value_floats")?.and_then(floats),
        _ => None,
    };
    match tensor {
        Some(tensor) => {
            known(cx, output, &tensor);
            Ok(())
        }
        None => unsupported("this kind of value is not supported; write it as a dense 'value'"),
    }
}

fn constant_of_shape(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let value = node.attributes().tensor("value")?;
    let value = value.map(|value| cx.constant(value.dtype(), value.dims(), Expression::bytes(value.bytes())));
    fill(cx, node.output()?, value)
}

fn shape(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let attributes = node.attributes();
    let dims = cx.shape(node.input(0)?);
    let rank = dims.len() as i64;
    let clamp = |at: i64| if at < 0 { at.saturating_add(rank) } else { at }.clamp(0, rank) as usize;
    let start = clamp(attributes.int_or("start", 0)?);
    let end = clamp(attributes.int_or("end", rank)?).max(start);
    let tensor = Tensor::from_shape(&dims[start..end]);
    known(cx, node.output()?, &tensor);
    Ok(())
}

fn size(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let tensor = Tensor::scalar_i64(cx.count(node.input(0)?));
    known(cx, node.output()?, &tensor);
    Ok(())
}

/// Lowers EyeLike: ones on a diagonal.
fn eye_like(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let output = node.output()?;
    let dtype = cx.dtype(output);
    let offset = node.attributes().int_or("k", 0)?;
    let &[rows, columns] = cx.shape(output) else { return unsupported("the operand must be a matrix") };
    if !(dtype.is_float() || dtype.is_int() || dtype == DType::Bool) {
        return unsupported(format!("arithmetic on {dtype} is not supported"));
    }
    let grain = grain(dtype, rows, GRAIN / columns.max(1));
    cx.call(rows, grain, &[], &[output], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |row| {
            let diagonal = b.plus(row, offset);
            b.repeat(columns, |column| {
                let value = convert(b, b.equal(column, diagonal), DType::Bool, dtype);
                b.store(value, kernel.buffers[0], dtype, b.add(b.times(row, columns), column));
            });
        });
    });
    Ok(())
}

/// Lowers Trilu: zeros on one side of a diagonal.
fn trilu(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let is_upper = node.attributes().flag("upper", true)?;
    let &[.., rows, columns] = cx.shape(input) else { return unsupported("the operand must have rank 2 or more") };
    let dtype = raw(cx.dtype(input))?;
    let mut reads = vec![input];
    reads.extend(node.optional(1));
    let has_offset = reads.len() == 2;
    let extent = cx.count(input) / columns.max(1);
    cx.call(extent, grain(dtype, extent, GRAIN / columns.max(1)), &reads, &[output], |b, kernel| {
        let offset = if has_offset { b.load(kernel.buffers[1], DType::I64, b.index(0)) } else { b.index(0) };
        b.for_each(kernel.begin, kernel.end, 1, |line| {
            let diagonal = b.add(b.div_rem(line, rows).1, offset);
            let start = b.times(line, columns);
            let keeps = if is_upper { Compare::GreaterOrEqual } else { Compare::LessOrEqual };
            b.repeat(columns, |column| {
                let at = b.add(start, column);
                let value = b.load(kernel.buffers[0], dtype, at);
                let is_kept = b.compare(keeps, column, diagonal, false);
                b.store(b.select(is_kept, value, b.zero(b.type_of(value))), kernel.buffers[reads.len()], dtype, at);
            });
        });
    });
    Ok(())
}

fn one_hot(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (indices, values, output) = (node.input(0)?, node.input(2)?, node.output()?);
    let shape = cx.shape(output).to_vec();
    let axis = normalize_axis(node.attributes().int_or("axis", -1)?, shape.len())?;
    let (outer, depth, inner) = super::sizes_around(&shape, axis);
    let (index_dtype, dtype) = (cx.dtype(indices), raw(cx.dtype(values))?);
    if !(index_dtype.is_float() || index_dtype.is_int()) {
        return unsupported(format!("indices of type {index_dtype} are not supported; insert a Cast"));
    }
    let grain = grain(dtype, outer, GRAIN / (depth * inner).max(1));
    cx.call(outer, grain, &[indices, values], &[output], |b, kernel| {
        let [off, on] = [0, 1].map(|i| b.load(kernel.buffers[1], dtype, b.index(i)));
        b.for_each(kernel.begin, kernel.end, 1, |outer| {
            b.nest(&[depth, inner], |place| {
                let index = b.load(kernel.buffers[0], index_dtype, b.add(b.times(outer, inner), place[1]));
                let index = convert(b, index, index_dtype, DType::I64);
                let from_end = b.less(index, b.index(0));
                let index = b.select(from_end, b.plus(index, depth), index);
                let value = b.select(b.equal(index, place[0]), on, off);
                let at = b.add(b.times(b.add(b.times(outer, depth), place[0]), inner), place[1]);
                b.store(value, kernel.buffers[2], dtype, at);
            });
        });
    });
    Ok(())
}

/// Lowers Range; the number of elements is that of the result's shape.
fn range(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (start, delta, output) = (node.input(0)?, node.input(2)?, node.output()?);
    let dtype = cx.dtype(output);
    let count = cx.count(output);
    cx.call(count, GRAIN, &[start, delta], &[output], |b, kernel| {
        let [start, delta] = [0, 1].map(|i| b.load(kernel.buffers[i], dtype, b.index(0)));
        b.for_each(kernel.begin, kernel.end, 1, |i| {
            let number = convert(b, i, DType::I64, dtype);
            b.store(b.add(start, b.mul(number, delta)), kernel.buffers[2], dtype, i);
        });
    });
    Ok(())
}
