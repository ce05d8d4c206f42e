//! The table against ONNX's schemas, and the list of features that operators lack.

use super::{OTHER_FORMS, Op};
use crate::schema;

/// Operators of ONNX that the table leaves out, and why. A model with one of them is imported; they are opaque to all passes.
const LEFT_OUT: &[(&str, &str)] = &[
    ("Optional", "values that may be absent when a model runs have no static type"),
    ("StringConcat", "strings are not tensors of numbers: no back end has them"),
    ("StringSplit", "as StringConcat, and the shape of the result depends on data"),
];

/// The checked-in list, relative to this crate.
const LACKING: &str = "src/operators/lacking.txt";

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
fn every_operator_of_onnx_has_a_row_or_a_reason() {
    for schema in schema::all() {
        let is_left_out = LEFT_OUT.iter().any(|(name, _)| *name == schema.name);
        assert_eq!(Op::from_name(schema.name).is_none(), is_left_out, "{}", schema.name);
    }
    for op in Op::all() {
        assert_eq!(schema::find(op.name()).is_none(), OTHER_FORMS.contains(op), "{op}");
    }
    assert!(LEFT_OUT.iter().all(|(name, _)| schema::find(name).is_some()));
}

#[test]
fn columns_agree() {
    for op in Op::all() {
        // What is opaque to inference is opaque to every later phase.
        if !op.is_inferred() {
            let later = (op.fold_rule(), op.fusion_role(), op.batch_rule(), op.work_rule(), op.lowering());
            assert_eq!(later, (None, None, None, None, None), "{op}");
        }
        // A fast kernel serves some types and shapes only; the plain one serves the others.
        assert!(op.lowering().is_some() || op.cpu_kernel().is_none() && op.cuda_kernel().is_none(), "{op}");
        assert!(!op.is_random() || op.fusion_role().is_none(), "{op}");
        assert_eq!(op.exported().exported(), op.exported());
    }
}

/// Features that each operator lacks, one line an operator that lacks any.
fn lacking() -> String {
    let mut text = "\
# Features that operators lack. Generated from the table: DIVI_UPDATE=1 cargo test -p divi-onnx operators
# inference: opaque to all passes. fusion: never in a cluster. batch: runs once per input of a batch. work: cost is a guess.
# lowering: not compiled. cpu, cuda: no fast kernel on that back end.
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
fn the_list_of_lacking_features_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(LACKING);
    if std::env::var_os("DIVI_UPDATE").is_some() {
        std::fs::write(&path, lacking()).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap();
    assert!(
        checked_in == lacking(),
        "{LACKING} differs from the table: look at the difference after DIVI_UPDATE=1 cargo test -p divi-onnx operators"
    );
}
