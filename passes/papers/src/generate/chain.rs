//! Chains of layers on a network of equal machines, with the three boundary ratios of the edge paper as parameters.

use std::collections::BTreeMap;

use serde_json::json;

use super::in_range;
use divi_planner::error::Error;
use divi_planner::problem::{Device, EdgeNetwork, Node, Problem};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros, short_number};

const MOST_LAYERS: usize = 100_000;
const MOST_MACHINES: usize = 256;
/// Work of all layers, in operations.
const WORK: f64 = 1e10;
/// Spread of the layers' work around the average.
const SPREAD: f64 = 0.6;
/// Accepted range of machine and link speeds.
const SPEEDS: (f64, f64) = (1e-3, 1e9);
const RATIOS: (f64, f64) = (1e-9, 1e3);

/// Parameters of a chain and its network.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// Number of layers.
    pub layers: usize,
    /// Number of machines.
    pub machines: usize,
    /// Maximum number of cuts.
    pub splits: usize,
    /// Speed of a machine, in operations per microsecond.
    pub rate: f64,
    /// Bandwidth of a link, in bytes per microsecond.
    pub link: f64,
    /// Ratio of link speed to machine speed above which partitioning helps.
    pub improvement: f64,
    /// Ratio above which faster links do not improve the optimum.
    pub optimal: f64,
    /// Ratio above which links exclude no placement.
    pub complexity: f64,
    /// Seed of the random number generator.
    pub seed: u64,
}

impl Default for Chain {
    /// The paper's model and network.
    fn default() -> Self {
        Self {
            layers: 49,
            machines: 4,
            splits: 3,
            rate: 5000.0,
            link: 10.0,
            improvement: 1.64e-3,
            optimal: 9.52e-3,
            complexity: 0.168,
            seed: 1,
        }
    }
}

/// Generates the chain.
///
/// With fast links, the optimum cuts the chain into the maximum number of parts. Only a few positions of each cut keep
/// every part within the optimal bottleneck; the values there have the size that the `optimal` ratio implies. The
/// smallest value sets the `improvement` ratio. The largest values, several of which can share a link, set the
/// `complexity` ratio.
pub fn chain(options: &Chain) -> Result<Problem, Error> {
    check(options)?;
    let Chain { layers, machines, splits, .. } = *options;
    let mut random = Random::new(options.seed);
    let flops = flops(layers, &mut random);
    let total: f64 = flops.iter().sum();
    let parts = splits + 1;
    let uneven = || {
        let message = format!(
            "these layers cannot be cut into {parts} parts so that all boundaries are met; try another seed, or more layers"
        );
        Error::Unsupported(message)
    };
    let (part, cuts) = cut(&flops, parts).ok_or_else(uneven)?;
    // With one split fewer than the maximum, at most every other cut sends over the same link.
    let largest_count = (splits - 1).div_ceil(2).max(1);
    let (smallest, crossing) = ((options.improvement * total).round(), (options.optimal * part).round());
    let largest = (options.complexity * part / largest_count as f64).round();
    if !(smallest <= crossing && crossing <= largest) {
        let message = format!(
            "the ratios {}, {} and {} do not fit: values of {smallest:.0}, {crossing:.0} and {largest:.0} bytes must not \
             get smaller",
            options.improvement, options.optimal, options.complexity
        );
        return Err(Error::Unsupported(message));
    }
    let elsewhere: Vec<usize> = (0..layers - 1).filter(|place| !cuts[*place]).collect();
    let mut bytes = vec![crossing; layers - 1];
    for &place in &elsewhere {
        // Skewed towards small sizes: most layers of a network are deep ones.
        let share = random.unit();
        bytes[place] = (smallest + (largest - smallest) * share * share * (1.0 + share) / 2.0).round();
    }
    // The largest values come first, as activations of image networks do; the smallest is nearest to the middle.
    let mut large: Vec<usize> = Vec::new();
    for &place in &elsewhere {
        if large.len() < largest_count && large.last().is_none_or(|last| place > last + 1) {
            large.push(place);
        }
    }
    let done: Vec<f64> = flops.iter().scan(0.0, |sum, flops| Some(std::mem::replace(sum, *sum + flops))).collect();
    let off_middle = |place: &usize| (done[*place + 1] - total / 2.0).abs();
    let middle = elsewhere
        .iter()
        .copied()
        .filter(|place| !large.contains(place))
        .min_by(|one, other| off_middle(one).total_cmp(&off_middle(other)));
    let (Some(middle), true) = (middle, large.len() == largest_count) else { return Err(uneven()) };
    bytes[middle] = smallest;
    large.iter().for_each(|place| bytes[*place] = largest);

    let mut problem = network(options, &flops, bytes.into_iter().map(Bytes).collect());
    problem.name = format!("chain_L{layers}_N{machines}_S{splits}_s{}", options.seed);
    problem.meta = Some(json!({"gen": "chain", "seed": options.seed, "improvement": options.improvement,
        "optimal": options.optimal, "complexity": options.complexity}));
    Ok(problem)
}

