//! Placement of tasks one by one with constraint propagation over co-location, links and memory.
//!
//! A scheduler gets the domain of a task (the devices that are still possible) and places it. Devices that this makes
//! impossible are removed from the domains of other tasks; a choice that would empty a domain is rejected.
//! [`Placement::any`] finds some placement by backtracking where placing one task at a time fails.

use std::rc::Rc;

use crate::model::error::{Error, Finding};
use crate::model::instance::Instance;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, human_bytes};

/// Maximum number of failed choices in the search for any placement; fewer with very many groups, as each costs more.
const SEARCH_LIMIT: usize = 20_000;
const SEARCHED_GROUPS: usize = 20_000_000;
const LEAST_LIMIT: usize = 20;

/// Message of a search that proves nothing.
const NOT_FOUND: &str = "no placement found that fits";

/// Partial placement with the domains of unplaced groups.
#[derive(Clone, Debug)]
pub struct Placement<'a> {
    instance: &'a Instance,
    /// Domain of each group; one device if it is placed.
    open: Vec<Vec<usize>>,
    placed: Vec<Option<usize>>,
    room: Vec<Bytes>,
    /// Undo log, latest change last. A copy of the state for each choice would take too much memory.
    trail: Vec<Before>,
    /// Memory that each group takes on its device.
    bytes: Vec<Bytes>,
    /// By device: upper bound on the bytes of unplaced groups that may go there.
    largest: Vec<Bytes>,
    /// Groups whose domains have changed since the last propagation.
    changed: Vec<usize>,
    memory_binds: bool,
    /// Dependencies between groups, by group; `None` if all devices are linked.
    dependencies: Option<Rc<Dependencies>>,
}

/// By group: the pairs of producer's and consumer's group that it is part of.
type Dependencies = Vec<Vec<(usize, usize)>>;

/// State before a change.
#[derive(Clone, Debug)]
enum Before {
    /// Domain of a group.
    Open(usize, Vec<usize>),
    /// The group was not placed, and its device had this room.
    Unplaced(usize, Bytes),
}

impl<'a> Placement<'a> {
    /// Creates a placement in which only groups with a single device are placed. All inputs run in one batch: with a
    /// queue, only devices that support the full batch are in the domains. Under the liveness model, `activations` is
    /// the share of operands, results and scratch that is reserved beside the weights: the peak depends on the
    /// schedule.
    pub fn new(instance: &'a Instance, activations: f64) -> Result<Self, Error> {
        let (devices, inputs) = (instance.devices(), instance.inputs());
        let open = |group: &Vec<usize>| -> Vec<usize> {
            let runs = |device: &usize| group.iter().all(|task| instance.time_at(*task, *device, inputs).is_some());
            instance.allowed(group[0]).iter().copied().filter(runs).collect()
        };
        let bytes = |task: &usize| match instance.memory_model() {
            MemoryModel::Static => instance.static_bytes(*task, inputs),
            MemoryModel::Liveness => {
                let touched =
                    instance.input_bytes(*task) + instance.output_bytes(*task) + instance.scratch_bytes(*task);
                instance.weight_bytes(*task) + activations * touched * f64::from(inputs)
            }
        };
        let links_bind = (0..devices).any(|from| (0..devices).any(|to| !instance.linked(from, to)));
        let mut placement = Self {
            instance,
            open: instance.groups().iter().map(open).collect(),
            placed: vec![None; instance.groups().len()],
            room: (0..devices).map(|device| instance.capacity_bytes(device)).collect(),
            trail: Vec::new(),
            bytes: instance.groups().iter().map(|group| group.iter().map(bytes).sum()).collect(),
            largest: vec![Bytes::INFINITY; devices],
            changed: (0..instance.groups().len()).collect(),
            memory_binds: instance.memory_binds(),
            dependencies: links_bind.then(|| Rc::new(dependencies(instance))),
        };
        if placement.open.iter().any(Vec::is_empty) || placement.constrained() && !placement.propagate() {
            return Err(Error::NotFound(placement.describe_failure(NOT_FOUND)));
        }
        Ok(placement)
    }

