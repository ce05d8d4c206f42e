//! Models that are wrong on purpose, one defect each. Each is refused with an error that names the file and what is at
//! fault, or imported where nothing is wrong with it; none panics, runs on, or takes memory without bound.

use divi_onnx::{Attr, DType};
use divi_passes::import::{
    Source,
    proto::{
        AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto,
        StringStringEntryProto, TypeProto, ValueInfoProto, type_proto,
    },
    tensor_proto::TensorProto,
};
use divi_test::{
    memory::CountingAllocator,
    model::{
        attribute, call, encode, function, graph, initializer, integers, model, node, untyped, value, with, with_graph,
    },
    trial::{Outcome, Trials},
};
use std::path::PathBuf;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const HUGE: i64 = 1 << 62;
const LARGE: i64 = 1 << 40;

/// What is to become of a model.
enum Expected {
    Imported,
    /// Refused with an error that has each of these in it.
    Refused(&'static [&'static str]),
    /// Either way, in order: where ONNX does not say, or where a result is merely unreasonable.
    Either,
}
use Expected::*;

/// Imports models, and collects what is not as expected.
struct Suite {
    trials: Trials,
    path: Option<PathBuf>,
    complaints: Vec<String>,
}

impl Suite {
    fn new(name: &str) -> Self {
        let trials = Trials::new(env!("CARGO_TARGET_TMPDIR"), &format!("hostile-{name}"));
        Self { trials, path: None, complaints: vec![] }
    }

    fn bytes(&mut self, what: &str, bytes: Vec<u8>, expected: Expected) {
        let source = Source { name: "hostile.onnx".into(), path: self.path.clone(), bytes: bytes.into() };
        let complaint = match (self.trials.run(what, &source), expected) {
            (Err(complaint), _) => complaint,
            (Ok(Outcome::Unverified { messages }), _) => format!("imports, but does not verify: {messages}"),
            (Ok(Outcome::Imported { text }), Refused(parts)) => {
                format!("imports, instead of an error with {parts:?}:\n{text}")
            }
            (Ok(Outcome::Refused { message }), Imported) => format!("is refused: {message}"),
            (Ok(Outcome::Refused { message }), Refused(parts)) => match parts.iter().find(|&&p| !message.contains(p)) {
                Some(part) => format!("is refused without saying '{part}': {message}"),
                None => return,
            },
            _ => return,
        };
        self.complaints.push(format!("{what}: {complaint}"));
    }

    fn model(&mut self, what: &str, model: &ModelProto, expected: Expected) {
        self.bytes(what, encode(model), expected);
    }

    fn graph(&mut self, what: &str, graph: GraphProto, expected: Expected) {
        self.model(what, &model(graph), expected);
    }

    /// A graph whose only node is called `culprit`.
    fn node(&mut self, what: &str, node: Operator, expected: Expected) {
        let Operator { node, inputs, initializers } = node;
        let node = NodeProto { name: Some("culprit".into()), ..node };
        let outputs = node.output.clone();
        let outputs: Vec<_> = outputs.iter().map(String::as_str).collect();
        self.graph(what, graph(inputs, initializers, vec![node], &outputs), expected);
    }

    fn finish(self) {
        println!("{:?}", self.trials.summary);
        let count = self.complaints.len();
        assert!(count == 0, "{count} models are not treated as they should be:\n{}", self.complaints.join("\n"));
    }
}

/// One operator with its operands.
struct Operator {
    node: NodeProto,
    inputs: Vec<ValueInfoProto>,
    initializers: Vec<TensorProto>,
}

impl Operator {
    fn new(op: &str) -> Self {
        Self { node: node(op, &[], &["y"]), inputs: vec![], initializers: vec![] }
    }

    /// With an operand that a caller of the model gives.
    fn of(mut self, dtype: DType, dims: &[i64]) -> Self {
        let name = format!("x{}", self.node.input.len());
        self.inputs.push(value(&name, dtype, dims));
        self.node.input.push(name);
        self
    }

    fn float(self, dims: &[i64]) -> Self {
        self.of(DType::F32, dims)
    }

    /// With an operand that is a list of integers.
    fn ints(mut self, values: &[i64]) -> Self {
        let name = format!("c{}", self.node.input.len());
        self.initializers.push(integers(&name, values));
        self.node.input.push(name);
        self
    }

