use crate::{
    graph::Graph,
    testing::{assert_close, evaluate, floats, ints},
};
use divi_onnx::{Attr, DType, Tensor};
use std::slice::from_ref;

fn unary(op: &str, attributes: &[(&str, Attr)], values: &[f64]) -> Vec<f64> {
    let shape = [values.len() as i64];
    let outputs = evaluate(op, &[floats(&shape, values)], &[], attributes, &[(DType::F32, &shape)]);
    outputs.unwrap()[0].floats().unwrap()
}

#[test]
fn unary_functions() {
    type Reference = fn(f64) -> f64;
    let cases: &[(&str, Reference)] = &[
        ("Abs", f64::abs),
        ("Acos", f64::acos),
        ("Acosh", f64::acosh),
        ("Asin", f64::asin),
        ("Asinh", f64::asinh),
        ("Atan", f64::atan),
        ("Atanh", f64::atanh),
        ("Ceil", f64::ceil),
        ("Cos", f64::cos),
        ("Cosh", f64::cosh),
        ("Exp", f64::exp),
        ("Floor", f64::floor),
        ("Log", f64::ln),
        ("Neg", |x| -x),
        ("Reciprocal", |x| 1.0 / x),
        ("Round", f64::round_ties_even),
        ("Sign", |x| if x == 0.0 || x.is_nan() { x } else { x.signum() }),
        ("Sin", f64::sin),
        ("Sinh", f64::sinh),
        ("Sqrt", f64::sqrt),
        ("Tan", f64::tan),
        ("Tanh", f64::tanh),
        ("Relu", |x| if x < 0.0 { 0.0 } else { x }),
        ("LeakyRelu", |x| if x < 0.0 { 0.01 * x } else { x }),
        ("ThresholdedRelu", |x| if x > 1.0 { x } else { 0.0 }),
        ("Elu", |x| if x < 0.0 { x.exp_m1() } else { x }),
        ("Celu", |x| if x < 0.0 { x.exp_m1() } else { x }),
        ("Selu", |x| 1.050_701 * if x < 0.0 { 1.673_263_2 * x.exp_m1() } else { x }),
        ("Sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
        ("HardSigmoid", |x| if x.is_nan() { x } else { (0.2 * x + 0.5).clamp(0.0, 1.0) }),
        ("HardSwish", |x| if x.is_nan() { x } else { x * (x / 6.0 + 0.5).clamp(0.0, 1.0) }),
        ("Softplus", |x| if x.is_nan() { x } else { x.max(0.0) + (-x.abs()).exp().ln_1p() }),
        ("Softsign", |x| x / (1.0 + x.abs())),
        ("Mish", |x| x * x.exp().ln_1p().tanh()),
        ("Swish", |x| x / (1.0 + (-x).exp())),
        ("Shrink", |x| if x.abs() > 0.5 { x } else { 0.0 }),
    ];
    let values = [-30.0, -2.5, -1.5, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 30.0, f64::NAN];
    for (op, reference) in cases {
        let found = unary(op, &[], &values);
        let expected: Vec<_> = values.iter().map(|&x| reference(x)).collect();
        assert_close(&found, &expected, 2e-6);
    }
}

/// The result never exceeds 1, so that Acos and Asin of it are defined, and is exactly 1 where the function rounds to 1.
#[test]
fn tanh_saturates_at_one() {
    let values: Vec<f64> =
        (0..2000).map(|i| f64::from(7.0 + 0.0015 * i as f32)).chain([20.0, 1e30, f64::INFINITY]).collect();
    for (x, found) in values.iter().zip(unary("Tanh", &[], &values)) {
        assert!(found <= 1.0 && (found - x.tanh()).abs() <= 3e-7, "tanh({x}) is {found:e}");
        assert!(*x < 9.5 || found == 1.0, "tanh({x}) is {found:e}");
    }
    assert_eq!(unary("Tanh", &[], &[-9.5, f64::NEG_INFINITY]), [-1.0, -1.0]);
}

/// Functions without the C library, as on GPUs, agree with Rust's standard library.
#[test]
fn functions_without_a_library() {
    type Reference = fn(f64) -> f64;
    let cases: &[(&str, f64, Reference)] = &[
        ("Acos", 1.0, f64::acos),
        ("Acosh", 1e12, f64::acosh),
        ("Asin", 1.0, f64::asin),
        ("Asinh", 1e12, f64::asinh),
        ("Atan", 1e20, f64::atan),
        ("Atanh", 1.0, |x| x.abs().atanh().copysign(x)),
        ("Cos", 1e7, f64::cos),
        ("Cosh", 800.0, f64::cosh),
        ("Exp", 800.0, f64::exp),
        ("Log", 1e300, f64::ln),
        ("Sin", 1e7, f64::sin),
        ("Sinh", 800.0, f64::sinh),
        ("Softplus", 800.0, |x| if x.is_nan() { x } else { x.max(0.0) + (-x.abs()).exp().ln_1p() }),
        ("Tan", 1e7, f64::tan),
        ("Tanh", 800.0, f64::tanh),
    ];
    for &(op, largest, reference) in cases {
        // Geometrically spaced magnitudes, and numbers near 1.
        let geometric = (0..150).map(|i| largest * 0.8_f64.powi(i));
        let near_one = (0..60).map(|i| largest.min(1.0) - 0.5_f64.powi(i));
        let mut values: Vec<f64> = geometric.chain(near_one).flat_map(|x| [x, -x]).collect();
        values.extend([0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE / 8.0]);
        for (dtype, tolerance) in [(DType::F64, 4e-14), (DType::F32, 3e-7)] {
            let round = |x: f64| if dtype == DType::F32 { f64::from(x as f32) } else { x };
            let values: Vec<f64> = values.iter().map(|&x| round(x)).collect();
            let found = without_library(op, dtype, &[&values]);
            for (&x, found) in values.iter().zip(found) {
                let expected = round(reference(x));
                let is_same = found == expected || found.is_nan() && expected.is_nan();
                let is_close = (found - expected).abs() <= tolerance * expected.abs().max(f64::MIN_POSITIVE);
                assert!(is_same || is_close, "{op}({x:e}) of {dtype:?} is {found:e}, not {expected:e}");
            }
        }
    }
    let values = [-3.5, -1.0, -0.1, 0.0, 0.5, 1.0, 2.9, 3.1, 5.0];
    let erf = [
        -0.999_999_256_901_627_7,
        -0.842_700_792_949_714_9,
        -0.112_462_916_018_284_9,
        0.0,
        0.520_499_877_813_046_5,
        0.842_700_792_949_714_9,
        0.999_958_902_121_900_5,
        0.999_988_351_342_632_8,
        0.999_999_999_998_462_5,
    ];
    assert_close(&without_library("Erf", DType::F64, &[&values]), &erf, 1e-14);
    let (bases, exponents) = ([2.0, -2.0, -2.0, 0.0, 9.0, 1.0], [0.5, 3.0, 0.5, 2.0, 0.0, f64::NAN]);
    let powers = without_library("Pow", DType::F64, &[&bases, &exponents]);
    assert_close(&powers, &[2_f64.sqrt(), -8.0, f64::NAN, 0.0, 1.0, 1.0], 1e-15);
}

fn without_library(op: &str, dtype: DType, operands: &[&[f64]]) -> Vec<f64> {
    let shape = [operands[0].len() as i64];
    let mut graph = Graph::default();
    let inputs: Vec<_> = operands.iter().map(|_| graph.input(dtype, &shape)).collect();
    let output = graph.apply(op, &inputs, &[], dtype, &shape);
    graph.outputs = vec![output];
    let tensor = |values: &&[f64]| {
        let bytes: Vec<u8> = match dtype {
            DType::F32 => values.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        Tensor::new(dtype, shape.to_vec(), bytes.into()).unwrap()
    };
    let inputs: Vec<Tensor> = operands.iter().map(tensor).collect();
    graph.run_without_library(&inputs).unwrap()[0].floats().unwrap()
}

#[test]
fn error_functions() {
    let values = [-3.0, -1.0, 0.0, 0.5, 1.0, 3.0];
    let erf = [-0.999_977_909_5, -0.842_700_792_9, 0.0, 0.520_499_877_8, 0.842_700_792_9, 0.999_977_909_5];
    assert_close(&unary("Erf", &[], &values), &erf, 1e-6);
    let gelu = [-0.004_049_694, -0.158_655_254, 0.0, 0.345_731_23, 0.841_344_746, 2.995_950_306];
    assert_close(&unary("Gelu", &[], &values), &gelu, 1e-6);
    let tanh = Attr::Str("tanh".into());
    let gelu = [-0.003_637_392, -0.158_808_009, 0.0, 0.345_714_003, 0.841_191_991, 2.996_362_608];
    assert_close(&unary("Gelu", &[("approximate", tanh)], &values), &gelu, 1e-6);
}

#[test]
fn integers_wrap_and_divide() {
    let case = |op: &str, dtype, x: &[i64], y: &[i64], attributes: &[(&str, Attr)]| {
        let shape = [x.len() as i64];
        let inputs = [ints(dtype, &shape, x), ints(dtype, &shape, y)];
        evaluate(op, &inputs, &[], attributes, &[(dtype, &shape)]).map(|outputs| outputs[0].ints().unwrap())
    };
    assert_eq!(case("Add", DType::I8, &[127, 1], &[1, 2], &[]).unwrap(), [-128, 3]);
    assert_eq!(case("Div", DType::I8, &[-128, -7, 7], &[-1, 2, -2], &[]).unwrap(), [-128, -3, -3]);
    assert_eq!(case("Div", DType::U8, &[200, 255], &[3, 255], &[]).unwrap(), [66, 1]);
    assert_eq!(case("Div", DType::I32, &[1, 1], &[1, 0], &[]).unwrap_err(), "status 2");
    assert_eq!(case("Mod", DType::I32, &[-4, 7, 5, 4], &[2, -3, 8, -1], &[]).unwrap(), [0, -2, 5, 0]);
    let fmod = [("fmod", Attr::Int(1))];
    assert_eq!(case("Mod", DType::I64, &[-4, 7, -5], &[3, -3, 8], &fmod).unwrap(), [-1, 1, -5]);
    assert_eq!(case("Pow", DType::I32, &[2, -3, 7, 0, -1], &[10, 3, 0, 0, -3], &[]).unwrap(), [1024, -27, 1, 1, -1]);
    assert_eq!(case("Max", DType::U8, &[200, 1], &[100, 2], &[]).unwrap(), [200, 2]);
    assert_eq!(case("Min", DType::I8, &[-56, 1], &[100, 2], &[]).unwrap(), [-56, 1]);
    let left = [("direction", Attr::Str("LEFT".into()))];
    assert_eq!(case("BitShift", DType::U8, &[255, 1], &[1, 9], &left).unwrap(), [254, 0]);
    let right = [("direction", Attr::Str("RIGHT".into()))];
    assert_eq!(case("BitShift", DType::U16, &[0xffff, 4], &[8, 1], &right).unwrap(), [255, 2]);
    assert_eq!(case("BitShift", DType::I8, &[-8, -8, 9, 8], &[1, 9, -1, 2], &right).unwrap(), [-4, -1, 0, 2]);
    assert_eq!(case("BitwiseXor", DType::U4, &[15, 1, 2], &[1, 1, 9], &[]).unwrap(), [14, 0, 11]);
    assert_eq!(case("PRelu", DType::I32, &[-2, 3], &[4, 4], &[]).unwrap(), [-8, 3]);
}

#[test]
fn operands_are_broadcast() {
    let x = floats(&[2, 1, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = floats(&[2, 1], &[10.0, 20.0]);
    let shape = [2, 2, 3];
    let sum = [11.0, 12.0, 13.0, 21.0, 22.0, 23.0, 14.0, 15.0, 16.0, 24.0, 25.0, 26.0];
    let result = [(DType::F32, &shape[..])];
    let outputs = evaluate("Add", &[x.clone(), y.clone()], &[], &[], &result).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), sum);
    let outputs = evaluate("Mean", &[x.clone(), y.clone(), floats(&[], &[3.0])], &[], &[], &result).unwrap();
    let mean: Vec<_> = sum.iter().map(|sum| (sum + 3.0) / 3.0).collect();
    assert_close(&outputs[0].floats().unwrap(), &mean, 1e-6);
    let condition = ints(DType::Bool, &[3], &[1, 0, 1]);
    let outputs = evaluate("Where", &[condition, x, y], &[], &[], &result).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), [1.0, 10.0, 3.0, 1.0, 20.0, 3.0, 4.0, 10.0, 6.0, 4.0, 20.0, 6.0]);
}

