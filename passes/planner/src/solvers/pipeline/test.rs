//! Tests the parts of pipelines against their definitions, on small random graphs that can be enumerated.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::anneal::Stages;
use super::brkga::Sliced;
use super::cost::{self, Blocks};
use super::incumbent::PipelineIncumbent;
use super::line::Line;
use super::model::Model;
use super::order;
use super::pack::{self, Effort, Packed, Packer};
use super::priced;
use super::program::{Formulation, Shape};
use super::slice::{Slicer, Slicing, costs};
use super::state::State;
use super::{answer, bounds};
use crate::mip::Limits;
use crate::model::options::Options;
use crate::model::options::PipelineCost;
use crate::model::plan::{Bound, Plan, Proof};
use crate::model::problem::{Device, Node, Pipeline, Problem, Tensor};
use crate::model::units::{Bytes, BytesPerMicro, Micros};
use crate::random::Random;

const SLACK: Micros = Micros(1e-9);

/// Tasks with several results each, of which some are large; every third problem has little memory.
fn view(problem: &Problem) -> &Pipeline {
    problem.mtpp.as_ref().unwrap()
}

fn problem(nodes: usize, random: &mut Random) -> Problem {
    let device = Device { id: 0, name: "cu".to_owned(), memory: None, batch_sizes: vec![1] };
    let mut problem = Problem::new("random", vec![device], vec![vec![None]]);
    let node = |id: usize, random: &mut Random| Node {
        id,
        name: None,
        time: BTreeMap::from([(1, vec![Some(Micros(1.0))])]),
        weight: Bytes(random.below(6) as f64),
        input: Bytes::ZERO,
        output: None,
        scratch: Bytes(random.below(4) as f64),
        pin: None,
        module: None,
    };
    problem.nodes = (0..nodes).map(|id| node(id, random)).collect();
    let mut tensors = Vec::new();
    for from in 0..nodes {
        for _ in 0..random.below(3) {
            let to: Vec<usize> = (from + 1..nodes).filter(|_| random.chance(0.35)).collect();
            tensors.push(Tensor { from, bytes: Bytes(random.below(9) as f64), to });
        }
    }
    problem.tensors = Some(tensors);
    let work = (0..nodes).map(|_| Micros(random.below(12) as f64)).collect();
    let memory = (random.below(3) == 0).then(|| Bytes(random.below(20) as f64));
    problem.mtpp = Some(Pipeline { work, k: vec![1 + random.below(4) as u32], bandwidth: BytesPerMicro(0.5), memory });
    problem
}

fn options(random: &mut Random) -> Options {
    Options { pipeline_cost: Some(PipelineCost::ALL[random.below(2)]), ..Options::default() }
}

/// Returns the value of a slicing by its definition.
fn defined(problem: &Problem, model: &Model, order: &[u32], slicing: &Slicing) -> Micros {
    let blocks = Sliced { order: order.to_vec(), slicing: slicing.clone() }.blocks();
    value(problem, model, &blocks, order)
}

fn value(problem: &Problem, model: &Model, blocks: &[u32], order: &[u32]) -> Micros {
    let nodes: Vec<usize> = order.iter().flat_map(|task| model.nodes[*task as usize].iter().copied()).collect();
    let blocks = Blocks { block: &model.node_blocks(blocks), order: &nodes, k: model.k };
    cost::bottleneck(problem, view(problem), model.cost, &blocks)
}

/// Returns every set of ends of at most k blocks.
fn all_slicings(tasks: usize, k: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1_u32 << (tasks - 1))
        .filter(move |cuts| (cuts.count_ones() as usize) < k)
        .map(move |cuts| (1..tasks).filter(|place| cuts >> (place - 1) & 1 == 1).chain([tasks]).collect())
}