    /// Returns the domain of a task.
    pub fn open(&self, task: usize) -> &[usize] {
        &self.open[self.instance.group_of(task)]
    }

    /// Returns the device of a task that has been placed, by itself or with its group.
    pub fn device(&self, task: usize) -> Option<usize> {
        self.placed[self.instance.group_of(task)]
    }

    /// Places a task with its group. Returns false and changes nothing if that empties a domain.
    pub fn place(&mut self, task: usize, device: usize) -> bool {
        let group = self.instance.group_of(task);
        if let Some(placed) = self.placed[group] {
            return placed == device;
        }
        if !self.open[group].contains(&device) {
            return false;
        }
        let before = self.trail.len();
        if self.memory_binds && self.bytes[group] > self.room[device] {
            return false;
        }
        self.narrow(group, vec![device]);
        self.assign(group, device);
        let possible = !self.constrained() || self.propagate();
        if !possible {
            self.undo_to(before);
        }
        possible
    }

    /// Returns some placement of all tasks, by backtracking with a share of the default effort; the largest groups and
    /// the devices with most free memory first.
    pub fn any(instance: &'a Instance, activations: f64, effort: f64) -> Result<Vec<usize>, Error> {
        let mut placement = Self::new(instance, activations)?;
        let mut groups: Vec<usize> = (0..instance.groups().len()).collect();
        groups.sort_by(|a, b| placement.bytes[*b].total_cmp(&placement.bytes[*a]));
        let mut failures = 0;
        let most = (SEARCHED_GROUPS / groups.len().max(1)).min(SEARCH_LIMIT);
        let limit = ((most as f64 * effort) as usize).max(LEAST_LIMIT);
        if placement.search(&groups, &mut failures, limit) {
            return Ok((0..instance.tasks()).filter_map(|task| placement.device(task)).collect());
        }
        // Split queues were not considered, and the memory reserved for activations may not be needed.
        let all = instance.inputs() == 1 && (instance.memory_model() == MemoryModel::Static || activations == 0.0);
        Err(match failures {
            _ if failures >= limit => Error::NotFound(format!(
                "{}, after {failures} choices that failed",
                placement.describe_failure(NOT_FOUND)
            )),
            _ if all => {
                Error::Infeasible(vec![Finding::new("devices", placement.describe_failure("no placement fits"))])
            }
            _ => Error::NotFound(placement.describe_failure(NOT_FOUND)),
        })
    }

    /// Places all groups, or returns false and places none.
    fn search(&mut self, groups: &[usize], failures: &mut usize, limit: usize) -> bool {
        /// A choice that may have to be undone.
        struct Choice {
            place: usize,
            /// Devices not yet tried, the best last.
            devices: Vec<usize>,
            before: usize,
        }
        let mut choices: Vec<Choice> = Vec::new();
        let mut place = 0;
        loop {
            let Some(next) = (place..groups.len()).find(|place| self.placed[groups[*place]].is_none()) else {
                return true;
            };
            let mut devices = self.open[groups[next]].clone();
            devices.sort_by(|a, b| self.room[*b].total_cmp(&self.room[*a]));
            devices.reverse();
            choices.push(Choice { place: next, devices, before: self.trail.len() });
            // Backtracks to the last choice with a device left, and continues with that device.
            loop {
                let Some(choice) = choices.last_mut() else { return false };
                let (here, before) = (choice.place, choice.before);
                let device = choice.devices.pop();
                self.undo_to(before);
                let Some(device) = device else {
                    choices.pop();
                    continue;
                };
                if self.place(self.instance.groups()[groups[here]][0], device) {
                    place = here + 1;
                    break;
                }
                *failures += 1;
                if *failures >= limit {
                    return false;
                }
            }
        }
    }

    fn narrow(&mut self, group: usize, left: Vec<usize>) {
        let before = std::mem::replace(&mut self.open[group], left);
        self.changed.push(group);
        self.trail.push(Before::Open(group, before));
    }

    fn assign(&mut self, group: usize, device: usize) {
        self.trail.push(Before::Unplaced(group, self.room[device]));
        self.placed[group] = Some(device);
        self.room[device] -= self.bytes[group];
    }

