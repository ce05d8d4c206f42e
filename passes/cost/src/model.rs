//! Analytic cost model: time of a task on a device, given the device's peak rates.
//!
//! Each class of operators has an extended roofline. The time of a kernel is a sum of [`Term`]s: the time of some of its
//! operations or bytes at the device's peak rate, times a coefficient, the reciprocal of the efficiency. Terms that depend on
//! size (waves of tiles, depth of a product, caches) model its influence on the efficiency. Launches are modeled separately:
//! in eager execution the host prepares a kernel while the device runs the previous one, so that the longer of both
//! determines the time; in a captured graph a small constant remains. The coefficients are fitted to measured profiles, one
//! model per kind of device ([`crate::fit`]).
//!
//! Estimates are finite, at least the roofline of the peak rates, and monotone: they do not decrease with the batch size and
//! do not increase with the rates.

mod json;
pub mod term;

use crate::{Class, Micros, Task, Work};
pub(crate) use json::CLASSES;
use std::collections::BTreeMap;
pub(crate) use term::{Kernel, is_elementwise};
pub use term::{Machine, Term};

/// Peak rates of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Operations per second in the element type of the task.
    pub flops_per_s: f64,
    /// Memory bandwidth.
    pub bytes_per_s: f64,
    /// Overhead of a launch; `None` for the model's own.
    pub launch: Option<Micros>,
    /// Threads that reach the rates together.
    pub threads: u32,
}

/// Launch mode of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// The host launches each kernel.
    Eager,
    /// Kernels are launched together, as a captured graph.
    Captured,
}

/// Bottleneck of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Operations.
    Compute,
    /// Memory traffic.
    Memory,
    /// Launch overhead.
    Launch,
}

impl Bound {
    /// Returns the name in `divi.bound`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Launch => "launch",
        }
    }
}

/// Predicted time of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Time.
    pub micros: Micros,
    /// Bottleneck.
    pub bound: Bound,
}

/// Cost model of one kind of device.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Name of the kind.
    pub kind: String,
    /// Machine that was measured.
    pub device: String,
    /// Runtime that was measured: `PyTorch eager`.
    pub runtime: String,
    /// Peak rates of that machine.
    pub rates: Rates,
    /// Properties that the terms depend on.
    pub machine: Machine,
    /// Overhead of an eager launch of an elementwise kernel, the unit of launches.
    pub eager: Micros,
    /// Overhead of a kernel in a captured graph, if it was measured.
    pub captured: Option<Micros>,
    /// Coefficients of all classes except views.
    pub(crate) classes: BTreeMap<Class, Coefficients>,
}

/// Coefficients of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coefficients {
    /// Number of fitted samples; 0 for prior coefficients.
    pub samples: usize,
    /// Time of a launch on the host, which overlaps with the device's work; in eager launches.
    pub floor: f64,
    /// Time that a launch adds to the device's work; in eager launches.
    pub added: f64,
    /// Time that the bias of a convolution, a separate kernel, adds to it; in eager launches.
    pub bias: f64,
    /// Terms with their coefficients.
    pub terms: Vec<(Term, f64)>,
}

/// Components of a kernel's time, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    /// Operations.
    compute: f64,
    /// Traffic of operands and results.
    streams: f64,
    /// Other memory traffic.
    moves: f64,
}

const MICROS: f64 = 1e6;

/// Slowdown of the operations of an epilogue relative to the peak rate: they are chains of dependent instructions, and not
/// all are FMAs.
const EPILOGUE: f64 = 4.0;

impl Model {
    /// Reads a model that is compiled in.
    pub(crate) fn shipped(text: &str) -> Self {
        Self::from_json(text).expect("a test reads the models that are compiled in")
    }

    /// Returns the coefficients of a class; `None` for views.
    pub fn coefficients(&self, class: Class) -> Option<&Coefficients> {
        self.classes.get(&class)
    }

