//! A piece, its devices' slots, and what the pieces before it have left.

use crate::model::units::{Bytes, Micros};
use crate::solvers::contention::{Choice, Job, Model, Simulator};

/// Section 3.4: a link of two devices alone is rarely asked for both ways at once.
const OWN_LINK: f64 = 1.5;

/// One of a device's turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// A device, and its place among those of the piece.
    pub(super) device: usize,
    pub(super) place: usize,
    /// Which of its turns.
    pub(super) turn: usize,
}

impl Slot {
    /// Whether tasks read their parameters in the host's memory.
    pub(super) fn is_direct(self) -> bool {
        self.turn.is_multiple_of(2)
    }
}

pub(super) struct Slots {
    pub(super) launches: Vec<usize>,
    pub(super) devices: Vec<usize>,
    pub(super) each: usize,
    /// Device after device.
    pub(super) all: Vec<Slot>,
    /// Edges inside the piece: places of the launches, and what one byte more or less takes is in `moving`.
    pub(super) edges: Vec<(usize, usize)>,
    /// By launch of the piece and slot: when what it reads from before the piece can be there.
    pub(super) arrival: Vec<Micros>,
    /// By launch, the bytes that it makes for others.
    pub(super) made: Vec<Bytes>,
    /// When each device and each bus is free.
    pub(super) device_free: Vec<Micros>,
    pub(super) bus_free: Vec<Micros>,
    /// What is left of each device's memory.
    pub(super) room: Vec<Bytes>,
    /// Times count from here, in parts of the scale.
    pub(super) origin: Micros,
    pub(super) scale: Micros,
    /// No time is later, in parts of the scale.
    pub(super) horizon: f64,
}

impl Slots {
    /// None where nothing takes any time.
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
        let (mut edges, mut arrival) = (Vec::new(), vec![0.0_f64; launches.len() * all.len()]);
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
        let origin = devices.iter().map(|device| device_free[*device]).fold(f64::INFINITY, f64::min);
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
        (scale > 0.0 && this.horizon.is_finite()).then_some(this)
    }

    /// Everything after everything else, each in its slowest way.
    fn latest(&self, model: &Model<'_>) -> f64 {
        let finite =
            |times: &mut dyn Iterator<Item = Micros>| times.filter(|time| time.is_finite()).fold(0.0, f64::max);
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

    /// What a launch takes in a slot; infinite where it cannot be there.
    pub(super) fn work(&self, model: &Model<'_>, launch: usize, slot: Slot) -> Micros {
        let launch = self.launches[launch];
        if !slot.is_direct() || !model.needs_parameters(launch, slot.device) {
            return model.time(launch, slot.device);
        }
        // Section 3.4: others on the bus may be in its way, copies and readers alike.
        let Some(cold) = &model.cold else { return f64::INFINITY };
        let bus = model.link(cold.host, slot.device).bus;
        let shares = |device: &usize| bus.is_some() && model.link(cold.host, *device).bus == bus;
        let sharing = self.devices.iter().filter(|device| shares(device)).count().max(1);
        let alone = model.time(launch, slot.device);
        (model.direct_time(launch, slot.device) * 2.0 * sharing as f64).max(alone)
    }

    /// What it takes to copy a launch's parameters from the host.
    pub(super) fn copying(&self, model: &Model<'_>, launch: usize, device: usize) -> Micros {
        let Some(cold) = model.cold.as_ref().filter(|cold| cold.host != device) else { return f64::INFINITY };
        let link = model.link(cold.host, device);
        model.weight(self.launches[launch]) * link.slowness + link.latency
    }
}

/// What bytes take from device to device, with the paper's adjustment.
pub(super) fn moving(model: &Model<'_>, from: usize, to: usize, bytes: Bytes) -> Micros {
    if from == to || bytes == 0.0 {
        return 0.0;
    }
    let link = model.link(from, to);
    // A bus that joins others, too, is asked for by all of them.
    let others = (0..model.devices * model.devices)
        .map(|pair| (pair / model.devices, pair % model.devices))
        .any(|pair| pair != (from, to) && pair != (to, from) && model.link(pair.0, pair.1).bus == link.bus);
    let factor = if link.bus.is_some() && others { model.devices as f64 } else { OWN_LINK };
    (bytes * link.slowness + link.latency) * factor
}