    /// With an operand that is one number.
    fn int(mut self, value: i64) -> Self {
        let name = format!("c{}", self.node.input.len());
        self.initializers.push(initializer(&name, DType::I64, &[], value.to_le_bytes().into()));
        self.node.input.push(name);
        self
    }

    fn floats(mut self, values: &[f32]) -> Self {
        let name = format!("c{}", self.node.input.len());
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.initializers.push(initializer(&name, DType::F32, &[values.len() as i64], bytes));
        self.node.input.push(name);
        self
    }

    /// With an operand that is left out.
    fn absent(mut self) -> Self {
        self.node.input.push(String::new());
        self
    }

    fn attr(mut self, name: &str, attr: Attr) -> Self {
        self.node = with(self.node, name, attr);
        self
    }

    fn list(self, name: &str, values: &[i64]) -> Self {
        self.attr(name, Attr::Ints(values.to_vec()))
    }

    fn results(mut self, count: usize) -> Self {
        self.node.output = (0..count).map(|i| format!("y{i}")).collect();
        self
    }
}

fn relu(input: &str, output: &str) -> NodeProto {
    node("Relu", &[input], &[output])
}

fn x() -> Vec<ValueInfoProto> {
    vec![value("x", DType::F32, &[2, 3])]
}

#[test]
fn files() {
    let mut suite = Suite::new("files");
    suite.bytes("an empty file", vec![], Refused(&["no graph"]));
    suite.bytes("text", b"module {}\n".to_vec(), Refused(&["not an ONNX model"]));
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
    // Groups and unknown fields, nested as deep as the file allows.
    suite.bytes("nested groups", vec![0x1b; 1 << 20], Refused(&["not an ONNX model"]));
    let mut nested = vec![];
    for _ in 0..10_000 {
        let mut outer = vec![0x0a];
        prost::encoding::encode_varint(nested.len() as u64, &mut outer);
        outer.extend(&nested[..nested.len().min(2000)]);
        nested = outer;
    }
    suite.bytes("nested messages", nested, Refused(&["hostile.onnx"]));
    // One number at a time instead of packed, as old writers did; the field is as large as the file.
    let mut unpacked = vec![0x08, 0x00, 0x10, 0x07];
    unpacked.extend([0x38, 0x05].repeat(300_000));
    let tensor = <TensorProto as prost::Message>::decode(bytes::Bytes::from(unpacked)).unwrap();
    suite.graph("unpacked numbers", graph(x(), vec![tensor], vec![relu("x", "y")], &["y"]), Refused(&["initializer"]));
    suite.finish();
}

