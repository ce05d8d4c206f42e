//! Work that requests enqueue on GPUs, and its order.

use super::kit::{BundleBuilder, SIZE, call, floats, full, run_full, scale_and_add, scale_twice};
use crate::{
    MemoryUse, Options, Recording, TensorData,
    bundle::{Action, Buffer, Device, Task},
    drivers::cuda::{
        stage::{TaskTime, scale_task_times},
        stub::Stub,
    },
};
use std::sync::Arc;

#[test]
fn a_stage_is_captured_once_and_replayed() {
    for ports in [0, 1] {
        let stub = Stub::new();
        let runtime = scale_and_add(ports).load(&stub, Options::default()).unwrap();
        for round in 0..5 {
            assert_eq!(run_full(&runtime, round as f32).unwrap(), [4.0 * round as f32; SIZE as usize]);
        }
        assert_eq!((stub.times("graph of 2 on 1"), stub.times("launch graph"), stub.times("kernel")), (1, 5, 10));
        drop(runtime);
        assert_eq!(stub.pieces(), 0);
    }
}

/// The stub executes work only when the host waits, so all launches precede the first kernel.
#[test]
fn stages_are_enqueued_ahead() {
    let stub = Stub::new();
    let runtime = scale_twice(false).load(&stub, Options::default()).unwrap();
    assert_eq!(run_full(&runtime, 1.0).unwrap(), [9.0; SIZE as usize]);
    let log = &stub.state.lock().log;
    let (last_launch, first_kernel) =
        (log.iter().rposition(|line| line == "launch graph"), log.iter().position(|line| line.starts_with("kernel")));
    assert!(last_launch < first_kernel && last_launch.is_some(), "{log:?}");
}

/// A download starts as soon as its value is computed, and the next stage is enqueued before the host waits for the download.
#[test]
fn downloads_overlap_with_later_stages() {
    let stub = Stub::new();
    let mut builder = BundleBuilder::new(1);
    let three = builder.constant(3.0);
    let scale = || vec![call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(three)], &[])];
    let x = builder.input("x", 1);
    let (x, between, y) = (builder.transfer(x, 0), builder.value("between", 0), builder.value("y", 0));
    builder.launch("first", scale(), &[x], &[between]);
    let here = builder.transfer(between, 1);
    builder.launch("second", scale(), &[between], &[y]);
    let y = builder.transfer(y, 1);
    builder.output("y", y);
    builder.output("between", here);
    let runtime = builder.load(&stub, Options::default()).unwrap();
    for number in [1.0, 2.0] {
        let before = stub.state.lock().log.len();
        let outputs = runtime.run(&[("x", full(number).view())]).unwrap();
        let numbers: Vec<_> = outputs.iter().map(|(_, tensor)| tensor.to_f32().unwrap()).collect();
        assert_eq!(numbers, [[9.0 * number; SIZE as usize], [3.0 * number; SIZE as usize]]);
        let log = &stub.state.lock().log[before..];
        let parts: Vec<&[String]> = log.split(|line| line == "await").collect();
        let times = |part: &[String], what: &str| part.iter().filter(|line| line.starts_with(what)).count();
        assert_eq!(times(parts[0], "launch graph"), 2, "{log:?}");
        // The first wait executes one kernel, and the second wait the other.
        assert_eq!((times(parts[1], "kernel"), times(parts[2], "kernel")), (1, 1), "{log:?}");
    }
}

#[test]
fn concurrent_requests_respect_dependences() {
    for by_host in [false, true] {
        let stub = Stub::new();
        let runtime = scale_twice(by_host).load(&stub, Options { in_flight: Some(3), ..Options::default() }).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let runtime = &runtime;
                scope.spawn(move || {
                    for round in 0..40 {
                        let number = (thread * 100 + round) as f32;
                        assert_eq!(run_full(runtime, number).unwrap(), [9.0 * number; SIZE as usize]);
                    }
                });
            }
        });
        let tickets: Vec<_> =
            (0..2).map(|number| runtime.submit(&[("x", full(number as f32).view())]).unwrap()).collect();
        for (number, ticket) in tickets.into_iter().enumerate() {
            assert_eq!(ticket.wait().unwrap()[0].1.to_f32().unwrap(), [9.0 * number as f32; SIZE as usize]);
        }
    }
}

