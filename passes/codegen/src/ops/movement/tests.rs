use crate::testing::{evaluate, floats, ints};
use divi_onnx::{Attr, DType, Tensor};
use std::slice::from_ref;

fn list(values: &[i64]) -> Tensor {
    Tensor::from_shape(values)
}

/// Applies an operator to integers as `int32` and, if they fit, as `uint4`; asserts that the results agree, and returns them.
fn moved(op: &str, x: (&[i64], &[i64]), constants: &[Tensor], attributes: &[(&str, Attr)], shape: &[i64]) -> Vec<i64> {
    let run = |dtype| {
        let x = ints(dtype, x.0, x.1);
        evaluate(op, &[x], constants, attributes, &[(dtype, shape)]).unwrap()[0].ints().unwrap()
    };
    let found = run(DType::I32);
    if x.1.iter().all(|value| (0..16).contains(value)) {
        assert_eq!(run(DType::U4), found, "{op}");
    }
    found
}

fn count(to: i64) -> Vec<i64> {
    (0..to).collect()
}

#[test]
fn transposes_of_any_rank() {
    let cases: &[(&[i64], &[i64])] = &[
        (&[2, 3], &[1, 0]),
        (&[40, 35], &[1, 0]),
        (&[2, 19, 3, 20], &[0, 3, 1, 2]),
        (&[2, 3, 17, 4], &[2, 0, 3, 1]),
        (&[1, 5, 1], &[2, 1, 0]),
        (&[3, 4, 5], &[1, 0, 2]),
        (&[], &[]),
        (&[2, 0, 3], &[2, 1, 0]),
    ];
    for (shape, order) in cases {
        let from = crate::graph::strides(shape);
        let result: Vec<_> = order.iter().map(|&axis| shape[axis as usize]).collect();
        let total: i64 = shape.iter().product();
        let to = crate::graph::strides(&result);
        let source = |i: i64| -> i64 {
            let place = |axis: usize| i / to[axis] % result[axis];
            order.iter().enumerate().map(|(axis, &old)| place(axis) * from[old as usize]).sum()
        };
        let expected: Vec<_> = (0..total).map(source).collect();
        let perm = [("perm", Attr::Ints(order.to_vec()))];
        assert_eq!(moved("Transpose", (shape, &count(total)), &[], &perm, &result), expected, "{shape:?} {order:?}");
    }
    let found = moved("Transpose", (&[2, 3], &count(6)), &[], &[], &[3, 2]);
    assert_eq!(found, [0, 3, 1, 4, 2, 5]);
}

#[test]
fn blocks_and_depth() {
    let block = ("blocksize", Attr::Int(2));
    let x = (&[1, 8, 1, 2][..], &count(16)[..]);
    let found = moved("DepthToSpace", x, &[], from_ref(&block), &[1, 2, 2, 4]);
    assert_eq!(found, [0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15]);
    let crd = ("mode", Attr::Str("CRD".into()));
    let found = moved("DepthToSpace", x, &[], &[block.clone(), crd], &[1, 2, 2, 4]);
    assert_eq!(found, [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15]);
    let found = moved("SpaceToDepth", (&[1, 1, 2, 4], &count(8)), &[], &[block], &[1, 4, 1, 2]);
    assert_eq!(found, [0, 2, 1, 3, 4, 6, 5, 7]);
}

