//! Steady states of pipelines.

use std::path::Path;

use divi_planner::PipelineCost;
use divi_planner::plan::{Bound, Limit, Plan, Schedule, Stages, Turns};
use divi_planner::problem::{Contention, EdgeNetwork};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Objective, Options, Problem, solve};
use divi_report::{StageCost, Timeline, Way};

use crate::hand;

#[path = "../../../planner/tests/small/batches.rs"]
mod batches;
#[path = "../../../planner/tests/small/random_problem.rs"]
mod random_problem;

#[test]
fn a_serial_stage_receives_computes_and_sends() {
    let problem = hand::problem();
    let timeline = Timeline::of(&problem, &hand::pipeline(&problem, "serial", 48.0)).unwrap();
    assert_eq!((timeline.cost, timeline.end), (Some(StageCost::Serial), Micros(48.0)));
    let [cpu, gpu] = timeline.devices.as_slice() else { panic!("two devices") };
    // Receives left and conv in 10, computes 26, sends the input in 12.
    assert_eq!((cpu.busy, cpu.idle, cpu.bottleneck), (Micros(48.0), Micros::ZERO, true));
    assert_eq!((gpu.busy, gpu.idle, gpu.bottleneck), (Micros(36.0), Micros(12.0), false));
    // Model inputs and outputs are not stages.
    assert_eq!((gpu.stages.as_slice(), cpu.stages.as_slice()), ([0].as_slice(), [1].as_slice()));
    let handovers: Vec<_> =
        timeline.handovers.iter().map(|part| (part.device, part.way, part.task, part.start.0, part.end.0)).collect();
    let expected = [
        (0, Way::In, 1, 0.0, 6.0),
        (0, Way::In, 2, 6.0, 10.0),
        (0, Way::Out, 0, 36.0, 48.0),
        (1, Way::In, 0, 0.0, 12.0),
        (1, Way::Out, 1, 26.0, 32.0),
        (1, Way::Out, 2, 32.0, 36.0),
    ];
    assert_eq!(handovers, expected);
    let launches: Vec<_> = timeline.launches.iter().map(|launch| (launch.task, launch.start.0, launch.end.0)).collect();
    let expected =
        [(0, 10.0, 10.0), (3, 10.0, 30.0), (1, 12.0, 22.0), (2, 22.0, 26.0), (4, 30.0, 36.0), (5, 36.0, 36.0)];
    assert_eq!(launches, expected);
    // Transfers on links start at zero.
    let moved: Vec<_> =
        timeline.transfers.iter().map(|moved| (moved.task, moved.link, moved.start.0, moved.end.0)).collect();
    assert_eq!(moved, [(0, Some(0), 0.0, 12.0), (1, Some(1), 0.0, 6.0), (2, Some(1), 6.0, 10.0)]);
    // Several inputs are in flight: everything accessed is resident.
    assert_eq!(gpu.memory.peak, Bytes(5000.0 + 1400.0 + 600.0));
}

#[test]
fn overlap_runs_devices_and_links_in_parallel() {
    let problem = hand::problem();
    let timeline = Timeline::of(&problem, &hand::pipeline(&problem, "overlap", 26.0)).unwrap();
    assert_eq!((timeline.cost, timeline.end), (Some(StageCost::Overlap), Micros(26.0)));
    assert!(timeline.handovers.is_empty());
    let busy: Vec<Micros> = timeline.devices.iter().map(|device| device.busy).collect();
    assert_eq!(busy, [26.0, 14.0].map(Micros));
    let links: Vec<(Micros, bool)> = timeline.links.iter().map(|link| (link.busy, link.bottleneck)).collect();
    assert_eq!(links, [(Micros(12.0), false), (Micros(10.0), false)]);
    assert!(timeline.devices[0].bottleneck);
    // A slow link becomes the bottleneck.
    let mut slow = problem.clone();
    slow.bandwidth[0][1] = Some(BytesPerMicro(10.0));
    let timeline = Timeline::of(&slow, &hand::pipeline(&slow, "overlap", 102.0)).unwrap();
    assert!(timeline.links[0].bottleneck && !timeline.devices[0].bottleneck);
}

#[test]
fn stages_of_batches_and_replicas_take_the_time_of_one_input() {
    let mut random = Random::new(5);
    let mut replicas = 0;
    for round in 0..60 {
        let problem = batches::small(&mut random, [3, 4, 6][round % 3]);
        let cost = [PipelineCost::Serial, PipelineCost::Overlap][round % 2];
        let options = Options {
            limit: Some(Limit::Iterations(20)),
            max_batch: Some(4),
            max_replicas: Some(2),
            pipeline_cost: Some(cost),
            ..Options::default()
        };
        // The time of a bus is not shown.
        let Ok(plan) = solve(&problem, Objective::Pipeline, "auto", &options) else { continue };
        let timeline = Timeline::of(&problem, &plan).unwrap();
        if problem.contention != Contention::Off {
            continue;
        }
        assert!((timeline.end - plan.value).abs() <= 1e-9 * plan.value, "{} {}", timeline.end, plan.value);
        let shares: f64 = timeline.devices.iter().map(|device| device.share).sum();
        assert!((shares - 1.0).abs() < 1e-9 || shares == 0.0, "{shares}");
        assert!(
            plan.value == Micros::ZERO
                || timeline.devices.iter().any(|device| device.bottleneck)
                || timeline.links.iter().any(|link| link.bottleneck)
        );
        let Schedule::BatchedPipeline { turns: Turns::Devices { devices, .. }, .. } = &plan.schedule else { panic!() };
        replicas += usize::from(devices.iter().any(|devices| devices.len() > 1));
    }
    assert!(replicas > 5, "{replicas}");
}

