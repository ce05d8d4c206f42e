//! Pipelines to start from.

use std::ops::Range;

use super::{Fleet, Pipe};
use crate::error::Error;
use crate::units::Micros;

impl Fleet {
    /// The best of all on one device, and of the tasks dealt out in order to the fastest devices, as many as are good for
    /// it, alone or with another one before and behind them.
    pub(super) fn start(&self) -> Result<Pipe, Error> {
        let mut best: Option<(Micros, Pipe)> = None;
        let mut add = |pipe: Option<Pipe>| {
            let Some(pipe) = pipe else { return };
            let value = self.value(&pipe);
            if value.is_finite() && best.as_ref().is_none_or(|(known, _)| value < *known) {
                best = Some((value, pipe));
            }
        };
        let fastest = self.fastest();
        for first in 0..self.devices {
            add(Some(Pipe { block: vec![0; self.tasks()], device: self.filled(vec![first]) }));
            let others: Vec<usize> = fastest.iter().copied().filter(|device| *device != first).collect();
            for count in 1..self.k.saturating_sub(1).min(others.len() + 1) {
                let around: Vec<usize> =
                    [first].into_iter().chain(others[..count].iter().copied()).chain([first]).collect();
                add(self.dealt(self.filled(around), 1..count + 1));
            }
        }
        for count in 1..=self.devices.min(self.k) {
            add(self.dealt(self.filled(fastest[..count].to_vec()), 0..count));
        }
        add(self.as_needed());
        let none = || {
            let message = "no pipeline was found to start from: tasks that only some devices run, links or memory stand in \
                           the way";
            Error::NotFound(format!("{message} of {} stages; more of them may help", self.k))
        };
        best.map(|(_, pipe)| pipe).ok_or_else(none)
    }

    /// Devices by how many tasks they cannot run, and how long the others take.
    fn fastest(&self) -> Vec<usize> {
        let figures = |device: usize| {
            let times = || (0..self.tasks()).map(move |task| self.times(task)[device]);
            let total: Micros = times().filter(|time| time.is_finite()).sum();
            (times().filter(|time| time.is_infinite()).count(), total)
        };
        let mut devices: Vec<usize> = (0..self.devices).collect();
        devices.sort_by(|a, b| {
            let (a, b) = (figures(*a), figures(*b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        devices
    }

    /// Devices for all blocks, of which the first are these.
    fn filled(&self, mut devices: Vec<usize>) -> Vec<usize> {
        devices.extend((devices.len()..self.k).map(|block| block % self.devices));
        devices
    }

    /// Tasks in order over some of the blocks, each where its share of the work is, or before that, or behind it, where it
    /// can run.
    fn dealt(&self, device: Vec<usize>, blocks: Range<usize>) -> Option<Pipe> {
        let quickest = |task: usize| self.times(task).iter().copied().fold(f64::INFINITY, f64::min);
        let total: Micros = (0..self.tasks()).map(quickest).sum();
        let mut block: Vec<u32> = Vec::with_capacity(self.tasks());
        let mut done = 0.0;
        for task in 0..self.tasks() {
            let low = self.before[task].iter().map(|before| block[*before as usize]).max().unwrap_or(0) as usize;
            let share = if total > 0.0 { (done / total * blocks.len() as f64) as usize } else { 0 };
            let from = (blocks.start + share).min(blocks.end - 1).max(low);
            let takes = |of: &usize| self.times(task)[device[*of]].is_finite();
            let of = (low..=from).rev().find(takes).or_else(|| (from + 1..self.k).find(takes))?;
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
