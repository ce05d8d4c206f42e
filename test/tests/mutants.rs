//! Thousands of damaged models: each imports or is refused with an error that names the file. Nothing panics, takes memory
//! without bound, or dies.
//!
//! Every mutant is made from a seed of its own. A complaint names it; `DIVI_MUTANT=squeezenet1_1:123` tries only that
//! one. `DIVI_MUTANTS=100000` tries more of each model, `DIVI_SEED=7` others.

#[path = "mutants/wire.rs"]
mod wire;

use divi_onnx::{Attr, DType};
use divi_passes::import::{Source, proto::NodeProto, tensor_proto::TensorProto};
use divi_test::{
    memory::CountingAllocator,
    model::{self, call, function, initializer, integers, node, value, with, with_graph},
    random::Random,
    trial::{Outcome, Trials},
};
use std::path::PathBuf;
use wire::{Field, Payload};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Mutants of each model, unless `DIVI_MUTANTS` says otherwise.
const MUTANTS: u64 = 700;

/// One way to damage a model.
type Mutation = fn(&Original, &mut Random) -> Vec<u8>;

/// A model and what mutation needs to know of it.
struct Original {
    name: String,
    path: Option<PathBuf>,
    bytes: Vec<u8>,
    fields: Vec<Field>,
    extents: Vec<wire::Extent>,
    messages: Vec<Vec<usize>>,
}

impl Original {
    fn new(name: &str, path: Option<PathBuf>, bytes: Vec<u8>) -> Self {
        let fields = wire::read(&bytes).unwrap_or_else(|| panic!("{name} is no protobuf"));
        let (extents, messages) = (wire::extents(&fields), wire::messages(&fields));
        Self { name: name.to_owned(), path, bytes, fields, extents, messages }
    }

    fn file(name: &str) -> Self {
        let path = divi_test::models().join(format!("{name}.onnx"));
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::new(name, Some(path), bytes)
    }

    /// A damaged copy, and what was done to it.
    fn mutant(&self, random: &mut Random) -> (&'static str, Vec<u8>) {
        const KINDS: &[(&str, Mutation)] = &[
            ("truncated", Original::truncated),
            ("bits flipped", Original::flipped),
            ("spliced", Original::spliced),
            ("length damaged", Original::with_wrong_length),
            ("fields rearranged", Original::rearranged),
            ("numbers changed", Original::renumbered),
            ("texts exchanged", Original::renamed),
        ];
        let (kind, mutate) = random.choose(KINDS);
        (kind, mutate(self, random))
    }

    /// Cut before a field, within its key or length, before, within or just short of its content.
    fn truncated(&self, random: &mut Random) -> Vec<u8> {
        let extent = random.choose(&self.extents);
        let middle = (extent.content + extent.end) / 2;
        let ends = [extent.start, extent.start + 1, extent.after_key, extent.content, middle, extent.end - 1];
        self.bytes[..*random.choose(&ends)].to_vec()
    }

    fn flipped(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for _ in 0..1 + random.below(8) {
            let position = random.below(bytes.len());
            bytes[position] ^= 1 << random.below(8);
        }
        bytes
    }

    /// A piece of the file over or between other bytes.
    fn spliced(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let from = random.below(bytes.len());
        let length = 1 + random.below(64.min(bytes.len() - from));
        let piece = bytes[from..from + length].to_vec();
        let to = random.below(bytes.len());
        let replaced = if random.below(2) == 0 { length.min(bytes.len() - to) } else { 0 };
        bytes.splice(to..to + replaced, piece);
        bytes
    }

    fn with_wrong_length(&self, random: &mut Random) -> Vec<u8> {
        let chunks: Vec<_> = self.extents.iter().filter(|extent| extent.content < extent.end).collect();
        let extent = random.choose(&chunks);
        let length = (extent.end - extent.content) as u64;
        let wrong =
            [length - 1, length + 1, 0, length * 2, 1 << 20, u64::from(u32::MAX), 1 << 32, i64::MAX as u64, u64::MAX];
        let mut varint = vec![];
        wire::write_varint(*random.choose(&wrong), &mut varint);
        let mut bytes = self.bytes.clone();
        bytes.splice(extent.after_key..extent.content, varint);
        bytes
    }

