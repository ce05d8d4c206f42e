//! Changes of element type.

use super::{
    array::{Array, Decoded},
    partial,
    source::{Source, content},
};
use crate::{DType, Dim, Node, node::KnownElements};

pub(super) fn cast(node: &Node<'_>, to: DType) -> Option<KnownElements> {
    let Some(tensor) = node.optional(0)?.tensor() else { return cast_partial(node, to) };
    if tensor.dtype() == to {
        return Source::constant(tensor).reshaped(tensor.dims().to_vec());
    }
    // Implementations differ in values that are out of range of types narrower than a byte.
    if to.is_int() && to.bits() < 8 {
        return None;
    }
    let numbers = Decoded::of(tensor)?;
    let result = match numbers {
        Decoded::Ints(values) if to == DType::Bool => Decoded::Ints(values.map(|value| Some((value != 0).into()))?),
        Decoded::Floats(values) if to == DType::Bool => Decoded::Ints(values.map(|value| Some((value != 0.0).into()))?),
        Decoded::Ints(values) if to.is_float() => Decoded::Floats(to_floats(&values, to)?),
        Decoded::Floats(values) if to.is_int() => Decoded::Ints(values.map(|value| truncate(value, to))?),
        same => same,
    };
    result.content(to)
}

/// Converts integers to floats. `f32` and narrower types are rounded from `f32`: rounding from `f64` would round twice.
fn to_floats(values: &Array<i64>, to: DType) -> Option<Array<f64>> {
    values.map(|value| Some(if to == DType::F64 { value as f64 } else { f64::from(value as f32) }))
}

/// Returns the integral part; `None` for NaN and values out of range, whose result is undefined and depends on the target.
fn truncate(value: f64, to: DType) -> Option<i64> {
    let value = value.trunc();
    let bits = to.bits().min(63) as i32;
    let (low, high) = if to.is_signed_int() {
        let high = 2f64.powi(to.bits() as i32 - 1);
        (-high, high)
    } else {
        (0.0, 2f64.powi(bits))
    };
    (low <= value && value < high).then_some(value as i64)
}

fn cast_partial(node: &Node<'_>, to: DType) -> Option<KnownElements> {
    if !matches!(to, DType::I64 | DType::I32) {
        return None;
    }
    let elements = partial::decode(&Source::of(node, 0)?)?;
    let elements = elements.map(|element| {
        Some(match element {
            Dim::Known(value) => Dim::Known(partial::wrap(to, value)),
            other => other,
        })
    })?;
    content(to, elements.dims, elements.data)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{N, bools, floats, ints, partial, tensor};
    use crate::{DType, Tensor, infer::testing::Case};

    fn to(tensor: Tensor, dtype: DType) -> Case {
        Case::new("Cast").constant(tensor).int("to", dtype.code())
    }

    #[test]
    fn from_floats() {
        let data = || floats(&[3], &[-1.9, 1.9, 0.0]);
        to(data(), DType::I64).folds_to(ints(&[3], &[-1, 1, 0]));
        to(data(), DType::Bool).folds_to(bools(&[3], &[1, 1, 0]));
        to(data(), DType::U8).folds_to_nothing("uint8[*]");
        to(floats(&[], &[f64::NAN]), DType::Bool).folds_to(bools(&[], &[1]));
        to(floats(&[], &[f64::NAN]), DType::I64).folds_to_nothing("int64[*]");
        to(floats(&[], &[2f64.powi(63)]), DType::I64).folds_to_nothing("int64[*]");
        to(floats(&[], &[-(2f64.powi(63))]), DType::I64).folds_to(ints(&[], &[i64::MIN]));
        to(floats(&[], &[255.9]), DType::U8).folds_to(tensor(DType::U8, &[], &[255]));
        to(floats(&[], &[-0.5]), DType::U8).folds_to(tensor(DType::U8, &[], &[0]));
        let half = |v: f64| Tensor::from_floats(DType::F16, vec![], &[v]).unwrap();
        to(floats(&[], &[1e9]), DType::F16).folds_to(half(f64::INFINITY));
        to(floats(&[], &[0.1]), DType::F8E5M2).folds_to_nothing("float8e5m2[*]");
        to(floats(&[], &[1.0]), DType::I4).folds_to_nothing("int4[*]");
    }

    #[test]
    fn from_ints() {
        to(ints(&[2], &[200, -1]), DType::I8).folds_to(tensor(DType::I8, &[2], &[-56, -1]));
        to(ints(&[1], &[-1]), DType::U64).folds_to(tensor(DType::U64, &[1], &[-1]));
        to(ints(&[2], &[7, 0]), DType::Bool).folds_to(bools(&[2], &[1, 0]));
        to(bools(&[2], &[1, 0]), DType::F32).folds_to(floats(&[2], &[1.0, 0.0]));
        // Halfway between two `f32` once rounded to `f64`.
        let value = (1 << 60) + (1 << 36) + 1;
        to(ints(&[], &[value]), DType::F32).folds_to(floats(&[], &[(value as f32).into()]));
        Case::new("CastLike").constant(ints(&[], &[2])).input("float[9]").folds_to(floats(&[], &[2.0]));
        Case::new("Cast").constant(ints(&[], &[2])).int("to", 99).folds_to_nothing("float[*]");
    }

    #[test]
    fn partly_known() {
        let shape = || Case::new("Cast").value(partial(&[N, (1 << 32).into()]));
        shape().int("to", DType::I32.code()).folds_to_partial("int32[2]", &[N, 0.into()]);
        shape().int("to", DType::F32.code()).folds_to_nothing("float[2]");
    }
}
