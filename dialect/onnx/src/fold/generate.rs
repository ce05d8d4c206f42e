//! Operators that create tensors from shapes and attributes.

use super::{
    MAX_ELEMENTS,
    array::{Array, Decoded, constant, ints},
    bounded,
    source::{Source, content},
    walk::{StridedOffsets, strides},
};
use crate::{
    DType, Dim, Node, Tensor,
    node::{KnownElements, normalize_axis},
    shape::product,
};

/// Returns the shape of operand 0 if it is valid: a model file may contain negative sizes.
fn dims_of<'a>(node: &Node<'a>) -> Option<&'a [Dim]> {
    node.shape(0).ok()?.filter(|dims| !dims.iter().any(|dim| matches!(dim, Dim::Known(..0))))
}

pub(super) fn shape(node: &Node<'_>) -> Option<KnownElements> {
    let dims = dims_of(node)?;
    let rank = dims.len() as i64;
    let clamped = |axis: i64| (if axis < 0 { axis.saturating_add(rank) } else { axis }).clamp(0, rank) as usize;
    let start = clamped(node.int_or("start", 0).ok()?);
    let end = clamped(node.int_or("end", rank).ok()?);
    let dims = dims.get(start..end).unwrap_or_default();
    content(DType::I64, vec![dims.len() as i64], dims.to_vec())
}

pub(super) fn size(node: &Node<'_>) -> Option<KnownElements> {
    content(DType::I64, vec![], vec![product(dims_of(node)?)])
}

/// Evaluates `Constant`. The result shares the attribute's buffer, so its size is not limited.
pub(super) fn constant_op(node: &Node<'_>) -> Option<KnownElements> {
    let to_f64 = |values: &[f32]| values.iter().copied().map(f64::from).collect::<Vec<_>>();
    let tensor = if let Some(tensor) = node.tensor("value").ok()? {
        Some(tensor.clone())
    } else if let Some(value) = node.int("value_int").ok()? {
        Some(Tensor::scalar_i64(value))
    } else if let Some(values) = node.ints("value_ints").ok()? {
        Some(Tensor::from_shape(values))
    } else if let Some(value) = node.float("value_float").ok()? {
        Some(Tensor::scalar_f32(value))
    } else if let Some(values) = node.floats("value_floats").ok()? {
        Tensor::from_floats(DType::F32, vec![values.len() as i64], &to_f64(values))
    } else {
        None
    };
    tensor.map(KnownElements::Constant)
}

pub(super) fn constant_of_shape(node: &Node<'_>) -> Option<KnownElements> {
    let dims = ints(node, 0)?;
    let default = Tensor::scalar_f32(0.0);
    let value = node.tensor("value").ok()?.unwrap_or(&default);
    if value.count() != 1 {
        return None;
    }
    let count = bounded(&dims)?;
    Source::constant(value).take(dims, std::iter::repeat_n(0, count))
}

pub(super) fn eye_like(node: &Node<'_>) -> Option<KnownElements> {
    let &[Dim::Known(rows), Dim::Known(columns)] = dims_of(node)? else { return None };
    let dims = vec![rows, columns];
    let dtype = match node.dtype_attr("dtype").ok()? {
        Some(dtype) => dtype,
        None => node.dtype(0).ok()?,
    };
    let diagonal = node.int_or("k", 0).ok()?;
    let ones: Vec<i64> = (0..bounded(&dims)? as i64).map(|i| (i % columns - i / columns == diagonal).into()).collect();
    match dtype {
        dtype if dtype.is_float() => {
            Tensor::from_floats(dtype, dims, &ones.iter().map(|&one| one as f64).collect::<Vec<_>>())
        }
        _ => Tensor::from_ints(dtype, dims, &ones),
    }
    .map(KnownElements::Constant)
}

/// Evaluates `NonZero`: one column of coordinates for each nonzero element.
pub(super) fn non_zero(node: &Node<'_>) -> Option<KnownElements> {
    let tensor = constant(node, 0)?;
    // A scalar has no coordinates, and versions of numpy disagree on the result.
    let rank = Some(tensor.dims().len()).filter(|&rank| rank > 0)?;
    let found: Vec<usize> = match Decoded::of(tensor)? {
        Decoded::Ints(values) => positions(&values.data, |value| value != 0),
        Decoded::Floats(values) => positions(&values.data, |value| value != 0.0),
    };
    if rank.checked_mul(found.len())? > MAX_ELEMENTS {
        return None;
    }
    let mut coordinates = Vec::with_capacity(rank * found.len());
    // An empty tensor, whose strides may be zero, has no nonzero elements.
    for (stride, &size) in strides(tensor.dims()).into_iter().zip(tensor.dims()) {
        coordinates.extend(found.iter().map(|&offset| offset as i64 / stride as i64 % size));
    }
    Tensor::from_ints(DType::I64, vec![rank as i64, found.len() as i64], &coordinates).map(KnownElements::Constant)
}

