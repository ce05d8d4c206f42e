//! Tests of properties common to all operators.

use super::testing::{N, floats, ints, partial};
use crate::{
    Attr, Attributes, DType, Dim, Node, Op, Tensor, TensorType, Value, infer::testing::Case, node::KnownElements,
};

/// Folds a node and returns its result as an operand for the next.
fn value(op: &str, inputs: &[&Value], attributes: &[(&str, i64)], ty: TensorType) -> Value {
    let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
    let attributes: Attributes = attributes.iter().map(|&(name, value)| (name, Attr::Int(value))).collect();
    let op = Op::from_name(op).unwrap();
    let node = Node { op, inputs: &inputs, attributes: &attributes, outputs: 1 };
    let content = super::fold(&node, std::slice::from_ref(&ty)).into_iter().next().flatten();
    Value { ty, content }
}

#[test]
fn shape_arithmetic_preserves_symbolic_batch() {
    let list = |size: i64| TensorType::new(DType::I64, vec![Dim::Known(size)]);
    let image = Value::new(TensorType::new(DType::F32, vec![N, 3.into(), 8.into(), 8.into()]));
    let shape = value("Shape", &[&image], &[], list(4));
    let zero = Value::constant(Tensor::scalar_i64(0));
    let batch = value("Gather", &[&shape, &zero], &[], TensorType::scalar(DType::I64));
    let axes = Value::constant(Tensor::from_shape(&[0]));
    let batch = value("Unsqueeze", &[&batch, &axes], &[], list(1));
    let rest = Value::constant(Tensor::from_shape(&[-1]));
    let target = value("Concat", &[&batch, &rest], &[("axis", 0)], list(2));
    assert_eq!(target.content, Some(KnownElements::Partial(vec![N, (-1).into()])));
}

#[test]
fn unknown_operands_allocate_nothing() {
    let case = Case::new("Add").input("float[2]").input("float[2]");
    let folded = case.all_folded_as(&[TensorType::unranked(DType::F32)]);
    assert_eq!(folded.capacity(), 0);
    let case = Case::new("Conv").input("float[1x1x2x2]").constant(floats(&[1, 1, 1, 1], &[1.0]));
    assert_eq!(case.all_folded_as(&[TensorType::unranked(DType::F32)]).capacity(), 0);
}

#[test]
fn results_that_do_not_match_their_type_are_dropped() {
    Case::new("Neg").shape_input(&[1, 2]).folds_to_nothing("int64[3]");
    Case::new("Neg").shape_input(&[1, 2]).folds_to_nothing("int32[2]");
    Case::new("Identity").value(partial(&[N, 3.into()])).folds_to_nothing("int64[*]");
    Case::new("Identity").value(partial(&[N, 3.into()])).folds_to_nothing("int64[3]");
    Case::new("Identity").value(partial(&[N, 3.into()])).folds_to_partial("int64[?]", &[N, 3.into()]);
}

#[test]
fn large_results_are_not_computed() {
    let large = Tensor::new(DType::I64, vec![300, 300], vec![0; 300 * 300 * 8].into()).unwrap();
    for op in ["Add", "Mul", "Max", "Equal"] {
        Case::new(op).constant(large.clone()).constant(ints(&[], &[1])).folds_to_nothing("int64[*]");
    }
    for op in ["Neg", "Transpose", "NonZero", "ReduceSum", "Identity", "ArgMax"] {
        Case::new(op).constant(large.clone()).folds_to_nothing("int64[*]");
    }
}

/// Small and extreme numbers; the extreme ones overflow unchecked arithmetic.
const HOSTILE: &[i64] = &[0, 1, -1, 2, -2, 3, 1 << 62, i64::MIN, i64::MAX, 65_536];

fn hostile_values() -> Vec<Value> {
    let mut values = vec![
        Value::constant(ints(&[2, 3], &[1, 2, 3, 4, 5, 6])),
        Value::constant(ints(&[0, 1 << 62, 1 << 62], &[])),
        Value::constant(ints(&[0], &[])),
        Value::constant(floats(&[2, 2], &[f64::NAN, f64::INFINITY, -0.0, 1e38])),
        Value::constant(Tensor::from_ints(DType::Bool, vec![2], &[1, 0]).unwrap()),
        Value::constant(Tensor::from_ints(DType::I4, vec![3], &[1, -8, 7]).unwrap()),
        Value::constant(Tensor::from_ints(DType::U64, vec![2], &[-1, 1]).unwrap()),
        Value::constant(Tensor::from_ints(DType::I32, vec![3], &[0, -1, 9]).unwrap()),
        Value::new(TensorType::new(DType::I64, vec![Dim::Known(i64::MAX)])),
        Value::new(TensorType::new(DType::I64, vec![Dim::Known(-3), Dim::Known(1 << 62)])),
        Value::new(TensorType::unranked(DType::I64)),
        partial(&[N, 3.into(), Dim::Unknown]),
        Value { ty: TensorType::scalar(DType::I64), content: Some(KnownElements::Partial(vec![N, N])) },
        Value { ty: TensorType::unranked(DType::F32), content: Some(KnownElements::Partial(vec![])) },
        Value { ty: TensorType::new(DType::I64, vec![Dim::Unknown]), content: Some(KnownElements::Partial(vec![])) },
    ];
    values.extend(HOSTILE.iter().map(|&value| Value::constant(Tensor::scalar_i64(value))));
    values.extend(HOSTILE.iter().map(|&value| Value::constant(Tensor::from_shape(&[value, 1]))));
    values
}

/// Folds every operator on random combinations of operands and attributes, which must not panic.
#[test]
fn hostile_nodes_do_not_panic() {
    let values = hostile_values();
    let names = ["axis", "to", "k", "batch_dims", "num_outputs", "start", "end", "dtype", "keepdims", "fmod", "upper"];
    let types = [TensorType::unranked(DType::I64), TensorType::new(DType::I64, vec![Dim::Unknown])];
    // Linear congruential generator with a fixed seed, so that failures are reproducible.
    let mut state = 1u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for &op in Op::all().iter().filter(|op| op.fold_rule().is_some()) {
        for _ in 0..2_000 {
            let inputs: Vec<_> = (0..next(6)).map(|_| (next(8) > 0).then(|| &values[next(values.len())])).collect();
            let mut attributes = Attributes::default();
            for name in names {
                if next(4) == 0 {
                    attributes.push(name, Attr::Int(HOSTILE[next(HOSTILE.len())]));
                }
            }
            if next(2) == 0 {
                attributes.push("perm", Attr::Ints(vec![HOSTILE[next(HOSTILE.len())]; next(4)]));
                attributes.push("direction", Attr::Str("LEFT".into()));
                attributes.push("reduction", Attr::Str("mul".into()));
            }
            let node = Node { op, inputs: &inputs, attributes: &attributes, outputs: 1 };
            super::fold(&node, &types[..next(3)]);
        }
    }
}