#[test]
fn concatenation_and_slicing() {
    let inputs = [ints(DType::I64, &[2, 1], &[1, 2]), ints(DType::I64, &[2, 2], &[3, 4, 5, 6])];
    let axis = [("axis", Attr::Int(1))];
    let outputs = evaluate("Concat", &inputs, &[], &axis, &[(DType::I64, &[2, 3])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [1, 3, 4, 2, 5, 6]);
    // The same with constants, which is computed once at load.
    let outputs = evaluate("Concat", &[], &inputs, &axis, &[(DType::I64, &[2, 3])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [1, 3, 4, 2, 5, 6]);
    let results = [(DType::I64, &[2, 2][..]), (DType::I64, &[2, 1][..])];
    let outputs = evaluate("Split", &outputs[..1], &[], &axis, &results).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [1, 3, 2, 5]);
    assert_eq!(outputs[1].ints().unwrap(), [4, 6]);

    let x = (&[3, 4][..], &count(12)[..]);
    let found = moved("Slice", x, &[list(&[1, 1]), list(&[99, -1])], &[], &[2, 2]);
    assert_eq!(found, [5, 6, 9, 10]);
    let reversed = [list(&[-1]), list(&[i64::MIN]), list(&[1]), list(&[-2])];
    assert_eq!(moved("Slice", x, &reversed, &[], &[3, 2]), [3, 1, 7, 5, 11, 9]);
    let huge = [list(&[1]), list(&[3]), list(&[0]), list(&[i64::MAX])];
    assert_eq!(moved("Slice", x, &huge, &[], &[1, 4]), [4, 5, 6, 7]);
    assert_eq!(moved("Slice", x, &[list(&[0]), list(&[i64::MAX])], &[], &[3, 4]), count(12));

    assert_eq!(
        moved("Expand", (&[2, 1], &[1, 2]), &[list(&[2, 1, 3])], &[], &[2, 2, 3]),
        [1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]
    );
    let found = moved("Tile", (&[2, 2], &count(4)), &[list(&[2, 2])], &[], &[4, 4]);
    assert_eq!(found, [0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3]);
    let condition = ints(DType::Bool, &[3], &[0, 1, 1]);
    assert_eq!(
        moved("Compress", x, from_ref(&condition), &[("axis", Attr::Int(0))], &[2, 4]),
        [4, 5, 6, 7, 8, 9, 10, 11]
    );
    assert_eq!(moved("Compress", x, &[condition], &[], &[2]), [1, 2]);
}

#[test]
fn number_of_selected_elements_is_checked() {
    let x = floats(&[2, 2], &[1.0, 0.0, -2.0, 3.0]);
    let condition = ints(DType::Bool, &[2], &[0, 1]);
    let axis = [("axis", Attr::Int(1))];
    let outputs = evaluate("Compress", &[x.clone(), condition.clone()], &[], &axis, &[(DType::F32, &[2, 1])]).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), [0.0, 3.0]);
    let error = evaluate("Compress", &[x.clone(), condition], &[], &axis, &[(DType::F32, &[2, 2])]).unwrap_err();
    assert_eq!(error, "status 3");
    let outputs = evaluate("NonZero", from_ref(&x), &[], &[], &[(DType::I64, &[2, 3])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [0, 1, 1, 0, 0, 1]);
    assert_eq!(evaluate("NonZero", &[x], &[], &[], &[(DType::I64, &[2, 2])]).unwrap_err(), "status 3");
}

#[test]
fn padding() {
    let x = (&[1, 3][..], &[1, 2, 3][..]);
    let pads = list(&[1, 2, 0, 2]);
    let mode = |mode: &str| [("mode", Attr::Str(mode.into()))];
    let value = ints(DType::I32, &[], &[9]);
    let outputs = evaluate("Pad", &[ints(DType::I32, x.0, x.1)], &[pads.clone(), value], &[], &[(DType::I32, &[2, 7])]);
    assert_eq!(outputs.unwrap()[0].ints().unwrap(), [9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 2, 3, 9, 9]);
    let row = |values: [i64; 7]| [values, values].concat();
    assert_eq!(moved("Pad", x, from_ref(&pads), &mode("edge"), &[2, 7]), row([1, 1, 1, 2, 3, 3, 3]));
    assert_eq!(moved("Pad", x, from_ref(&pads), &mode("reflect"), &[2, 7]), row([3, 2, 1, 2, 3, 2, 1]));
    assert_eq!(moved("Pad", x, &[pads], &mode("wrap"), &[2, 7]), row([2, 3, 1, 2, 3, 1, 2]));
    assert_eq!(moved("Pad", x, &[list(&[0, -1, 0, 1])], &[], &[1, 3]), [2, 3, 0]);
    let x = (&[5, 2][..], &count(10)[..]);
    assert_eq!(moved("CenterCropPad", x, &[list(&[2, 5])], &[], &[2, 5]), [0, 2, 3, 0, 0, 0, 4, 5, 0, 0]);
}

