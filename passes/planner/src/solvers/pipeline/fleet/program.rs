//! Integer program of pipelines on different devices.
//!
//! `x[v][d]` is one if task v is on device d. Without shared devices, devices have an order that all values follow. In
//! a given sequence of devices, as in MTPP's program, no value goes from a suffix of the sequence to the complementary
//! prefix. Each distinct sequence is a separate program; if there are too many, the order of devices that are not equal
//! is a decision, too: `before[d][e]`.

use std::ops::ControlFlow;
use std::time::Instant;

use super::{Fleet, Pipe};
use crate::mip::{self, Column, Event, Limits, Program};
use crate::model::error::Error;
use crate::model::observer::Observer;
use crate::model::options::PipelineCost;
use crate::model::units::{Bytes, Micros};
use crate::solvers::pipeline::milp::SLACK;

/// Limit on the number of rows.
const MOST_ROWS: usize = 150_000;
/// Programs with fewer rows are built and relaxed in a fraction of a second.
const FEW_ROWS: usize = 8_000;

/// Cap of coefficients, in units of the incumbent's value: larger ones exceed every useful cost and harm numerics.
const TOO_LONG: f64 = 2.0;

/// Result of a program: a better pipeline, if there is one, and lower bounds.
pub(super) struct Found {
    pub(super) better: Option<(Micros, Pipe)>,
    /// Bound by the solver, not verified.
    pub(super) claimed: Micros,
    pub(super) verified: Micros,
    /// True if it is verified that nothing is better than the given value.
    pub(super) is_none: bool,
}

impl Found {
    /// Returns the value of the better pipeline; infinite if there is none.
    pub(super) fn value(&self) -> Micros {
        self.better.as_ref().map_or(Micros::INFINITY, |(value, _)| *value)
    }
}

impl Fleet {
    /// Returns true if the integer program is small enough, given a share of the effort.
    pub(super) fn is_provable(&self, share: f64) -> bool {
        let edges: usize = self.tensors.iter().map(|tensor| tensor.readers.len()).sum();
        let most = ((MOST_ROWS as f64 * share) as usize).max(FEW_ROWS);
        self.devices > 1 && edges * self.devices * (self.devices + 2) <= most
    }

    /// Searches for pipelines better than a value, with devices in one sequence, or in any. Bounds are capped at the
    /// value.
    pub(super) fn in_turn(
        &self,
        sequence: Option<&[usize]>,
        value: Micros,
        least: Micros,
        limits: &Limits,
        observer: &Observer,
    ) -> Result<Found, Error> {
        let began = Instant::now();
        let most = value * (1.0 - SLACK);
        let formulation = Formulation::new(self, sequence, value, least.min(most), most);
        let mut better: Option<(Micros, Pipe)> = None;
        let mut see = |values: &[f64]| {
            let Some(pipe) = self.pipe_on(&formulation.devices(values)) else { return };
            let found = self.value(&pipe);
            if found < better.as_ref().map_or(value, |(value, _)| *value) {
                observer.plan(found);
                better = Some((found, pipe));
            }
        };
        let outcome = formulation.program.prove(&limits.left_since(began), None, &mut |event| {
            match event {
                Event::Solution(values) => see(values),
                Event::Bound(bound) => observer.bound(((bound - SLACK) * value).min(value), "exact"),
                Event::SolutionRequest(_) => {}
            }
            ControlFlow::Continue(())
        })?;
        outcome.values.iter().for_each(|values| see(values));
        let is_none = outcome.verified == f64::INFINITY;
        // Plans that are not solutions cost more than `most`.
        let claimed = ((outcome.bound - SLACK) * value).clamp(Micros::ZERO, most);
        let verified = mip::rounded(outcome.verified.clamp(0.0, most / value)) * value;
        Ok(Found { better, claimed, verified, is_none })
    }
}

/// The program and its variables.
struct Formulation<'a> {
    fleet: &'a Fleet,
    program: Program,
    scale: Micros,
    bottleneck: Column,
    /// By task and device.
    places: Vec<Vec<Column>>,
}

impl<'a> Formulation<'a> {
    /// Builds the program. The bottleneck is in units of `scale`, between `least` and `most`.
    fn new(fleet: &'a Fleet, sequence: Option<&[usize]>, scale: Micros, least: Micros, most: Micros) -> Self {
        let mut program = Program::default();
        let bottleneck = program.column(least / scale, most / scale, 1.0);
        let never = program.column(0.0, 0.0, 0.0);
        let mut places = Vec::with_capacity(fleet.tasks());
        for task in 0..fleet.tasks() {
            let takes_part =
                |device: usize| fleet.is_port(task) || sequence.is_none_or(|sequence| sequence.contains(&device));
            let mut place = |device: usize| {
                if fleet.times(task)[device] <= most && takes_part(device) { program.binary() } else { never }
            };
            let row: Vec<Column> = (0..fleet.devices).map(&mut place).collect();
            program.exactly(1.0, row.iter().map(|column| (*column, 1.0)));
            places.push(row);
        }
        let mut made = Self { fleet, program, scale, bottleneck, places };
        match sequence {
            Some(sequence) => made.follow(&[sequence.to_vec()]),
            None if fleet.shared => {}
            None => made.take_turns(),
        }
        match fleet.cost {
            PipelineCost::Serial => made.serial(),
            PipelineCost::Overlap => made.overlap(),
        }
        made.buses();
        made.memory();
        made.colocated();
        made
    }