/// GPUs copy directly from and to pinned tensors of callers, without staging.
#[test]
fn pinned_tensors_are_copied_once() {
    for ports in [0, 1] {
        let stub = Stub::new();
        let runtime = scale_and_add(ports).load(&stub, Options::default()).unwrap();
        // The pool has a block of the output's size, which the input takes.
        let input = Arc::new(runtime.adopt(full(2.0)).unwrap());
        let run = || runtime.run(&[("x", input.view())]).unwrap();
        drop(run());
        let pinned = stub.times("pin");
        for _ in 0..2 {
            assert_eq!(run()[0].1.to_f32().unwrap(), [8.0; SIZE as usize]);
        }
        assert_eq!(stub.times("pin"), pinned, "outputs reuse blocks of the pool");
        // Counts the copies from or to a tensor.
        let copied = |tensor: &TensorData| {
            let address = tensor.bytes().as_ptr().addr();
            stub.state.lock().copied.iter().filter(|(to, from)| *to == address || *from == address).count()
        };
        assert_eq!(copied(&input), 3);
        drop(runtime.submit_shared(&[("x", input.clone())]).unwrap().wait().unwrap());
        assert_eq!(copied(&input), 4);
        let kept = run();
        assert_eq!(copied(&kept[0].1), 5);
        assert_eq!(run_full(&runtime, 1.0).unwrap(), [4.0; SIZE as usize], "pageable inputs work as well");
        assert_eq!(kept[0].1.to_f32().unwrap(), [8.0; SIZE as usize], "earlier outputs are not overwritten");
        let many: Vec<_> = (0..5).map(|_| run()).collect();
        let pieces = stub.pieces();
        drop(many);
        assert_eq!(stub.pieces(), pieces - 3, "the pool keeps two blocks of a size");
        let mut output = full(0.0);
        runtime.run_into(&[("x", full(3.0).view())], &mut [output.bytes_mut()]).unwrap();
        assert_eq!(output.to_f32().unwrap(), [12.0; SIZE as usize]);
        drop((runtime, kept, input));
        assert_eq!(stub.pieces(), 0);
    }
}

/// The CPU's link to another CPU is listed before its link to the GPU.
#[test]
fn host_values_are_pinned_if_any_link_leads_to_a_gpu() {
    let stub = Stub::new();
    let mut builder = BundleBuilder::new(1);
    let second = Device { id: "cpu1".into(), ..builder.bundle.devices[1].clone() };
    builder.bundle.devices.push(second);
    let three = builder.constant(3.0);
    let scale = || vec![call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(three)], &[])];
    let x = builder.input("x", 1);
    let there = builder.transfer(x, 2);
    let (x, between, y) = (builder.transfer(x, 0), builder.value("between", 0), builder.value("y", 0));
    builder.launch("first", scale(), &[x], &[between]);
    let here = builder.transfer(between, 1);
    let between = builder.transfer(here, 0);
    builder.launch("second", scale(), &[between], &[y]);
    builder.output("y", y);
    builder.output("x", there);
    let runtime = builder.load(&stub, Options::default()).unwrap();
    stub.state.lock().copied.clear();
    assert_eq!(run_full(&runtime, 1.0).unwrap(), [9.0; SIZE as usize]);
    assert_eq!(stub.pageable_copies(), 0);
}

