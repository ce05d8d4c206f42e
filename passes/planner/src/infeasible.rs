//! Remedies: changes that make an infeasible problem feasible.
//!
//! Checks and solvers report the violated constraints; this module finds the smallest changes that remove them. Each
//! remedy was tried: a cheap algorithm finds a plan of the changed problem. The search for the smallest changes is
//! greedy; each remedy is irreducible as far as that algorithm can tell.

mod remedy;
mod smallest;
mod trials;

use crate::model::error::{Error, Finding};
use crate::model::options::Options;
use crate::model::plan::Objective;
use crate::model::problem::Problem;

pub use remedy::Remedy;
use smallest::Search;

/// Maximum number of remedies in a message.
const SHOWN: usize = 4;

/// Returns changes to an infeasible problem, or to its options, each of which makes it feasible. Empty if none was found:
/// with a limit in seconds, the search takes about one second.
pub fn remedies(problem: &Problem, objective: Objective, options: &Options) -> Vec<Remedy> {
    Search::new(problem, objective, options).remedies()
}

/// Adds remedies to an error that reports no plan.
pub(crate) fn explain(problem: &Problem, objective: Objective, options: &Options, error: Error) -> Error {
    let ways = match &error {
        // Remedies are for devices, not for the machines of a view.
        Error::Infeasible(_) | Error::NotFound(_) if objective == Objective::Pipeline && problem.edge.is_some() => {
            Vec::new()
        }
        Error::Infeasible(_) | Error::NotFound(_) => remedies(problem, objective, options),
        _ => return error,
    };
    let ways: Vec<String> = ways.iter().take(SHOWN).map(|remedy| remedy.words(problem)).collect();
    let advice = (!ways.is_empty()).then(|| format!("there is a plan {}", ways.join(", or ")));
    match error {
        Error::Infeasible(mut findings) => {
            match (findings.as_mut_slice(), advice) {
                (_, None) => {}
                ([only], Some(advice)) => only.message += &format!("; {advice}"),
                (_, Some(advice)) => findings.push(Finding::new("remedy", advice)),
            }
            Error::Infeasible(findings)
        }
        Error::NotFound(message) => {
            let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
            Error::NotFound(format!("{message}; this does not prove that there is no plan{advice}"))
        }
        other => other,
    }
}
