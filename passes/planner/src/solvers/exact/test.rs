//! Small random problems, compared with brute force.

mod brute;
mod random;

use super::graph::Graph;
use super::search::{Goal, UNLIMITED};
use super::{Limits, Pruning, search};
use crate::model::budget::Budget;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::incumbent::SharedIncumbent;
pub(crate) use brute::optimum;
pub(crate) use random::Shape;

fn shape(seed: u64) -> Shape {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9));
    Shape {
        tasks: 1 + random.below(5),
        devices: 1 + random.below(3),
        density: [0.0, 0.2, 0.5, 0.9][random.below(4)],
        communication: [0, 3, 30][random.below(3)],
        unsupported: [0.0, 0.3][random.below(2)],
        unlinked: [0.0, 0.25][random.below(2)],
        equal_devices: random.below(3) == 0,
        boundary: random.below(3) == 0,
        memory: random.below(3) == 0,
        groups: random.below(3) == 0,
        fractions: random.below(4) == 0,
        idle: [0.0, 0.3][random.below(2)],
    }
}

/// Exercises skipped comparisons and starts beyond the horizon even in small problems.
const TIGHT: Pruning = Pruning { rivals: 4, horizon: 2 };

fn tight() -> Limits {
    Limits { pruning: TIGHT, ..Limits::default() }
}

/// Returns true if the optimum was proven; checks that values and bounds are valid in any case.
fn check(seed: u64, graph: &Graph, limits: &Limits) -> bool {
    let best = optimum(graph);
    let found = search(graph, Goal::By(Micros::INFINITY), limits);
    let slack = if best.is_finite() { best * 1e-9 + Micros(1e-9) } else { Micros::ZERO };
    assert!(found.bound <= best + slack, "seed {seed}: bound {} above the optimum {best}", found.bound);
    assert!(found.relaxation <= best + slack, "seed {seed}: relaxation {} above {best}", found.relaxation);
    assert!(found.value >= best - slack, "seed {seed}: value {} below the optimum {best}", found.value);
    if let Some(sequence) = &found.sequence {
        assert_eq!(graph.starts(sequence).1, found.value, "seed {seed}");
        assert!(brute::holds(graph, sequence), "seed {seed}: {sequence:?}");
    }
    found.bound >= found.value - slack || (best.is_infinite() && found.bound.is_infinite())
}

/// Tests that the search finds the optimum and proves it.
#[test]
fn equals_brute_force() {
    for seed in 0..2000 {
        let graph = Graph::random(&shape(seed), seed);
        assert!(check(seed, &graph, &tight()), "seed {seed}: not proven");
    }
}

/// Tests that bounds hold wherever the search is stopped.
#[test]
fn bounds_hold_under_limits() {
    let mut unproven = 0;
    for seed in 0..1000 {
        let graph = Graph::random(&shape(seed), seed);
        let limits = Limits { extensions: seed % 80, ..tight() };
        unproven += usize::from(!check(seed, &graph, &limits));
    }
    assert!(unproven > 50, "only {unproven} were stopped");
}

/// Tests that the bound accounts for states that a narrow sweep drops.
#[test]
fn bounds_hold_for_narrow_sweeps() {
    use super::bounds::Bounds;
    use super::context::Context;
    use super::masks::Masks;
    use super::sweep::{Effort, sweep};
    use super::symmetry::Classes;
    let mut dropped = 0;
    for seed in 0..1000 {
        let graph = Graph::random(&Shape { tasks: 5, ..shape(seed) }, seed);
        let best = optimum(&graph);
        let bounds = Bounds::new::<1>(&graph, &graph.reversed(), UNLIMITED);
        let (masks, classes) = (Masks::<1>::new(&graph), Classes::new(&graph));
        let context = Context {
            graph: &graph,
            masks: &masks,
            classes: &classes,
            bounds: &bounds,
            cutoff: UNLIMITED,
            pruning: TIGHT,
        };
        let mut effort = Effort {
            budget: Budget { iterations: 100_000, deadline: None },
            incumbent: &SharedIncumbent::default(),
            pruning: TIGHT,
        };
        let outcome = sweep(&context, 1 + seed as usize % 4, &mut effort);
        let value = outcome.sequence.map_or(Micros::INFINITY, |sequence| graph.starts(&sequence).1);
        assert!(outcome.bound.min(value) <= best + best * 1e-9, "seed {seed}: {} > {best}", outcome.bound);
        dropped += usize::from(outcome.bound.is_finite());
    }
    assert!(dropped > 200, "only {dropped} dropped a state");
}

/// Tests that a cutoff loses nothing below it and claims nothing above it.
#[test]
fn a_cutoff_is_exact() {
    for seed in 0..400 {
        let graph = Graph::random(&shape(seed), seed);
        let best = optimum(&graph);
        if best.is_finite() && best > Micros(2.0) {
            let found = search(&graph, Goal::By(best), &tight());
            assert!((found.value - best).abs() <= best * 1e-9, "seed {seed}: {} is not {best}", found.value);
            let found = search(&graph, Goal::By(best - Micros(1.0)), &tight());
            assert!(found.sequence.is_none() && found.bound <= best, "seed {seed}: {found:?}");
        }
    }
}

/// Tests that a search improves on the shared incumbent or proves it optimal.
#[test]
fn the_incumbent_is_improved_or_proven() {
    for seed in 0..400 {
        let graph = Graph::random(&shape(seed), seed);
        let best = optimum(&graph);
        if best.is_finite() && best > Micros(2.0) {
            let found = search(&graph, Goal::Beat(&SharedIncumbent::new(best)), &tight());
            let slack = best * 1e-9;
            assert!(found.value >= best - slack && (found.bound - best).abs() <= slack, "seed {seed}: {found:?}");
            let found = search(&graph, Goal::Beat(&SharedIncumbent::new(best + Micros(1.0))), &tight());
            assert!((found.value - best).abs() <= best * 1e-9 && found.bound <= best * (1.0 + 1e-9), "{found:?}");
        }
    }
}

/// Tests determinism, and symmetry under time reversal.
#[test]
fn is_deterministic_and_symmetric_in_time() {
    for seed in 0..12 {
        let graph = Graph::random(&Shape { tasks: 9, ..shape(seed) }, seed);
        let limits = Limits { extensions: 500, ..tight() };
        let (once, again) =
            (search(&graph, Goal::By(Micros::INFINITY), &limits), search(&graph, Goal::By(Micros::INFINITY), &limits));
        assert_eq!((once.sequence, once.bound), (again.sequence, again.bound));
        let there = search(&graph, Goal::By(Micros::INFINITY), &tight()).value;
        let back = search(&graph.reversed(), Goal::By(Micros::INFINITY), &tight()).value;
        assert!(there == back || (there - back).abs() <= there * 1e-9, "seed {seed}: {there} and {back}");
    }
}
