//! Damaged, malformed and large files and graphs.

use super::suite::*;
use divi_onnx::{Attr, DType};
use divi_passes::import::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TypeProto, ValueInfoProto, type_proto,
};
use divi_test::model::{attribute, graph, initializer, model, node, untyped, value, with};

#[test]
fn files() {
    let mut suite = Suite::new("files");
    suite.bytes("an empty file", vec![], Refused(&["no graph"]));
    suite.bytes("text", b"module {}\n".to_vec(), Refused(&["hostile.onnx"]));
    suite.bytes("zeros", vec![0; 4096], Refused(&["not an ONNX model"]));
    suite.bytes("ones", vec![0xff; 4096], Refused(&["not an ONNX model"]));
    let good = || model(graph(x(), vec![], vec![relu("x", "y")], &["y"]));
    suite.model("a good model", &good(), Imported);
    suite.model("without a graph", &ModelProto { graph: None, ..good() }, Refused(&["no graph"]));
    for version in [i64::MIN, -1, 0, 99, i64::MAX] {
        suite.model("an odd IR version", &ModelProto { ir_version: Some(version), ..good() }, Refused(&["IR version"]));
        let opset = OperatorSetIdProto { domain: None, version: Some(version) };
        suite.model("an odd opset", &ModelProto { opset_import: vec![opset], ..good() }, Refused(&["opset"]));
    }
    let opset = OperatorSetIdProto { domain: None, version: Some(21) };
    let twice = ModelProto { opset_import: vec![opset.clone(), opset], ..good() };
    suite.model("an opset twice", &twice, Refused(&["twice"]));
    suite.graph("an empty graph", GraphProto::default(), Either);
    // Groups and unknown fields, nested as deeply as the file allows.
    suite.bytes("nested groups", vec![0x1b; 1 << 20], Refused(&["not an ONNX model"]));
    let mut nested = vec![];
    for _ in 0..10_000 {
        let mut outer = vec![0x0a];
        prost::encoding::encode_varint(nested.len() as u64, &mut outer);
        outer.extend(&nested[..nested.len().min(2000)]);
        nested = outer;
    }
    suite.bytes("nested messages", nested, Refused(&["hostile.onnx"]));
    // One number per field instead of packed, as written by old exporters.
    let chunk = |number: u8, content: &[u8]| [&[number << 3 | 2][..], &varint(content.len() as u64), content].concat();
    let mut tensor = [&[0x08][..], &varint(300_000), &[0x10, 0x07], &chunk(8, b"w")].concat();
    tensor.extend([0x38, 0x05].repeat(300_000));
    let model = [&[0x08, 0x0a][..], &chunk(7, &chunk(5, &tensor)), &chunk(8, &[0x10, 21])].concat();
    suite.bytes("unpacked numbers", model, Imported);
    suite.finish();
}

