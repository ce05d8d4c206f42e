//! Scales of random weights: derived from the consumers of a constant, also through views and clusters.

use divi_dialect::{ExternalAttribute, Operation, attr, tensor_type_of};
use divi_passes::export::Recipes;
use divi_runtime::random_weights::{Element, RandomConstant, Role};
use divi_test::{attribute, operation_name};
use std::collections::BTreeMap;

/// Returns the recipe of each constant of a module, or the reason why it has none, by file name.
fn recipes(text: &str) -> BTreeMap<String, Result<RandomConstant, String>> {
    let context = divi_test::context();
    let module = divi_test::parse(&context, text.as_bytes()).unwrap_or_else(|messages| panic!("{messages}"));
    let recipes = Recipes::of(Operation::from(&module));
    let mut found = BTreeMap::new();
    divi_test::walk(&module, &mut |operation| {
        if operation_name(operation) != "onnx.Constant" {
            return;
        }
        let value = attribute(operation, "value").expect("a constant has a value");
        let ty = attr::type_of(value);
        let external = ExternalAttribute::from_attribute(value).expect("all constants here are in files");
        let dtype = tensor_type_of(ty).expect("a constant is a tensor").dtype;
        found.insert(external.path().to_owned(), recipes.find(external, dtype));
    });
    found
}

/// Checks the roles of constants. Each is `(name, shape, role)`, in a file of that name, and is read by `body`.
fn check(constants: &[(&str, &str, Role)], body: &str) {
    let mut text = "func.func @main(%x: tensor<1x8x6x6xf32>, %m: tensor<4x8xf32>, %i: tensor<3xi64>) {\n".to_owned();
    for (name, ty, _) in constants {
        let (dims, element) = ty.rsplit_once('x').expect("types have a dimension");
        let bits: u64 = element.trim_start_matches(char::is_alphabetic).parse().expect("elements have a width");
        let length = dims.split('x').map(|dim| dim.parse::<u64>().expect("dimensions are numbers")).product::<u64>();
        let length = (length * bits).div_ceil(8);
        text += &format!(
            "%{name} = onnx.Constant #divi.external<\"{name}\", offset = 0, length = {length}> : tensor<{ty}>\n"
        );
    }
    text += body;
    text += "\nreturn\n}";
    let found = recipes(&text);
    for (name, ty, role) in constants {
        let recipe = found[*name].as_ref().unwrap_or_else(|message| panic!("{name} {message}"));
        let element = match ty.rsplit_once('x').map(|(_, element)| element) {
            Some("i8") => Element::Int { bits: 8, signed: true },
            Some("i32") => Element::Int { bits: 32, signed: true },
            Some("f16") => Element::F16,
            _ => Element::F32,
        };
        assert_eq!((recipe.element, (recipe.low, recipe.high)), (element, role.range(element)), "{name}");
        assert_eq!(recipe.key, format!("{name}@0"));
    }
}

#[test]
fn layers_are_scaled_by_their_fan_in() {
    check(
        &[
            ("conv", "16x8x3x3xf32", Role::Weight { fan_in: 72 }),
            ("bias", "16xf32", Role::Addend),
            ("deconv", "8x4x4x4xf32", Role::Weight { fan_in: 32 }),
            ("right", "8x5xf32", Role::Weight { fan_in: 8 }),
            ("left", "7x4xf32", Role::Weight { fan_in: 4 }),
            ("gemm", "5x8xf32", Role::Weight { fan_in: 8 }),
            ("vector", "8xf32", Role::Weight { fan_in: 8 }),
        ],
        r#"%none = "onnx.NoValue"() {value} : () -> none
        %0 = "onnx.Conv"(%x, %conv, %bias) : (tensor<1x8x6x6xf32>, tensor<16x8x3x3xf32>, tensor<16xf32>) -> tensor<1x16x4x4xf32>
        %1 = "onnx.ConvTranspose"(%x, %deconv, %none) {strides = [2, 2]} : (tensor<1x8x6x6xf32>, tensor<8x4x4x4xf32>, none) -> tensor<1x4x14x14xf32>
        %2 = "onnx.MatMul"(%m, %right) : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
        %3 = "onnx.MatMul"(%left, %m) : (tensor<7x4xf32>, tensor<4x8xf32>) -> tensor<7x8xf32>
        %4 = "onnx.Gemm"(%m, %gemm, %none) {transB = 1 : si64} : (tensor<4x8xf32>, tensor<5x8xf32>, none) -> tensor<4x5xf32>
        %5 = "onnx.MatMul"(%m, %vector) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>"#,
    );
}

