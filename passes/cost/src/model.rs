//! The analytic model: how long a task takes on a device of which only the peak rates are known.
//!
//! It is a roofline for each class of operators. The time of a kernel is a sum of [`Term`]s, each the time that some of its
//! operations or bytes take at the device's peak rate, times a coefficient: the reciprocal of the efficiency. Terms that
//! depend on size (waves of tiles, the depth of a product, caches) make the efficiency depend on it. A launch is a cost of
//! its own: executed eagerly, the host prepares a kernel while the device works on the one before, so that the longer of the
//! two counts; in a captured graph a small constant is left. The coefficients are fitted to measured profiles, one model for
//! each kind of device ([`crate::fit`]).
//!
//! Estimates are finite, never below the roofline of the peak rates, and never fall as the batch grows or as rates shrink.

mod json;
pub mod term;

use crate::{Class, Micros, Task, Work};
pub(crate) use json::CLASSES;
use std::collections::BTreeMap;
pub(crate) use term::Kernel;
pub use term::{Machine, Term};

/// The peak rates of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Of the element type that the task calculates in.
    pub flops_per_s: f64,
    /// Of its memory.
    pub bytes_per_s: f64,
    /// The overhead of a launch, if it is known; the model's otherwise.
    pub launch: Option<Micros>,
}

/// How kernels are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// One by one, as the host comes to them.
    Eager,
    /// All at once, from a graph that was captured before.
    Captured,
}

/// What a task's time is mostly made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Compute,
    Memory,
    Launch,
}

impl Bound {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Launch => "launch",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub micros: Micros,
    pub bound: Bound,
}

/// The model of one kind of device.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Name of the kind.
    pub kind: String,
    /// The machine that was measured.
    pub device: String,
    /// What ran on it: `PyTorch eager`.
    pub runtime: String,
    /// The rates of that machine.
    pub rates: Rates,
    pub machine: Machine,
    /// The overhead of launching the simplest kernel eagerly.
    pub eager: Micros,
    /// The overhead that a kernel of a captured graph has, where that was measured.
    pub captured: Option<Micros>,
    /// Every class but views.
    pub(crate) classes: BTreeMap<Class, Coefficients>,
}

/// What is fitted for a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coefficients {
    /// Measured times that they were fitted to; none if they are assumed.
    pub samples: usize,
    /// What the host takes for a launch while the device works, in launches of the simplest kernel.
    pub floor: f64,
    /// What a launch adds to the device's own time, in the same unit.
    pub added: f64,
    /// What a convolution's bias, a kernel of its own, adds to that.
    pub bias: f64,
    pub terms: Vec<(Term, f64)>,
}

/// The parts of a kernel's time, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    /// Operations.
    compute: f64,
    /// Operands and results passing by.
    streams: f64,
    /// Bytes that move for other reasons.
    moves: f64,
}

const MICROS: f64 = 1e6;

/// Operations of functions that are applied to another operator's results, at the peak rate: they are chains of dependent
/// instructions, not all of them multiply and add.
const EPILOGUE: f64 = 4.0;

impl Model {
    /// Reads a model that is compiled in.
    pub(crate) fn shipped(text: &str) -> Self {
        Self::from_json(text).expect("a test reads the models that are compiled in")
    }

    /// What was fitted for a class; nothing for views.
    pub fn coefficients(&self, class: Class) -> Option<&Coefficients> {
        self.classes.get(&class)
    }

