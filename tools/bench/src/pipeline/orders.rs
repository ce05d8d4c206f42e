//! Table 2: values of the best slicings of different orders, and of searches that are not restricted to an order.

use divi_planner::OrderSearch;
use divi_planner::plan::Limit;
use divi_planner::random::Random;
use divi_planner::units::Micros;
use divi_planner::{Objective, Options, Plan, Problem};

use super::Settings;
use super::baseline::{Graph, renumbered};
use super::best::Best;
use super::graphs::{graphs, simple_bound};
use super::progress::Progress;
use super::table::{self, DIGITS, ONE, STAGES, TWO};
use crate::runs::{geometric_mean, run_with};

/// Method of a row.
#[derive(Clone, Copy)]
enum Way {
    /// One random order. Searches over orders always include the graph's own order, which would make two.
    RandomOrder,
    /// A search over a number of orders.
    Orders(OrderSearch, u64),
    /// An algorithm with a time limit in seconds.
    Search(&'static str),
}

/// Rows with the paper's numbers.
const ROWS: [(&str, Way, Option<[f64; STAGES.len()]>); 9] = [
    ("mla", Way::Orders(OrderSearch::Mla, 10_000), Some([1.216, 1.538, 1.950, 2.224, 2.304, 2.326])),
    ("mla-weighted", Way::Orders(OrderSearch::MlaWeighted, 10_000), Some([1.206, 1.516, 1.920, 2.182, 2.258, 2.283])),
    ("random-1", Way::RandomOrder, Some([1.220, 1.551, 1.959, 2.230, 2.309, 2.333])),
    ("random-100", Way::Orders(OrderSearch::Random, 100), Some([1.201, 1.512, 1.916, 2.179, 2.258, 2.282])),
    ("random-10000", Way::Orders(OrderSearch::Random, 10_000), Some([1.199, 1.509, 1.911, 2.176, 2.256, 2.281])),
    ("brkga-100", Way::Orders(OrderSearch::Brkga, 100), Some([1.201, 1.516, 1.919, 2.184, 2.263, 2.288])),
    ("brkga-10000", Way::Orders(OrderSearch::Brkga, 10_000), Some([1.199, 1.509, 1.910, 2.175, 2.255, 2.272])),
    ("anneal", Way::Search("anneal"), None),
    ("auto", Way::Search("auto"), None),
];

/// Values by number of stages and graph.
type Values = Vec<Vec<Micros>>;

pub(super) fn orders(settings: &Settings, best: &mut Best) -> Result<(), String> {
    let graphs = graphs(settings)?;
    let Settings { seconds, stages, .. } = settings;
    let count = graphs.len();
    println!(
        "Table 2: value to the simple bound (Lemma 3.3), geometric means of {count} graphs; anneal and auto {seconds} s"
    );
    table::header("", stages, ONE);
    let mut rows = Vec::new();
    for (name, way, paper) in ROWS {
        let values = values(settings, &graphs, name, way)?;
        let mean = |(values, k): (&Vec<Micros>, &u32)| {
            let ratios: Vec<f64> =
                values.iter().zip(&graphs).map(|(value, it)| *value / simple_bound(it, *k)).collect();
            format!("{:.DIGITS$}", geometric_mean(&ratios))
        };
        table::row(name, values.iter().zip(stages).map(mean), ONE);
        if let Some(paper) = paper {
            table::paper_row(stages, &paper, 3);
        }
        for (values, k) in values.iter().zip(stages) {
            values.iter().zip(&graphs).for_each(|(value, graph)| best.report(&graph.name, *k, *value));
        }
        rows.push((name, values));
    }
    println!("the paper has 369 other graphs, of production models: compare the ranks of rows, not entries");
    println!();
    over_best_known(stages, &graphs, &rows, best);
    Ok(())
}

fn values(settings: &Settings, graphs: &[Problem], name: &str, way: Way) -> Result<Values, String> {
    let progress = Progress::on_terminal();
    let of_stages = |k: &u32| {
        let of_graph = |(index, graph): (usize, &Problem)| {
            progress.show(&format!("{name}, k = {k}: graph {} of {}", index + 1, graphs.len()));
            plan(graph, *k, way, settings.seconds).map(|plan| plan.value)
        };
        graphs.iter().enumerate().map(of_graph).collect()
    };
    settings.stages.iter().map(of_stages).collect()
}

fn plan(problem: &Problem, k: u32, way: Way, seconds: f64) -> Result<Plan, String> {
    let options = |limit: Limit| Options { stages: Some(k), limit: Some(limit), ..Options::default() };
    let (algorithm, options) = match way {
        Way::RandomOrder => {
            let order = Graph::new(problem)?.random_order(&mut Random::new(Options::default().seed));
            return first_order(&renumbered(problem, &order), k);
        }
        Way::Orders(order, count) => {
            ("slicegraph", Options { order: Some(order), ..options(Limit::Iterations(count)) })
        }
        Way::Search(algorithm) => (algorithm, options(Limit::Seconds(seconds))),
    };
    run_with(problem, Objective::Pipeline, algorithm, options).map(|run| run.plan)
}

/// Returns the best slicing of the order of the nodes' numbers.
pub(super) fn first_order(problem: &Problem, k: u32) -> Result<Plan, String> {
    let options = Options { stages: Some(k), limit: Some(Limit::Iterations(0)), ..Options::default() };
    run_with(problem, Objective::Pipeline, "slicegraph", options).map(|run| run.plan)
}

fn over_best_known(stages: &[u32], graphs: &[Problem], rows: &[(&str, Values)], best: &Best) {
    let known = |k: u32| graphs.iter().map(move |graph| best.known(&graph.name, k));
    if !stages.iter().any(|k| known(*k).flatten().next().is_some()) {
        println!("best-known.json has none of these graphs with these numbers of stages");
        return;
    }
    println!("value to the best known, geometric mean and worst of the graphs that best-known.json has");
    table::header("", stages, TWO);
    for (name, values) in rows {
        let entry = |(values, k): (&Vec<Micros>, &u32)| {
            let ratios: Vec<f64> =
                values.iter().zip(known(*k)).filter_map(|(value, known)| Some(*value / known?)).collect();
            let worst = ratios.iter().copied().fold(0.0, f64::max);
            if ratios.is_empty() {
                "-".to_owned()
            } else {
                format!("{:.DIGITS$} {worst:.DIGITS$}", geometric_mean(&ratios))
            }
        };
        table::row(name, values.iter().zip(stages).map(entry), TWO);
    }
}
