//! Pipeline on different devices: the stage of each task, and the device of each stage.

use super::Fleet;

/// Stage numbers are topological: values never go to a lower one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pipe {
    /// By task that is not a port.
    pub(super) stage: Vec<u32>,
    /// By stage; then, if devices are not shared, the unused devices.
    pub(super) device: Vec<usize>,
    /// By port.
    pub(super) port: Vec<usize>,
}

/// Blocks of a pipeline in the form of plans.
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

    /// Returns the device of each task.
    pub(super) fn devices(&self) -> Vec<usize> {
        (0..self.stage.len() + self.port.len()).map(|task| self.device_of(task)).collect()
    }

    /// Returns the blocks: non-empty stages, with ports added to them where that creates no cycle, else in separate
    /// blocks before or behind all stages.
    pub(super) fn blocks(&self, fleet: &Fleet) -> Blocks {
        const BEFORE: i64 = -1;
        let behind = fleet.k as i64;
        let used: Vec<i64> = (0..behind).filter(|stage| self.stage.contains(&(*stage as u32))).collect();
        let mut place: Vec<i64> = self.stage.iter().map(|stage| i64::from(*stage)).collect();
        place.resize(fleet.tasks(), BEFORE);
        // Sources first: their positions constrain those of sinks.
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
    /// Returns the pipeline that runs each task on its device; `None` if that takes too many stages.
    pub(super) fn pipe_on(&self, on: &[usize]) -> Option<Pipe> {
        let in_order = self.device_order(on).map(|device| {
            let stage = |on: &usize| device.iter().position(|device| device == on).unwrap_or(0) as u32;
            (on[..self.working].iter().map(stage).collect(), device)
        });
        let (stage, device) = in_order.or_else(|| self.shared.then(|| self.greedy_stages(on)))?;
        if device.len() > self.k {
            return None;
        }
        Some(Pipe { port: on[self.working..].to_vec(), ..self.pipe(stage, device) })
    }

    /// Forms stages greedily: each on the device that can run most of the remaining tasks.
    fn greedy_stages(&self, on: &[usize]) -> (Vec<u32>, Vec<usize>) {
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
            // Tasks are in topological order, so the first remaining one is free.
            let Some(((_, next), on)) = all.max_by_key(|((count, _), device)| (*count, usize::MAX - device)) else {
                break;
            };
            stage = next;
            device.push(on);
        }
        (stage, device)
    }

    /// Returns the used devices in topological order; `None` if they depend on each other cyclically.
    fn device_order(&self, on: &[usize]) -> Option<Vec<usize>> {
        let mut left: Vec<usize> = (0..self.devices).filter(|device| on[..self.working].contains(device)).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let depends = |device: usize, on_one: usize| {
                let tasks = (0..self.working).filter(|task| on[*task] == device);
                tasks.flat_map(|task| &self.before[task]).any(|before| on[*before as usize] == on_one)
            };
            let is_next = |device: &usize| left.iter().all(|other| other == device || !depends(*device, *other));
            let next = left.iter().copied().find(|device| is_next(device))?;
            left.retain(|device| *device != next);
            order.push(next);
        }
        Some(order)
    }
}
