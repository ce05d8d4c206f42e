//! Random graphs, made acyclic: every edge leads from a lower to a higher node number.

use std::collections::BTreeSet;

use super::Kind;
use divi_planner::random::Random;

/// Edges from lower to higher node numbers, sorted.
pub(super) type Edges = BTreeSet<(usize, usize)>;

/// Parameters of the random graph models.
pub(super) struct Density {
    /// Probability of each pair.
    pub(super) erdos_renyi: f64,
    /// Neighbors on the ring, and the probability that an edge is rewired.
    pub(super) watts_strogatz: (usize, f64),
    /// Edges of each new node.
    pub(super) barabasi_albert: usize,
    /// Number of blocks, and the edge probabilities inside and between them.
    pub(super) blocks: (usize, f64, f64),
}

pub(super) fn graph(kind: Kind, nodes: usize, density: &Density, random: &mut Random) -> Edges {
    match kind {
        Kind::ErdosRenyi => pairs(nodes, |_, _| density.erdos_renyi, random),
        Kind::WattsStrogatz => watts_strogatz(nodes, density.watts_strogatz, random),
        Kind::BarabasiAlbert => barabasi_albert(nodes, density.barabasi_albert, random),
        Kind::Blocks => {
            let (blocks, inside, between) = density.blocks;
            let block_of: Vec<usize> = (0..nodes).map(|_| random.below(blocks)).collect();
            pairs(nodes, |a, b| if block_of[a] == block_of[b] { inside } else { between }, random)
        }
    }
}

fn pairs(nodes: usize, probability: impl Fn(usize, usize) -> f64, random: &mut Random) -> Edges {
    let mut edges = Edges::new();
    for low in 0..nodes {
        for high in low + 1..nodes {
            if random.chance(probability(low, high)) {
                edges.insert((low, high));
            }
        }
    }
    edges
}

fn watts_strogatz(nodes: usize, (neighbours, moved): (usize, f64), random: &mut Random) -> Edges {
    let mut edges = Edges::new();
    for step in 1..=(neighbours / 2).min(nodes.saturating_sub(1)) {
        for node in 0..nodes {
            let mut other = (node + step) % nodes;
            if random.chance(moved) {
                let free = |candidate: &usize| *candidate != node && !edges.contains(&ordered(node, *candidate));
                let choices: Vec<usize> = (0..nodes).filter(free).collect();
                if let Some(choice) = choices.get(random.below(choices.len())) {
                    other = *choice;
                }
            }
            if other != node {
                edges.insert(ordered(node, other));
            }
        }
    }
    edges
}

fn barabasi_albert(nodes: usize, each: usize, random: &mut Random) -> Edges {
    let mut edges = Edges::new();
    // Both endpoints of every edge: drawing uniformly from it is preferential attachment.
    let mut ends: Vec<usize> = Vec::new();
    let first = each.min(nodes.saturating_sub(1));
    let mut targets: BTreeSet<usize> = (0..first).collect();
    for node in first..nodes {
        for &target in &targets {
            edges.insert((target, node));
            ends.extend([target, node]);
        }
        targets.clear();
        while targets.len() < each.min(node + 1) && !ends.is_empty() {
            targets.insert(ends[random.below(ends.len())]);
        }
    }
    edges
}

fn ordered(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENSITY: Density =
        Density { erdos_renyi: 0.2, watts_strogatz: (4, 0.75), barabasi_albert: 5, blocks: (4, 0.3, 0.02) };

    #[test]
    fn edges_lead_upwards_and_are_as_many_as_expected() {
        for kind in Kind::ALL {
            for nodes in [1, 2, 3, 10, 100] {
                let edges = graph(kind, nodes, &DENSITY, &mut Random::new(7));
                assert!(edges.iter().all(|(low, high)| low < high && *high < nodes), "{kind:?}");
            }
        }
        let count = |kind| graph(kind, 100, &DENSITY, &mut Random::new(7)).len();
        assert!((890..1090).contains(&count(Kind::ErdosRenyi)), "20 % of 4950");
        assert!((180..=200).contains(&count(Kind::WattsStrogatz)));
        assert_eq!(count(Kind::BarabasiAlbert), 95 * 5);
    }
}
