//! Verifies pipelines whose stages take batches or whose devices take turns: launches of one request, and the time of the
//! slowest device, link or bus for one input.
//!
//! Launch n of a stage takes as many inputs as each other launch, behind those of launch n - 1, on one of its equal devices,
//! which take turns. A tensor moves to the devices that read it as many inputs at a time as divide the batch sizes of both
//! sides, and pays the latency of the link once for these.

use super::{
    Findings,
    certificate::{Certificate, PipelineCost},
    exceeds, list,
    machine::Machine,
    memory::held_weights,
    micros,
};
use crate::ir::describe;
use divi_dialect::Operation;
use divi_planner::units::{Bytes, Micros, human_bytes};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// Launch of a stage, or of a task of a stage.
pub(super) struct StageLaunch<'m> {
    pub(super) stage: i64,
    /// Number of the task; the same for all launches of a stage.
    pub(super) task: usize,
    pub(super) device: usize,
    pub(super) inputs: Vec<i64>,
    pub(super) time: Micros,
    /// Operation of errors, and its name.
    pub(super) operation: Operation<'m>,
    pub(super) name: String,
}

/// Batch size of a stage, and its device for each input of a request.
struct Turn<'m> {
    size: u64,
    /// Devices in the order of their turns.
    devices: Vec<usize>,
    operation: Operation<'m>,
}

impl Turn<'_> {
    fn device_of(&self, input: i64) -> usize {
        let launch = input / self.size as i64;
        self.devices[launch as usize % self.devices.len()]
    }
}

/// Producer or reader of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// Number of a stage.
    Stage(i64),
    /// Number of an input or output of the model.
    Port(usize),
}

/// Tensor that stages or the model's inputs and outputs pass to others, for one input.
pub(super) struct Passed {
    pub(super) from: End,
    pub(super) bytes: Bytes,
    pub(super) to: BTreeSet<End>,
}

/// Bytes that a task holds on the devices of its stage.
pub(super) struct Held<'m> {
    pub(super) stage: i64,
    pub(super) weight: Bytes,
    /// Operands and results, for one input.
    pub(super) values: Bytes,
    pub(super) operation: Operation<'m>,
    pub(super) name: String,
}

/// Devices that read a tensor, and their batch size; 0 if there is one device.
type Destination<'a> = (&'a [usize], u64);

/// One of the readers on some devices, and the batch sizes of all of them.
type Readers = (End, BTreeSet<u64>);

/// Pipeline of batches.
pub(super) struct Turns<'a, 'm> {
    machine: &'a Machine,
    certificate: &'a Certificate<'m>,
    turns: BTreeMap<i64, Turn<'m>>,
    /// Work of each device for all inputs of a request.
    work: BTreeMap<usize, Micros>,
    /// Stages whose tasks take time.
    busy: BTreeSet<i64>,
}