#[test]
fn each_slot_has_its_own_graph() {
    let stub = Stub::new();
    let mut builder = scale_and_add(1);
    let runtime = builder.load(&stub, Options { in_flight: Some(3), ..Options::default() }).unwrap();
    for _ in 0..4 {
        let tickets: Vec<_> =
            (0..3).map(|number| runtime.submit(&[("x", full(number as f32).view())]).unwrap()).collect();
        for (number, ticket) in tickets.into_iter().enumerate() {
            let outputs = ticket.wait().unwrap();
            assert_eq!(outputs[0].1.to_f32().unwrap(), [4.0 * number as f32; SIZE as usize]);
        }
    }
    assert!(stub.times("graph of") <= 3);
    assert_eq!(stub.times("launch graph"), 12);
}

#[test]
fn independent_calls_run_on_different_streams() {
    let stub = Stub::new();
    let mut builder = BundleBuilder::new(1);
    let (two, three) = (builder.constant(2.0), builder.constant(3.0));
    let (x, y) = (builder.input("x", 0), builder.value("y", 0));
    let calls = vec![
        call("scale", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Constant(two)], &[]),
        call("scale", &[Buffer::Arena(256), Buffer::Input(0), Buffer::Constant(three)], &[]),
        call("add", &[Buffer::Output(0), Buffer::Arena(0), Buffer::Arena(256)], &[0, 1]),
    ];
    builder.launch("main", calls, &[x], &[y]);
    builder.output("y", y);
    let runtime = builder.load(&stub, Options::default()).unwrap();
    assert_eq!(run_full(&runtime, 2.0).unwrap(), [10.0; SIZE as usize]);
    assert_eq!(stub.times("graph of 3 on 2"), 1);
}

#[test]
fn stages_that_cannot_be_captured_are_issued_directly() {
    let stub = Stub::new();
    stub.state.lock().refuses_captures = true;
    let runtime = scale_and_add(0).load(&stub, Options::default()).unwrap();
    for round in 0..3 {
        assert_eq!(run_full(&runtime, round as f32).unwrap(), [4.0 * round as f32; SIZE as usize]);
    }
    assert_eq!((stub.times("launch graph"), stub.times("kernel")), (0, 6));
    runtime.record(Recording::Tasks);
    for round in 0..2 {
        assert_eq!(run_full(&runtime, round as f32).unwrap(), [4.0 * round as f32; SIZE as usize]);
        let (spans, _) = runtime.take_spans();
        let times = spans.iter().filter(|span| span.task.is_some()).map(|span| span.end_ns - span.begin_ns);
        assert_eq!(times.collect::<Vec<_>>(), [20_000]);
    }
    assert_eq!(stub.times("launch graph"), 0);
}

#[test]
fn values_are_sliced_and_gathered_on_the_gpu() {
    let stub = Stub::new();
    let mut builder = BundleBuilder::new(1);
    let x = builder.input("x", 0);
    let halves = [builder.value("front", 0), builder.value("back", 0)];
    for (index, &half) in halves.iter().enumerate() {
        builder.bundle.values[half].tensor = floats(&[SIZE / 2]);
        let positions = vec![1 - index as u64];
        builder.step(Action::Slice { input: x, output: half, positions, of: 2, axis: 0, outer: 1 });
    }
    let y = builder.value("y", 0);
    builder.step(Action::Gather { inputs: halves.to_vec(), output: y, of: vec![1, 1], axis: 0, outer: 1 });
    builder.output("y", y);
    let runtime = builder.load(&stub, Options::default()).unwrap();
    let numbers: Vec<f32> = (0..SIZE).map(|number| number as f32).collect();
    let input = TensorData::from_f32(&[SIZE], &numbers).unwrap();
    let outputs = runtime.run(&[("x", input.view())]).unwrap();
    let expected: Vec<f32> =
        numbers[SIZE as usize / 2..].iter().chain(&numbers[..SIZE as usize / 2]).copied().collect();
    assert_eq!(outputs[0].1.to_f32().unwrap(), expected);
}