#[test]
fn graphs() {
    let mut suite = Suite::new("graphs");
    let cycle = vec![node("Add", &["x", "b"], &["a"]), relu("a", "b")];
    suite.graph("a cycle", graph(x(), vec![], cycle, &["b"]), Refused(&["cycle", "node_a"]));
    let own = vec![node("Add", &["x", "a"], &["a"])];
    suite.graph("a node that reads its own result", graph(x(), vec![], own, &["a"]), Refused(&["cycle", "node_a"]));
    let doubled = vec![relu("x", "y"), NodeProto { name: Some("second".into()), ..relu("x", "y") }];
    suite.graph("a value twice", graph(x(), vec![], doubled, &["y"]), Refused(&["'y'", "second"]));
    let both = vec![node("Split", &["x"], &["y", "y"])];
    suite.graph("a value twice in one node", graph(x(), vec![], both, &["y"]), Refused(&["node_y"]));
    let shadow = vec![relu("x", "x")];
    suite.graph("a value like an input", graph(x(), vec![], shadow, &["x"]), Refused(&["'x'", "node_x"]));
    let mut inputs = x();
    inputs.extend(x());
    suite.graph("an input twice", graph(inputs, vec![], vec![relu("x", "y")], &["y"]), Refused(&["'x'"]));
    let missing = vec![node("Add", &["x", "nowhere"], &["y"])];
    suite.graph("a missing operand", graph(x(), vec![], missing, &["y"]), Refused(&["node_y", "'nowhere'"]));
    suite.graph("a missing output", graph(x(), vec![], vec![], &["nowhere"]), Refused(&["output 'nowhere'"]));
    suite.graph("an output that is an input", graph(x(), vec![], vec![], &["x"]), Imported);
    suite.graph("an output twice", graph(x(), vec![], vec![relu("x", "y")], &["y", "y"]), Either);
    suite.graph("an output without a name", graph(x(), vec![], vec![relu("x", "y")], &[""]), Refused(&["output"]));
    suite.graph("an input without a name", graph(vec![value("", DType::F32, &[2])], vec![], vec![], &[]), Either);
    suite.graph("an input without a type", graph(vec![untyped("x")], vec![], vec![], &[]), Refused(&["input 'x'"]));
    let map = ValueInfoProto {
        name: Some("x".into()),
        r#type: Some(TypeProto { value: Some(type_proto::Value::MapType(Default::default())) }),
    };
    suite.graph("an input that is a map", graph(vec![map], vec![], vec![], &[]), Refused(&["input 'x'", "map"]));
    let nameless = vec![node("", &["x"], &["y"])];
    suite.graph("no operator", graph(x(), vec![], nameless, &["y"]), Refused(&["node_y", "no operator"]));
    let silent = vec![node("Relu", &["x"], &[])];
    suite.graph("a node without results", graph(x(), vec![], silent, &["x"]), Either);
    let declared = GraphProto {
        value_info: vec![vec![0xff; 7].into()],
        ..graph(x(), vec![], vec![node("NonZero", &["x"], &["y"])], &["y"])
    };
    suite.graph("damaged value_info", declared, Refused(&["value_info"]));
    let mut odd = graph(x(), vec![], vec![relu("x", "y")], &[]);
    odd.output.push(value("y", DType::I64, &[2, 3]));
    suite.graph("an output of another type", odd.clone(), Refused(&["output 'y'"]));
    odd.output[0] = value("y", DType::F32, &[7]);
    suite.graph("an output of another shape", odd, Either);
    for name in ["a\0b", "a\nb", "\"", "\\", "%0", "\u{202e}x", "   "] {
        let named = NodeProto { name: Some(name.into()), ..node("Add", &["x", name], &["y"]) };
        let one = initializer(name, DType::F32, &[2, 3], vec![1; 24]);
        suite.graph("an odd name", graph(x(), vec![one], vec![named], &["y"]), Imported);
    }
    for op in ["a b", "a\nb", "\"", "\\", "Mañana", "func.func", "-", "a\u{1}b"] {
        let strange = node(op, &["x"], &["y"]);
        suite.graph("an odd operator", graph(x(), vec![], vec![strange.clone()], &["y"]), Imported);
        let named = NodeProto { domain: Some(op.into()), ..with(strange, op, Attr::Int(1)) };
        suite.graph("an odd domain and attribute", graph(x(), vec![], vec![named], &["y"]), Imported);
    }
    let void = NodeProto { name: Some("void".into()), ..node("a\0b", &["x"], &["y"]) };
    suite.graph("an operator with a NUL", graph(x(), vec![], vec![void], &["y"]), Refused(&["void", "NUL"]));
    for name in ["a\0b", "", " "] {
        let odd = with(node("Perceive", &["x"], &["y"]), name, Attr::Str(name.into()));
        suite.graph("an odd attribute", graph(x(), vec![], vec![odd], &["y"]), Either);
    }
    let long = "n".repeat(1 << 20);
    suite.graph("a long name", graph(x(), vec![], vec![relu("x", &long)], &[&long]), Imported);
    suite.finish();
}

#[test]
fn sizes() {
    let mut suite = Suite::new("sizes");
    let chain = |count: usize| -> Vec<NodeProto> {
        let name = |i: usize| if i == 0 { "x".to_owned() } else { format!("v{i}") };
        (0..count).map(|i| relu(&name(i), &name(i + 1))).collect()
    };
    suite.graph("a long chain", graph(x(), vec![], chain(100_000), &["v100000"]), Imported);
    let reversed = chain(30_000).into_iter().rev().collect();
    suite.graph("a long chain, last node first", graph(x(), vec![], reversed, &["v30000"]), Imported);
    let mut cycle = chain(30_000);
    cycle[0].input[0] = "v30000".into();
    suite.graph("a long cycle", graph(x(), vec![], cycle, &["v30000"]), Refused(&["cycle"]));
    let operands = vec!["x"; 20_000];
    let wide = with(node("Concat", &operands, &["y"]), "axis", Attr::Int(0));
    suite.graph("a wide Concat", graph(x(), vec![], vec![wide], &["y"]), Imported);
    let sum = node("Sum", &operands, &["y"]);
    suite.graph("a wide Sum", graph(x(), vec![], vec![sum], &["y"]), Imported);
    let names: Vec<_> = (0..20_000).map(|i| format!("y{i}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let split = with(node("Split", &["x"], &names), "num_outputs", Attr::Int(20_000));
    let parts = graph(vec![value("x", DType::F32, &[20_000])], vec![], vec![split], &["y7"]);
    suite.graph("a wide Split", parts, Imported);
    suite.graph(
        "many attributes",
        {
            let many = (0..20_000).map(|i| attribute(&format!("a{i}"), Attr::Int(0))).collect();
            graph(x(), vec![], vec![NodeProto { attribute: many, ..relu("x", "y") }], &["y"])
        },
        Refused(&["node_y"]),
    );
    let high = vec![1; 10_000];
    suite.graph(
        "a high rank",
        graph(vec![value("x", DType::F32, &high)], vec![], vec![relu("x", "y")], &["y"]),
        Either,
    );
    suite.finish();
}