#[test]
fn norms_lookups_and_arithmetic_have_different_roles() {
    check(
        &[
            ("scale", "8xf32", Role::Scale),
            ("shift", "8xf32", Role::Addend),
            ("mean", "8xf32", Role::Addend),
            ("variance", "8xf32", Role::Variance),
            ("gamma", "8xf32", Role::Scale),
            ("table", "9x8xf32", Role::Embedding),
            ("added", "8xf32", Role::Addend),
            ("factor", "8xf32", Role::Scale),
            ("slope", "8xf32", Role::Slope),
            ("spread", "8xf32", Role::Variance),
            ("other", "4x8xf32", Role::Unknown),
            // Ones that an exporter stored only once.
            ("shared", "8xf32", Role::Variance),
        ],
        r#"%none = "onnx.NoValue"() {value} : () -> none
        %0 = "onnx.BatchNormalizationInferenceMode"(%x, %scale, %shift, %mean, %variance) : (tensor<1x8x6x6xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x6x6xf32>
        %1:3 = "onnx.LayerNormalization"(%m, %gamma, %none) : (tensor<4x8xf32>, tensor<8xf32>, none) -> (tensor<4x8xf32>, none, none)
        %2 = "onnx.Gather"(%table, %i) : (tensor<9x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
        %3 = "onnx.Add"(%m, %added) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
        %4 = "onnx.Mul"(%factor, %m) : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
        %5 = "onnx.PRelu"(%m, %slope) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
        %6 = "onnx.Add"(%m, %spread) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
        %7 = "onnx.Sqrt"(%6) : (tensor<4x8xf32>) -> tensor<4x8xf32>
        %8 = "onnx.Max"(%m, %other) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
        %9 = "onnx.BatchNormalizationInferenceMode"(%x, %shared, %shift, %mean, %shared) : (tensor<1x8x6x6xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x6x6xf32>"#,
    );
}

#[test]
fn roles_are_found_through_views_and_clusters() {
    check(
        &[("turned", "5x8xf16", Role::Weight { fan_in: 8 }), ("inner", "8xf32", Role::Addend)],
        r#"%0 = "onnx.Transpose"(%turned) {perm = [1, 0]} : (tensor<5x8xf16>) -> tensor<8x5xf16>
        %1 = "onnx.Cast"(%0) {to = f32} : (tensor<8x5xf16>) -> tensor<8x5xf32>
        %2 = divi.cluster "matmul"(%m, %1, %inner : tensor<4x8xf32>, tensor<8x5xf32>, tensor<8xf32>) -> tensor<4x5xf32> {
        ^bb0(%a: tensor<4x8xf32>, %b: tensor<8x5xf32>, %c: tensor<8xf32>):
          %3 = divi.cluster "add"(%a, %c : tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
          ^bb0(%d: tensor<4x8xf32>, %e: tensor<8xf32>):
            %5 = "onnx.Add"(%d, %e) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
            divi.yield %5 : tensor<4x8xf32>
          }
          %4 = "onnx.MatMul"(%3, %b) : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
          divi.yield %4 : tensor<4x5xf32>
        }"#,
    );
}

#[test]
fn integer_weights_are_random_but_indices_are_not() {
    check(
        &[
            ("quantized", "8x5xi8", Role::Quantized),
            ("step", "5xf32", Role::QuantizationScale { fan_in: Some(8) }),
            ("zero", "5xi8", Role::ZeroPoint),
            ("bias", "5xi32", Role::Addend),
            ("unit", "5xf32", Role::QuantizationScale { fan_in: None }),
        ],
        r#"%none = "onnx.NoValue"() {value} : () -> none
        %0 = "onnx.DequantizeLinear"(%quantized, %step, %zero) {axis = 1 : si64} : (tensor<8x5xi8>, tensor<5xf32>, tensor<5xi8>) -> tensor<8x5xf32>
        %1 = "onnx.DequantizeLinear"(%bias, %unit, %none) {axis = 0 : si64} : (tensor<5xi32>, tensor<5xf32>, none) -> tensor<5xf32>
        %2 = "onnx.Gemm"(%m, %0, %1) : (tensor<4x8xf32>, tensor<8x5xf32>, tensor<5xf32>) -> tensor<4x5xf32>"#,
    );
    let text = r#"func.func @main(%x: tensor<9x8xf32>) {
      %indices = onnx.Constant #divi.external<"indices", offset = 0, length = 24> : tensor<3xi64>
      %0 = "onnx.Gather"(%x, %indices) : (tensor<9x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
      return
    }"#;
    let message = recipes(text)["indices"].clone().expect_err("indices cannot be random");
    assert!(message.contains("int64 elements") && message.contains("restore the file"), "{message}");
}