    /// Undoes all changes after the first `changes`.
    fn undo_to(&mut self, changes: usize) {
        self.changed.clear();
        if changes < self.trail.len() {
            self.largest.fill(Bytes::INFINITY);
        }
        for before in self.trail.drain(changes..).rev() {
            match before {
                Before::Open(group, open) => self.open[group] = open,
                Before::Unplaced(group, room) => {
                    if let Some(device) = self.placed[group].take() {
                        self.room[device] = room;
                    }
                }
            }
        }
    }

    fn constrained(&self) -> bool {
        self.memory_binds || self.dependencies.is_some()
    }

    /// Places groups that have one device left and removes impossible devices, until a fixed point. Returns false if a
    /// domain is empty.
    fn propagate(&mut self) -> bool {
        loop {
            // Checking all groups for each placed one takes too long if there are many.
            let is_short =
                self.memory_binds && self.room.iter().zip(&self.largest).any(|(room, largest)| room < largest);
            if is_short {
                for group in 0..self.open.len() {
                    let fits = |device: &usize| self.bytes[group] <= self.room[*device];
                    if self.placed[group].is_none() && !self.open[group].iter().all(fits) {
                        self.narrow(group, self.open[group].iter().copied().filter(fits).collect());
                    }
                }
                self.find_largest();
            }
            let Some(group) = self.changed.pop() else { return true };
            match *self.open[group].as_slice() {
                [] => return false,
                [device] if self.placed[group].is_none() => {
                    if self.memory_binds && self.bytes[group] > self.room[device] {
                        return false;
                    }
                    self.assign(group, device);
                }
                _ => {}
            }
            if let Some(dependencies) = self.dependencies.clone() {
                dependencies[group].iter().for_each(|&(from, to)| self.follow_links(from, to));
            }
        }
    }

    fn find_largest(&mut self) {
        self.largest.fill(Bytes::ZERO);
        for (group, open) in self.open.iter().enumerate().filter(|(group, _)| self.placed[*group].is_none()) {
            for device in open {
                self.largest[*device] = self.largest[*device].max(self.bytes[group]);
            }
        }
    }

    /// Removes devices of a producer's and a consumer's group that have no link to any device of the other.
    fn follow_links(&mut self, from: usize, to: usize) {
        let instance = self.instance;
        let sends = |u: usize, receivers: &[usize]| receivers.iter().any(|v| instance.linked(u, *v));
        if !self.open[from].iter().all(|u| sends(*u, &self.open[to])) {
            self.narrow(from, self.open[from].iter().copied().filter(|u| sends(*u, &self.open[to])).collect());
        }
        let receives = |v: usize, senders: &[usize]| senders.iter().any(|u| instance.linked(*u, v));
        if !self.open[to].iter().all(|v| receives(*v, &self.open[from])) {
            self.narrow(to, self.open[to].iter().copied().filter(|v| receives(*v, &self.open[from])).collect());
        }
    }

    /// Describes why no placement was found.
    fn describe_failure(&self, what: &str) -> String {
        let rooms: Vec<String> = (0..self.instance.devices())
            .map(|device| {
                let capacity = self.instance.capacity_bytes(device);
                let room = if capacity.is_finite() { human_bytes(capacity) } else { "no limit".to_owned() };
                format!("{} has {room}", self.instance.device_name(device))
            })
            .collect();
        let total: Bytes = self.bytes.iter().sum();
        let how = match self.instance.inputs() {
            1 => String::new(),
            inputs => format!(", cutting queues task by task or with all {inputs} inputs in one batch"),
        };
        format!("{what} memory and links{how}: the tasks need {} ({})", human_bytes(total), rooms.join(", "))
    }
}

fn dependencies(instance: &Instance) -> Dependencies {
    let mut of: Dependencies = vec![Vec::new(); instance.groups().len()];
    for tensor in instance.tensors() {
        let from = instance.group_of(tensor.producer);
        for &consumer in &tensor.consumers {
            let to = instance.group_of(consumer);
            if from != to {
                of[from].push((from, to));
                of[to].push((from, to));
            }
        }
    }
    for pairs in &mut of {
        pairs.sort_unstable();
        pairs.dedup();
    }
    of
}
