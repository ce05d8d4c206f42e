//! Speed of slicing, relative to the plain dynamic program on a table of all intervals.

use divi_papers::generate::{Kind, Regal, Rwnn, regal, rwnn};
use divi_planner::OrderSearch;
use divi_planner::plan::Limit;
use divi_planner::problem::{Node, Pipeline};
use divi_planner::random::Random;
use divi_planner::units::{BytesPerMicro, Micros};
use divi_planner::{Objective, Options, Problem};

use super::baseline::{Graph, renumbered};
use super::orders::first_order;
use super::process::{forget_peak, peak_memory, processor_seconds};
use super::progress::Progress;
use crate::runs::{SAME, run_with};

/// Number of orders of each graph for which both results are compared.
const CHECKED: usize = 20;
const LABEL: usize = 46;

pub(super) fn speed() -> Result<(), String> {
    println!("slicing in processor time, summed over all threads; REGAL-like graphs, and a network of 10,000 modules");
    println!("{:<LABEL$} {:>11} {:>11} {:>8} {:>9}", "", "divi", "plain DP", "ratio", "target");
    one_order()?;
    many_orders()?;
    large()?;
    println!(
        "for the smaller two, both have the same value for {CHECKED} orders; for 100,000 the plain DP's table takes 80 GB"
    );
    Ok(())
}

/// Times one order of a search, and a whole call for one order, including checks, bounds and verification.
fn one_order() -> Result<(), String> {
    const ORDERS: u64 = 200;
    const K: u32 = 16;
    let (problem, graph) = graph(1000)?;
    check(&problem, &graph, K)?;
    let call = processor_seconds(|| first_order(&problem, K).map(drop))?;
    let search = processor_seconds(|| search(&problem, K, ORDERS))?;
    let mut random = Random::new(1);
    let plain = processor_seconds(|| {
        let order = graph.random_order(&mut random);
        std::hint::black_box(graph.slice(&order, K));
        Ok(())
    })?;
    compared("n = 1,000, k = 16, ER: one order", (search - call) / ORDERS as f64, plain, "5 ms");
    println!("{:<LABEL$} {:>11}", "  solve as a whole, for one order", time(call));
    Ok(())
}

fn many_orders() -> Result<(), String> {
    const ORDERS: u64 = 10_000;
    const K: u32 = 16;
    let (problem, graph) = graph(200)?;
    check(&problem, &graph, K)?;
    let ours = processor_seconds(|| search(&problem, K, ORDERS))?;
    let mut random = Random::new(1);
    let plain = processor_seconds(|| {
        for _ in 0..ORDERS {
            let order = graph.random_order(&mut random);
            std::hint::black_box(graph.slice(&order, K));
        }
        Ok(())
    })?;
    compared("n = 200, k = 16, ER: brkga-10000", ours, plain, "5 s");
    Ok(())
}

/// Graphs too large for a table of all intervals: one with long-range tensors, and one whose transfers take about as long as
/// its tasks.
fn large() -> Result<(), String> {
    let far = Regal { kind: Kind::BarabasiAlbert, nodes: 100_000, seed: 1 };
    solve_once("BA", &regal(&far).map_err(|error| error.to_string())?)?;
    solve_once("RWNN", &network()?)
}

fn solve_once(what: &str, problem: &Problem) -> Result<(), String> {
    const K: u32 = 64;
    forget_peak();
    let seconds = processor_seconds(|| first_order(problem, K).map(drop))?;
    let peak = peak_memory()?;
    let what = format!("n = 100,000, k = {K}, {what}: solve, one order");
    println!("{what:<LABEL$} {:>11} {:>11} {:>8} {:>9}", time(seconds), "-", "-", "2 s");
    println!("{:<LABEL$} {:>8.0} MB {:>11} {:>8} {:>9}", "  peak resident memory", peak / 1e6, "-", "-", "2 GB");
    Ok(())
}

/// Builds a randomly wired network on homogeneous devices with the minimal times of its tasks and its fastest link.
fn network() -> Result<Problem, String> {
    let options = Rwnn { nodes: 10, modules: 10_000, communication: 1.0, ..Rwnn::default() };
    let mut problem = rwnn(&options).map_err(|error| error.to_string())?;
    let least = |node: &Node| node.time.values().flatten().flatten().copied().fold(Micros::INFINITY, Micros::min);
    let work = problem.nodes.iter().map(least).collect();
    let bandwidth = problem.bandwidth.iter().flatten().flatten().copied().fold(BytesPerMicro::ZERO, BytesPerMicro::max);
    problem.mtpp = Some(Pipeline { work, k: Vec::new(), bandwidth, memory: None });
    Ok(problem)
}

fn graph(nodes: usize) -> Result<(Problem, Graph), String> {
    let problem = regal(&Regal { nodes, ..Regal::default() }).map_err(|error| error.to_string())?;
    Graph::new(&problem).map(|graph| (problem, graph))
}

fn search(problem: &Problem, k: u32, orders: u64) -> Result<(), String> {
    let limit = Some(Limit::Iterations(orders));
    let options = Options { stages: Some(k), limit, order: Some(OrderSearch::Brkga), ..Options::default() };
    run_with(problem, Objective::Pipeline, "slicegraph", options).map(drop)
}

/// Checks that both find the same value for the same orders.
fn check(problem: &Problem, graph: &Graph, k: u32) -> Result<(), String> {
    let progress = Progress::on_terminal();
    let mut random = Random::new(2);
    for index in 0..CHECKED {
        progress.show(&format!("{}: order {} of {CHECKED}", problem.name, index + 1));
        let order = graph.random_order(&mut random);
        let (ours, plain) = (first_order(&renumbered(problem, &order), k)?.value, graph.slice(&order, k));
        if (ours - plain).abs() > plain * SAME {
            return Err(format!("{}, k = {k}: slicegraph has {ours}, the plain program {plain}", problem.name));
        }
    }
    Ok(())
}

fn compared(what: &str, ours: f64, plain: f64, target: &str) {
    let ratio = format!("{:.1}x", plain / ours);
    println!("{what:<LABEL$} {:>11} {:>11} {ratio:>8} {target:>9}", time(ours), time(plain));
}

fn time(seconds: f64) -> String {
    if seconds < 0.1 { format!("{:.2} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}