#[test]
fn gathering() {
    let x = floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let case = |op: &str, indices: Tensor, attributes: &[(&str, Attr)], shape: &[i64]| {
        let outputs = evaluate(op, &[x.clone(), indices], &[], attributes, &[(DType::F32, shape)])?;
        Ok::<_, String>(outputs[0].floats().unwrap())
    };
    let axis = |axis| [("axis", Attr::Int(axis))];
    assert_eq!(case("Gather", ints(DType::I32, &[2], &[2, -3]), &[], &[2, 2]).unwrap(), [5.0, 6.0, 1.0, 2.0]);
    assert_eq!(case("Gather", ints(DType::I64, &[], &[1]), &axis(1), &[3]).unwrap(), [2.0, 4.0, 6.0]);
    assert_eq!(case("Gather", ints(DType::I64, &[1], &[3]), &[], &[1, 2]).unwrap_err(), "status 1");
    let places = ints(DType::I64, &[2, 2], &[2, 0, -1, 1]);
    assert_eq!(case("GatherElements", places, &[], &[2, 2]).unwrap(), [5.0, 2.0, 5.0, 4.0]);
    let places = ints(DType::I64, &[3, 1], &[1, 0, -1]);
    assert_eq!(case("GatherElements", places, &axis(1), &[3, 1]).unwrap(), [2.0, 3.0, 6.0]);
    let tuples = ints(DType::I64, &[2, 2], &[0, 1, 2, -2]);
    assert_eq!(case("GatherND", tuples, &[], &[2]).unwrap(), [2.0, 5.0]);
    let tuples = ints(DType::I64, &[2, 1, 1], &[1, 0]);
    assert_eq!(case("GatherND", tuples, &[], &[2, 1, 2]).unwrap(), [3.0, 4.0, 1.0, 2.0]);
    let batched = ints(DType::I64, &[3, 1], &[1, 0, 1]);
    assert_eq!(case("GatherND", batched, &[("batch_dims", Attr::Int(1))], &[3]).unwrap(), [2.0, 3.0, 6.0]);
}

#[test]
fn scattering() {
    let x = floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let case = |op: &str, indices: Tensor, updates: Tensor, attributes: &[(&str, Attr)]| {
        let outputs = evaluate(op, &[x.clone(), indices, updates], &[], attributes, &[(DType::F32, &[3, 2])]);
        outputs.unwrap()[0].floats().unwrap()
    };
    let indices = || ints(DType::I64, &[2, 2], &[0, 2, 0, -1]);
    let updates = || floats(&[2, 2], &[10.0, 20.0, 30.0, 40.0]);
    assert_eq!(case("ScatterElements", indices(), updates(), &[]), [30.0, 2.0, 3.0, 4.0, 5.0, 40.0]);
    let reduction = |name: &str| ("reduction", Attr::Str(name.into()));
    let add = case("ScatterElements", indices(), updates(), &[reduction("add")]);
    assert_eq!(add, [41.0, 2.0, 3.0, 4.0, 5.0, 66.0]);
    // Fewer columns than the data.
    let column = case(
        "ScatterElements",
        ints(DType::I64, &[3, 1], &[1, 1, 0]),
        floats(&[3, 1], &[1.0, 2.0, 4.0]),
        &[reduction("add")],
    );
    assert_eq!(column, [5.0, 2.0, 6.0, 4.0, 5.0, 6.0]);
    let axis = ("axis", Attr::Int(1));
    let indices = ints(DType::I32, &[2, 2], &[1, 1, 0, 1]);
    let max = case("ScatterElements", indices, floats(&[2, 2], &[1.5, 2.5, 0.0, 9.0]), &[axis, reduction("max")]);
    assert_eq!(max, [1.0, 2.5, 3.0, 9.0, 5.0, 6.0]);
    let tuples = ints(DType::I64, &[2, 1], &[1, 1]);
    let rows = floats(&[2, 2], &[2.0, 3.0, 4.0, 5.0]);
    assert_eq!(case("ScatterND", tuples.clone(), rows.clone(), &[]), [1.0, 2.0, 4.0, 5.0, 5.0, 6.0]);
    assert_eq!(case("ScatterND", tuples.clone(), rows.clone(), &[reduction("mul")]), [1.0, 2.0, 24.0, 60.0, 5.0, 6.0]);
    assert_eq!(case("ScatterND", tuples, rows, &[reduction("min")]), [1.0, 2.0, 2.0, 3.0, 5.0, 6.0]);

    let cache = floats(&[2, 3, 1], &[0.0; 6]);
    let update = floats(&[2, 2, 1], &[1.0, 2.0, 3.0, 4.0]);
    let circular = [("mode", Attr::Str("circular".into()))];
    let inputs = [cache, update, ints(DType::I64, &[2], &[1, 2])];
    let outputs = evaluate("TensorScatter", &inputs, &[], &circular, &[(DType::F32, &[2, 3, 1])]).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), [0.0, 1.0, 2.0, 4.0, 0.0, 3.0]);
}

