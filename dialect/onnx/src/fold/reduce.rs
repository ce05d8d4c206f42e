//! Reductions over axes.

use super::{
    arithmetic::{float_op, int_op},
    array::{Array, Decoded, axes, constant, optional_ints},
    bounded, partial,
    source::{Source, content},
    walk::{AxisLines, StridedOffsets, strides},
};
use crate::{
    DType, Dim, Node, Op, Tensor,
    node::{KnownElements, normalize_axis},
};

/// Returns the binary operator that a reduction repeats.
fn repeated(op: Op) -> Op {
    match op {
        Op::ReduceMax => Op::Max,
        Op::ReduceMin => Op::Min,
        Op::ReduceProd => Op::Mul,
        _ => Op::Add,
    }
}

pub(super) fn reduce(node: &Node<'_>) -> Option<KnownElements> {
    let data = Source::of(node, 0)?;
    let given = optional_ints(node, 1)?.unwrap_or_default();
    let axes = match given[..] {
        [] if node.flag("noop_with_empty_axes", false).ok()? => return data.reshaped(data.dims.to_vec()),
        [] => (0..data.rank()).collect(),
        _ => axes(&given, data.rank())?,
    };
    let shape = Reduced::new(&data.dims, &axes, node.flag("keepdims", true).ok()?)?;
    let Some(tensor) = constant(node, 0) else { return reduce_partial(node, &data, shape) };
    let dtype = tensor.dtype();
    let op = repeated(node.op);
    if dtype == DType::Bool && !matches!(op, Op::Max | Op::Min) {
        return None;
    }
    let result = match Decoded::of(tensor)? {
        Decoded::Ints(_) if node.op == Op::ReduceMean => return None,
        Decoded::Ints(values) => {
            let identity = if op == Op::Mul { 1 } else { 0 };
            let result = accumulate(&values, &shape, identity, matches!(op, Op::Max | Op::Min), int_op(op)?)?;
            Decoded::Ints(Array { dims: shape.dims, data: result })
        }
        Decoded::Floats(values) => {
            let f = float_op(op)?;
            let identity = if op == Op::Mul { 1.0 } else { 0.0 };
            let first = matches!(op, Op::Max | Op::Min);
            let mut result = accumulate(&values, &shape, identity, first, |a, b| Some(f(a, b)))?;
            if node.op == Op::ReduceMean {
                // The mean of no elements is 0 / 0 = NaN, as in numpy.
                result.iter_mut().for_each(|sum| *sum /= shape.count);
            }
            Decoded::Floats(Array { dims: shape.dims, data: result })
        }
    };
    result.content(dtype)
}

/// Mapping of the elements of an operand to those of the reduced result.
struct Reduced {
    /// Shape of the result.
    dims: Vec<i64>,
    /// Strides in the result for the operand's axes; 0 for reduced axes.
    steps: Vec<isize>,
    /// Number of operand elements per result element.
    count: f64,
}

impl Reduced {
    fn new(dims: &[i64], axes: &[usize], keep: bool) -> Option<Self> {
        let mut is_reduced = vec![false; dims.len()];
        axes.iter().for_each(|&axis| is_reduced[axis] = true);
        let kept: Vec<_> = dims.iter().zip(&is_reduced).map(|(&dim, &reduced)| if reduced { 1 } else { dim }).collect();
        bounded(&kept)?;
        let steps =
            strides(&kept).into_iter().zip(&is_reduced).map(|(stride, &reduced)| if reduced { 0 } else { stride });
        let steps = steps.collect();
        let count = axes.iter().map(|&axis| dims[axis] as f64).product();
        let result = kept.iter().zip(&is_reduced).filter(|&(_, &reduced)| keep || !reduced).map(|(&dim, _)| dim);
        Some(Self { dims: result.collect(), steps, count })
    }
}

/// Accumulates all elements into the result. With `from_first`, accumulation starts with the first element instead of
/// `identity`, and a reduction of no elements returns `None`.
fn accumulate<T: Copy>(
    values: &Array<T>,
    shape: &Reduced,
    identity: T,
    from_first: bool,
    f: impl Fn(T, T) -> Option<T>,
) -> Option<Vec<T>> {
    let count = bounded(&shape.dims)?;
    let mut result = vec![identity; count];
    let mut started = vec![!from_first; count];
    for (target, &value) in StridedOffsets::new(&values.dims, &shape.steps, 0)?.zip(&values.data) {
        let element = result.get_mut(target)?;
        *element = if std::mem::replace(started.get_mut(target)?, true) { f(*element, value)? } else { value };
    }
    started.iter().all(|&started| started).then_some(result)
}

/// Reduces a partly known list to one element.
fn reduce_partial(node: &Node<'_>, data: &Source<'_>, shape: Reduced) -> Option<KnownElements> {
    if node.op == Op::ReduceMean || shape.dims.iter().any(|&dim| dim != 1) {
        return None;
    }
    let elements = partial::decode(data)?.data;
    let result = elements.into_iter().reduce(|a, b| partial::combine(repeated(node.op), data.dtype, a, b));
    content(data.dtype, shape.dims, vec![result.unwrap_or(Dim::Unknown)])
}

