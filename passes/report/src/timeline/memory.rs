//! Memory usage of each device during a schedule.

use divi_planner::problem::{MemoryModel, Problem};
use divi_planner::units::{Bytes, Micros};
use rustc_hash::{FxHashMap, FxHashSet};

use super::launches::ByInput;
use super::lives::{Life, most, profile};
use super::{Launch, Memory, Transfer};

/// Relative error of sums of times in different orders.
const ROUNDING: f64 = 1e-9;

/// Returns the memory usage of each device. A result is live from the start of its launch until its last use and transfer;
/// a transferred copy from the start of the transfer until its last use; scratch while its launch runs; weights always.
pub(super) fn of(problem: &Problem, launches: &[Launch], transfers: &[Transfer]) -> Vec<Memory> {
    let mut memory: Vec<Memory> =
        problem.devices.iter().map(|device| Memory { capacity: device.memory, ..Memory::default() }).collect();
    let mut lives: Vec<Vec<Life>> = problem.devices.iter().map(|_| Vec::new()).collect();
    let mut of_task: Vec<Vec<usize>> = vec![Vec::new(); problem.nodes.len()];
    // Weights are on a device once, however often their task is launched there.
    let mut has_weights = FxHashSet::default();
    for (index, launch) in launches.iter().enumerate() {
        of_task[launch.task].push(index);
        let node = &problem.nodes[launch.task];
        if has_weights.insert((launch.task, launch.device)) {
            memory[launch.device].weights += node.weight;
        }
        let bytes = node.scratch * launch.inputs.len() as f64;
        lives[launch.device].push(Life { bytes, from: launch.start, until: launch.end });
    }
    let by_input = ByInput::new(problem, launches);
    let tensors = problem.all_tensors();
    let last_read = |tensor: usize, inputs: &[u32], device: usize| {
        let readers = tensors[tensor].to.iter().flat_map(|to| by_input.of(*to, inputs));
        let here = readers.filter(|(_, reader)| reader.device == device);
        here.map(|(_, reader)| reader.end).fold(Micros::ZERO, Micros::max)
    };
    // Index of the live range of each tensor and launch.
    let mut results: FxHashMap<(usize, usize), usize> = FxHashMap::default();
    for (index, tensor) in tensors.iter().enumerate() {
        for &launch in &of_task[tensor.from] {
            let producer = &launches[launch];
            let device = producer.device;
            let until = producer.end.max(last_read(index, &producer.inputs, device));
            results.insert((index, launch), lives[device].len());
            let bytes = tensor.bytes * producer.inputs.len() as f64;
            lives[device].push(Life { bytes, from: producer.start, until });
        }
    }
    for transfer in transfers {
        // Weights count where their task runs, regardless of copies.
        let (Some(index), Some(launch)) = (transfer.tensor, transfer.launch) else { continue };
        if let Some(result) = results.get(&(index, launch)) {
            let result = &mut lives[transfer.from][*result];
            result.until = result.until.max(transfer.end);
        }
        let until = transfer.start.max(last_read(index, &transfer.inputs, transfer.to));
        lives[transfer.to].push(Life { bytes: transfer.bytes, from: transfer.start, until });
    }
    let end = launches.iter().map(|launch| launch.end).fold(Micros::ZERO, Micros::max);
    let everything = everything(problem, launches);
    for ((memory, lives), everything) in memory.iter_mut().zip(&lives).zip(everything) {
        let weights = memory.weights;
        memory.profile = profile(lives, ROUNDING * end).into_iter().map(|(at, held)| (at, weights + held)).collect();
        memory.peak = most(&memory.profile);
        memory.counted = match problem.memory_model {
            MemoryModel::Static => everything,
            MemoryModel::Liveness => memory.peak,
        };
    }
    memory
}

/// DiviML eq. (6): weights of each task on a device, once, plus operands and results for each of its inputs.
pub(super) fn everything(problem: &Problem, launches: &[Launch]) -> Vec<Bytes> {
    let output = problem.output_bytes();
    let mut held = vec![Bytes::ZERO; problem.devices.len()];
    let mut has_weights = FxHashSet::default();
    for launch in launches {
        let node = &problem.nodes[launch.task];
        if has_weights.insert((launch.task, launch.device)) {
            held[launch.device] += node.weight;
        }
        held[launch.device] += (node.input + output[launch.task]) * launch.inputs.len() as f64;
    }
    held
}
