//! Memory planning for the values of a request: each device has one block, in which values with disjoint live ranges share
//! bytes.
//!
//! Steps run in data-flow order, so live ranges are known to be disjoint only by dependences: a value may reuse the bytes of
//! another one if the step that writes it depends, transitively, on all steps that read or write the other.
//!
//! Groups of inputs do not depend on each other, so by dependences alone the values of all groups would be live at once. A
//! device whose memory does not suffice for that runs in the order of the plan where bytes are reused: values share bytes if
//! their live ranges in the list of steps are disjoint, and a step that writes reused bytes also waits for the steps that
//! read or wrote them ([`MemoryPlan::after`]). So a group waits until an earlier one has made room (back-pressure). Within the
//! memory of the device, bytes are reused that need no wait, and otherwise those that were released first.

use crate::bundle::{ALIGNMENT, Bundle};
use std::{cmp::Reverse, collections::BTreeMap};

/// Maximum number of steps for which the transitive closure (n² bits) is computed; beyond it, no memory is shared.
const STEPS: usize = 1 << 13;

/// Offsets of the values of a request.
pub(crate) struct MemoryPlan {
    /// By value: its offset in the device's block; 0 for constants, which are stored elsewhere.
    pub(crate) offsets: Vec<u64>,
    /// By device: the size of its block in bytes.
    pub(crate) bytes: Vec<u64>,
    /// By step: earlier steps that it waits for because it overwrites values that they read or wrote; besides its
    /// dependences.
    pub(crate) after: Vec<Vec<usize>>,
}

/// Live range of a value.
struct LiveRange {
    /// Step that writes it; `None` if it is live from the start.
    written: Option<usize>,
    /// Steps that read it, ascending.
    used: Vec<usize>,
    /// True if it is live until the end of the request.
    is_live_out: bool,
}

impl MemoryPlan {
    /// Assigns offsets. `dependencies` has for each step the earlier steps that it depends on, `available` for each device
    /// the bytes above which the order of the steps is used; `None` if it never is.
    pub(crate) fn new(bundle: &Bundle, dependencies: &[Vec<usize>], available: &[Option<u64>]) -> Self {
        let live_ranges = live_ranges(bundle);
        let closure = DependenceClosure::new(dependencies);
        let mut plan = Self {
            offsets: vec![0; bundle.values.len()],
            bytes: vec![0; bundle.devices.len()],
            after: vec![vec![]; bundle.steps.len()],
        };
        for device in 0..bundle.devices.len() {
            let is_here = |value: &usize| bundle.values[*value].device == device;
            let has_bytes = |value: &usize| bundle.values[*value].constant.is_none();
            let values: Vec<usize> = (0..bundle.values.len()).filter(is_here).filter(has_bytes).collect();
            let by_dependences = |a: usize, b: usize| live_ranges[a].ends_before(&live_ranges[b], &closure);
            plan.place(bundle, device, &values, by_dependences);
            if let Some(available) = available[device].filter(|available| plan.bytes[device] > *available) {
                if !plan.place_within(available, bundle, device, &values, &live_ranges, by_dependences) {
                    let by_order = |a: usize, b: usize| live_ranges[a].precedes(&live_ranges[b]);
                    plan.place(bundle, device, &values, by_order);
                }
                plan.wait_for_bytes(bundle, &values, &live_ranges, dependencies);
            }
        }
        plan
    }

    /// Assigns offsets to a device's values by first fit in order of decreasing size. `ends_before(a, b)` is true if the
    /// live range of `a` ends before that of `b` begins.
    fn place(&mut self, bundle: &Bundle, device: usize, values: &[usize], ends_before: impl Fn(usize, usize) -> bool) {
        let size = |value: usize| size(bundle, value);
        let mut order = values.to_vec();
        // Largest first: small values fill the gaps between large ones.
        order.sort_by_key(|&value| (Reverse(size(value)), value));
        self.bytes[device] = 0;
        for (index, &value) in order.iter().enumerate() {
            let overlaps = |other: &&usize| !ends_before(**other, value) && !ends_before(value, **other);
            let live = order[..index].iter().filter(overlaps);
            let mut taken: Vec<(u64, u64)> =
                live.map(|&other| (self.offsets[other], self.offsets[other] + size(other))).collect();
            taken.sort_unstable();
            let mut offset = 0;
            for (begin, end) in taken {
                if begin >= offset + size(value) {
                    break;
                }
                offset = offset.max(end);
            }
            self.offsets[value] = offset;
            self.bytes[device] = self.bytes[device].max(offset + size(value));
        }
    }