fn positions<T: Copy>(values: &[T], wanted: impl Fn(T) -> bool) -> Vec<usize> {
    values.iter().enumerate().filter(|&(_, &value)| wanted(value)).map(|(i, _)| i).collect()
}

/// Returns the elements of a constant operand of any numeric type. `None` if one is not integral.
fn integral_array(node: &Node<'_>, index: usize) -> Option<Array<i64>> {
    const LARGEST: f64 = 9e15;
    match Decoded::of(constant(node, index)?)? {
        Decoded::Ints(values) => Some(values),
        Decoded::Floats(values) => {
            values.map(|value| (value.fract() == 0.0 && value.abs() < LARGEST).then_some(value as i64))
        }
    }
}

/// Evaluates `OneHot`. Indices and depth may be floating-point numbers.
pub(super) fn one_hot(node: &Node<'_>) -> Option<KnownElements> {
    let indices = integral_array(node, 0)?;
    let depth = match integral_array(node, 1)?.data[..] {
        [depth] if depth > 0 => depth,
        _ => return None,
    };
    let values = Source::of(node, 2)?;
    if values.dims[..] != [2] {
        return None;
    }
    let rank = indices.dims.len() + 1;
    let axis = normalize_axis(node.int_or("axis", -1).ok()?, rank).ok()?;
    let mut dims = indices.dims.clone();
    dims.insert(axis, depth);
    let mut index_steps = strides(&indices.dims);
    index_steps.insert(axis, 0);
    let mut class_steps = vec![0; rank];
    class_steps[axis] = 1;
    let picks = StridedOffsets::new(&dims, &index_steps, 0)?.zip(StridedOffsets::new(&dims, &class_steps, 0)?);
    let picks = picks.map(|(offset, class)| {
        let index = indices.data.get(offset).and_then(|&i| super::array::index(i, depth));
        usize::from(index == Some(class as i64))
    });
    values.take(dims.clone(), picks)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bools, floats, ints, partial, tensor};
    use crate::{Attr, DType, Dim, Symbol, Tensor, infer::testing::Case};

    #[test]
    fn shape() {
        Case::new("Shape").input("float[2x3x4]").folds_to(ints(&[3], &[2, 3, 4]));
        Case::new("Shape").input("float[2x3x4]").int("start", -2).int("end", 2).folds_to(ints(&[1], &[3]));
        Case::new("Shape")
            .input("float[2x3]")
            .int("start", i64::MIN)
            .int("end", i64::MAX)
            .folds_to(ints(&[2], &[2, 3]));
        Case::new("Shape").input("float[2x3]").int("start", 2).int("end", 1).folds_to(ints(&[0], &[]));
        Case::new("Shape").input("float[]").folds_to(ints(&[0], &[]));
        let n = Dim::Symbol(Symbol(u32::from(b'N')));
        Case::new("Shape").input("float[Nx3x?]").folds_to_partial("int64[3]", &[n, 3.into(), Dim::Unknown]);
        Case::new("Shape").input("float[?]").folds_to_nothing("int64[1]");
        Case::new("Shape").input("float[*]").folds_to_nothing("int64[?]");
        Case::new("Shape").input("float[-2]").folds_to_nothing("int64[1]");
    }

    #[test]
    fn size() {
        Case::new("Size").input("float[2x3]").folds_to(ints(&[], &[6]));
        Case::new("Size").input("float[]").folds_to(ints(&[], &[1]));
        let n = Dim::Symbol(Symbol(u32::from(b'N')));
        Case::new("Size").input("float[Nx1]").folds_to_partial("int64[]", &[n]);
        Case::new("Size").input("float[?x3]").folds_to_nothing("int64[]");
    }

    #[test]
    fn constant() {
        Case::new("Constant").attr("value", Attr::Tensor(ints(&[1], &[3]))).folds_to(ints(&[1], &[3]));
        Case::new("Constant").int("value_int", 3).folds_to(ints(&[], &[3]));
        Case::new("Constant").ints("value_ints", &[3, 4]).folds_to(ints(&[2], &[3, 4]));
        Case::new("Constant").attr("value_float", Attr::Float(0.5)).folds_to(floats(&[], &[0.5]));
        Case::new("Constant").attr("value_floats", Attr::Floats(vec![0.5])).folds_to(floats(&[1], &[0.5]));
        Case::new("Constant").str("value_string", "a").folds_to_nothing("string[*]");
        Case::new("Constant").int("value", 3).folds_to_nothing("int64[*]");
    }

    #[test]
    fn constant_of_shape() {
        let one = Attr::Tensor(ints(&[1], &[1]));
        Case::new("ConstantOfShape").shape_input(&[2, 1]).attr("value", one).folds_to(ints(&[2, 1], &[1, 1]));
        Case::new("ConstantOfShape").shape_input(&[]).folds_to(floats(&[], &[0.0]));
        Case::new("ConstantOfShape").shape_input(&[1 << 62, 1 << 62]).folds_to_nothing("float[*]");
        Case::new("ConstantOfShape").shape_input(&[1 << 62, 0]).folds_to(floats(&[1 << 62, 0], &[]));
        Case::new("ConstantOfShape").shape_input(&[-1]).folds_to_nothing("float[*]");
        Case::new("ConstantOfShape").value(partial(&[Dim::Unknown, 2.into()])).folds_to_nothing("float[?x2]");
    }

    #[test]
    fn eye_like() {
        Case::new("EyeLike").input("int64[2x3]").int("k", 1).folds_to(ints(&[2, 3], &[0, 1, 0, 0, 0, 1]));
        let case = Case::new("EyeLike").input("int64[2x2]").int("dtype", 1).int("k", i64::MIN);
        case.folds_to(floats(&[2, 2], &[0.0; 4]));
        Case::new("EyeLike").input("int64[?x2]").folds_to_nothing("int64[?x2]");
        Case::new("EyeLike").input("int64[99999x99999]").folds_to_nothing("int64[*]");
    }

    #[test]
    fn non_zero() {
        let case = Case::new("NonZero").constant(ints(&[2, 2], &[1, 0, 3, 4]));
        case.folds_to(ints(&[2, 3], &[0, 1, 1, 0, 0, 1]));
        Case::new("NonZero").constant(floats(&[2], &[-0.0, f64::NAN])).folds_to(ints(&[1, 1], &[1]));
        Case::new("NonZero").constant(bools(&[0, 3], &[])).folds_to(ints(&[2, 0], &[]));
        Case::new("NonZero").constant(bools(&[], &[1])).folds_to_nothing("int64[*]");
    }

    #[test]
    fn one_hot() {
        let case = |indices: Tensor, depth| {
            Case::new("OneHot").constant(indices).constant(ints(&[], &[depth])).constant(floats(&[2], &[0.0, 5.0]))
        };
        case(ints(&[2], &[1, -1]), 3).folds_to(floats(&[2, 3], &[0.0, 5.0, 0.0, 0.0, 0.0, 5.0]));
        case(ints(&[2], &[0, 9]), 2).int("axis", 0).folds_to(floats(&[2, 2], &[5.0, 0.0, 0.0, 0.0]));
        case(tensor(DType::I32, &[], &[1]), 2).folds_to(floats(&[2], &[0.0, 5.0]));
        case(floats(&[2], &[1.0, -2.0]), 2).folds_to(floats(&[2, 2], &[0.0, 5.0, 5.0, 0.0]));
        case(floats(&[1], &[0.5]), 2).folds_to_nothing("float[*]");
        case(ints(&[2], &[0, 9]), 1 << 62).folds_to_nothing("float[*]");
        case(ints(&[2], &[0, 9]), -1).folds_to_nothing("float[*]");
        case(ints(&[2], &[0, 9]), 2).int("axis", 2).folds_to_nothing("float[*]");
        let with_depth = |depth: f64| {
            let case = Case::new("OneHot").shape_input(&[1]).constant(floats(&[], &[depth]));
            case.constant(floats(&[2], &[0.0, 5.0]))
        };
        with_depth(2.0).folds_to(floats(&[1, 2], &[0.0, 5.0]));
        with_depth(2.5).folds_to_nothing("float[*]");
        with_depth(f64::INFINITY).folds_to_nothing("float[*]");
    }
}
