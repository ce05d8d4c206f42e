//! Slicing of an order among devices in a given sequence.
//!
//! If devices and links differ, the cost of a stage depends on the destinations of its tensors, which are unknown
//! during slicing: each device is evaluated as if the others were reached over its best link, and ports as if they were
//! alone. So the result is a start, whose exact cost is evaluated afterwards.

use super::Fleet;
use crate::model::units::{Bytes, Micros};
use crate::solvers::pipeline::line::Line;
use crate::solvers::pipeline::model::Model;

/// Limit on steps: with more tasks, not every position is tried as an end.
const MOST_STEPS: usize = 60_000_000;

/// Buffers for slicing orders of one fleet.
pub(super) struct Slicer<'a> {
    fleet: &'a Fleet,
    /// Model in which all devices equal a given one, and an order laid out in it; by device.
    models: Vec<Model>,
    lines: Vec<Line>,
    order: Vec<u32>,
    /// Stages begin and end at multiples of this.
    stride: usize,
}

impl<'a> Slicer<'a> {
    pub(super) fn new(fleet: &'a Fleet) -> Self {
        let models: Vec<Model> = (0..fleet.devices).map(|device| fleet.as_seen_by(device)).collect();
        let stride = (fleet.working * fleet.working * fleet.k).div_ceil(MOST_STEPS).max(1);
        Self { fleet, models, lines: vec![Line::default(); fleet.devices], order: Vec::new(), stride }
    }

    /// Sets the order of all tasks except ports.
    pub(super) fn lay(&mut self, order: &[u32]) {
        self.lines.iter_mut().zip(&self.models).for_each(|(line, model)| line.lay(model, order));
        self.order = order.to_vec();
    }

    /// Returns the ends of stages with all costs below `most`, if possible. Stages may be empty.
    pub(super) fn slice(&self, sequence: &[usize], most: Micros) -> Option<Vec<usize>> {
        let tasks = self.order.len();
        let mut best = vec![Micros::INFINITY; tasks + 1];
        best[0] = Micros::ZERO;
        let mut begins: Vec<Vec<usize>> = Vec::with_capacity(sequence.len());
        for &device in sequence {
            // A stage may be empty.
            let (mut next, mut begin) = (best.clone(), (0..=tasks).collect::<Vec<usize>>());
            for from in (0..tasks).step_by(self.stride).filter(|from| best[*from] < most) {
                self.extend(device, from, best[from], most, &mut next, &mut begin);
            }
            best = next;
            begins.push(begin);
        }
        if best[tasks] >= most {
            return None;
        }
        let mut ends = vec![tasks];
        for begin in begins[1..].iter().rev() {
            ends.push(begin[ends[ends.len() - 1]]);
        }
        ends.reverse();
        Some(ends)
    }

    /// Evaluates every stage of a device that begins here.
    fn extend(
        &self,
        device: usize,
        from: usize,
        before: Micros,
        most: Micros,
        next: &mut [Micros],
        begin: &mut [usize],
    ) {
        let (model, line) = (&self.models[device], &self.lines[device]);
        let mut block = line.block(from);
        let mut held = Bytes::ZERO;
        for to in from + 1..=line.len() {
            block.grow();
            held += self.fleet.held(self.order[to - 1] as usize, device);
            let growing = model.block_cost(block.work, Micros::ZERO, block.entering);
            // Unsupported tasks have infinite time.
            if growing >= most || held > self.fleet.capacity[device] {
                break;
            }
            let cost = model.block_cost(block.work, Micros::ZERO, block.entering + block.leaving).max(before);
            if cost < next[to] && (to.is_multiple_of(self.stride) || to == line.len()) {
                next[to] = cost;
                begin[to] = from;
            }
        }
    }
}

impl Fleet {
    /// Returns the model in which all devices equal this one.
    fn as_seen_by(&self, device: usize) -> Model {
        let way = |bytes: Bytes| {
            let times = self.ways(device).map(|(from, to)| self.move_time(bytes, from, to) * self.scaling.part[device]);
            let best = times.filter(|time| time.is_finite()).fold(Micros::INFINITY, Micros::min);
            if best.is_finite() { best } else { Micros::ZERO }
        };
        let work = |task: usize| {
            let tensors =
                self.makes[task].iter().chain(&self.reads[task]).map(|tensor| &self.tensors[*tensor as usize]);
            self.times(task)[device] + tensors.map(|tensor| self.port_time(tensor, task, device)).sum::<Micros>()
        };
        self.on_equals(work, way)
    }

    /// Returns the time to move a port's tensor to or from a device.
    fn port_time(&self, tensor: &super::Tensor, task: usize, device: usize) -> Micros {
        let place = |port: usize| self.times(port).iter().position(|time| time.is_finite()).unwrap_or(device);
        let is_there = |port: usize| self.times(port)[device].is_finite();
        let way = |from: usize, to: usize| {
            let time = self.move_time(tensor.bytes, from, to) * self.scaling.part[device];
            Some(time).filter(|time| time.is_finite())
        };
        let (maker, ports) = (tensor.producer as usize, tensor.readers.iter().map(|reader| *reader as usize));
        if self.is_port(maker) {
            // Charged once, to its first reader.
            let comes = tensor.readers.first() == Some(&(task as u32)) && !is_there(maker);
            return if comes { way(place(maker), device).unwrap_or_default() } else { Micros::ZERO };
        }
        let goes = ports.filter(|reader| maker == task && self.is_port(*reader) && !is_there(*reader));
        goes.map(|port| way(device, place(port)).unwrap_or_default()).fold(Micros::ZERO, Micros::max)
    }
}