#[test]
fn comparisons_respect_signs_and_nan() {
    let result = [(DType::Bool, &[3][..])];
    let case = |op: &str, x: Tensor, y: Tensor| evaluate(op, &[x, y], &[], &[], &result).unwrap()[0].ints().unwrap();
    let (x, y) = (ints(DType::U8, &[3], &[200, 1, 5]), ints(DType::U8, &[3], &[100, 1, 6]));
    assert_eq!(case("Greater", x.clone(), y.clone()), [1, 0, 0]);
    assert_eq!(case("LessOrEqual", x, y), [0, 1, 1]);
    let (x, y) = (floats(&[3], &[f64::NAN, -0.0, 1.0]), floats(&[3], &[f64::NAN, 0.0, 2.0]));
    assert_eq!(case("Equal", x.clone(), y.clone()), [0, 1, 0]);
    assert_eq!(case("GreaterOrEqual", x, y), [0, 1, 0]);
    let (x, y) = (ints(DType::Bool, &[3], &[1, 0, 1]), ints(DType::Bool, &[3], &[1, 1, 0]));
    assert_eq!(case("Xor", x.clone(), y.clone()), [0, 1, 1]);
    assert_eq!(case("Equal", x, y), [1, 0, 0]);
    let x = floats(&[3], &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    let flags = [("detect_negative", Attr::Int(0))];
    let outputs = evaluate("IsInf", from_ref(&x), &[], &flags, &result).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [1, 0, 0]);
    assert_eq!(evaluate("IsNaN", &[x], &[], &[], &result).unwrap()[0].ints().unwrap(), [0, 0, 1]);
}

