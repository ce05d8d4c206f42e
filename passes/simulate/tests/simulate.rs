//! Simulations compared with the values of plans, with queueing theory and with a recurrence.
#![cfg(test)]

// Random problems, shared with the planner's tests.
#[allow(dead_code, reason = "the planner's tests use more of it")]
#[path = "../../planner/tests/small/batches.rs"]
mod batches;
#[allow(dead_code, reason = "the planner's tests use more of it")]
#[path = "../../planner/tests/small/random_problem.rs"]
mod random_problem;

use divi_planner::{
    Objective, Options, PipelineCost, Plan, Problem, plan::Limit, problem::Contention, random::Random, solve,
    units::Micros,
};
use divi_simulate::{Measured, Outcome, Program, Resource, Scenario, Step, Variation, simulate};

/// Returns a scenario without variation.
fn scenario(requests: u64, in_flight: usize) -> Scenario {
    Scenario {
        requests,
        warm_up: requests / 10,
        in_flight: Some(in_flight),
        variation: Variation::default(),
        has_polling: false,
        failures_per_hour: 0.0,
        recovery: 1e6,
        seed: 1,
    }
}

/// Returns stages in sequence, on devices of a host each.
fn tandem(times: &[f64]) -> Program {
    let resource = |stage| Resource { name: format!("cpu{stage}"), host: Some(stage) };
    let step = |(stage, time): (usize, &f64)| Step {
        resource: Some(stage),
        time: Micros(*time),
        predecessors: stage.checked_sub(1).into_iter().collect(),
        link: None,
    };
    Program {
        resources: (0..times.len()).map(resource).collect(),
        steps: times.iter().enumerate().map(step).collect(),
        inputs: 1,
        in_flight: times.len() + 1,
        hosts: times.len(),
        planned_throughput: 1e6 / times.iter().copied().fold(0.0, f64::max),
    }
}

#[track_caller]
fn check(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{value} instead of {expected}");
}

fn run(program: &Program, scenario: &Scenario) -> Outcome {
    simulate(program, scenario, program.hosts).unwrap()
}

/// Plans a problem; `None` if it has no plan.
fn planned(problem: &Problem, objective: Objective, options: &Options) -> Option<Plan> {
    let options = Options { limit: Some(Limit::Iterations(300)), ..options.clone() };
    solve(problem, objective, "auto", &options).ok().filter(|plan| plan.value > Micros::ZERO)
}

/// Tests that a single request takes the makespan of its plan, with and without contention.
#[test]
fn schedules_take_their_makespan() {
    let mut random = Random::new(5);
    let (mut count, mut contended) = (0, 0);
    for round in 0..120 {
        let inputs = 1 + 3 * (round % 2);
        let mut problem = random_problem::problem(&random_problem::Size { nodes: 6, devices: 3, inputs }, &mut random);
        let devices = problem.devices.len();
        if round % 3 > 0 {
            let bus = |from: usize, to: usize| (from != to).then(|| "b".to_owned());
            problem.bus = Some((0..devices).map(|from| (0..devices).map(|to| bus(from, to)).collect()).collect());
            problem.contention = [Contention::Exclusive, Contention::Shared][round as usize % 3 - 1];
        }
        let objective = if inputs > 1 { Objective::Batch } else { Objective::Latency };
        let Some(plan) = planned(&problem, objective, &Options::default()) else { continue };
        let program = Program::of(&problem, &plan).unwrap_or_else(|error| panic!("{error}\n{}", problem.write()));
        let outcome = run(&program, &scenario(20, 1));
        let latency = outcome.latency(0.5).unwrap();
        assert!(
            (latency - plan.value.0).abs() <= 1e-9 * plan.value.0,
            "{latency} {}\n{}\n{}",
            plan.value.0,
            problem.write(),
            plan.write()
        );
        check(outcome.throughput, program.planned_throughput, 1e-9);
        (count, contended) = (count + 1, contended + usize::from(!plan.transfers.is_empty()));
    }
    assert!(count > 60 && contended > 10, "{count} {contended}");
}

