//! Representation of the scheduling problem for the search: tasks in topological order, times and delays in flat
//! arrays.

use crate::model::instance::Instance;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

/// Estimate of a task's memory use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Footprint {
    /// Lower bound under the instance's memory model: excludes no plan that fits.
    Least,
    /// Upper bound under either model: every plan found fits.
    Most,
}

impl Footprint {
    /// Returns the estimate for a task.
    pub(crate) fn of(self, instance: &Instance, task: usize) -> Bytes {
        match (self, instance.memory_model()) {
            (_, MemoryModel::Static) => instance.static_bytes(task, 1),
            (Self::Least, MemoryModel::Liveness) => instance.weight_bytes(task),
            (Self::Most, MemoryModel::Liveness) => {
                let tensors = instance.tensors();
                let results: Bytes =
                    tensors.iter().filter(|tensor| tensor.producer == task).map(|tensor| tensor.bytes).sum();
                let operands: Bytes = instance.predecessors(task).iter().map(|arc| tensors[arc.tensor].bytes).sum();
                instance.weight_bytes(task) + instance.scratch_bytes(task) + operands + results
            }
        }
    }
}

/// Neighbor of a task, and the matrix of delays between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arc {
    pub(crate) task: usize,
    /// Offset of the matrix of delays by pair of devices.
    pub(crate) delays: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) tasks: usize,
    pub(crate) devices: usize,
    /// By task and device; infinite if the task cannot run there.
    pub(crate) time_us: Vec<Micros>,
    /// Release time by task and device: lower limit of the start.
    pub(crate) release_us: Vec<Micros>,
    /// Delivery time by task and device: time that has to pass after the task's end.
    pub(crate) delivery_us: Vec<Micros>,
    /// Each neighbor occurs once.
    pub(crate) predecessors: Vec<Vec<Arc>>,
    pub(crate) successors: Vec<Vec<Arc>>,
    pub(crate) delay_us: Vec<Micros>,
    pub(crate) need: Vec<Bytes>,
    /// Infinite if everything fits.
    pub(crate) capacity: Vec<Bytes>,
    /// Groups of two or more co-located tasks.
    pub(crate) groups: Vec<Vec<usize>>,
}

impl Graph {
    /// Builds the graph of some of an instance's tasks, given in topological order: task `i` of the graph is `tasks[i]`
    /// of the instance.
    pub(crate) fn new(instance: &Instance, tasks: &[usize], footprint: Footprint) -> Self {
        let devices = instance.devices();
        let mut position = vec![None; instance.tasks()];
        for (index, &task) in tasks.iter().enumerate() {
            position[task] = Some(index);
        }
        let table = |figure: &dyn Fn(usize, usize) -> Micros| -> Vec<Micros> {
            tasks.iter().flat_map(|task| (0..devices).map(|device| figure(*task, device))).collect()
        };
        let mut graph = Self {
            tasks: tasks.len(),
            devices,
            time_us: table(&|task, device| instance.time(task, device).unwrap_or(Micros::INFINITY)),
            release_us: vec![Micros::ZERO; tasks.len() * devices],
            delivery_us: vec![Micros::ZERO; tasks.len() * devices],
            predecessors: vec![Vec::new(); tasks.len()],
            successors: vec![Vec::new(); tasks.len()],
            delay_us: Vec::new(),
            need: tasks.iter().map(|task| footprint.of(instance, *task)).collect(),
            capacity: (0..devices).map(|device| instance.capacity_bytes(device)).collect(),
            groups: Vec::new(),
        };
        for (from, &task) in tasks.iter().enumerate() {
            for arc in instance.successors(task) {
                let Some(to) = position[arc.task] else { continue };
                let delays = (0..devices * devices)
                    .map(|pair| instance.transfer(arc.tensor, pair / devices, pair % devices))
                    .collect::<Vec<_>>();
                graph.join(from, to, &delays);
            }
        }
        for group in instance.groups() {
            let members: Vec<usize> = group.iter().filter_map(|task| position[*task]).collect();
            if members.len() > 1 {
                graph.groups.push(members);
            }
        }
        graph.forget_slack_memory();
        graph
    }

    /// Adds delays between two tasks; for several tensors between the same two, the maximum counts.
    pub(crate) fn join(&mut self, from: usize, to: usize, delays: &[Micros]) {
        if let Some(arc) = self.successors[from].iter().find(|arc| arc.task == to) {
            for (known, delay) in self.delay_us[arc.delays..].iter_mut().zip(delays) {
                *known = known.max(*delay);
            }
            return;
        }
        let arc = Arc { task: to, delays: self.delay_us.len() };
        self.delay_us.extend_from_slice(delays);
        self.successors[from].push(arc);
        self.predecessors[to].push(Arc { task: from, ..arc });
    }

    /// Sets the capacities of devices.
    pub(crate) fn limit(&mut self, capacity: Vec<Bytes>) {
        self.capacity = capacity;
        self.forget_slack_memory();
    }

    /// Sets the capacity to infinity if everything that may run on a device fits.
    fn forget_slack_memory(&mut self) {
        for device in 0..self.devices {
            let here = |task: &usize| self.time_us[task * self.devices + device].is_finite();
            let most: Bytes = (0..self.tasks).filter(here).map(|task| self.need[task]).sum();
            if most <= self.capacity[device] {
                self.capacity[device] = Bytes::INFINITY;
            }
        }
    }

