//! Placing task after task without running into a corner: co-location, links and memory kept consistent.
//!
//! A scheduler asks where a task may still go and places it; what that leaves impossible for others is taken away, and a
//! choice that would leave a task no device is refused. [`Placement::any`] finds some placement by search where choosing
//! one task at a time does not.

use crate::error::{Error, Finding};
use crate::instance::Instance;
use crate::problem::MemoryModel;
use crate::units::{Bytes, human_bytes};

/// So many choices are tried in search of any placement; fewer where there are very many groups, as each costs more.
const SEARCH_LIMIT: usize = 20_000;
const SEARCHED_GROUPS: usize = 20_000_000;
const LEAST_LIMIT: usize = 100;

/// What has come of a search that does not prove anything.
const NOT_FOUND: &str = "no placement found that fits";

#[derive(Clone, Debug)]
pub struct Placement<'a> {
    instance: &'a Instance,
    /// Where each group may still go; one device where it is placed.
    open: Vec<Vec<usize>>,
    placed: Vec<Option<usize>>,
    room: Vec<Bytes>,
    /// What was before each change, the latest last. Copies of all this, one a choice, would fill the memory.
    trail: Vec<Before>,
    /// What each group takes from its device.
    bytes: Vec<Bytes>,
    /// No group that is not placed and may go to a device takes more than this.
    largest: Vec<Bytes>,
    memory_binds: bool,
    links_bind: bool,
}

/// What a change has replaced.
#[derive(Clone, Debug)]
enum Before {
    /// Of a group.
    Open(usize, Vec<usize>),
    /// The group was not placed, and its device had this room.
    Unplaced(usize, Bytes),
}