#[test]
fn slicings_are_the_best_of_every_order() {
    let mut random = Random::new(1);
    for round in 0..3000 {
        let size = 1 + random.below(9);
        let (problem, options) = (problem(size, &mut random), options(&mut random));
        let model = Model::new(&problem, view(&problem), &options).unwrap();
        let order = order::by_keys(&model, &order::random_keys(&model, &mut random));
        let line = Line::new(&model, &order);
        let least = bounds::simple(&model).value;
        let guess = Micros(random.below(60) as f64);
        let slicing = Slicer::new(&model, least).best(&line, guess);
        let mut best = Micros::INFINITY;
        for ends in all_slicings(size, model.k) {
            let each = costs(&model, &line, &ends).into_iter().fold(Micros::ZERO, Micros::max);
            let slicing = Slicing { ends, value: each };
            let defined = defined(&problem, &model, &order, &slicing);
            assert!((each - defined).abs() < SLACK, "{round}: {each} is {defined}\n{}", problem.write());
            best = best.min(each);
        }
        assert!((slicing.value - best).abs() < SLACK, "{round}: {slicing:?}, not {best}\n{}", problem.write());
        assert!(slicing.ends.len() <= model.k);
        assert!(Slicer::new(&model, least).below(&line, best).is_none());
        assert!(bounds::best(&model, &Options::default()).value <= best + SLACK);
    }
}

#[test]
fn moves_keep_costs_up_to_date() {
    let mut random = Random::new(2);
    for round in 0..300 {
        let size = 2 + random.below(10);
        let (problem, options) = (problem(size, &mut random), options(&mut random));
        let model = Model::new(&problem, view(&problem), &options).unwrap();
        let order: Vec<u32> = (0..size as u32).collect();
        let mut state = State::new(&model, vec![0; size], order.clone());
        for _ in 0..50 {
            let task = random.below(size);
            let (low, high) = state.view().range(task);
            let to = low + random.below((high - low + 1) as usize) as u32;
            if to != state.block[task] {
                state.shift(task, to);
            }
            let defined = value(&problem, &model, &state.block, &order);
            assert!((state.value() - defined).abs() < SLACK, "{round}: {} is {defined}", state.value());
        }
    }
}

#[test]
fn tasks_between_those_that_share_a_device_share_it() {
    let mut random = Random::new(3);
    let mut problem = problem(5, &mut random);
    let tensor = |from: usize, to: usize| Tensor { from, bytes: Bytes(1.0), to: vec![to] };
    problem.tensors = Some(vec![tensor(0, 1), tensor(1, 2), tensor(2, 3), tensor(0, 4)]);
    problem.colocate = Some(vec![vec![2, 0]]);
    let model = Model::new(&problem, view(&problem), &Options::default()).unwrap();
    assert_eq!(model.nodes, [vec![0, 1, 2], vec![4], vec![3]].to_vec());
    assert_eq!((model.tensors.len(), model.after[0].len()), (2, 2));
}

/// Returns every convex set of tasks with its cost.
fn convex_sets(model: &Model) -> Vec<(Vec<u32>, Micros)> {
    let tasks = model.tasks() as u32;
    let mut reaches = vec![vec![false; tasks as usize]; tasks as usize];
    for task in (0..tasks as usize).rev() {
        for &after in &model.after[task] {
            let below = reaches[after as usize].clone();
            reaches[task].iter_mut().zip(below).for_each(|(reached, below)| *reached |= below);
            reaches[task][after as usize] = true;
        }
    }
    let path = |from: u32, to: u32| reaches[from as usize][to as usize];
    let all = (1..1_u32 << tasks).map(|set| (0..tasks).filter(|task| set >> task & 1 == 1).collect::<Vec<u32>>());
    let convex = all.filter(|set| {
        let is_between = |task: u32| set.iter().any(|from| path(*from, task)) && set.iter().any(|to| path(task, *to));
        (0..tasks).all(|task| set.contains(&task) || !is_between(task))
    });
    convex.map(|set| (pack::cost(model, &set), set)).map(|(cost, set)| (set, cost)).collect()
}

