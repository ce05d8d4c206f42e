//! Pipelines whose stages take batches or whose devices take turns, in the time of one input.

use std::collections::{BTreeMap, BTreeSet};

use divi_planner::Error;
use divi_planner::problem::{Problem, Tensor};
use divi_planner::units::{Bytes, Micros};

use super::{Blocks, touched};
use crate::timeline::steady::{Links, Moved, View, gcd};
use crate::timeline::{StageCost, moving, no_link, wrong};

/// Maximum number of inputs after which the turns of two stages repeat.
const MOST_INPUTS: usize = 1 << 22;

/// Batch size and devices of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn<'a> {
    size: usize,
    devices: &'a [usize],
}

impl Turn<'_> {
    /// Number of inputs of a turn of all devices.
    fn inputs(self) -> usize {
        self.size * self.devices.len()
    }

    fn device_of(self, input: usize) -> usize {
        self.devices[input / self.size % self.devices.len()]
    }
}

/// Blocks on the problem's devices. Times and bytes are shares of those of a batch.
pub(super) fn on_devices(
    problem: &Problem,
    blocks: &Blocks<'_>,
    batch: &[u32],
    devices: &[Vec<usize>],
    cost: StageCost,
) -> Result<View, Error> {
    let turns = turns(problem, blocks, batch, devices)?;
    let turn = |node: usize| turns[blocks.of_node[node]];
    let nodes = problem.nodes.len();
    let mut work = Vec::with_capacity(nodes);
    for node in 0..nodes {
        let Turn { size, devices } = turn(node);
        let on = devices[0];
        let times = u32::try_from(size).ok().and_then(|size| problem.nodes[node].time.get(&size));
        let Some(time) = times.and_then(|times| times[on]) else {
            let message = format!("is on {}, which does not support it for {size} inputs", problem.device_label(on));
            return Err(wrong(problem.node_label(node), message));
        };
        work.push(time / turn(node).inputs() as f64);
    }
    let mut stages = vec![Vec::new(); problem.devices.len()];
    for (number, of) in blocks.stages(problem).into_iter().enumerate() {
        devices[of].iter().for_each(|device| stages[*device].push(number));
    }
    let mut moved = Vec::new();
    for (index, tensor) in problem.all_tensors().iter().enumerate() {
        moved.extend(transfers(problem, index, tensor, turn)?);
    }
    let place = |node: usize| (turn(node).devices.to_vec(), turn(node).size as u32);
    Ok(View {
        names: problem.devices.iter().map(|device| device.name.clone()).collect(),
        place: (0..nodes).map(|node| place(node).0).collect(),
        work,
        order: blocks.order.clone(),
        links: Links::shared(moved),
        stages,
        memory: touched(problem, (0..nodes).map(place)),
        cost,
        ..View::default()
    })
}

/// Returns the turns of all blocks, or an error for lists that do not match the problem.
fn turns<'a>(
    problem: &Problem,
    blocks: &Blocks<'_>,
    batch: &[u32],
    devices: &'a [Vec<usize>],
) -> Result<Vec<Turn<'a>>, Error> {
    let count = blocks.place.len();
    for (key, entries) in [("batch", batch.len()), ("block_devices", devices.len())] {
        if entries != count {
            return Err(wrong(key, format!("has {entries} entries, but there are {count} blocks")));
        }
    }
    let is_wrong =
        |devices: &Vec<usize>| devices.is_empty() || devices.iter().any(|device| *device >= problem.devices.len());
    if let Some(of) = devices.iter().position(is_wrong) {
        return Err(wrong("block_devices", format!("block {of} has no device, or an unknown one")));
    }
    if let Some(of) = batch.iter().position(|size| *size == 0) {
        return Err(wrong("batch", format!("block {of} takes no inputs; at least 1")));
    }
    Ok(batch.iter().zip(devices).map(|(size, devices)| Turn { size: *size as usize, devices }).collect())
}

/// Returns the transfers of a tensor from each device that computes it, with the mean bytes and times of an input. As many
/// inputs move at a time as divide the batch sizes of both sides.
fn transfers<'a>(
    problem: &Problem,
    index: usize,
    tensor: &Tensor,
    turn: impl Fn(usize) -> Turn<'a>,
) -> Result<Vec<Moved>, Error> {
    let home = turn(tensor.from);
    // Blocks on one device share a transfer, whatever their batch sizes are.
    let mut readers: BTreeMap<Turn<'_>, BTreeSet<usize>> = BTreeMap::new();
    for reader in tensor.to.iter().map(|to| turn(*to)) {
        let key = if reader.devices.len() == 1 { Turn { size: 1, ..reader } } else { reader };
        readers.entry(key).or_default().insert(reader.size);
    }
    let mut moved: BTreeMap<usize, Moved> = BTreeMap::new();
    for (reader, sizes) in readers {
        let together = sizes.into_iter().fold(home.size, gcd);
        let inputs = home.inputs() / gcd(home.inputs(), reader.inputs()) * reader.inputs();
        if inputs > MOST_INPUTS {
            return Err(wrong("batch", "the turns of two blocks repeat only after millions of inputs"));
        }
        let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for input in 0..inputs {
            *counts.entry((home.device_of(input), reader.device_of(input))).or_default() += 1;
        }
        let mut sent: BTreeMap<usize, (Bytes, Micros)> = BTreeMap::new();
        for ((from, to), count) in counts.into_iter().filter(|((from, to), _)| from != to) {
            let share = count as f64 / inputs as f64;
            let takes = moving(problem, from, to, tensor.bytes * together as f64);
            let takes = takes.ok_or_else(|| no_link(problem, tensor.from, from, to))? / together as f64 * share;
            let bytes = tensor.bytes * share;
            let sender = sent.entry(from).or_default();
            *sender = (sender.0 + bytes, sender.1 + takes);
            let none = Moved { tensor: index, task: tensor.from, from, to: vec![], sent: Default::default() };
            moved.entry(from).or_insert(none).to.push((to, bytes, takes));
        }
        for (from, (bytes, takes)) in sent {
            if let Some(Moved { sent, .. }) = moved.get_mut(&from).filter(|moved| takes > moved.sent.1) {
                *sent = (bytes, takes);
            }
        }
    }
    moved.values_mut().for_each(|moved| moved.to.sort_by_key(|(to, ..)| *to));
    Ok(moved.into_values().collect())
}
