//! Stages of a pipeline: launches of blocks on their devices, and transfers between them.
//!
//! A request has as many inputs as repeat the batches of all blocks and the turns of their devices. With cost `overlap`, transfers
//! occupy links; with `serial`, they occupy the devices that send and receive. Buses with contention serve one transfer at a time.

use super::Builder;
use divi_planner::{Error, PipelineCost, Plan, units::Micros};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of steps of a request.
const MOST_STEPS: u64 = 1 << 20;

/// Blocks with their batch sizes and devices.
pub(super) struct Blocks<'a> {
    /// Block of each node.
    pub(super) of: &'a [usize],
    pub(super) batch: &'a [u32],
    /// Devices of each block, which take turns.
    pub(super) devices: &'a [Vec<usize>],
}

impl Blocks<'_> {
    /// Returns the number of the launch of a block for an input.
    fn launch(&self, block: usize, input: u64) -> u64 {
        input / u64::from(self.batch[block])
    }

    /// Returns the device of a block for an input.
    fn device(&self, block: usize, input: u64) -> usize {
        let devices = &self.devices[block];
        devices[(self.launch(block, input) % devices.len() as u64) as usize]
    }

    /// Returns the number of inputs after which all batches and turns repeat, unless it is too large.
    fn repetition(&self) -> Option<u64> {
        let mut all = 1_u64;
        for (batch, devices) in self.batch.iter().zip(self.devices) {
            let own = u64::from(*batch).checked_mul(devices.len() as u64)?;
            all = (all / gcd(all, own)).checked_mul(own)?;
        }
        Some(all)
    }
}

/// Blocks that read a tensor and receive it together.
struct Readers {
    blocks: BTreeSet<usize>,
    /// Inputs that move at a time.
    together: u64,
}

/// Adds the steps of a request. Returns the number of stages: blocks that take time.
pub(super) fn build(builder: &mut Builder<'_>, plan: &Plan, blocks: &Blocks<'_>) -> Result<usize, Error> {
    let problem = builder.problem;
    let is_serial = plan.pipeline_cost.as_deref() != Some(PipelineCost::Overlap.name());
    let tensors = problem.all_tensors();
    let inputs = blocks
        .repetition()
        .filter(|inputs| inputs.saturating_mul((blocks.batch.len() + tensors.len()) as u64) <= MOST_STEPS);
    let inputs = inputs.ok_or_else(|| {
        Error::Unsupported("batches and turns of the stages repeat only after too many inputs to simulate".to_owned())
    })?;
    builder.inputs = inputs;
    let mut steps: Vec<Vec<usize>> = vec![];
    let mut stages = 0;
    for (block, &batch) in blocks.batch.iter().enumerate() {
        let nodes: Vec<usize> = (0..problem.nodes.len()).filter(|node| blocks.of[*node] == block).collect();
        let launch = |input: u64| {
            let device = blocks.device(block, input);
            let time = |node: &usize| problem.nodes[*node].time.get(&batch).and_then(|times| times[device]);
            (device, nodes.iter().filter_map(time).fold(Micros::ZERO, |sum, time| sum + time))
        };
        let launches: Vec<(usize, Micros)> = (0..inputs).step_by(batch as usize).map(launch).collect();
        stages += usize::from(launches.iter().any(|(_, time)| *time > Micros::ZERO));
        // The model's inputs and outputs take no time, and no device has to be free for them.
        let add = |(device, time): (usize, Micros)| builder.add((time > Micros::ZERO).then_some(device), time, vec![]);
        steps.push(launches.into_iter().map(add).collect());
    }
    for tensor in &tensors {
        let home = blocks.of[tensor.from];
        let groups = destinations(blocks, home, &tensor.to);
        let mut sent = vec![Micros::ZERO; steps[home].len()];
        let mut transfers = vec![];
        for group in groups {
            let mut of_launch = vec![Micros::ZERO; steps[home].len()];
            for input in (0..inputs).step_by(group.together as usize) {
                let Some(&first) = group.blocks.first() else { continue };
                let (from, to) = (blocks.device(home, input), blocks.device(first, input));
                let producer = blocks.launch(home, input) as usize;
                let readers: Vec<usize> =
                    group.blocks.iter().map(|&block| steps[block][blocks.launch(block, input) as usize]).collect();
                if from == to {
                    readers.iter().for_each(|&reader| builder.steps[reader].predecessors.push(steps[home][producer]));
                    continue;
                }
                let time = builder.duration(from, to, tensor.bytes * group.together as f64);
                of_launch[producer] += time;
                transfers.push(Move { producer, from, to, time, readers });
            }
            sent.iter_mut().zip(of_launch).for_each(|(longest, time)| *longest = longest.max(time));
        }
        add_transfers(builder, &steps[home], &sent, transfers, is_serial);
    }
    for step in &mut builder.steps {
        step.predecessors.sort_unstable();
        step.predecessors.dedup();
    }
    Ok(stages)
}

/// Transfer of some inputs of a tensor.
struct Move {
    /// Number of the launch that computes it.
    producer: usize,
    from: usize,
    to: usize,
    time: Micros,
    /// Steps that read it.
    readers: Vec<usize>,
}

/// Adds the transfers of a tensor. `sent` is the time for which the sender of each launch is occupied by its longest transfers.
fn add_transfers(builder: &mut Builder<'_>, home: &[usize], sent: &[Micros], transfers: Vec<Move>, is_serial: bool) {
    let mut sends: BTreeMap<usize, usize> = BTreeMap::new();
    for Move { producer, from, to, time, readers } in transfers {
        let bus = builder.bus(from, to);
        let mut ends = vec![];
        if is_serial {
            let mut send = || builder.add(Some(from), sent[producer], vec![home[producer]]);
            let before = *sends.entry(producer).or_insert_with(&mut send);
            ends.push(builder.add(Some(to), time, vec![before]));
            ends.extend(bus.map(|bus| builder.add(Some(bus), time, vec![before])));
        } else {
            let resource = bus.unwrap_or_else(|| builder.link(from, to));
            ends.push(builder.add(Some(resource), time, vec![home[producer]]));
        }
        ends.iter().for_each(|&end| builder.steps[end].link = Some((from, to)));
        readers.iter().for_each(|&reader| builder.steps[reader].predecessors.extend(&ends));
    }
}

/// Returns the groups of blocks that receive a tensor together: those on the same single device, or with the same devices and batch
/// size.
fn destinations(blocks: &Blocks<'_>, home: usize, readers: &[usize]) -> Vec<Readers> {
    let mut groups: BTreeMap<(&[usize], Option<u32>), BTreeSet<usize>> = BTreeMap::new();
    for block in readers.iter().map(|reader| blocks.of[*reader]).filter(|block| *block != home) {
        let devices = &blocks.devices[block][..];
        let batch = (devices.len() > 1).then_some(blocks.batch[block]);
        groups.entry((devices, batch)).or_default().insert(block);
    }
    let group = |of: BTreeSet<usize>| {
        let sizes = of.iter().map(|block| u64::from(blocks.batch[*block]));
        Readers { together: sizes.fold(blocks.batch[home].into(), gcd), blocks: of }
    };
    groups.into_values().map(group).collect()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
