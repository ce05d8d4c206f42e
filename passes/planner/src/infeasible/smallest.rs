//! Smallest change of each kind that makes a problem feasible.

use super::remedy::Remedy;
use super::trials::Trials;
use crate::model::options::Options;
use crate::model::plan::Objective;
use crate::model::problem::Problem;
use crate::model::units::{Bytes, BytesPerMicro};

/// Maximum distance of the number of inputs from the requested one.
const FEWER_INPUTS: u32 = 16;
const MORE_INPUTS: u32 = 8;

/// Number of tasks above which memory is determined only within a relative error.
const MANY_TASKS: usize = 100;
const CLOSE: f64 = 0.01;

pub(super) struct Search<'a> {
    problem: &'a Problem,
    objective: Objective,
    options: Options,
    trials: Trials,
}

/// Constraint that may be removed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Constraint {
    Pin(usize),
    Together(usize),
    NoLink(usize, usize),
}

impl<'a> Search<'a> {
    pub(super) fn new(problem: &'a Problem, objective: Objective, options: &Options) -> Self {
        let trials = Trials::new(problem, objective, options);
        // Plans of changed problems are not reported.
        let options = Options { observer: crate::Observer::default(), ..options.clone() };
        Self { problem, objective, trials, options }
    }

    /// Returns one remedy of each kind that makes the problem feasible; if there is none, one of several kinds.
    pub(super) fn remedies(mut self) -> Vec<Remedy> {
        if self.objective == Objective::Pipeline && self.problem.mtpp.is_some() {
            return Vec::new();
        }
        let (pins, groups, links) = (self.pins(), self.groups(), self.links());
        let mut found: Vec<Remedy> = Vec::new();
        for kind in [&pins, &links, &groups] {
            found.extend(self.least_of(kind, None));
        }
        found.extend(self.memory());
        found.extend(self.inputs());
        found.extend(self.batch_size());
        found.extend(self.pipeline());
        if found.is_empty() {
            found.extend(self.together(&[links, pins, groups].concat()));
        }
        found
    }

    /// Returns pins whose removal allows another device, those of tasks with the most memory first.
    fn pins(&self) -> Vec<Constraint> {
        let problem = self.problem;
        let outputs = problem.output_bytes();
        let has_choice = |node: &usize| {
            let Some(pin) = problem.nodes[*node].pin else { return false };
            let runs = |device: usize| {
                problem.nodes[*node].time.values().any(|times| times.get(device).is_some_and(Option::is_some))
            };
            (0..problem.devices.len()).any(|device| device != pin && runs(device))
        };
        let mut nodes: Vec<usize> = (0..problem.nodes.len()).filter(has_choice).collect();
        let bytes = |node: usize| problem.nodes[node].weight + problem.nodes[node].input + outputs[node];
        nodes.sort_by(|a, b| bytes(*b).total_cmp(&bytes(*a)));
        nodes.into_iter().map(Constraint::Pin).collect()
    }

    fn groups(&self) -> Vec<Constraint> {
        let lists = self.problem.colocate.iter().flatten().enumerate();
        lists.filter(|(_, nodes)| nodes.len() > 1).map(|(index, _)| Constraint::Together(index)).collect()
    }

    fn links(&self) -> Vec<Constraint> {
        let devices = 0..self.problem.devices.len();
        let pairs = devices.clone().flat_map(|from| devices.clone().map(move |to| (from, to)));
        let missing =
            pairs.filter(|(from, to)| from != to && self.problem.bandwidth[*from][*to] == Some(BytesPerMicro::ZERO));
        missing.map(|(from, to)| Constraint::NoLink(from, to)).collect()
    }

