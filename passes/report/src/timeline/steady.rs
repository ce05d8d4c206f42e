//! Steady state of a pipeline; each stage starts at zero with receiving, then computes, then sends.

use divi_planner::Error;
use divi_planner::problem::{Problem, Tensor};
use divi_planner::units::{Bytes, Micros};

use super::transfers::sort;
use super::{Handover, Launch, LinkUse, Memory, StageCost, Timeline, Transfer, Way, count, idle, rows};

/// Relative error of sums of times in different orders.
const ROUNDING: f64 = 1e-9;

/// A pipeline in the common form of all kinds.
pub(super) struct View {
    pub(super) names: Vec<String>,
    /// Devices of each node; several if they take turns.
    pub(super) place: Vec<Vec<usize>>,
    /// Time of each node on each of its devices, for one input.
    pub(super) work: Vec<Micros>,
    /// All nodes, in the execution order of their devices.
    pub(super) order: Vec<usize>,
    pub(super) links: Links,
    /// Devices are homogeneous: there are no links, and transfers count as time of the stages.
    pub(super) equal: bool,
    /// Overflow of each device's memory and its time; empty if everything must fit.
    pub(super) spill: Vec<(Bytes, Micros)>,
    /// Stages of each device.
    pub(super) stages: Vec<Vec<usize>>,
    pub(super) memory: Vec<Memory>,
    pub(super) cost: StageCost,
}

/// Tensors transferred between devices.
#[derive(Default)]
pub(super) struct Links(Vec<Moved>);

pub(super) struct Moved {
    pub(super) tensor: usize,
    pub(super) task: usize,
    pub(super) from: usize,
    /// Consuming devices, sorted, with the bytes and the time of the transfer to each.
    pub(super) to: Vec<(usize, Bytes, Micros)>,
    /// Bytes and time that the sender is busy for.
    pub(super) sent: (Bytes, Micros),
}

impl Links {
    /// Takes the transfers of tensors whose stages have several devices.
    pub(super) fn shared(moved: Vec<Moved>) -> Self {
        Self(moved)
    }

    /// Collects the transferred tensors; `tensors` are pairs of number and tensor.
    pub(super) fn between<'a>(
        tensors: impl Iterator<Item = (usize, &'a Tensor)>,
        place: &[usize],
        takes: impl Fn(&Tensor, usize, usize) -> Result<Micros, Error>,
    ) -> Result<Self, Error> {
        let mut moved = Vec::new();
        for (index, tensor) in tensors {
            let from = place[tensor.from];
            let mut to: Vec<usize> = tensor.to.iter().map(|to| place[*to]).filter(|to| *to != from).collect();
            to.sort_unstable();
            to.dedup();
            let to: Vec<(usize, Bytes, Micros)> = to
                .into_iter()
                .map(|to| Ok((to, tensor.bytes, takes(tensor, from, to)?)))
                .collect::<Result<_, Error>>()?;
            if !to.is_empty() {
                let longest = to.iter().map(|(_, _, takes)| *takes).fold(Micros::ZERO, Micros::max);
                moved.push(Moved { tensor: index, task: tensor.from, from, to, sent: (tensor.bytes, longest) });
            }
        }
        Ok(Self(moved))
    }
}

impl Default for View {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            place: Vec::new(),
            work: Vec::new(),
            order: Vec::new(),
            links: Links::default(),
            equal: false,
            spill: Vec::new(),
            stages: Vec::new(),
            memory: Vec::new(),
            cost: StageCost::Serial,
        }
    }
}

/// Next free time of each device: the first row has computation, the second has overlapping transfers.
struct Lanes {
    free: [Vec<Micros>; 2],
    handovers: Vec<Handover>,
}

impl Lanes {
    fn take(&mut self, device: usize, row: usize, takes: Micros) -> (Micros, Micros) {
        let free = &mut self.free[row][device];
        let start = *free;
        *free += takes;
        (start, *free)
    }

    fn hand_over(&mut self, way: Way, moved: (usize, Bytes), device: usize, row: usize, takes: Micros) {
        let (task, bytes) = moved;
        let (start, end) = self.take(device, row, takes);
        self.handovers.push(Handover { way, task, device, row, bytes, start, end });
    }
}

