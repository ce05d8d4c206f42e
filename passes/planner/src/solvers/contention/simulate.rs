//! From choices to times: jobs one after the other, each as early as what came before it lets it be.
//!
//! A device runs its launches in their order. A bus is given to whoever asks first, in the first gap that is long enough;
//! where it is shared, whatever is free of it from then on. So whoever asks later never delays whoever asked before.

use super::choice::{Choice, Job};
use super::lane::Lane;
use super::model::{Link, Model, Way};
use crate::model::problem::Contention;
use crate::model::units::{Bytes, Micros};

/// A tensor on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) tensor: usize,
    pub(crate) producer: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) start: Micros,
    pub(crate) end: Micros,
}

/// Parameters on their way, from the host or from a device in between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
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
    /// By device, from when on it has nothing to do.
    free: Vec<Micros>,
    pub(crate) start: Vec<Micros>,
    pub(crate) end: Vec<Micros>,
    /// By way of a tensor, when it is there; not a number where it has not been sent.
    arrival: Vec<Micros>,
    /// By launch, when its parameters are there; not a number where they have not been sent.
    landing: Vec<Micros>,
    pub(crate) moves: Vec<Move>,
    pub(crate) legs: Vec<Leg>,
    /// The end of what has run.
    pub(crate) value: Micros,
    /// What one launch reads from elsewhere: when it was made, tensor, producer.
    reads: Vec<(Micros, usize, usize)>,
}

/// A moment to which a simulation can go back.
#[derive(Clone)]
pub(crate) struct Mark {
    lanes: Vec<Lane>,
    free: Vec<Micros>,
    moves: usize,
    legs: usize,
    value: Micros,
}

impl<'a> Simulator<'a> {
    pub(crate) fn new(model: &'a Model<'a>) -> Self {
        let launches = model.launches.len();
        Self {
            model,
            lanes: vec![Lane::default(); model.buses],
            free: vec![0.0; model.devices],
            start: vec![0.0; launches],
            end: vec![0.0; launches],
            arrival: vec![f64::NAN; model.ways_of_tensors()],
            landing: vec![f64::NAN; launches],
            moves: Vec::new(),
            legs: Vec::new(),
            value: 0.0,
            reads: Vec::new(),
        }
    }

    /// All of it.
    pub(crate) fn of(model: &'a Model<'a>, choice: &Choice) -> Self {
        let mut simulator = Self::new(model);
        simulator.run(choice, &choice.order);
        simulator
    }

    pub(crate) fn mark(&self) -> Mark {
        let (lanes, free) = (self.lanes.clone(), self.free.clone());
        Mark { lanes, free, moves: self.moves.len(), legs: self.legs.len(), value: self.value }
    }

    /// Forgets what has happened since.
    pub(crate) fn rewind(&mut self, mark: &Mark) {
        for moved in self.moves.drain(mark.moves..) {
            self.arrival[self.model.way_of_tensor(moved.tensor, moved.producer, moved.to)] = f64::NAN;
        }
        for leg in self.legs.drain(mark.legs..) {
            self.landing[leg.launch] = f64::NAN;
        }
        self.lanes.clone_from(&mark.lanes);
        self.free.clone_from(&mark.free);
        self.value = mark.value;
    }

    /// When a device is free, and a bus for good.
    pub(crate) fn free(&self, device: usize) -> Micros {
        self.free[device]
    }

    pub(crate) fn bus_end(&self, bus: usize) -> Micros {
        self.lanes[bus].end()
    }

    /// Does jobs one after the other; says when all that has run ends. Infinite where something is not possible.
    pub(crate) fn run(&mut self, choice: &Choice, jobs: &[Job]) -> Micros {
        for job in jobs {
            match *job {
                Job::Fetch(launch) => {
                    let launch = launch as usize;
                    self.fetch(launch, usize::from(choice.device[launch]), choice.way[launch]);
                }
                Job::Run(launch) => self.launch(choice, launch as usize),
            }
            if self.value.is_infinite() {
                break;
            }
        }
        self.value
    }

