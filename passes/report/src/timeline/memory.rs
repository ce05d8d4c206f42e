//! Memory usage of each device during a schedule.

use divi_planner::problem::{MemoryModel, Problem};
use divi_planner::units::{Bytes, Micros};
use rustc_hash::FxHashMap;

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
    // A task has at most one launch per device.
    let at: FxHashMap<(usize, usize), &Launch> =
        launches.iter().map(|launch| ((launch.task, launch.device), launch)).collect();
    let mut of_task: Vec<Vec<&Launch>> = vec![Vec::new(); problem.nodes.len()];
    for launch in launches {
        of_task[launch.task].push(launch);
        let node = &problem.nodes[launch.task];
        memory[launch.device].weights += node.weight;
        let bytes = node.scratch * launch.inputs.len() as f64;
        lives[launch.device].push(Life { bytes, from: launch.start, until: launch.end });
    }
    let shares = |a: &Launch, b: &Launch| a.inputs.iter().any(|input| b.inputs.binary_search(input).is_ok());
    let tensors = problem.all_tensors();
    // Index of the live range of each tensor and device.
    let mut results: FxHashMap<(usize, usize), usize> = FxHashMap::default();
    for (index, tensor) in tensors.iter().enumerate() {
        for producer in &of_task[tensor.from] {
            let device = producer.device;
            let readers = tensor.to.iter().filter_map(|to| at.get(&(*to, device))).filter(|to| shares(producer, to));
            let until = readers.map(|reader| reader.end).fold(producer.end, Micros::max);
            results.insert((index, device), lives[device].len());
            let bytes = tensor.bytes * producer.inputs.len() as f64;
            lives[device].push(Life { bytes, from: producer.start, until });
        }
    }
    for transfer in transfers {
        // Weights count where their task runs, regardless of copies.
        let Some(index) = transfer.tensor else { continue };
        if let Some(result) = results.get(&(index, transfer.from)) {
            let result = &mut lives[transfer.from][*result];
            result.until = result.until.max(transfer.end);
        }
        let producer = at[&(transfer.task, transfer.from)];
        let readers = tensors[index].to.iter().filter_map(|to| at.get(&(*to, transfer.to)));
        let last = readers.filter(|reader| shares(producer, reader)).map(|reader| reader.end);
        let until = last.fold(transfer.start, Micros::max);
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

/// DiviML eq. (6): weights of each task on a device, plus operands and results for each of its inputs.
pub(super) fn everything(problem: &Problem, launches: &[Launch]) -> Vec<Bytes> {
    let output = problem.output_bytes();
    let mut held = vec![Bytes::ZERO; problem.devices.len()];
    for launch in launches {
        let node = &problem.nodes[launch.task];
        held[launch.device] += node.weight + (node.input + output[launch.task]) * launch.inputs.len() as f64;
    }
    held
}
