//! Random programs.

use crate::kit::{BundleBuilder, Lcg, SIZE, call, full, is_under_valgrind, numbers, options};
use divi_runtime::{
    Options, Runtime,
    bundle::{Buffer, Mode},
};

/// Builds a program of stages that add two values each on random devices. Returns it with its output for the input 1.
fn program(numbers: &mut Lcg, mode: Mode) -> (BundleBuilder, f32) {
    let devices = 1 + numbers.below(3);
    let mut builder = BundleBuilder::new(mode, devices);
    // By device: its values with their numbers for the input 1.
    let mut resident: Vec<Vec<(usize, f32)>> = vec![vec![]; devices];
    resident[0].push((builder.input("x", 0), 1.0));
    let mut last = (0, 1.0);
    for index in 0..3 + numbers.below(12) {
        let device = numbers.below(devices);
        let mut operands = Vec::new();
        for _ in 0..2 {
            let from = loop {
                let from = numbers.below(devices);
                if !resident[from].is_empty() {
                    break from;
                }
            };
            let (mut value, number) = resident[from][numbers.below(resident[from].len())];
            if from != device {
                value = builder.transfer(value, device);
                resident[device].push((value, number));
            }
            operands.push((value, number));
        }
        let output = builder.value(&format!("v{index}"), device);
        let calls = vec![
            call("add", &[Buffer::Arena(0), Buffer::Input(0), Buffer::Input(1)]),
            call("add", &[Buffer::Output(0), Buffer::Arena(0), Buffer::Arena(2048)]),
        ];
        builder.launch(&format!("stage {index}"), calls, &[operands[0].0, operands[1].0], &[output]);
        last = (output, operands[0].1 + operands[1].1);
        resident[device].push(last);
    }
    for step in &mut builder.bundle.steps {
        (step.start_us, step.duration_us) = (Some(numbers.below(100) as f64), Some(1.0));
    }
    builder.output("y", last.0);
    (builder, last.1)
}

#[test]
fn random_programs_compute_correct_outputs() {
    let mut random = Lcg(3);
    for round in 0..if is_under_valgrind() { 10 } else { 60 } {
        let mode = [Mode::Latency, Mode::Batch, Mode::Pipeline][round % 3];
        let (builder, factor) = program(&mut random, mode);
        let folder = builder.write();
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
