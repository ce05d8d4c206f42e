//! Outputs are right, in every mode and with any number of threads.

use crate::kit::{
    Folder, Maker, SIZE, call, call_of, floats, full, is_under_valgrind, numbers, options, scale_and_add, tensor,
    two_devices,
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
fn several_threads_may_ask_at_once() {
    let folder = scale_and_add().write();
    let runtime = Runtime::load(folder.path(), Options { in_flight: Some(2), ..options() }).unwrap();
    let ask = |number: f32| {
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
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || ask(100.0 * number as f32))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn inputs_are_read_where_they_are_and_outputs_written_where_they_go() {
    let folder = scale_and_add().write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let mut place = [0; SIZE as usize * 4];
    for number in [1.0, 2.0] {
        // At a multiple of 64 bytes, and not.
        let aligned = full(number);
        let mut shifted = vec![0; SIZE as usize * 4 + 4];
        let offset = if shifted.as_ptr().addr().is_multiple_of(64) { 4 } else { 0 };
        shifted[offset..][..SIZE as usize * 4].copy_from_slice(aligned.bytes());
        let mut unaligned = aligned.view();
        unaligned.bytes = &shifted[offset..][..SIZE as usize * 4];
        for input in [aligned.view(), unaligned] {
            place.fill(0);
            runtime.run_into(&[("x", input)], &mut [&mut place[..]]).unwrap();
            assert_eq!(place[..4], (number * 4.0).to_le_bytes());
        }
    }
}

#[test]
fn two_devices_hand_values_over() {
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
    // Many more than may be in flight: they wait to be let in, not for anybody to take the results.
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
    // There is one place, so the second came in when the first was done.
    assert!(first.is_done());
    assert_eq!(numbers(&first.wait().unwrap(), "y")[0], 20.0);
    assert_eq!(numbers(&second.wait().unwrap(), "y")[0], 40.0);
}

#[test]
fn batches_are_cut_and_put_together() {
    // Three inputs of two parts on axis 1: [2, 3] pairs. The first and last go one way, the middle one another.
    let mut maker = Maker::new(Mode::Batch, 2);
    maker.bundle.objective.inputs = 3;
    let (two, ten) = (maker.packed(2.0), maker.packed(10.0));
    let x = maker.value_of("x", 0, floats(&[2, 3, 2]));
    maker.bundle.inputs.push(Port { name: "x".into(), value: x });
    let outer = maker.value_of("outer", 0, floats(&[2, 2, 2]));
    let middle = maker.value_of("middle", 0, floats(&[2, 1, 2]));
    maker.step(Action::Slice { input: x, output: outer, positions: vec![0, 2], of: 3, axis: 1, outer: 2 });
    maker.step(Action::Slice { input: x, output: middle, positions: vec![1], of: 3, axis: 1, outer: 2 });
    let scaled = |maker: &mut Maker, name: &str, input: usize, constant, device| {
        let tensor = maker.bundle.values[input].tensor.clone();
        let count = tensor.shape.iter().product();
        let output = maker.value_of(name, device, tensor);
        let call = call_of("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(constant)], count);
        maker.launch(name, vec![call], &[input], &[output]);
        output
    };
    let outer = scaled(&mut maker, "twice", outer, two, 0);
    let there = maker.transfer(middle, 1);
    let middle = scaled(&mut maker, "ten times", there, ten, 1);
    let back = maker.transfer(middle, 0);
    let y = maker.value_of("y", 0, floats(&[2, 3, 2]));
    maker.step(Action::Gather { inputs: vec![outer, back], output: y, of: vec![2, 1], axis: 1, outer: 2 });
    maker.output("y", y);
    let folder = maker.write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let input = divi_runtime::TensorData::from_f32(&[2, 3, 2], &(0..12).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
    let outputs = runtime.run(&[("x", input.view())]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [0., 2., 8., 10., 20., 30., 12., 14., 20., 22., 80., 90.]);
}

#[test]
fn constants_come_from_where_they_are() {
    let mut maker = Maker::new(Mode::Latency, 1);
    let packed = maker.packed(2.0);
    // Behind one byte of another file, so that it must be brought to a multiple.
    let file = maker.constant(4, Source::File { path: "model.bin".into(), offset: 1 });
    let made = maker.constant(4, Source::Made(Expression::bytes(&5.0_f32.to_le_bytes())));
    let computed = maker.constant(SIZE * 4, Source::Computed);
    let tens = maker.constant(SIZE * 4, Source::Made(Expression::bytes(full(10.0).bytes())));
    maker.bundle.prepare_executable = Some(0);
    maker
        .bundle
        .prepare
        .push(call("scale", &[Buffer::Constant(computed), Buffer::Constant(tens), Buffer::Constant(packed)]));
    let (x, y) = (maker.input("x", 0), maker.value("y", 0));
    let calls = vec![
        call("scale", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Constant(file)]),
        call("scale", &[Buffer::Arena(512), Buffer::Arena(0), Buffer::Constant(made)]),
        call("add", &[Buffer::Output(0), Buffer::Arena(512), Buffer::Constant(computed)]),
    ];
    maker.launch("main", calls, &[x], &[y]);
    maker.output("y", y);
    // Outputs may be constants, inputs, and each other.
    let fixed = maker.value("fixed", 0);
    maker.bundle.values[fixed].constant = Some(computed);
    maker.output("fixed", fixed);
    maker.output("same", x);
    maker.output("again", y);
    let folder = Folder::new();
    std::fs::write(folder.join("model.bin"), [&[0][..], &3.0_f32.to_le_bytes()].concat()).unwrap();
    let folder = maker.write_into(folder);
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let outputs = runtime.run(&[("x", full(1.0).view())]).unwrap();
    let first = |name| numbers(&outputs, name)[0];
    assert_eq!([first("y"), first("fixed"), first("same"), first("again")], [35.0, 20.0, 1.0, 35.0]);
}

#[test]
fn nothing_is_left_behind_after_many_requests() {
    let name = "execution::nothing_is_left_behind_after_many_requests";
    match std::env::var("DIVI_REQUESTS") {
        Ok(count) => ask_often(count.parse().unwrap()),
        // Memory is a process's, and other tests are in this one.
        Err(_) => {
            let mut alone = Command::new(std::env::current_exe().unwrap());
            let output = alone.args([name, "--exact"]).env("DIVI_REQUESTS", "10000").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}

fn ask_often(count: usize) {
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
                // Cancelled ones end with an error, and the others must not be hurt.
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

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn values_share_memory_where_one_ends_before_the_other() {
    let mut maker = Maker::new(Mode::Latency, 1);
    let two = maker.packed(2.0);
    let mut value = maker.input("x", 0);
    for index in 0..20 {
        let next = maker.value(&format!("v{index}"), 0);
        let calls = vec![call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(two)])];
        maker.launch(&format!("stage {index}"), calls, &[value], &[next]);
        value = next;
    }
    maker.output("y", value);
    let folder = maker.write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let outputs = runtime.run(&[("x", tensor(&[1.0; SIZE as usize]).view())]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [(1 << 20) as f32; SIZE as usize]);
    // A chain needs two of its values at a time.
    assert_eq!(runtime.memory()[0].values, 2 * SIZE * 4);
}
