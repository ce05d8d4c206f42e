//! Fig. 6: zones of a chain with the paper's ratios.

use divi_papers::generate::{Chain, chain};
use divi_planner::Options;
use divi_planner::edge::{Boundaries, Region, Zone};
use divi_planner::plan::Limit;
use divi_planner::units::BytesPerMicro;

use super::Settings;
use super::paper;
use crate::runs::SAME;

/// Ratios around each boundary, and those of section V-A and Table 2.
const RATIOS: [f64; 14] =
    [3.26e-4, 1e-3, 1.6e-3, 1.68e-3, 2e-3, 4e-3, 6.37e-3, 9.4e-3, 9.6e-3, 2e-2, 9.52e-2, 0.16, 0.176, 0.892];
/// The paper's boundaries, and the maximum number of evaluations in its figure.
const PAPER: [f64; 3] = [1.64e-3, 9.52e-3, 0.168];
const PAPER_MOST: f64 = 1.7e5;

pub(super) fn zones(settings: &Settings) -> Result<(), String> {
    let options = Chain::default();
    let mut problem = chain(&options).map_err(|error| error.to_string())?;
    let Chain { layers, machines, splits, .. } = options;
    let limit = Some(Limit::Iterations(settings.iterations));
    let region = Region::new(&problem, &Options { limit, ..Options::default() }).map_err(|error| error.to_string())?;
    let found = region.boundaries().map_err(|error| error.to_string())?.ok_or("links do not affect the result")?;
    println!("Fig. 6: a chain of {layers} layers on {machines} equal machines, at most {splits} split points");
    let Boundaries { improvement, optimal, complexity, .. } = found;
    let names = ["partitioning improvement", "optimal partitioning", "maximum complexity"];
    for ((name, ours), paper) in names.into_iter().zip([improvement, optimal, complexity]).zip(PAPER) {
        println!("{name:<26} boundary {ours:.4e}, the paper's {paper:.4e}");
    }
    println!("{:>10} {:>5} {:>8} {:>8} {:>10} {:>14}", "ratio", "zone", "gain", "gap", "nodes", "algorithm 1");
    let single = region.single.ok_or("no machine can run the whole model")?;
    let (mut most, mut most_of_paper) = (0, 0);
    for ratio in RATIOS {
        let point = region.at(ratio).map_err(|error| error.to_string())?;
        let gap = (point.period - point.bound) / point.period * 100.0;
        let (edges, view) = (problem.edges.as_deref().unwrap_or_default(), problem.edge.as_mut().ok_or("no view")?);
        let link = BytesPerMicro(ratio * options.rate);
        view.bandwidth.iter_mut().flatten().flatten().for_each(|bandwidth| *bandwidth = link);
        let paper = paper::branch_and_bound(view, edges, splits);
        if (paper.period / point.period - 1.0).abs() > SAME {
            return Err(format!("at {ratio}: {} by us, {} by the paper's algorithm", point.period, paper.period));
        }
        let (zone, gain) = (zone_number(found.zone(ratio)), single / point.period);
        println!("{ratio:>10.3e} {zone:>5} {gain:>7.3}x {gap:>6.2} % {:>10} {:>14}", point.explored, paper.evaluated);
        most = most.max(point.explored);
        most_of_paper = most_of_paper.max(paper.evaluated);
    }
    println!(
        "most nodes {most}; algorithm 1 as printed evaluates {most_of_paper}; the paper's figure has {PAPER_MOST:.1e}"
    );
    println!("eq. (8): {:.2e} placements", paper::placements(layers, machines, splits));
    println!("both find the same periods");
    Ok(())
}

pub(super) fn zone_number(zone: Zone) -> u8 {
    match zone {
        Zone::Alone => 1,
        Zone::Improving => 2,
        Zone::Best => 3,
        Zone::Free => 4,
    }
}