#[test]
fn powers_of_mixed_types() {
    let case = |x: Tensor, y: Tensor, known: bool| {
        let result = [(x.dtype(), &[3][..])];
        let (inputs, constants) = if known { (vec![x], vec![y]) } else { (vec![x, y], vec![]) };
        evaluate("Pow", &inputs, &constants, &[], &result).unwrap()[0].clone()
    };
    let base = floats(&[3], &[2.0, -3.0, 0.5]);
    for known in [false, true] {
        for (exponent, expected) in
            [(2.0, [4.0, 9.0, 0.25]), (3.0, [8.0, -27.0, 0.125]), (-1.0, [0.5, -1.0 / 3.0, 2.0])]
        {
            let found = case(base.clone(), floats(&[], &[exponent]), known).floats().unwrap();
            assert_close(&found, &expected, 1e-6);
            let found = case(base.clone(), ints(DType::I64, &[1], &[exponent as i64]), known).floats().unwrap();
            assert_close(&found, &expected, 1e-6);
        }
    }
    let roots = case(ints(DType::I32, &[3], &[4, 9, 10]), floats(&[1], &[0.5]), false);
    assert_eq!(roots.ints().unwrap(), [2, 3, 3]);
}

#[test]
fn bounds_of_clip_are_optional() {
    let x = floats(&[5], &[-2.0, -0.5, 0.0, 7.0, f64::NAN]);
    let result = [(DType::F32, &[5][..])];
    let bounds = [floats(&[], &[-1.0]), floats(&[1], &[1.0])];
    let outputs = evaluate("Clip", &[x.clone(), bounds[0].clone(), bounds[1].clone()], &[], &[], &result).unwrap();
    assert_close(&outputs[0].floats().unwrap(), &[-1.0, -0.5, 0.0, 1.0, f64::NAN], 0.0);
    let outputs = evaluate("Clip", &[x], &bounds[..1], &[], &result).unwrap();
    assert_close(&outputs[0].floats().unwrap(), &[-1.0, -0.5, 0.0, 7.0, f64::NAN], 0.0);
}