impl<'a> Placement<'a> {
    /// Nothing placed yet but what has one device only. All inputs go through together: with a queue, only devices that
    /// take it in one batch are open. Under the liveness model, `activations` is the share of operands,
    /// results and scratch that is set aside beside the weights: what is alive at once depends on the schedule.
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
        let mut placement = Self {
            instance,
            open: instance.groups().iter().map(open).collect(),
            placed: vec![None; instance.groups().len()],
            room: (0..devices).map(|device| instance.capacity_bytes(device)).collect(),
            trail: Vec::new(),
            bytes: instance.groups().iter().map(|group| group.iter().map(bytes).sum()).collect(),
            largest: vec![f64::INFINITY; devices],
            memory_binds: instance.memory_binds(),
            links_bind: (0..devices).any(|from| (0..devices).any(|to| !instance.linked(from, to))),
        };
        if placement.open.iter().any(Vec::is_empty) || placement.constrained() && !placement.settle() {
            return Err(Error::NotFound(placement.corner(NOT_FOUND)));
        }
        Ok(placement)
    }

    /// Where a task may still go.
    pub fn open(&self, task: usize) -> &[usize] {
        &self.open[self.instance.group_of(task)]
    }

    /// Where a task has been placed, by itself or with its group.
    pub fn device(&self, task: usize) -> Option<usize> {
        self.placed[self.instance.group_of(task)]
    }

    /// Places a task with its group. Says no, and changes nothing, where that leaves a task without a device.
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
        self.put(group, device);
        let possible = !self.constrained() || self.settle();
        if !possible {
            self.go_back(before);
        }
        possible
    }

    /// Some placement of all tasks, by search; the roomiest device and the largest group first.
    pub fn any(instance: &'a Instance, activations: f64) -> Result<Vec<usize>, Error> {
        let mut placement = Self::new(instance, activations)?;
        let mut groups: Vec<usize> = (0..instance.groups().len()).collect();
        groups.sort_by(|a, b| placement.bytes[*b].total_cmp(&placement.bytes[*a]));
        let mut tries = 0;
        let limit = (SEARCHED_GROUPS / groups.len().max(1)).clamp(LEAST_LIMIT, SEARCH_LIMIT);
        if placement.search(&groups, &mut tries, limit) {
            return Ok((0..instance.tasks()).filter_map(|task| placement.device(task)).collect());
        }
        // Cut queues were not looked at, and what is set aside for activations may not be needed.
        let all = instance.inputs() == 1 && (instance.memory_model() == MemoryModel::Static || activations == 0.0);
        Err(match tries {
            _ if tries >= limit => Error::NotFound(format!("{}, after {tries} tries", placement.corner(NOT_FOUND))),
            _ if all => Error::Infeasible(vec![Finding::new("devices", placement.corner("no placement fits"))]),
            _ => Error::NotFound(placement.corner(NOT_FOUND)),
        })
    }

    /// Places all groups, or none and says no.
    fn search(&mut self, groups: &[usize], tries: &mut usize, limit: usize) -> bool {
        /// A choice that may have to be taken back.
        struct Choice {
            place: usize,
            /// Those not tried yet, the best last.
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
            // Forwards with the next device that is possible, after going back to a choice that has one.
            loop {
                let Some(choice) = choices.last_mut() else { return false };
                let (here, before) = (choice.place, choice.before);
                let device = choice.devices.pop();
                self.go_back(before);
                let Some(device) = device else {
                    choices.pop();
                    continue;
                };
                *tries += 1;
                if *tries >= limit {
                    return false;
                }
                if self.place(self.instance.groups()[groups[here]][0], device) {
                    place = here + 1;
                    break;
                }
            }
        }
    }

    fn narrow(&mut self, group: usize, left: Vec<usize>) {
        let before = std::mem::replace(&mut self.open[group], left);
        self.trail.push(Before::Open(group, before));
    }

    fn put(&mut self, group: usize, device: usize) {
        self.trail.push(Before::Unplaced(group, self.room[device]));
        self.placed[group] = Some(device);
        self.room[device] -= self.bytes[group];
    }

    /// Takes back all changes but the first so many.
    fn go_back(&mut self, changes: usize) {
        if changes < self.trail.len() {
            self.largest.fill(f64::INFINITY);
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
        self.memory_binds || self.links_bind
    }

    /// Places what has one device left, and takes away what has become impossible, until nothing changes. False where a
    /// task has no device left.
    fn settle(&mut self) -> bool {
        let mut changed = true;
        while changed {
            changed = false;
            // Looking at all groups for each that is placed takes too long where there are many.
            let is_short = self.room.iter().zip(&self.largest).any(|(room, largest)| room < largest);
            for group in 0..if self.links_bind || is_short { self.open.len() } else { 0 } {
                if self.placed[group].is_none() {
                    let fits = |device: &usize| !self.memory_binds || self.bytes[group] <= self.room[*device];
                    if !self.open[group].iter().all(fits) {
                        self.narrow(group, self.open[group].iter().copied().filter(fits).collect());
                    }
                    match *self.open[group].as_slice() {
                        [] => return false,
                        [device] => {
                            self.put(group, device);
                            changed = true;
                        }
                        _ => {}
                    }
                }
            }
            if is_short {
                self.find_largest();
            }
            if self.links_bind {
                match self.follow_links() {
                    None => return false,
                    Some(any) => changed |= any,
                }
            }
        }
        true
    }

    fn find_largest(&mut self) {
        self.largest.fill(0.0);
        for (group, open) in self.open.iter().enumerate().filter(|(group, _)| self.placed[*group].is_none()) {
            for device in open {
                self.largest[*device] = self.largest[*device].max(self.bytes[group]);
            }
        }
    }

    /// Takes away devices without a link to where a neighbour may go; none where a task has no device left.
    fn follow_links(&mut self) -> Option<bool> {
        let instance = self.instance;
        let mut changed = false;
        for tensor in instance.tensors() {
            let from = instance.group_of(tensor.producer);
            for &consumer in &tensor.consumers {
                let to = instance.group_of(consumer);
                let (mut senders, mut receivers) = (self.open[from].clone(), self.open[to].clone());
                senders.retain(|u| self.open[to].iter().any(|v| instance.linked(*u, *v)));
                receivers.retain(|v| self.open[from].iter().any(|u| instance.linked(*u, *v)));
                for (group, left) in [(from, senders), (to, receivers)] {
                    if left.is_empty() {
                        return None;
                    }
                    if left.len() < self.open[group].len() {
                        self.narrow(group, left);
                        changed = true;
                    }
                }
            }
        }
        Some(changed)
    }

    /// What stands in the way, in words.
    fn corner(&self, what: &str) -> String {
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
