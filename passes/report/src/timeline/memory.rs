//! What each device holds while a schedule runs.

use divi_planner::problem::{MemoryModel, Problem};
use divi_planner::units::Bytes;
use rustc_hash::FxHashMap;

use super::lives::{Life, most, profile};
use super::{Launch, Memory, Transfer};

/// What sums of times differ by when they are added up in another order.
const ROUNDING: f64 = 1e-9;

/// A device's memory. A result lives from its launch's start until it has been read and moved; its copy elsewhere from
/// when it starts to move until it has been read; scratch while its launch runs; weights all the time.
pub(super) fn of(problem: &Problem, launches: &[Launch], transfers: &[Transfer]) -> Vec<Memory> {
    let mut memory: Vec<Memory> =
        problem.devices.iter().map(|device| Memory { capacity: device.memory, ..Memory::default() }).collect();
    let mut lives: Vec<Vec<Life>> = problem.devices.iter().map(|_| Vec::new()).collect();
    // A task runs at most once on a device.
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
    // By tensor and device.
    let mut results: FxHashMap<(usize, usize), usize> = FxHashMap::default();
    for (index, tensor) in tensors.iter().enumerate() {
        for producer in &of_task[tensor.from] {
            let device = producer.device;
            let readers = tensor.to.iter().filter_map(|to| at.get(&(*to, device))).filter(|to| shares(producer, to));
            let until = readers.map(|reader| reader.end).fold(producer.end, f64::max);
            results.insert((index, device), lives[device].len());
            let bytes = tensor.bytes * producer.inputs.len() as f64;
            lives[device].push(Life { bytes, from: producer.start, until });
        }
    }
    for transfer in transfers {
        // Weights are counted where their task runs, however they get there.
        let Some(index) = transfer.tensor else { continue };
        if let Some(result) = results.get(&(index, transfer.from)) {
            let result = &mut lives[transfer.from][*result];
            result.until = result.until.max(transfer.end);
        }
        let producer = at[&(transfer.task, transfer.from)];
        let readers = tensors[index].to.iter().filter_map(|to| at.get(&(*to, transfer.to)));
        let last = readers.filter(|reader| shares(producer, reader)).map(|reader| reader.end);
        let until = last.fold(transfer.start, f64::max);
        lives[transfer.to].push(Life { bytes: transfer.bytes, from: transfer.start, until });
    }
    let end = launches.iter().map(|launch| launch.end).fold(0.0, f64::max);
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

/// Eq. (6): weights of each task that runs there, operands and results of each input that does.
pub(super) fn everything(problem: &Problem, launches: &[Launch]) -> Vec<Bytes> {
    let output = problem.output_bytes();
    let mut held = vec![0.0; problem.devices.len()];
    for launch in launches {
        let node = &problem.nodes[launch.task];
        held[launch.device] += node.weight + (node.input + output[launch.task]) * launch.inputs.len() as f64;
    }
    held
}
