//! Measurement of a model on a kind of device.

use super::{
    kind::Kind,
    loaded::{Load, Loaded, Model},
    progress::Progress,
    record::Record,
    rounds::{IN_LINE, Rounds, Stable},
    settings::Settings,
    tasks::{entries, times},
};
use divi_cost::profile::Entry;
use divi_runtime::Options;
use std::path::Path;

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
        let known =
            |tasks: u64| self.progress.say(&format!("{title}: skipped, all {tasks} tasks are already measured"));
        let in_flight = self.kind.is_beside_accelerators.then_some(IN_LINE);
        let options = Options { choices: self.settings.choices.clone(), in_flight, ..Options::default() };
        let model = Model { path: self.model, batch: size, compilation: &self.settings.compilation };
        let loaded = match model.load(self.kind, record.profile(), options)? {
            Load::Known(tasks) => {
                known(tasks);
                return Ok(None);
            }
            Load::Loaded(loaded) => loaded,
        };
        let Loaded { runtime, tasks, batch } = &loaded;
        if tasks.iter().filter_map(|task| task.entry.as_ref()).all(|entry| record.knows(entry, *batch)) {
            known(tasks.len() as u64);
            return Ok(None);
        }
        let show =
            |of_batch: f64, micros: f64| self.progress.show(share(of_batch), &format!("{title}: {}", millis(micros)));
        let measure = || {
            let rounds = Rounds::new(runtime)?;
            let stable = rounds.until_stable(self.settings.time_limit, |spans| times(tasks, spans), show)?;
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
        Ok(Some((entries(tasks, &stable.times, scale, *batch), summary)))
    }

    fn title(&self, size: Option<u32>) -> String {
        let name = self.model.file_stem().unwrap_or_default().to_string_lossy();
        let batch = size.map_or_else(String::new, |size| format!(", batch {size}"));
        format!("{name}{batch}, {}", self.kind.text())
    }

    fn failed(&self, message: &str) -> String {
        format!("{}: {message}", self.model.display())
    }
}

fn millis(micros: f64) -> String {
    format!("{:.3} ms", micros / 1e3)
}
