//! Table 2: vision models on two machines in the paper's setups.

use std::collections::BTreeMap;

use divi_planner::edge::Region;
use divi_planner::plan::Limit;
use divi_planner::problem::{Device, EdgeNetwork, Node};
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Options, Problem};

use super::Settings;
use super::zones::zone_number;
use crate::models::{VISION, operations, problem};

/// Operations and bytes per microsecond: a GPU and a CPU on Wi-Fi, a GPU and a CPU on Ethernet.
const SETUPS: [(f64, f64); 4] = [(30_700.0, 10.0), (1_570.0, 10.0), (14_700.0, 1_400.0), (1_570.0, 1_400.0)];
const MACHINES: usize = 2;
const SPLITS: u32 = 3;
/// System that models are imported for; its times are not used.
const SYSTEM: &str = "cpu-2";

pub(super) fn models(settings: &Settings) -> Result<(), String> {
    println!(
        "Table 2: models on {MACHINES} equal machines, at most {SPLITS} split points: gain over one machine, and zone"
    );
    let ratios = SETUPS.map(|(rate, link)| format!("{:.2e}", link / rate));
    println!(
        "{:<20} {:>6} {:>10} {:>10} {:>10}  setups, ratio",
        "model", "layers", "eq. (10)", "optimal", "complexity"
    );
    print!("{:<61}", "");
    ratios.iter().for_each(|ratio| print!(" {ratio:>11}"));
    println!(" {:>9}", "nodes");
    for model in VISION {
        let network = network(model)?;
        let limit = Some(Limit::Iterations(settings.iterations));
        let region =
            Region::new(&network, &Options { limit, ..Options::default() }).map_err(|error| error.to_string())?;
        let single = region.single.ok_or("no machine can run the whole model")?;
        let found = region.boundaries().map_err(|error| error.to_string())?.ok_or("links do not affect the result")?;
        let guess = if found.proven { ' ' } else { '*' };
        print!(
            "{model:<20} {:>6} {:>10.2e} {:>9.2e}{guess} {:>10.2e} ",
            network.nodes.len(),
            found.improvement,
            found.optimal,
            found.complexity
        );
        let mut nodes = 0;
        for (rate, link) in SETUPS {
            let point = region.at(link / rate).map_err(|error| error.to_string())?;
            let open = if point.is_proven() { ' ' } else { '*' };
            print!(" {:>6.3}x{open}({})", single / point.period, zone_number(found.zone(link / rate)));
            nodes = nodes.max(point.explored);
        }
        println!(" {nodes:>9}");
    }
    println!(
        "the paper has YOLOv2: no gain in setup 1, gains in the others; its ratio of setup 4, 0.98, should be 1.4 / 1.57 = 0.89"
    );
    println!("* not proven");
    Ok(())
}

/// Builds the edge-network problem of a model's tasks, without its inputs and outputs, which the paper does not place.
fn network(model: &str) -> Result<Problem, String> {
    let (posed, operations) = (problem(model, SYSTEM, 1)?, operations(model, SYSTEM)?);
    let mut layer_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut flops = Vec::new();
    for node in &posed.nodes {
        if let Some(operations) = node.name.as_ref().and_then(|name| operations.get(name)) {
            layer_of.insert(node.id, flops.len());
            flops.push(*operations);
        }
    }
    if flops.len() != operations.len() {
        return Err(format!("{model}: {} tasks have operations, {} are in the problem", operations.len(), flops.len()));
    }
    let mut moved: BTreeMap<(usize, usize), Bytes> = BTreeMap::new();
    for tensor in posed.all_tensors() {
        for (from, to) in tensor.to.iter().filter_map(|to| layer_of.get(&tensor.from).zip(layer_of.get(to))) {
            *moved.entry((*from, *to)).or_default() += tensor.bytes;
        }
    }
    let (rate, link) = SETUPS[0];
    let device = |id: usize| Device { id, name: format!("machine{id}"), memory: None, batch_sizes: vec![1] };
    let links: Vec<Vec<Option<BytesPerMicro>>> = (0..MACHINES)
        .map(|from| (0..MACHINES).map(|to| (from != to).then_some(BytesPerMicro(link))).collect())
        .collect();
    let mut problem = Problem::new(model, (0..MACHINES).map(device).collect(), links.clone());
    problem.nodes = flops
        .iter()
        .enumerate()
        .map(|(id, flops)| Node {
            id,
            name: None,
            time: BTreeMap::from([(1, vec![Some(Micros(flops / rate)); MACHINES])]),
            weight: Bytes::ZERO,
            input: Bytes::ZERO,
            output: Some(Bytes::ZERO),
            scratch: Bytes::ZERO,
            pin: None,
            module: None,
        })
        .collect();
    problem.edges = Some(moved.keys().copied().collect());
    problem.edge = Some(EdgeNetwork {
        flops,
        rate: vec![rate; MACHINES],
        bandwidth: links,
        edge_bytes: moved.into_values().collect(),
        splits: Some(SPLITS),
        threads: None,
        pin: None,
    });
    Ok(problem)
}