#[test]
fn graphs() {
    let mut suite = Suite::new("graphs");
    let cycle = vec![node("Add", &["x", "b"], &["a"]), relu("a", "b")];
    suite.graph("a cycle", graph(x(), vec![], cycle, &["b"]), Refused(&["cycle", "node_a"]));
    let own = vec![node("Add", &["x", "a"], &["a"])];
    suite.graph("a node that needs itself", graph(x(), vec![], own, &["a"]), Refused(&["cycle", "node_a"]));
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

#[test]
fn types_and_constants() {
    let mut suite = Suite::new("constants");
    let input = |dtype: DType, dims: &[i64]| graph(vec![value("x", dtype, dims)], vec![], vec![relu("x", "y")], &["y"]);
    suite.graph("a negative dimension", input(DType::F32, &[2, -1]), Refused(&["input 'x'"]));
    suite.graph("the least dimension", input(DType::F32, &[i64::MIN]), Refused(&["input 'x'"]));
    suite.graph("a shape without a size", input(DType::F32, &[HUGE, HUGE]), Refused(&["input 'x'"]));
    suite.graph("a huge dimension", input(DType::F32, &[HUGE]), Either);
    suite.graph("a huge empty shape", input(DType::F32, &[HUGE, 0, HUGE]), Either);
    let mut foreign = input(DType::F32, &[2]);
    let mut set_type = |code: i32| {
        if let Some(type_proto::Value::TensorType(ty)) = &mut foreign.input[0].r#type.as_mut().unwrap().value {
            ty.elem_type = Some(code);
        }
        foreign.clone()
    };
    for code in [i32::MIN, -1, 99, i32::MAX] {
        let graph = set_type(code);
        suite.graph("an unknown element type", graph, Refused(&["input 'x'", "element type"]));
    }
    suite.graph("no element type", set_type(0), Refused(&["input 'x'"]));

    let constant = |tensor: TensorProto| {
        graph(x(), vec![tensor], vec![relu("x", "y"), node("Identity", &["w"], &["z"])], &["y", "z"])
    };
    let w = |dtype, dims: &[i64], length| initializer("w", dtype, dims, vec![0; length]);
    suite.graph("a good initializer", constant(w(DType::F32, &[2], 8)), Imported);
    for (what, tensor) in [
        ("too few bytes", w(DType::F32, &[2], 7)),
        ("too many bytes", w(DType::F32, &[2], 9)),
        ("no bytes", w(DType::F32, &[2], 0)),
        ("a negative dimension", w(DType::F32, &[-2], 8)),
        ("a huge dimension", w(DType::F32, &[HUGE], 8)),
        ("dimensions that overflow", w(DType::F32, &[HUGE, HUGE], 8)),
        ("dimensions that overflow to what is there", w(DType::F32, &[1 << 32, 1 << 32], 0)),
        ("an unknown type", TensorProto { data_type: 99, ..w(DType::F32, &[2], 8) }),
        ("no type", TensorProto { data_type: 0, ..w(DType::F32, &[2], 8) }),
        ("segments", TensorProto { has_segment: true, ..w(DType::F32, &[2], 8) }),
        ("strings in bytes", w(DType::String, &[2], 8)),
    ] {
        // Segments are not written back, so that model is whole again.
        let expected = if what == "segments" { Imported } else { Refused(&["initializer 'w'"]) };
        suite.graph(what, constant(tensor), expected);
    }
    let twice = graph(x(), vec![w(DType::F32, &[2], 8), w(DType::F32, &[2], 8)], vec![relu("x", "y")], &["y"]);
    suite.graph("an initializer twice", twice, Refused(&["'w'"]));
    let nameless = graph(x(), vec![initializer("", DType::F32, &[1], vec![0; 4])], vec![relu("x", "y")], &["y"]);
    suite.graph("an initializer without a name", nameless, Refused(&["initializer"]));
    for dims in [&[][..], &[1], &[2, 2], &[0]] {
        let count = dims.iter().product::<i64>() as usize;
        let words = TensorProto { raw_data: None, string_data: vec!["a".into(); count], ..w(DType::String, dims, 0) };
        suite.graph("strings", constant(words), Imported);
    }
    let latin = TensorProto { raw_data: None, string_data: vec![vec![0xff].into()], ..w(DType::String, &[1], 0) };
    suite.graph("strings that are no text", constant(latin), Refused(&["'w'", "UTF-8"]));

    let sparse = |dims: &[i64], values: TensorProto, indices: TensorProto| GraphProto {
        sparse_initializer: vec![SparseTensorProto {
            values: Some(values),
            indices: Some(indices),
            dims: dims.to_vec(),
        }],
        ..graph(x(), vec![], vec![relu("x", "y"), node("Identity", &["w"], &["z"])], &["y", "z"])
    };
    suite.graph("a sparse constant", sparse(&[4], w(DType::F32, &[1], 4), integers("", &[3])), Imported);
    for (what, dims, index) in [
        ("a sparse constant without end", LARGE, 3),
        ("a sparse constant of negative size", -4, 3),
        ("a sparse index out of range", 4, 4),
        ("a sparse index below zero", 4, -1),
        ("a sparse index that overflows", 4, i64::MAX),
    ] {
        let graph = sparse(&[dims], w(DType::F32, &[1], 4), integers("", &[index]));
        suite.graph(what, graph, Refused(&["initializer 'w'"]));
    }
    suite.finish();
}

