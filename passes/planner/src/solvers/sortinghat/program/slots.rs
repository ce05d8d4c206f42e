//! A piece, the slots of its devices, and the state after the previous pieces.

use crate::model::units::{Bytes, Micros};
use crate::solvers::contention::{Choice, Job, Model, Simulator};

/// Section 3.4: a link of two devices only is rarely used in both directions at once.
const OWN_LINK: f64 = 1.5;

/// One turn of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// A device, and its index among those of the piece.
    pub(super) device: usize,
    pub(super) place: usize,
    /// Index of the turn on its device.
    pub(super) turn: usize,
}

impl Slot {
    /// Returns true if tasks in this slot read their parameters from the host's memory.
    pub(super) fn is_direct(self) -> bool {
        self.turn.is_multiple_of(2)
    }
}

pub(super) struct Slots {
    pub(super) launches: Vec<usize>,
    pub(super) devices: Vec<usize>,
    pub(super) each: usize,
    /// Slots of all devices, device by device.
    pub(super) all: Vec<Slot>,
    /// Edges inside the piece, as indices of launches.
    pub(super) edges: Vec<(usize, usize)>,
    /// By launch of the piece and slot: arrival of operands from before the piece.
    pub(super) arrival: Vec<Micros>,
    /// By launch: total bytes of its results.
    pub(super) made: Vec<Bytes>,
    /// Times at which devices and buses are free.
    pub(super) device_free: Vec<Micros>,
    pub(super) bus_free: Vec<Micros>,
    /// Free memory of each device.
    pub(super) room: Vec<Bytes>,
    /// Times are relative to this, in units of the scale.
    pub(super) origin: Micros,
    pub(super) scale: Micros,
    /// Upper bound on all times, in units of the scale.
    pub(super) horizon: f64,
}

impl Slots {
    /// Builds the slots; `None` if nothing takes any time.
    pub(super) fn new(
        model: &Model<'_>,
        choice: &Choice,
        from: usize,
        launches: &[usize],
        devices: Vec<usize>,
        each: usize,
    ) -> Option<Self> {
        let mut simulator = Simulator::new(model);
        simulator.run(choice, &choice.order[..from]);
        let mut room = model.capacity.clone();
        for job in &choice.order[..from] {
            if let Job::Run(launch) = *job {
                let task = model.launches[launch as usize].task;
                room[usize::from(choice.device[launch as usize])] -= model.instance.weight_bytes(task);
            }
        }
        let slot = |(place, device): (usize, &usize)| {
            let device = *device;
            (0..each).map(move |turn| Slot { device, place, turn })
        };
        let all: Vec<Slot> = devices.iter().enumerate().flat_map(slot).collect();
        let inside = |task: usize| launches.iter().position(|launch| model.launches[*launch].task == task);
        let (mut edges, mut arrival) = (Vec::new(), vec![Micros::ZERO; launches.len() * all.len()]);
        for (reader, launch) in launches.iter().enumerate() {
            for arc in model.predecessors(*launch) {
                if let Some(maker) = inside(arc.task) {
                    edges.push((maker, reader));
                    continue;
                }
                for &producer in &model.of_task[arc.task] {
                    let home = usize::from(choice.device[producer]);
                    for (index, slot) in all.iter().enumerate() {
                        let bytes = model.instance.tensors()[arc.tensor].bytes;
                        let comes = simulator.end[producer] + moving(model, home, slot.device, bytes);
                        let arrival = &mut arrival[reader * all.len() + index];
                        *arrival = arrival.max(comes);
                    }
                }
            }
        }
        edges.sort_unstable();
        edges.dedup();
        let made = |launch: &usize| {
            let tensors = model.made_by[model.launches[*launch].task].iter();
            tensors.map(|tensor| model.instance.tensors()[*tensor].bytes).sum()
        };
        let device_free: Vec<Micros> = (0..model.devices).map(|device| simulator.free(device)).collect();
        let bus_free: Vec<Micros> = (0..model.buses).map(|bus| simulator.bus_end(bus)).collect();
        let mut after = simulator;
        after.run(choice, &choice.order[from..]);
        let origin = devices.iter().map(|device| device_free[*device]).fold(Micros::INFINITY, Micros::min);
        let scale = after.value - origin;
        let mut this = Self {
            launches: launches.to_vec(),
            devices,
            each,
            all,
            edges,
            arrival,
            made: launches.iter().map(made).collect(),
            device_free,
            bus_free,
            room,
            origin,
            scale,
            horizon: 0.0,
        };
        this.horizon = this.latest(model);
        (scale > Micros::ZERO && this.horizon.is_finite()).then_some(this)
    }

