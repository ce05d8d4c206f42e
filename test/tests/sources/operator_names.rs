//! Operators are named in one table (`dialect/onnx/src/operators/table.rs`): other sources have `Op`, not strings.

use crate::scan::{Allowed, check, code, quoted};
use divi_onnx::Op;

/// Sources that may quote the name of an operator, and why. A folder stands for all files in it.
const ALLOWED: Allowed = &[
    ("dialect/onnx/src/schema_table.rs", "generated from ONNX's schemas, which know operators by name"),
    (
        "passes/mlir/src/import/upgrade.rs",
        "translates operators of older opsets, some of which the dialect does not have",
    ),
    ("passes/mlir/src/import/upgrade", "as upgrade.rs"),
    ("passes/cost/src/model/json.rs", "names of cost classes, some of which are also names of operators"),
    ("passes/cost/src/pytorch/operators.rs", "names of PyTorch's modules, some of which are also names of operators"),
    ("passes/codegen/src/ops/recurrent", "names of activation functions, values of an attribute"),
];

#[test]
fn operators_are_named_in_the_table_alone() {
    let what = "quoted names of operators, where `Op` should be";
    check(what, &[], ALLOWED, |_, text| quoted_operators(text));
}

/// The operators whose names a source quotes, with the line, outside of comments and of the tests at its end.
fn quoted_operators(text: &str) -> Vec<String> {
    let operator = |text: &str| Op::from_name(text.strip_prefix("onnx.").unwrap_or(text));
    let named = |(number, line)| quoted(line).filter_map(operator).map(move |op| format!("{op} in line {number}"));
    code(text).flat_map(named).collect()
}

#[test]
fn quoted_names_are_found() {
    let text = "match op {\n    \"Conv\" | \"onnx.Relu\" => 1, // \"Add\"\n}\n#[cfg(test)]\nmod tests {\n\"Mul\"\n";
    assert_eq!(quoted_operators(text), ["Conv in line 2", "Relu in line 2"]);
}
