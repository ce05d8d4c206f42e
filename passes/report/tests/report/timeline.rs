//! Timelines for one input, compared with manual results and with solvers' values.

use divi_papers::generate::{Rwnn, rwnn};
use divi_planner::plan::{self, Bound, Plan, Schedule};
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Objective, Options, Problem, solve};
use divi_report::{Launch, Timeline, Transfer};

use crate::hand;

#[test]
fn launches_and_transfers_have_the_expected_times() {
    let problem = hand::problem();
    let timeline = Timeline::of(&problem, &hand::plan(&problem)).unwrap();
    let launch = |task, device, start, end| {
        let (start, end) = (Micros(start), Micros(end));
        Launch { task, device, inputs: vec![0], start, end }
    };
    let launches = [
        launch(0, 0, 0.0, 0.0),
        launch(1, 1, 12.0, 22.0),
        launch(2, 1, 22.0, 26.0),
        launch(3, 0, 28.0, 48.0),
        launch(4, 1, 53.0, 58.0),
        launch(5, 0, 61.0, 61.0),
    ];
    assert_eq!(timeline.launches, launches);
    let transfer = |task, from, to, link, bytes, start, end| Transfer {
        tensor: Some(task),
        task,
        launch: Some(task),
        from,
        to,
        link: Some(link),
        row: 0,
        inputs: vec![0],
        bytes: Bytes(bytes),
        start: Micros(start),
        end: Micros(end),
    };
    let transfers = [
        transfer(0, 0, 1, 0, 1000.0, 0.0, 12.0),
        transfer(1, 1, 0, 1, 400.0, 22.0, 28.0),
        transfer(3, 0, 1, 0, 300.0, 48.0, 53.0),
        transfer(4, 1, 0, 1, 100.0, 58.0, 61.0),
    ];
    assert_eq!(timeline.transfers, transfers);
    assert_eq!((timeline.end, timeline.cost), (Micros(61.0), None));
    assert_eq!(timeline.transferred(), Bytes(1800.0));
}

#[test]
fn usage_of_devices_and_links_is_as_expected() {
    let problem = hand::problem();
    let timeline = Timeline::of(&problem, &hand::plan(&problem)).unwrap();
    let [cpu, gpu] = timeline.devices.as_slice() else { panic!("two devices") };
    // Model inputs and outputs are not tasks.
    assert_eq!((cpu.tasks, cpu.share, cpu.busy, cpu.idle), (1, 0.25, Micros(20.0), Micros(41.0)));
    assert_eq!((gpu.tasks, gpu.share, gpu.busy, gpu.idle), (3, 0.75, Micros(19.0), Micros(42.0)));
    let [there, back] = timeline.links.as_slice() else { panic!("two links") };
    assert_eq!((there.name.as_str(), there.transfers), ("pcie", 2));
    assert_eq!((there.bytes, there.busy), (Bytes(1300.0), Micros(17.0)));
    assert_eq!((back.name.as_str(), back.transfers), ("pcie.reverse", 2));
    assert_eq!((back.bytes, back.busy), (Bytes(500.0), Micros(9.0)));
}

#[test]
fn memory_counts_live_tensors() {
    let problem = hand::problem();
    let timeline = Timeline::of(&problem, &hand::plan(&problem)).unwrap();
    let [cpu, gpu] = timeline.devices.as_slice() else { panic!("two devices") };
    // The input until its transfer ends; conv's copy until its last use, together with right's result until its transfer ends.
    assert_eq!((cpu.memory.weights, cpu.memory.peak), (Bytes(70.0), Bytes(1070.0)));
    assert_eq!(cpu.memory.capacity, Some(Bytes(100_000.0)));
    // The input's copy together with conv's result; left's scratch is smaller.
    assert_eq!((gpu.memory.weights, gpu.memory.peak, gpu.memory.capacity), (Bytes(5000.0), Bytes(6400.0), None));
    let at = |time: f64| gpu.memory.profile.iter().rfind(|step| step.0 <= Micros(time)).unwrap().1;
    let held = [6.0, 15.0, 24.0, 27.0, 40.0, 50.0, 55.0, 60.0].map(at);
    assert_eq!(held, [6000.0, 6400.0, 5650.0, 5600.0, 5200.0, 5500.0, 5600.0, 5100.0].map(Bytes));
}

#[test]
fn a_tensor_is_transferred_once_to_each_device() {
    let mut problem = hand::problem();
    problem.edges.as_mut().unwrap().push((0, 4));
    let mut plan = hand::plan(&hand::problem());
    plan.problem = problem.hash();
    let timeline = Timeline::of(&problem, &plan).unwrap();
    assert_eq!(timeline.transfers.iter().filter(|transfer| transfer.task == 0).count(), 1);
}