    /// Returns each task's device in a solution.
    fn devices(&self, values: &[f64]) -> Vec<usize> {
        let most = |row: &Vec<Column>| {
            let shares = row.iter().map(|column| column.of(values)).enumerate();
            shares.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(device, _)| device)
        };
        self.places.iter().map(most).collect()
    }

    /// Adds rows so that no value goes backwards in a sequence of devices.
    fn follow(&mut self, rows: &[Vec<usize>]) {
        for task in 0..self.fleet.working {
            for &before in &self.fleet.before[task] {
                let (from, to) = (&self.places[before as usize], &self.places[task]);
                for (row, at) in rows.iter().flat_map(|row| (1..row.len()).map(move |at| (row, at))) {
                    let late = row[at..].iter().map(|device| (from[*device], 1.0));
                    let early = row[..at].iter().map(|device| (to[*device], 1.0));
                    self.program.at_most(1.0, late.chain(early));
                }
            }
        }
    }

    /// Adds a linear order of devices that values follow, in which equal devices are ordered by index; and limits the
    /// used devices to the number of stages.
    fn take_turns(&mut self) {
        let (fleet, devices) = (self.fleet, self.fleet.devices);
        let equals = fleet.equals();
        let of = |first: usize| -> Vec<usize> { (0..devices).filter(|device| equals[*device] == first).collect() };
        self.follow(&(0..devices).map(of).collect::<Vec<_>>());
        let order = self.order(&equals);
        let edges =
            (0..fleet.working).flat_map(|task| fleet.before[task].iter().map(move |before| (*before as usize, task)));
        for (before, task) in edges {
            for (one, other) in (0..devices).flat_map(|one| (0..devices).map(move |other| (one, other))) {
                if equals[one] != equals[other] {
                    let (is_before, when) = order[one * devices + other];
                    // One direction, or the other with the complementary value.
                    let (sign, most) = if when { (-1.0, 1.0) } else { (1.0, 2.0) };
                    let (from, to) = (self.places[before][one], self.places[task][other]);
                    self.program.at_most(most, [(from, 1.0), (to, 1.0), (is_before, sign)]);
                }
            }
        }
        if fleet.k < devices {
            let used: Vec<Column> = (0..devices).map(|_| self.program.column(0.0, 1.0, 0.0)).collect();
            for row in &self.places[..fleet.working] {
                for (place, used) in row.iter().zip(&used) {
                    self.program.at_least(0.0, [(*used, 1.0), (*place, -1.0)]);
                }
            }
            self.program.at_most(fleet.k as f64, used.into_iter().map(|used| (used, 1.0)));
        }
    }

    /// Returns for each pair of devices a binary, and the value of it for which the first precedes the second.
    fn order(&mut self, equals: &[usize]) -> Vec<(Column, bool)> {
        let devices = self.fleet.devices;
        let always = self.program.column(1.0, 1.0, 0.0);
        let mut order = vec![(always, true); devices * devices];
        for one in 0..devices {
            for other in one + 1..devices {
                let column = if equals[one] == equals[other] { always } else { self.program.binary() };
                order[one * devices + other] = (column, true);
                order[other * devices + one] = (column, false);
            }
        }
        // Transitivity: excluding cycles of three excludes all cycles.
        for one in 0..devices {
            for other in (0..devices).filter(|other| *other != one) {
                for third in (0..devices).filter(|third| *third > one && *third != other && other > one) {
                    let circle = [(one, other), (other, third), (third, one)];
                    let (mut terms, mut most) = (Vec::new(), 2.0);
                    for (column, when) in circle.map(|(from, to)| order[from * devices + to]) {
                        terms.push((column, if when { 1.0 } else { -1.0 }));
                        most -= if when { 0.0 } else { 1.0 };
                    }
                    self.program.at_most(most, terms);
                }
            }
        }
        order
    }

    /// Serial cost: a device computes, receives and sends in sequence.
    fn serial(&mut self) {
        let fleet = self.fleet;
        for device in 0..fleet.devices {
            let mut load = self.work(device);
            for tensor in &fleet.tensors {
                let gets = self.program.column(0.0, f64::INFINITY, 0.0);
                let hands = self.program.column(0.0, f64::INFINITY, 0.0);
                load.extend([(gets, 1.0), (hands, 1.0)]);
                for &reader in &tensor.readers {
                    let (maker, reader) = (tensor.producer as usize, reader as usize);
                    let way = |other: usize, comes: bool| {
                        let (from, to) = if comes { (other, device) } else { (device, other) };
                        let load = if comes {
                            fleet.arrival(tensor.bytes, from, to)
                        } else {
                            fleet.departure(tensor.bytes, from, to)
                        };
                        let time = load / self.scale;
                        if time.is_finite() { time.min(TOO_LONG) } else { time }
                    };
                    let (gets_it, hands_it) = ((gets, maker, reader, true), (hands, reader, maker, false));
                    for (column, elsewhere, here, comes) in [gets_it, hands_it] {
                        self.program.crosses(
                            column,
                            &self.places[elsewhere],
                            self.places[here][device],
                            device,
                            |other| way(other, comes),
                        );
                    }
                }
            }
            self.at_most_the_bottleneck(load);
        }
    }

    /// Overlapping cost: devices compute while links transfer.
    fn overlap(&mut self) {
        let fleet = self.fleet;
        for device in 0..fleet.devices {
            let work = self.work(device);
            self.at_most_the_bottleneck(work);
            for to in (0..fleet.devices).filter(|to| *to != device) {
                let load = self.carried(device, to, |bytes| fleet.link_load(bytes, device, to));
                self.at_most_the_bottleneck(load);
            }
        }
    }

    /// Transfers on one bus add up.
    fn buses(&mut self) {
        let (fleet, devices) = (self.fleet, self.fleet.devices);
        for bus in 0..fleet.buses {
            let pairs = (0..devices * devices).filter(|pair| fleet.bus[*pair] == Some(bus));
            let load = pairs
                .flat_map(|pair| {
                    let (from, to) = (pair / devices, pair % devices);
                    self.carried(from, to, |bytes| fleet.move_time(bytes, from, to))
                })
                .collect();
            self.at_most_the_bottleneck(load);
        }
    }

    /// Returns the load of transfers from one device to another.
    fn carried(&mut self, from: usize, to: usize, load_of: impl Fn(Bytes) -> Micros) -> Vec<(Column, f64)> {
        let fleet = self.fleet;
        let mut load = Vec::new();
        for tensor in &fleet.tensors {
            let time = load_of(tensor.bytes) / self.scale;
            let carries = self.program.column(0.0, 1.0, 0.0);
            for &reader in &tensor.readers {
                let (makes, reads) = (self.places[tensor.producer as usize][from], self.places[reader as usize][to]);
                self.program.at_most(1.0, [(makes, 1.0), (reads, 1.0), (carries, -1.0)]);
            }
            if time.is_finite() {
                load.push((carries, time.min(TOO_LONG)));
            } else {
                self.program.fix(carries, 0.0);
            }
        }
        load
    }

    fn work(&self, device: usize) -> Vec<(Column, f64)> {
        let time = |task: usize| self.fleet.times(task)[device] / self.scale;
        (0..self.fleet.tasks()).map(|task| (self.places[task][device], time(task).min(TOO_LONG))).collect()
    }

    fn at_most_the_bottleneck(&mut self, mut load: Vec<(Column, f64)>) {
        load.push((self.bottleneck, -1.0));
        self.program.at_most(0.0, load);
    }

    fn colocated(&mut self) {
        for (task, others) in self.fleet.colocated.iter().enumerate() {
            for other in others.iter().map(|other| *other as usize).filter(|other| *other > task) {
                for device in 0..self.fleet.devices {
                    self.program.exactly(0.0, [(self.places[task][device], 1.0), (self.places[other][device], -1.0)]);
                }
            }
        }
    }

    fn memory(&mut self) {
        let fleet = self.fleet;
        for (device, capacity) in fleet.capacity.iter().enumerate().filter(|(_, capacity)| capacity.is_finite()) {
            let unit = capacity.max(Bytes(1.0));
            let held = (0..fleet.tasks()).map(|task| (self.places[task][device], fleet.held(task, device) / unit));
            self.program.at_most(*capacity / unit, held);
        }
    }
}

impl Program {
    /// `column` is at least the transfer time from the device of the other end, if this end is `here`; pairs without a
    /// link are excluded.
    fn crosses(
        &mut self,
        column: Column,
        elsewhere: &[Column],
        here: Column,
        device: usize,
        way: impl Fn(usize) -> f64,
    ) {
        let others = (0..elsewhere.len()).filter(|other| *other != device);
        let (mut terms, mut longest) = (vec![(column, 1.0)], 0.0_f64);
        for other in others {
            let time = way(other);
            if time.is_infinite() {
                self.at_most(1.0, [(elsewhere[other], 1.0), (here, 1.0)]);
                continue;
            }
            longest = longest.max(time);
            terms.push((elsewhere[other], -time));
        }
        terms.push((here, -longest));
        self.at_least(-longest, terms);
    }
}
