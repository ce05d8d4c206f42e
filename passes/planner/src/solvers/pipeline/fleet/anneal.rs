//! Annealing over stages and their devices.

use super::loads::Loads;
use super::{Fleet, Pipe};
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::Allowance;
use crate::solvers::pipeline::anneal::{self, Change, Stages, View};
use crate::solvers::pipeline::state::power;

/// Number of kinds of trials. One changes a stage's device, one moves a port, some move several tasks together or
/// exchange two.
const KINDS: usize = 32;
const DEVICE: usize = 0;
const PORT: usize = 1;
const DRAWS: usize = 6;
const EXCHANGES: usize = 14;

/// Returns the best pipeline found.
pub(super) fn anneal(fleet: &Fleet, start: &Pipe, least: Micros, allowance: &Allowance) -> Option<Pipe> {
    if fleet.devices < 2 || fleet.working == 0 {
        return None;
    }
    let movable: Vec<usize> = (fleet.working..fleet.tasks())
        .filter(|port| fleet.times(*port).iter().filter(|time| time.is_finite()).count() > 1)
        .collect();
    let start = || {
        let loads = Loads::new(fleet, start.devices());
        Placed {
            fleet,
            movable: &movable,
            pipe: start.clone(),
            scale: loads.value().max(Micros(f64::MIN_POSITIVE)),
            loads,
        }
    };
    anneal::anneal(start, least, allowance).map(|(_, pipe)| pipe)
}

/// Pipeline with the loads of its devices.
struct Placed<'a> {
    fleet: &'a Fleet,
    /// Ports with several possible devices.
    movable: &'a [usize],
    pipe: Pipe,
    loads: Loads<'a>,
    /// Load that is normalized to one.
    scale: Micros,
}

/// Previous devices of the stages, or a port and its previous device.
enum Undo {
    Devices(Vec<usize>),
    Port(usize, usize),
}

impl Stages for Placed<'_> {
    type Found = Pipe;
    type Undo = Undo;

    const STRIDE: u64 = 128;

    fn view(&self) -> View<'_> {
        View { stage: &self.pipe.stage, before: &self.fleet.before, after: &self.fleet.after, k: self.fleet.k }
    }

    fn shift(&mut self, task: usize, to: u32) {
        self.pipe.stage[task] = to;
        self.place(task, self.pipe.device[to as usize]);
    }

    fn energy(&self) -> f64 {
        self.loads.each().map(|load| power(load / self.scale)).sum()
    }

    fn value(&self) -> Micros {
        self.loads.value()
    }

    fn found(&self) -> Pipe {
        self.pipe.clone()
    }

    fn refresh(&mut self, _: &mut Random) {
        self.loads.recount();
    }

    fn choose(&self, random: &mut Random) -> Change {
        match random.below(KINDS) {
            kind @ (DEVICE | PORT) => Change::Own(kind),
            kind if kind < DRAWS => Change::Draw(random.below(self.fleet.working)),
            kind => Change::Move(random.below(self.fleet.working), kind < EXCHANGES),
        }
    }

    fn change_own(&mut self, kind: usize, random: &mut Random) -> Option<Undo> {
        if kind == DEVICE { self.other_device(random) } else { self.other_port(random) }
    }

    fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Devices(was) => {
                self.pipe.device = was;
                self.place_tasks();
            }
            Undo::Port(port, was) => self.place_port(port, was),
        }
    }

    fn holds(&self) -> bool {
        self.loads.holds()
    }
}

impl Placed<'_> {
    /// Changes the device of a stage, or swaps the devices of two stages.
    fn other_device(&mut self, random: &mut Random) -> Option<Undo> {
        let was = self.pipe.device.clone();
        let stage = random.below(self.fleet.k);
        if self.fleet.shared && random.chance(0.5) {
            self.pipe.device[stage] = random.below(self.fleet.devices);
        } else {
            let other = random.below(self.pipe.device.len());
            self.pipe.device.swap(stage, other);
        }
        if self.pipe.device == was {
            return None;
        }
        self.place_tasks();
        Some(Undo::Devices(was))
    }

    /// Moves every task to the device of its stage.
    fn place_tasks(&mut self) {
        for task in 0..self.fleet.working {
            let to = self.pipe.device_of(task);
            if self.loads.on[task] != to {
                self.place(task, to);
            }
        }
    }

    fn other_port(&mut self, random: &mut Random) -> Option<Undo> {
        let &port = self.movable.get(random.below(self.movable.len().max(1)))?;
        let (was, to) = (self.loads.on[port], random.below(self.fleet.devices));
        if to == was {
            return None;
        }
        self.place_port(port, to);
        Some(Undo::Port(port, was))
    }

    fn place_port(&mut self, port: usize, to: usize) {
        self.pipe.port[port - self.fleet.working] = to;
        self.place(port, to);
    }

    /// Moves a task, and the ports that are co-located with it.
    fn place(&mut self, task: usize, to: usize) {
        self.loads.place(task, to);
        for &port in &self.fleet.colocated[task] {
            if self.fleet.is_port(port as usize) && self.loads.on[port as usize] != to {
                self.pipe.port[port as usize - self.fleet.working] = to;
                self.loads.place(port as usize, to);
            }
        }
    }
}
