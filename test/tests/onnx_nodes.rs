//! Imports every node test case of the onnx package and compares the types of the results with those of the case's data.
//!
//! Unsupported cases are listed in `onnx_nodes/unsupported.txt` with reasons; a line that matches no failure fails the test.
//! `DIVI_VERBOSE=1` also lists the cases whose shapes are known from declarations only.

use divi_onnx::TensorType;
use divi_passes::import::Options;
use divi_test::{
    exceptions::Exceptions,
    node_cases::{Category, NodeCase, for_each_case, node_cases},
};
use melior::Context;
use std::{collections::BTreeMap, path::Path};

/// Precision of the inferred types compared with the case's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    /// Every result has exactly the expected type.
    Exact,
    /// No result contradicts the expected type, but some dimension is dynamic.
    Open,
}

/// Result of one case.
struct Outcome {
    declared: Result<Precision, String>,
    stripped: Result<Precision, String>,
}

impl Outcome {
    /// Returns the failure of a case, if any. Plain cases must have the exact types; the others must only be imported.
    fn complaint(&self, category: Category) -> Option<String> {
        match (&self.declared, &self.stripped) {
            (Err(message), _) => Some(message.clone()),
            (_, Err(message)) => Some(format!("without declared shapes: {message}")),
            (Ok(Precision::Open), _) if category == Category::Plain => Some("the shape of a result is dynamic".into()),
            _ => None,
        }
    }
}

#[test]
fn node_cases_are_imported_with_the_right_types() {
    let cases = node_cases(env!("CARGO_TARGET_TMPDIR"));
    let outcomes = for_each_case(&cases, |context, case| Outcome {
        declared: import_one(context, &case.model(), case),
        stripped: import_one(context, &case.stripped_model(), case),
    });

    let plain = || cases.iter().zip(&outcomes).filter(|(case, _)| case.category == Category::Plain);
    let (mut right, mut consistent, mut exact) = (0, 0, 0);
    for (_, outcome) in plain() {
        right += usize::from(outcome.declared == Ok(Precision::Exact));
        consistent += usize::from(outcome.stripped.is_ok());
        exact += usize::from(outcome.stripped == Ok(Precision::Exact));
    }
    let total = plain().count();
    let share = |count: usize| format!("{count} of {total} ({:.1} %)", 100.0 * count as f64 / total as f64);
    println!("plain cases: {} exact", share(right));
    println!("plain cases, without declared shapes: {} consistent, {} exact", share(consistent), share(exact));
    let mut imported: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (case, outcome) in cases.iter().zip(&outcomes) {
        let (good, all) = imported.entry(format!("{:?}", case.category)).or_default();
        *good += usize::from(outcome.declared.is_ok());
        *all += 1;
    }
    for (category, (good, all)) in imported {
        println!("{category}: {good} of {all} are imported");
    }
    if std::env::var_os("DIVI_VERBOSE").is_some() {
        for (case, _) in plain().filter(|(_, outcome)| outcome.stripped == Ok(Precision::Open)) {
            println!("dynamic without declared shapes: {}", case.name);
        }
    }

    let unsupported = Exceptions::parse("unsupported.txt", include_str!("onnx_nodes/unsupported.txt"));
    let verdicts = cases.iter().zip(&outcomes).map(|(case, outcome)| {
        let complaint = outcome.complaint(case.category);
        (&case.name[..], complaint.map(|message| format!("({:?}) {message}", case.category)))
    });
    let complaints = unsupported.complaints(verdicts);
    assert!(complaints.is_empty(), "{} failures:\n{}", complaints.len(), complaints.join("\n"));
}

fn import_one(context: &Context, path: &Path, case: &NodeCase) -> Result<Precision, String> {
    let (module, _) = divi_test::import_file(context, path, Options::default()).map_err(|error| error.to_string())?;
    divi_test::verify(context, &module)?;
    let types = divi_test::result_types(&module);
    if types.len() != case.outputs.len() {
        return Err(format!("has {} results; expected {}", types.len(), case.outputs.len()));
    }
    let mut precision = Precision::Exact;
    for (i, (&actual, expected)) in types.iter().zip(&case.outputs).enumerate() {
        let found: Option<TensorType> = divi_dialect::tensor_type_of(actual);
        match (found, expected) {
            (Some(found), Some(expected)) if found == *expected => {}
            (Some(found), Some(expected)) if found.unify(expected).is_some() => precision = Precision::Open,
            (None, None) => {}
            (_, Some(expected)) => return Err(format!("result {i} is {actual}, not {expected}")),
            (Some(found), None) => return Err(format!("result {i} is {found}, not a sequence or optional")),
        }
    }
    Ok(precision)
}
