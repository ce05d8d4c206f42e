//! Rejected plans.

use divi_planner::{Plan, Problem, Terms, verify_under};

/// Asserts that the verifier rejects a plan under the problem's own terms, with a message.
#[track_caller]
pub(crate) fn refuses(problem: &Problem, plan: &Plan, expected: &str) {
    refuses_under(problem, plan, &Terms::default(), expected);
}

/// Asserts that the verifier rejects a plan under other terms than the problem's, with a message.
#[track_caller]
pub(crate) fn refuses_under(problem: &Problem, plan: &Plan, terms: &Terms, expected: &str) {
    match verify_under(problem, plan, terms) {
        Ok(value) => panic!("accepted with value {value}"),
        Err(error) => assert!(error.to_string().contains(expected), "says\n{error}\ninstead of\n{expected}"),
    }
}
