//! Comparison of tensors within floating-point tolerances.

use divi_onnx::{DType, Tensor};

/// Tolerance of an element: relative to the element, relative to the largest element of the tensor (the error of a sum with
/// cancellation is proportional to its terms), and absolute.
#[derive(Clone, Copy)]
struct Tolerance {
    own: f64,
    largest: f64,
    absolute: f64,
}

/// Returns the machine epsilon and the tolerance in such units: libraries round logarithms and the like differently, but
/// narrow types are rounded from a wider one. `None` for types that must agree bitwise.
fn precision(dtype: DType) -> Option<(f64, f64)> {
    let (digits, units) = match dtype {
        DType::F64 => (52, 8.0),
        DType::F32 => (23, 8.0),
        DType::F16 => (10, 1.0),
        DType::BF16 => (7, 1.0),
        _ => return None,
    };
    Some((0.5f64.powi(digits), units))
}

/// Compares a constant with the expected one. Integers, booleans and types without arithmetic must agree bitwise,
/// floating-point numbers within a tolerance; NaN equals NaN.
///
/// The tolerance is some units in the last place of the element and one of the largest element. ONNX's own runner allows a
/// relative error of `1e-3`, which can hide a wrong formula.
pub fn compare(actual: &Tensor, expected: &Tensor) -> Result<(), String> {
    let tolerance = precision(expected.dtype()).map(|(epsilon, units)| Tolerance {
        own: epsilon * units,
        largest: epsilon,
        absolute: 0.0,
    });
    compare_within(actual, expected, tolerance)
}

/// Compares results of kernels: sums have another order, and exponentials are polynomials.
pub fn compare_computed(actual: &Tensor, expected: &Tensor) -> Result<(), String> {
    let tolerance = precision(expected.dtype()).map(|(epsilon, units)| Tolerance {
        own: epsilon * units * 8.0,
        largest: epsilon * units * 2.0,
        absolute: 0.0,
    });
    compare_within(actual, expected, tolerance)
}

/// Compares with the tolerance of ONNX's own runner.
pub fn compare_loosely(actual: &Tensor, expected: &Tensor) -> Result<(), String> {
    let tolerance = Tolerance { own: 1e-3, largest: 0.0, absolute: 1e-7 };
    compare_within(actual, expected, precision(expected.dtype()).map(|_| tolerance))
}

/// Compares two tensors; bitwise without a tolerance.
fn compare_within(actual: &Tensor, expected: &Tensor, tolerance: Option<Tolerance>) -> Result<(), String> {
    if (actual.dtype(), actual.dims()) != (expected.dtype(), expected.dims()) {
        let text = |tensor: &Tensor| format!("{}{:?}", tensor.dtype(), tensor.dims());
        return Err(format!("is {}, not {}", text(actual), text(expected)));
    }
    let floats = tolerance.zip(actual.floats().zip(expected.floats()));
    let Some((tolerance, (actual, expected))) = floats else {
        let differ = actual.bytes().iter().zip(expected.bytes()).position(|(actual, expected)| actual != expected);
        return differ.map_or(Ok(()), |at| Err(describe_difference(actual, expected, at)));
    };
    let finite = expected.iter().filter(|value| value.is_finite());
    let largest = finite.fold(0f64, |largest, value| largest.max(value.abs()));
    let base = tolerance.largest * largest + tolerance.absolute;
    let near = |actual: f64, expected: f64| {
        // Infinities must be equal: their difference is not finite.
        actual == expected
            || actual.is_nan() && expected.is_nan()
            || expected.is_finite() && (actual - expected).abs() <= tolerance.own * expected.abs() + base
    };
    let wrong: Vec<_> = (0..expected.len()).filter(|&i| !near(actual[i], expected[i])).collect();
    let Some(&first) = wrong.first() else { return Ok(()) };
    Err(format!(
        "{} of {} elements differ, the first at {first}: {:?}, not {:?}",
        wrong.len(),
        expected.len(),
        actual[first],
        expected[first]
    ))
}