impl<'a, 'm> Turns<'a, 'm> {
    /// Reads the turns of stages from the launches of a request, and checks them; `None` if there is an error, so that the
    /// time of an input cannot be computed.
    pub(super) fn of(
        launches: &[StageLaunch<'m>],
        machine: &'a Machine,
        certificate: &'a Certificate<'m>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut pipeline =
            Self { machine, certificate, turns: BTreeMap::new(), work: BTreeMap::new(), busy: BTreeSet::new() };
        let mut of_task: BTreeMap<(i64, usize), Vec<&StageLaunch<'m>>> = BTreeMap::new();
        for launch in launches {
            of_task.entry((launch.stage, launch.task)).or_default().push(launch);
            *pipeline.work.entry(launch.device).or_default() += launch.time;
            if launch.time > Micros::ZERO {
                pipeline.busy.insert(launch.stage);
            }
        }
        let mut is_valid = true;
        for ((stage, _), launches) in of_task {
            match turn(launches, certificate.inputs, findings) {
                None => is_valid = false,
                Some(turn) => is_valid &= pipeline.add(stage, turn, findings),
            }
        }
        is_valid.then_some(pipeline)
    }

    /// Adds the turn of a task; false if other tasks of its stage have another one.
    fn add(&mut self, stage: i64, turn: Turn<'m>, findings: &mut Findings) -> bool {
        let Some(other) = self.turns.get(&stage) else {
            self.turns.insert(stage, turn);
            return true;
        };
        if (other.size, &other.devices) == (turn.size, &turn.devices) {
            return true;
        }
        let message = format!(
            "{} is in stage {stage}, but has other batches or devices than {} of that stage: give it the same, or a stage of \
             its own",
            describe(turn.operation),
            describe(other.operation)
        );
        findings.add(turn.operation, &message);
        false
    }

    /// Checks stages, the direction of values, and memory. Returns the time of the slowest device, link or bus for one input.
    pub(super) fn verify(
        &self,
        module: Operation<'m>,
        passed: &[Passed],
        held: &[Held<'m>],
        findings: &mut Findings,
    ) -> Micros {
        self.check_numbers(module, findings);
        self.check_devices(passed, findings);
        self.check_equal(findings);
        self.check_flow(passed, findings);
        self.check_memory(passed, held, findings);
        self.period(module, passed, findings)
    }

    /// Checks that stages are numbered without gaps, and their number, batch sizes and numbers of devices.
    fn check_numbers(&self, module: Operation<'m>, findings: &mut Findings) {
        let count = self.turns.len() as i64;
        if let Some(missing) = (0..count).find(|stage| !self.turns.contains_key(stage)) {
            let message = format!("has {count} stages, but none is stage {missing}: they are numbered from 0 on");
            findings.add(module, &message);
        }
        if let Some(most) = self.certificate.stages.filter(|&most| count > most) {
            findings.add(module, &format!("has {count} stages, but its divi.plan is for {most} at most (k)"));
        }
        for (stage, turn) in &self.turns {
            if turn.size > self.certificate.max_batch {
                let message = format!(
                    "stage {stage} takes {} inputs at once, but divi.plan is for {} at most (max_batch)",
                    turn.size, self.certificate.max_batch
                );
                findings.add(turn.operation, &message);
            }
            if turn.devices.len() as u64 > self.certificate.max_replicas {
                let message = format!(
                    "stage {stage} has {} devices, but divi.plan is for {} at most (max_replicas)",
                    turn.devices.len(),
                    self.certificate.max_replicas
                );
                findings.add(turn.operation, &message);
            }
        }
    }

    /// Checks that a device has one stage, unless devices are shared. Stages that take no time and have no operands or no
    /// readers may be anywhere.
    fn check_devices(&self, passed: &[Passed], findings: &mut Findings) {
        if self.certificate.shared_devices {
            return;
        }
        let mut ends: BTreeMap<End, [bool; 2]> = BTreeMap::new();
        for tensor in passed {
            ends.entry(tensor.from).or_default()[0] |= !tensor.to.is_empty();
            tensor.to.iter().for_each(|to| ends.entry(*to).or_default()[1] = true);
        }
        let works = |stage: &i64| self.busy.contains(stage) || ends.get(&End::Stage(*stage)) == Some(&[true, true]);
        let mut stage_of: BTreeMap<usize, i64> = BTreeMap::new();
        for (&stage, turn) in self.turns.iter().filter(|(stage, _)| works(stage)) {
            for &device in &turn.devices {
                let first = *stage_of.entry(device).or_insert(stage);
                if first != stage {
                    let message = format!(
                        "{} is in stage {stage} on {}, which has stage {first} already: a device has one stage, unless \
                         divi.plan has shared_devices",
                        describe(turn.operation),
                        self.machine.label(device)
                    );
                    findings.add(turn.operation, &message);
                }
            }
        }
    }

    /// Checks that the devices of a stage have the same memory, batch sizes, and links to the devices of other stages.
    fn check_equal(&self, findings: &mut Findings) {
        let mut used: BTreeSet<usize> = self.turns.values().flat_map(|turn| turn.devices.iter().copied()).collect();
        used.insert(self.machine.host);
        for (stage, turn) in &self.turns {
            for pair in turn.devices.windows(2) {
                let others: Vec<usize> = used.iter().copied().filter(|other| !turn.devices.contains(other)).collect();
                if let Some(what) = self.machine.difference(pair[0], pair[1], &others) {
                    let message = format!(
                        "stage {stage} is on {} and {}, which have different {what}: devices that take turns must be equal",
                        self.machine.label(pair[0]),
                        self.machine.label(pair[1])
                    );
                    findings.add(turn.operation, &message);
                }
            }
        }
    }

    /// Checks that values go to later stages.
    fn check_flow(&self, passed: &[Passed], findings: &mut Findings) {
        for tensor in passed {
            let End::Stage(from) = tensor.from else { continue };
            for to in &tensor.to {
                let End::Stage(stage) = *to else { continue };
                if stage < from {
                    let message = format!(
                        "stage {stage} reads a result of stage {from}: values only go to later stages, so exchange their \
                         numbers"
                    );
                    findings.add(self.turns[&stage].operation, &message);
                }
            }
        }
    }

    /// Checks memory: the weights of each stage once on each of its devices, and the operands and results of a batch.
    fn check_memory(&self, passed: &[Passed], held: &[Held<'m>], findings: &mut Findings) {
        for device in 0..self.machine.devices.len() {
            let on = |held: &&Held<'m>| self.turns[&held.stage].devices.contains(&device);
            let weights = held_weights(self.machine, device, held.iter().filter(on).map(|held| held.weight));
            let of_batch = |held: &Held<'m>| held.values * self.turns[&held.stage].size as f64;
            let mut needs = weights + held.iter().filter(on).map(of_batch).sum::<Bytes>();
            if device == self.machine.host {
                needs += self.held_by_ports(passed);
            }
            let memory = self.machine.devices[device].memory;
            let largest = held.iter().filter(on).max_by(|a, b| {
                let bytes = |held: &Held<'m>| held.weight + of_batch(held);
                bytes(a).total_cmp(&bytes(b))
            });
            if let Some(largest) = largest.filter(|_| exceeds(needs, memory)) {
                let message = format!(
                    "{} needs {}, most of it, {}, for '{}', has {}: {} short; move tasks to another device or reduce the batch",
                    self.machine.label(device),
                    human_bytes(needs),
                    human_bytes(largest.weight + of_batch(largest)),
                    largest.name,
                    human_bytes(memory),
                    human_bytes(needs - memory)
                );
                findings.add(largest.operation, &message);
            }
        }
    }

    /// Returns the bytes of the model's inputs and outputs, in the batches in which they move.
    fn held_by_ports(&self, passed: &[Passed]) -> Bytes {
        let ends = passed.iter().flat_map(|tensor| {
            let read = (!tensor.to.is_empty()).then_some(tensor.from);
            tensor.to.iter().copied().chain(read).map(move |end| (end, tensor.bytes))
        });
        let sizes = self.port_sizes(passed);
        ends.filter_map(|(end, bytes)| Some(bytes * *sizes.get(&end)? as f64)).sum()
    }

    /// Returns the batch sizes in which the model's inputs and outputs move: of the host's, the one that has most in common
    /// with those of the stages on the other end, and the least of equals.
    fn port_sizes(&self, passed: &[Passed]) -> BTreeMap<End, u64> {
        let mut stages: BTreeMap<End, BTreeSet<u64>> = BTreeMap::new();
        let mut meet = |port: End, other: End| {
            if let End::Port(_) = port {
                let sizes = stages.entry(port).or_default();
                sizes.extend(self.stage(other).map(|turn| turn.size));
            }
        };
        for tensor in passed {
            tensor.to.iter().for_each(|&to| {
                meet(tensor.from, to);
                meet(to, tensor.from);
            });
        }
        let host = self.machine.devices[self.machine.host].batch_sizes.iter();
        let allowed: Vec<u64> = host
            .filter_map(|&size| u64::try_from(size).ok())
            .filter(|&size| size <= self.certificate.max_batch)
            .collect();
        let best = |stages: &BTreeSet<u64>| {
            let common = |size: u64| stages.iter().map(|&other| gcd(size, other)).sum::<u64>();
            allowed.iter().copied().max_by_key(|&size| (common(size), Reverse(size))).unwrap_or(1)
        };
        stages.into_iter().map(|(port, stages)| (port, best(&stages))).collect()
    }

    fn stage(&self, end: End) -> Option<&Turn<'m>> {
        match end {
            End::Stage(stage) => self.turns.get(&stage),
            End::Port(_) => None,
        }
    }

    /// Returns the time of the slowest device, link or bus for one input. A device takes its work, what it receives, and of
    /// each tensor that it sends the longest of its transfers to the devices of a stage; with overlap, devices and links
    /// count separately.
    fn period(&self, module: Operation<'m>, passed: &[Passed], findings: &mut Findings) -> Micros {
        let inputs = self.certificate.inputs;
        let sizes = self.port_sizes(passed);
        let host = [self.machine.host];
        let place = |end: End| match self.stage(end) {
            Some(turn) => (turn.size, &turn.devices[..]),
            None => (sizes.get(&end).copied().unwrap_or(1), &host[..]),
        };
        let mut moving: BTreeMap<usize, Micros> = BTreeMap::new();
        let mut links: BTreeMap<(usize, usize), Micros> = BTreeMap::new();
        let mut buses: BTreeMap<&str, Micros> = BTreeMap::new();
        for tensor in passed {
            let (size, _) = place(tensor.from);
            // Stages on one device share a transfer; others with the same devices only at the same batch size.
            let mut readers: BTreeMap<Destination<'_>, Readers> = BTreeMap::new();
            for &to in &tensor.to {
                let (size, devices) = place(to);
                let key = if devices.len() == 1 { 0 } else { size };
                readers.entry((devices, key)).or_insert((to, BTreeSet::new())).1.insert(size);
            }
            let mut longest: BTreeMap<usize, Micros> = BTreeMap::new();
            for (to, sizes) in readers.into_values() {
                let together = sizes.into_iter().fold(size, gcd);
                let mut share: BTreeMap<(usize, usize), i64> = BTreeMap::new();
                for input in 0..inputs {
                    let on = |end: End| self.stage(end).map_or(self.machine.host, |turn| turn.device_of(input));
                    *share.entry((on(tensor.from), on(to))).or_default() += 1;
                }
                let mut sent: BTreeMap<usize, Micros> = BTreeMap::new();
                for ((from, to), count) in share.into_iter().filter(|((from, to), _)| from != to) {
                    let batch = self.machine.transfer(from, to, tensor.bytes * together as f64);
                    let Some(batch) = batch else {
                        let (here, there) = (self.machine.label(from), self.machine.label(to));
                        let message = format!(
                            "passes a tensor from {here} to {there}, but no link leads there: declare 'divi.link {here} -> \
                             {there} {{…}}'"
                        );
                        findings.add(module, &message);
                        continue;
                    };
                    let takes = batch / together as f64 * (count as f64 / inputs as f64);
                    *sent.entry(from).or_default() += takes;
                    *moving.entry(to).or_default() += takes;
                    *links.entry((from, to)).or_default() += takes;
                    if let Some(bus) = self.machine.bus(from, to) {
                        *buses.entry(bus).or_default() += takes;
                    }
                }
                for (from, takes) in sent {
                    let longest = longest.entry(from).or_default();
                    *longest = longest.max(takes);
                }
            }
            longest.into_iter().for_each(|(from, longest)| *moving.entry(from).or_default() += longest);
        }
        let work: BTreeMap<usize, Micros> =
            self.work.iter().map(|(device, work)| (*device, *work / inputs as f64)).collect();
        let busiest = buses.into_values().fold(Micros::ZERO, Micros::max);
        let devices: BTreeSet<usize> = work.keys().chain(moving.keys()).copied().collect();
        let of = |times: &BTreeMap<usize, Micros>, device: &usize| times.get(device).copied().unwrap_or_default();
        match self.certificate.pipeline_cost {
            PipelineCost::Serial => {
                devices.iter().map(|device| of(&work, device) + of(&moving, device)).fold(busiest, Micros::max)
            }
            PipelineCost::Overlap => work.into_values().chain(links.into_values()).fold(busiest, Micros::max),
        }
    }
}

/// Returns the turn of the launches of a task, which must take all inputs in order, in batches of one size, on devices that
/// take turns, in the same time.
fn turn<'m>(mut launches: Vec<&StageLaunch<'m>>, inputs: i64, findings: &mut Findings) -> Option<Turn<'m>> {
    let first_input = |launch: &StageLaunch<'m>| launch.inputs.iter().min().copied();
    launches.sort_by_key(|launch| first_input(launch));
    let first = *launches.first()?;
    let size = first.inputs.len() as i64;
    let mut wrong = |launch: &StageLaunch<'m>, message: String| {
        findings.add(launch.operation, &format!("{} {message}", launch.name));
        None
    };
    for (number, launch) in launches.iter().enumerate() {
        let next = number as i64 * size;
        let mut own = launch.inputs.clone();
        own.sort_unstable();
        if !own.iter().copied().eq(next..next + size) {
            let message = format!(
                "takes inputs {}, but launch {number} of a stage with batches of {size} takes {}: give each launch the same \
                 number of inputs, in order",
                list(&own),
                list(&(next..next + size).collect::<Vec<_>>())
            );
            return wrong(launch, message);
        }
        if exceeds(launch.time, first.time) || exceeds(first.time, launch.time) {
            let message = format!(
                "takes {} for inputs {}, but {} for the first ones: the devices of a stage must be equal",
                micros(launch.time),
                list(&own),
                micros(first.time)
            );
            return wrong(launch, message);
        }
    }
    if size * launches.len() as i64 != inputs {
        let message = format!("takes {} inputs, but a request has {inputs}", size * launches.len() as i64);
        return wrong(first, message);
    }
    let devices: Vec<usize> = launches.iter().map(|launch| launch.device).collect();
    let is_turn = |count: &usize| devices.iter().zip(&devices[*count..]).all(|(a, b)| a == b);
    let count = (1..=devices.len()).find(is_turn).unwrap_or(devices.len());
    let distinct: BTreeSet<usize> = devices[..count].iter().copied().collect();
    // A turn that is cut short at the end of a request would begin anew with the next one.
    if distinct.len() < count || !devices.len().is_multiple_of(count) {
        let message =
            "is on devices that do not take turns: each of them must have every n-th launch, and as many of a request";
        return wrong(first, message.to_owned());
    }
    Some(Turn { size: size as u64, devices: devices[..count].to_vec(), operation: first.operation })
}

/// Returns the greatest common divisor of two positive numbers.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