    /// Sends a launch's parameters on their way.
    fn fetch(&mut self, launch: usize, device: usize, way: Way) {
        let Some(cold) = self.model.cold.as_ref().filter(|_| self.model.needs_parameters(launch, device)) else {
            return;
        };
        if !self.landing[launch].is_nan() {
            return;
        }
        let bytes = self.model.weight(launch);
        self.landing[launch] = match way {
            Way::Direct => return,
            Way::Copy => self.leg(launch, cold.host, None, device, 0.0, bytes),
            Way::Via(via) => {
                let via = usize::from(via);
                let is_there = cold.resident[self.model.launches[launch].task] == Some(via);
                let landed = if is_there { 0.0 } else { self.leg(launch, cold.host, None, via, 0.0, bytes) };
                self.leg(launch, via, Some(via), device, landed, bytes)
            }
        };
    }

    fn leg(
        &mut self,
        launch: usize,
        from: usize,
        via: Option<usize>,
        to: usize,
        ready: Micros,
        bytes: Bytes,
    ) -> Micros {
        let (start, end) = self.carry(self.model.link(from, to), ready, bytes);
        self.legs.push(Leg { launch, via, to, start, end });
        end
    }

    /// A launch, when all that it reads is there.
    fn launch(&mut self, choice: &Choice, launch: usize) {
        let model = self.model;
        let device = usize::from(choice.device[launch]);
        let mut ready: Micros = 0.0;
        let needs = model.needs_parameters(launch, device);
        let is_direct = needs && choice.way[launch] == Way::Direct;
        if needs && !is_direct {
            self.fetch(launch, device, choice.way[launch]);
            ready = self.landing[launch];
        }
        let mut reads = std::mem::take(&mut self.reads);
        reads.clear();
        for arc in model.predecessors(launch) {
            for &producer in &model.of_task[arc.task] {
                if !model.meet(producer, launch) {
                    continue;
                }
                if usize::from(choice.device[producer]) == device {
                    ready = ready.max(self.end[producer]);
                } else {
                    reads.push((self.end[producer], arc.tensor, producer));
                }
            }
        }
        // Of what has to come, first what is there first.
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

    /// A launch that reads its parameters in the host's memory has the bus while it runs; where it is shared, as much of it
    /// as they take.
    fn read_directly(&mut self, launch: usize, device: usize, ready: Micros) -> (Micros, Micros) {
        let time = self.model.direct_time(launch, device);
        let host = self.model.cold.as_ref().map_or(0, |cold| cold.host);
        let link = self.model.link(host, device);
        let Some(bus) = link.bus.filter(|_| time.is_finite()) else { return (ready, ready + time) };
        let lane = &mut self.lanes[bus];
        if self.model.contention == Contention::Shared {
            let flow = (self.model.weight(launch) * link.slowness).min(time);
            let flows = lane.gap(ready, flow);
            lane.take(flows, flows + flow);
            let start = ready.max(flows + flow - time);
            return (start, start + time);
        }
        let start = lane.gap(ready, time);
        lane.take(start, start + time);
        (start, start + time)
    }

    /// Sends a tensor to a device, if it is not on its way; says when it is there.
    fn send(&mut self, choice: &Choice, tensor: usize, producer: usize, to: usize) -> Micros {
        let way = self.model.way_of_tensor(tensor, producer, to);
        if !self.arrival[way].is_nan() {
            return self.arrival[way];
        }
        let from = usize::from(choice.device[producer]);
        let bytes = self.model.moved(tensor, producer, to, &choice.device);
        let (start, end) = self.carry(self.model.link(from, to), self.end[producer], bytes);
        self.arrival[way] = end;
        self.moves.push(Move { tensor, producer, from, to, start, end });
        end
    }

    /// Sends a tensor to all who will read it.
    fn send_ahead(&mut self, choice: &Choice, tensor: usize, producer: usize) {
        let model = self.model;
        let home = choice.device[producer];
        for task in &model.instance.tensors()[tensor].consumers {
            for &reader in &model.of_task[*task] {
                if choice.device[reader] != home && model.meet(producer, reader) {
                    self.send(choice, tensor, producer, usize::from(choice.device[reader]));
                }
            }
        }
    }

    /// Start and end of a transfer that can start at a time.
    fn carry(&mut self, link: Link, ready: Micros, bytes: Bytes) -> (Micros, Micros) {
        if link.slowness.is_infinite() {
            self.value = f64::INFINITY;
            return (ready, f64::INFINITY);
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
