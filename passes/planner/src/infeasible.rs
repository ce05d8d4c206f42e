//! Why there is no plan, and what would make one possible.
//!
//! Checks and solvers say what stands in the way; here are the smallest changes after which nothing does. Each one that is
//! named was tried: the changed problem has a plan, by a cheap algorithm. Which changes are smallest is looked for greedily,
//! and none can be left out of those that are named together, as far as that algorithm tells.

mod remedy;
mod smallest;
mod trials;

use crate::model::error::{Error, Finding};
use crate::model::options::Options;
use crate::model::plan::Objective;
use crate::model::problem::Problem;

pub use remedy::Remedy;
use smallest::Search;

/// What is told apart from each other at most.
const SHOWN: usize = 4;

/// Changes to a problem without a plan, or to what is asked of it, each of which makes one possible. None where none was
/// found: with a limit in seconds there is about one second to look for them.
pub fn remedies(problem: &Problem, objective: Objective, options: &Options) -> Vec<Remedy> {
    Search::new(problem, objective, options).remedies()
}

/// Says, where there is no plan or none was found, what would help.
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
            Error::NotFound(format!("{message}; that is no proof that there is no plan{advice}"))
        }
        other => other,
    }
}
