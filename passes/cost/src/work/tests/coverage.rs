//! Every operator that inference knows has a class.

use super::super::{Class, class};
use divi_onnx::{infer, schema};

/// Operators of the dialect that have no schema of their own in the newest opset.
const OTHER_FORMS: &[&str] = &[
    "BatchNormalizationInferenceMode",
    "MaxPoolSingleOut",
    "PadV11",
    "PadV13",
    "PadV18",
    "RMSLayerNormalization",
    "ReduceMaxV18",
    "ReduceMinV18",
    "Scatter",
    "SplitV13",
    "Upsample",
];

/// Operators that behave like no class, and why.
const UNCLASSIFIED: &[(&str, &str)] = &[
    ("DFT", "a fast Fourier transform has a memory access pattern of its own"),
    ("Det", "elimination is serial in the rows"),
    ("ImageDecoder", "decompression depends on the format"),
    ("NonMaxSuppression", "sorting, then a loop that the data decide"),
    ("STFT", "as DFT"),
    ("TfIdfVectorizer", "look-ups in a dictionary"),
    ("Unique", "sorting"),
];

fn known() -> impl Iterator<Item = &'static str> {
    let newest = schema::all().iter().map(|schema| schema.name).filter(|op| infer::knows(op));
    newest.chain(OTHER_FORMS.iter().copied())
}

#[test]
fn every_known_operator_has_a_class() {
    assert!(known().count() > 180, "the table is not empty");
    for op in known() {
        assert!(infer::knows(op), "{op}");
        let listed = UNCLASSIFIED.iter().any(|(other, _)| *other == op);
        assert_eq!(class(op) == Class::Other, listed, "{op}");
    }
}

#[test]
fn every_known_operator_has_a_rule() {
    for op in known() {
        assert!(super::super::rule(op).is_some(), "{op}");
    }
}

#[test]
fn unknown_operators_are_other() {
    for op in ["FancyOp", "", "conv"] {
        assert_eq!(class(op), Class::Other);
    }
}