#[test]
fn external_data() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hostile-external");
    std::fs::create_dir_all(folder.join("inside")).unwrap();
    std::fs::write(folder.join("secret.bin"), [0; 64]).unwrap();
    std::fs::write(folder.join("inside/weights.bin"), [0; 64]).unwrap();
    let link = folder.join("inside/link.bin");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink("../secret.bin", &link).unwrap();
    let mut suite = Suite::new("external");
    suite.path = Some(folder.join("inside/hostile.onnx"));
    let entry = |key: &str, value: &str| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
    let external = |dims: &[i64], entries: Vec<StringStringEntryProto>| {
        let tensor = TensorProto {
            raw_data: None,
            external_data: entries,
            data_location: 1,
            ..initializer("w", DType::F32, dims, vec![])
        };
        graph(x(), vec![tensor], vec![relu("x", "y"), node("Identity", &["w"], &["z"])], &["y", "z"])
    };
    suite.graph("weights beside", external(&[4], vec![entry("location", "weights.bin")]), Imported);
    suite.graph("weights that are not there", external(&[4], vec![entry("location", "later.bin")]), Imported);
    let absolute = folder.join("secret.bin").display().to_string();
    for location in [
        "../secret.bin",
        "a/../../secret.bin",
        &absolute,
        "/etc/passwd",
        "link.bin",
        "",
        ".",
        "..",
        "a\0b",
        "inside/..",
    ] {
        let graph = external(&[4], vec![entry("location", location)]);
        suite.graph(&format!("weights at '{location}'"), graph, Refused(&["initializer 'w'", "folder"]));
    }
    suite.graph("weights nowhere", external(&[4], vec![]), Refused(&["initializer 'w'", "location"]));
    let at = |offset: &str, length: &str| {
        vec![entry("location", "weights.bin"), entry("offset", offset), entry("length", length)]
    };
    suite.graph("weights at an offset", external(&[4], at("48", "16")), Imported);
    for (offset, length) in [
        ("49", "16"),
        ("-1", "16"),
        ("0", "-16"),
        ("0", "17"),
        ("0", "0"),
        ("x", "16"),
        ("", "16"),
        ("18446744073709551615", "16"),
        ("18446744073709551616", "16"),
    ] {
        let graph = external(&[4], at(offset, length));
        suite.graph(&format!("weights at {offset}+{length}"), graph, Refused(&["initializer 'w'"]));
    }
    suite.graph("weights of a huge shape", external(&[HUGE], at("0", "16")), Refused(&["initializer 'w'"]));
    suite.finish();
}

