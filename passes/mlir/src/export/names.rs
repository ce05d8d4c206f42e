//! Unique names.

use rustc_hash::FxHashMap;

/// Names in use, each with the suffix to try next.
#[derive(Debug, Default)]
pub(super) struct Names(FxHashMap<String, usize>);

impl Names {
    /// Returns the name itself, or with a numeric suffix if it is in use.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        let Some(mut next) = self.0.get(wanted).copied() else {
            self.0.insert(wanted.to_owned(), 1);
            return wanted.to_owned();
        };
        loop {
            let name = format!("{wanted}_{next}");
            next += 1;
            if !self.0.contains_key(&name) {
                self.0.insert(wanted.to_owned(), next);
                self.0.insert(name.clone(), 1);
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names = Names::default();
        let unique = ["x", "x_1", "x", "x", "y", "x_1"].map(|name| names.unique(name));
        assert_eq!(unique, ["x", "x_1", "x_2", "x_3", "y", "x_1_1"]);
    }
}
