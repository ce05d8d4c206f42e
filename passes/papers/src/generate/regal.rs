//! Synthetic computation graphs with the homogeneous pipeline view (MTPP, Appendix C.2).

use std::collections::BTreeMap;

use serde_json::json;

use super::graphs::{Density, graph};
use super::{Kind, MOST_NODES, in_range};
use divi_planner::error::Error;
use divi_planner::problem::{Device, Node, Pipeline, Problem};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};

const DENSITY: Density =
    Density { erdos_renyi: 0.05, watts_strogatz: (4, 0.3), barabasi_albert: 2, blocks: (4, 0.12, 0.015) };
/// Mean and standard deviation of tensor sizes.
const TENSOR: (f64, f64) = (50.0, 10.0);
/// Standard deviation of the share of the total tensor size that is added to a node's cost.
const SHARE_DEVIATION: f64 = 0.1;
/// Maximum number of nodes for models that enumerate all pairs.
const MOST_OF_PAIRS: usize = 20_000;

/// Parameters of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Regal {
    /// Random graph model.
    pub kind: Kind,
    /// Number of nodes.
    pub nodes: usize,
    /// Seed of the random number generator.
    pub seed: u64,
}

impl Default for Regal {
    fn default() -> Self {
        Self { kind: Kind::ErdosRenyi, nodes: 100, seed: 1 }
    }
}

/// Generates the graph: a node costs the size of its tensors plus a random share of the total size. The absolute value
/// keeps costs from being negative.
pub fn regal(options: &Regal) -> Result<Problem, Error> {
    let most = if options.kind == Kind::BarabasiAlbert { MOST_NODES } else { MOST_OF_PAIRS };
    in_range("nodes", options.nodes, 1, most)?;
    let mut random = Random::new(options.seed);
    let edges = graph(options.kind, options.nodes, &DENSITY, &mut random);
    let output: Vec<f64> =
        (0..options.nodes).map(|_| (TENSOR.0 + TENSOR.1 * random.normal()).round().max(1.0)).collect();
    let mut input = vec![0.0; options.nodes];
    for &(from, to) in &edges {
        input[to] += output[from];
    }
    let total: f64 = output.iter().sum();
    let cost = |node: usize| {
        let share = SHARE_DEVIATION * random.normal();
        Micros((input[node] + output[node] + share * total).abs().round())
    };
    let work: Vec<Micros> = (0..options.nodes).map(cost).collect();

    let device = Device { id: 0, name: "cu".to_owned(), memory: None, batch_sizes: vec![1] };
    let name = format!("regal_{}_n{}_s{}", options.kind.name(), options.nodes, options.seed);
    let mut problem = Problem::new(name, vec![device], vec![vec![None]]);
    problem.nodes = (0..options.nodes)
        .map(|id| Node {
            id,
            name: None,
            time: BTreeMap::from([(1, vec![Some(work[id])])]),
            weight: Bytes::ZERO,
            input: Bytes(input[id]),
            output: Some(Bytes(output[id])),
            scratch: Bytes::ZERO,
            pin: None,
            module: None,
        })
        .collect();
    problem.edges = Some(edges.into_iter().collect());
    problem.mtpp = Some(Pipeline { work, k: vec![2, 4, 8, 16], bandwidth: BytesPerMicro(1.0), memory: None });
    problem.meta = Some(json!({"gen": "regal", "kind": options.kind.name(), "seed": options.seed, "neg": "abs"}));
    Ok(problem)
}
