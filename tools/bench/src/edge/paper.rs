//! The paper's algorithm 1 as printed, for comparison: a queue of partial placements, each padded with its last machine;
//! those whose slowest transfer exceeds the incumbent are pruned.

use std::collections::VecDeque;

use divi_planner::problem::EdgeNetwork;
use divi_planner::units::{BytesPerMicro, Micros};

/// Best period, and the number of evaluated placements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) period: Micros,
    pub(super) evaluated: u64,
}

/// Runs algorithm 1; nodes must be in topological order.
pub(super) fn branch_and_bound(view: &EdgeNetwork, edges: &[(usize, usize)], splits: usize) -> Outcome {
    let (layers, machines) = (view.flops.len(), view.rate.len());
    let mut best = Micros::INFINITY;
    let mut evaluated = 0;
    let mut queue: VecDeque<(Vec<u8>, usize)> = VecDeque::from([(Vec::new(), 0)]);
    while let Some((partial, changes)) = queue.pop_front() {
        for machine in 0..machines as u8 {
            let mut child = partial.clone();
            child.push(machine);
            let changes = changes + usize::from(partial.last().is_some_and(|last| *last != machine));
            let mut padded = child.clone();
            padded.resize(layers, machine);
            let (computing, moving) = latencies(view, edges, &padded);
            evaluated += 1;
            if moving > best {
                continue;
            }
            if changes < splits && child.len() < layers {
                queue.push_back((child, changes));
            }
            if changes <= splits {
                best = best.min(computing.max(moving));
            }
        }
    }
    Outcome { period: best, evaluated }
}

/// Returns the time of the slowest machine and of the slowest link: eq. (3) and (5).
fn latencies(view: &EdgeNetwork, edges: &[(usize, usize)], place: &[u8]) -> (Micros, Micros) {
    let machines = view.rate.len();
    let (mut computing, mut moving) = (vec![Micros::ZERO; machines], vec![Micros::ZERO; machines * machines]);
    for (layer, machine) in place.iter().enumerate() {
        computing[*machine as usize] += Micros(view.flops[layer] / view.rate[*machine as usize]);
    }
    for (&(from, to), bytes) in edges.iter().zip(&view.edge_bytes) {
        let (here, there) = (place[from] as usize, place[to] as usize);
        if here != there {
            moving[here * machines + there] += *bytes / view.bandwidth[here][there].unwrap_or(BytesPerMicro::INFINITY);
        }
    }
    let most = |times: Vec<Micros>| times.into_iter().fold(Micros::ZERO, Micros::max);
    (most(computing), most(moving))
}

/// Eq. (8): number of placements with at most `splits` split points.
pub(super) fn placements(layers: usize, machines: usize, splits: usize) -> f64 {
    let mut all = 0.0;
    let mut ways = machines as f64;
    for count in 0..=splits.min(layers - 1) {
        all += ways;
        ways *= (layers - 1 - count) as f64 / (count + 1) as f64 * (machines - 1) as f64;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_papers::generate::{Chain, chain};
    use divi_planner::edge::Region;
    use divi_planner::random::Random;
    use divi_planner::{Options, Problem};

    /// Returns the optimum according to divi's search.
    fn optimum(problem: &Problem) -> Micros {
        Region::new(problem, &Options::default()).and_then(|region| region.now()).expect("an optimum").period
    }

    fn problem(seed: u64, skips: bool) -> Problem {
        let options = Chain {
            layers: 8,
            machines: 3,
            splits: 2,
            improvement: 1e-3,
            optimal: 5e-3,
            complexity: 0.1,
            seed,
            ..Chain::default()
        };
        let mut random = Random::new(seed);
        let seeds = (0..100).map(|step| Chain { seed: seed + 1000 * step, ..options.clone() });
        let mut problem = seeds.filter_map(|options| chain(&options).ok()).next().expect("a chain");
        let edges = problem.edges.as_mut().expect("edges");
        let view = problem.edge.as_mut().expect("a view");
        let link = BytesPerMicro(random.between(10.0, 200.0));
        view.bandwidth.iter_mut().flatten().flatten().for_each(|bandwidth| *bandwidth = link);
        for (from, to) in [(0, 3), (1, 5), (2, 7), (4, 6)].into_iter().filter(|_| skips) {
            edges.push((from, to));
            view.edge_bytes.push(view.edge_bytes[from] * random.between(0.3, 3.0));
        }
        problem
    }

    #[test]
    fn algorithm_1_is_exact_for_chains_but_not_for_graphs_with_skips() {
        let mut worse = 0;
        for (seed, skips) in (1..=40).flat_map(|seed| [(seed, false), (seed, true)]) {
            let problem = problem(seed, skips);
            let (view, edges) = (problem.edge.as_ref().expect("a view"), problem.edges.as_ref().expect("edges"));
            let found = branch_and_bound(view, edges, 2).period;
            let best = optimum(&problem);
            assert!(found >= best * (1.0 - 1e-9), "seed {seed}: {found} is better than {best}");
            let same = found <= best * (1.0 + 1e-9);
            assert!(same || skips, "seed {seed}: {found}, but {best} is possible");
            worse += usize::from(!same);
        }
        assert!(worse > 0);
    }

    /// Beyond the third boundary, the number of evaluated placements does not grow.
    #[test]
    fn evaluations_grow_up_to_the_last_boundary() {
        for (machines, splits) in [(3, 2), (4, 3)] {
            let (improvement, optimal, complexity) = (1e-3, 5e-3, 0.1);
            let options = Chain { layers: 12, machines, splits, improvement, optimal, complexity, ..Chain::default() };
            let seeds = (1..100).map(|seed| Chain { seed, ..options.clone() });
            let mut problem = seeds.filter_map(|options| chain(&options).ok()).next().expect("a chain");
            let mut evaluated = |ratio: f64| {
                let (edges, view) = (problem.edges.as_deref().expect("edges"), problem.edge.as_mut().expect("a view"));
                let link = BytesPerMicro(ratio * options.rate);
                view.bandwidth.iter_mut().flatten().flatten().for_each(|bandwidth| *bandwidth = link);
                branch_and_bound(view, edges, splits).evaluated
            };
            let most = evaluated(1e3);
            assert_eq!(evaluated(complexity * 1.01), most, "{machines} machines");
            assert!(evaluated(complexity * 0.5) < most, "{machines} machines");
        }
    }

    #[test]
    fn placements_are_counted_as_in_the_paper() {
        assert_eq!(placements(49, 4, 3), 1_909_156.0);
        assert_eq!(placements(3, 2, 9), 8.0);
        assert_eq!(placements(1, 5, 3), 5.0);
    }
}
