//! Imports every plain node test case of the onnx package with its data as constants, and compares each output that is
//! folded to a constant with the expected data.
//!
//! Cases whose data is not the only correct result are listed in `onnx_folding/incomparable.txt` with reasons.
//! `DIVI_VERBOSE=1` also lists the cases with outputs that are not folded or not bitwise equal.

use divi_passes::import::Options;
use divi_test::{
    exceptions::Exceptions,
    node_cases::{Category, NodeCase, for_each_case, node_cases},
    numbers,
};
use melior::Context;

/// Minimum number of folded outputs: the current number minus a few that a new version of the cases may lose. Without it, a
/// regression would go unnoticed, since only folded outputs are compared.
const MIN_FOLDED: usize = 950;

/// Result of one case.
#[derive(Default)]
struct Outcome {
    outputs: usize,
    folded: usize,
    /// Folded outputs that are bitwise equal to the expected ones.
    exact: usize,
    complaint: Option<String>,
}

#[test]
fn folded_outputs_match_the_node_cases() {
    let cases = node_cases(env!("CARGO_TARGET_TMPDIR"));
    let cases: Vec<_> = cases.into_iter().filter(|case| case.category == Category::Plain).collect();
    let outcomes = for_each_case(&cases, fold_one);

    let sum = |count: fn(&Outcome) -> usize| outcomes.iter().map(count).sum::<usize>();
    let folded = sum(|outcome| outcome.folded);
    println!(
        "{folded} of {} outputs of {} cases are folded and compared, {} are bitwise equal",
        sum(|outcome| outcome.outputs),
        cases.len(),
        sum(|outcome| outcome.exact)
    );
    if std::env::var_os("DIVI_VERBOSE").is_some() {
        for (case, outcome) in cases.iter().zip(&outcomes) {
            if outcome.folded < outcome.outputs {
                println!("not folded: {}", case.name);
            }
            if outcome.exact < outcome.folded {
                println!("not bitwise equal: {}", case.name);
            }
        }
    }

    let exceptions = Exceptions::parse("incomparable.txt", include_str!("onnx_folding/incomparable.txt"));
    let complaints =
        exceptions.complaints(cases.iter().zip(outcomes).map(|(case, outcome)| (&case.name[..], outcome.complaint)));
    assert!(complaints.is_empty(), "{} failures:\n{}", complaints.len(), complaints.join("\n"));
    assert!(folded >= MIN_FOLDED, "{folded} outputs are folded; expected at least {MIN_FOLDED}");
}

fn fold_one(context: &Context, case: &NodeCase) -> Outcome {
    let path = case.constant_model();
    let module = match divi_test::import_file(context, &path, Options::default()) {
        Ok((module, _)) => module,
        Err(error) => return Outcome { complaint: Some(error.to_string()), ..Outcome::default() },
    };
    let folder = path.parent().expect("a model is in a folder");
    let constants = divi_test::returned_constants(&module, folder);
    let mut outcome = Outcome { outputs: constants.len(), ..Outcome::default() };
    if constants.len() != case.outputs.len() {
        outcome.complaint = Some(format!("has {} results, not {}", constants.len(), case.outputs.len()));
        return outcome;
    }
    for (i, constant) in constants.iter().enumerate() {
        let Some(constant) = constant else { continue };
        let expected = case.expected(i);
        outcome.folded += 1;
        outcome.exact += usize::from(*constant == expected);
        if let Err(message) = numbers::compare(constant, &expected) {
            outcome.complaint.get_or_insert_with(|| format!("output {i}: {message}"));
        }
    }
    outcome
}
