//! Stages of plans for random problems with bus contention; their invariants are checked here.

#[path = "../../planner/tests/small/random_problem.rs"]
mod random_problem;

use std::collections::{BTreeMap, BTreeSet};

use divi_planner::plan::{Limit, Schedule};
use divi_planner::problem::Contention;
use divi_planner::random::Random;
use divi_planner::units::Micros;
use divi_planner::{Error, Objective, Options, Plan, Problem, Terms, solve, verify_under};
use divi_stages::{Move, Source, StageOptions, Staged, stages};
use random_problem::{Size, problem};

const ALGORITHMS: [&str; 4] = ["met", "greedy", "heft", "anneal"];

/// Generates a problem whose links share few buses, and a plan; `None` if there is no plan.
fn planned(random: &mut Random, round: usize) -> Option<(Problem, Plan)> {
    let (objective, inputs) = if round.is_multiple_of(2) { (Objective::Latency, 1) } else { (Objective::Batch, 4) };
    let mut problem = problem(&Size { nodes: [6, 12, 20][round % 3], devices: 3, inputs }, random);
    let name = |random: &mut Random| ["a", "a", "b"].get(random.below(4)).map(|name| (*name).to_owned());
    problem.bus = Some((0..3).map(|_| (0..3).map(|_| name(random)).collect()).collect());
    problem.contention = if round % 4 < 2 { Contention::Exclusive } else { Contention::Shared };
    let options = Options { limit: Some(Limit::Iterations(200)), seed: round as u64, ..Options::default() };
    match solve(&problem, objective, ALGORITHMS[round / 4 % ALGORITHMS.len()], &options) {
        Ok(plan) => Some((problem, plan)),
        Err(Error::Bug(error)) => panic!("{error}"),
        Err(_) => None,
    }
}

/// Returns the start of each launch by its node and first input.
fn starts(plan: &Plan) -> BTreeMap<(usize, u32), Micros> {
    match &plan.schedule {
        Schedule::Latency { start, .. } => start.iter().enumerate().map(|(node, start)| ((node, 0), *start)).collect(),
        Schedule::Batch { batches, .. } => {
            let first = |inputs: &[u32]| inputs.iter().copied().min().expect("a batch has inputs");
            batches.iter().map(|batch| ((batch.node, first(&batch.inputs)), batch.start)).collect()
        }
        _ => unreachable!("only latency and batch are planned"),
    }
}

/// Checks that times are the plan's, and that a stage starts after its operands arrive and ends before its results leave.
fn check(problem: &Problem, staged: &Staged) {
    let plan = &staged.plan;
    let context = || format!("{}\n{}\n{staged:#?}", problem.write(), plan.write());
    let way = |moved: &Move| (moved.tensor, moved.from, moved.to);
    let listed: BTreeMap<_, _> = plan.transfers.iter().map(|t| ((t.tensor, t.from, t.to), (t.start, t.end))).collect();
    let moved: BTreeMap<_, _> = staged.moves.iter().map(|moved| (way(moved), (moved.start, moved.end))).collect();
    assert_eq!((&moved, moved.len()), (&listed, staged.moves.len()), "{}", context());

    let (starts, tensors) = (starts(plan), problem.all_tensors());
    let mut stage_of: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    for (index, stage) in staged.stages.iter().enumerate() {
        let mut now = stage.start;
        for task in &stage.tasks {
            let size = stage.inputs.len() as u32;
            assert!((starts[&(*task, stage.inputs[0])] - now).abs() < Micros(1e-6), "{index}\n{}", context());
            now += problem.nodes[*task].time[&size][stage.device].expect("it runs there");
            for input in &stage.inputs {
                assert!(stage_of.insert((*task, *input), index).is_none());
            }
        }
        assert!((stage.end - now).abs() < Micros(1e-6));
    }
    let mut wanted: BTreeMap<(usize, usize, usize), BTreeSet<u32>> = BTreeMap::new();
    for (index, stage) in staged.stages.iter().enumerate() {
        let reads = |task: usize| tensors.iter().enumerate().filter(move |(_, tensor)| tensor.to.contains(&task));
        for (tensor, read) in stage.tasks.iter().flat_map(|task| reads(*task)) {
            for input in &stage.inputs {
                let source = stage_of.get(&(read.from, *input)).copied();
                let from = source.map_or(problem.nodes[read.from].pin, |source| Some(staged.stages[source].device));
                let from = from.expect("ports are pinned");
                if from != stage.device {
                    let (_, arrival) = moved[&(tensor, from, stage.device)];
                    assert!(arrival <= stage.start + Micros(1e-6), "{index} reads {tensor}\n{}", context());
                    wanted.entry((tensor, from, stage.device)).or_default().insert(*input);
                }
            }
        }
    }
    for step in &staged.moves {
        if let Source::Stage(source) = step.source {
            assert!(step.start + Micros(1e-6) >= staged.stages[source].end, "{}", context());
        }
        // Model outputs are in no stage.
        let read = wanted.get(&way(step)).cloned().unwrap_or_default();
        assert!(read.is_subset(&step.inputs.iter().copied().collect()), "{}", context());
    }
}

#[test]
fn planned_times_are_kept() {
    let mut random = Random::new(31);
    let (mut count, mut moved, mut joined, mut merged) = (0, 0, 0, 0);
    for round in 0..500 {
        let Some((problem, plan)) = planned(&mut random, round) else { continue };
        let staged = stages(&problem, &plan, &StageOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(staged.plan, plan);
        check(&problem, &staged);
        let options = StageOptions { min_tasks: 3, ..StageOptions::default() };
        let fewer = stages(&problem, &plan, &options).unwrap_or_else(|error| panic!("{error}"));
        let value = verify_under(&problem, &fewer.plan, &Terms::stated_by(&fewer.plan))
            .unwrap_or_else(|error| panic!("{error}"));
        assert!((value - fewer.plan.value).abs() < Micros(1e-6));
        check(&problem, &fewer);
        merged += usize::from(fewer.merged > 0);
        count += 1;
        moved += staged.moves.len();
        joined += usize::from(staged.stages.iter().any(|stage| stage.tasks.len() > 1));
    }
    assert!(count > 100 && moved > 500 && joined > 50 && merged > 40, "{count} {moved} {joined} {merged}");
}

#[test]
fn stale_times_are_recomputed() {
    let mut random = Random::new(32);
    let (mut count, mut refused) = (0, 0);
    for round in 0..500 {
        let Some((problem, mut plan)) = planned(&mut random, round) else { continue };
        let mut spoil = |start: &mut Micros| *start = Micros(random.below(30) as f64);
        match &mut plan.schedule {
            Schedule::Latency { start, .. } => start.iter_mut().for_each(&mut spoil),
            Schedule::Batch { batches, .. } => batches.iter_mut().for_each(|batch| spoil(&mut batch.start)),
            _ => unreachable!("only latency and batch are planned"),
        }
        match stages(&problem, &plan, &StageOptions::default()) {
            Ok(staged) => {
                let value = verify_under(&problem, &staged.plan, &Terms::stated_by(&staged.plan))
                    .unwrap_or_else(|error| panic!("{error}"));
                assert!((value - staged.plan.value).abs() < Micros(1e-6));
                check(&problem, &staged);
                count += 1;
            }
            Err(Error::NotFound(message)) => {
                assert!(message.contains("keeps to memory"), "{message}");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(count > 100 && refused < 50, "{count} {refused}");
}
