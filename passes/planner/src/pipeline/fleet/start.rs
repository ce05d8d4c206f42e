//! Pipelines to start from.

use super::{Fleet, Pipe};
use crate::error::Error;
use crate::units::Micros;

impl Fleet {
    /// The best of all on one device, and of the tasks dealt out in order to the devices in order, from each device on and
    /// with the first one at the end again.
    pub(super) fn start(&self) -> Result<Pipe, Error> {
        let mut best: Option<(Micros, Pipe)> = None;
        let mut add = |pipe: Option<Pipe>| {
            let Some(pipe) = pipe else { return };
            let value = self.value(&pipe);
            if value.is_finite() && best.as_ref().is_none_or(|(known, _)| value < *known) {
                best = Some((value, pipe));
            }
        };
        for first in 0..self.devices {
            // All in the first block, with the others' devices ready.
            let ready = self.around(first);
            add(Some(Pipe { block: vec![0; self.tasks()], device: ready.clone() }));
            add(self.dealt(ready));
            add(self.dealt((0..self.k).map(|block| (first + block) % self.devices).collect()));
        }
        add(self.as_needed());
        let none = || {
            let message = "no pipeline was found to start from: tasks that only some devices run, links or memory stand in \
                           the way";
            Error::NotFound(format!("{message} of {} stages; more of them may help", self.k))
        };
        best.map(|(_, pipe)| pipe).ok_or_else(none)
    }

    /// A device, the others, and where there is room, the device again.
    fn around(&self, first: usize) -> Vec<usize> {
        let mut devices: Vec<usize> = (0..self.k).map(|block| (first + block) % self.devices).collect();
        if let Some(last) = devices.last_mut().filter(|_| self.k > 2) {
            *last = first;
        }
        devices
    }

    /// Tasks in order, each in the first block from its share of the work on that can take it.
    fn dealt(&self, device: Vec<usize>) -> Option<Pipe> {
        let quickest = |task: usize| self.times(task).iter().copied().fold(f64::INFINITY, f64::min);
        let total: Micros = (0..self.tasks()).map(quickest).sum();
        let mut block: Vec<u32> = Vec::with_capacity(self.tasks());
        let mut done = 0.0;
        for task in 0..self.tasks() {
            let low = self.before[task].iter().map(|before| block[*before as usize]).max().unwrap_or(0) as usize;
            let share = if total > 0.0 { (done / total * self.k as f64) as usize } else { 0 };
            let from = share.clamp(low, self.k - 1);
            let takes = |of: &usize| self.times(task)[device[*of]].is_finite();
            let of = (from..self.k).find(takes).or_else(|| (low..from).rev().find(takes))?;
            block.push(of as u32);
            done += quickest(task);
        }
        Some(Pipe { block, device })
    }

    /// Tasks in order, each in the first block that can take it; a new block where none can.
    fn as_needed(&self) -> Option<Pipe> {
        let (mut block, mut device): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
        for task in 0..self.tasks() {
            let low = self.before[task].iter().map(|before| block[*before as usize]).max().unwrap_or(0) as usize;
            let takes = |of: &usize| self.times(task)[device[*of]].is_finite();
            let of = match (low..device.len()).find(takes) {
                Some(of) => of,
                None => {
                    device
                        .push((0..self.devices).min_by(|a, b| self.times(task)[*a].total_cmp(&self.times(task)[*b]))?);
                    device.len() - 1
                }
            };
            block.push(of as u32);
        }
        if device.len() > self.k {
            return None;
        }
        device.extend((device.len()..self.k).map(|block| block % self.devices));
        Some(Pipe { block, device })
    }
}