#[test]
fn blocks_are_packed_where_there_are_any() {
    let mut random = Random::new(5);
    let (mut some, mut none) = (0, 0);
    for round in 0..400 {
        let size = 2 + random.below(7);
        let problem = problem(size, &mut random);
        let model = Model::new(&problem, view(&problem), &Options::default()).unwrap();
        let prices: Vec<i64> = (0..size).map(|_| random.below(1 << 20) as i64).collect();
        let need = prices.iter().sum::<i64>() * (1 + random.below(8) as i64) / 10 + 1;
        let threshold = Micros(1.5 + random.below(60) as f64);
        let price = |set: &[u32]| set.iter().map(|task| prices[*task as usize]).sum::<i64>();
        let all = convex_sets(&model);
        let fits = |(set, cost): &&(Vec<u32>, Micros)| *cost <= threshold && price(set) >= need;
        match Packer::new(&model).find((&prices, need), threshold, 3, &mut Effort::nodes(u64::MAX)) {
            Packed::Blocks(blocks) => {
                some += 1;
                for block in blocks {
                    let is_valid = all.iter().filter(fits).any(|(set, _)| *set == block);
                    assert!(is_valid, "{round}: {block:?}\n{}", problem.write());
                }
            }
            Packed::Nothing => {
                none += 1;
                assert_eq!(all.iter().find(fits), None, "{round}\n{}", problem.write());
            }
            Packed::Unknown => panic!("{round}: there is no limit"),
        }
    }
    assert!(some > 50 && none > 50, "{some} {none}");
}

/// Returns the optimum over all assignments to at most k blocks, without memory.
fn optimum(model: &Model) -> Micros {
    let (tasks, k) = (model.tasks(), model.k);
    let mut best = Micros::INFINITY;
    for code in 0..k.pow(tasks as u32) {
        let block: Vec<u32> = (0..tasks).map(|task| (code / k.pow(task as u32) % k) as u32).collect();
        let forwards = |task: usize| model.before[task].iter().all(|before| block[*before as usize] <= block[task]);
        if (0..tasks).all(forwards) {
            best = best.min(State::new(model, block, (0..tasks as u32).collect()).value());
        }
    }
    best
}

#[test]
fn priced_and_cut_bounds_are_valid() {
    let mut random = Random::new(6);
    let (mut cuts, mut exact) = (0, 0);
    for round in 0..150 {
        let mut problem = problem(3 + random.below(4), &mut random);
        problem.mtpp.as_mut().unwrap().memory = None;
        let model = Model::new(&problem, view(&problem), &Options::default()).unwrap();
        let (simple, best) = (bounds::simple(&model).value, optimum(&model));
        let cut = priced::cut(&model, simple, &mut Effort::nodes(20_000));
        let priced =
            priced::priced(&model, simple, best + Micros(1.0), &mut Effort::nodes(20_000), &mut |_| {}).unwrap();
        cuts += usize::from(cut.is_some());
        for bound in cut.iter().chain(&priced) {
            assert!(bound.value <= best + SLACK, "{round}: {bound:?} is above {best}\n{}", problem.write());
        }
        exact += usize::from(priced.is_some_and(|bound| bound.value >= best * 0.999));
    }
    assert!(cuts > 30 && exact > 30, "{cuts} {exact}");
}

