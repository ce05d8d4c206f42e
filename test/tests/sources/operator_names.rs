//! Operator names occur in one table only (`dialect/onnx/src/operators/table.rs`): other sources use `Op`, not strings.

use crate::scan::{Allowed, check, code, quoted};
use divi_onnx::Op;

/// Sources that may quote operator names, with reasons. A folder stands for all files in it.
const ALLOWED: Allowed = &[
    ("dialect/onnx/src/schema_table.rs", "generated from ONNX's schemas, which identify operators by name"),
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
fn operator_names_occur_in_the_table_only() {
    let what = "quoted operator names; use `Op` instead";
    check(what, &[], ALLOWED, |_, text| quoted_operators(text));
}

/// Returns the operator names that a source quotes, with line numbers, outside comments and the tests at its end.
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
