//! Memory planning for the values of a request: each device has one block, in which values with disjoint live ranges share
//! bytes.
//!
//! Steps run in data-flow order, so live ranges are known to be disjoint only by dependences: a value may reuse the bytes of
//! another one if the step that writes it depends, transitively, on all steps that read or write the other.

use crate::bundle::{ALIGNMENT, Bundle};

/// Maximum number of steps for which the transitive closure (n² bits) is computed; beyond it, no memory is shared.
const STEPS: usize = 1 << 13;

/// Offsets of the values of a request.
pub(crate) struct MemoryPlan {
    /// By value: its offset in the device's block; 0 for constants, which are stored elsewhere.
    pub(crate) offsets: Vec<u64>,
    /// By device: the size of its block in bytes.
    pub(crate) bytes: Vec<u64>,
}

/// Live range of a value.
struct LiveRange {
    /// Step that writes it; `None` if it is live from the start.
    written: Option<usize>,
    /// Steps that read it.
    used: Vec<usize>,
    /// True if it is live until the end of the request.
    is_live_out: bool,
}

impl MemoryPlan {
    /// Assigns offsets by first fit in order of decreasing size. `dependencies` has for each step the earlier steps that it
    /// depends on.
    pub(crate) fn new(bundle: &Bundle, dependencies: &[Vec<usize>]) -> Self {
        let live_ranges = live_ranges(bundle);
        let before = DependenceClosure::new(dependencies);
        let ends_before = |a: &LiveRange, b: &LiveRange| match b.written {
            Some(written) if !a.is_live_out => {
                a.used.iter().chain(&a.written).all(|&step| before.is_before(step, written))
            }
            _ => false,
        };
        let mut offsets = vec![0; bundle.values.len()];
        let mut bytes = vec![0_u64; bundle.devices.len()];
        let mut placed: Vec<usize> = Vec::new();
        let size = |value: usize| bundle.values[value].tensor.bytes.next_multiple_of(ALIGNMENT);
        // Largest first: small values fill the gaps between large ones.
        let mut order: Vec<usize> =
            (0..bundle.values.len()).filter(|&value| bundle.values[value].constant.is_none()).collect();
        order.sort_by_key(|&value| (std::cmp::Reverse(size(value)), value));
        for value in order {
            let device = bundle.values[value].device;
            let overlaps = |&&other: &&usize| {
                bundle.values[other].device == device
                    && !ends_before(&live_ranges[other], &live_ranges[value])
                    && !ends_before(&live_ranges[value], &live_ranges[other])
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

fn live_ranges(bundle: &Bundle) -> Vec<LiveRange> {
    let mut live_ranges: Vec<LiveRange> =
        bundle.values.iter().map(|_| LiveRange { written: None, used: vec![], is_live_out: false }).collect();
    for (index, step) in bundle.steps.iter().enumerate() {
        step.action.writes().iter().for_each(|&value| live_ranges[value].written = Some(index));
        step.action.reads().iter().for_each(|&value| live_ranges[value].used.push(index));
    }
    bundle.outputs.iter().for_each(|output| live_ranges[output.value].is_live_out = true);
    live_ranges
}

/// Transitive closure of the dependences.
struct DependenceClosure {
    /// Number of 64-bit words per step.
    words: usize,
    /// By step: a bit for each step that it depends on, directly or transitively.
    bits: Vec<u64>,
}

impl DependenceClosure {
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
                let closure = &earlier[other * words..(other + 1) * words];
                own.iter_mut().zip(closure).for_each(|(own, closure)| *own |= closure);
            }
        }
        Self { words, bits }
    }

    /// Returns true if `second` depends on `first`, so that `first` completes before `second` starts.
    fn is_before(&self, first: usize, second: usize) -> bool {
        self.words > 0 && self.bits[second * self.words + first / 64] >> (first % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Linear congruential generator.
    struct Lcg(u64);

    impl Lcg {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }
    }

    /// Builds a bundle whose steps read some of the preceding values and write one.
    fn random_bundle(numbers: &mut Lcg) -> Bundle {
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

    /// Simulates the steps in a random topological order. Each byte of the memory holds the index of the value last written
    /// to it.
    fn run(bundle: &Bundle, layout: &MemoryPlan, dependencies: &[Vec<usize>], numbers: &mut Lcg) {
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
            // Checked after the writes, because a kernel may write before it has read all operands.
            action.reads().iter().for_each(|&value| assert!(memory[range(value)].iter().all(|&byte| byte == value)));
            left.retain(|&other| other != step);
        }
        let output = bundle.outputs[0].value;
        assert!(memory[range(output)].iter().all(|&byte| byte == output));
    }

    #[test]
    fn no_topological_order_overwrites_a_live_value() {
        let mut numbers = Lcg(7);
        let (mut shared, mut apart) = (0, 0);
        for _ in 0..200 {
            let bundle = random_bundle(&mut numbers);
            let dependencies = bundle.dependencies();
            let layout = MemoryPlan::new(&bundle, &dependencies);
            (0..20).for_each(|_| run(&bundle, &layout, &dependencies, &mut numbers));
            shared += layout.bytes[0];
            apart += bundle.values.iter().map(|value| value.tensor.bytes.next_multiple_of(ALIGNMENT)).sum::<u64>();
        }
        assert!(shared * 4 < apart * 3, "{shared} of {apart}");
    }
}
