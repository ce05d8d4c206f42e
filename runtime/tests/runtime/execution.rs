//! Correctness of outputs in every mode and with any number of threads.

use crate::kit::{
    BundleBuilder, Folder, SIZE, call, call_of, floats, full, is_under_valgrind, numbers, options, scale_and_add,
    tensor, two_devices,
};
use divi_runtime::{
    Options, Runtime,
    bundle::{Action, Buffer, Mode, Port, Source},
    prepare::Expression,
};
use std::{collections::VecDeque, process::Command, sync::Arc, thread};

#[test]
fn runs_a_stage_with_any_number_of_threads() {
    let folder = scale_and_add().write();
    for (threads, spin) in [(1, false), (2, false), (2, true), (5, false), (0, true)] {
        let spin = Some(spin && !is_under_valgrind());
        let options = Options { threads: Some(threads), spin, ..options() };
        let runtime = Runtime::load(folder.path(), options).unwrap();
        for round in 0..20 {
            let outputs = runtime.run(&[("x", full(round as f32).view())]).unwrap();
            assert_eq!(numbers(&outputs, "y"), [4.0 * round as f32; SIZE as usize]);
        }
    }
}

#[test]
fn several_threads_may_run_requests() {
    let folder = scale_and_add().write();
    let runtime = Runtime::load(folder.path(), Options { in_flight: Some(2), ..options() }).unwrap();
    let run = |number: f32| {
        for round in 0..20 {
            let input = full(number + round as f32);
            let outputs = match round % 2 {
                0 => runtime.run(&[("x", input.view())]).unwrap(),
                _ => runtime.submit(&[("x", input.view())]).unwrap().wait().unwrap(),
            };
            assert_eq!(numbers(&outputs, "y"), [4.0 * (number + round as f32); SIZE as usize]);
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || run(100.0 * number as f32))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn inputs_and_outputs_are_accessed_in_place() {
    let folder = scale_and_add().write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let mut output = [0; SIZE as usize * 4];
    for number in [1.0, 2.0] {
        // AlignedBuffer to 64 bytes, and misaligned.
        let aligned = full(number);
        let mut shifted = vec![0; SIZE as usize * 4 + 4];
        let offset = if shifted.as_ptr().addr().is_multiple_of(64) { 4 } else { 0 };
        shifted[offset..][..SIZE as usize * 4].copy_from_slice(aligned.bytes());
        let mut unaligned = aligned.view();
        unaligned.bytes = &shifted[offset..][..SIZE as usize * 4];
        for input in [aligned.view(), unaligned] {
            output.fill(0);
            runtime.run_into(&[("x", input)], &mut [&mut output[..]]).unwrap();
            assert_eq!(output[..4], (number * 4.0).to_le_bytes());
        }
    }
}

#[test]
fn values_are_transferred_between_two_devices() {
    for mode in [Mode::Latency, Mode::Pipeline] {
        let folder = two_devices(mode, false).write();
        for link_threads in [false, true] {
            for spin in [false, true] {
                let spin = Some(spin && !is_under_valgrind());
                let options = Options { link_threads: Some(link_threads), spin, ..options() };
                let runtime = Runtime::load(folder.path(), options).unwrap();
                for round in 0..10 {
                    let outputs = runtime.run(&[("x", full(round as f32).view())]).unwrap();
                    assert_eq!(numbers(&outputs, "y"), [20.0 * round as f32; SIZE as usize]);
                }
            }
        }
    }
}

#[test]
fn pipelines_keep_their_order_and_their_bound() {
    let folder = two_devices(Mode::Pipeline, false).write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    assert_eq!(runtime.in_flight(), 3);
    // Many more than may be in flight: `submit` waits for a slot, which does not require that results are taken.
    let tickets: Vec<_> = (0..50).map(|number| runtime.submit(&[("x", full(number as f32).view())]).unwrap()).collect();
    for (number, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(ticket.id(), number as u64);
        assert_eq!(numbers(&ticket.wait().unwrap(), "y"), [20.0 * number as f32; SIZE as usize]);
    }
}

#[test]
fn requests_share_their_inputs_until_they_are_done() {
    for mode in [Mode::Latency, Mode::Pipeline] {
        let folder = two_devices(mode, false).write();
        let runtime = Runtime::load(folder.path(), options()).unwrap();
        let inputs: Vec<_> = (0..10).map(|number| Arc::new(full(number as f32))).collect();
        let tickets: Vec<_> =
            inputs.iter().map(|input| runtime.submit_shared(&[("x", input.clone())]).unwrap()).collect();
        for (number, ticket) in tickets.into_iter().enumerate() {
            assert_eq!(numbers(&ticket.wait().unwrap(), "y"), [20.0 * number as f32; SIZE as usize]);
            assert_eq!(Arc::strong_count(&inputs[number]), 1);
        }
        assert!(runtime.submit_shared(&[("z", inputs[0].clone())]).is_err());
        assert_eq!(Arc::strong_count(&inputs[0]), 1);
    }
}

#[test]
fn back_pressure_holds_requests_back() {
    let folder = two_devices(Mode::Pipeline, true).write();
    let runtime = Runtime::load(folder.path(), Options { in_flight: Some(1), ..options() }).unwrap();
    let first = runtime.submit(&[("x", full(1.0).view())]).unwrap();
    let second = runtime.submit(&[("x", full(2.0).view())]).unwrap();
    // There is one slot, so the second request was admitted when the first was complete.
    assert!(first.is_done());
    assert_eq!(numbers(&first.wait().unwrap(), "y")[0], 20.0);
    assert_eq!(numbers(&second.wait().unwrap(), "y")[0], 40.0);
}

#[test]
fn batches_are_sliced_and_gathered() {
    // Three inputs on axis 1, with two leading rows. The first and last are scaled by 2, the middle one by 10 on another
    // device.
    let mut builder = BundleBuilder::new(Mode::Batch, 2);
    builder.bundle.objective.inputs = 3;
    let (two, ten) = (builder.packed(2.0), builder.packed(10.0));
    let x = builder.value_of("x", 0, floats(&[2, 3, 2]));
    builder.bundle.inputs.push(Port { name: "x".into(), value: x });
    let outer = builder.value_of("outer", 0, floats(&[2, 2, 2]));
    let middle = builder.value_of("middle", 0, floats(&[2, 1, 2]));
    builder.step(Action::Slice { input: x, output: outer, positions: vec![0, 2], of: 3, axis: 1, outer: 2 });
    builder.step(Action::Slice { input: x, output: middle, positions: vec![1], of: 3, axis: 1, outer: 2 });
    let scaled = |builder: &mut BundleBuilder, name: &str, input: usize, constant, device| {
        let tensor = builder.bundle.values[input].tensor.clone();
        let count = tensor.shape.iter().product();
        let output = builder.value_of(name, device, tensor);
        let call = call_of("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(constant)], count);
        builder.launch(name, vec![call], &[input], &[output]);
        output
    };
    let outer = scaled(&mut builder, "twice", outer, two, 0);
    let moved = builder.transfer(middle, 1);
    let middle = scaled(&mut builder, "ten times", moved, ten, 1);
    let back = builder.transfer(middle, 0);
    let y = builder.value_of("y", 0, floats(&[2, 3, 2]));
    builder.step(Action::Gather { inputs: vec![outer, back], output: y, of: vec![2, 1], axis: 1, outer: 2 });
    builder.output("y", y);
    let folder = builder.write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let input = divi_runtime::TensorData::from_f32(&[2, 3, 2], &(0..12).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
    let outputs = runtime.run(&[("x", input.view())]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [0., 2., 8., 10., 20., 30., 12., 14., 20., 22., 80., 90.]);
}

#[test]
fn constants_are_loaded_from_all_sources() {
    let mut builder = BundleBuilder::new(Mode::Latency, 1);
    let packed = builder.packed(2.0);
    // At offset 1 of another file, so that it must be copied to aligned memory.
    let file = builder.constant(4, Source::File { path: "model.bin".into(), offset: 1 });
    let made = builder.constant(4, Source::Evaluated(Expression::bytes(&5.0_f32.to_le_bytes())));
    let computed = builder.constant(SIZE * 4, Source::Computed);
    let tens = builder.constant(SIZE * 4, Source::Evaluated(Expression::bytes(full(10.0).bytes())));
    builder.bundle.prepare_executable = Some(0);
    builder
        .bundle
        .prepare
        .push(call("scale", &[Buffer::Constant(computed), Buffer::Constant(tens), Buffer::Constant(packed)]));
    let (x, y) = (builder.input("x", 0), builder.value("y", 0));
    let calls = vec![
        call("scale", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Constant(file)]),
        call("scale", &[Buffer::Arena(512), Buffer::Arena(0), Buffer::Constant(made)]),
        call("add", &[Buffer::Output(0), Buffer::Arena(512), Buffer::Constant(computed)]),
    ];
    builder.launch("main", calls, &[x], &[y]);
    builder.output("y", y);
    // Outputs may be constants, inputs, and duplicates of each other.
    let fixed = builder.value("fixed", 0);
    builder.bundle.values[fixed].constant = Some(computed);
    builder.output("fixed", fixed);
    builder.output("same", x);
    builder.output("again", y);
    let folder = Folder::new();
    std::fs::write(folder.join("model.bin"), [&[0][..], &3.0_f32.to_le_bytes()].concat()).unwrap();
    let folder = builder.write_into(folder);
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let outputs = runtime.run(&[("x", full(1.0).view())]).unwrap();
    let first = |name| numbers(&outputs, name)[0];
    assert_eq!([first("y"), first("fixed"), first("same"), first("again")], [35.0, 20.0, 1.0, 35.0]);
}

#[test]
fn many_requests_do_not_leak_memory() {
    let name = "execution::many_requests_do_not_leak_memory";
    match std::env::var("DIVI_REQUESTS") {
        Ok(count) => run_many(count.parse().unwrap()),
        // In a separate process, because other tests allocate memory in this one.
        Err(_) => {
            let mut alone = Command::new(std::env::current_exe().unwrap());
            let output = alone.args([name, "--exact"]).env("DIVI_REQUESTS", "10000").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}

fn run_many(count: usize) {
    let folder = two_devices(Mode::Pipeline, false).write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let input = full(1.0);
    let run = |count: usize| {
        let mut tickets = VecDeque::new();
        for number in 0..count {
            match number % 3 {
                0 => drop(runtime.run(&[("x", input.view())]).unwrap()),
                _ => tickets.push_back(runtime.submit(&[("x", input.view())]).unwrap()),
            }
            if number % 7 == 0
                && let Some(ticket) = tickets.back()
            {
                ticket.cancel();
            }
            if tickets.len() > 4 {
                // Cancelled requests end with an error.
                let _ = tickets.pop_front().unwrap().wait();
            }
        }
    };
    run(count / 10);
    let before = resident();
    run(count);
    let grown = resident().saturating_sub(before);
    assert!(grown < 256 << 10 || count < 10_000, "{grown} bytes more after {count} requests");
}

/// Returns the resident set size of this process in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn values_with_disjoint_live_ranges_share_memory() {
    let mut builder = BundleBuilder::new(Mode::Latency, 1);
    let two = builder.packed(2.0);
    let mut value = builder.input("x", 0);
    for index in 0..20 {
        let next = builder.value(&format!("v{index}"), 0);
        let calls = vec![call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(two)])];
        builder.launch(&format!("stage {index}"), calls, &[value], &[next]);
        value = next;
    }
    builder.output("y", value);
    let folder = builder.write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let outputs = runtime.run(&[("x", tensor(&[1.0; SIZE as usize]).view())]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [(1 << 20) as f32; SIZE as usize]);
    // Two values of a chain are live at a time.
    assert_eq!(runtime.memory()[0].values, 2 * SIZE * 4);
}
