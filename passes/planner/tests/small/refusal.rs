//! Plans that must not be accepted.

use divi_planner::{Plan, Problem, verify};

/// The verifier refuses a plan, and says so.
#[track_caller]
pub(crate) fn refuses(problem: &Problem, plan: &Plan, expected: &str) {
    match verify(problem, plan) {
        Ok(value) => panic!("accepted with value {value}"),
        Err(error) => assert!(error.to_string().contains(expected), "says\n{error}\ninstead of\n{expected}"),
    }
}