    /// Returns the time-reversed problem: task `i` becomes `tasks - 1 - i`, and a reversed schedule is a schedule.
    pub(crate) fn reversed(&self) -> Self {
        let (tasks, devices) = (self.tasks, self.devices);
        let mirror = |table: &[Micros]| table.chunks(devices).rev().flatten().copied().collect::<Vec<_>>();
        let mut reversed = Self {
            tasks,
            devices,
            time_us: mirror(&self.time_us),
            release_us: mirror(&self.delivery_us),
            delivery_us: mirror(&self.release_us),
            predecessors: vec![Vec::new(); tasks],
            successors: vec![Vec::new(); tasks],
            delay_us: Vec::new(),
            need: self.need.iter().rev().copied().collect(),
            capacity: self.capacity.clone(),
            groups: self.groups.iter().map(|group| group.iter().map(|task| tasks - 1 - task).collect()).collect(),
        };
        for from in 0..tasks {
            for arc in &self.successors[from] {
                let matrix = &self.delay_us[arc.delays..arc.delays + devices * devices];
                let delays = (0..devices * devices).map(|pair| matrix[pair % devices * devices + pair / devices]);
                reversed.join(tasks - 1 - arc.task, tasks - 1 - from, &delays.collect::<Vec<_>>());
            }
        }
        reversed
    }

    /// Returns the same problem with the tasks in another topological order.
    pub(crate) fn reordered(&self, order: &[usize]) -> Self {
        let devices = self.devices;
        let mut place_of = vec![0; self.tasks];
        for (place, &task) in order.iter().enumerate() {
            place_of[task] = place;
        }
        let moved = |table: &[Micros]| -> Vec<Micros> {
            order.iter().flat_map(|task| table[task * devices..(task + 1) * devices].iter().copied()).collect()
        };
        let group = |group: &Vec<usize>| {
            let mut members: Vec<usize> = group.iter().map(|task| place_of[*task]).collect();
            members.sort_unstable();
            members
        };
        let mut reordered = Self {
            tasks: self.tasks,
            devices,
            time_us: moved(&self.time_us),
            release_us: moved(&self.release_us),
            delivery_us: moved(&self.delivery_us),
            predecessors: vec![Vec::new(); self.tasks],
            successors: vec![Vec::new(); self.tasks],
            delay_us: Vec::new(),
            need: order.iter().map(|task| self.need[*task]).collect(),
            capacity: self.capacity.clone(),
            groups: self.groups.iter().map(group).collect(),
        };
        reordered.groups.sort_unstable();
        for &task in order {
            let mut arcs: Vec<Arc> = self.successors[task].clone();
            arcs.sort_unstable_by_key(|arc| place_of[arc.task]);
            for arc in &arcs {
                reordered.join(place_of[task], place_of[arc.task], self.delays(arc));
            }
        }
        reordered
    }

    /// Returns the delays of an arc, by pair of devices.
    pub(crate) fn delays(&self, arc: &Arc) -> &[Micros] {
        &self.delay_us[arc.delays..arc.delays + self.devices * self.devices]
    }

    /// Returns a key that identifies graphs without release and delivery times: equal keys mean equal graphs.
    pub(crate) fn key(&self) -> Vec<u64> {
        let mut key = vec![self.tasks as u64];
        key.extend(self.time_us.iter().map(|time| time.0.to_bits()));
        key.extend(self.need.iter().chain(&self.capacity).map(|bytes| bytes.0.to_bits()));
        for arcs in &self.successors {
            key.push(arcs.len() as u64);
            for arc in arcs {
                key.push(arc.task as u64);
                key.extend(self.delays(arc).iter().map(|delay| delay.0.to_bits()));
            }
        }
        for group in &self.groups {
            key.push(group.len() as u64);
            key.extend(group.iter().map(|task| *task as u64));
        }
        key
    }

    /// Returns true if all times are integers, so that every left-shifted schedule ends at an integer.
    pub(crate) fn is_whole(&self) -> bool {
        let tables = [&self.time_us, &self.release_us, &self.delivery_us, &self.delay_us];
        tables.into_iter().flatten().all(|time| time.is_infinite() || (time.0.fract() == 0.0 && time.0 < 1e12))
    }

    /// Returns the earliest starts of tasks on given devices, each of which runs its tasks in the order of `sequence`,
    /// which is topological; and the makespan including deliveries.
    pub(crate) fn starts(&self, sequence: &[(usize, usize)]) -> (Vec<Micros>, Micros) {
        let devices = self.devices;
        let mut device_of = vec![0; self.tasks];
        let mut start = vec![Micros::ZERO; self.tasks];
        let mut free = vec![Micros::ZERO; devices];
        let mut value = Micros::ZERO;
        for &(task, device) in sequence {
            let mut earliest = Micros::max(free[device], self.release_us[task * devices + device]);
            for arc in &self.predecessors[task] {
                let from = device_of[arc.task];
                let end = start[arc.task] + self.time_us[arc.task * devices + from];
                earliest = earliest.max(end + self.delays(arc)[from * devices + device]);
            }
            device_of[task] = device;
            start[task] = earliest;
            free[device] = earliest + self.time_us[task * devices + device];
            value = value.max(free[device] + self.delivery_us[task * devices + device]);
        }
        (start, value)
    }
}