/// Describes the first difference of two tensors that differ in the byte `at`.
fn describe_difference(actual: &Tensor, expected: &Tensor, at: usize) -> String {
    if let (Some(actual), Some(expected)) = (actual.ints(), expected.ints())
        && let Some(i) = actual.iter().zip(&expected).position(|(actual, expected)| actual != expected)
    {
        return format!("element {i} is {}, not {}", actual[i], expected[i]);
    }
    format!("byte {at} is {:#x}, not {:#x}", actual.bytes()[at], expected.bytes()[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(dtype: DType, values: &[f64]) -> Tensor {
        Tensor::from_floats(dtype, vec![values.len() as i64], values).unwrap()
    }

    #[test]
    fn floats_are_compared_within_tolerance() {
        let of = |actual: f64, expected: f64| compare(&floats(DType::F32, &[actual]), &floats(DType::F32, &[expected]));
        assert!(of(1.0, 1.000_000_5).is_ok());
        assert!(of(1.0, 1.000_002).is_err());
        assert!(of(0.0, 1e-30).is_err());
        assert!(of(f64::NAN, f64::NAN).is_ok());
        assert!(of(f64::NAN, 1.0).is_err());
        assert!(of(1.0, f64::NAN).is_err());
        assert!(of(f64::INFINITY, f64::INFINITY).is_ok());
        assert!(of(f64::NEG_INFINITY, f64::INFINITY).is_err());
        assert!(of(3e38, f64::INFINITY).is_err());
        assert!(of(f64::INFINITY, 3e38).is_err());
        assert!(compare(&floats(DType::F64, &[1.0]), &floats(DType::F64, &[1.000_000_5])).is_err());
        // Rounding error of a difference of numbers close to one.
        assert!(compare(&floats(DType::F32, &[1.0, 1e-7]), &floats(DType::F32, &[1.0, 0.0])).is_ok());
        assert!(compare(&floats(DType::F32, &[1.0, 2e-7]), &floats(DType::F32, &[1.0, 0.0])).is_err());
    }

    #[test]
    fn kernel_results_have_a_larger_tolerance() {
        let of =
            |actual: f64, expected: f64| (floats(DType::F32, &[1.0, actual]), floats(DType::F32, &[1.0, expected]));
        for (actual, expected, computed, loose) in [
            (1.0, 1.000_005, true, true),
            (1.0, 1.000_1, false, true),
            (1.0, 1.002, false, false),
            (1e-6, 0.0, true, false),
        ] {
            let (actual, expected) = of(actual, expected);
            assert_eq!(compare_computed(&actual, &expected).is_ok(), computed, "{actual:?}");
            assert_eq!(compare_loosely(&actual, &expected).is_ok(), loose, "{actual:?}");
        }
    }

    #[test]
    fn everything_else_is_compared_exactly() {
        let ints = |dtype, values: &[i64]| Tensor::from_ints(dtype, vec![values.len() as i64], values).unwrap();
        assert!(compare(&ints(DType::I8, &[1, -1]), &ints(DType::I8, &[1, -1])).is_ok());
        let message = compare(&ints(DType::I8, &[1, -1]), &ints(DType::I8, &[1, 1])).unwrap_err();
        assert_eq!(message, "element 1 is -1, not 1");
        assert!(compare(&ints(DType::I8, &[1]), &ints(DType::U8, &[1])).is_err());
        assert!(compare(&ints(DType::I8, &[1]), &ints(DType::I8, &[1, 1])).is_err());
        let bytes = |byte: u8| Tensor::new(DType::F8E5M2, vec![1], vec![byte].into()).unwrap();
        assert!(compare(&bytes(3), &bytes(3)).is_ok());
        assert_eq!(compare(&bytes(3), &bytes(4)).unwrap_err(), "byte 0 is 0x3, not 0x4");
    }
}
