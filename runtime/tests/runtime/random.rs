//! Programs and damage from a seed.

use crate::kit::{Maker, SIZE, call, full, is_under_valgrind, numbers, options, two_devices};
use divi_runtime::{
    Options, Runtime,
    bundle::{Buffer, Bundle, DESCRIPTION, Mode},
};
use serde_json::Value;

/// Small numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

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

/// Changes a number or a string somewhere.
fn damage(value: &mut Value, random: &mut Numbers) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let index = random.below(items.len());
            match random.below(8) {
                0 => drop(items.remove(index)),
                1 => items.push(items[index].clone()),
                _ => damage(&mut items[index], random),
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            let index = random.below(fields.len());
            if let Some((_, field)) = fields.iter_mut().nth(index) {
                damage(field, random);
            }
        }
        Value::Number(_) => {
            let others = [0, 1, 2, 63, 64, 1 << 20, 1 << 33, 1 << 47, u64::MAX / 2, u64::MAX];
            *value = others[random.below(others.len())].into();
        }
        Value::String(_) => *value = ["", "float", "int64", "../x", "\0", "cpu0"][random.below(6)].into(),
        _ => *value = 7.into(),
    }
}

#[test]
fn damaged_bundles_are_only_errors() {
    let folder = two_devices(Mode::Pipeline, false).write();
    let whole: Value = serde_json::from_slice(&std::fs::read(folder.join(DESCRIPTION)).unwrap()).unwrap();
    let mut random = Numbers(5);
    let (mut loaded, mut refused) = (0, 0);
    for _ in 0..2000 {
        let mut description = whole.clone();
        (0..=random.below(2)).for_each(|_| damage(&mut description, &mut random));
        // With its hash, since otherwise that is all that would be looked at.
        let written = serde_json::from_value::<Bundle>(description).is_ok_and(|mut it| it.write(folder.path()).is_ok());
        let is_loaded = written && Runtime::load(folder.path(), options()).is_ok();
        *if is_loaded { &mut loaded } else { &mut refused } += 1;
    }
    assert!(loaded > 50 && refused > 500, "{loaded} loaded, {refused} refused");
}
