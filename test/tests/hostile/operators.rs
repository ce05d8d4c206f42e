//! Operators with invalid or extreme attributes and operands.

use super::suite::*;
use divi_onnx::{Attr, DType};
use divi_passes::import::proto::AttributeProto;

#[test]
fn attributes() {
    let mut suite = Suite::new("attributes");
    let conv = || Operator::new("Conv").float(&[1, 4, 8, 8]).float(&[4, 4, 3, 3]);
    suite.node("a good Conv", conv(), Imported);
    for (name, attr) in [
        ("strides", Attr::Str("1,1".into())),
        ("strides", Attr::Int(1)),
        ("strides", Attr::Floats(vec![1.0, 1.0])),
        ("strides", Attr::Other),
        ("group", Attr::Ints(vec![1])),
        ("group", Attr::Float(1.0)),
        ("auto_pad", Attr::Int(0)),
        ("auto_pad", Attr::Str("SAME_AS_BEFORE".into())),
        ("no_such_attribute", Attr::Int(1)),
        ("", Attr::Int(1)),
        ("onnx_node_name", Attr::Str("x".into())),
        ("strides", Attr::Ints(vec![])),
        ("strides", Attr::Ints(vec![1; 3])),
        ("strides", Attr::Ints(vec![0, 1])),
        ("strides", Attr::Ints(vec![-1, 1])),
        ("strides", Attr::Ints(vec![i64::MIN, 1])),
        ("dilations", Attr::Ints(vec![0, 1])),
        ("dilations", Attr::Ints(vec![-1, 1])),
        ("dilations", Attr::Ints(vec![HUGE, HUGE])),
        ("pads", Attr::Ints(vec![1])),
        ("pads", Attr::Ints(vec![i64::MAX; 4])),
        ("pads", Attr::Ints(vec![i64::MIN; 4])),
        ("pads", Attr::Ints(vec![-100; 4])),
        ("kernel_shape", Attr::Ints(vec![5, 5])),
        ("kernel_shape", Attr::Ints(vec![HUGE, HUGE])),
        ("group", Attr::Int(0)),
        ("group", Attr::Int(-1)),
        ("group", Attr::Int(3)),
        ("group", Attr::Int(HUGE)),
        ("group", Attr::Int(i64::MIN)),
    ] {
        let what = format!("Conv with {name} = {attr:?}");
        suite.node(&what, conv().attr(name, attr), Refused(&["culprit"]));
    }
    suite.node("Conv with a huge stride", conv().list("strides", &[HUGE, HUGE]), Either);
    suite.node(
        "an attribute twice",
        conv().attr("group", Attr::Int(1)).attr("group", Attr::Int(1)),
        Refused(&["culprit"]),
    );
    let mut bare = conv();
    bare.node.attribute.push(AttributeProto { name: Some("group".into()), r#type: Some(99), ..Default::default() });
    suite.node("an attribute of an unknown kind", bare, Refused(&["culprit"]));
    let mut latin = conv();
    let text = Some(vec![0xff].into());
    latin.node.attribute.push(AttributeProto {
        name: Some("auto_pad".into()),
        r#type: Some(3),
        s: text,
        ..Default::default()
    });
    suite.node("an attribute that is not UTF-8", latin, Refused(&["culprit", "UTF-8"]));
    // Attributes that inference does not use must have the right kind too; otherwise they would be lost.
    for (what, operator) in [
        ("Gemm", Operator::new("Gemm").float(&[2, 3]).float(&[3, 4]).list("alpha", &[1])),
        ("LeakyRelu", Operator::new("LeakyRelu").float(&[2]).attr("alpha", Attr::Int(1))),
        ("Elu", Operator::new("Elu").float(&[2]).attr("alpha", Attr::Str("1".into()))),
        ("LRN", Operator::new("LRN").float(&[1, 2, 3, 3]).attr("size", Attr::Float(3.0))),
        ("Softmax", Operator::new("Softmax").float(&[2, 3]).list("axis", &[1])),
        ("Gelu", Operator::new("Gelu").float(&[2, 3]).attr("approximate", Attr::Int(1))),
        ("Selu", Operator::new("Selu").float(&[2, 3]).attr("gamma", Attr::Ints(vec![1]))),
    ] {
        suite.node(&format!("{what} with an attribute of the wrong kind"), operator, Refused(&["culprit"]));
    }
    for attr in [Attr::Int(99), Attr::Int(0), Attr::Int(-1), Attr::Float(1.0), Attr::Str("float".into())] {
        let what = format!("Cast to {attr:?}");
        suite.node(&what, Operator::new("Cast").float(&[2]).attr("to", attr), Refused(&["culprit"]));
    }
    suite.node("Cast to nothing", Operator::new("Cast").float(&[2]), Refused(&["culprit"]));
    suite.node("Constant of nothing", Operator::new("Constant"), Refused(&["culprit"]));
    suite.node("Constant of a graph", Operator::new("Constant").attr("value", Attr::Int(1)), Refused(&["culprit"]));
    let words = Attr::Strs(vec!["a".into(), "b".into()]);
    suite.node("Constant of strings", Operator::new("Constant").attr("value_strings", words), Imported);
    suite.node("Constant of a string", Operator::new("Constant").attr("value_string", Attr::Str("a".into())), Imported);
    suite.finish();
}

#[test]
fn operands() {
    let mut suite = Suite::new("operands");
    let new = Operator::new;
    let refused: Vec<(&str, Operator)> = vec![
        ("Conv of one operand", new("Conv").float(&[1, 4, 8, 8])),
        ("Conv of five", (0..5).fold(new("Conv"), |op, _| op.float(&[1, 4, 8, 8]))),
        ("Conv without weights", new("Conv").float(&[1, 4, 8, 8]).absent().float(&[4])),
        ("Conv of the wrong rank", new("Conv").float(&[1, 4]).float(&[4, 4, 3, 3])),
        ("Conv of scalars", new("Conv").float(&[]).float(&[])),
        ("Conv of the wrong channels", new("Conv").float(&[1, 3, 8, 8]).float(&[4, 4, 3, 3])),
        ("Conv of a kernel too large", new("Conv").float(&[1, 4, 2, 2]).float(&[4, 4, 3, 3])),
        ("Relu of two", new("Relu").float(&[2]).float(&[2])),
        ("Relu with two results", new("Relu").float(&[2]).results(2)),
        ("Add of shapes that differ", new("Add").float(&[2, 3]).float(&[4, 5])),
        ("Add of types that differ", new("Add").float(&[2]).of(DType::I64, &[2])),
        ("MatMul of shapes that differ", new("MatMul").float(&[2, 3]).float(&[4, 5])),
        ("MatMul of scalars", new("MatMul").float(&[]).float(&[])),
        ("MaxPool without a kernel", new("MaxPool").float(&[1, 1, 4, 4])),
        ("MaxPool with an empty kernel", new("MaxPool").float(&[1, 1, 4, 4]).list("kernel_shape", &[0, 0])),
        ("MaxPool with a negative kernel", new("MaxPool").float(&[1, 1, 4, 4]).list("kernel_shape", &[-1, -1])),
        ("AveragePool with a kernel too large", new("AveragePool").float(&[1, 1, 4, 4]).list("kernel_shape", &[9, 9])),
        ("Reshape to more", new("Reshape").float(&[2, 3]).ints(&[7])),
        ("Reshape to a size that overflows", new("Reshape").float(&[2, 3]).ints(&[HUGE, HUGE])),
        ("Reshape to two unknowns", new("Reshape").float(&[2, 3]).ints(&[-1, -1])),
        ("Reshape to a negative size", new("Reshape").float(&[2, 3]).ints(&[-2, 3])),
        ("Reshape that copies too far", new("Reshape").float(&[6]).ints(&[6, 0])),
        ("Reshape that does not divide", new("Reshape").float(&[2, 3]).ints(&[4, -1])),
        ("Expand to an incompatible shape", new("Expand").float(&[2, 3]).ints(&[4, 5])),
        ("Expand to a negative size", new("Expand").float(&[1]).ints(&[-5])),
        ("ConstantOfShape of a negative size", new("ConstantOfShape").ints(&[-1])),
        ("ConstantOfShape that overflows", new("ConstantOfShape").ints(&[HUGE, HUGE])),
        ("Tile that overflows", new("Tile").float(&[LARGE]).ints(&[LARGE])),
        ("Tile of another rank", new("Tile").float(&[2]).ints(&[2, 2])),
        ("Tile backwards", new("Tile").float(&[2]).ints(&[-1])),
        ("Split into too much", new("Split").float(&[6]).ints(&[4, 4]).results(2)),
        ("Split into a negative size", new("Split").float(&[6]).ints(&[7, -1]).results(2)),
        ("Split into sizes that overflow", new("Split").float(&[6]).ints(&[i64::MAX, i64::MAX]).results(2)),
        ("Split on an invalid axis", new("Split").float(&[6]).ints(&[3, 3]).attr("axis", Attr::Int(1)).results(2)),
        ("Concat on an invalid axis", new("Concat").float(&[2]).float(&[2]).attr("axis", Attr::Int(99))),
        ("Concat without an axis", new("Concat").float(&[2]).float(&[2])),
        ("Concat of nothing", new("Concat").attr("axis", Attr::Int(0))),
        ("Concat of shapes that differ", new("Concat").float(&[2, 3]).float(&[2, 4]).attr("axis", Attr::Int(0))),
        ("Concat that overflows", new("Concat").float(&[i64::MAX]).float(&[i64::MAX]).attr("axis", Attr::Int(0))),
        ("Gather on an invalid axis", new("Gather").float(&[2]).ints(&[0]).attr("axis", Attr::Int(i64::MIN))),
        ("Transpose of another rank", new("Transpose").float(&[2, 3]).list("perm", &[0])),
        ("Transpose of an axis twice", new("Transpose").float(&[2, 3]).list("perm", &[0, 0])),
        ("Transpose of no axis", new("Transpose").float(&[2, 3]).list("perm", &[0, HUGE])),
        ("Squeeze of a dimension other than one", new("Squeeze").float(&[2, 3]).ints(&[0])),
        ("Squeeze on an invalid axis", new("Squeeze").float(&[1, 3]).ints(&[9])),
        ("Unsqueeze of an axis twice", new("Unsqueeze").float(&[2]).ints(&[0, 0])),
        ("Unsqueeze on an invalid axis", new("Unsqueeze").float(&[2]).ints(&[i64::MAX])),
        ("Flatten on an invalid axis", new("Flatten").float(&[2, 3]).attr("axis", Attr::Int(4))),
        ("ReduceSum on an invalid axis", new("ReduceSum").float(&[2]).ints(&[i64::MIN])),
        ("ArgMax on an invalid axis", new("ArgMax").float(&[2]).attr("axis", Attr::Int(5))),
        ("Softmax on an invalid axis", new("Softmax").float(&[2]).attr("axis", Attr::Int(-2))),
        ("Pad of another rank", new("Pad").float(&[2]).ints(&[1, 1, 1])),
        ("Pad that overflows", new("Pad").float(&[2]).ints(&[i64::MAX, i64::MAX])),
        ("Pad to a negative size", new("Pad").float(&[2]).ints(&[-2, -2])),
        ("Slice by zero", new("Slice").float(&[8]).ints(&[0]).ints(&[8]).ints(&[0]).ints(&[0])),
        ("Slice on an invalid axis", new("Slice").float(&[8]).ints(&[0]).ints(&[8]).ints(&[3])),
        ("Relu without results", new("Relu").float(&[2]).results(0)),
        ("MaxPool of two", new("MaxPool").float(&[1, 1, 4, 4]).float(&[2]).list("kernel_shape", &[2, 2])),
        ("MaxPool with an unknown attribute", {
            new("MaxPool").float(&[1, 1, 4, 4]).list("kernel_shape", &[2, 2]).attr("beta", Attr::Int(1))
        }),
        ("TopK of a negative size", new("TopK").float(&[8]).ints(&[-1]).results(2)),
        ("TopK of too many", new("TopK").float(&[8]).ints(&[HUGE]).results(2)),
        ("Range by zero", new("Range").int(0).int(9).int(0)),
        ("DepthToSpace by zero", new("DepthToSpace").float(&[1, 4, 2, 2]).attr("blocksize", Attr::Int(0))),
        ("DepthToSpace that overflows", new("DepthToSpace").float(&[1, 4, 2, 2]).attr("blocksize", Attr::Int(HUGE))),
        (
            "SpaceToDepth by a negative size",
            new("SpaceToDepth").float(&[1, 4, 2, 2]).attr("blocksize", Attr::Int(i64::MIN)),
        ),
        ("Einsum of nonsense", new("Einsum").float(&[2]).attr("equation", Attr::Str("i,,->->".into()))),
        ("Einsum of another rank", new("Einsum").float(&[2]).attr("equation", Attr::Str("ij->i".into()))),
        ("Einsum of sizes that differ", new("Einsum").float(&[2, 3]).attr("equation", Attr::Str("ii->i".into()))),
        ("Gemm of another rank", new("Gemm").float(&[2, 3, 4]).float(&[4, 5])),
        ("Resize to another rank", new("Resize").float(&[1, 1, 4, 4]).absent().floats(&[2.0])),
        ("Resize by a negative scale", new("Resize").float(&[1, 1, 4, 4]).absent().floats(&[1.0, 1.0, -1.0, 1.0])),
        ("Resize by NaN", new("Resize").float(&[1, 1, 4, 4]).absent().floats(&[1.0, 1.0, f32::NAN, 1.0])),
        ("Resize by infinity", new("Resize").float(&[1, 1, 4, 4]).absent().floats(&[1.0, 1.0, f32::INFINITY, 1.0])),
        ("RandomNormal of a negative size", new("RandomNormal").list("shape", &[-1])),
        ("RandomNormal that overflows", new("RandomNormal").list("shape", &[HUGE, HUGE])),
        ("BatchNormalization of channels that differ", {
            (0..4).fold(new("BatchNormalization").float(&[1, 4, 2, 2]), |op, _| op.float(&[3]))
        }),
        ("LayerNormalization on an invalid axis", {
            new("LayerNormalization").float(&[2, 3]).float(&[3]).attr("axis", Attr::Int(7))
        }),
        ("LSTM of a negative size", {
            let lstm = new("LSTM").float(&[5, 1, 3]).float(&[1, 16, 3]).float(&[1, 16, 4]);
            lstm.attr("hidden_size", Attr::Int(-4))
        }),
        ("OneHot of a negative size", new("OneHot").of(DType::I64, &[2]).ints(&[-3]).floats(&[0.0, 1.0])),
        ("ScatterND of another rank", new("ScatterND").float(&[4]).ints(&[0]).float(&[2, 2])),
        ("GatherND beyond the rank", new("GatherND").float(&[4]).of(DType::I64, &[1, 9])),
        ("Col2Im by zero", {
            let col2im = new("Col2Im").float(&[1, 5, 5]).ints(&[5, 5]).ints(&[1, 5]);
            col2im.list("strides", &[0, 0])
        }),
    ];
    for (what, operator) in refused {
        suite.node(what, operator, Refused(&["culprit"]));
    }
    // Extreme, or beyond what folding computes, but not errors.
    for (what, operator) in [
        ("ConstantOfShape of a huge size", new("ConstantOfShape").ints(&[LARGE])),
        ("Tile to a huge size", new("Tile").float(&[2]).ints(&[LARGE])),
        ("Tile of a constant to a huge size", new("Tile").ints(&[1, 2]).ints(&[LARGE])),
        ("Expand to a huge size", new("Expand").float(&[1]).ints(&[HUGE])),
        ("Expand of a constant to a huge size", new("Expand").ints(&[1]).ints(&[HUGE])),
        ("Range of a huge size", new("Range").int(0).int(HUGE).int(1)),
        ("Range of everything", new("Range").int(i64::MIN).int(i64::MAX).int(1)),
        ("Range down to everything", new("Range").int(i64::MAX).int(i64::MIN).int(i64::MIN)),
        ("Pad to a huge size", new("Pad").ints(&[1, 2]).ints(&[0, LARGE])),
        ("Slice of everything", new("Slice").float(&[8]).ints(&[i64::MIN]).ints(&[i64::MAX]).ints(&[0]).ints(&[1])),
        ("Slice backwards", {
            new("Slice").ints(&[1, 2, 3]).ints(&[i64::MAX]).ints(&[i64::MIN]).ints(&[0]).ints(&[i64::MIN])
        }),
        ("OneHot of a huge size", new("OneHot").ints(&[1]).ints(&[HUGE]).floats(&[0.0, 1.0])),
        ("EyeLike of a huge size", new("EyeLike").float(&[LARGE, 4])),
        ("EyeLike far off", new("EyeLike").float(&[4, 4]).attr("k", Attr::Int(i64::MIN))),
        ("Trilu far off", new("Trilu").float(&[4, 4]).int(i64::MIN)),
        ("RandomUniform of a huge size", new("RandomUniform").list("shape", &[LARGE])),
        ("HannWindow of a huge size", new("HannWindow").int(LARGE)),
        (
            "MelWeightMatrix of a huge size",
            new("MelWeightMatrix").int(LARGE).int(LARGE).int(8000).floats(&[0.0]).floats(&[1.0]),
        ),
        ("CumSum on an invalid axis", new("CumSum").ints(&[1, 2]).int(9)),
        ("Mod by zero", new("Mod").ints(&[1]).ints(&[0])),
        ("Div by zero", new("Div").ints(&[i64::MIN]).ints(&[0])),
        ("Div that overflows", new("Div").ints(&[i64::MIN]).ints(&[-1])),
        ("Mod that overflows", new("Mod").ints(&[i64::MIN]).ints(&[-1])),
        ("Neg that overflows", new("Neg").ints(&[i64::MIN])),
        ("Abs that overflows", new("Abs").ints(&[i64::MIN])),
        ("Mul that overflows", new("Mul").ints(&[i64::MIN]).ints(&[-1])),
        ("Pow that overflows", new("Pow").ints(&[i64::MAX]).ints(&[i64::MAX])),
        ("ReduceProd that overflows", new("ReduceProd").ints(&[i64::MAX, i64::MAX, i64::MIN])),
        (
            "BitShift too far",
            new("BitShift").of(DType::U8, &[1]).of(DType::U8, &[1]).attr("direction", Attr::Str("LEFT".into())),
        ),
        ("Gather of an index out of range", new("Gather").ints(&[1, 2]).ints(&[i64::MIN])),
        ("GatherElements out of range", new("GatherElements").ints(&[1, 2]).ints(&[7])),
        ("GatherND out of range", new("GatherND").ints(&[1, 2]).ints(&[-9])),
        ("ScatterElements out of range", new("ScatterElements").ints(&[1, 2]).ints(&[9]).ints(&[1])),
        ("ReverseSequence of a huge size", new("ReverseSequence").float(&[4, 4]).ints(&[HUGE; 4])),
        ("Resize to a huge size", new("Resize").float(&[1, 1, 4, 4]).absent().floats(&[1.0, 1.0, 1e30, 1.0])),
        (
            "Resize to a huge size, by sizes",
            new("Resize").float(&[1, 1, 4, 4]).absent().absent().ints(&[1, 1, HUGE, HUGE]),
        ),
        (
            "Conv to a huge size",
            new("ConvTranspose").float(&[1, 1, LARGE, LARGE]).float(&[1, 1, 2, 2]).list("strides", &[HUGE, 2]),
        ),
        ("DFT of a huge size", new("DFT").float(&[1, 8, 1]).int(HUGE)),
        ("NonZero of nothing", new("NonZero").float(&[0, HUGE])),
        (
            "Shape of everything",
            new("Shape").float(&[2, 3]).attr("start", Attr::Int(i64::MIN)).attr("end", Attr::Int(i64::MAX)),
        ),
        (
            "Shape of nothing",
            new("Shape").float(&[2, 3]).attr("start", Attr::Int(i64::MAX)).attr("end", Attr::Int(i64::MIN)),
        ),
        ("Size of a huge size", new("Size").float(&[i64::MAX])),
        ("Size of a shape that overflows", new("Size").float(&[HUGE, 0, HUGE])),
        ("an outer product", new("MatMul").float(&[HUGE, 1]).float(&[1, HUGE])),
        ("TopK without values", {
            let mut top = new("TopK").float(&[8]).ints(&[2]).results(2);
            top.node.output[0] = String::new();
            top
        }),
        ("an unknown operator", new("Perceive").float(&[2])),
    ] {
        suite.node(what, operator, Either);
    }
    suite.finish();
}
