use super::fingerprint;
use crate::new_context;
use crate::tasks::entry;
use divi_dialect::Operation;
use melior::ir::Module;
use std::fmt::Write;

/// Returns the fingerprint of a module's main function.
fn of(text: &str) -> Option<String> {
    let context = new_context();
    context.set_allow_unregistered_dialects(true);
    let module = Module::parse(&context, text).expect("is a module");
    let parsed = Operation::from(&module);
    fingerprint(parsed, entry(parsed).expect("has a main"))
}

fn body(returned: &str, lines: &[&str]) -> String {
    let results = vec!["tensor<4xf32>"; returned.split(", ").count()].join(", ");
    let lines = lines.join("\n");
    format!(
        "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: tensor<i1>) -> ({results}) {{
           {lines}
           return {returned} : {results}
         }}"
    )
}

const RELU: &str = r#"%0 = "onnx.Relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>"#;
const ABS: &str = r#"%1 = "onnx.Abs"(%y) : (tensor<4xf32>) -> tensor<4xf32>"#;
const SUB: &str = r#"%2 = "onnx.Sub"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"#;

#[test]
fn order_names_and_costs_are_not_included() {
    let model = of(&body("%2", &[RELU, ABS, SUB]));
    assert_eq!(model.as_ref().map(String::len), Some(16));
    assert_eq!(model, of(&body("%2", &[ABS, RELU, SUB])));
    let named = r#"%0 = "onnx.Relu"(%x) {onnx_node_name = "r", divi.flops = 4 : i64, divi.start = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>"#;
    assert_eq!(model, of(&body("%2", &[named, ABS, SUB])));
    let more = r#"%w = onnx.Constant dense<1.0> : tensor<4xf32>"#;
    assert_eq!(model, of(&body("%2", &[RELU, more, ABS, SUB])), "unused constants are not included");
}

#[test]
fn clusters_stages_and_transfers_are_transparent() {
    let model = of(&body("%2", &[RELU, ABS, SUB]));
    let cluster = r#"%0, %1 = divi.cluster "pair"(%x, %y : tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
        %p = "onnx.Abs"(%b) : (tensor<4xf32>) -> tensor<4xf32>
        %q = "onnx.Relu"(%a) : (tensor<4xf32>) -> tensor<4xf32>
        divi.yield %q, %p : tensor<4xf32>, tensor<4xf32>
      }"#;
    assert_eq!(model, of(&body("%2", &[cluster, SUB])));
    let stages = |operands: &str| {
        let launch = format!(
            r#"%t = divi.transfer %x from @cpu0 to @gpu0 : tensor<4xf32>
               %0 = divi.launch @relu(%t) on @gpu0 : (tensor<4xf32>) -> tensor<4xf32>
               %b = divi.transfer %0 from @gpu0 to @cpu0 : tensor<4xf32>
               %2 = divi.launch @rest({operands}) on @cpu0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"#
        );
        let stages = r#"
            divi.device @cpu0 {kind = "cpu", memory = 1000 : i64}
            divi.device @gpu0 {kind = "cuda", memory = 1000 : i64}
            func.func private @relu(%a: tensor<4xf32>) -> tensor<4xf32> {
              %r = "onnx.Relu"(%a) : (tensor<4xf32>) -> tensor<4xf32>
              return %r : tensor<4xf32>
            }
            func.func private @rest(%r: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
              %a = "onnx.Abs"(%y) : (tensor<4xf32>) -> tensor<4xf32>
              %s = "onnx.Sub"(%r, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
              return %s : tensor<4xf32>
            }"#;
        of(&format!("{stages}\n{}", body("%2", &[&launch])))
    };
    assert_eq!(model, stages("%b, %y"));
    assert_ne!(model, stages("%y, %b"));
}

