//! Schedules for several queued inputs.

use divi_planner::plan::{Batch, Bound, Plan, Schedule};
use divi_planner::{Problem, verify};
use divi_report::Timeline;

/// A task that both devices share, and one that reads it and is shared in another way.
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

/// Inputs 0 to 2 begin on the GPU and 3 on the CPU; then 0 and 1 are on the GPU, 2 and 3 on the CPU.
pub(crate) fn plan(problem: &Problem) -> Plan {
    let batch = |node, device, inputs: &[u32], start| Batch { node, device, inputs: inputs.to_vec(), start };
    let batches = vec![
        batch(0, 1, &[2, 0, 1], 0.0),
        batch(0, 0, &[3], 0.0),
        batch(1, 1, &[0, 1], 5.0),
        batch(1, 0, &[2, 3], 10.0),
    ];
    let plan = Plan::new(problem, "hand", Schedule::Batch { batches, makespan: 30.0 }, Bound::new(12.0, "hand"));
    assert_eq!(verify(problem, &plan), Ok(30.0));
    plan
}

#[test]
fn only_what_is_read_elsewhere_moves() {
    let problem = problem();
    let timeline = Timeline::of(&problem, &plan(&problem)).unwrap();
    // Of three results on the GPU, the CPU reads one.
    let [moved] = timeline.transfers.as_slice() else { panic!("{:?}", timeline.transfers) };
    assert_eq!((moved.task, moved.from, moved.to, moved.inputs), (0, 1, 0, 1));
    assert_eq!((moved.bytes, moved.start, moved.end), (300.0, 5.0, 8.0));
    let [cpu, gpu] = timeline.devices.as_slice() else { panic!("two devices") };
    assert_eq!((cpu.tasks, cpu.share, cpu.busy), (2, 3.0 / 8.0, 30.0));
    assert_eq!((gpu.tasks, gpu.share, gpu.busy, gpu.idle), (2, 5.0 / 8.0, 9.0, 21.0));
    assert_eq!(timeline.launches[1].inputs, [0, 1, 2]);
}

#[test]
fn memory_counts_every_input() {
    let problem = problem();
    let timeline = Timeline::of(&problem, &plan(&problem)).unwrap();
    let [cpu, gpu] = timeline.devices.as_slice() else { panic!("two devices") };
    // Three results of 300 until the second launch has ended, beside two of 50; the static model adds operands.
    assert_eq!((gpu.memory.weights, gpu.memory.peak), (30.0, 30.0 + 900.0 + 100.0));
    assert_eq!(gpu.memory.counted, 30.0 + 3.0 * 307.0 + 2.0 * 350.0);
    // The CPU's own result, the copy, and two results of 50.
    assert_eq!(cpu.memory.peak, 30.0 + 300.0 + 300.0 + 100.0);
    assert_eq!(cpu.memory.counted, 30.0 + 307.0 + 2.0 * 350.0);
}

#[test]
fn a_batch_must_make_sense() {
    let problem = problem();
    let with = |change: &dyn Fn(&mut Vec<Batch>)| {
        let mut plan = plan(&problem);
        if let Schedule::Batch { batches, .. } = &mut plan.schedule {
            change(batches);
        }
        Timeline::of(&problem, &plan).unwrap_err().to_string()
    };
    let nobody = with(&|batches| batches[0].node = 9);
    assert_eq!(nobody, "the plan does not hold: batches[0]: there is no node 9; there are 2");
    let twice = with(&|batches| batches[1].device = 1);
    assert_eq!(twice, "the plan does not hold: node 0: launches more than once on device 1 (gpu0)");
    let many = with(&|batches| batches[0].inputs = vec![0, 1, 2, 3]);
    assert_eq!(many, "the plan does not hold: node 0: device 1 (gpu0) does not support it in a batch of 4");
}