#[test]
fn blocks_are_solutions_of_the_program() {
    let mut random = Random::new(8);
    for round in 0..60 {
        let size = 2 + random.below(6);
        let (problem, options) = (problem(size, &mut random), options(&mut random));
        let model = Model::new(&problem, view(&problem), &options).unwrap();
        let order = order::by_keys(&model, &order::random_keys(&model, &mut random));
        let slicing = Slicer::new(&model, Micros::ZERO).best(&Line::new(&model, &order), Micros(1.0));
        if model.k < 2 || slicing.value <= Micros::ZERO {
            continue;
        }
        let value = slicing.value;
        let blocks = Sliced { order, slicing }.blocks();
        let formulation = Formulation::new(&model, &Shape::exact(model.k), value, Micros::ZERO, value);
        let start = formulation.values(&blocks, value);
        let limits = Limits { seed: 1, iterations: u64::MAX, seconds: Some(0.0) };
        let outcome = formulation.program.solve(&limits, Some(&start), &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(outcome.values.is_some(), "{round}: {blocks:?} is no solution\n{}", problem.write());
    }
}

/// Heavy tasks, light tasks, and one heavy tensor between the first of each, as in Lemma B.2.
fn worst_case(k: usize, with_edge: bool) -> Problem {
    let mut problem = problem(2 * k, &mut Random::new(4));
    let light = 1.0 / (k as f64 + 1.0);
    let work = (0..2 * k).map(|node| Micros(if node < k { 1.0 - light } else { light })).collect();
    problem.mtpp = Some(Pipeline { work, k: vec![k as u32], bandwidth: BytesPerMicro(1.0), memory: None });
    let tensor = Tensor { from: 0, bytes: Bytes(10.0 * k as f64), to: vec![k] };
    problem.tensors = Some(if with_edge { vec![tensor] } else { Vec::new() });
    problem
}

#[test]
fn the_papers_worst_orders() {
    for k in 2..7 {
        // Lemma B.2: no slicing avoids the heavy tensor, so everything is in one block.
        let problem = worst_case(k, true);
        let model = Model::new(&problem, view(&problem), &Options::default()).unwrap();
        let place = |node: usize| model.nodes.iter().position(|nodes| nodes == &[node]).unwrap() as u32;
        let order: Vec<u32> = (0..k).chain((k..2 * k).rev()).map(place).collect();
        let sliced = Slicer::new(&model, bounds::simple(&model).value).best(&Line::new(&model, &order), Micros(1.0));
        assert!((sliced.value - Micros(k as f64)).abs() < SLACK, "{k}: {sliced:?}");
        // Remark B.3: without it, two heavy tasks or one with all light ones.
        let problem = worst_case(k, false);
        let model = Model::new(&problem, view(&problem), &Options::default()).unwrap();
        let order: Vec<u32> = (0..2 * k as u32).collect();
        let sliced = Slicer::new(&model, bounds::simple(&model).value).best(&Line::new(&model, &order), Micros(1.0));
        assert!((sliced.value - Micros(2.0 * k as f64 / (k as f64 + 1.0))).abs() < SLACK, "{k}: {sliced:?}");
    }
}

/// Tests that a false bound of the solver invalidates neither the plan nor earlier verified bounds, and ends no search.
#[test]
fn a_false_claim_is_dropped() {
    let mut random = Random::new(21);
    for _ in 0..20 {
        let problem = problem(8, &mut random);
        let model = Model::new(&problem, view(&problem), &Options::default()).unwrap();
        let mut incumbent = PipelineIncumbent::start(&model, &Options::default());
        if incumbent.best.value() <= Micros::ZERO || incumbent.is_closed() {
            continue;
        }
        let verified = incumbent.best.bound().clone();
        for share in [1.0, 1.001, f64::INFINITY] {
            incumbent.best.prove(Bound::by(incumbent.best.value() * share, "exact", Proof::Solver));
            assert!(!incumbent.is_closed(), "{share}");
        }
        let solution = answer(&problem, view(&problem), &model, incumbent);
        let plan = Plan::new(&problem, "milp", solution.schedule, solution.bound.unwrap());
        assert_eq!((plan.bound, &plan.bound_by, plan.proof), (verified.value, &verified.by, verified.proof));
        assert_eq!(plan.warnings().len(), 1);
        assert!(crate::verify(&problem, &plan).is_ok());
    }
}
