//! `divi-plan region`.

use std::path::PathBuf;

use divi_planner::Options;
use divi_planner::edge::{self, Boundaries, Point, Zone};
use divi_planner::plan::Limit;
use serde_json::json;

use crate::files;
use crate::heatmap::{Axis, Line, Map, Panel};

/// The paper's axes as powers of ten: megabytes per second, and 10^9 operations per second.
const LINKS: (i32, i32) = (0, 4);
const RATES: (i32, i32) = (-1, 2);
/// Cells of the map per power of ten.
const CELLS: i32 = 12;
/// 10^9 operations per second, in operations per microsecond.
const GIGA: f64 = 1e3;

/// Determine whether partitioning can help on an edge network, and from which link speed on
///
/// Prints the boundaries of the edge paper's four zones: one machine is optimal; partitioning helps, and faster
/// links help more; faster links do not improve the optimum; links exclude no placement. The first boundary is
/// eq. (10) and (11): below it partitioning cannot help, above it it may.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Region {
    /// Problem with an edge network, a divi-problem/1 file
    problem: PathBuf,
    /// File for the text, instead of stdout
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Maximum number of cuts, instead of the problem's
    #[arg(long, value_name = "N")]
    splits: Option<u32>,
    /// Maximum number of search nodes of each placement; by default 200000
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// File for heat maps of throughput and effort over link speed and machine speed, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Region {
    pub(super) fn run(self) -> Result<(), String> {
        let limit = self.iterations.map(Limit::Iterations);
        let options = Options { splits: self.splits, limit, ..Options::default() };
        let outputs = [("-o", self.output.as_deref()), ("--svg", self.svg.as_deref())];
        files::check(&[&self.problem], &outputs)?;
        let problem = files::problem(&self.problem)?;
        let region = edge::Region::new(&problem, &options).map_err(|error| error.to_string())?;
        let boundaries = region.boundaries().map_err(|error| error.to_string())?;
        let now = region.now().map_err(|error| error.to_string())?;
        if let Some(svg) = &self.svg {
            let Some(boundaries) = &boundaries else {
                return Err("links do not affect this network; there is nothing to draw".to_owned());
            };
            files::write(Some(svg), &map(&region, boundaries)?.svg())?;
        }
        let text = if self.json { as_object(&region, boundaries, &now) } else { words(&region, boundaries, &now) };
        files::write(self.output.as_deref(), &text)
    }
}

fn zone_name(zone: Zone) -> &'static str {
    match zone {
        Zone::Alone => "1: one machine is optimal",
        Zone::Improving => "2: partitioning may help, faster links would help more",
        Zone::Best => "3: faster links do not improve the optimum, but enlarge the search",
        Zone::Free => "4: links exclude no placement",
    }
}

fn words(region: &edge::Region, boundaries: Option<Boundaries>, now: &Point) -> String {
    let mut lines = vec![format!(
        "{} machines, up to {} operations/µs; links up to {} MB/s; ratio {:.4e} bytes per operation",
        region.machines(),
        region.rate,
        region.link,
        region.ratio()
    )];
    let smallest = region.smallest.map_or_else(|| "none".to_owned(), |bytes| format!("{bytes:.0} bytes"));
    lines.push(format!("smallest transfer {smallest}, work {:.4e} operations", region.work));
    let single = region.single;
    let verdict = match (region.machines(), single) {
        (1, _) => "there is only one machine; there is nothing to partition".to_owned(),
        _ if !region.can_split() => "no split point is allowed; there is nothing to partition".to_owned(),
        (_, None) => "no machine can run the whole model; it must be partitioned".to_owned(),
        (_, Some(_)) if !region.hangs_together => {
            "partitioning may help at any link speed: the model has independent components".to_owned()
        }
        (_, Some(single)) => {
            let (crossing, sign) = (region.crossing, if region.may_help() { "<" } else { ">=" });
            let verdict = if region.may_help() { "may help" } else { "cannot help" };
            format!(
                "partitioning {verdict}: the smallest transfer takes {crossing:.1} µs {sign} {single:.1} µs on one machine"
            )
        }
    };
    lines.push(verdict);
    if let Some(needed) = region.needed_link() {
        lines.push(format!(
            "eq. (10), (11): links of more than {needed:.4} MB/s are necessary, though not always sufficient; ratio {:.4e}",
            needed.0 / region.rate
        ));
    }
    if let Some(paper) = region.paper_splits() {
        lines.push(format!(
            "split points: fewer than {paper:.2} by eq. (9); no better placement has more than {}",
            region.enough_splits()
        ));
    }
    match boundaries {
        Some(Boundaries { improvement, optimal, complexity, proven }) => {
            let megabytes = |ratio: f64| ratio * region.rate;
            lines.push(format!(
                "partitioning improvement boundary {improvement:.4e} ({:.4} MB/s)",
                megabytes(improvement)
            ));
            lines.push(format!("optimal partitioning boundary     {optimal:.4e} ({:.4} MB/s)", megabytes(optimal)));
            lines.push(format!(
                "maximum complexity boundary       {complexity:.4e} ({:.4} MB/s)",
                megabytes(complexity)
            ));
            if !proven {
                lines.push(
                    "the second boundary is an estimate: some placements are not proven optimal; increase --iterations"
                        .to_owned(),
                );
            }
        }
        None => lines.push("there are no boundaries: links do not affect this network".to_owned()),
    }
    let gain = single.map_or_else(String::new, |single| format!(", {:.3} times one machine", single / now.period));
    lines.push(format!(
        "here: {:.1} µs per input{gain}, bound {:.1} µs, {} nodes explored{}",
        now.period,
        now.bound,
        now.explored,
        boundaries.map_or_else(String::new, |all| format!("; zone {}", zone_name(all.zone(region.ratio()))))
    ));
    lines.join("\n") + "\n"
}

