//! Placement of weights, and the time of their copies to a GPU.

use super::kit::{BundleBuilder, SIZE, call, floats, full, run_full, scale_and_add};
use crate::{
    ColdStart, ColdStartMode, MemoryUse, Options, Recording,
    bundle::{Buffer, Link, Value},
    drivers::cuda::stub::Stub,
};

#[test]
fn a_cold_start_is_predicted() {
    let mut builder = BundleBuilder::new(1);
    let (two, three) = (builder.constant(2.0), builder.constant(3.0));
    let (x, y) = (builder.input("x", 0), builder.value("y", 0));
    let scale = |out, from, by| call("scale", &[out, from, Buffer::Constant(by)], &[]);
    let first = scale(Buffer::Arena(0), Buffer::Input(0), two);
    builder.launch("main", vec![first, scale(Buffer::Output(0), Buffer::Arena(0), three)], &[x], &[y]);
    let predicted = |builder: &BundleBuilder| ColdStart::predicted(&builder.bundle);
    assert_eq!(predicted(&builder), None);
    // The copy of a weight takes eight microseconds.
    builder.bundle.devices[0].link_from_host = Some(Link { bytes_per_s: 0.5e6, latency_us: 1.0 });
    for (takes, overlap_us, copy_first_us) in [(20.0, 29.0, 37.0), (4.0, 19.0, 21.0)] {
        builder.bundle.stages[0].tasks[0].predicted_us = Some(takes);
        assert_eq!(predicted(&builder), Some(ColdStart { overlap_us, copy_first_us }));
    }
}

#[test]
fn weights_can_stay_on_the_host() {
    for cold in [None, Some(ColdStartMode::Overlap)] {
        let stub = Stub::new();
        let mut builder = BundleBuilder::new(1);
        let (two, three) = (builder.constant(2.0), builder.constant(3.0));
        let (x, y) = (builder.input("x", 0), builder.value("y", 0));
        let scale = |from, to, by| call("scale", &[to, from, Buffer::Constant(by)], &[]);
        let (first, last) = (Buffer::Arena(0), Buffer::Output(0));
        let mut calls = vec![scale(Buffer::Input(0), first, two), scale(first, Buffer::Arena(64), three)];
        calls.push(scale(Buffer::Arena(64), last, two));
        for (index, call) in calls.iter_mut().enumerate() {
            call.task = index;
        }
        builder.launch("main", calls, &[x], &[y]);
        builder.output("y", y);
        let tasks = &mut builder.bundle.stages[0].tasks;
        // The second call's weight stays on the host; the first call's is copied, because the third one needs it on the GPU.
        (tasks[0].has_host_weights, tasks[1].has_host_weights) = (true, true);
        let runtime = builder.load(&stub, Options { cold, ..Options::default() }).unwrap();
        assert_eq!(run_full(&runtime, 1.0).unwrap(), [12.0; SIZE as usize]);
        let weights = stub.state.lock().log.iter().filter(|line| *line == "copy 256" || *line == "copy 4").count();
        assert_eq!(weights, 1, "{:?}", stub.state.lock().log);
    }
}

#[test]
fn weights_that_do_not_fit_are_streamed() {
    for (window, is_measured, copies) in [(1024, false, 0), (512, false, 3), (512, true, 9), (256, false, 4)] {
        let stub = Stub::new();
        let mut builder = BundleBuilder::new(1);
        let (x, y) = (builder.input("x", 0), builder.value("y", 0));
        let numbers = [2.0, 3.0, 5.0].map(|number| builder.constant(number));
        let scale = |from, to, by| call("scale", &[to, from, Buffer::Constant(by)], &[]);
        let [a, b, c] = [0, 64, 128].map(Buffer::Arena);
        let calls = vec![
            scale(Buffer::Input(0), a, numbers[0]),
            scale(a, b, numbers[1]),
            scale(b, c, numbers[1]),
            scale(c, a, numbers[2]),
            scale(a, Buffer::Output(0), numbers[1]),
        ];
        builder.launch("main", calls, &[x], &[y]);
        builder.output("y", y);
        builder.bundle.devices[0].streams_weights = true;
        let others = MemoryUse::planned(&builder.bundle, None)[0];
        builder.bundle.devices[0].memory = others.total() - others.weights + window;
        let runtime = builder.load(&stub, Options::default()).unwrap();
        stub.state.lock().log.clear();
        runtime.record(if is_measured { Recording::Tasks } else { Recording::Off });
        assert_eq!(run_full(&runtime, 1.0).unwrap(), [270.0; SIZE as usize]);
        assert_eq!(run_full(&runtime, 2.0).unwrap(), [540.0; SIZE as usize]);
        let log = &stub.state.lock().log;
        assert_eq!(log.iter().filter(|line| *line == "copy 4").count(), 2 * copies, "{log:?}");
    }
}

#[test]
fn weights_are_copied_by_the_first_request() {
    let modes =
        [ColdStartMode::Overlap, ColdStartMode::CopyFirst].map(|cold| [false, true].map(|refuses| (cold, refuses)));
    for (cold, refuses_captures) in modes.into_iter().flatten() {
        let stub = Stub::new();
        stub.state.lock().refuses_captures = refuses_captures;
        let mut builder = BundleBuilder::new(1);
        let (two, three) = (builder.constant(2.0), builder.constant(3.0));
        let (x, y) = (builder.input("x", 0), builder.value("y", 0));
        let calls = vec![
            call("scale", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Constant(two)], &[]),
            call("scale", &[Buffer::Output(0), Buffer::Arena(0), Buffer::Constant(three)], &[0]),
        ];
        builder.launch("main", calls, &[x], &[y]);
        builder.output("y", y);
        let runtime = builder.load(&stub, Options { cold: Some(cold), ..Options::default() }).unwrap();
        stub.state.lock().log.clear();
        assert_eq!(run_full(&runtime, 1.0).unwrap(), [6.0; SIZE as usize]);
        let graphs = usize::from(!refuses_captures);
        assert_eq!(stub.times("launch graph"), graphs);
        let mut log = std::mem::take(&mut stub.state.lock().log);
        log.retain(|line| line.starts_with("copy") || line.starts_with("kernel"));
        // The first copy is the input's, the last one the output's.
        assert_eq!(log, ["copy 64", "copy 512", "kernel scale", "kernel scale", "copy 64"]);
        assert_eq!(run_full(&runtime, 2.0).unwrap(), [12.0; SIZE as usize]);
        assert_eq!((stub.times("graph of"), stub.times("launch graph")), (0, graphs), "the graph was captured at load");
        drop(runtime);
        assert_eq!(stub.pieces(), 0);
    }
}

#[test]
fn a_constant_may_be_an_output() {
    for cold in [None, Some(ColdStartMode::Overlap)] {
        let stub = Stub::new();
        let mut builder = scale_and_add(0);
        let value = builder.value("c", 0);
        let constant = builder.constant(7.0);
        builder.bundle.values[value] =
            Value { name: "c".into(), device: 0, tensor: floats(&[1]), constant: Some(constant) };
        builder.output("c", value);
        let on_host = builder.transfer_of(value, 1, &[1]);
        builder.output("c there", on_host);
        let runtime = builder.load(&stub, Options { cold, ..Options::default() }).unwrap();
        let outputs = runtime.run(&[("x", full(1.0).view())]).unwrap();
        let numbers = |index: usize| outputs[index].1.to_f32().unwrap();
        assert_eq!(
            (&numbers(0)[..], &numbers(1)[..], &numbers(2)[..]),
            (&[4.0; SIZE as usize][..], &[7.0][..], &[7.0][..])
        );
    }
}
