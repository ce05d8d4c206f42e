//! Replicates one host's plan: the usual manual method before planning a cluster as a whole (DiviML VI, "single node").
//!
//! The network is divided into equal parts, as many as there are hosts, and each host runs its part as if it were
//! alone. If a host has memory for more, there are fewer and larger parts, each on several hosts that share the inputs;
//! in the extreme, every host has the whole network and a share of the inputs. All numbers of parts are tried.
//! Identical parts on identical hosts are planned once.
//!
//! With any number of launches, parts of the network need not take turns: micro-batches pass through them. Then the hosts
//! are divided into equal sets, each of which runs the whole network for a share of the inputs. Without hosts, equal
//! devices are divided.

mod part;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::bounds::device_classes;
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::{Batch, LaunchRule, Limit, Objective, Schedule};
use crate::model::problem::Problem;
use crate::model::units::Micros;
use crate::solvers::baseline;
use crate::solvers::search::batch::greatest_common_divisor;
use crate::solvers::timing;
use crate::solvers::{Solution, Solver};

/// Returns the best replicated plan over all numbers of parts.
pub(crate) fn replicated(
    problem: &Problem,
    objective: Objective,
    options: &Options,
    solve_part: Solver,
) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let ways = Ways::new(problem, &instance);
    best_of(ways.copies.iter().map(|copies| searched(&ways, *copies, options, solve_part)))
}

/// One number of parts and copies.
#[derive(Clone, Debug)]
pub struct Way {
    /// Number of parts of the network.
    pub parts: usize,
    /// Number of hosts that share the inputs of each part.
    pub copies: usize,
    /// Makespan.
    pub value: Result<Micros, Error>,
}

/// Evaluates every number of parts and copies.
pub(crate) fn every_way(problem: &Problem, options: &Options, solve_part: Solver) -> Result<Vec<Way>, Error> {
    let instance = Instance::new(problem, Objective::Batch)?;
    let ways = Ways::new(problem, &instance);
    let value = |copies: &usize| {
        let schedule = searched(&ways, *copies, options, solve_part);
        let value = schedule.map(|schedule| schedule.value());
        Way { parts: ways.machines.len() / copies, copies: *copies, value }
    };
    Ok(ways.copies.iter().map(value).collect())
}

/// Plans with `copies` copies of each part, with a search on the hosts.
fn searched(ways: &Ways<'_>, copies: usize, options: &Options, solve_part: Solver) -> Result<Schedule, Error> {
    // Each way has a first part, a last part, and equal ones between them.
    let solves = 3.0 * ways.copies.len() as f64;
    let limit = match options.limit {
        Some(Limit::Seconds(seconds)) => Some(Limit::Seconds(seconds / solves)),
        limit => limit,
    };
    // Plans of parts are not reported.
    let options = Options { limit, inputs: None, observer: Observer::default(), ..options.clone() };
    ways.way(copies, &|part| solve_part(part, Objective::Batch, &options).map(|solution| solution.schedule))
}

/// Returns the best replicated plan as part of a portfolio: `None` if the problem has no hosts, or nothing fits. With a
/// time limit, hosts are planned by baselines only, which the limit may stop.
pub(crate) fn beside_others(
    problem: &Problem,
    instance: &Instance,
    options: &Options,
    may_stop: bool,
    solve_part: Solver,
) -> Option<Schedule> {
    let ways = Ways::new(problem, instance);
    if ways.machines.len() < 2 {
        return None;
    }
    let since = Instant::now();
    let limit = || options.left_since(since).limit.filter(|_| may_stop);
    let listed = |part: &Problem| baseline::best_within(part, Objective::Batch, limit()).map(|(schedule, _)| schedule);
    let best = match options.limit {
        Some(Limit::Seconds(_)) => best_of(ways.copies.iter().map(|copies| ways.way(*copies, &listed))),
        _ => best_of(ways.copies.iter().map(|copies| searched(&ways, *copies, options, solve_part))),
    };
    best.ok().map(|best| best.schedule)
}

/// Returns the number of copies with the best plan of any number of launches, and that plan: quickly, for a longer search
/// with that number. `None` if there is one set of devices only, or nothing fits.
pub(crate) fn best_copies(
    problem: &Problem,
    instance: &Instance,
    solve_part: &impl Fn(&Problem) -> Result<Schedule, Error>,
) -> Option<(usize, Schedule)> {
    let ways = Ways::new(problem, instance);
    let several = ways.copies.iter().filter(|copies| **copies > 1);
    let found = several.filter_map(|copies| Some((*copies, ways.way(*copies, solve_part).ok()?)));
    found.min_by(|(_, a), (_, b)| a.value().total_cmp(&b.value()))
}

/// Plans with a number of copies.
pub(crate) fn with_copies(
    problem: &Problem,
    instance: &Instance,
    copies: usize,
    solve_part: &impl Fn(&Problem) -> Result<Schedule, Error>,
) -> Result<Schedule, Error> {
    Ways::new(problem, instance).way(copies, solve_part)
}

/// Returns equal sets of devices, as many as possible: each has the same number of devices of each class.
fn alike(instance: &Instance) -> Vec<Vec<usize>> {
    let class_of = device_classes(instance);
    let classes = class_of.iter().max().map_or(0, |last| last + 1);
    let of_class = |class: usize| (0..instance.devices()).filter(|device| class_of[*device] == class).collect();
    let members: Vec<Vec<usize>> = (0..classes).map(of_class).collect();
    let sets = members.iter().fold(0, |common, members| greatest_common_divisor(common, members.len() as u32)) as usize;
    let set = |set: usize| {
        let share = |members: &Vec<usize>| members.chunks(members.len() / sets).nth(set).map(<[usize]>::to_vec);
        let mut devices: Vec<usize> = members.iter().filter_map(share).flatten().collect();
        devices.sort_unstable();
        devices
    };
    (0..sets).map(set).collect()
}

