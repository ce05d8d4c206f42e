//! Programs from a seed.

use crate::kit::{Maker, Numbers, SIZE, call, full, is_under_valgrind, numbers, options};
use divi_runtime::{
    Options, Runtime,
    bundle::{Buffer, Mode},
};

/// A program of stages that add two values each, on some device; and what comes out if its input is one.
fn program(numbers: &mut Numbers, mode: Mode) -> (Maker, f32) {
    let devices = 1 + numbers.below(3);
    let mut maker = Maker::new(mode, devices);
    // What is on each device, with the number it stands for.
    let mut there: Vec<Vec<(usize, f32)>> = vec![vec![]; devices];
    there[0].push((maker.input("x", 0), 1.0));
    let mut last = (0, 1.0);
    for index in 0..3 + numbers.below(12) {
        let device = numbers.below(devices);
        let mut operands = Vec::new();
        for _ in 0..2 {
            let from = loop {
                let from = numbers.below(devices);
                if !there[from].is_empty() {
                    break from;
                }
            };
            let (mut value, number) = there[from][numbers.below(there[from].len())];
            if from != device {
                value = maker.transfer(value, device);
                there[device].push((value, number));
            }
            operands.push((value, number));
        }
        let output = maker.value(&format!("v{index}"), device);
        let calls = vec![
            call("add", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Input(1)]),
            call("add", &[Buffer::Output(0), Buffer::Arena(0), Buffer::Arena(2048)]),
        ];
        maker.launch(&format!("stage {index}"), calls, &[operands[0].0, operands[1].0], &[output]);
        last = (output, operands[0].1 + operands[1].1);
        there[device].push(last);
    }
    for step in &mut maker.bundle.steps {
        (step.start_us, step.takes_us) = (Some(numbers.below(100) as f64), Some(1.0));
    }
    maker.output("y", last.0);
    (maker, last.1)
}

#[test]
fn programs_compute_what_they_say() {
    let mut random = Numbers(3);
    for round in 0..if is_under_valgrind() { 10 } else { 60 } {
        let mode = [Mode::Latency, Mode::Batch, Mode::Pipeline][round % 3];
        let (maker, factor) = program(&mut random, mode);
        let folder = maker.write();
        let runtime = Runtime::load(
            folder.path(),
            Options {
                threads: Some(1 + random.below(3)),
                in_flight: Some(1 + random.below(4)),
                link_threads: [None, Some(false), Some(true)][random.below(3)],
                ..options()
            },
        );
        let runtime = runtime.unwrap();
        let tickets: Vec<_> =
            (0..10).map(|number| runtime.submit(&[("x", full(number as f32).view())]).unwrap()).collect();
        let outputs = runtime.run(&[("x", full(-1.0).view())]).unwrap();
        assert_eq!(numbers(&outputs, "y"), [-factor; SIZE as usize]);
        for (number, ticket) in tickets.into_iter().enumerate() {
            assert_eq!(numbers(&ticket.wait().unwrap(), "y"), [number as f32 * factor; SIZE as usize]);
        }
    }
}