/// Tests that pipelines have the throughput of their plans, with stages that take batches and turns, too.
#[test]
fn pipelines_have_their_period() {
    let mut random = Random::new(7);
    let (mut count, mut exact, mut batched) = (0, 0, 0);
    for round in 0..120 {
        let problem = batches::small(&mut random, 1 + round % 6);
        let options = Options {
            pipeline_cost: Some(PipelineCost::ALL[round % 2]),
            max_batch: (round % 3 == 0).then(|| problem.default_batch().max(4)),
            max_replicas: (round % 5 == 0).then_some(2),
            ..Options::default()
        };
        let Some(plan) = planned(&problem, Objective::Pipeline, &options) else { continue };
        let program = Program::of(&problem, &plan).unwrap_or_else(|error| panic!("{error}\n{}", problem.write()));
        let outcome = run(&program, &Scenario { warm_up: 1000, ..scenario(3000, 60) });
        let ratio = outcome.throughput / outcome.planned_throughput;
        // A device with several steps of a request may complete several requests at once, at most one of which is cut off.
        let is_tandem = program.inputs == 1 && round % 2 == 1;
        let tolerance = if is_tandem { 1e-9 } else { 1.0 / 2000.0 };
        assert!((ratio - 1.0).abs() <= tolerance, "round {round}: {ratio}\n{}\n{}", problem.write(), plan.write());
        (exact, batched) = (exact + usize::from(is_tandem), batched + usize::from(program.inputs > 1));
        count += 1;
    }
    assert!(count > 60 && exact > 10 && batched > 5, "{count} {exact} {batched}");
}

/// Tests the closed network of M exponential servers with equal means: F requests have the throughput F / (F + M − 1) / mean
/// (Gordon and Newell, 1967).
#[test]
fn exponential_stages_have_the_throughput_of_a_closed_network() {
    for (stages, in_flight) in [(1, 1), (1, 4), (2, 2), (3, 4), (4, 10)] {
        let exponential = Variation { jitter: 1.0, ..Variation::default() };
        let outcome =
            run(&tandem(&vec![100.0; stages]), &Scenario { variation: exponential, ..scenario(200_000, in_flight) });
        let expected = 1e4 * in_flight as f64 / (in_flight + stages - 1) as f64;
        check(outcome.throughput, expected, 0.01);
        // Little's law.
        let mean = (1..1000).map(|share| outcome.latency(f64::from(share) / 1000.0).unwrap()).sum::<f64>() / 999.0;
        check(mean * expected / 1e6, in_flight as f64, 0.02);
    }
}

/// Tests percentiles of different stages with a recurrence: request n leaves stage i at
/// `max(end[n][i − 1], end[n − 1][i]) + time`, and enters when request n − F has left the last one.
#[test]
fn percentiles_are_those_of_a_recurrence() {
    let (times, jitter, in_flight, requests) = ([60.0, 100.0, 80.0], 0.5, 4, 200_000);
    let mut state = 12345_u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let mut ends = vec![0.0; times.len()];
    let mut left = vec![0.0; in_flight];
    let mut latencies = vec![];
    for n in 0..requests {
        let start: f64 = left[n % in_flight];
        let mut end = start;
        for (stage, time) in times.iter().enumerate() {
            end = f64::max(end, ends[stage]) + time * (1.0 - jitter - jitter * uniform().ln());
            ends[stage] = end;
        }
        left[n % in_flight] = end;
        latencies.push(end - start);
    }
    latencies.sort_by(f64::total_cmp);
    let variation = Variation { jitter, ..Variation::default() };
    let outcome = run(&tandem(&times), &Scenario { variation, ..scenario(requests as u64, in_flight) });
    for share in [0.1, 0.5, 0.9, 0.99] {
        check(outcome.latency(share).unwrap(), latencies[(share * requests as f64) as usize], 0.01);
    }
    check(outcome.throughput, 1e6 * requests as f64 / ends[2], 0.01);
}

#[test]
fn seeds_determine_the_result() {
    let variation = Variation { jitter: 0.3, straggler: (0.01, 5.0), slow_hosts: (0.1, 1.5), measured: None };
    let noisy = Scenario { variation, failures_per_hour: 600.0, ..scenario(2000, 4) };
    let program = tandem(&[50.0, 70.0]);
    let outcome = |seed: u64| simulate(&program, &Scenario { seed, ..noisy.clone() }, 16).unwrap();
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1), outcome(2));
    assert_eq!((outcome(1).hosts, outcome(1).groups), (16, 8));
}