impl View {
    pub(super) fn timeline(self, problem: &Problem) -> Timeline {
        let devices = self.names.len();
        let mut lanes =
            Lanes { free: [vec![Micros::ZERO; devices], vec![Micros::ZERO; devices]], handovers: Vec::new() };
        // With the overlap cost and separate links, transfers take no device time.
        let own = self.cost == StageCost::Serial || self.equal;
        let row = usize::from(self.cost == StageCost::Overlap);
        if own {
            for moved in &self.links.0 {
                for (to, bytes, takes) in &moved.to {
                    lanes.hand_over(Way::In, (moved.task, *bytes), *to, row, *takes);
                }
            }
        }
        let mut transfers = self.transfers(devices, &lanes.handovers);
        let mut launches = Vec::with_capacity(self.order.len());
        // Each device of a node has the same number of inputs, and each node the same number on all of its devices.
        let counts = self.place.iter().map(Vec::len).filter(|count| *count > 0);
        let inputs = counts.fold(1, |all, count| all / gcd(all, count) * count);
        for &task in &self.order {
            let turns = self.place[task].len();
            for (turn, &device) in self.place[task].iter().enumerate() {
                let (start, end) = lanes.take(device, 0, self.work[task]);
                let inputs = (turn as u32..inputs as u32).step_by(turns).collect();
                launches.push(Launch { task, device, inputs, start, end });
            }
        }
        for (device, (bytes, takes)) in self.spill.iter().enumerate().filter(|(_, spill)| spill.0 > Bytes::ZERO) {
            let last = self.order.iter().rfind(|task| self.place[**task].contains(&device));
            lanes.hand_over(Way::Spill, (last.copied().unwrap_or(0), *bytes), device, 0, *takes);
        }
        if own {
            for moved in &self.links.0 {
                let (bytes, takes) = moved.sent;
                lanes.hand_over(Way::Out, (moved.task, bytes), moved.from, row, takes);
            }
        }
        let pairs = self.pair_times(devices);
        let links = if self.equal { Vec::new() } else { rows::links(problem, &mut transfers) };
        self.finish(problem, lanes, launches, transfers, links, &pairs)
    }

    /// Transfers of a pair of devices run in sequence; between homogeneous devices a transfer runs when its receiver reads it.
    fn transfers(&self, devices: usize, handovers: &[Handover]) -> Vec<Transfer> {
        let mut free = vec![Micros::ZERO; devices * devices];
        let mut taken_in = handovers.iter();
        let mut transfers = Vec::new();
        for moved in &self.links.0 {
            for &(to, bytes, takes) in &moved.to {
                let from = moved.from;
                let (start, end) = match taken_in.next().filter(|_| self.equal) {
                    Some(handover) => (handover.start, handover.end),
                    None => {
                        let start = free[from * devices + to];
                        free[from * devices + to] += takes;
                        (start, start + takes)
                    }
                };
                let (tensor, task) = (Some(moved.tensor), moved.task);
                transfers.push(Transfer {
                    tensor,
                    task,
                    launch: None,
                    from,
                    to,
                    link: None,
                    row: 0,
                    inputs: vec![0],
                    bytes,
                    start,
                    end,
                });
            }
        }
        sort(&mut transfers);
        transfers
    }

    /// Returns the total transfer time of each pair of devices.
    fn pair_times(&self, devices: usize) -> Vec<Micros> {
        let mut times = vec![Micros::ZERO; devices * devices];
        for moved in &self.links.0 {
            moved.to.iter().for_each(|(to, _, takes)| times[moved.from * devices + to] += *takes);
        }
        times
    }

    fn finish(
        self,
        problem: &Problem,
        mut lanes: Lanes,
        mut launches: Vec<Launch>,
        transfers: Vec<Transfer>,
        mut links: Vec<LinkUse>,
        pairs: &[Micros],
    ) -> Timeline {
        let devices = self.names.len();
        let lasts = |device: usize| lanes.free[0][device].max(lanes.free[1][device]);
        let ends = (0..devices).map(lasts).chain(transfers.iter().map(|transfer| transfer.end));
        let end = ends.fold(Micros::ZERO, Micros::max);
        let overlaps = self.cost == StageCost::Overlap && !self.equal;
        let mut worst = (0..devices).map(lasts).fold(Micros::ZERO, Micros::max);
        if overlaps {
            worst = pairs.iter().copied().fold(worst, Micros::max);
        }
        let is_worst = |takes: Micros| takes > Micros::ZERO && takes >= worst * (1.0 - ROUNDING);
        let mut uses: Vec<_> = self.names.iter().map(|name| idle(name)).collect();
        count(problem, &launches, &mut uses);
        for (index, (device, (memory, stages))) in
            uses.iter_mut().zip(self.memory.into_iter().zip(self.stages)).enumerate()
        {
            (device.memory, device.stages) = (memory, stages);
            device.busy = lanes.free[0][index];
            device.idle = (end - device.busy).max(Micros::ZERO);
            device.bottleneck = is_worst(lasts(index));
            device.rows = 1 + usize::from(lanes.free[1][index] > Micros::ZERO);
        }
        for transfer in
            transfers.iter().filter(|transfer| overlaps && is_worst(pairs[transfer.from * devices + transfer.to]))
        {
            if let Some(link) = transfer.link {
                links[link].bottleneck = true;
            }
        }
        lanes.handovers.sort_by(|a, b| (a.device, a.row).cmp(&(b.device, b.row)).then(a.start.total_cmp(&b.start)));
        launches.sort_by(|a, b| a.start.total_cmp(&b.start).then((a.device, a.task).cmp(&(b.device, b.task))));
        Timeline { devices: uses, links, launches, transfers, handovers: lanes.handovers, end, cost: Some(self.cost) }
    }
}

/// Returns the greatest common divisor of two positive numbers.
pub(super) fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
