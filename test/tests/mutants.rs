//! Thousands of damaged models: each is imported, or rejected with an error that names the file. None causes a panic, a crash
//! or unbounded memory.
//!
//! Every mutant has its own seed, which failures report. `DIVI_MUTANT=squeezenet1_1:123` tests only that one,
//! `DIVI_MUTANTS=100000` more of each model, `DIVI_SEED=7` others.

use divi_onnx::{Attr, DType};
use divi_passes::import::{Source, proto::NodeProto, tensor_proto::TensorProto};
use divi_readers::mutate::Message;
use divi_test::{
    memory::CountingAllocator,
    model::{self, call, function, initializer, integers, node, value, with, with_graph},
    random::Random,
    trial::{Outcome, Trials},
};
use std::path::PathBuf;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Default number of mutants per model; overridden by `DIVI_MUTANTS`.
const MUTANTS: u64 = 700;

/// A model that is mutated.
struct Original {
    name: String,
    path: Option<PathBuf>,
    bytes: Vec<u8>,
    message: Message,
}

impl Original {
    fn new(name: &str, path: Option<PathBuf>, bytes: Vec<u8>) -> Self {
        let message = Message::new(bytes.clone()).unwrap_or_else(|| panic!("{name} is not a protobuf message"));
        Self { name: name.to_owned(), path, bytes, message }
    }

    fn file(name: &str) -> Self {
        let path = divi_test::models().join(format!("{name}.onnx"));
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::new(name, Some(path), bytes)
    }
}

/// Returns the number in an environment variable.
fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is '{text}'; expected a number")))
}

fn check(original: Original) {
    let count = variable("DIVI_MUTANTS").unwrap_or(MUTANTS);
    let base = variable("DIVI_SEED").unwrap_or(0);
    let only = std::env::var("DIVI_MUTANT").ok();
    let only = only.as_deref().and_then(|text| text.split_once(':'));
    let mut trials = Trials::new(env!("CARGO_TARGET_TMPDIR"), &format!("mutants-{}", original.name));
    let source =
        |bytes: Vec<u8>| Source { name: "mutant.onnx".into(), path: original.path.clone(), bytes: bytes.into() };
    let unharmed = trials.run("the original", &source(original.bytes.clone()));
    assert!(
        matches!(unharmed, Ok(Outcome::Imported { .. })),
        "{}: the original is not imported: {unharmed:?}",
        original.name
    );
    let mut complaints = vec![];
    let mut mutants = 0..count;
    if let Some((name, index)) = only {
        let index = index.parse().expect("DIVI_MUTANT is MODEL:NUMBER");
        mutants = if name == original.name { index..index + 1 } else { 0..0 };
    }
    for index in mutants {
        let mut random = Random((base << 32) ^ index);
        random.next_u64();
        let (kind, bytes) = original.message.mutant(&mut random);
        let description = format!("DIVI_SEED={base} DIVI_MUTANT={}:{index} ({kind})", original.name);
        if only.is_some() {
            let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutant.onnx");
            std::fs::write(&path, &bytes).expect("the target folder is writable");
            println!("{description} is in {}", path.display());
        }
        if let Err(complaint) = trials.run(&description, &source(bytes)) {
            complaints.push(format!("{description} {complaint}"));
        }
    }
    println!("{}: {:?}", original.name, trials.summary);
    assert!(complaints.is_empty(), "{} mutants fail:\n{}", complaints.len(), complaints.join("\n"));
    let summary = trials.summary;
    let enough = only.is_some() || (summary.imported > 0 && summary.refused > 0);
    assert!(enough, "mutations are too weak or too strong: {summary:?}");
}

#[test]
fn alexnet() {
    check(Original::file("alexnet"));
}

#[test]
fn resnet18() {
    check(Original::file("resnet18"));
}

#[test]
fn squeezenet1_1() {
    check(Original::file("squeezenet1_1"));
}

#[test]
fn llama_2l_1x128() {
    check(Original::file("llama_2l_1x128"));
}

/// A model with features that vision and language models lack: branches, loops, functions, sequences, strings, sparse and
/// unpacked constants, named dimensions.
#[test]
fn kitchen_sink() {
    check(Original::new("kitchen_sink", None, model::encode(&kitchen_sink_model())));
}

fn kitchen_sink_model() -> divi_passes::import::proto::ModelProto {
    let branch = |op: &str| {
        let nodes = vec![node(op, &["x"], &["inner"]), node("Add", &["inner", "one"], &["branch_out"])];
        model::graph(
            vec![],
            vec![initializer("one", DType::F32, &[], 1f32.to_le_bytes().into())],
            nodes,
            &["branch_out"],
        )
    };
    let body = model::graph(
        vec![value("i", DType::I64, &[]), value("go", DType::Bool, &[]), value("state", DType::F32, &[2, 3])],
        vec![],
        vec![
            node("Identity", &["go"], &["go_on"]),
            node("Mul", &["state", "x"], &["next"]),
            node("ReduceMax", &["next"], &["scanned"]),
        ],
        &["go_on", "next", "scanned"],
    );
    let choice = with_graph(node("If", &["condition"], &["chosen"]), "then_branch", branch("Relu"));
    let nodes = vec![
        with_graph(choice, "else_branch", branch("Neg")),
        with_graph(node("Loop", &["trips", "", "chosen"], &["looped", "all"]), "body", body),
        call("Twice", &["looped"], &["doubled"]),
        node("Shape", &["doubled"], &["shape"]),
        node("Reshape", &["doubled", "shape"], &["same"]),
        with(node("Concat", &["same", "x"], &["joined"]), "axis", Attr::Int(0)),
        with(node("Split", &["joined", "parts"], &["first", "second"]), "axis", Attr::Int(0)),
        node("SequenceConstruct", &["first", "second"], &["sequence"]),
        node("SequenceAt", &["sequence", "index"], &["element"]),
        with(node("Cast", &["element"], &["cast"]), "to", Attr::Int(DType::F16.code())),
        node("Slice", &["cast", "index1", "index2"], &["cut"]),
        NodeProto { domain: Some("far.away".into()), ..node("Mystery", &["cut"], &["unknown"]) },
    ];
    let words =
        TensorProto { string_data: vec!["a".into(), "b".into()], ..initializer("words", DType::String, &[2], vec![]) };
    let initializers = vec![
        TensorProto { raw_data: None, ..words },
        integers("parts", &[3, 1]),
        initializer("index", DType::I64, &[], vec![0; 8]),
        integers("index1", &[0]),
        integers("index2", &[1]),
        initializer("trips", DType::I64, &[], 4i64.to_le_bytes().into()),
    ];
    let inputs = vec![value("x", DType::F32, &[2, 3]), value("condition", DType::Bool, &[])];
    let graph = model::graph(inputs, initializers, nodes, &["unknown", "all", "second", "cut", "words"]);
    let mut model = model::model(graph);
    model.functions = vec![function("Twice", &["a"], &["b"], vec![node("Add", &["a", "a"], &["b"])])];
    model
}
