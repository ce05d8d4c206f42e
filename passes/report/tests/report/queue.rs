//! Schedules for several queued inputs.

use divi_planner::plan::{Batch, Bound, Plan, Schedule};
use divi_planner::units::{Bytes, Micros};
use divi_planner::{Problem, verify};
use divi_report::Timeline;

/// A task split over both devices, and a consumer with a different split.
pub(crate) fn problem() -> Problem {
    Problem::read(
        r#"{
  "format": "divi-problem/1", "name": "queue", "L": 4,
  "devices": [
    {"id": 0, "name": "cpu0", "memory": null, "batch_sizes": [1, 2, 3]},
    {"id": 1, "name": "gpu0", "memory": null, "batch_sizes": [1, 2, 3]}
  ],
  "bandwidth": [[null, 100], [100, null]],
  "nodes": [
    {"id": 0, "time": {"1": [10, 3], "2": [20, 4], "3": [30, 5]}, "weight": 10, "input": 7, "output": 300},
    {"id": 1, "time": {"1": [10, 3], "2": [20, 4], "3": [30, 5]}, "weight": 20, "input": 300, "output": 50}
  ],
  "edges": [[0, 1]]
}"#,
    )
    .expect("it is well-formed")
}

/// First task: inputs 0 to 2 on the GPU, 3 on the CPU. Second task: 0 and 1 on the GPU, 2 and 3 on the CPU.
pub(crate) fn plan(problem: &Problem) -> Plan {
    let batch = |node, device, inputs: &[u32], start| {
        let (inputs, start) = (inputs.to_vec(), Micros(start));
        Batch { node, device, inputs, start }
    };
    let batches = vec![
        batch(0, 1, &[2, 0, 1], 0.0),
        batch(0, 0, &[3], 0.0),
        batch(1, 1, &[0, 1], 5.0),
        batch(1, 0, &[2, 3], 10.0),
    ];
    let plan = Plan::new(
        problem,
        "hand",
        Schedule::Batch { batches, makespan: Micros(30.0) },
        Bound::new(Micros(12.0), "hand"),
    );
    assert_eq!(verify(problem, &plan), Ok(Micros(30.0)));
    plan
}

#[test]
fn only_inputs_consumed_elsewhere_are_transferred() {
    let problem = problem();
    let timeline = Timeline::of(&problem, &plan(&problem)).unwrap();
    // The CPU consumes one of the three results on the GPU.
    let [moved] = timeline.transfers.as_slice() else { panic!("{:?}", timeline.transfers) };
    assert_eq!((moved.task, moved.from, moved.to, moved.inputs.len()), (0, 1, 0, 1));
    assert_eq!((moved.bytes, moved.start, moved.end), (Bytes(300.0), Micros(5.0), Micros(8.0)));
    let [cpu, gpu] = timeline.devices.as_slice() else { panic!("two devices") };
    assert_eq!((cpu.tasks, cpu.share, cpu.busy), (2, 3.0 / 8.0, Micros(30.0)));
    assert_eq!((gpu.tasks, gpu.share, gpu.busy, gpu.idle), (2, 5.0 / 8.0, Micros(9.0), Micros(21.0)));
    assert_eq!(timeline.launches[1].inputs, [0, 1, 2]);
}

#[test]
fn memory_counts_every_input() {
    let problem = problem();
    let timeline = Timeline::of(&problem, &plan(&problem)).unwrap();
    let [cpu, gpu] = timeline.devices.as_slice() else { panic!("two devices") };
    // Three results of 300 until the end of the second launch, plus two of 50; the static model adds operands.
    assert_eq!((gpu.memory.weights, gpu.memory.peak), (Bytes(30.0), Bytes(30.0 + 900.0 + 100.0)));
    assert_eq!(gpu.memory.counted, Bytes(30.0 + 3.0 * 307.0 + 2.0 * 350.0));
    // The CPU's own result, the transferred copy, and two results of 50.
    assert_eq!(cpu.memory.peak, Bytes(30.0 + 300.0 + 300.0 + 100.0));
    assert_eq!(cpu.memory.counted, Bytes(30.0 + 307.0 + 2.0 * 350.0));
}

#[test]
fn invalid_batches_are_rejected() {
    let problem = problem();
    let with = |change: &dyn Fn(&mut Vec<Batch>)| {
        let mut plan = plan(&problem);
        if let Schedule::Batch { batches, .. } = &mut plan.schedule {
            change(batches);
        }
        Timeline::of(&problem, &plan).unwrap_err().to_string()
    };
    let unknown = with(&|batches| batches[0].node = 9);
    assert_eq!(unknown, "the plan does not hold: batches[0]: unknown node 9; the problem has 2 nodes");
    let twice = with(&|batches| batches[1].device = 1);
    assert_eq!(twice, "the plan does not hold: node 0: launches more than once on device 1 (gpu0)");
    let many = with(&|batches| batches[0].inputs = vec![0, 1, 2, 3]);
    assert_eq!(many, "the plan does not hold: node 0: device 1 (gpu0) does not support it in a batch of 4");
}