/// Evaluates `ArgMax` and `ArgMin`.
pub(super) fn arg(node: &Node<'_>) -> Option<KnownElements> {
    let tensor = constant(node, 0)?;
    let axis = normalize_axis(node.int_or("axis", 0).ok()?, tensor.dims().len()).ok()?;
    let lines = AxisLines::new(tensor.dims(), axis)?;
    let last = node.flag("select_last_index", false).ok()?;
    let largest = node.op == Op::ArgMax;
    let positions: Option<Vec<i64>> = match Decoded::of(tensor)? {
        Decoded::Ints(values) => {
            lines.starts().map(|start| extremum_position(&values.data, start, &lines, last, largest)).collect()
        }
        // Implementations differ in the order of NaN.
        Decoded::Floats(values) if values.data.iter().any(|value| value.is_nan()) => None,
        Decoded::Floats(values) => {
            lines.starts().map(|start| extremum_position(&values.data, start, &lines, last, largest)).collect()
        }
    };
    let mut dims = tensor.dims().to_vec();
    if node.flag("keepdims", true).ok()? {
        dims[axis] = 1;
    } else {
        dims.remove(axis);
    }
    Tensor::from_ints(DType::I64, dims, &positions?).map(KnownElements::Constant)
}

/// Returns the position of the maximum (`largest`) or minimum of the line that begins at `start`: the first or, with
/// `last`, the last of equals.
fn extremum_position<T: Copy + PartialOrd>(
    values: &[T],
    start: usize,
    lines: &AxisLines,
    last: bool,
    largest: bool,
) -> Option<i64> {
    let mut found = (0, *values.get(start)?);
    for position in 1..lines.size {
        let value = *values.get(start + position * lines.inner)?;
        let better = if largest { value > found.1 } else { value < found.1 };
        if better || last && value == found.1 {
            found = (position, value);
        }
    }
    Some(found.0 as i64)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{N, bools, floats, ints, partial, tensor};
    use crate::{DType, infer::testing::Case};

    #[test]
    fn reductions() {
        let of = |op| Case::new(op).constant(ints(&[2, 3], &[1, 2, 3, 4, 5, 6])).shape_input(&[-1]);
        of("ReduceSum").folds_to(ints(&[2, 1], &[6, 15]));
        of("ReduceProd").int("keepdims", 0).folds_to(ints(&[2], &[6, 120]));
        of("ReduceMax").folds_to(ints(&[2, 1], &[3, 6]));
        of("ReduceMin").folds_to(ints(&[2, 1], &[1, 4]));
        of("ReduceMean").folds_to_nothing("int64[*]");
        let of = |op| Case::new(op).constant(floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]));
        of("ReduceMean").folds_to(floats(&[1, 1], &[2.5]));
        of("ReduceSum").shape_input(&[0]).folds_to(floats(&[1, 2], &[4.0, 6.0]));
        of("ReduceSum").int("noop_with_empty_axes", 1).folds_to(floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]));
        of("ReduceSum").shape_input(&[2]).folds_to_nothing("float[*]");
        of("ReduceSum").shape_input(&[0, 0]).folds_to_nothing("float[*]");
        of("ReduceSum").input("int64[1]").folds_to_nothing("float[*]");
        Case::new("ReduceMax").constant(bools(&[2], &[0, 1])).folds_to(bools(&[1], &[1]));
        let bytes = tensor(DType::U8, &[2], &[200, 100]);
        Case::new("ReduceSum").constant(bytes).folds_to(tensor(DType::U8, &[1], &[44]));
    }

    #[test]
    fn reductions_of_nothing() {
        let of = |op| Case::new(op).constant(floats(&[0, 2], &[])).shape_input(&[0]);
        of("ReduceSum").folds_to(floats(&[1, 2], &[0.0, 0.0]));
        of("ReduceProd").folds_to(floats(&[1, 2], &[1.0, 1.0]));
        of("ReduceMax").folds_to_nothing("float[*]");
        let hostile = floats(&[0, 1 << 62], &[]);
        Case::new("ReduceSum").constant(hostile).shape_input(&[0]).folds_to_nothing("float[*]");
    }

    #[test]
    fn partly_known() {
        let of = |op| Case::new(op).value(partial(&[N, 1.into(), 1.into()]));
        of("ReduceProd").int("keepdims", 0).folds_to_partial("int64[]", &[N]);
        of("ReduceProd").folds_to_partial("int64[1]", &[N]);
        of("ReduceSum").folds_to_nothing("int64[1]");
        let case = Case::new("ReduceProd").value(partial(&[N, 0.into()])).shape_input(&[0]);
        case.folds_to(ints(&[1], &[0]));
    }

    #[test]
    fn positions() {
        let of = |op| Case::new(op).constant(ints(&[2, 3], &[1, 3, 3, 6, 5, 4]));
        of("ArgMax").int("axis", 1).folds_to(ints(&[2, 1], &[1, 0]));
        of("ArgMax").int("axis", -1).int("select_last_index", 1).int("keepdims", 0).folds_to(ints(&[2], &[2, 0]));
        of("ArgMin").folds_to(ints(&[1, 3], &[0, 0, 0]));
        of("ArgMax").int("axis", 2).folds_to_nothing("int64[*]");
        Case::new("ArgMax").constant(floats(&[3], &[1.0, 2.0, 0.5])).folds_to(ints(&[1], &[1]));
        Case::new("ArgMin").constant(floats(&[3], &[1.0, 2.0, 0.5])).folds_to(ints(&[1], &[2]));
        Case::new("ArgMin").constant(floats(&[1], &[f64::NAN])).folds_to_nothing("int64[*]");
        Case::new("ArgMin").constant(floats(&[0], &[])).folds_to_nothing("int64[*]");
    }
}