    /// Assigns offsets below `available` to a device's values in the order of the steps that write them; false if they do not
    /// fit. Of the free bytes, those that need no wait are preferred, then those that were released first. `ends_before(a, b)`
    /// is true if the live range of `a` is known to end before that of `b` begins.
    fn place_within(
        &mut self,
        available: u64,
        bundle: &Bundle,
        device: usize,
        values: &[usize],
        live_ranges: &[LiveRange],
        ends_before: impl Fn(usize, usize) -> bool,
    ) -> bool {
        let mut order: Vec<usize> = values.iter().copied().filter(|&value| size(bundle, value) > 0).collect();
        order.sort_by_key(|&value| (live_ranges[value].written, value));
        // By begin: end, and the last value there.
        let mut free: BTreeMap<u64, (u64, Option<usize>)> = [(0, (available, None))].into();
        let mut live: Vec<usize> = Vec::new();
        self.bytes[device] = 0;
        for value in order {
            live.retain(|&other| {
                let is_over = live_ranges[other].precedes(&live_ranges[value]);
                if is_over {
                    let begin = self.offsets[other];
                    free.insert(begin, (begin + size(bundle, other), Some(other)));
                }
                !is_over
            });
            let wait = |last: Option<usize>| match last {
                Some(last) if !ends_before(last, value) => live_ranges[last].last_step().map_or(0, |step| step + 1),
                _ => 0,
            };
            // Adjacent free ranges from each begin on: the longest wait, and whether some bytes are new.
            let from = |begin: u64| {
                let (mut end, mut longest, mut is_new) = (begin, 0, false);
                for (&next, &(next_end, last)) in free.range(begin..) {
                    if next != end || end - begin >= size(bundle, value) {
                        break;
                    }
                    (end, longest, is_new) = (next_end, longest.max(wait(last)), is_new || last.is_none());
                }
                (end - begin >= size(bundle, value)).then_some((longest, is_new, begin))
            };
            let Some((.., begin)) = free.keys().filter_map(|&begin| from(begin)).min() else { return false };
            let end = begin + size(bundle, value);
            let taken: Vec<u64> = free.range(begin..end).map(|(&begin, _)| begin).collect();
            for part in taken {
                if let Some((part_end, last)) = free.remove(&part).filter(|(part_end, _)| *part_end > end) {
                    free.insert(end, (part_end, last));
                }
            }
            self.offsets[value] = begin;
            self.bytes[device] = self.bytes[device].max(end);
            live.push(value);
        }
        true
    }

    /// Makes each step that writes reused bytes of a device wait for the steps that read or wrote them before.
    fn wait_for_bytes(
        &mut self,
        bundle: &Bundle,
        values: &[usize],
        live_ranges: &[LiveRange],
        dependencies: &[Vec<usize>],
    ) {
        let mut order = values.to_vec();
        order.sort_by_key(|&value| live_ranges[value].written);
        // Last value of each range of bytes: by its begin, its end and the value.
        let mut last: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
        for value in order.into_iter().filter(|&value| size(bundle, value) > 0) {
            let (begin, end) = (self.offsets[value], self.offsets[value] + size(bundle, value));
            let overlapping: Vec<u64> = last
                .range(..end)
                .rev()
                .take_while(|(_, (other_end, _))| *other_end > begin)
                .map(|(&other_begin, _)| other_begin)
                .collect();
            for other_begin in overlapping {
                let Some((other_end, other)) = last.remove(&other_begin) else { continue };
                // Parts that stay.
                if other_begin < begin {
                    last.insert(other_begin, (begin, other));
                }
                if other_end > end {
                    last.insert(end, (other_end, other));
                }
                if let Some(written) = live_ranges[value].written {
                    let users = live_ranges[other].used.iter().chain(&live_ranges[other].written);
                    self.after[written].extend(users.filter(|step| !dependencies[written].contains(step)));
                }
            }
            last.insert(begin, (end, value));
        }
        for after in &mut self.after {
            after.sort_unstable();
            after.dedup();
        }
    }
}

/// Returns the bytes that a value occupies.
fn size(bundle: &Bundle, value: usize) -> u64 {
    bundle.values[value].tensor.bytes.next_multiple_of(ALIGNMENT)
}

