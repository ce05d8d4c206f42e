//! The graphs of the tables: those with a pipeline view that ship with divi.

use std::fs;

use divi_planner::Problem;

use super::Settings;
use crate::files::read;

/// Like the paper's synthetic graphs, and from models.
const REGAL: &str = "test/problems/regal";
const MODELS: &str = "test/problems/msr";

/// Which graphs a table is about.
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
            _ => Err("must be a number from 1 on, or a part of a name".to_owned()),
        }
    }
}

pub(super) fn graphs(settings: &Settings) -> Result<Vec<Problem>, String> {
    let graphs = match settings.graphs.as_ref().unwrap_or(&Choice::First(usize::MAX)) {
        Choice::First(count) => {
            let mut graphs = folder(REGAL, "")?;
            // By seed kinds and sizes take turns, so that the first few are of every kind.
            graphs.sort_by_key(|problem| seed(&problem.name));
            graphs.truncate(*count);
            graphs
        }
        Choice::Named(name) => [folder(REGAL, name)?, folder(MODELS, name)?].concat(),
    };
    if graphs.is_empty() { Err("there is no such graph".to_owned()) } else { Ok(graphs) }
}

/// The problems of a folder whose names contain a word and that have the view, by name.
fn folder(folder: &str, word: &str) -> Result<Vec<Problem>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.strip_suffix(".json").is_some_and(|name| name.contains(word)));
    names.sort();
    let problems = names.iter().map(|name| read(&format!("{folder}/{name}")));
    problems.filter(|problem| problem.as_ref().map_or(true, |problem| problem.mtpp.is_some())).collect()
}

/// The number behind the last `_s`.
fn seed(name: &str) -> Option<u64> {
    name.rsplit_once("_s").and_then(|(_, seed)| seed.parse().ok())
}

/// Lemma 3.3: the longest task has to be somewhere, and the average block has its share of all work.
pub(super) fn simple_bound(problem: &Problem, k: u32) -> f64 {
    let work: &[f64] = problem.mtpp.as_ref().map_or(&[], |view| &view.work);
    work.iter().copied().fold(work.iter().sum::<f64>() / f64::from(k), f64::max)
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