#[test]
fn simultaneous_transfers_are_stacked_in_rows() {
    let mut problem = hand::problem();
    // Both directions share one bus; simultaneous transfers do not slow each other down.
    problem.bus = Some(vec![vec![None, Some("bus".to_owned())], vec![Some("bus".to_owned()), None]]);
    let device = vec![0, 1, 1, 0, 1, 0];
    let start = [0.0, 0.0, 5.0, 0.0, 53.0, 61.0].map(Micros).to_vec();
    let plan = Plan::new(
        &problem,
        "hand",
        Schedule::Latency { device, start, makespan: Micros(61.0) },
        Bound::new(Micros::ZERO, ""),
    );
    let timeline = Timeline::of(&problem, &plan).unwrap();
    let [bus] = timeline.links.as_slice() else { panic!("one bus") };
    assert_eq!((bus.name.as_str(), bus.transfers, bus.rows), ("bus", 4, 2));
    // 0 to 12, 10 to 16, 20 to 25, 58 to 61.
    assert_eq!(bus.busy, Micros(16.0 + 5.0 + 3.0));
    let rows: Vec<usize> = timeline.transfers.iter().map(|transfer| transfer.row).collect();
    assert_eq!(rows, [0, 1, 0, 0]);
}

#[test]
fn a_plan_may_state_transfer_times() {
    let problem = hand::problem();
    let mut plan = hand::plan(&problem);
    plan.transfers =
        vec![plan::Transfer { tensor: 3, from: 0, to: 1, inputs: None, start: Micros(49.0), end: Micros(52.5) }];
    plan.copies = vec![plan::ParameterCopy { node: 3, to: 0, via: Some(1), start: Micros(3.0), end: Micros(9.0) }];
    let timeline = Timeline::of(&problem, &plan).unwrap();
    let times: Vec<_> = timeline.transfers.iter().map(|moved| (moved.tensor, moved.start.0, moved.end.0)).collect();
    let weights = (None, 3.0, 9.0);
    assert_eq!(
        times,
        [(Some(0), 0.0, 12.0), weights, (Some(1), 22.0, 28.0), (Some(3), 49.0, 52.5), (Some(4), 58.0, 61.0)]
    );
    plan.transfers[0].end = Micros(48.0);
    let error = Timeline::of(&problem, &plan).unwrap_err().to_string();
    assert_eq!(error, "the plan does not hold: transfers: invalid transfer of tensor 3: 49 to 48 µs");
}

#[test]
fn timelines_end_at_the_plans_value() {
    for seed in 1..6 {
        let problem = rwnn(&Rwnn { nodes: 12, modules: 3, channels: 2, seed, ..Rwnn::default() }).unwrap();
        for algorithm in ["single", "greedy", "heft"] {
            let plan = solve(&problem, Objective::Latency, algorithm, &Options::default()).unwrap();
            let timeline = Timeline::of(&problem, &plan).unwrap();
            assert!((timeline.end - plan.value).abs() <= 1e-9 * plan.value, "{algorithm}");
            let busy: Micros = timeline.devices.iter().map(|device| device.busy).sum();
            let takes: Micros = timeline.launches.iter().map(|launch| launch.end - launch.start).sum();
            assert!((busy - takes).abs() < Micros(1e-6));
            let shares: f64 = timeline.devices.iter().map(|device| device.share).sum();
            assert!((shares - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn a_plan_for_another_problem_is_rejected() {
    let problem = hand::problem();
    let good = hand::plan(&problem);
    let refused = |problem: &Problem, change: &dyn Fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        Timeline::of(problem, &plan).unwrap_err().to_string()
    };
    let latency = |device: Vec<usize>, start: f64| {
        let start = vec![Micros(start); device.len()];
        Schedule::Latency { device, start, makespan: Micros(61.0) }
    };
    let short = refused(&problem, &|plan| plan.schedule = latency(vec![0], 0.0));
    assert_eq!(short, "the plan does not hold: device: has 1 entries, but there are 6 nodes");
    let nowhere = refused(&problem, &|plan| plan.schedule = latency(vec![0, 7, 1, 0, 1, 0], 0.0));
    assert_eq!(nowhere, "the plan does not hold: node 1 (conv): runs on device 7, but there are only 2");
    let never = refused(&problem, &|plan| plan.schedule = latency(vec![0; 6], f64::NAN));
    assert_eq!(never, "the plan does not hold: node 0 (in): starts at NaN on device 0 (cpu0)");
    let unable = refused(&problem, &|plan| plan.schedule = latency(vec![1; 6], 0.0));
    let message = "node 0 (in): device 1 (gpu0) does not support it in a batch of 1";
    assert_eq!(unable, format!("the plan does not hold: {message}"));
    let value = refused(&problem, &|plan| plan.value = Micros::INFINITY);
    assert_eq!(value, "the plan does not hold: value: inf is not a finite number");
    let mut apart = hand::problem();
    apart.bandwidth[1][0] = Some(BytesPerMicro::ZERO);
    let message = "node 1 (conv): its value is read on device 0 (cpu0), but no link leads there from device 1 (gpu0)";
    assert_eq!(refused(&apart, &|_| {}), format!("the plan does not hold: {message}"));
}
