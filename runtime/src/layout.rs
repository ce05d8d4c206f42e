//! Where the values of a request are: each device has one block, in which values whose times cannot overlap share bytes.
//!
//! Steps run by data flow, so times are known only where one step depends on another: a value may take the bytes of
//! another one if the step that writes it comes after all that read the other, whatever the order of the rest.

use crate::bundle::{ALIGNMENT, Bundle};

/// Beyond this many steps, what comes after what takes too much memory to write down; nothing is shared then.
const STEPS: usize = 1 << 13;

pub(crate) struct Layout {
    /// By value; 0 for constants, which have bytes of their own.
    pub(crate) offsets: Vec<u64>,
    /// The bytes of each device's block.
    pub(crate) bytes: Vec<u64>,
}

/// A value's times: from the step that writes it, or from the beginning, to the steps that use it, or to the end.
struct Life {
    written: Option<usize>,
    used: Vec<usize>,
    to_the_end: bool,
}

impl Layout {
    /// `dependencies` are the steps that each step waits for, all of which come before it.
    pub(crate) fn new(bundle: &Bundle, dependencies: &[Vec<usize>]) -> Self {
        let lives = lives(bundle);
        let before = Before::new(dependencies);
        let ends_before = |a: &Life, b: &Life| match b.written {
            Some(written) if !a.to_the_end => {
                a.used.iter().chain(&a.written).all(|&step| before.is_certain(step, written))
            }
            _ => false,
        };
        let mut offsets = vec![0; bundle.values.len()];
        let mut bytes = vec![0_u64; bundle.devices.len()];
        let mut placed: Vec<usize> = Vec::new();
        let size = |value: usize| bundle.values[value].tensor.bytes.next_multiple_of(ALIGNMENT);
        // The largest first: small ones find their places between them.
        let mut order: Vec<usize> =
            (0..bundle.values.len()).filter(|&value| bundle.values[value].constant.is_none()).collect();
        order.sort_by_key(|&value| (std::cmp::Reverse(size(value)), value));
        for value in order {
            let device = bundle.values[value].device;
            let overlaps = |&&other: &&usize| {
                bundle.values[other].device == device
                    && !ends_before(&lives[other], &lives[value])
                    && !ends_before(&lives[value], &lives[other])
            };
            let mut taken: Vec<(u64, u64)> =
                placed.iter().filter(overlaps).map(|&other| (offsets[other], offsets[other] + size(other))).collect();
            taken.sort_unstable();
            let mut offset = 0;
            for (begin, end) in taken {
                if begin >= offset + size(value) {
                    break;
                }
                offset = offset.max(end);
            }
            offsets[value] = offset;
            bytes[device] = bytes[device].max(offset + size(value));
            placed.push(value);
        }
        Self { offsets, bytes }
    }
}

fn lives(bundle: &Bundle) -> Vec<Life> {
    let mut lives: Vec<Life> =
        bundle.values.iter().map(|_| Life { written: None, used: vec![], to_the_end: false }).collect();
    for (index, step) in bundle.steps.iter().enumerate() {
        step.action.writes().iter().for_each(|&value| lives[value].written = Some(index));
        step.action.reads().iter().for_each(|&value| lives[value].used.push(index));
    }
    bundle.outputs.iter().for_each(|output| lives[output.value].to_the_end = true);
    lives
}

/// Which steps certainly come before which.
struct Before {
    words: usize,
    /// For each step, a bit for each step that it waits for, itself or through others.
    bits: Vec<u64>,
}

impl Before {
    fn new(dependencies: &[Vec<usize>]) -> Self {
        if dependencies.len() > STEPS {
            return Self { words: 0, bits: vec![] };
        }
        let words = dependencies.len().div_ceil(64);
        let mut bits = vec![0; words * dependencies.len()];
        for (step, others) in dependencies.iter().enumerate() {
            let (earlier, own) = bits.split_at_mut(step * words);
            for &other in others {
                own[other / 64] |= 1 << (other % 64);
                let theirs = &earlier[other * words..(other + 1) * words];
                own.iter_mut().zip(theirs).for_each(|(own, theirs)| *own |= theirs);
            }
        }
        Self { words, bits }
    }

    fn is_certain(&self, first: usize, second: usize) -> bool {
        self.words > 0 && self.bits[second * self.words + first / 64] >> (first % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Small numbers from a seed.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }
    }

    /// Steps that each read some of the values before and write one.
    fn random_bundle(numbers: &mut Numbers) -> Bundle {
        let count = 3 + numbers.below(20);
        let value = |index: usize, bytes: usize| json!({"name": index.to_string(), "device": 0, "tensor": {"type": "uint8", "shape": [bytes], "bytes": bytes}});
        let values: Vec<Value> = (0..count).map(|index| value(index, 1 + numbers.below(300))).collect();
        let mut steps = Vec::new();
        for output in 1..count {
            let inputs: Vec<usize> =
                (0..1 + numbers.below(2)).map(|_| output - 1 - numbers.below(output.min(4))).collect();
            steps.push(json!({"launch": {"stage": 0, "inputs": inputs, "outputs": [output]}}));
        }
        serde_json::from_value(json!({
            "format": "", "model": "", "executables": [],
            "objective": {"mode": "latency", "inputs": 1, "predicted_us": null, "bound_us": null},
            "devices": [{"id": "cpu0", "kind": "cpu", "threads": 1, "memory": 0}],
            "files": [], "values": values, "inputs": [{"name": "x", "value": 0}],
            "outputs": [{"name": "y", "value": count - 1}], "constants": [], "prepare": [], "stages": [], "steps": steps,
            "sha256": ""
        }))
        .unwrap()
    }

    /// Runs the steps in some order that their dependencies allow; bytes are the names of the values that wrote them.
    fn run(bundle: &Bundle, layout: &Layout, dependencies: &[Vec<usize>], numbers: &mut Numbers) {
        let mut memory = vec![usize::MAX; layout.bytes[0] as usize];
        let range = |value: usize| {
            let (offset, bytes) = (layout.offsets[value] as usize, bundle.values[value].tensor.bytes as usize);
            offset..offset + bytes
        };
        memory[range(0)].fill(0);
        let mut left: Vec<usize> = (0..bundle.steps.len()).collect();
        while !left.is_empty() {
            let ready: Vec<usize> =
                left.iter().copied().filter(|&step| dependencies[step].iter().all(|it| !left.contains(it))).collect();
            let step = ready[numbers.below(ready.len())];
            let action = &bundle.steps[step].action;
            action.writes().iter().for_each(|&value| memory[range(value)].fill(value));
            // After what is written, because a step may write before it has read all.
            action.reads().iter().for_each(|&value| assert!(memory[range(value)].iter().all(|&byte| byte == value)));
            left.retain(|&other| other != step);
        }
        let output = bundle.outputs[0].value;
        assert!(memory[range(output)].iter().all(|&byte| byte == output));
    }

    #[test]
    fn no_order_of_steps_mixes_values_up() {
        let mut numbers = Numbers(7);
        let (mut shared, mut apart) = (0, 0);
        for _ in 0..200 {
            let bundle = random_bundle(&mut numbers);
            let dependencies = bundle.dependencies();
            let layout = Layout::new(&bundle, &dependencies);
            (0..20).for_each(|_| run(&bundle, &layout, &dependencies, &mut numbers));
            shared += layout.bytes[0];
            apart += bundle.values.iter().map(|value| value.tensor.bytes.next_multiple_of(ALIGNMENT)).sum::<u64>();
        }
        assert!(shared * 4 < apart * 3, "{shared} of {apart}");
    }
}
