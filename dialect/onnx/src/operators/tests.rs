//! Tests of the table against ONNX's schemas, and of the list of missing features.

use super::{DIALECT_ONLY, Op};
use crate::schema;

/// Operators of ONNX that are not in the table, with the reason. Models with them can be imported; they are opaque to all passes.
const OMITTED: &[(&str, &str)] = &[
    ("Optional", "values that may be absent at run time have no static type"),
    ("StringConcat", "no back end supports strings"),
    ("StringSplit", "no back end supports strings, and the shape of the result depends on data"),
];

/// Path of the checked-in list, relative to this crate.
const UNSUPPORTED: &str = "src/operators/unsupported.txt";

#[test]
fn rows_are_sorted_and_found() {
    assert!(Op::all().is_sorted_by_key(|op| op.name()));
    assert!(Op::all().is_sorted());
    for &op in Op::all() {
        assert_eq!(Op::from_name(op.name()), Some(op));
        assert_eq!(Op::from_operation(op.operation_name()), Some(op));
    }
    for name in ["", "conv", "Conv2", "NoValue", "Return", "Custom"] {
        assert_eq!(Op::from_name(name), None);
    }
    assert_eq!([Op::from_operation("Conv"), Op::from_operation("divi.Conv")], [None, None]);
}

#[test]
fn all_onnx_operators_have_a_row_or_a_reason() {
    for schema in schema::all() {
        let is_omitted = OMITTED.iter().any(|(name, _)| *name == schema.name);
        assert_eq!(Op::from_name(schema.name).is_none(), is_omitted, "{}", schema.name);
    }
    for op in Op::all() {
        assert_eq!(schema::find(op.name()).is_none(), DIALECT_ONLY.contains(op), "{op}");
    }
    assert!(OMITTED.iter().all(|(name, _)| schema::find(name).is_some()));
}

#[test]
fn columns_agree() {
    for op in Op::all() {
        // Operators that are opaque to inference are opaque to all later phases.
        if !op.is_inferred() {
            let later = (op.fold_rule(), op.fusion_role(), op.batch_rule(), op.work_rule(), op.lowering());
            assert_eq!(later, (None, None, None, None, None), "{op}");
        }
        // Optimized kernels support only some types and shapes; the plain kernel is the fallback.
        assert!(op.lowering().is_some() || op.cpu_kernel().is_none() && op.cuda_kernel().is_none(), "{op}");
        assert!(!op.is_random() || op.fusion_role().is_none(), "{op}");
        assert_eq!(op.onnx_op().onnx_op(), op.onnx_op());
    }
}

/// Returns the list of missing features, one line per operator that lacks any.
fn unsupported() -> String {
    let mut text = "\
# Features that operators lack. Generated from the table: DIVI_UPDATE=1 cargo test -p divi-onnx operators
# inference: opaque to all passes. fusion: never in a cluster. batch: runs once per input of a batch. work: cost is a default.
# lowering: not compiled. cpu, cuda: no optimized kernel on that back end.
"
    .to_owned();
    for op in Op::all() {
        let features = [
            ("inference", op.is_inferred()),
            ("fusion", op.fusion_role().is_some()),
            ("batch", op.batch_rule().is_some()),
            ("work", op.work_rule().is_some()),
            ("lowering", op.lowering().is_some()),
            ("cpu", op.cpu_kernel().is_some()),
            ("cuda", op.cuda_kernel().is_some()),
        ];
        let missing: Vec<_> = features.iter().filter(|(_, has)| !has).map(|(feature, _)| *feature).collect();
        if !missing.is_empty() {
            text += &format!("{op}: {}\n", missing.join(", "));
        }
    }
    text
}

#[test]
fn list_of_lacking_features_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(UNSUPPORTED);
    if std::env::var_os("DIVI_UPDATE").is_some() {
        std::fs::write(&path, unsupported()).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap();
    assert!(
        checked_in == unsupported(),
        "{UNSUPPORTED} differs from the table: run DIVI_UPDATE=1 cargo test -p divi-onnx operators and review the difference"
    );
}
