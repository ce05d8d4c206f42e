//! Simulates choices: jobs in order, each as early as the preceding jobs allow.
//!
//! A device runs its launches in order. A bus serves requests in the order of jobs: each gets the first gap that is
//! long enough or, where bandwidth is shared, all free time from then on. So a later job never delays an earlier one.

use super::choice::{Choice, Job};
use super::lane::Lane;
use super::model::{Link, Model, Route};
use crate::model::problem::Contention;
use crate::model::units::{Bytes, Micros};

/// Arrival time of something that has not been sent.
const UNSENT: Micros = Micros(f64::NAN);

/// Transfer of a tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) tensor: usize,
    pub(crate) producer: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) start: Micros,
    pub(crate) end: Micros,
}

/// One hop of a parameter copy, from the host or from an intermediate device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) launch: usize,
    pub(crate) via: Option<usize>,
    pub(crate) to: usize,
    pub(crate) start: Micros,
    pub(crate) end: Micros,
}

#[derive(Clone)]
pub(crate) struct Simulator<'a> {
    model: &'a Model<'a>,
    lanes: Vec<Lane>,
    /// By device: the time from which on it is idle.
    free: Vec<Micros>,
    pub(crate) start: Vec<Micros>,
    pub(crate) end: Vec<Micros>,
    /// By tensor route: arrival time; NaN if not sent.
    arrival: Vec<Micros>,
    /// By launch: arrival time of its parameters; NaN if not sent.
    landing: Vec<Micros>,
    pub(crate) moves: Vec<Move>,
    pub(crate) hops: Vec<Hop>,
    /// Makespan so far.
    pub(crate) value: Micros,
    /// Scratch space, remote operands of one launch: finish time of the producer, tensor, producer.
    reads: Vec<(Micros, usize, usize)>,
}

/// Checkpoint of a simulation.
#[derive(Clone)]
pub(crate) struct Mark {
    lanes: Vec<Lane>,
    free: Vec<Micros>,
    moves: usize,
    hops: usize,
    value: Micros,
}

impl<'a> Simulator<'a> {
    pub(crate) fn new(model: &'a Model<'a>) -> Self {
        let launches = model.launches.len();
        Self {
            model,
            lanes: vec![Lane::default(); model.buses],
            free: vec![Micros::ZERO; model.devices],
            start: vec![Micros::ZERO; launches],
            end: vec![Micros::ZERO; launches],
            arrival: vec![UNSENT; model.tensor_routes()],
            landing: vec![UNSENT; launches],
            moves: Vec::new(),
            hops: Vec::new(),
            value: Micros::ZERO,
            reads: Vec::new(),
        }
    }

    /// Simulates a complete choice.
    pub(crate) fn of(model: &'a Model<'a>, choice: &Choice) -> Self {
        let mut simulator = Self::new(model);
        simulator.run(choice, &choice.order);
        simulator
    }

    pub(crate) fn mark(&self) -> Mark {
        let (lanes, free) = (self.lanes.clone(), self.free.clone());
        Mark { lanes, free, moves: self.moves.len(), hops: self.hops.len(), value: self.value }
    }

    /// Restores a checkpoint.
    pub(crate) fn rewind(&mut self, mark: &Mark) {
        for moved in self.moves.drain(mark.moves..) {
            self.arrival[self.model.tensor_route(moved.tensor, moved.producer, moved.to)] = UNSENT;
        }
        for hop in self.hops.drain(mark.hops..) {
            self.landing[hop.launch] = UNSENT;
        }
        self.lanes.clone_from(&mark.lanes);
        self.free.clone_from(&mark.free);
        self.value = mark.value;
    }

    /// Returns the time from which on a device is idle.
    pub(crate) fn free(&self, device: usize) -> Micros {
        self.free[device]
    }

    /// Returns the time from which on a bus is idle.
    pub(crate) fn bus_end(&self, bus: usize) -> Micros {
        self.lanes[bus].end()
    }

    /// Simulates jobs and returns the makespan so far; infinite if something is not possible.
    pub(crate) fn run(&mut self, choice: &Choice, jobs: &[Job]) -> Micros {
        for job in jobs {
            match *job {
                Job::Fetch(launch) => {
                    let launch = launch as usize;
                    self.fetch(launch, usize::from(choice.device[launch]), choice.route[launch]);
                }
                Job::Run(launch) => self.launch(choice, launch as usize),
            }
            if self.value.is_infinite() {
                break;
            }
        }
        self.value
    }

    /// Starts the copy of a launch's parameters.
    fn fetch(&mut self, launch: usize, device: usize, route: Route) {
        let Some(cold) = self.model.cold.as_ref().filter(|_| self.model.needs_parameters(launch, device)) else {
            return;
        };
        if !self.landing[launch].0.is_nan() {
            return;
        }
        let bytes = self.model.weight(launch);
        self.landing[launch] = match route {
            Route::Direct => return,
            Route::Copy => self.hop(launch, cold.host, None, device, Micros::ZERO, bytes),
            Route::Via(via) => {
                let via = usize::from(via);
                let is_there = cold.resident[self.model.launches[launch].task] == Some(via);
                let landed =
                    if is_there { Micros::ZERO } else { self.hop(launch, cold.host, None, via, Micros::ZERO, bytes) };
                self.hop(launch, via, Some(via), device, landed, bytes)
            }
        };
    }