/// Returns the best schedule, or the first error.
fn best_of(found: impl Iterator<Item = Result<Schedule, Error>>) -> Result<Solution, Error> {
    let mut best: Option<Schedule> = None;
    let mut failure = None;
    for found in found {
        match found {
            Ok(schedule) => {
                if best.as_ref().is_none_or(|best| schedule.value() < best.value()) {
                    best = Some(schedule);
                }
            }
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let none = || Error::NotFound("no node holds its part of the network".to_owned());
    let schedule = best.ok_or_else(|| failure.unwrap_or_else(none))?;
    Ok(Solution { schedule, bound: None })
}

/// Hosts of a cluster, and the possible numbers of copies.
struct Ways<'a> {
    problem: &'a Problem,
    instance: &'a Instance,
    /// Devices of each host; one host with all devices by default.
    machines: Vec<Vec<usize>>,
    /// Possible numbers of hosts that share the inputs of a part.
    copies: Vec<usize>,
}

impl<'a> Ways<'a> {
    fn new(problem: &'a Problem, instance: &'a Instance) -> Self {
        let by_default = || match instance.launches() {
            LaunchRule::One => vec![(0..instance.devices()).collect()],
            LaunchRule::Many => alike(instance),
        };
        let machines = problem.machines.clone().filter(|machines| !machines.is_empty()).unwrap_or_else(by_default);
        let inputs = instance.inputs() as usize;
        let divides = |copies: &usize| machines.len().is_multiple_of(*copies) && inputs.is_multiple_of(*copies);
        let copies = (1..=machines.len()).filter(divides).collect();
        Self { problem, instance, machines, copies }
    }

    /// Converts a proof of infeasibility on one host: several hosts may still suffice.
    fn not_proven(&self, error: Error) -> Error {
        if self.machines.len() > 1 { error.unproven("a node has no room for its part of the network:") } else { error }
    }

    /// Returns true if a task is a port, where inputs come from or outputs go: pinned, a source or sink, and of zero
    /// duration for the whole queue. Ports are placed on their own device, not on a part's host.
    fn is_port(&self, task: usize) -> bool {
        let node = &self.problem.nodes[task];
        let is_end = self.instance.predecessors(task).is_empty() || self.instance.successors(task).is_empty();
        let is_free = |pin: usize| self.instance.time_at(task, pin, self.instance.inputs()) == Some(Micros::ZERO);
        is_end && self.machines.len() > 1 && node.pin.is_some_and(is_free)
    }

    /// Returns the parts of the network, and for each the sets of devices that share its inputs.
    fn parts(&self, copies: usize) -> Vec<(Vec<usize>, Vec<Vec<usize>>)> {
        let sets = self.machines.len() / copies;
        match self.instance.launches() {
            LaunchRule::One => {
                let parts = part::cut(self.instance, sets);
                parts.into_iter().zip(self.machines.chunks(copies).map(<[Vec<usize>]>::to_vec)).collect()
            }
            LaunchRule::Many => {
                vec![(self.instance.order().to_vec(), self.machines.chunks(sets).map(<[Vec<usize>]>::concat).collect())]
            }
        }
    }

    /// Plans each part on `copies` sets of devices that share its inputs.
    fn way(&self, copies: usize, solve: &impl Fn(&Problem) -> Result<Schedule, Error>) -> Result<Schedule, Error> {
        let share = self.instance.inputs() / copies as u32;
        let mut known: BTreeMap<String, Schedule> = BTreeMap::new();
        let mut launches: Vec<Batch> = Vec::new();
        let mut begin = Micros::ZERO;
        for (mut tasks, machines) in self.parts(copies) {
            tasks.retain(|task| !self.is_port(*task));
            // There may be more hosts than tasks.
            if tasks.is_empty() {
                continue;
            }
            let mut longest = Micros::ZERO;
            for (copy, devices) in machines.iter().enumerate() {
                let part = part::problem(self.problem, &tasks, devices, share)?;
                let text = part.write();
                let schedule = match known.get(&text) {
                    Some(schedule) => schedule.clone(),
                    None => solve(&part).map_err(|error| self.not_proven(error))?,
                };
                longest = longest.max(schedule.value());
                for launch in timing::launches(&schedule) {
                    launches.push(Batch {
                        node: tasks[launch.node],
                        device: devices[launch.device],
                        inputs: launch.inputs.iter().map(|input| input + copy as u32 * share).collect(),
                        start: launch.start + begin,
                    });
                }
                known.insert(text, schedule);
            }
            begin += longest;
        }
        for port in (0..self.instance.tasks()).filter(|task| self.is_port(*task)) {
            let device = self.problem.nodes[port].pin.unwrap_or(0);
            let start = if self.instance.predecessors(port).is_empty() { Micros::ZERO } else { begin };
            launches.push(Batch { node: port, device, inputs: (0..self.instance.inputs()).collect(), start });
        }
        let makespan = timing::retime(self.instance, &mut launches);
        let makespan = makespan.filter(|_| self.instance.fits_launches(&launches));
        let misfit = || Error::NotFound("nodes that are planned apart do not fit together".to_owned());
        Ok(Schedule::Batch { batches: launches, makespan: makespan.ok_or_else(misfit)? })
    }
}
