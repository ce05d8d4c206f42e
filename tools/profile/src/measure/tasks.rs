//! Tasks of a bundle, and their times as entries of a profile.

use super::{record::merge, rounds::lower_quartile};
use divi_cost::profile::{Entry, MemberTypes, Profile};
use divi_runtime::{
    Span,
    bundle::{self, Action, Bundle},
};
use serde_json::json;
use std::collections::HashMap;

/// Minimum time of a profile entry, whose times are positive multiples of it: the time of a view, which runs nothing.
const LEAST_MICROS: f64 = 0.001;

/// A task of a launch.
pub(crate) struct Task {
    step: usize,
    index: usize,
    /// Entry at batch size one, without times; `None` if profiles cannot represent the task.
    pub(super) entry: Option<Entry>,
}

/// Returns the tasks of all launches.
pub(super) fn tasks(bundle: &Bundle, batch: u64) -> Result<Vec<Task>, String> {
    let mut tasks = vec![];
    for (step, planned) in bundle.steps.iter().enumerate() {
        let Action::Launch { stage, .. } = planned.action else { continue };
        for (index, task) in bundle.stages[stage].tasks.iter().enumerate() {
            let entry = task.profile.as_ref().map(|profile| entry(profile, batch)).transpose()?.flatten();
            tasks.push(Task { step, index, entry });
        }
    }
    Ok(tasks)
}

/// Returns the entry of a task in a model at a batch size. Bundles state the batch that a plan adds to a model; the rest of the
/// batch in the shapes is the model's own.
fn entry(profile: &bundle::Profile, batch: u64) -> Result<Option<Entry>, String> {
    let mut fields = profile.entry.as_object().cloned().unwrap_or_default();
    fields.insert("us".to_owned(), json!({"1": 1}));
    let file = json!({"format": "divi-profile/1", "device": "", "runtime": "", "entries": [fields]});
    let read = Profile::from_json(&file.to_string()).map_err(|error| format!("a task's entry: {error}"))?;
    let factor = batch / profile.batch.max(1);
    Ok(read.entries().first().and_then(|entry| at_batch_one(entry.clone(), factor)))
}

/// Divides the batch out of all shapes; `None` if a shape does not contain it, since plans would not find such an entry.
fn at_batch_one(mut entry: Entry, batch: u64) -> Option<Entry> {
    if batch == 1 {
        return Some(entry);
    }
    for shape in entry.inputs.iter_mut().chain(&mut entry.outputs) {
        let first = shape.first_mut().filter(|first| batch > 0 && first.is_multiple_of(batch))?;
        *first /= batch;
    }
    let types = |types: Vec<MemberTypes>| types.into_iter().map(|types| types.at_batch_one(batch)).collect();
    entry.types = entry.types.and_then(types);
    Some(entry)
}

/// Returns the distinct entries of the tasks of a model at a batch size, with their times in microseconds multiplied by `scale`.
pub(crate) fn entries(tasks: &[Task], times: &[f64], scale: f64, batch: u64) -> Vec<Entry> {
    merge(tasks.iter().zip(times).filter_map(|(task, micros)| {
        let micros = ((micros * scale * 1e3).round() / 1e3).max(LEAST_MICROS);
        Some(Entry { micros: [(batch, micros)].into_iter().collect(), count: 1, ..task.entry.clone()? })
    }))
}

/// Returns the time of each task over several runs. A task may have several kernels, whose spans add up.
pub(crate) fn times(tasks: &[Task], spans: &[Span]) -> Vec<f64> {
    let mut sums: HashMap<(usize, usize), HashMap<u64, f64>> = HashMap::new();
    for span in spans {
        if let Some(task) = span.task {
            let micros = (span.end_ns - span.begin_ns) as f64 / 1e3;
            *sums.entry((span.step, task)).or_default().entry(span.request).or_default() += micros;
        }
    }
    let time = |task: &Task| {
        sums.remove(&(task.step, task.index)).map_or(0.0, |runs| lower_quartile(runs.into_values().collect()))
    };
    tasks.iter().map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn relu(shape: &str) -> bundle::Profile {
        let entry = format!(
            r#"{{"ops": ["Relu"], "attrs": {{}}, "in": [{shape}], "weights": [], "out": {shape}, "dtype": "f32"}}"#
        );
        bundle::Profile { batch: 1, entry: serde_json::from_str(&entry).unwrap() }
    }

    #[test]
    fn entries_are_at_batch_one() {
        let of = |shape: &str, batch| entry(&relu(shape), batch).unwrap().map(|entry| entry.inputs);
        assert_eq!(of("[8, 3]", 1), Some(vec![vec![8, 3]]));
        assert_eq!(of("[8, 3]", 4), Some(vec![vec![2, 3]]));
        assert_eq!(of("[6, 3]", 4), None, "the first dimension is not the batch");
        assert_eq!(of("[]", 4), None);
        let planned = bundle::Profile { batch: 4, ..relu("[2, 3]") };
        assert_eq!(
            entry(&planned, 4).unwrap().map(|entry| entry.inputs),
            Some(vec![vec![2, 3]]),
            "already at batch one"
        );
    }

    #[test]
    fn kernel_times_of_a_task_add_up() {
        let span = |request, task, begin_ns, end_ns| Span { request, step: 0, task, begin_ns, end_ns };
        let tasks = [0, 1].map(|index| Task { step: 0, index, entry: None });
        let spans = [
            span(0, None, 0, 9000),
            span(0, Some(0), 0, 1000),
            span(0, Some(0), 3000, 5000),
            span(1, Some(0), 0, 40_000),
        ];
        assert_eq!(times(&tasks, &spans), [3.0, 0.0], "the faster run, and a view");
    }

    #[test]
    fn invalid_entries_are_errors() {
        let profile = bundle::Profile { batch: 1, entry: json!({"ops": []}) };
        assert!(entry(&profile, 1).unwrap_err().starts_with("a task's entry: "));
        assert_eq!(merge(std::iter::empty()), vec![]);
        assert_eq!(entry(&relu("[1]"), 1).unwrap().map(|entry| entry.micros), Some(BTreeMap::from([(1, 1.0)])));
    }
}