fn regal(name: &str) -> Problem {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/problems/regal").join(name);
    let text = std::fs::read_to_string(path).expect("it is in the repository");
    Problem::read(&text).expect("it is well-formed")
}

#[test]
fn the_slowest_stage_determines_the_value() {
    for (name, memory) in [("regal_ER_n50_s0.json", None), ("regal_WS_n75_s17.json", Some(Bytes(400.0)))] {
        let mut problem = regal(name);
        problem.mtpp.as_mut().unwrap().memory = memory;
        for cost in [PipelineCost::Serial, PipelineCost::Overlap] {
            let options = Options {
                stages: Some(4),
                limit: Some(Limit::Iterations(40)),
                pipeline_cost: Some(cost),
                ..Options::default()
            };
            let plan = solve(&problem, Objective::Pipeline, "slicegraph", &options).unwrap();
            let timeline = Timeline::of(&problem, &plan).unwrap();
            assert!((timeline.end - plan.value).abs() <= 1e-9 * plan.value, "{name}: {} {}", timeline.end, plan.value);
            assert!(timeline.devices.iter().any(|device| device.bottleneck));
            // Homogeneous devices have no links: transfers count as time of the stages.
            assert!(timeline.links.is_empty() && !timeline.transfers.is_empty());
            let incoming = timeline.handovers.iter().filter(|part| part.way == Way::In).count();
            assert_eq!(incoming, timeline.transfers.len());
            assert_eq!(memory.is_some(), timeline.handovers.iter().any(|part| part.way == Way::Spill), "{name}");
        }
    }
}

#[test]
fn devices_and_links_of_an_edge_network_overlap() {
    let mut problem = hand::problem();
    problem.edge = Some(EdgeNetwork {
        flops: vec![0.0, 60.0, 30.0, 40.0, 20.0, 0.0],
        rate: vec![1.0, 10.0],
        bandwidth: vec![vec![None, Some(BytesPerMicro(50.0))], vec![Some(BytesPerMicro(20.0)), None]],
        edge_bytes: [1000.0, 400.0, 400.0, 200.0, 300.0, 100.0].map(Bytes).to_vec(),
        splits: None,
        threads: None,
        pin: None,
    });
    let schedule = Schedule::Edge { place: vec![0, 1, 1, 0, 1, 0], period: Micros(40.0) };
    let plan = Plan::new(&problem, "hand", schedule, Bound::new(Micros::ZERO, ""));
    let timeline = Timeline::of(&problem, &plan).unwrap();
    let busy: Vec<Micros> = timeline.devices.iter().map(|device| device.busy).collect();
    assert_eq!(busy, [40.0, 11.0].map(Micros));
    // 1000 and 300 bytes one way, 400 and 100 back.
    let links: Vec<Micros> = timeline.links.iter().map(|link| link.busy).collect();
    assert_eq!(links, [26.0, 25.0].map(Micros));
    assert_eq!(timeline.end, Micros(40.0));
}

#[test]
fn invalid_blocks_are_rejected() {
    let problem = hand::problem();
    let with = |block: Vec<usize>, block_device: Vec<usize>, order: Option<Vec<Vec<usize>>>| {
        let k = block_device.len() as u32;
        let stages = Some(Stages { block_device: Some(block_device), order });
        let schedule = Schedule::Pipeline { block, k, bottleneck: Micros(48.0), stages };
        let plan = Plan::new(&problem, "hand", schedule, Bound::new(Micros::ZERO, ""));
        Timeline::of(&problem, &plan).unwrap_err().to_string()
    };
    let cycle = with(vec![0, 1, 0, 1, 0, 1], vec![0, 1], None);
    assert_eq!(cycle, "the plan does not hold: block: blocks form a cycle");
    let few = with(vec![0, 1, 5, 1, 0, 1], vec![0, 1], None);
    assert_eq!(few, "the plan does not hold: node 2 (left): is in block 5, but there are only 2 blocks");
    let nowhere = with(vec![0; 6], vec![3], None);
    assert_eq!(nowhere, "the plan does not hold: node 0 (in): is on device 3, but there are only 2");
    let twice = with(vec![0; 6], vec![0], Some(vec![vec![0, 1, 2, 3, 4, 4]]));
    assert_eq!(twice, "the plan does not hold: order: does not contain each of the 6 nodes exactly once");
    let mut plan = hand::pipeline(&problem, "serial", 48.0);
    plan.pipeline_cost = Some("free".to_owned());
    let unknown = Timeline::of(&problem, &plan).unwrap_err().to_string();
    let expected = "the plan does not hold: pipeline_cost: unknown cost model 'free'; expected serial or overlap";
    assert_eq!(unknown, expected);
}