/// Tests that slow hosts delay their groups only.
#[test]
fn slow_hosts_and_stragglers_take_longer() {
    let program = tandem(&[100.0]);
    let of = |variation: Variation| simulate(&program, &Scenario { variation, ..scenario(2000, 1) }, 100).unwrap();
    let slow = of(Variation { slow_hosts: (0.25, 2.0), ..Variation::default() });
    assert_eq!((slow.latency(0.5), slow.latency(0.99)), (Some(100.0), Some(200.0)));
    let straggling = of(Variation { straggler: (0.02, 4.0), ..Variation::default() });
    assert_eq!((straggling.latency(0.97), straggling.latency(0.99)), (Some(100.0), Some(400.0)));
    check(straggling.throughput, 100.0 * 1e4 / 1.06, 0.01);
}

/// Tests the share of time in recovery: the mean time between failures of two hosts is 30 s, and recovery takes 10 s.
#[test]
fn failures_lose_the_requests_in_flight() {
    let program = tandem(&[5e3, 5e3]);
    let failing = Scenario { failures_per_hour: 60.0, recovery: 1e7, ..scenario(2_000_000, 3) };
    let outcome = run(&program, &failing);
    assert_eq!(outcome.completed + outcome.lost, 2_000_000);
    check(outcome.down, 0.25, 0.05);
    check(outcome.throughput, 200.0 * 0.75, 0.05);
    let failures = outcome.lost as f64 / 3.0;
    check(failures, outcome.completed as f64 / 200.0 / 30.0, 0.1);
    // No request survives.
    let hopeless = run(&program, &Scenario { failures_per_hour: 1e15, ..failing });
    assert_eq!((hopeless.completed, hopeless.lost, hopeless.latency(0.5)), (0, 2_000_000, None));
}

/// Tests that a host that has waited for 7 ms notices a message up to 875 µs later, and one with a core that computes up to 500 µs.
#[test]
fn polling_delays_messages_between_hosts() {
    let mut program = tandem(&[7000.0, 1.0]);
    program.steps.insert(1, Step { resource: None, time: Micros(0.0), predecessors: vec![0], link: Some((0, 1)) });
    program.steps[2].predecessors = vec![1];
    let polling = Scenario { has_polling: true, ..scenario(20_000, 1) };
    let outcome = run(&program, &polling);
    check(outcome.latency(0.5).unwrap() - 7001.0, 475.0, 0.1);
    assert!((7875.0..8100.0).contains(&outcome.latency(1.0).unwrap()), "{:?}", outcome.latency(1.0));
    // Devices of one host copy values themselves.
    program.resources[1].host = Some(0);
    assert_eq!(run(&program, &polling).latency(1.0), Some(7001.0));
}

#[test]
fn measured_times_replace_planned_ones() {
    let measured = |second: &str| {
        let text = format!(
            r#"{{"inputs": 1, "steps": [{{"device": "cpu0", "runs_us": [10, 30, 20]}},
            {{"device": "{second}", "runs_us": [5, 5, 5]}}]}}"#
        );
        Variation { measured: Some(Measured::read(&text).unwrap()), jitter: 1.0, ..Variation::default() }
    };
    let program = tandem(&[1000.0, 1.0]);
    let outcome = run(&program, &Scenario { variation: measured("cpu1"), ..scenario(10_000, 1) });
    assert_eq!(
        (outcome.latency(0.1), outcome.latency(0.5), outcome.latency(0.9)),
        (Some(15.0), Some(25.0), Some(35.0))
    );
    let error = simulate(&program, &Scenario { variation: measured("gpu0"), ..scenario(10, 1) }, 2).unwrap_err();
    assert_eq!(
        error,
        "the measured runs have no launches on device 'cpu1': measure a bundle of this plan in one process"
    );
}

#[test]
fn invalid_requests_are_errors() {
    let program = tandem(&[1.0, 1.0]);
    let error = simulate(&program, &scenario(10, 1), 3).unwrap_err();
    assert_eq!(error, "3 hosts cannot be divided into groups of 2, the hosts of the plan");
    let error = simulate(&program, &scenario(1 << 40, 1), 2).unwrap_err();
    assert!(error.ends_with("are more than 20000000: simulate fewer"), "{error}");
    let stages = tandem(&[1.0; 16]);
    let error = simulate(&stages, &scenario(20_000_000, usize::MAX), 16).unwrap_err();
    assert_eq!(error, "20000000 requests in flight with 16 steps each are too many to simulate: allow fewer");
}