    /// How long a task takes.
    ///
    /// The members of a cluster are one kernel: it is launched once and moves the cluster's bytes; what the other members
    /// calculate comes on top, as far as it is not hidden behind the bytes. A cluster takes no longer than its members one
    /// by one, and no less than any of them. Views take no time.
    pub fn time(&self, rates: &Rates, task: &Task, launch: Launch) -> Estimate {
        let members: Vec<&Work> = task.members.iter().filter(|member| member.class != Class::View).collect();
        if let [member] = members[..] {
            let kernel = Kernel::of(task, member);
            return self.finish(rates, launch, &kernel, 0.0, 0.0).at_least(roofline(rates, task));
        }
        let alone: Vec<Estimate> = members.iter().map(|member| self.alone(rates, member, launch)).collect();
        let extras: Vec<(f64, f64)> = members.iter().map(|member| self.extra(rates, member)).collect();
        // Whichever member gives the kernel its character, it takes at least as long as that one alone.
        let candidates = members.iter().zip(&alone).enumerate().map(|(index, (member, alone))| {
            let others = extras.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, extra)| extra);
            let (heavy, light) = others.fold((0.0, 0.0), |sum, extra| (sum.0 + extra.0, sum.1 + extra.1));
            let whole = self.finish(rates, launch, &Kernel::of(task, member), heavy, light);
            if whole.micros < alone.micros { *alone } else { whole }
        });
        let nothing = Estimate { micros: Micros::ZERO, bound: Bound::Launch };
        let longest = candidates.fold(nothing, |best, it| if best.micros < it.micros { it } else { best });
        let one_by_one: Micros = alone.iter().map(|estimate| estimate.micros).sum();
        let micros = if longest.micros > one_by_one { one_by_one } else { longest.micros };
        Estimate { micros, ..longest }.at_least(roofline(rates, task))
    }

    /// An operator as a task of its own.
    fn alone(&self, rates: &Rates, work: &Work, launch: Launch) -> Estimate {
        self.finish(rates, launch, &Kernel::new(work), 0.0, 0.0).at_least(roofline(rates, &Task::from(*work)))
    }

    /// What an operator adds to a kernel that another one gives its character: time that is spent anyway, and time that can
    /// hide behind the kernel's bytes.
    fn extra(&self, rates: &Rates, work: &Work) -> (f64, f64) {
        let Some(class) = self.classes.get(&work.class) else { return (0.0, 0.0) };
        let parts = class.parts(rates, &Kernel::new(work), &self.machine);
        match parts.compute + parts.moves {
            0.0 => (0.0, EPILOGUE * work.flops as f64 / flops_per_s(rates) * MICROS),
            heavy => (heavy, 0.0),
        }
    }

    fn finish(&self, rates: &Rates, launch: Launch, kernel: &Kernel<'_>, heavy: f64, light: f64) -> Estimate {
        let Some(class) = self.classes.get(&kernel.work.class) else {
            return Estimate { micros: Micros::ZERO, bound: Bound::Launch };
        };
        let parts = class.parts(rates, kernel, &self.machine);
        let compute = parts.compute + heavy;
        let memory = parts.streams.max(light) + parts.moves;
        let body = compute + memory;
        let has_bias = f64::from(u8::from(kernel.has_bias()));
        let (overhead, micros) = match (launch, self.captured) {
            (Launch::Captured, Some(captured)) => {
                let overhead = rates.launch.unwrap_or(captured).0.max(0.0) * (1.0 + has_bias);
                (overhead, overhead + body)
            }
            _ => {
                let unit = rates.launch.unwrap_or(self.eager).0.max(0.0);
                let (floor, added) = (class.floor * unit, (class.added + class.bias * has_bias) * unit);
                (floor.max(added), overlap(floor, added + body))
            }
        };
        let bound = match () {
            () if overhead >= body => Bound::Launch,
            () if compute >= memory => Bound::Compute,
            () => Bound::Memory,
        };
        Estimate { micros: Micros(micros), bound }
    }
}

impl Coefficients {
    fn parts(&self, rates: &Rates, kernel: &Kernel<'_>, machine: &Machine) -> Parts {
        let mut parts = Parts::default();
        for &(term, coefficient) in &self.terms {
            let amount = coefficient * term.amount(kernel, machine) * MICROS;
            match term {
                _ if term.is_compute() => parts.compute += amount / flops_per_s(rates),
                Term::Read | Term::Weights | Term::Written | Term::Bytes | Term::Spill => {
                    parts.streams += amount / bytes_per_s(rates);
                }
                _ => parts.moves += amount / bytes_per_s(rates),
            }
        }
        parts
    }
}

impl Estimate {
    fn at_least(self, (micros, bound): (f64, Bound)) -> Self {
        if self.micros.0 < micros { Self { micros: Micros(micros), bound } } else { self }
    }
}

/// What no device with these rates can do in less, and which rate decides.
fn roofline(rates: &Rates, task: &Task) -> (f64, Bound) {
    let compute = task.flops() as f64 / flops_per_s(rates) * MICROS;
    let memory = (task.read as f64 + task.weights as f64 + task.written as f64) / bytes_per_s(rates) * MICROS;
    if compute >= memory { (compute, Bound::Compute) } else { (memory, Bound::Memory) }
}

/// Rates that are no rates count as the slowest there is: estimates stay finite.
fn flops_per_s(rates: &Rates) -> f64 {
    rates.flops_per_s.max(1.0)
}

fn bytes_per_s(rates: &Rates) -> f64 {
    rates.bytes_per_s.max(1.0)
}

/// The time of two things that run side by side: the longer one, and a little more where they are about as long (the norm of
/// the two with exponent 8).
pub(crate) fn overlap(a: f64, b: f64) -> f64 {
    let (short, long) = if a < b { (a, b) } else { (b, a) };
    if short <= 0.0 {
        return long;
    }
    let square = |x: f64| x * x;
    long * (1.0 + square(square(square(short / long)))).sqrt().sqrt().sqrt()
}

#[cfg(test)]
mod tests;