#[test]
fn subgraphs_and_functions() {
    let mut suite = Suite::new("subgraphs");
    let condition = || vec![value("x", DType::F32, &[2, 3]), value("c", DType::Bool, &[])];
    let branch = |nodes: Vec<NodeProto>, output: &str| graph(vec![], vec![], nodes, &[output]);
    let choice = |then_graph: GraphProto, else_graph: GraphProto, output: &str| {
        with_graph(with_graph(node("If", &["c"], &[output]), "then_branch", then_graph), "else_branch", else_graph)
    };
    for (depth, expected) in [(20, Imported), (60, Refused(&["not an ONNX model"]))] {
        let mut inner = branch(vec![relu("x", "leaf")], "leaf");
        for level in 0..depth {
            let output = format!("o{level}");
            let other = branch(vec![relu("x", "other")], "other");
            inner = branch(vec![choice(inner, other, &output)], &output);
        }
        suite.graph("nested branches", graph(condition(), vec![], inner.node, &[&format!("o{}", depth - 1)]), expected);
    }
    let in_branch = |nodes: Vec<NodeProto>, output: &str| {
        let other = branch(vec![relu("x", "other")], "other");
        graph(condition(), vec![], vec![choice(branch(nodes, output), other, "y")], &["y"])
    };
    let fails = in_branch(vec![node("Add", &["x", "nowhere"], &["a"])], "a");
    suite.graph("a branch that needs what is not there", fails, Refused(&["'nowhere'"]));
    let inner_cycle = vec![node("Add", &["x", "b"], &["a"]), relu("a", "b")];
    suite.graph("a cycle in a branch", in_branch(inner_cycle, "b"), Refused(&["cycle"]));
    suite.graph("a branch that needs its own node", in_branch(vec![relu("y", "a")], "a"), Refused(&["node_y"]));
    suite.graph("a branch without its output", in_branch(vec![], "a"), Refused(&["'a'"]));
    let cast = with(node("Cast", &["x"], &["a"]), "to", Attr::Int(7));
    suite.graph("branches of different types", in_branch(vec![cast], "a"), Refused(&["node_y", "branches"]));
    let bare = node("If", &["c"], &["y"]);
    suite.graph("an If without branches", graph(condition(), vec![], vec![bare], &["y"]), Refused(&["then_branch"]));
    let stray = with_graph(relu("x", "y"), "body", GraphProto::default());
    suite.graph("a subgraph on a Relu", graph(x(), vec![], vec![stray], &["y"]), Refused(&["node_y", "subgraph"]));

    let looped = |body: GraphProto| {
        let node = with_graph(node("Loop", &["n", "", "x"], &["y"]), "body", body);
        let trips = initializer("n", DType::I64, &[], i64::MAX.to_le_bytes().into());
        graph(x(), vec![trips], vec![node], &["y"])
    };
    let body_inputs =
        || vec![value("i", DType::I64, &[]), value("go", DType::Bool, &[]), value("s", DType::F32, &[2, 3])];
    let body = graph(body_inputs(), vec![], vec![node("Identity", &["go"], &["g"]), relu("s", "t")], &["g", "t"]);
    suite.graph("a loop without end", looped(body), Imported);
    suite.graph("a body without inputs", looped(graph(vec![], vec![], vec![], &[])), Refused(&["node_y", "body"]));
    suite.graph("a body without outputs", looped(graph(body_inputs(), vec![], vec![], &[])), Refused(&["node_y"]));
    for count in [i64::MIN, -1, 0, 2, i64::MAX] {
        let body = graph(vec![value("s", DType::F32, &[3])], vec![], vec![relu("s", "t")], &["t"]);
        let scan = with_graph(with(node("Scan", &["x"], &["y"]), "num_scan_inputs", Attr::Int(count)), "body", body);
        suite.graph("a Scan of an odd count", graph(x(), vec![], vec![scan], &["y"]), Either);
    }

    let with_functions =
        |functions: Vec<_>, nodes: Vec<NodeProto>| ModelProto { functions, ..model(graph(x(), vec![], nodes, &["y"])) };
    let start = || vec![call("F", &["x"], &["y"])];
    let own = function("F", &["a"], &["b"], vec![call("F", &["a"], &["b"])]);
    suite.model("a function that calls itself", &with_functions(vec![own], start()), Refused(&["'F'", "itself"]));
    let f = function("F", &["a"], &["b"], vec![call("G", &["a"], &["b"])]);
    let g = function("G", &["a"], &["b"], vec![call("F", &["a"], &["b"])]);
    suite.model("functions that call each other", &with_functions(vec![f, g], start()), Refused(&["itself"]));
    let doubling: Vec<_> = (0..40)
        .map(|i| {
            let next = format!("F{}", i + 1);
            let nodes = vec![call(&next, &["a"], &["m"]), call(&next, &["m"], &["b"])];
            function(&format!("F{i}"), &["a"], &["b"], nodes)
        })
        .collect();
    let exponential = with_functions(doubling, vec![call("F0", &["x"], &["y"])]);
    suite.model("functions that double", &exponential, Either);
    let mut doubling = exponential.functions;
    doubling.truncate(30);
    doubling.push(function("F30", &["a"], &["b"], vec![relu("a", "b")]));
    let exponential = with_functions(doubling, vec![call("F0", &["x"], &["y"])]);
    suite.model("functions that double, to an end", &exponential, Refused(&["grow"]));
    let deep: Vec<_> = (0..1000)
        .map(|i| function(&format!("F{i}"), &["a"], &["b"], vec![call(&format!("F{}", i + 1), &["a"], &["b"])]))
        .collect();
    suite.model("a thousand calls deep", &with_functions(deep, vec![call("F0", &["x"], &["y"])]), Refused(&["F"]));
    let f = || function("F", &["a"], &["b"], vec![relu("a", "b")]);
    suite.model("a function twice", &with_functions(vec![f(), f()], start()), Refused(&["'F'", "twice"]));
    let crowd = vec![call("F", &["x", "x"], &["y"])];
    suite.model("too many operands", &with_functions(vec![f()], crowd), Refused(&["node_y", "operands"]));
    let many = vec![call("F", &["x"], &["y", "z"])];
    suite.model("too many results", &with_functions(vec![f()], many), Refused(&["node_y", "results"]));
    let hollow = function("F", &["a"], &["b"], vec![]);
    suite.model("a function without its output", &with_functions(vec![hollow], start()), Refused(&["'b'"]));
    let outer = function("F", &["a"], &["b"], vec![node("Add", &["a", "x"], &["b"])]);
    suite.model("a function that looks outside", &with_functions(vec![outer], start()), Refused(&["'x'"]));
    suite.finish();
}