fn as_object(region: &edge::Region, boundaries: Option<Boundaries>, now: &Point) -> String {
    let boundaries = boundaries.map(|all| {
        json!({"improvement": all.improvement, "optimal": all.optimal, "complexity": all.complexity,
            "proven": all.proven, "zone": all.zone(region.ratio()) as u8 + 1})
    });
    let link = Some(region.link).filter(|link| link.is_finite());
    json!({
        "machines": region.machines(), "splits": region.splits(), "work": region.work, "smallest": region.smallest,
        "rate": region.rate, "link": link, "ratio": link.map(|link| link.0 / region.rate),
        "hangs_together": region.hangs_together, "may_help": region.may_help(), "needed_link": region.needed_link(),
        "single": region.single, "period": now.period, "bound": now.bound, "explored": now.explored,
        "paper_splits": region.paper_splits().filter(|splits| splits.is_finite()),
        "enough_splits": region.enough_splits(), "boundaries": boundaries,
    })
    .to_string()
        + "\n"
}

/// Fig. 6 of the paper for this model and network: cells on a diagonal have the same ratio, which is solved once.
fn map<'a>(region: &edge::Region, boundaries: &Boundaries) -> Result<Map<'a>, String> {
    let (columns, rows) = ((LINKS.1 - LINKS.0) * CELLS, (RATES.1 - RATES.0) * CELLS);
    let middle = |first: i32, cell: i32| 10_f64.powf(f64::from(first) + (f64::from(cell) + 0.5) / f64::from(CELLS));
    let mut points = Vec::new();
    for step in 1 - rows..columns {
        let ratio = 10_f64.powf(f64::from(LINKS.0 - RATES.0) + f64::from(step) / f64::from(CELLS)) / GIGA;
        points.push(region.at(ratio).map_err(|error| error.to_string())?);
    }
    let cells = |of: &dyn Fn(&Point, f64) -> f64| -> Vec<Vec<f64>> {
        let row = |row: i32| {
            let rate = middle(RATES.0, row) * GIGA;
            (0..columns).map(|column| of(&points[(column - row + rows - 1) as usize], rate)).collect()
        };
        (0..rows).map(row).collect()
    };
    // The period scales inversely with the machines' speed at a constant ratio.
    let throughput = cells(&|point, rate| 1e6 / (point.period.0 * region.rate / rate));
    let effort = cells(&|point, _| (point.explored as f64).max(1.0));
    let line = |name: &str, ratio: f64, colour| Line {
        name: format!("{name}, {ratio:.2e} B/op"),
        ratio: ratio * GIGA,
        colour,
    };
    // Zone labels are placed in the middle of the visible part.
    let corner = |link: i32, rate: i32| 10_f64.powi(link - rate);
    let seen = (corner(LINKS.0, RATES.1), corner(LINKS.1, RATES.0));
    let [first, second, third] = [boundaries.improvement, boundaries.optimal, boundaries.complexity]
        .map(|ratio| (ratio * GIGA).clamp(seen.0, seen.1));
    let between = |low: f64, high: f64| if high > low { (low * high).sqrt() } else { 0.0 };
    Ok(Map {
        panels: vec![
            Panel { title: "throughput, inputs per second", values: throughput },
            Panel { title: "effort, search nodes", values: effort },
        ],
        x: Axis { title: "fastest link, MB/s", from: LINKS.0, to: LINKS.1 },
        y: Axis { title: "fastest machine, 10^9 operations/s", from: RATES.0, to: RATES.1 },
        lines: vec![
            line("partitioning improvement", boundaries.improvement, "#2ca02c"),
            line("optimal partitioning", boundaries.optimal, "#d62728"),
            line("maximum complexity", boundaries.complexity, "#1f77b4"),
        ],
        labels: vec![
            ("1", between(seen.0, first)),
            ("2", between(first, second)),
            ("3", between(second, third)),
            ("4", between(second.max(third), seen.1)),
        ],
        here: (region.link.0, region.rate / GIGA),
    })
}
