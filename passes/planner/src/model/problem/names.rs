//! Short texts for many tasks.

use std::collections::BTreeMap;

use crate::model::problem::Problem;

/// Maximum number of names in a message; the rest is counted.
const SHOWN: usize = 4;

/// Lists some of all nodes by name. A path is abbreviated to `/layer4/*` if all nodes under it are among them.
pub(crate) fn abbreviated(problem: &Problem, some: &[usize], all: &[usize]) -> String {
    let mut some = some.to_vec();
    some.sort_unstable();
    let name = |node: usize| problem.nodes[node].name.as_deref().unwrap_or("");
    let others: Vec<&str> = all.iter().filter(|node| !some.contains(node)).map(|node| name(*node)).collect();
    let is_own = |path: &str| !others.iter().any(|other| other.starts_with(path));
    // Shortest path that no other node has.
    let path_of = |node: usize| {
        let name = name(node);
        let ends = name.match_indices('/').map(|(at, _)| &name[..=at]).filter(|path| path.len() > 1);
        ends.into_iter().find(|path| is_own(path)).map(str::to_owned)
    };
    let mut under: BTreeMap<String, usize> = BTreeMap::new();
    for path in some.iter().filter_map(|node| path_of(*node)) {
        *under.entry(path).or_default() += 1;
    }
    let mut words: Vec<String> = Vec::new();
    for &node in &some {
        let word = match path_of(node).filter(|path| under[path] > 1) {
            Some(path) => format!("{path}*"),
            None if name(node).is_empty() => format!("node {node}"),
            None => name(node).to_owned(),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if words.len() > SHOWN + 1 {
        let rest = words.len() - SHOWN;
        words.truncate(SHOWN);
        words.push(format!("{rest} more"));
    }
    list(&words, " and ")
}

/// Joins words: `a, b and c`.
pub(crate) fn list(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [first @ .., end] => format!("{}{last}{end}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Rwnn, rwnn};

    #[test]
    fn names_are_abbreviated() {
        let mut problem = rwnn(&Rwnn { nodes: 10, ..Rwnn::default() }).unwrap();
        for (node, name) in problem.nodes.iter_mut().zip(["/l1/a", "/l1/b", "/l1/c", "/l2/x/a", "/l2/x/b", "/l2/y"]) {
            node.name = Some(name.to_owned());
        }
        let all: Vec<usize> = (0..6).collect();
        assert_eq!(abbreviated(&problem, &[0, 1, 2], &all), "/l1/*");
        assert_eq!(abbreviated(&problem, &[1], &all), "/l1/b");
        assert_eq!(abbreviated(&problem, &[0, 2], &all), "/l1/a and /l1/c");
        assert_eq!(abbreviated(&problem, &[4, 3, 0], &all), "/l1/a and /l2/x/*");
        assert_eq!(abbreviated(&problem, &all, &all), "/l1/* and /l2/*");
        problem.nodes.iter_mut().for_each(|node| node.name = None);
        assert_eq!(abbreviated(&problem, &all, &all), "node 0, node 1, node 2, node 3 and 2 more");
    }
}