fn check(options: &Chain) -> Result<(), Error> {
    in_range("layers", options.layers, 2, MOST_LAYERS)?;
    in_range("machines", options.machines, 2, MOST_MACHINES)?;
    // With more parts than machines, a machine runs several parts, and the bottleneck is not the longest part.
    in_range("splits", options.splits, 1, options.machines - 1)?;
    let numbers = [
        ("rate", options.rate, SPEEDS),
        ("link", options.link, SPEEDS),
        ("the improvement ratio", options.improvement, RATIOS),
        ("the optimal ratio", options.optimal, RATIOS),
        ("the complexity ratio", options.complexity, RATIOS),
    ];
    match numbers.into_iter().find(|(_, value, (least, most))| !(*least..=*most).contains(value)) {
        Some((what, value, (least, most))) => {
            let given = short_number(value);
            Err(Error::Unsupported(format!("{what} is {given}; it must be from {least:e} to {most:e}")))
        }
        None => Ok(()),
    }
}

/// Draws the work of each layer; integers, so that sums are exact.
fn flops(layers: usize, random: &mut Random) -> Vec<f64> {
    let shares: Vec<f64> = (0..layers).map(|_| random.factor(SPREAD)).collect();
    let all: f64 = shares.iter().sum();
    shares.iter().map(|share| (share / all * WORK).round().max(1.0)).collect()
}

/// Returns the minimal bottleneck of a partition into `parts` contiguous parts, and for each layer whether such a
/// partition may cut behind it. `None` if fewer parts attain the same bottleneck.
fn cut(flops: &[f64], parts: usize) -> Option<(f64, Vec<bool>)> {
    // Fills each part greedily up to `most`; returns the ends of all parts but the last.
    let ends = |flops: &mut dyn Iterator<Item = f64>, most: f64| -> Vec<usize> {
        let (mut ends, mut sum) = (Vec::new(), 0.0);
        for (layer, work) in flops.enumerate() {
            if sum + work > most && layer > 0 {
                ends.push(layer);
                sum = 0.0;
            }
            sum += work;
        }
        ends
    };
    let longest = flops.iter().copied().fold(0.0, f64::max);
    let (mut low, mut high) = (longest, flops.iter().sum::<f64>());
    while low < high {
        let middle = ((low + high) / 2.0).floor();
        if ends(&mut flops.iter().copied(), middle).len() < parts { high = middle } else { low = middle + 1.0 }
    }
    let late = ends(&mut flops.iter().copied(), high);
    if late.len() + 1 < parts {
        return None;
    }
    let early: Vec<usize> =
        ends(&mut flops.iter().rev().copied(), high).into_iter().rev().map(|end| flops.len() - end).collect();
    let mut cuts = vec![false; flops.len()];
    for (early, late) in early.into_iter().zip(late) {
        cuts[early - 1..late].fill(true);
    }
    Some((high, cuts))
}

/// Builds the problem with its edge-network view; its devices are the machines of that view.
fn network(options: &Chain, flops: &[f64], bytes: Vec<Bytes>) -> Problem {
    let Chain { layers, machines, splits, rate, link, .. } = *options;
    let device = |id: usize| Device { id, name: format!("machine{id}"), memory: None, batch_sizes: vec![1] };
    let link = |from: usize, to: usize| (from != to).then_some(BytesPerMicro(link));
    let bandwidth: Vec<Vec<Option<BytesPerMicro>>> =
        (0..machines).map(|from| (0..machines).map(|to| link(from, to)).collect()).collect();
    let mut problem = Problem::new("chain", (0..machines).map(device).collect(), bandwidth.clone());
    problem.nodes = (0..layers)
        .map(|id| Node {
            id,
            name: Some(format!("layer{id}")),
            time: BTreeMap::from([(1, vec![Some(Micros(flops[id] / rate)); machines])]),
            weight: Bytes::ZERO,
            input: if id > 0 { bytes[id - 1] } else { Bytes::ZERO },
            output: Some(bytes.get(id).copied().unwrap_or_default()),
            scratch: Bytes::ZERO,
            pin: None,
            module: None,
        })
        .collect();
    problem.edges = Some((1..layers).map(|layer| (layer - 1, layer)).collect());
    problem.edge = Some(EdgeNetwork {
        flops: flops.to_vec(),
        rate: vec![rate; machines],
        bandwidth,
        edge_bytes: bytes,
        splits: Some(splits as u32),
        threads: None,
        pin: None,
    });
    problem
}
