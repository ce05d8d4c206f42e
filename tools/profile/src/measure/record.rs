//! Profile under construction: existing and new entries.

use crate::files;
use divi_cost::profile::{Entry, Profile};
use std::{
    collections::btree_map,
    io,
    path::{Path, PathBuf},
};

pub(super) struct Record {
    path: PathBuf,
    profile: Profile,
}

impl Record {
    /// Loads a profile, if the file exists. It must be of the same device and runtime.
    pub(super) fn open(path: PathBuf, device: &str, runtime: &str) -> Result<Self, String> {
        let name = path.display();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path, profile: Profile::new(device, runtime, vec![]) });
            }
            Err(error) => return Err(format!("{name}: {error}")),
        };
        let profile = Profile::from_json(&text).map_err(|error| format!("{name}: {error}"))?;
        if (&profile.device[..], &profile.runtime[..]) != (device, runtime) {
            return Err(format!(
                "{name}: measured on {} with {}, not on {device} with {runtime}; choose another name for -o",
                profile.device, profile.runtime
            ));
        }
        Ok(Self { path, profile })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns true if a task was measured at a batch size.
    pub(super) fn knows(&self, entry: &Entry, batch: u64) -> bool {
        let is_it = |known: &Entry| is_same(known, entry) && known.micros.contains_key(&batch);
        self.profile.entries().iter().any(is_it)
    }

    /// Adds times. Existing times are kept; the counts of their tasks are increased if `counted`. Returns the number of new times.
    pub(super) fn add(&mut self, measured: Vec<Entry>, counted: bool) -> usize {
        let mut entries = self.profile.entries().to_vec();
        let mut new = 0;
        for entry in measured {
            let Some(known) = entries.iter_mut().find(|known| is_same(known, &entry)) else {
                new += entry.micros.len();
                entries.push(entry);
                continue;
            };
            known.types = known.types.take().or(entry.types);
            for (batch, micros) in entry.micros {
                match known.micros.entry(batch) {
                    btree_map::Entry::Occupied(_) => known.count += if counted { entry.count } else { 0 },
                    btree_map::Entry::Vacant(place) => {
                        place.insert(micros);
                        new += 1;
                    }
                }
            }
        }
        let launch = self.profile.launch;
        self.profile = Profile::new(&self.profile.device, &self.profile.runtime, entries);
        self.profile.launch = launch;
        new
    }

    pub(super) fn save(&self) -> Result<(), String> {
        let path = self.path.to_str().ok_or_else(|| format!("{}: is not UTF-8", self.path.display()))?;
        files::write(Some(path), &self.profile.to_json())
    }
}

/// Returns true if two entries are of the same task.
pub(crate) fn is_same(a: &Entry, b: &Entry) -> bool {
    (&a.ops, &a.inputs, &a.weights, &a.outputs, a.dtype) == (&b.ops, &b.inputs, &b.weights, &b.outputs, b.dtype)
}

/// Merges equal tasks of a model into one entry with the mean of their times, so that the sum over the model is preserved.
pub(crate) fn merge(entries: impl IntoIterator<Item = Entry>) -> Vec<Entry> {
    let mut merged: Vec<Entry> = vec![];
    for entry in entries {
        let Some(known) = merged.iter_mut().find(|known| is_same(known, &entry)) else {
            merged.push(entry);
            continue;
        };
        let total = (known.count + entry.count) as f64;
        for (batch, micros) in &mut known.micros {
            let other = entry.micros.get(batch).copied().unwrap_or(*micros);
            let mean = (*micros * known.count as f64 + other * entry.count as f64) / total;
            *micros = (mean * 1e3).round() / 1e3;
        }
        known.count += entry.count;
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds entries, each from a name, its times and its count.
    fn entries(list: &[(&str, &str, u64)]) -> Vec<Entry> {
        let entry = |(op, us, count): &(&str, &str, u64)| {
            format!(
                r#"{{"ops": ["{op}"], "in": [[1, 8]], "out": [1, 8], "dtype": "f32", "us": {us}, "count": {count}}}"#
            )
        };
        let entries: Vec<String> = list.iter().map(entry).collect();
        let text = r#"{"format": "divi-profile/1", "device": "d", "runtime": "r", "entries": ["#.to_owned();
        Profile::from_json(&(text + &entries.join(", ") + "]}")).unwrap().entries().to_vec()
    }

    fn record() -> Record {
        let profile = Profile::new("d", "r", entries(&[("Relu", r#"{"1": 5}"#, 2)]));
        Record { path: "p.json".into(), profile }
    }

    #[test]
    fn existing_times_are_kept() {
        let mut record = record();
        let new = record.add(entries(&[("Relu", r#"{"1": 7}"#, 3), ("Exp", r#"{"1": 9}"#, 1)]), true);
        assert_eq!(new, 1);
        assert_eq!(record.profile.entries(), entries(&[("Relu", r#"{"1": 5}"#, 5), ("Exp", r#"{"1": 9}"#, 1)]));
        assert!(record.knows(&entries(&[("Exp", r#"{"4": 1}"#, 1)])[0], 1));
        assert!(!record.knows(&entries(&[("Exp", r#"{"1": 1}"#, 1)])[0], 4));
    }

    #[test]
    fn other_batches_do_not_count_again() {
        let mut record = record();
        assert_eq!(record.add(entries(&[("Relu", r#"{"4": 7}"#, 2)]), true), 1);
        assert_eq!(record.add(entries(&[("Relu", r#"{"4": 8}"#, 2)]), false), 0);
        assert_eq!(record.profile.entries(), entries(&[("Relu", r#"{"1": 5, "4": 7}"#, 2)]));
    }

    #[test]
    fn equal_tasks_have_their_mean_time() {
        let merged =
            merge(entries(&[("Relu", r#"{"1": 5}"#, 1), ("Exp", r#"{"1": 1}"#, 1), ("Relu", r#"{"1": 8}"#, 2)]));
        assert_eq!(merged, entries(&[("Relu", r#"{"1": 7}"#, 3), ("Exp", r#"{"1": 1}"#, 1)]));
    }
}