    /// Returns an upper bound on all times: everything in sequence, at its slowest.
    fn latest(&self, model: &Model<'_>) -> f64 {
        let finite = |times: &mut dyn Iterator<Item = Micros>| {
            times.filter(|time| time.is_finite()).fold(Micros::ZERO, Micros::max)
        };
        let free = finite(&mut self.device_free.iter().chain(&self.bus_free).chain(&self.arrival).copied());
        let each = (0..self.launches.len()).map(|launch| {
            let work = finite(&mut self.all.iter().map(|slot| self.work(model, launch, *slot)));
            let copied = finite(&mut self.devices.iter().map(|device| self.copying(model, launch, *device)));
            let pairs = self.devices.iter().flat_map(|from| self.devices.iter().map(move |to| (*from, *to)));
            let bytes = self.made[launch] * self.devices.len() as f64 + model.weight(self.launches[launch]);
            work + copied + finite(&mut pairs.map(|(from, to)| moving(model, from, to, bytes)))
        });
        (free + each.sum::<Micros>() - self.origin) / self.scale
    }

    /// Returns the duration of a launch in a slot; infinite if it cannot run there.
    pub(super) fn work(&self, model: &Model<'_>, launch: usize, slot: Slot) -> Micros {
        let launch = self.launches[launch];
        if !slot.is_direct() || !model.needs_parameters(launch, slot.device) {
            return model.time(launch, slot.device);
        }
        // Section 3.4: copies and direct reads of other devices on the bus may interfere.
        let Some(cold) = &model.cold else { return Micros::INFINITY };
        let bus = model.link(cold.host, slot.device).bus;
        let shares = |device: &usize| bus.is_some() && model.link(cold.host, *device).bus == bus;
        let sharing = self.devices.iter().filter(|device| shares(device)).count().max(1);
        let alone = model.time(launch, slot.device);
        (model.direct_time(launch, slot.device) * 2.0 * sharing as f64).max(alone)
    }

    /// Returns the duration of a copy of a launch's parameters from the host.
    pub(super) fn copying(&self, model: &Model<'_>, launch: usize, device: usize) -> Micros {
        let Some(cold) = model.cold.as_ref().filter(|cold| cold.host != device) else { return Micros::INFINITY };
        let link = model.link(cold.host, device);
        model.weight(self.launches[launch]) * link.slowness + link.latency
    }
}

/// Returns the transfer time between devices, with the paper's adjustment.
pub(super) fn moving(model: &Model<'_>, from: usize, to: usize, bytes: Bytes) -> Micros {
    if from == to || bytes == Bytes::ZERO {
        return Micros::ZERO;
    }
    let link = model.link(from, to);
    // A bus with further links is shared by all of them.
    let others = (0..model.devices * model.devices)
        .map(|pair| (pair / model.devices, pair % model.devices))
        .any(|pair| pair != (from, to) && pair != (to, from) && model.link(pair.0, pair.1).bus == link.bus);
    let factor = if link.bus.is_some() && others { model.devices as f64 } else { OWN_LINK };
    (bytes * link.slowness + link.latency) * factor
}