#[test]
fn casts_between_all_types() {
    let dtypes = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::I4,
        DType::U4,
        DType::Bool,
    ];
    let make = |dtype: DType, values: &[i64]| {
        let numbers: Vec<_> = values.iter().map(|&value| value as f64).collect();
        Tensor::from_floats(dtype, vec![3], &numbers).unwrap_or_else(|| ints(dtype, &[3], values))
    };
    // One graph for all pairs of types, to save compile time.
    let mut graph = Graph::default();
    let inputs: Vec<_> = dtypes.iter().map(|&dtype| make(dtype, &[0, 1, 7])).collect();
    let mut pairs = vec![];
    for from in dtypes {
        let x = graph.input(from, &[3]);
        for to in dtypes {
            let y = graph.apply("Cast", &[x], &[], to, &[3]);
            graph.outputs.push(y);
            pairs.push((from, to));
        }
    }
    for cpu in ["native", "x86-64-v3"] {
        for (output, (from, to)) in graph.run(cpu, &inputs).unwrap().iter().zip(&pairs) {
            let expected = make(*to, if *from == DType::Bool { &[0, 1, 1] } else { &[0, 1, 7] });
            assert_eq!(output.ints(), expected.ints(), "{from} to {to}");
            assert_eq!(output.floats(), expected.floats(), "{from} to {to}");
        }
    }
}

