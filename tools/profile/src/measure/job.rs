//! Measurement of a model on a kind of device.

use super::{
    kind::Kind,
    model::{self, Compiled},
    progress::Progress,
    record::{Record, merge},
    rounds::{IN_LINE, Rounds, Stable, lower_quartile},
    scratch::Scratch,
    settings::Settings,
};
use divi_cost::profile::{Entry, Profile};
use divi_runtime::{
    Options, Runtime, Span,
    bundle::{self, Action, Bundle},
};
use serde_json::json;
use std::{collections::HashMap, path::Path};

/// Minimum time of a profile entry, whose times are positive multiples of it: the time of a view, which runs nothing.
const LEAST_MICROS: f64 = 0.001;

/// Ratio of a stage's time to its part of a whole run if other devices wait for it. In a whole run, early and late tasks cancel
/// out, even in the fastest 90 %. CPU stages of three pipelines with a GPU took 1.02, 1.08 and 1.17 times their part in the
/// median, and at most 1.13, 1.25 and 1.7 times in 90 % of the runs.
const STAGE: f64 = 1.2;

pub(super) struct Job<'a> {
    pub(super) model: &'a Path,
    pub(super) kind: &'a Kind,
    pub(super) settings: &'a Settings,
    pub(super) progress: &'a Progress,
}

/// A task of a launch.
struct Task {
    step: usize,
    index: usize,
    /// Entry at batch size one, without times; `None` if profiles cannot represent the task.
    entry: Option<Entry>,
}

impl Job<'_> {
    /// Measures what the record lacks, and saves it after each batch size.
    pub(super) fn measure(&self, record: &mut Record) -> Result<(), String> {
        let sizes = self.settings.batches.iter().map(|&size| Some(size));
        let sizes: Vec<Option<u32>> = if self.settings.batches.is_empty() { vec![None] } else { sizes.collect() };
        let mut is_counted = false;
        for (index, size) in sizes.iter().enumerate() {
            let share = |of_batch: f64| (index as f64 + of_batch.min(1.0)) / sizes.len() as f64;
            let Some((entries, summary)) = self.batch(*size, record, share)? else { continue };
            // Operators are counted once, not for each batch size.
            let new = record.add(entries, !is_counted);
            is_counted = true;
            record.save()?;
            self.progress.say(&format!("{}: {summary}, {new} new entries", self.title(*size)));
        }
        Ok(())
    }

    /// Measures the tasks at a batch size; returns distinct entries and a summary, or `None` if all tasks are already measured.
    fn batch(
        &self,
        size: Option<u32>,
        record: &Record,
        share: impl Fn(f64) -> f64,
    ) -> Result<Option<(Vec<Entry>, String)>, String> {
        let title = self.title(size);
        self.progress.show(share(0.0), &format!("{title}: compiling"));
        let scratch = Scratch::new()?;
        scratch.write("profile.json", &record.profile().to_json())?;
        let system = scratch.write("system.toml", &self.system())?;
        let folder = scratch.join("bundle");
        let known =
            |tasks: u64| self.progress.say(&format!("{title}: skipped, all {tasks} tasks are already measured"));
        let batch = match model::compile(self.model, size, &system, &folder, self.settings)? {
            Compiled::Known(tasks) => {
                known(tasks);
                return Ok(None);
            }
            Compiled::Bundle { batch } => batch,
        };
        let in_flight = self.kind.is_beside_accelerators.then_some(IN_LINE);
        let options = Options { choices: self.settings.choices.clone(), in_flight, ..Options::default() };
        let runtime = Runtime::load(folder, options).map_err(|error| self.failed(&error.to_string()))?;
        // Mapped files stay valid, and an interrupt leaves nothing behind.
        drop(scratch);
        let tasks = tasks(runtime.bundle(), batch)?;
        if tasks.iter().filter_map(|task| task.entry.as_ref()).all(|entry| record.knows(entry, batch)) {
            known(tasks.len() as u64);
            return Ok(None);
        }
        let show =
            |of_batch: f64, micros: f64| self.progress.show(share(of_batch), &format!("{title}: {}", millis(micros)));
        let measure = || {
            let rounds = Rounds::new(&runtime)?;
            let stable = rounds.until_stable(self.settings.time_limit, |spans| times(&tasks, spans), show)?;
            let whole =
                if self.kind.is_beside_accelerators { rounds.whole_run_of_a_line()? } else { rounds.whole_run()? };
            Ok((stable, whole))
        };
        let (stable, whole): (Stable, f64) = measure().map_err(|error: String| self.failed(&error))?;
        let summary = format!(
            "{} tasks take {} of {} ({} runs in {} rounds{})",
            tasks.len(),
            millis(stable.times.iter().sum()),
            millis(whole),
            stable.runs,
            stable.rounds,
            if stable.is_sure { "" } else { ", not stable at the time limit" }
        );
        let of_stages = if self.kind.is_beside_accelerators { whole * STAGE } else { whole };
        let scale = self.kind.processor.scale(stable.times.iter().sum(), of_stages);
        let measured = tasks.into_iter().zip(stable.times).filter_map(|(task, micros)| {
            let micros = ((micros * scale * 1e3).round() / 1e3).max(LEAST_MICROS);
            Some(Entry { micros: [(batch, micros)].into_iter().collect(), count: 1, ..task.entry? })
        });
        Ok(Some((merge(measured), summary)))
    }

    fn title(&self, size: Option<u32>) -> String {
        let name = self.model.file_stem().unwrap_or_default().to_string_lossy();
        let batch = size.map_or_else(String::new, |size| format!(", batch {size}"));
        format!("{name}{batch}, {}", self.kind.text())
    }

    fn failed(&self, message: &str) -> String {
        format!("{}: {message}", self.model.display())
    }

    /// Describes a system of one such device, with the profile so far.
    fn system(&self) -> String {
        format!("{}profile = \"profile.json\"\n", self.kind.processor.described(self.kind.memory))
    }
}

fn millis(micros: f64) -> String {
    format!("{:.3} ms", micros / 1e3)
}

/// Returns the tasks of all launches.
fn tasks(bundle: &Bundle, batch: u64) -> Result<Vec<Task>, String> {
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
    Some(entry)
}

/// Returns the time of each task over several runs. A task may have several kernels, whose spans add up.
fn times(tasks: &[Task], spans: &[Span]) -> Vec<f64> {
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
