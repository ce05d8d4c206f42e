//! Compiles every node test case of the onnx package into a bundle, runs it with one thread and with two, and compares the
//! outputs with the case's data.
//!
//! Expected failures are listed with reasons in `onnx_run/unsupported.txt`; cases that require constant parameters (shapes,
//! axes, …) in `constants.txt`; cases that only meet the tolerance of ONNX's own runner in `loose.txt`. A line that matches no
//! case fails the test.
//!
//! One case in [`SAMPLE`] runs, and all of them with `DIVI_ALL=1`. `DIVI_CASES=GLOB` runs only matching cases and prints their
//! failures, `DIVI_VERBOSE=1` prints all failures, and `DIVI_LIST=FOLDER` writes updated versions of the three lists.

#[path = "onnx_run/case.rs"]
mod case;
#[path = "onnx_run/workers.rs"]
mod workers;

use case::Outcome;
use divi_test::{
    exceptions::{Exceptions, matches},
    node_cases::{NodeCase, node_cases},
};
use std::{collections::BTreeMap, env, fmt::Write, fs, path::Path};

/// Without `DIVI_ALL`, one case in this many runs: compiling all takes five minutes.
const SAMPLE: usize = 6;

#[test]
fn node_cases_compute_the_expected_outputs() {
    let mut cases = node_cases(env!("CARGO_TARGET_TMPDIR"));
    let total = cases.len();
    let filter = env::var("DIVI_CASES").ok();
    let is_listing = env::var_os("DIVI_LIST").is_some();
    let is_whole = filter.is_some() || is_listing || env::var_os("DIVI_ALL").is_some();
    let mut index = 0..;
    cases.retain(|case| match &filter {
        Some(pattern) => matches(pattern, &case.name),
        None => index.next().is_some_and(|index| is_whole || index % SAMPLE == 0),
    });
    let names: Vec<_> = cases.iter().map(|case| &case.name[..]).collect();
    let outcomes = workers::run(&names, env!("CARGO_TARGET_TMPDIR"));

    let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
    let right = count(|outcome| outcome.problem.is_none());
    println!(
        "{right} of {total} correct: {} with parameters as constants, {} only within the tolerance of ONNX's runner",
        count(|outcome| outcome.problem.is_none() && outcome.constants.is_some()),
        count(|outcome| outcome.loose.is_some())
    );
    if filter.is_some() || env::var_os("DIVI_VERBOSE").is_some() {
        for (case, problem) in
            cases.iter().zip(&outcomes).filter_map(|(case, outcome)| Some((case, outcome.problem.as_ref()?)))
        {
            println!("{}: {problem}", case.name);
        }
    }
    if let Some(folder) = env::var_os("DIVI_LIST") {
        for List { file, text, reason } in LISTS {
            let text = list(text, &cases, &outcomes, reason);
            fs::write(Path::new(&folder).join(file), text).expect("DIVI_LIST names a folder");
        }
        return;
    }
    let is_part = filter.is_some() || !is_whole;
    let complaints: Vec<_> = LISTS.iter().flat_map(|list| list.complaints(&cases, &outcomes, is_part)).collect();
    assert!(complaints.is_empty(), "{} failures:\n{}", complaints.len(), complaints.join("\n"));
}

/// A list of expected failures, and the function that returns a case's reason to be on it.
struct List {
    file: &'static str,
    text: &'static str,
    reason: fn(&Outcome) -> Option<&String>,
}

const LISTS: [List; 3] = [
    List {
        file: "unsupported.txt",
        text: include_str!("onnx_run/unsupported.txt"),
        reason: |outcome| outcome.problem.as_ref(),
    },
    List {
        file: "constants.txt",
        text: include_str!("onnx_run/constants.txt"),
        reason: |outcome| outcome.constants.as_ref().filter(|_| outcome.problem.is_none()),
    },
    List { file: "loose.txt", text: include_str!("onnx_run/loose.txt"), reason: |outcome| outcome.loose.as_ref() },
];

impl List {
    /// Returns unexpected failures; with a subset of the cases (`are_some`), unused lines are not reported.
    fn complaints(&self, cases: &[NodeCase], outcomes: &[Outcome], are_some: bool) -> Vec<String> {
        let exceptions = Exceptions::parse(self.file, self.text);
        let verdicts =
            cases.iter().zip(outcomes).map(|(case, outcome)| (&case.name[..], (self.reason)(outcome).cloned()));
        match are_some {
            true => exceptions.complaints_of_some(verdicts),
            false => exceptions.complaints(verdicts),
        }
    }
}

/// Returns the header of a list, followed by the current failures grouped by reason.
fn list(now: &str, cases: &[NodeCase], outcomes: &[Outcome], reason: fn(&Outcome) -> Option<&String>) -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (case, outcome) in cases.iter().zip(outcomes) {
        if let Some(reason) = reason(outcome) {
            by_reason.entry(reason).or_default().push(&case.name);
        }
    }
    let mut text: String =
        now.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    for (reason, names) in by_reason {
        for name in names {
            let _ = writeln!(text, "{name}: {reason}");
        }
    }
    text
}

/// Entry point of the child processes: runs the cases that the parent sends.
#[test]
#[ignore = "started by the other test as a child process"]
fn child() {
    workers::serve(env!("CARGO_TARGET_TMPDIR"));
}
