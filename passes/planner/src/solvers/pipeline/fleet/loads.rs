//! Loads of devices and links, maintained incrementally while tasks move.

use super::Fleet;
use crate::model::options::PipelineCost;
use crate::model::units::{Bytes, Micros};

#[derive(Clone)]
pub(super) struct Loads<'a> {
    fleet: &'a Fleet,
    /// Each task's device.
    pub(super) on: Vec<usize>,
    /// By tensor and device: number of tasks there that read it.
    readers: Vec<u32>,
    work: Vec<Micros>,
    /// By device; if transfers overlap, by pair of devices.
    moving: Vec<Micros>,
    /// By bus, if there is contention.
    buses: Vec<Micros>,
    held: Vec<Bytes>,
    /// Number of violations: unsupported or separated tasks, and tensors that need a missing link.
    faults: usize,
}

impl<'a> Loads<'a> {
    pub(super) fn new(fleet: &'a Fleet, on: Vec<usize>) -> Self {
        let (work, moving, buses, held) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut loads = Self { fleet, on, readers: Vec::new(), work, moving, buses, held, faults: 0 };
        loads.recount();
        loads
    }

    /// Recomputes everything from the tasks' devices, which removes accumulated rounding errors.
    pub(super) fn recount(&mut self) {
        let (fleet, devices) = (self.fleet, self.fleet.devices);
        let places = if fleet.cost == PipelineCost::Overlap { devices * devices } else { devices };
        self.readers = vec![0; fleet.tensors.len() * devices];
        (self.work, self.moving, self.held) =
            (vec![Micros::ZERO; devices], vec![Micros::ZERO; places], vec![Bytes::ZERO; devices]);
        self.buses = vec![Micros::ZERO; fleet.buses];
        self.faults = 0;
        (0..fleet.tasks()).for_each(|task| self.count(task, 1.0));
        // Each pair is counted from both sides.
        self.faults += (0..fleet.tasks()).map(|task| self.apart(task)).sum::<usize>() / 2;
        for (index, tensor) in fleet.tensors.iter().enumerate() {
            for &reader in &tensor.readers {
                self.readers[index * devices + self.on[reader as usize]] += 1;
            }
            self.carry(index, 1.0);
        }
    }

    /// Moves a task.
    pub(super) fn place(&mut self, task: usize, to: usize) {
        let fleet = self.fleet;
        let from = self.on[task];
        self.count(task, -1.0);
        self.faults -= self.apart(task);
        let touched = || fleet.makes[task].iter().chain(&fleet.reads[task]).map(|index| *index as usize);
        touched().for_each(|index| self.carry(index, -1.0));
        for &index in &fleet.reads[task] {
            self.readers[index as usize * fleet.devices + from] -= 1;
            self.readers[index as usize * fleet.devices + to] += 1;
        }
        self.on[task] = to;
        touched().for_each(|index| self.carry(index, 1.0));
        self.count(task, 1.0);
        self.faults += self.apart(task);
    }

    /// Returns the number of tasks that should share this one's device and do not.
    fn apart(&self, task: usize) -> usize {
        self.fleet.colocated[task].iter().filter(|other| self.on[**other as usize] != self.on[task]).count()
    }

    /// Adds or removes a task's load.
    fn count(&mut self, task: usize, times: f64) {
        let on = self.on[task];
        let time = self.fleet.times(task)[on];
        self.held[on] += self.fleet.held(task, on) * times;
        if time.is_infinite() {
            self.fault(times);
        } else {
            self.work[on] += time * times;
        }
    }

    /// Adds or removes a tensor's transfers.
    fn carry(&mut self, index: usize, times: f64) {
        let (fleet, devices) = (self.fleet, self.fleet.devices);
        let tensor = &fleet.tensors[index];
        let home = self.on[tensor.producer as usize];
        let mut longest = Micros::ZERO;
        for to in (0..devices).filter(|to| *to != home) {
            if self.readers[index * devices + to] == 0 {
                continue;
            }
            let time = fleet.move_time(tensor.bytes, home, to);
            if time.is_infinite() {
                self.fault(times);
                continue;
            }
            longest = longest.max(time * fleet.scaling.part[home]);
            if let Some(bus) = fleet.bus[home * devices + to] {
                self.buses[bus] += time * times;
            }
            match fleet.cost {
                PipelineCost::Serial => self.moving[to] += time * fleet.scaling.part[to] * times,
                PipelineCost::Overlap => {
                    let pair = home * devices + to;
                    self.moving[pair] += time * fleet.scaling.link[pair] * times;
                }
            }
        }
        if fleet.cost == PipelineCost::Serial {
            self.moving[home] += longest * times;
        }
    }

    fn fault(&mut self, times: f64) {
        self.faults = if times > 0.0 { self.faults + 1 } else { self.faults - 1 };
    }

    /// Returns true if the placement is feasible.
    pub(super) fn holds(&self) -> bool {
        self.faults == 0 && self.held.iter().zip(&self.fleet.capacity).all(|(held, capacity)| held <= capacity)
    }

    /// Returns the largest load; infinite if the placement is infeasible.
    pub(super) fn value(&self) -> Micros {
        if self.holds() { self.each().fold(Micros::ZERO, Micros::max) } else { Micros::INFINITY }
    }

    /// Returns the loads of devices and, if they count separately, of links and buses.
    pub(super) fn each(&self) -> impl Iterator<Item = Micros> {
        let serial = self.fleet.cost == PipelineCost::Serial;
        let moving = move |device: usize| if serial { self.moving[device] } else { Micros::ZERO };
        let links = if serial { &[] } else { self.moving.as_slice() };
        let devices = self.work.iter().enumerate().map(move |(device, work)| *work + moving(device));
        devices.chain(links.iter().chain(&self.buses).copied())
    }
}
