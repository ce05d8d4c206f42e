//! Start solutions.

use super::proof::Proof;
use super::slice::Slicer;
use super::{Fleet, Pipe};
use crate::mip::Limits;
use crate::model::error::{Error, Finding};
use crate::model::options::Options;
use crate::model::plan::Bound;
use crate::model::units::{Bytes, Micros};
use crate::random::Random;
use crate::solvers::incumbent::Incumbent;
use crate::solvers::pipeline::order::{by_keys, random_keys};
use crate::solvers::pipeline::slice::blocks;

/// Maximum number of sequences of devices, and of steps for all of them.
const SEQUENCES: usize = 120;
const STEPS: usize = 40_000_000;
/// Number of orders tried with the best sequence.
const ORDERS: usize = 20;
/// Name of the algorithm that slices orders.
pub(super) const ORDERED: &str = "slicegraph";

impl Fleet {
    /// Returns the best of everything on one device and of orders sliced among devices; `None` if links or memory
    /// exclude all of them.
    pub(super) fn start(&self, seed: u64) -> Option<Pipe> {
        let mut best = Incumbent::new(Bound::none());
        for device in 0..self.devices {
            self.offer(self.pipe(vec![0; self.working], vec![device]), &mut best);
        }
        let mut random = Random::new(seed);
        let mut slicer = Slicer::new(self);
        let natural: Vec<u32> = (0..self.working as u32).collect();
        slicer.lay(&natural);
        let steps = self.working * self.working * self.k;
        let mut good = None;
        for sequence in self.sequences((STEPS / steps.max(1)).clamp(1, SEQUENCES), &mut random) {
            let most = best.value();
            if self.cut(&slicer, &natural, &sequence, most, &mut best) {
                good = Some(sequence);
            }
        }
        // Without a sliced pipeline, devices are taken by index.
        let sequence = good.unwrap_or_else(|| (0..self.k.min(self.devices)).collect());
        let model = self.at_best();
        for _ in 0..ORDERS.min(STEPS / steps.max(1)) {
            let order = by_keys(&model, &random_keys(&model, &mut random));
            slicer.lay(&order);
            let most = best.value();
            self.cut(&slicer, &order, &sequence, most, &mut best);
        }
        if let Some(pipe) = self.as_needed().filter(|_| best.solution().is_none()) {
            self.offer(pipe, &mut best);
        }
        best.into_parts().0
    }

    /// Updates the incumbent; returns true if the pipeline is better.
    pub(super) fn offer(&self, pipe: Pipe, best: &mut Incumbent<Pipe>) -> bool {
        best.take(self.value(&pipe), pipe, ORDERED)
    }

    /// Returns some pipeline found by the integer program, or an error, which is a proof if the program is infeasible.
    pub(super) fn any(&self, limits: &Limits, options: &Options) -> Result<Pipe, Error> {
        let way = "tasks that only some devices run, links or memory stand in the way";
        let advice = if self.shared { "a higher --k" } else { "--allow-shared-devices and a higher --k" };
        let none = || Error::NotFound(format!("no pipeline of {} stages was found: {way}; {advice} may help", self.k));
        if !self.is_provable(1.0) {
            return Err(none());
        }
        // Upper bound: everything on every device and link.
        let finite = |times: &mut dyn Iterator<Item = Micros>| times.filter(|time| time.is_finite()).sum::<Micros>();
        let ways = |tensor: &super::Tensor| {
            let all = (0..self.devices).flat_map(|device| self.ways(device));
            finite(&mut all.map(|(from, to)| self.move_time(tensor.bytes, from, to)))
        };
        let most = finite(&mut self.time.iter().copied()) + self.tensors.iter().map(ways).sum::<Micros>() + Micros(1.0);
        let found = Proof::new(self).go_on(self, most, Micros::ZERO, limits, &options.observer)?;
        match found.better {
            Some((_, pipe)) => Ok(pipe),
            None if found.is_none => {
                let message = format!("there is no pipeline of {} stages: {way}; {advice} may help", self.k);
                Err(Error::Infeasible(vec![Finding::new("pipeline", message)]))
            }
            None => Err(none()),
        }
    }

    /// Slices an order among devices with all costs below `most`; returns true if the result is better than the
    /// incumbent.
    pub(super) fn cut(
        &self,
        slicer: &Slicer<'_>,
        order: &[u32],
        sequence: &[usize],
        most: Micros,
        best: &mut Incumbent<Pipe>,
    ) -> bool {
        let Some(ends) = slicer.slice(sequence, most) else { return false };
        self.offer(self.pipe(blocks(order, &ends), sequence.to_vec()), best)
    }

    /// Builds a pipeline whose first stages are on the given devices; further stages get the remaining devices, and
    /// ports are placed next to a neighbor.
    pub(super) fn pipe(&self, stage: Vec<u32>, mut device: Vec<usize>) -> Pipe {
        if self.shared {
            device.extend((device.len()..self.k).map(|stage| stage % self.devices));
        } else {
            let left: Vec<usize> = (0..self.devices).filter(|other| !device.contains(other)).collect();
            device.extend(left);
        }
        let mut pipe = Pipe { stage, device, port: Vec::new() };
        for port in self.working..self.tasks() {
            let runs = |device: &usize| self.times(port)[*device].is_finite();
            let made = self.makes[port].iter().flat_map(|tensor| &self.tensors[*tensor as usize].readers);
            let read = self.reads[port].iter().map(|tensor| &self.tensors[*tensor as usize].producer);
            let near = made.chain(read).find(|task| !self.is_port(**task as usize));
            let colocated = self.colocated[port].iter().find(|other| (**other as usize) < port);
            let place = colocated.or(near).map(|task| pipe.device_of(*task as usize)).filter(runs);
            pipe.port.push(place.or_else(|| (0..self.devices).find(runs)).unwrap_or(0));
        }
        pipe
    }

    /// First fit: places each task in the first stage that can run it; opens a new stage if none can.
    fn as_needed(&self) -> Option<Pipe> {
        let (mut stage, mut device): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut held = vec![Bytes::ZERO; self.devices];
        for task in 0..self.working {
            let low = self.before[task].iter().map(|before| stage[*before as usize]).max().unwrap_or(0) as usize;
            let time = |on: usize| self.times(task)[on];
            let takes = |on: usize| time(on).is_finite() && held[on] + self.held(task, on) <= self.capacity[on];
            let of = match (low..device.len()).find(|stage| takes(device[*stage])) {
                Some(of) => of,
                None => {
                    let free = (0..self.devices).filter(|on| takes(*on) && (self.shared || !device.contains(on)));
                    device.push(free.min_by(|a, b| time(*a).total_cmp(&time(*b)))?);
                    device.len() - 1
                }
            };
            held[device[of]] += self.held(task, device[of]);
            stage.push(of as u32);
        }
        (device.len() <= self.k).then(|| self.pipe(stage, device))
    }
}
