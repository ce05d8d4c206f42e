//! Best known values of graphs: those of `best-known.json`, and better ones found since.

use std::collections::BTreeMap;
use std::fs;

use divi_planner::units::Micros;

use crate::runs::SAME;

const FILE: &str = "test/problems/best-known.json";

/// Values by graph and number of stages.
pub(super) struct Best {
    known: BTreeMap<(String, u32), Micros>,
    found: BTreeMap<(String, u32), Micros>,
}

impl Best {
    pub(super) fn read() -> Result<Self, String> {
        let text = fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))?;
        Self::parse(&text).map_err(|error| format!("{FILE}: {error}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let graphs = file["pipeline"].as_object().ok_or("missing object 'pipeline'")?;
        let mut known = BTreeMap::new();
        for (name, values) in graphs {
            for (k, entry) in values.as_object().into_iter().flatten() {
                let number = k.parse().map_err(|_| format!("{name}: '{k}' is not a number of stages"))?;
                let value = entry["value"].as_f64().ok_or_else(|| format!("{name}, k = {k}: missing value"))?;
                known.insert((name.clone(), number), Micros(value));
            }
        }
        Ok(Self { known, found: BTreeMap::new() })
    }

    /// Returns the value of the file.
    pub(super) fn known(&self, name: &str, k: u32) -> Option<Micros> {
        self.known.get(&(name.to_owned(), k)).copied()
    }

    /// Returns the minimum of the file's value and the values found.
    pub(super) fn of(&self, name: &str, k: u32) -> Option<Micros> {
        let found = self.found.get(&(name.to_owned(), k)).copied();
        found.into_iter().chain(self.known(name, k)).min_by(Micros::total_cmp)
    }

    /// Records the value of a verified plan.
    pub(super) fn report(&mut self, name: &str, k: u32, value: Micros) {
        let best = self.found.entry((name.to_owned(), k)).or_insert(value);
        *best = best.min(value);
    }

    /// Prints the values that improve on the file.
    pub(super) fn print_better(&self) {
        for ((name, k), known) in &self.known {
            if let Some(best) = self.of(name, *k).filter(|best| *best < *known * (1.0 - SAME)) {
                println!("{name}, k = {k}: {best} is better than the best known, {known}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_value_counts() {
        let mut best = Best::parse(r#"{"pipeline": {"a": {"2": {"value": 7, "optimal": true}}}}"#).unwrap();
        assert_eq!((best.known("a", 2), best.of("a", 4), best.of("b", 2)), (Some(Micros(7.0)), None, None));
        for (value, least) in [(8.0, 7.0), (6.0, 6.0), (6.5, 6.0)] {
            best.report("a", 2, Micros(value));
            assert_eq!(best.of("a", 2), Some(Micros(least)));
        }
        assert_eq!(best.known("a", 2), Some(Micros(7.0)));
    }

    #[test]
    fn invalid_files_are_rejected() {
        for (text, message) in [
            ("{}", "missing object 'pipeline'"),
            (r#"{"pipeline": {"a": {"two": {"value": 7}}}}"#, "a: 'two' is not a number of stages"),
            (r#"{"pipeline": {"a": {"2": {}}}}"#, "a, k = 2: missing value"),
        ] {
            assert_eq!(Best::parse(text).err().as_deref(), Some(message));
        }
    }
}