    fn hop(
        &mut self,
        launch: usize,
        from: usize,
        via: Option<usize>,
        to: usize,
        ready: Micros,
        bytes: Bytes,
    ) -> Micros {
        let (start, end) = self.carry(self.model.link(from, to), ready, bytes);
        self.hops.push(Hop { launch, via, to, start, end });
        end
    }

    /// Runs a launch once its operands have arrived.
    fn launch(&mut self, choice: &Choice, launch: usize) {
        let model = self.model;
        let device = usize::from(choice.device[launch]);
        let mut ready = Micros::ZERO;
        let needs = model.needs_parameters(launch, device);
        let is_direct = needs && choice.route[launch] == Route::Direct;
        if needs && !is_direct {
            self.fetch(launch, device, choice.route[launch]);
            ready = self.landing[launch];
        }
        let mut reads = std::mem::take(&mut self.reads);
        reads.clear();
        for arc in model.predecessors(launch) {
            for &producer in &model.of_task[arc.task] {
                if !model.share_inputs(producer, launch) {
                    continue;
                }
                if usize::from(choice.device[producer]) == device {
                    ready = ready.max(self.end[producer]);
                } else {
                    reads.push((self.end[producer], arc.tensor, producer));
                }
            }
        }
        // Transfers are requested in the order in which operands are produced.
        reads.sort_by(|a, b| a.0.total_cmp(&b.0));
        for &(_, tensor, producer) in &reads {
            ready = ready.max(self.send(choice, tensor, producer, device));
        }
        self.reads = reads;
        let from = ready.max(self.free[device]);
        let (start, end) = if is_direct {
            self.read_directly(launch, device, from)
        } else {
            (from, from + model.time(launch, device))
        };
        (self.start[launch], self.end[launch], self.free[device]) = (start, end, end);
        self.value = self.value.max(end);
        for &tensor in &model.made_by[model.launches[launch].task] {
            if choice.eager[tensor] {
                self.send_ahead(choice, tensor, launch);
            }
        }
    }

    /// A launch that reads its parameters from the host's memory occupies the bus while it runs; on a shared bus, only
    /// for the time that the bytes take.
    fn read_directly(&mut self, launch: usize, device: usize, ready: Micros) -> (Micros, Micros) {
        let time = self.model.direct_time(launch, device);
        let host = self.model.cold.as_ref().map_or(0, |cold| cold.host);
        let link = self.model.link(host, device);
        let Some(bus) = link.bus.filter(|_| time.is_finite()) else { return (ready, ready + time) };
        let lane = &mut self.lanes[bus];
        if self.model.contention == Contention::Shared {
            let flow = (self.model.weight(launch) * link.slowness).min(time);
            let flow_start = lane.gap(ready, flow);
            lane.take(flow_start, flow_start + flow);
            let start = ready.max(flow_start + flow - time);
            return (start, start + time);
        }
        let start = lane.gap(ready, time);
        lane.take(start, start + time);
        (start, start + time)
    }

    /// Starts the transfer of a tensor to a device unless it is under way; returns its arrival time.
    fn send(&mut self, choice: &Choice, tensor: usize, producer: usize, to: usize) -> Micros {
        let route = self.model.tensor_route(tensor, producer, to);
        if !self.arrival[route].0.is_nan() {
            return self.arrival[route];
        }
        let from = usize::from(choice.device[producer]);
        let bytes = self.model.moved(tensor, producer, to, &choice.device);
        let (start, end) = self.carry(self.model.link(from, to), self.end[producer], bytes);
        self.arrival[route] = end;
        self.moves.push(Move { tensor, producer, from, to, start, end });
        end
    }

    /// Sends a tensor to all devices that will read it.
    fn send_ahead(&mut self, choice: &Choice, tensor: usize, producer: usize) {
        let model = self.model;
        let home = choice.device[producer];
        for task in &model.instance.tensors()[tensor].consumers {
            for &reader in &model.of_task[*task] {
                if choice.device[reader] != home && model.share_inputs(producer, reader) {
                    self.send(choice, tensor, producer, usize::from(choice.device[reader]));
                }
            }
        }
    }

    /// Returns start and end of a transfer that can start at `ready`.
    fn carry(&mut self, link: Link, ready: Micros, bytes: Bytes) -> (Micros, Micros) {
        if link.slowness.is_infinite() {
            self.value = Micros::INFINITY;
            return (ready, Micros::INFINITY);
        }
        let flow = bytes * link.slowness;
        let Some(bus) = link.bus else { return (ready, ready + flow + link.latency) };
        let lane = &mut self.lanes[bus];
        if self.model.contention == Contention::Shared {
            return (ready, lane.fill(ready + link.latency, flow));
        }
        let start = lane.gap(ready, flow + link.latency);
        lane.take(start, start + flow + link.latency);
        (start, start + flow + link.latency)
    }
}