    /// Fields swapped, doubled, dropped or moved to another message: lengths are right, what they hold is not.
    fn rearranged(&self, random: &mut Random) -> Vec<u8> {
        let mut fields = self.fields.clone();
        for _ in 0..1 + random.below(3) {
            let paths = wire::messages(&fields);
            let path = random.choose(&paths).clone();
            let other = random.choose(&paths).clone();
            let message = wire::message(&mut fields, &path);
            if message.is_empty() {
                continue;
            }
            let (a, b) = (random.below(message.len()), random.below(message.len()));
            match random.below(5) {
                0 => message.swap(a, b),
                1 => message.insert(b, message[a].clone()),
                2 => drop(message.remove(a)),
                3 => message[a].number = 1 + random.below(26) as u64,
                _ => {
                    let field = message[a].clone();
                    wire::message(&mut fields, &other).push(field);
                }
            }
        }
        wire::write(&fields)
    }

    /// Numbers that are too large, too small, or just not what they were.
    fn renumbered(&self, random: &mut Random) -> Vec<u8> {
        const NUMBERS: &[i64] =
            &[0, 1, 2, 3, 7, 16, 99, 1 << 31, 1 << 40, 1 << 62, i64::MAX, -1, -2, -(1 << 31), i64::MIN];
        let mut fields = self.fields.clone();
        for _ in 0..1 + random.below(4) {
            // Not every message has a number, so several are looked at.
            for _ in 0..50 {
                let path = random.choose(&self.messages);
                let message = wire::message(&mut fields, path);
                let numbers = message.iter_mut().filter_map(|field| match &mut field.payload {
                    Payload::Varint(number) => Some(number),
                    _ => None,
                });
                let mut numbers: Vec<_> = numbers.collect();
                if !numbers.is_empty() {
                    let position = random.below(numbers.len());
                    *numbers[position] = *random.choose(NUMBERS) as u64;
                    break;
                }
            }
        }
        wire::write(&fields)
    }

    /// Names and operators put in each other's place: cycles, doubles, operands of the wrong kind.
    fn renamed(&self, random: &mut Random) -> Vec<u8> {
        fn texts<'a>(fields: &'a mut [Field], found: &mut Vec<&'a mut Vec<u8>>) {
            for field in fields {
                match &mut field.payload {
                    Payload::Bytes(bytes) if bytes.len() < 64 => found.push(bytes),
                    Payload::Message(fields) => texts(fields, found),
                    _ => {}
                }
            }
        }
        const OPERATORS: &[&str] =
            &["Concat", "Reshape", "If", "Loop", "Split", "Resize", "Einsum", "LSTM", "Nope", ""];
        let mut fields = self.fields.clone();
        let mut found = vec![];
        texts(&mut fields, &mut found);
        for _ in 0..1 + random.below(4) {
            let (from, to) = (random.below(found.len()), random.below(found.len()));
            *found[to] = match random.below(4) {
                0 => random.choose(OPERATORS).as_bytes().to_vec(),
                _ => found[from].clone(),
            };
        }
        wire::write(&fields)
    }
}

/// The number that a variable gives.
fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is '{text}', no number")))
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
        "{} is no good to begin with: {unharmed:?}",
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
        let (kind, bytes) = original.mutant(&mut random);
        let description = format!("DIVI_SEED={base} DIVI_MUTANT={}:{index} ({kind})", original.name);
        if only.is_some() {
            let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutant.onnx");
            std::fs::write(&path, &bytes).expect("the target folder can be written");
            println!("{description} is in {}", path.display());
        }
        if let Err(complaint) = trials.run(&description, &source(bytes)) {
            complaints.push(format!("{description} {complaint}"));
        }
    }
    println!("{}: {:?}", original.name, trials.summary);
    assert!(complaints.is_empty(), "{} mutants misbehave:\n{}", complaints.len(), complaints.join("\n"));
    let summary = trials.summary;
    let enough = only.is_some() || (summary.imported > 0 && summary.refused > 0);
    assert!(enough, "mutation is too weak or too strong: {summary:?}");
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

/// A bit of everything that models of vision and language do not have: branches, loops, functions, sequences, strings,
/// sparse and unpacked constants, named dimensions.
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