#[test]
fn values_are_transferred_between_two_gpus() {
    let mut builder = BundleBuilder::new(2);
    let ten = builder.constant(10.0);
    let x = builder.input("x", 2);
    let mut at = x;
    for gpu in 0..2 {
        let there = builder.transfer(at, gpu);
        at = builder.value("scaled", gpu);
        let calls = vec![call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(ten)], &[])];
        builder.launch(&format!("stage {gpu}"), calls, &[there], &[at]);
    }
    builder.output("y", at);
    let stub = Stub { count: 2, ..Stub::new() };
    let runtime = builder.load(&stub, Options::default()).unwrap();
    assert_eq!(run_full(&runtime, 1.5).unwrap(), [150.0; SIZE as usize]);
    let expected = "the bundle needs the cuda device 'gpu1' (sm_90), and this machine has 1 GPU: plan for a system of \
                    CPUs, as --system=cpu-2";
    assert_eq!(builder.load_error(&Stub::new()), expected);
}

#[test]
fn tasks_are_measured_by_the_gpus_clock() {
    let stub = Stub::new();
    let mut builder = scale_and_add(0);
    builder.bundle.stages[0].calls[1].task = 1;
    builder.bundle.stages[0].tasks.push(Task { name: "second".into(), ..Task::default() });
    let runtime = builder.load(&stub, Options::default()).unwrap();
    runtime.record(Recording::Tasks);
    assert_eq!(run_full(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
    let (spans, _) = runtime.take_spans();
    let tasks: Vec<_> = spans.iter().filter(|span| span.task.is_some()).collect();
    assert_eq!(tasks.iter().map(|span| span.end_ns - span.begin_ns).collect::<Vec<_>>(), [10_000, 10_000]);
    assert_eq!(tasks[0].end_ns, tasks[1].begin_ns);
}

/// Recording steps does not change the enqueued work or its synchronization.
#[test]
fn steps_are_timed_without_synchronization() {
    for by_host in [false, true] {
        let stub = Stub::new();
        let runtime = scale_twice(by_host).load(&stub, Options { in_flight: Some(2), ..Options::default() }).unwrap();
        let log_of = |number: f32| {
            let before = stub.state.lock().log.len();
            assert_eq!(run_full(&runtime, number).unwrap(), [9.0 * number; SIZE as usize]);
            stub.state.lock().log[before..].to_vec()
        };
        log_of(1.0);
        let unrecorded = log_of(2.0);
        runtime.record(Recording::Steps);
        let recorded = log_of(3.0);
        let events = stub.events();
        assert_eq!((recorded, log_of(4.0)), (unrecorded.clone(), unrecorded));
        assert_eq!(stub.events(), events, "events are reused");
        runtime.record(Recording::Off);
        let (spans, dropped) = runtime.take_spans();
        // Per request: upload, two stages, possibly two transfers through the host between them, download.
        let steps = if by_host { 6 } else { 4 };
        assert_eq!((spans.len(), dropped), (2 * steps, 0));
        let in_order: Vec<usize> = spans.iter().map(|span| span.step).collect();
        assert_eq!(in_order, (0..steps).chain(0..steps).collect::<Vec<_>>());
        assert!(spans.iter().all(|span| span.task.is_none() && span.end_ns - span.begin_ns == 10_000), "{spans:?}");
        assert!(spans.windows(2).all(|pair| pair[0].end_ns <= pair[1].begin_ns), "{spans:?}");
        assert!(spans[..steps].iter().all(|span| span.request == spans[0].request));
        assert!(spans[steps..].iter().all(|span| span.request == spans[0].request + 1));
        assert!(runtime.take_spans().0.is_empty());
    }
}

/// The recording level may change while requests are in flight.
#[test]
fn recording_changes_while_requests_run() {
    let stub = Stub::new();
    let runtime = scale_twice(true).load(&stub, Options { in_flight: Some(3), ..Options::default() }).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let runtime = &runtime;
            scope.spawn(move || {
                for round in 0..60 {
                    runtime.record([Recording::Steps, Recording::Tasks, Recording::Off][(thread + round) % 3]);
                    let number = (thread * 100 + round) as f32;
                    assert_eq!(run_full(runtime, number).unwrap(), [9.0 * number; SIZE as usize]);
                }
            });
        }
    });
    let (spans, dropped) = runtime.take_spans();
    assert!(!spans.is_empty() && dropped == 0);
    assert!(spans.iter().all(|span| span.begin_ns <= span.end_ns), "{spans:?}");
}