/// Threads split the axes after the first one.
#[test]
fn elements_are_scattered_along_the_first_of_three_axes() {
    let data = ints(DType::I32, &[3, 3, 2], &[0; 18]);
    let indices = ints(DType::I64, &[4, 2, 2], &[0, 1, 2, 0, 0, 1, 2, 1, 0, 1, 2, 2, 1, 1, 0, 0]);
    let updates = ints(DType::I32, &[4, 2, 2], &(1..17).collect::<Vec<_>>());
    let add = [("reduction", Attr::Str("add".into()))];
    let outputs =
        evaluate("ScatterElements", &[data, indices, updates], &[], &add, &[(DType::I32, &[3, 3, 2])]).unwrap();
    let expected = [15, 0, 15, 20, 0, 0, 13, 32, 0, 8, 0, 0, 0, 0, 21, 12, 0, 0];
    assert_eq!(outputs[0].ints().unwrap(), expected);
}

#[test]
fn sequences_are_reversed() {
    let x = floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let lengths = ints(DType::I64, &[2], &[3, 2]);
    let outputs = evaluate("ReverseSequence", &[x.clone(), lengths], &[], &[], &[(DType::F32, &[3, 2])]).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), [5.0, 4.0, 3.0, 2.0, 1.0, 6.0]);
    let axes = [("batch_axis", Attr::Int(0)), ("time_axis", Attr::Int(1))];
    let lengths = ints(DType::I64, &[3], &[1, 2, 0]);
    let outputs = evaluate("ReverseSequence", &[x, lengths], &[], &axes, &[(DType::F32, &[3, 2])]).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), [1.0, 2.0, 4.0, 3.0, 5.0, 6.0]);
}

#[test]
fn generated_tensors() {
    let x = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let result = |dtype| [(dtype, &[2, 3][..])];
    let k = [("k", Attr::Int(1))];
    let outputs = evaluate("EyeLike", from_ref(&x), &[], &k, &result(DType::I32)).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [0, 1, 0, 0, 0, 1]);
    let outputs = evaluate("Trilu", from_ref(&x), &[], &[], &result(DType::F32)).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), [1.0, 2.0, 3.0, 0.0, 5.0, 6.0]);
    let lower = [("upper", Attr::Int(0))];
    let offset = Tensor::scalar_i64(-1);
    let outputs = evaluate("Trilu", &[x.clone(), offset], &[], &lower, &result(DType::F32)).unwrap();
    assert_eq!(outputs[0].floats().unwrap(), [0.0, 0.0, 0.0, 4.0, 0.0, 0.0]);
    let outputs = evaluate("Shape", from_ref(&x), &[], &[("start", Attr::Int(-1))], &[(DType::I64, &[1])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [3]);
    assert_eq!(evaluate("Size", &[x], &[], &[], &[(DType::I64, &[])]).unwrap()[0].ints().unwrap(), [6]);
    let indices = floats(&[2], &[1.0, -1.0]);
    let (depth, values) = (Tensor::scalar_i64(3), floats(&[2], &[2.0, 5.0]));
    let outputs = evaluate("OneHot", &[indices], &[depth, values], &[("axis", Attr::Int(0))], &[(DType::F32, &[3, 2])]);
    assert_eq!(outputs.unwrap()[0].floats().unwrap(), [2.0, 2.0, 5.0, 2.0, 2.0, 5.0]);
    let range = [10, 4, -2].map(|value| ints(DType::I32, &[], &[value]));
    let outputs = evaluate("Range", &range, &[], &[], &[(DType::I32, &[3])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [10, 8, 6]);
    let value = [("value", Attr::Tensor(ints(DType::I16, &[1], &[7])))];
    let outputs = evaluate("ConstantOfShape", &[], &[list(&[2])], &value, &[(DType::I16, &[2])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [7, 7]);
    let matrix = ints(DType::I32, &[2, 2], &[0, 1, 2, 0]);
    let outputs = evaluate("NonZero", &[], &[matrix], &[], &[(DType::I64, &[2, 2])]).unwrap();
    assert_eq!(outputs[0].ints().unwrap(), [0, 1, 1, 0]);
}