    /// Returns the time of a task.
    ///
    /// A cluster is one kernel: it is launched once and moves the cluster's bytes. The operations of members other than the
    /// dominant one are added, as far as they do not overlap with memory traffic. The time of a cluster is at most the sum and
    /// at least the maximum of its members' times. Views take no time.
    pub fn time(&self, rates: &Rates, task: &Task, launch: Launch) -> Estimate {
        let members: Vec<&Work> = task.members.iter().filter(|member| member.class != Class::View).collect();
        if let [member] = members[..] {
            let kernel = Kernel::of(task, member);
            return self.finish(rates, launch, &kernel, 0.0, 0.0).at_least(self.roofline(rates, task));
        }
        let alone: Vec<Estimate> = members.iter().map(|member| self.alone(rates, member, launch)).collect();
        let extras: Vec<(f64, f64)> = members.iter().map(|member| self.extra(rates, member)).collect();
        // Coefficients of a class with a term for epilogues were fitted to whole clusters that it dominates.
        let main = task.main().filter(|main| self.classes.get(&main.class).is_some_and(|it| it.has(Term::Epilogue)));
        // Otherwise, each member is tried as the dominant one. The kernel takes at least as long as each member alone.
        let candidates = members.iter().zip(&alone).enumerate().map(|(index, (member, alone))| {
            let others = extras.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, extra)| extra);
            let (heavy, light) = others.fold((0.0, 0.0), |sum, extra| (sum.0 + extra.0, sum.1 + extra.1));
            let whole = match main {
                None => self.finish(rates, launch, &Kernel::of(task, member), heavy, light),
                Some(main) if std::ptr::eq(main, *member) => {
                    self.finish(rates, launch, &Kernel::of(task, main), heavy, 0.0)
                }
                Some(_) => *alone,
            };
            if whole.micros < alone.micros { *alone } else { whole }
        });
        let zero = Estimate { micros: Micros::ZERO, bound: Bound::Launch };
        let longest = candidates.fold(zero, |longest, it| if longest.micros < it.micros { it } else { longest });
        let unfused: Micros = alone.iter().map(|estimate| estimate.micros).sum();
        let micros = if longest.micros > unfused { unfused } else { longest.micros };
        Estimate { micros, ..longest }.at_least(self.roofline(rates, task))
    }

    /// Returns the lower bound on the time of a task at the peak rates, and the rate that determines it. Bytes that fit into the caches
    /// may not be read from memory.
    fn roofline(&self, rates: &Rates, task: &Task) -> (f64, Bound) {
        let operations: f64 = task.members.iter().map(|member| Kernel::new(member).fewest_operations()).sum();
        let compute = operations / flops_per_s(rates) * MICROS;
        let bytes = task.read as f64 + task.weights as f64 + task.written as f64 - self.machine.cache;
        let memory = bytes.max(0.0) / bytes_per_s(rates) * MICROS;
        if compute >= memory { (compute, Bound::Compute) } else { (memory, Bound::Memory) }
    }

    /// Returns the time of an operator as a separate task.
    fn alone(&self, rates: &Rates, work: &Work, launch: Launch) -> Estimate {
        self.finish(rates, launch, &Kernel::new(work), 0.0, 0.0).at_least(self.roofline(rates, &Task::from(*work)))
    }

    /// Returns the time that an operator adds to a kernel dominated by another: time that does not overlap with the kernel's
    /// memory traffic, and time that does.
    fn extra(&self, rates: &Rates, work: &Work) -> (f64, f64) {
        let Some(class) = self.classes.get(&work.class) else { return (0.0, 0.0) };
        if is_elementwise(work.class) {
            return (0.0, EPILOGUE * work.flops as f64 / flops_per_s(rates) * MICROS);
        }
        let parts = class.parts(rates, &Kernel::new(work), &self.machine);
        match parts.compute + parts.moves {
            0.0 => (0.0, EPILOGUE * work.flops as f64 / flops_per_s(rates) * MICROS),
            heavy => (heavy, 0.0),
        }
    }

    /// Returns the time of a kernel, including its launch; `heavy` and `light` are the sums of [`extra`](Self::extra).
    fn finish(&self, rates: &Rates, launch: Launch, kernel: &Kernel<'_>, heavy: f64, light: f64) -> Estimate {
        let Some(class) = self.classes.get(&kernel.work.class) else {
            return Estimate { micros: Micros::ZERO, bound: Bound::Launch };
        };
        let parts = class.parts(rates, kernel, &self.machine);
        let compute = parts.compute + heavy;
        let memory = parts.streams.max(light) + parts.moves;
        let threads = f64::from(rates.threads.max(1));
        // One thread computes what is not worth waking the others for.
        let fork = if threads > 1.0 { self.machine.fork } else { 0.0 };
        let speedup = 1.0 + (threads - 1.0) * self.machine.scaling;
        let body = ((compute + memory) * threads / speedup + fork).min((compute + memory) * threads);
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
    fn has(&self, term: Term) -> bool {
        self.terms.iter().any(|(own, _)| *own == term)
    }

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

/// Returns the rate, replacing invalid ones by 1 to keep estimates finite.
fn flops_per_s(rates: &Rates) -> f64 {
    rates.flops_per_s.max(1.0)
}

/// Returns the rate, replacing invalid ones by 1 to keep estimates finite.
fn bytes_per_s(rates: &Rates) -> f64 {
    rates.bytes_per_s.max(1.0)
}

/// Returns the time of two overlapping activities, a smooth maximum: the 8-norm of both.
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
