//! Short task labels for bars: names without the trailing path components that many tasks share.

use rustc_hash::FxHashMap;

/// Maximum number of components removed from a name.
const ROUNDS: usize = 3;
/// A component is common if at least `AT_LEAST` tasks and one task in `ONE_IN` end with it.
const ONE_IN: usize = 8;
const AT_LEAST: usize = 4;

/// Returns a label for each name: `/layer1/conv/Conv` becomes `/layer1` if the endings are common and the label is unique.
pub(crate) fn labels(names: &[String]) -> Vec<String> {
    let mut labels: Vec<&str> = names.iter().map(String::as_str).collect();
    for _ in 0..ROUNDS {
        let last = |label: &str| label.rsplit_once('/').map(|(_, last)| last.to_owned());
        let mut ends: FxHashMap<String, usize> = FxHashMap::default();
        for end in labels.iter().filter_map(|label| last(label)) {
            *ends.entry(end).or_default() += 1;
        }
        let is_common =
            |end: &str| ends.get(end).is_some_and(|count| *count >= AT_LEAST && count * ONE_IN >= names.len());
        let shorter = labels.iter().map(|label| match label.rsplit_once('/') {
            Some((rest, end)) if !rest.is_empty() && is_common(end) => rest,
            _ => label,
        });
        let shorter: Vec<&str> = shorter.collect();
        // A shortened label must differ from all old and all shortened labels.
        let mut uses: FxHashMap<&str, usize> = FxHashMap::default();
        for (label, short) in labels.iter().zip(&shorter) {
            *uses.entry(label).or_default() += 1;
            if label != short {
                *uses.entry(short).or_default() += 1;
            }
        }
        let chosen = labels.iter().zip(&shorter).map(|(label, short)| if uses[short] == 1 { *short } else { *label });
        labels = chosen.collect();
    }
    labels.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::labels;

    fn of(names: &[&str]) -> Vec<String> {
        labels(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn common_endings_are_removed() {
        let names = ["/a/conv/Conv", "/b/conv/Conv", "/c/conv/Conv", "/d/conv/Conv", "/pool/MaxPool"];
        assert_eq!(of(&names), ["/a", "/b", "/c", "/d", "/pool/MaxPool"]);
    }

    #[test]
    fn labels_stay_unique() {
        let names = ["/a/Conv", "/b/Conv", "/c/Conv", "/c/Relu", "/b/Relu", "/a/Relu", "/d/Conv", "/e/Relu", "/a"];
        assert_eq!(of(&names), ["/a/Conv", "/b/Conv", "/c/Conv", "/c/Relu", "/b/Relu", "/a/Relu", "/d", "/e", "/a"]);
    }

    #[test]
    fn names_without_components_are_kept() {
        assert_eq!(of(&["/Conv", "Conv", "", "/"]), ["/Conv", "Conv", "", "/"]);
        assert!(of(&[]).is_empty());
    }
}