    /// Returns a small subset of constraints whose removal makes the problem feasible, maybe together with another
    /// change.
    fn least_of(&mut self, all: &[Constraint], beside: Option<&Remedy>) -> Option<Remedy> {
        if all.is_empty() || !self.helps(&given_up(all), beside) {
            return None;
        }
        if let Some(one) = all.iter().find(|one| self.helps(&given_up(&[**one]), beside)) {
            return Some(given_up(&[*one]));
        }
        // Binary search for the shortest sufficient prefix; then removes redundant constraints, last first.
        let (mut too_few, mut enough) = (1, all.len());
        while enough - too_few > 1 {
            let middle = too_few.midpoint(enough);
            if self.helps(&given_up(&all[..middle]), beside) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        let mut left = all[..enough].to_vec();
        for index in (0..left.len()).rev() {
            let mut fewer = left.clone();
            fewer.remove(index);
            if self.helps(&given_up(&fewer), beside) {
                left = fewer;
            }
        }
        Some(given_up(&left))
    }

    /// Returns a remedy that combines constraints of all kinds and memory.
    fn together(&mut self, all: &[Constraint]) -> Option<Remedy> {
        if let Some(some) = self.least_of(all, None) {
            return Some(some);
        }
        let plenty = Remedy::MemoryOfEach(self.plenty());
        let some = if self.helps(&plenty, None) { given_up(&[]) } else { self.least_of(all, Some(&plenty))? };
        let memory = self.least_memory(Bytes::ZERO, &some, Remedy::MemoryOfEach)?;
        Some(match some {
            Remedy::All(mut some) => {
                some.push(memory);
                Remedy::All(some)
            }
            one => Remedy::All(vec![one, memory]),
        })
    }

    /// Returns more memory for the device that needs the least of it, or a minimum for every device.
    fn memory(&mut self) -> Option<Remedy> {
        let nothing = given_up(&[]);
        let limited: Vec<(usize, Bytes)> =
            self.problem.devices.iter().filter_map(|device| Some((device.id, device.memory?))).collect();
        let plenty = self.plenty();
        let mut least: Option<(Bytes, Remedy)> = None;
        for &(device, memory) in &limited {
            // Once a remedy is known, other devices must need less.
            let enough = least.as_ref().map_or(plenty, |(more, _)| memory + Bytes(more.0.next_down()));
            if self.helps(&Remedy::Memory(device, enough), None)
                && let Some(remedy) = self.least_memory(memory, &nothing, |bytes| Remedy::Memory(device, bytes))
                && let Remedy::Memory(_, bytes) = remedy
                && least.as_ref().is_none_or(|(more, _)| bytes - memory < *more)
            {
                least = Some((bytes - memory, remedy));
            }
        }
        if least.is_none() && limited.len() > 1 && self.helps(&Remedy::MemoryOfEach(plenty), None) {
            return self.least_memory(Bytes::ZERO, &nothing, Remedy::MemoryOfEach);
        }
        least.map(|(_, remedy)| remedy)
    }

    /// Returns memory that suffices for all tasks and tensors on one device.
    fn plenty(&self) -> Bytes {
        let inputs = f64::from(if self.objective == Objective::Batch { self.inputs_asked() } else { 1 });
        let outputs = self.problem.output_bytes();
        let of = |(node, output): (&crate::model::problem::Node, &Bytes)| {
            node.weight + (node.input + *output + node.scratch) * inputs
        };
        let tensors: Bytes = self.problem.all_tensors().iter().map(|tensor| tensor.bytes * inputs).sum();
        rounded_up(self.problem.nodes.iter().zip(&outputs).map(of).sum::<Bytes>() + tensors + Bytes(1.0))
    }

    /// Returns the least memory, as a rounded size, that makes the problem feasible beside another change. `plenty` is
    /// sufficient.
    fn least_memory(&mut self, less: Bytes, beside: &Remedy, of: impl Fn(Bytes) -> Remedy) -> Option<Remedy> {
        let (mut too_little, mut enough) = (less, self.plenty());
        let close = if self.problem.nodes.len() > MANY_TASKS { CLOSE } else { 0.0 };
        loop {
            let middle = rounded_up(Bytes(too_little.0.midpoint(enough.0)));
            if middle <= too_little || middle >= enough || enough - too_little <= close * enough {
                break;
            }
            if self.helps(&of(middle), Some(beside)) {
                enough = middle;
            } else {
                too_little = middle;
            }
        }
        Some(of(enough)).filter(|_| enough > less)
    }

    fn inputs_asked(&self) -> u32 {
        self.options.inputs.unwrap_or(self.problem.inputs)
    }

    /// Returns the nearest feasible number of inputs.
    fn inputs(&mut self) -> Option<Remedy> {
        if self.objective != Objective::Batch {
            return None;
        }
        let asked = self.inputs_asked();
        let fewer = (asked.saturating_sub(FEWER_INPUTS).max(1)..asked).rev();
        let mut others: Vec<u32> = fewer.chain(asked + 1..=asked + MORE_INPUTS).collect();
        others.sort_by_key(|inputs| inputs.abs_diff(asked));
        others.into_iter().map(Remedy::Inputs).find(|remedy| self.helps(remedy, None))
    }

    /// Returns a batch size that all tasks have times for, but a device does not support.
    fn batch_size(&mut self) -> Option<Remedy> {
        if self.objective != Objective::Batch {
            return None;
        }
        let asked = self.inputs_asked();
        let problem = self.problem;
        let known: Vec<u32> = problem.nodes.first()?.time.keys().copied().filter(|size| *size <= asked).collect();
        let has_times = |size: u32| problem.nodes.iter().all(|node| node.time.contains_key(&size));
        let known: Vec<u32> = known.into_iter().filter(|size| has_times(*size)).collect();
        let devices = problem.devices.iter();
        let sizes = devices.flat_map(|device| {
            known.iter().filter(|size| !device.batch_sizes.contains(size)).map(|size| (device.id, *size))
        });
        let sizes: Vec<(usize, u32)> = sizes.collect();
        sizes.into_iter().map(|(device, size)| Remedy::BatchSize(device, size)).find(|remedy| self.helps(remedy, None))
    }

    /// Returns more stages, shared devices, or both.
    fn pipeline(&mut self) -> Option<Remedy> {
        if self.objective != Objective::Pipeline {
            return None;
        }
        let devices = self.problem.devices.len() as u32;
        let asked = self.options.stages.unwrap_or(devices);
        let more = (asked + 1..=devices).map(Remedy::Stages);
        let mut ways: Vec<Remedy> = more.collect();
        if !self.options.shared_devices {
            ways.push(Remedy::SharedDevices);
        }
        let most = 2 * devices.max(asked);
        let both = (asked + 1..=most).map(|stages| Remedy::All(vec![Remedy::SharedDevices, Remedy::Stages(stages)]));
        ways.extend(both);
        ways.into_iter().find(|remedy| self.helps(remedy, None))
    }

    /// Returns true if a plan is found after one change, or two.
    fn helps(&mut self, remedy: &Remedy, beside: Option<&Remedy>) -> bool {
        let (mut problem, mut options) = (self.problem.clone(), self.options.clone());
        problem.inputs = self.inputs_asked();
        for remedy in beside.into_iter().chain([remedy]) {
            remedy.apply(&mut problem, &mut options);
        }
        self.trials.is_possible(&problem, &options)
    }
}

/// Groups constraints by kind into a remedy.
fn given_up(some: &[Constraint]) -> Remedy {
    let (mut pins, mut lists, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for constraint in some {
        match *constraint {
            Constraint::Pin(node) => pins.push(node),
            Constraint::Together(list) => lists.push(list),
            Constraint::NoLink(from, to) => links.push((from, to)),
        }
    }
    let mut kinds: Vec<Remedy> = Vec::new();
    pins.sort_unstable();
    kinds.extend((!pins.is_empty()).then_some(Remedy::Unpinned(pins)));
    kinds.extend((!lists.is_empty()).then_some(Remedy::Apart(lists)));
    kinds.extend((!links.is_empty()).then_some(Remedy::Linked(links)));
    if kinds.len() == 1 { kinds.remove(0) } else { Remedy::All(kinds) }
}

/// Rounds up to at most two decimals in the unit that [`crate::model::units::human_bytes`] prints.
fn rounded_up(bytes: Bytes) -> Bytes {
    let mut unit = 1.0;
    while bytes.0 >= unit * 1024.0 && unit < 1024_f64.powi(4) {
        unit *= 1024.0;
    }
    let step = if unit == 1.0 { 1.0 } else { unit / 100.0 };
    Bytes((bytes.0 / step).ceil() * step)
}
