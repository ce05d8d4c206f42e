//! The work of every model in `test/models` can be counted, and agrees with published numbers.

use divi_cost::{Class, Work, opaque_work, work};
use divi_dialect::{
    Operation, Value,
    node::{attributes_of, inference_value, present_results},
};
use divi_onnx::{Node, Op, TensorType};
use divi_passes::import::Options;
use divi_test::node_cases::{Category, for_each_case, node_cases};
use std::collections::BTreeMap;

/// Operations of the dialect without work.
const STRUCTURE: &[&str] = &["Constant", "EntryPoint", "NoValue", "Return"];

/// Work of a model.
#[derive(Default)]
struct Total {
    /// FLOPs of convolutions and matrix products.
    products: u64,
    flops: u64,
    /// Bytes of constants, each counted once.
    weights: u64,
    /// Number of operators of each class.
    by_class: BTreeMap<Class, usize>,
}

/// Returns the types of the results that are present.
fn result_types(operation: Operation<'_>) -> Vec<TensorType> {
    operation.results().into_iter().filter(|result| !result.is_none()).filter_map(Value::tensor_type).collect()
}

fn is_constant(value: Value<'_>) -> bool {
    value.defining_op().is_some_and(|definer| definer.name() == "onnx.Constant")
}

fn work_of(operation: Operation<'_>, op: &str) -> Result<Work, String> {
    let operands = operation.operands();
    let values: Vec<Option<_>> = operands.iter().map(|&operand| inference_value(operand)).collect();
    let inputs: Vec<_> = values.iter().map(Option::as_ref).collect();
    let constant: Vec<_> = operands.iter().map(|&operand| is_constant(operand)).collect();
    let attributes = attributes_of(operation);
    let outputs = present_results(operation);
    let counted = match Op::from_name(op) {
        Some(op) => {
            let node = Node { op, inputs: &inputs, attributes: &attributes, outputs };
            work(&node, &result_types(operation), &constant)
        }
        None => opaque_work(&inputs, &result_types(operation), &constant),
    };
    counted.map_err(|error| format!("{op}: {error}"))
}

fn total(name: &str, batch: Option<u64>) -> Total {
    let context = divi_test::context();
    let path = divi_test::models().join(format!("{name}.onnx"));
    let options = Options { batch: batch.map(|batch| batch as i64), ..Options::default() };
    let (module, _) = divi_test::import_file(&context, &path, options).unwrap_or_else(|error| panic!("{error}"));
    let mut total = Total::default();
    divi_test::walk(&module, &mut |operation| {
        let Some(op) = divi_test::operation_name(operation).strip_prefix("onnx.") else { return };
        if op == "Constant" {
            let ty = &result_types(operation)[0];
            let count = ty.count().expect("constants have a shape");
            total.weights += ty.dtype.byte_len(count as u64).expect("constants have a size");
        }
        if STRUCTURE.contains(&op) {
            return;
        }
        let work = work_of(operation, op).unwrap_or_else(|message| panic!("{message}"));
        if matches!(work.class, Class::Conv | Class::DepthwiseConv | Class::MatMul) {
            total.products += work.flops;
        }
        total.flops += work.flops;
        *total.by_class.entry(work.class).or_default() += 1;
    });
    total
}

/// Multiply-adds in billions, from torchvision's documentation.
const PUBLISHED: &[(&str, f64)] = &[
    ("alexnet", 0.714),
    ("convnext_tiny", 4.456),
    ("densenet121", 2.834),
    ("efficientnet_b0", 0.386),
    ("googlenet", 1.498),
    ("inception_v3", 5.713),
    ("mobilenet_v2", 0.301),
    ("mobilenet_v3_large", 0.217),
    ("resnet18", 1.814),
    ("resnet50", 4.089),
    ("squeezenet1_1", 0.349),
    ("vgg16", 15.47),
    ("vit_b_16", 17.564),
];

#[test]
fn image_networks_agree_with_published_work() {
    for &(name, expected) in PUBLISHED {
        let products = total(name, None).products as f64 / 2e9;
        // Published numbers are rounded and exclude biases.
        assert!((products / expected - 1.0).abs() < 0.005, "{name}: {products} for {expected}");
    }
}

/// A transformer multiplies each token by all weights of its layers, and in each layer all pairs of tokens twice; embeddings are
/// looked up. Biases add less than 0.1 %.
#[test]
fn transformers_multiply_their_weights() {
    let check = |name: &str, tokens: u64, layers: u64, width: u64, weights_of_layer: u64, head: u64| {
        let expected = 2 * tokens * (layers * weights_of_layer + head) + layers * 2 * (2 * tokens * tokens * width);
        let products = total(name, None).products;
        assert!((products as f64 / expected as f64 - 1.0).abs() < 0.001, "{name}: {products} for {expected}");
    };
    let gpt = |width: u64| 12 * width * width;
    check("bert_base_128", 128, 12, 768, gpt(768), 0);
    check("gpt2_small_1x128", 128, 12, 768, gpt(768), 768 * 50257);
    check("gpt2_large_1x128", 128, 36, 1280, gpt(1280), 1280 * 50257);
    // Four square matrices and three of the gated MLP.
    check("openllama_3b_1x128", 128, 26, 3200, 4 * 3200 * 3200 + 3 * 3200 * 8640, 3200 * 32000);
    check("llama_2l_1x128", 128, 2, 4096, 4 * 4096 * 4096 + 3 * 4096 * 11008, 4096 * 32000);
}

#[test]
fn a_batch_multiplies_work_and_not_weights() {
    let one = total("resnet50", None);
    let eight = total("resnet50_dyn_batch", Some(8));
    assert_eq!(eight.flops, 8 * one.flops);
    assert_eq!(eight.weights, one.weights);
}

/// Tests that no operator of these models has the class `Other`.
#[test]
fn everything_has_a_class() {
    for name in PUBLISHED.iter().map(|(name, _)| *name).chain(["bert_base_128", "gpt2_small_1x128", "llama_2l_1x128"]) {
        let total = total(name, None);
        assert!(!total.by_class.contains_key(&Class::Other), "{name}: {:?}", total.by_class);
    }
}

/// Tests that every operator of ONNX's node cases is counted; the error for dynamic shapes says so.
#[test]
fn node_cases_are_counted() {
    let cases = node_cases(env!("CARGO_TARGET_TMPDIR"));
    let outcomes = for_each_case(&cases, |context, case| {
        let mut outcomes = vec![];
        if let (Category::Plain, Ok((module, _))) =
            (case.category, divi_test::import_file(context, &case.model(), Options::default()))
        {
            divi_test::walk(&module, &mut |operation| {
                if let Some(op) = divi_test::operation_name(operation).strip_prefix("onnx.")
                    && !STRUCTURE.contains(&op)
                {
                    outcomes.push(work_of(operation, op).map(|_| ()));
                }
            });
        }
        outcomes
    });
    let outcomes: Vec<_> = outcomes.into_iter().flatten().collect();
    let errors = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    let (open, wrong): (Vec<_>, Vec<_>) = errors.partition(|message| message.contains(" is unknown, "));
    println!("{} of {} operators counted, the others have dynamic shapes", outcomes.len() - open.len(), outcomes.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(open.len() * 10 < outcomes.len(), "{open:#?}");
}