#[test]
fn casts_truncate_wrap_and_round_once() {
    let case = |x: Tensor, to| evaluate("Cast", from_ref(&x), &[], &[], &[(to, x.dims())]).unwrap()[0].clone();
    let x = floats(&[4], &[-2.7, 2.7, 300.5, -0.5]);
    assert_eq!(case(x.clone(), DType::I32).ints().unwrap(), [-2, 2, 300, 0]);
    assert_eq!(case(x.clone(), DType::U8).ints().unwrap(), [254, 2, 44, 0]);
    assert_eq!(case(x, DType::Bool).ints().unwrap(), [1, 1, 1, 1]);
    // Numbers out of range, as NumPy and ONNX Runtime convert them.
    let x = floats(&[5], &[f64::NAN, f64::INFINITY, -1e30, 3e9, -300.0]);
    let least = i64::from(i32::MIN);
    assert_eq!(case(x.clone(), DType::I32).ints().unwrap(), [least, least, least, least, -300]);
    assert_eq!(case(x.clone(), DType::I64).ints().unwrap(), [i64::MIN, i64::MIN, i64::MIN, 3_000_000_000, -300]);
    assert_eq!(case(x.clone(), DType::U32).ints().unwrap(), [-least, 0, -least, 3_000_000_000, 4_294_966_996]);
    assert_eq!(case(x.clone(), DType::I8).ints().unwrap(), [0, 0, 0, 0, -44]);
    let unsigned = case(x, DType::U64);
    let words: Vec<_> = unsigned.bytes().chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words, [1 << 63, 0, 1 << 63, 3_000_000_000, -300_i64 as u64]);
    let half = Tensor::from_floats(DType::F16, vec![2], &[f64::NAN, f64::INFINITY]).unwrap();
    assert_eq!(case(half, DType::U32).ints().unwrap(), [0, 0]);
    let x = ints(DType::U32, &[2], &[4_000_000_000, 255]);
    assert_eq!(case(x.clone(), DType::F64).floats().unwrap(), [4e9, 255.0]);
    assert_eq!(case(x.clone(), DType::I64).ints().unwrap(), [4_000_000_000, 255]);
    assert_eq!(case(x, DType::I8).ints().unwrap(), [0, -1]);
    let numbers = [1.0 + 2f64.powi(-11) + 2f64.powi(-40), 1e300, -f64::NAN, 0.1];
    let x = Tensor::from_floats(DType::F64, vec![4], &numbers).unwrap();
    for to in [DType::F16, DType::BF16] {
        let expected = Tensor::from_floats(to, vec![4], &numbers).unwrap().floats().unwrap();
        assert_close(&case(x.clone(), to).floats().unwrap(), &expected, 0.0);
    }
}

