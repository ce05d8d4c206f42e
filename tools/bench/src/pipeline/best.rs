//! The best values of graphs: those that ship with divi, and what was found since.

use std::collections::BTreeMap;
use std::fs;

use crate::runs::SAME;

const FILE: &str = "test/problems/best-known.json";

/// By graph and number of stages.
pub(super) struct Best {
    known: BTreeMap<(String, u32), f64>,
    found: BTreeMap<(String, u32), f64>,
}

impl Best {
    pub(super) fn read() -> Result<Self, String> {
        let text = fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))?;
        Self::parse(&text).map_err(|error| format!("{FILE}: {error}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let graphs = file["pipeline"].as_object().ok_or("there is no object 'pipeline'")?;
        let mut known = BTreeMap::new();
        for (name, values) in graphs {
            for (k, entry) in values.as_object().into_iter().flatten() {
                let number = k.parse().map_err(|_| format!("{name}: '{k}' is no number of stages"))?;
                let value = entry["value"].as_f64().ok_or_else(|| format!("{name}, k = {k}: there is no value"))?;
                known.insert((name.clone(), number), value);
            }
        }
        Ok(Self { known, found: BTreeMap::new() })
    }

    /// What the file has.
    pub(super) fn known(&self, name: &str, k: u32) -> Option<f64> {
        self.known.get(&(name.to_owned(), k)).copied()
    }

    /// The lower of what the file has and what was found.
    pub(super) fn of(&self, name: &str, k: u32) -> Option<f64> {
        let found = self.found.get(&(name.to_owned(), k)).copied();
        found.into_iter().chain(self.known(name, k)).min_by(f64::total_cmp)
    }

    /// A plan of this value was found and verified.
    pub(super) fn report(&mut self, name: &str, k: u32, value: f64) {
        let best = self.found.entry((name.to_owned(), k)).or_insert(value);
        *best = best.min(value);
    }

    /// Says what was found that is better than the file has.
    pub(super) fn print_better(&self) {
        for ((name, k), known) in &self.known {
            if let Some(best) = self.of(name, *k).filter(|best| *best < known * (1.0 - SAME)) {
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
        assert_eq!((best.known("a", 2), best.of("a", 4), best.of("b", 2)), (Some(7.0), None, None));
        for (value, least) in [(8.0, 7.0), (6.0, 6.0), (6.5, 6.0)] {
            best.report("a", 2, value);
            assert_eq!(best.of("a", 2), Some(least));
        }
        assert_eq!(best.known("a", 2), Some(7.0));
    }

    #[test]
    fn files_that_are_wrong_are_refused() {
        for (text, message) in [
            ("{}", "there is no object 'pipeline'"),
            (r#"{"pipeline": {"a": {"two": {"value": 7}}}}"#, "a: 'two' is no number of stages"),
            (r#"{"pipeline": {"a": {"2": {}}}}"#, "a, k = 2: there is no value"),
        ] {
            assert_eq!(Best::parse(text).err().as_deref(), Some(message));
        }
    }
}