#[test]
fn attributes() {
    let mut suite = Suite::new("attributes");
    let at_fault: Expected = Refused(&["culprit"]);
    let _ = at_fault;
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
    suite.node("an attribute that is no text", latin, Refused(&["culprit", "UTF-8"]));
    // Attributes that inference does not need must be of their kind all the same, or they would be lost.
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
    let refused: &[(&str, Operator)] = &[
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
        ("MaxPool of nothing", new("MaxPool").float(&[1, 1, 4, 4]).list("kernel_shape", &[0, 0])),
        ("MaxPool of less", new("MaxPool").float(&[1, 1, 4, 4]).list("kernel_shape", &[-1, -1])),
        ("AveragePool of too much", new("AveragePool").float(&[1, 1, 4, 4]).list("kernel_shape", &[9, 9])),
        ("Reshape to more", new("Reshape").float(&[2, 3]).ints(&[7])),
        ("Reshape to what overflows", new("Reshape").float(&[2, 3]).ints(&[HUGE, HUGE])),
        ("Reshape to two unknowns", new("Reshape").float(&[2, 3]).ints(&[-1, -1])),
        ("Reshape to less than nothing", new("Reshape").float(&[2, 3]).ints(&[-2, 3])),
        ("Reshape that copies too far", new("Reshape").float(&[6]).ints(&[6, 0])),
        ("Reshape that does not divide", new("Reshape").float(&[2, 3]).ints(&[4, -1])),
        ("Expand to what does not fit", new("Expand").float(&[2, 3]).ints(&[4, 5])),
        ("Expand to less than nothing", new("Expand").float(&[1]).ints(&[-5])),
        ("ConstantOfShape of less than nothing", new("ConstantOfShape").ints(&[-1])),
        ("ConstantOfShape that overflows", new("ConstantOfShape").ints(&[HUGE, HUGE])),
        ("Tile that overflows", new("Tile").float(&[LARGE]).ints(&[LARGE])),
        ("Tile of another rank", new("Tile").float(&[2]).ints(&[2, 2])),
        ("Tile backwards", new("Tile").float(&[2]).ints(&[-1])),
        ("Split into what is not there", new("Split").float(&[6]).ints(&[4, 4]).results(2)),
        ("Split into less than nothing", new("Split").float(&[6]).ints(&[7, -1]).results(2)),
        ("Split into what overflows", new("Split").float(&[6]).ints(&[i64::MAX, i64::MAX]).results(2)),
        ("Split on no axis", new("Split").float(&[6]).ints(&[3, 3]).attr("axis", Attr::Int(1)).results(2)),
        ("Concat on no axis", new("Concat").float(&[2]).float(&[2]).attr("axis", Attr::Int(99))),
        ("Concat without an axis", new("Concat").float(&[2]).float(&[2])),
        ("Concat of nothing", new("Concat").attr("axis", Attr::Int(0))),
        ("Concat of shapes that differ", new("Concat").float(&[2, 3]).float(&[2, 4]).attr("axis", Attr::Int(0))),
        ("Concat that overflows", new("Concat").float(&[i64::MAX]).float(&[i64::MAX]).attr("axis", Attr::Int(0))),
        ("Gather on no axis", new("Gather").float(&[2]).ints(&[0]).attr("axis", Attr::Int(i64::MIN))),
        ("Transpose of another rank", new("Transpose").float(&[2, 3]).list("perm", &[0])),
        ("Transpose of an axis twice", new("Transpose").float(&[2, 3]).list("perm", &[0, 0])),
        ("Transpose of no axis", new("Transpose").float(&[2, 3]).list("perm", &[0, HUGE])),
        ("Squeeze of what is not one", new("Squeeze").float(&[2, 3]).ints(&[0])),
        ("Squeeze on no axis", new("Squeeze").float(&[1, 3]).ints(&[9])),
        ("Unsqueeze of an axis twice", new("Unsqueeze").float(&[2]).ints(&[0, 0])),
        ("Unsqueeze on no axis", new("Unsqueeze").float(&[2]).ints(&[i64::MAX])),
        ("Flatten on no axis", new("Flatten").float(&[2, 3]).attr("axis", Attr::Int(4))),
        ("ReduceSum on no axis", new("ReduceSum").float(&[2]).ints(&[i64::MIN])),
        ("ArgMax on no axis", new("ArgMax").float(&[2]).attr("axis", Attr::Int(5))),
        ("Softmax on no axis", new("Softmax").float(&[2]).attr("axis", Attr::Int(-2))),
        ("Pad of another rank", new("Pad").float(&[2]).ints(&[1, 1, 1])),
        ("Pad that overflows", new("Pad").float(&[2]).ints(&[i64::MAX, i64::MAX])),
        ("Pad below nothing", new("Pad").float(&[2]).ints(&[-2, -2])),
        ("Slice by nothing", new("Slice").float(&[8]).ints(&[0]).ints(&[8]).ints(&[0]).ints(&[0])),
        ("Slice on no axis", new("Slice").float(&[8]).ints(&[0]).ints(&[8]).ints(&[3])),
        ("TopK of less than nothing", new("TopK").float(&[8]).ints(&[-1]).results(2)),
        ("TopK of more than is there", new("TopK").float(&[8]).ints(&[HUGE]).results(2)),
        ("Range by nothing", new("Range").int(0).int(9).int(0)),
        ("DepthToSpace by nothing", new("DepthToSpace").float(&[1, 4, 2, 2]).attr("blocksize", Attr::Int(0))),
        ("DepthToSpace that overflows", new("DepthToSpace").float(&[1, 4, 2, 2]).attr("blocksize", Attr::Int(HUGE))),
        ("SpaceToDepth by less", new("SpaceToDepth").float(&[1, 4, 2, 2]).attr("blocksize", Attr::Int(i64::MIN))),
        ("Einsum of nonsense", new("Einsum").float(&[2]).attr("equation", Attr::Str("i,,->->".into()))),
        ("Einsum of another rank", new("Einsum").float(&[2]).attr("equation", Attr::Str("ij->i".into()))),
        ("Einsum of sizes that differ", new("Einsum").float(&[2, 3]).attr("equation", Attr::Str("ii->i".into()))),
        ("Gemm of another rank", new("Gemm").float(&[2, 3, 4]).float(&[4, 5])),
        ("Resize to another rank", new("Resize").float(&[1, 1, 4, 4]).absent().floats(&[2.0])),
        ("Resize below nothing", new("Resize").float(&[1, 1, 4, 4]).absent().floats(&[1.0, 1.0, -1.0, 1.0])),
        ("Resize to no number", new("Resize").float(&[1, 1, 4, 4]).absent().floats(&[1.0, 1.0, f32::NAN, 1.0])),
        ("Resize without end", new("Resize").float(&[1, 1, 4, 4]).absent().floats(&[1.0, 1.0, f32::INFINITY, 1.0])),
        ("RandomNormal of less", new("RandomNormal").list("shape", &[-1])),
        ("RandomNormal that overflows", new("RandomNormal").list("shape", &[HUGE, HUGE])),
        ("BatchNormalization of channels that differ", {
            (0..4).fold(new("BatchNormalization").float(&[1, 4, 2, 2]), |op, _| op.float(&[3]))
        }),
        ("LayerNormalization on no axis", {
            new("LayerNormalization").float(&[2, 3]).float(&[3]).attr("axis", Attr::Int(7))
        }),
        ("LSTM of less than nothing", {
            let lstm = new("LSTM").float(&[5, 1, 3]).float(&[1, 16, 3]).float(&[1, 16, 4]);
            lstm.attr("hidden_size", Attr::Int(-4))
        }),
        ("OneHot of less than nothing", new("OneHot").of(DType::I64, &[2]).ints(&[-3]).floats(&[0.0, 1.0])),
        ("ScatterND of another rank", new("ScatterND").float(&[4]).ints(&[0]).float(&[2, 2])),
        ("GatherND beyond the rank", new("GatherND").float(&[4]).of(DType::I64, &[1, 9])),
        ("Col2Im by nothing", {
            let col2im = new("Col2Im").float(&[1, 5, 5]).ints(&[5, 5]).ints(&[1, 5]);
            col2im.list("strides", &[0, 0])
        }),
    ];
    for (what, operator) in refused {
        let operator = Operator {
            node: operator.node.clone(),
            inputs: operator.inputs.clone(),
            initializers: operator.initializers.clone(),
        };
        suite.node(what, operator, Refused(&["culprit"]));
    }
    // Unreasonable, or beyond what folding computes, but nothing that an error could be about.
    for (what, operator) in [
        ("ConstantOfShape of a lot", new("ConstantOfShape").ints(&[LARGE])),
        ("Tile to a lot", new("Tile").float(&[2]).ints(&[LARGE])),
        ("Tile of a constant to a lot", new("Tile").ints(&[1, 2]).ints(&[LARGE])),
        ("Expand to a lot", new("Expand").float(&[1]).ints(&[HUGE])),
        ("Expand of a constant to a lot", new("Expand").ints(&[1]).ints(&[HUGE])),
        ("Range of a lot", new("Range").int(0).int(HUGE).int(1)),
        ("Range of everything", new("Range").int(i64::MIN).int(i64::MAX).int(1)),
        ("Range down to everything", new("Range").int(i64::MAX).int(i64::MIN).int(i64::MIN)),
        ("Pad to a lot", new("Pad").ints(&[1, 2]).ints(&[0, LARGE])),
        ("Slice of everything", new("Slice").float(&[8]).ints(&[i64::MIN]).ints(&[i64::MAX]).ints(&[0]).ints(&[1])),
        ("Slice backwards", {
            new("Slice").ints(&[1, 2, 3]).ints(&[i64::MAX]).ints(&[i64::MIN]).ints(&[0]).ints(&[i64::MIN])
        }),
        ("OneHot of a lot", new("OneHot").ints(&[1]).ints(&[HUGE]).floats(&[0.0, 1.0])),
        ("EyeLike of a lot", new("EyeLike").float(&[LARGE, 4])),
        ("EyeLike far off", new("EyeLike").float(&[4, 4]).attr("k", Attr::Int(i64::MIN))),
        ("Trilu far off", new("Trilu").float(&[4, 4]).int(i64::MIN)),
        ("RandomUniform of a lot", new("RandomUniform").list("shape", &[LARGE])),
        ("HannWindow of a lot", new("HannWindow").int(LARGE)),
        (
            "MelWeightMatrix of a lot",
            new("MelWeightMatrix").int(LARGE).int(LARGE).int(8000).floats(&[0.0]).floats(&[1.0]),
        ),
        ("CumSum on no axis", new("CumSum").ints(&[1, 2]).int(9)),
        ("Mod by nothing", new("Mod").ints(&[1]).ints(&[0])),
        ("Div by nothing", new("Div").ints(&[i64::MIN]).ints(&[0])),
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
        ("ReverseSequence of a lot", new("ReverseSequence").float(&[4, 4]).ints(&[HUGE; 4])),
        ("Resize to a lot", new("Resize").float(&[1, 1, 4, 4]).absent().floats(&[1.0, 1.0, 1e30, 1.0])),
        ("Resize to a lot, by size", new("Resize").float(&[1, 1, 4, 4]).absent().absent().ints(&[1, 1, HUGE, HUGE])),
        (
            "Conv to a lot",
            new("ConvTranspose").float(&[1, 1, LARGE, LARGE]).float(&[1, 1, 2, 2]).list("strides", &[HUGE, 2]),
        ),
        ("DFT of a lot", new("DFT").float(&[1, 8, 1]).int(HUGE)),
        ("NonZero of nothing", new("NonZero").float(&[0, HUGE])),
        (
            "Shape of everything",
            new("Shape").float(&[2, 3]).attr("start", Attr::Int(i64::MIN)).attr("end", Attr::Int(i64::MAX)),
        ),
        (
            "Shape of nothing",
            new("Shape").float(&[2, 3]).attr("start", Attr::Int(i64::MAX)).attr("end", Attr::Int(i64::MIN)),
        ),
        ("Size of a lot", new("Size").float(&[i64::MAX])),
        ("Size of what overflows", new("Size").float(&[HUGE, 0, HUGE])),
        ("Kronecker", new("MatMul").float(&[HUGE, 1]).float(&[1, HUGE])),
        ("an operator of tomorrow", new("Perceive").float(&[2])),
    ] {
        suite.node(what, operator, Either);
    }
    suite.finish();
}
