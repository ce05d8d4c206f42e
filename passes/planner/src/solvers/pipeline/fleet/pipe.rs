//! One pipeline of a fleet: who is in which stage, and which device that is.

use super::Fleet;

/// Values never go to a stage with a lower number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipe {
    /// By task that is no port.
    pub(super) stage: Vec<u32>,
    /// By stage, and then, where no device is shared, those without one.
    pub(super) device: Vec<usize>,
    /// By port.
    pub(super) port: Vec<usize>,
}

/// A pipeline's blocks, as plans have them.
pub(super) struct Blocks {
    /// By node.
    pub(super) block: Vec<usize>,
    pub(super) device: Vec<usize>,
}

impl Pipe {
    pub(super) fn device_of(&self, task: usize) -> usize {
        match self.stage.get(task) {
            Some(stage) => self.device[*stage as usize],
            None => self.port[task - self.stage.len()],
        }
    }

    /// The device of each task.
    pub(super) fn devices(&self) -> Vec<usize> {
        (0..self.stage.len() + self.port.len()).map(|task| self.device_of(task)).collect()
    }

    /// Stages that have tasks, and ports with one of them where that makes no circle, else in blocks of their own: before all
    /// stages, or behind them.
    pub(super) fn blocks(&self, fleet: &Fleet) -> Blocks {
        const BEFORE: i64 = -1;
        let behind = fleet.k as i64;
        let used: Vec<i64> = (0..behind).filter(|stage| self.stage.contains(&(*stage as u32))).collect();
        let mut place: Vec<i64> = self.stage.iter().map(|stage| i64::from(*stage)).collect();
        place.resize(fleet.tasks(), BEFORE);
        // Those that are read first: where they are says where others can be.
        let (sources, sinks): (Vec<usize>, Vec<usize>) =
            (fleet.working..fleet.tasks()).partition(|port| !fleet.makes[*port].is_empty());
        for port in sources {
            let readers = fleet.makes[port].iter().flat_map(|tensor| &fleet.tensors[*tensor as usize].readers);
            let stages =
                readers.filter(|reader| !fleet.is_port(**reader as usize)).map(|reader| place[*reader as usize]);
            let first = stages.min().unwrap_or(behind);
            let here = |stage: &i64| *stage <= first && self.device[*stage as usize] == self.device_of(port);
            place[port] = used.iter().copied().find(here).unwrap_or(BEFORE);
        }
        for port in sinks {
            let makers = fleet.reads[port].iter().map(|tensor| fleet.tensors[*tensor as usize].producer as usize);
            let last = makers.map(|maker| place[maker]).max().unwrap_or(BEFORE);
            let here = |stage: &i64| *stage >= last && self.device[*stage as usize] == self.device_of(port);
            place[port] = used.iter().copied().rev().find(here).unwrap_or(behind);
        }
        let all: Vec<(i64, usize)> = (0..fleet.tasks()).map(|task| (place[task], self.device_of(task))).collect();
        let mut blocks = all.clone();
        blocks.sort_unstable();
        blocks.dedup();
        let mut block = vec![0; fleet.nodes.iter().map(Vec::len).sum()];
        for (nodes, of) in fleet.nodes.iter().zip(all) {
            let number = blocks.binary_search(&of).unwrap_or_default();
            nodes.iter().for_each(|node| block[*node] = number);
        }
        Blocks { block, device: blocks.into_iter().map(|(_, device)| device).collect() }
    }
}

impl Fleet {
    /// The pipeline that has each task on its device; none where that takes more stages than there may be.
    pub(super) fn pipe_on(&self, on: &[usize]) -> Option<Pipe> {
        let in_turn = self.turns(on).map(|device| {
            let stage = |on: &usize| device.iter().position(|device| device == on).unwrap_or(0) as u32;
            (on[..self.working].iter().map(stage).collect(), device)
        });
        let (stage, device) = in_turn.or_else(|| self.shared.then(|| self.again_and_again(on)))?;
        if device.len() > self.k {
            return None;
        }
        Some(Pipe { port: on[self.working..].to_vec(), ..self.pipe(stage, device) })
    }

    /// Stage after stage, the device that can do most of what is left.
    fn again_and_again(&self, on: &[usize]) -> (Vec<u32>, Vec<usize>) {
        const OPEN: u32 = u32::MAX;
        let (mut stage, mut device): (Vec<u32>, Vec<usize>) = (vec![OPEN; self.working], Vec::new());
        while stage.contains(&OPEN) {
            let number = device.len() as u32;
            let done_by = |device: usize| {
                let (mut stage, mut count) = (stage.clone(), 0);
                for task in (0..self.working).filter(|task| on[*task] == device) {
                    let is_free = self.before[task].iter().all(|before| stage[*before as usize] != OPEN);
                    if stage[task] == OPEN && is_free {
                        stage[task] = number;
                        count += 1;
                    }
                }
                (count, stage)
            };
            let all = (0..self.devices).map(|device| (done_by(device), device));
            // Tasks are in an order in which the first that is left is free.
            let Some(((_, next), on)) = all.max_by_key(|((count, _), device)| (*count, usize::MAX - device)) else {
                break;
            };
            stage = next;
            device.push(on);
        }
        (stage, device)
    }

    /// The devices that have tasks, each behind those that it waits for; none where they wait for each other.
    fn turns(&self, on: &[usize]) -> Option<Vec<usize>> {
        let mut left: Vec<usize> = (0..self.devices).filter(|device| on[..self.working].contains(device)).collect();
        let mut turns = Vec::new();
        while !left.is_empty() {
            let waits = |device: usize, for_one: usize| {
                let tasks = (0..self.working).filter(|task| on[*task] == device);
                tasks.flat_map(|task| &self.before[task]).any(|before| on[*before as usize] == for_one)
            };
            let is_next = |device: &usize| left.iter().all(|other| other == device || !waits(*device, *other));
            let next = left.iter().copied().find(|device| is_next(device))?;
            left.retain(|device| *device != next);
            turns.push(next);
        }
        Some(turns)
    }
}