#[test]
fn small_floats_are_rounded_and_saturate() {
    let values = [0.0, -0.0, 1.0, -1.75, 0.001_953_125, 0.3, 448.0, 460.0, 1e6, -1e6, f64::NAN];
    let count = values.len() as i64;
    let bytes = |to, saturate| {
        let attributes = [("saturate", Attr::Int(saturate))];
        let outputs = evaluate("Cast", &[floats(&[count], &values)], &[], &attributes, &[(to, &[count])]);
        outputs.unwrap()[0].clone()
    };
    let back = |x: Tensor| evaluate("Cast", &[x], &[], &[], &[(DType::F32, &[count])]).unwrap()[0].floats().unwrap();
    let small = bytes(DType::F8E4M3FN, 1);
    assert_eq!(small.bytes()[..], [0, 0x80, 0x38, 0xbe, 1, 0x2a, 0x7e, 0x7e, 0x7e, 0xfe, 0x7f]);
    let expected = [0.0, -0.0, 1.0, -1.75, 0.001_953_125, 0.3125, 448.0, 448.0, 448.0, -448.0, f64::NAN];
    assert_close(&back(small), &expected, 0.0);
    let small = bytes(DType::F8E5M2, 0);
    let infinity = f64::INFINITY;
    let expected = [0.0, -0.0, 1.0, -1.75, 0.001_953_125, 0.3125, 448.0, 448.0, infinity, -infinity, f64::NAN];
    assert_close(&back(small), &expected, 0.0);
    let expected = [0.0, 0.0, 1.0, -1.75, 0.001_953_125, 0.3125, 240.0, 240.0, 240.0, -240.0, f64::NAN];
    assert_close(&back(bytes(DType::F8E4M3FNUZ, 1)), &expected, 0.0);
    let expected = [0.0, -0.0, 1.0, -2.0, 0.0, 0.5, 6.0, 6.0, 6.0, -6.0];
    assert_close(&back(bytes(DType::F4E2M1, 1))[..10], &expected, 0.0);
    let powers = [0.001_953_125, 0.3, 1.0, 3.0, f64::NAN];
    let outputs = evaluate("Cast", &[floats(&[5], &powers)], &[], &[], &[(DType::F8E8M0, &[5])]).unwrap();
    assert_eq!(outputs[0].bytes()[..], [118, 126, 127, 129, 255]);
    // The smallest power, 2^-127, is subnormal in `f32`.
    let smallest = 2f64.powi(-127);
    let powers = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0].map(|factor| factor * smallest);
    for (mode, expected) in [("nearest", [0, 0, 1, 1, 1, 2]), ("up", [0, 1, 1, 1, 2, 2]), ("down", [0, 0, 0, 1, 1, 1])]
    {
        let mode = [("round_mode", Attr::Str(mode.into()))];
        let outputs = evaluate("Cast", &[floats(&[6], &powers)], &[], &mode, &[(DType::F8E8M0, &[6])]).unwrap();
        assert_eq!(outputs[0].bytes()[..], expected, "{mode:?}");
    }
}

#[test]
fn dropout_keeps_everything() {
    let x = floats(&[2], &[1.0, 2.0]);
    let results = [(DType::F32, &[2][..]), (DType::Bool, &[2][..])];
    let outputs = evaluate("Dropout", from_ref(&x), &[floats(&[], &[0.5])], &[], &results).unwrap();
    assert_eq!(outputs[0], x);
    assert_eq!(outputs[1].ints().unwrap(), [1, 1]);
    let training = ints(DType::Bool, &[], &[1]);
    let error = evaluate("Dropout", &[x], &[floats(&[], &[0.5]), training], &[], &results).unwrap_err();
    assert!(error.contains("random"), "{error}");
}

/// Fused nodes round separately: contraction of a multiplication with the next node's addition would change the last bit.
#[test]
fn fused_nodes_are_not_contracted() {
    let count = 4096;
    let noise = |seed: u64| -> Vec<f32> {
        let next =
            |i: u64| (i.wrapping_mul(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / 16_777_216.0 - 0.5;
        (1..=count as u64).map(next).collect()
    };
    let (a, b, c) = (noise(3), noise(5), noise(7));
    let tensor = |values: &[f32]| floats(&[count], &values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>());
    type Reference = fn(f32, f32, f32) -> f32;
    let cases: [(&str, Reference); 3] =
        [("Add", |a, b, c| a * b + c), ("Sub", |a, b, c| a * b - c), ("Sum", |a, b, c| a * b + c)];
    for (op, reference) in cases {
        let mut graph = Graph::default();
        let inputs = [(); 3].map(|()| graph.input(DType::F32, &[count]));
        let product = graph.apply("Mul", &inputs[..2], &[], DType::F32, &[count]);
        let sum = graph.apply(op, &[product, inputs[2]], &[], DType::F32, &[count]);
        graph.outputs = vec![graph.apply("Relu", &[sum], &[], DType::F32, &[count])];
        for cpu in ["native", "x86-64-v3"] {
            let outputs = graph.run(cpu, &[tensor(&a), tensor(&b), tensor(&c)]).unwrap();
            let expected: Vec<_> =
                (0..count as usize).map(|i| f64::from(reference(a[i], b[i], c[i]).max(0.0))).collect();
            assert_eq!(outputs[0].floats().unwrap(), expected, "{op} for {cpu}");
        }
    }
}