#[test]
fn task_times_add_up_to_the_time_of_the_stage() {
    let times = |ends: &[f64]| {
        let begins = std::iter::once(&0.0).chain(ends);
        begins.zip(ends).map(|(&begin_us, &end_us)| TaskTime { task: 0, begin_us, end_us }).collect::<Vec<_>>()
    };
    let durations = |times: Vec<TaskTime>| times.iter().map(|time| time.end_us - time.begin_us).collect::<Vec<_>>();
    // The events took two microseconds each.
    assert_eq!(durations(scale_task_times(times(&[10.0, 15.0]), 11.0)), [8.0, 3.0]);
    // Times are never increased, and never reduced to zero.
    assert_eq!(durations(scale_task_times(times(&[10.0, 15.0]), 20.0)), [10.0, 5.0]);
    let shares = durations(scale_task_times(times(&[100.0, 101.0]), 50.0));
    assert!((shares.iter().sum::<f64>() - 50.0).abs() < 1e-9 && shares[1] > 0.0);
    assert!(scale_task_times(vec![], 1.0).is_empty());
}

/// Builds groups that each compute `y = x * group * group` on the GPUs in turn, by way of the host or of the other GPU.
fn groups_of_two_stages(groups: usize, gpus: usize) -> BundleBuilder {
    let mut builder = BundleBuilder::new(gpus);
    let x = builder.input("x", gpus);
    for group in 0..groups {
        let factor = builder.constant(group as f32);
        let scale = || vec![call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(factor)], &[])];
        let (x, between) = (builder.transfer(x, 0), builder.value(&format!("between{group}"), 0));
        builder.launch(&format!("first{group}"), scale(), &[x], &[between]);
        let there = if gpus == 1 { builder.transfer(between, gpus) } else { between };
        let again = builder.transfer(there, gpus - 1);
        let y = builder.value(&format!("y{group}"), gpus - 1);
        builder.launch(&format!("second{group}"), scale(), &[again], &[y]);
        let y = builder.transfer(y, gpus);
        builder.output(&format!("y{group}"), y);
    }
    builder
}

/// Groups of inputs take turns in memory that does not suffice for all of them: copies from and to devices wait until earlier
/// groups have read what they overwrite. The stub executes work only when the host waits, so that nothing is in order by chance.
#[test]
fn groups_reuse_tight_memory() {
    for (gpus, tight) in [(1, vec![]), (1, vec![0]), (1, vec![1]), (1, vec![0, 1]), (2, vec![1]), (2, vec![0, 1])] {
        let mut builder = groups_of_two_stages(6, gpus);
        let roomy = MemoryUse::planned(&builder.bundle, None);
        for &device in &tight {
            builder.bundle.devices[device].memory = 1;
        }
        let planned = MemoryUse::planned(&builder.bundle, None);
        for device in 0..=gpus {
            let is_smaller = planned[device].values < roomy[device].values;
            assert_eq!(is_smaller, tight.contains(&device), "{gpus} GPUs, {tight:?}: {device}");
        }
        let runtime = builder.load(&Stub { count: gpus, ..Stub::new() }, Options::default()).unwrap();
        for round in 0..3 {
            let outputs = runtime.run(&[("x", full(round as f32).view())]).unwrap();
            for (group, (_, output)) in outputs.iter().enumerate() {
                let expected = [(round * group * group) as f32; SIZE as usize];
                assert_eq!(output.to_f32().unwrap(), expected, "{gpus} GPUs, {tight:?}: group {group}");
            }
        }
    }
}
