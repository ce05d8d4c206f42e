//! Chains of layers on a network of equal machines, with the three boundaries of the edge paper where they are asked for.

use std::collections::BTreeMap;

use serde_json::json;

use super::in_range;
use divi_planner::error::Error;
use divi_planner::problem::{Device, EdgeNetwork, Node, Problem};
use divi_planner::random::Random;
use divi_planner::units::short_number;

const MOST_LAYERS: usize = 100_000;
const MOST_MACHINES: usize = 256;
/// The work of all layers, in operations.
const WORK: f64 = 1e10;
/// How far single layers are from the average.
const SPREAD: f64 = 0.6;
/// Faster or slower is no machine or link.
const SPEEDS: (f64, f64) = (1e-3, 1e9);
const RATIOS: (f64, f64) = (1e-9, 1e3);

/// What chain to make, and what network.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    pub layers: usize,
    pub machines: usize,
    /// How often the machine may change.
    pub splits: usize,
    /// What a machine does in a microsecond.
    pub rate: f64,
    /// What a link moves in a microsecond, in bytes.
    pub link: f64,
    /// Ratios of link speed to machine speed: from where on partitioning helps, from where on links help no more, and from
    /// where on they rule out nothing.
    pub improvement: f64,
    pub optimal: f64,
    pub complexity: f64,
    pub seed: u64,
}

impl Default for Chain {
    /// The paper's model on its network.
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

/// Makes the chain.
///
/// With fast links, the best is to cut the chain into as many parts as there may be; each cut has a few places where it may
/// be, and only there do all parts take no longer than the longest must. Values that cross there are as large as the second
/// boundary says. Elsewhere is the smallest value, which is the first boundary; and the largest ones, of which several can
/// go over the same link: the third.
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
    // Of one split point less than there may be, every other one sends something over the same link.
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
        // Most are about as small as the smallest: most layers of a network are deep ones.
        let share = random.unit();
        bytes[place] = (smallest + (largest - smallest) * share * share * (1.0 + share) / 2.0).round();
    }
    // The largest values come first, as those of images do; the smallest is where it is of most use.
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

    let mut problem = network(options, &flops, bytes);
    problem.name = format!("chain_L{layers}_N{machines}_S{splits}_s{}", options.seed);
    problem.meta = Some(json!({"gen": "chain", "seed": options.seed, "improvement": options.improvement,
        "optimal": options.optimal, "complexity": options.complexity}));
    Ok(problem)
}

fn check(options: &Chain) -> Result<(), Error> {
    in_range("layers", options.layers, 2, MOST_LAYERS)?;
    in_range("machines", options.machines, 2, MOST_MACHINES)?;
    // With more runs than machines, a machine may have several, and parts are more even than the longest.
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

/// Whole numbers, so that sums are exact.
fn flops(layers: usize, random: &mut Random) -> Vec<f64> {
    let shares: Vec<f64> = (0..layers).map(|_| random.factor(SPREAD)).collect();
    let all: f64 = shares.iter().sum();
    shares.iter().map(|share| (share / all * WORK).round().max(1.0)).collect()
}

/// The least that the longest of so many parts takes, and whether the chain may be cut behind each layer then. None where fewer
/// parts would do as well.
fn cut(flops: &[f64], parts: usize) -> Option<(f64, Vec<bool>)> {
    // As much as goes into each part: where the parts end.
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

/// The chain's problem: devices are the machines of the view.
fn network(options: &Chain, flops: &[f64], bytes: Vec<f64>) -> Problem {
    let Chain { layers, machines, splits, rate, link, .. } = *options;
    let device = |id: usize| Device { id, name: format!("machine{id}"), memory: None, batch_sizes: vec![1] };
    let link = |from: usize, to: usize| (from != to).then_some(link);
    let bandwidth: Vec<Vec<Option<f64>>> =
        (0..machines).map(|from| (0..machines).map(|to| link(from, to)).collect()).collect();
    let mut problem = Problem::new("chain", (0..machines).map(device).collect(), bandwidth.clone());
    problem.nodes = (0..layers)
        .map(|id| Node {
            id,
            name: Some(format!("layer{id}")),
            time: BTreeMap::from([(1, vec![Some(flops[id] / rate); machines])]),
            weight: 0.0,
            input: if id > 0 { bytes[id - 1] } else { 0.0 },
            output: Some(bytes.get(id).copied().unwrap_or(0.0)),
            scratch: 0.0,
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
