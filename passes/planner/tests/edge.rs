//! Placements on edge networks, against enumeration of all placements.

#[path = "small/edge_problem.rs"]
mod edge_problem;

use divi_planner::PipelineCost;
use divi_planner::plan::{Limit, Schedule};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Error, Objective, Options, Plan, Problem, Terms, solve, verify_under};
use edge_problem::{Traits, optimum, period, problem, split_points};

const SLACK: f64 = 1e-6;
const ALGORITHM: &str = "branch-and-bound";

fn traits(random: &mut Random) -> Traits {
    Traits {
        nodes: 1 + random.below(6),
        machines: 1 + random.below(3),
        even: random.chance(0.3),
        chained: random.chance(0.5),
        limits: random.chance(0.6),
    }
}

fn planned(problem: &Problem, options: &Options) -> Result<Plan, Error> {
    solve(problem, Objective::Pipeline, ALGORITHM, options)
}

/// Verifies a plan; returns its value and bound.
#[track_caller]
fn checked(problem: &Problem, plan: &Plan) -> (Micros, Micros) {
    let Schedule::Edge { place, .. } = &plan.schedule else { panic!("a placement on the network") };
    let value = period(problem, place, plan.splits).expect("a placement that may be");
    assert!((value - plan.value).abs() <= SLACK * value, "{value} is not {}", plan.value);
    assert!(
        (verify_under(problem, plan, &Terms::stated_by(plan)).expect("a plan that holds") - value).abs()
            <= SLACK * value
    );
    (plan.value, plan.bound)
}

#[test]
fn the_optimum_is_found_and_proven() {
    let mut random = Random::new(1);
    let mut without = 0;
    for round in 0..800 {
        let problem = problem(traits(&mut random), &mut random);
        problem.check_form().unwrap();
        let splits = random.chance(0.2).then(|| random.below(4) as u32);
        let options = Options { splits, ..Options::default() };
        match (optimum(&problem, splits), planned(&problem, &options)) {
            (Some(best), Ok(plan)) => {
                let (value, bound) = checked(&problem, &plan);
                assert!((value - best).abs() <= SLACK * best, "round {round}: {value}, but {best} is possible");
                assert!(
                    (bound - best).abs() <= SLACK * best,
                    "round {round}: the optimum {best} is not proven: {bound}"
                );
            }
            (None, Err(Error::Infeasible(_))) => without += 1,
            (best, plan) => panic!("round {round}: {best:?}, but {plan:?}"),
        }
    }
    assert!((10..300).contains(&without), "{without} without a placement");
}

#[test]
fn bounds_hold_when_stopped_early() {
    let mut random = Random::new(2);
    let mut open = 0;
    for round in 0..600 {
        let problem = problem(traits(&mut random), &mut random);
        let Some(best) = optimum(&problem, None) else { continue };
        let limit = Some(Limit::Iterations(random.below(if round % 2 == 0 { 40 } else { 200 }) as u64));
        let plan = match planned(&problem, &Options { limit, ..Options::default() }) {
            Ok(plan) => plan,
            Err(Error::NotFound(_)) => continue,
            Err(error) => panic!("round {round}: {error}"),
        };
        let (value, bound) = checked(&problem, &plan);
        assert!(bound <= best * (1.0 + SLACK), "round {round}: bound {bound}, but {best} is possible");
        assert!(value >= best * (1.0 - SLACK));
        open += usize::from(plan.gap > SLACK);
    }
    assert!(open > 50, "only {open} were stopped early");
}

#[test]
fn plans_are_reproducible_and_record_their_options() {
    let mut random = Random::new(5);
    for round in 0..20 {
        let traits = Traits { nodes: 14, machines: 3, even: round % 2 == 0, chained: true, limits: false };
        let mut problem = problem(traits, &mut random);
        problem.edge.as_mut().unwrap().splits = None;
        let limit = Some(Limit::Iterations(300));
        let options = Options { limit, splits: Some(round), ..Options::default() };
        let plan = planned(&problem, &options).unwrap();
        assert_eq!(planned(&problem, &options).unwrap().write(), plan.write());
        assert_eq!((plan.splits, plan.limit), (Some(round), limit));
        let Schedule::Edge { place, .. } = &plan.schedule else { panic!("a placement on the network") };
        assert!(split_points(&problem, place) <= round as usize);
        // `auto` runs the same algorithm.
        let auto = solve(&problem, Objective::Pipeline, "auto", &options).unwrap();
        assert_eq!((auto.value, auto.schedule), (plan.value, plan.schedule));
    }
}

#[test]
fn invalid_options_are_rejected() {
    let traits = Traits { nodes: 4, machines: 2, even: true, chained: true, limits: false };
    let mut problem = problem(traits, &mut Random::new(6));
    let says = |problem: &Problem, algorithm: &str, options: Options| {
        solve(problem, Objective::Pipeline, algorithm, &options).unwrap_err().to_string()
    };
    let (splits, stages) = (Some(2), Some(2));
    assert!(says(&problem, ALGORITHM, Options { stages, ..Options::default() }).contains("k stages are k - 1 splits"));
    let serial = Options { pipeline_cost: Some(PipelineCost::Serial), ..Options::default() };
    assert!(says(&problem, ALGORITHM, serial).contains("the cost is overlap"));
    let elsewhere = "a number of split points is for problems with an edge view, by branch-and-bound";
    assert_eq!(says(&problem, "anneal", Options { splits, ..Options::default() }), elsewhere);
    let latency = solve(&problem, Objective::Latency, "heft", &Options { splits, ..Options::default() });
    assert_eq!(latency.unwrap_err().to_string(), "a number of split points is for objective pipeline, not latency");
    problem.edge.as_mut().unwrap().pin = Some(vec![Some(0), None, None, Some(1)]);
    problem.edge.as_mut().unwrap().bandwidth = vec![vec![Some(BytesPerMicro::ZERO); 2]; 2];
    let nowhere = says(&problem, ALGORITHM, Options::default());
    assert_eq!(
        nowhere,
        "the problem has no plan: network: no placement keeps to pins, memory, links, split points and threads together"
    );
    problem.edge = None;
    assert_eq!(says(&problem, "auto", Options { splits, ..Options::default() }), elsewhere);
}

/// One thread per machine is one run of layers each, which excludes better placements with several.
#[test]
fn several_threads_are_better_than_one() {
    let traits = Traits { nodes: 3, machines: 2, even: true, chained: true, limits: false };
    let mut problem = problem(traits, &mut Random::new(7));
    problem.edges = Some(vec![(0, 1), (1, 2)]);
    let view = problem.edge.as_mut().unwrap();
    (view.flops, view.rate, view.edge_bytes) = (vec![4.0, 10.0, 4.0], vec![1.0; 2], vec![Bytes(1.0); 2]);
    (view.bandwidth, view.splits) = (vec![vec![Some(BytesPerMicro(1.0)); 2]; 2], None);
    assert_eq!(planned(&problem, &Options::default()).unwrap().value, Micros(10.0));
    problem.edge.as_mut().unwrap().threads = Some(vec![1, 1]);
    assert_eq!(planned(&problem, &Options::default()).unwrap().value, Micros(14.0));
}
