//! Names that nothing else has.

use rustc_hash::FxHashMap;

/// The names that are taken, each with the number to try next behind it.
#[derive(Debug, Default)]
pub(super) struct Names(FxHashMap<String, usize>);

impl Names {
    /// The name itself, or with a number behind it if something has it already.
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
        let given = ["x", "x_1", "x", "x", "y", "x_1"].map(|name| names.unique(name));
        assert_eq!(given, ["x", "x_1", "x_2", "x_3", "y", "x_1_1"]);
    }
}