#[test]
fn changes_of_the_computation_change_the_fingerprint() {
    let swapped = r#"%2 = "onnx.Sub"(%1, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"#;
    let other = r#"%0 = "onnx.Neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>"#;
    let argument = r#"%0 = "onnx.Relu"(%y) : (tensor<4xf32>) -> tensor<4xf32>"#;
    let leaky = |alpha: &str| {
        format!(r#"%0 = "onnx.LeakyRelu"(%x) {{alpha = {alpha} : f32}} : (tensor<4xf32>) -> tensor<4xf32>"#)
    };
    let all = [
        of(&body("%2", &[RELU, ABS, SUB])),
        of(&body("%2", &[RELU, ABS, swapped])),
        of(&body("%2", &[other, ABS, SUB])),
        of(&body("%2", &[argument, ABS, SUB])),
        of(&body("%2", &[&leaky("0.1"), ABS, SUB])),
        of(&body("%2", &[&leaky("0.2"), ABS, SUB])),
        of(&body("%0, %1", &[RELU, ABS])),
        of(&body("%1, %0", &[RELU, ABS])),
        // The same results, with dead operators.
        of(&body("%0, %1", &[RELU, ABS, SUB])),
        of(&body("%0, %1", &[RELU, ABS, SUB, &SUB.replace("%2", "%3")])),
    ];
    all_different(&all);
}

#[test]
fn constants_are_identified_by_their_elements() {
    let with = |value: &str| {
        let constant = format!("%w = onnx.Constant {value} : tensor<4xf32>");
        of(&body("%0", &[&constant, r#"%0 = "onnx.Add"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"#]))
    };
    let all = [
        with("dense<1.0>"),
        with("dense<2.0>"),
        with("dense<[1.0, 2.0, 3.0, 4.0]>"),
        with("dense<[1.0, 2.0, 3.0, 5.0]>"),
        with(r#"#divi.external<"a/weights.bin", offset = 0, length = 16>"#),
        with(r#"#divi.external<"a/weights.bin", offset = 16, length = 16>"#),
        with(r#"#divi.external<"a/other.bin", offset = 0, length = 16>"#),
    ];
    all_different(&all);
    assert_eq!(
        all[4],
        with(r#"#divi.external<"b/weights.bin", offset = 0, length = 16>"#),
        "the folder does not matter"
    );
    assert_eq!(with("dense_resource<__elided__>"), None);
}

#[test]
fn branches_include_values_from_outside() {
    let branch = |then: &str, read: &str| {
        let text = format!(
            r#"%2 = "onnx.If"(%c) ({{
                 %t = "onnx.{then}"({read}) : (tensor<4xf32>) -> tensor<4xf32>
                 %u = "onnx.Neg"(%t) : (tensor<4xf32>) -> tensor<4xf32>
                 "onnx.Yield"(%u) : (tensor<4xf32>) -> ()
               }}, {{
                 "onnx.Yield"(%1) : (tensor<4xf32>) -> ()
               }}) : (tensor<i1>) -> tensor<4xf32>"#
        );
        of(&body("%2", &[RELU, ABS, &text]))
    };
    all_different(&[branch("Exp", "%0"), branch("Exp", "%1"), branch("Log", "%0")]);
    assert_eq!(branch("Exp", "%0"), branch("Exp", "%0"));
}

#[test]
fn random_and_unknown_operators_include_their_names() {
    let random = |name: &str| {
        let text = format!(
            r#"%0 = "onnx.RandomNormalLike"(%x) {{onnx_node_name = "{name}"}} : (tensor<4xf32>) -> tensor<4xf32>"#
        );
        of(&body("%0", &[&text]))
    };
    assert_ne!(random("a"), random("b"));
    let unknown = |name: &str| {
        let text = format!(r#"%0 = "other.op"(%x) {{onnx_node_name = "{name}"}} : (tensor<4xf32>) -> tensor<4xf32>"#);
        of(&body("%0", &[&text]))
    };
    assert_ne!(unknown("a"), unknown("b"));
}

#[test]
fn long_chain_is_hashed_in_linear_time() {
    let chain = |last: &str| {
        let mut text = "%0 = \"onnx.Relu\"(%x) : (tensor<4xf32>) -> tensor<4xf32>".to_owned();
        for i in 1..100_000 {
            let op = if i == 99_999 { last } else { "Add" };
            let before = if i > 1 { i - 2 } else { 0 };
            // Two uses of each value: hashing along every path would take exponential time.
            write!(
                text,
                "\n%{i} = \"onnx.{op}\"(%{}, %{before}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
                i - 1
            )
            .expect("strings grow");
        }
        of(&body("%99999", &[&text]))
    };
    assert_ne!(chain("Add"), chain("Mul"));
}

fn all_different(all: &[Option<String>]) {
    for (i, one) in all.iter().enumerate() {
        assert!(one.is_some());
        assert!(!all[..i].contains(one), "{i} is the same as one before");
    }
}