impl LiveRange {
    /// Returns true if all steps that read or write it complete before the other value is written, by dependences.
    fn ends_before(&self, other: &Self, closure: &DependenceClosure) -> bool {
        match other.written {
            Some(written) if !self.is_live_out => {
                self.used.iter().chain(&self.written).all(|&step| closure.is_before(step, written))
            }
            _ => false,
        }
    }

    /// Returns the last step that reads or writes it.
    fn last_step(&self) -> Option<usize> {
        self.used.last().copied().max(self.written)
    }

    /// Returns true if all steps that read or write it are listed before the step that writes the other value.
    fn precedes(&self, other: &Self) -> bool {
        match other.written {
            Some(written) if !self.is_live_out => self.last_step().is_none_or(|last| last < written),
            _ => false,
        }
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
        bundle_of(&values, &steps, count - 1)
    }

    fn bundle_of(values: &[Value], steps: &[Value], output: usize) -> Bundle {
        serde_json::from_value(json!({
            "format": "", "model": "", "executables": [],
            "objective": {"mode": "latency", "inputs": 1, "predicted_us": null, "bound_us": null},
            "devices": [{"id": "cpu0", "kind": "cpu", "threads": 1, "memory": 0}],
            "files": [], "values": values, "inputs": [{"name": "x", "value": 0}],
            "outputs": [{"name": "y", "value": output}], "constants": [], "prepare": [], "stages": [], "steps": steps,
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
        let (mut ordered, mut shared, mut apart) = (0, 0, 0);
        for _ in 0..200 {
            let bundle = random_bundle(&mut numbers);
            let dependencies = bundle.dependencies();
            let plans = [None, Some(0)].map(|available| MemoryPlan::new(&bundle, &dependencies, &[available]));
            let between = u64::midpoint(plans[0].bytes[0], plans[1].bytes[0]);
            let plans = plans.into_iter().chain([MemoryPlan::new(&bundle, &dependencies, &[Some(between)])]);
            let plans: Vec<MemoryPlan> = plans.collect();
            assert!(plans[2].bytes[0] <= plans[0].bytes[0]);
            for plan in &plans {
                let waits = dependencies.iter().zip(&plan.after).map(|(own, after)| [&own[..], after].concat());
                let waits: Vec<Vec<usize>> = waits.collect();
                (0..20).for_each(|_| run(&bundle, plan, &waits, &mut numbers));
            }
            assert!(plans[0].after.iter().all(Vec::is_empty));
            shared += plans[0].bytes[0];
            ordered += plans[1].bytes[0];
            apart += bundle.values.iter().map(|value| value.tensor.bytes.next_multiple_of(ALIGNMENT)).sum::<u64>();
        }
        assert!(shared * 4 < apart * 3, "{shared} of {apart}");
        assert!(ordered * 10 < shared * 9, "{ordered} of {shared}");
    }

    #[test]
    fn groups_wait_for_the_memory_of_earlier_ones() {
        // Five groups of two steps each; the second has the output of the last group only.
        let mut values = vec![json!({"name": "x", "device": 0, "tensor": {"type": "uint8", "shape": [8], "bytes": 8}})];
        let mut steps = Vec::new();
        for group in 0..5 {
            for (input, bytes) in [(0, 640), (1 + 2 * group, 64)] {
                let output = values.len();
                values.push(json!({"name": output.to_string(), "device": 0, "tensor": {"type": "uint8", "shape": [bytes], "bytes": bytes}}));
                steps.push(json!({"launch": {"stage": 0, "inputs": [input], "outputs": [output]}}));
            }
        }
        let bundle = bundle_of(&values, &steps, 10);
        let dependencies = bundle.dependencies();
        let of_dependences = MemoryPlan::new(&bundle, &dependencies, &[Some(4096)]);
        assert_eq!(of_dependences.bytes, [5 * (640 + 64) + 64]);
        // Memory for one group: the first step of a group overwrites the value that the second one of the group before has read.
        let of_order = MemoryPlan::new(&bundle, &dependencies, &[Some(640 + 2 * 64)]);
        assert_eq!(of_order.bytes, [640 + 2 * 64]);
        assert_eq!(of_order.after[2], [0, 1]);
        // Memory for two groups: the third one waits for the first one, and the fourth one for the second one.
        let of_two = MemoryPlan::new(&bundle, &dependencies, &[Some(64 + 2 * (640 + 64))]);
        assert_eq!((of_two.bytes[0], of_two.after[2].len()), (64 + 2 * (640 + 64), 0));
        assert_eq!((&of_two.after[4], &of_two.after[6]), (&vec![0, 1], &vec![2, 3]));
    }
}
