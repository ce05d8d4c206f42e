//! Fig. 5: gains of more machines and more split points, at 5 GHz and 10 MB/s.

use divi_papers::generate::{Chain, chain};
use divi_planner::edge::Region;
use divi_planner::plan::Limit;
use divi_planner::units::BytesPerMicro;
use divi_planner::{Options, Problem};

use super::Settings;
use crate::runs::geometric_mean;

const MOST_MACHINES: usize = 6;
const MOST_SPLITS: u32 = 5;
/// Range of the paper's gains with more than two machines.
const PAPER: (f64, f64) = (1.9, 2.3);

pub(super) fn speedups(settings: &Settings) -> Result<(), String> {
    println!("Fig. 5: gains over one machine, means of {} chains of 49 layers, 5 GHz and 10 MB/s", settings.seeds);
    println!("as printed, ratio 2e-3: by eq. (12) at most 2e-3 / 1.64e-3 = {:.2}", 2e-3 / 1.64e-3);
    table(settings, 2e-3)?;
    println!();
    println!("with two operations per multiply-add, ratio 4e-3: at most {:.2}", 4e-3 / 1.64e-3);
    table(settings, 4e-3)?;
    println!("the paper: {:.1}x to {:.1}x for more than two machines, no gain beyond 3 split points", PAPER.0, PAPER.1);
    Ok(())
}

fn table(settings: &Settings, ratio: f64) -> Result<(), String> {
    print!("{:<12}", "machines");
    (0..=MOST_SPLITS).for_each(|splits| print!(" {:>8}", format!("S = {splits}")));
    println!();
    let (mut least, mut greatest, mut nodes, mut open) = (f64::INFINITY, 0.0_f64, 0, 0);
    for machines in 1..=MOST_MACHINES {
        print!("{machines:<12}");
        for splits in 0..=MOST_SPLITS {
            let mut gains = Vec::new();
            for seed in 1..=settings.seeds {
                let region = region(seed, machines, splits, settings)?;
                let single = region.single.ok_or("no machine can run the whole model")?;
                let point = if machines > 1 { region.at(ratio) } else { region.now() };
                let point = point.map_err(|error| error.to_string())?;
                gains.push(single / point.period);
                nodes = nodes.max(point.explored);
                open += usize::from(!point.is_proven());
            }
            print!(" {:>7.3}x", geometric_mean(&gains));
            if machines > 2 && splits > 0 {
                least = gains.iter().copied().fold(least, f64::min);
                greatest = gains.iter().copied().fold(greatest, f64::max);
            }
        }
        println!();
    }
    println!(
        "single chains, more than two machines, S > 0: {least:.2}x to {greatest:.2}x; at most {nodes} nodes, {open} not proven"
    );
    Ok(())
}

/// Builds the chain of a seed on a number of machines.
fn region(seed: u64, machines: usize, splits: u32, settings: &Settings) -> Result<Region, String> {
    let mut problem: Problem = chain(&Chain { seed, ..Chain::default() }).map_err(|error| error.to_string())?;
    let Chain { rate, link, .. } = Chain::default();
    let view = problem.edge.as_mut().ok_or("no view")?;
    view.rate = vec![rate; machines];
    view.bandwidth = vec![vec![Some(BytesPerMicro(link)); machines]; machines];
    let limit = Some(Limit::Iterations(settings.iterations));
    let options = Options { splits: Some(splits), limit, ..Options::default() };
    Region::new(&problem, &options).map_err(|error| error.to_string())
}
