//! Graphs of the tables: those in `test/problems` with a pipeline view.

use std::fs;

use divi_planner::Problem;
use divi_planner::units::Micros;

use super::Settings;
use crate::files::read;

/// Graphs like the paper's synthetic ones, and graphs of models.
const REGAL: &str = "test/problems/regal";
const MODELS: &str = "test/problems/msr";

/// Selection of graphs.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    First(usize),
    Named(String),
}

impl Choice {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(count) if count > 0 => Ok(Self::First(count)),
            Err(_) if !text.is_empty() => Ok(Self::Named(text.to_owned())),
            _ => Err("must be a positive number, or a part of a name".to_owned()),
        }
    }
}

pub(super) fn graphs(settings: &Settings) -> Result<Vec<Problem>, String> {
    let graphs = match settings.graphs.as_ref().unwrap_or(&Choice::First(usize::MAX)) {
        Choice::First(count) => {
            let mut graphs = folder(REGAL, "")?;
            // Kinds and sizes alternate with the seed, so that the first few graphs are of all kinds.
            graphs.sort_by_key(|problem| seed(&problem.name));
            graphs.truncate(*count);
            graphs
        }
        Choice::Named(name) => [folder(REGAL, name)?, folder(MODELS, name)?].concat(),
    };
    if graphs.is_empty() { Err("no graph matches".to_owned()) } else { Ok(graphs) }
}

/// Returns the problems of a folder whose names contain a word and that have a pipeline view, sorted by name.
fn folder(folder: &str, word: &str) -> Result<Vec<Problem>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.strip_suffix(".json").is_some_and(|name| name.contains(word)));
    names.sort();
    let problems = names.iter().map(|name| read(&format!("{folder}/{name}")));
    problems.filter(|problem| problem.as_ref().map_or(true, |problem| problem.mtpp.is_some())).collect()
}

/// Returns the number behind the last `_s`.
fn seed(name: &str) -> Option<u64> {
    name.rsplit_once("_s").and_then(|(_, seed)| seed.parse().ok())
}

/// Lemma 3.3: the maximum of the longest task and the average work of a block.
pub(super) fn simple_bound(problem: &Problem, k: u32) -> Micros {
    let work: &[Micros] = problem.mtpp.as_ref().map_or(&[], |view| &view.work);
    work.iter().copied().fold(work.iter().sum::<Micros>() / f64::from(k), Micros::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_numbers_or_names() {
        assert_eq!(Choice::parse("12"), Ok(Choice::First(12)));
        assert_eq!(Choice::parse("WS_n75"), Ok(Choice::Named("WS_n75".to_owned())));
        assert!(Choice::parse("0").is_err() && Choice::parse("").is_err());
        assert_eq!((seed("regal_SBM_n149_s19"), seed("msr_tp_layer")), (Some(19), None));
    }
}
