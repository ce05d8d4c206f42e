//! Compiles every node test case of the onnx package into a bundle, runs it with one thread and with two, and compares the
//! outputs with the case's data.
//!
//! Lists say which cases are not right, a reason a line, in `onnx_run/unsupported.txt`; which are only if the inputs that
//! decide what an operator does (shapes, axes, …) are constants, in `constants.txt`; and which only as far as ONNX's own
//! runner asks, in `loose.txt`. A line that nothing needs any more fails the test.
//!
//! One of so many cases runs ([`SAMPLE`]), and all of them with `DIVI_ALL=1`. `DIVI_CASES=GLOB` runs only some cases and prints what is wrong with them, `DIVI_VERBOSE=1` prints that of all, and
//! `DIVI_LIST=FOLDER` writes the three lists as they would have to be.

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

/// One of so many cases runs where `DIVI_ALL` is not set: compiling all takes five minutes.
const SAMPLE: usize = 4;

#[test]
fn node_cases_compute_what_they_expect() {
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
        "{right} of {total} right: {} with shapes and the like as constants, {} only as far as ONNX's runner asks",
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
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// A list of cases, and why one would be on it.
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
    /// Some cases alone say nothing of lines for others.
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

/// The lines of a list behind those with which it begins now, those with one reason together.
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

/// What a child process does: the cases that the parent names, one by one.
#[test]
#[ignore = "the other test runs it, in processes of its own"]
fn child() {
    workers::serve(env!("CARGO_TARGET_TMPDIR"));
}
