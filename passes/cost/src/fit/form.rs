//! Which terms a class has on a kind of device, and what is assumed before anything is measured.
//!
//! The lists and the assumptions were chosen by looking at an H200 and a Xeon; the coefficients were not.

use crate::Class;
use crate::model::{Coefficients, Machine, Rates, Term};
use std::collections::BTreeMap;

/// A kind of device, with the facts of the one that is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub kind: Kind,
    /// The peak rates in single precision.
    pub rates: Rates,
    pub machine: Machine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Cuda,
    Cpu,
}

impl Kind {
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "cuda" => Some(Self::Cuda),
            "cpu" => Some(Self::Cpu),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Cpu => "cpu",
        }
    }
}

impl Target {
    /// NVIDIA's H200: 132 multiprocessors, 66.9 TFLOP/s and 4.81 TB/s. A multiprocessor's caches are too small to count.
    pub fn h200() -> Self {
        Self {
            kind: Kind::Cuda,
            rates: Rates { flops_per_s: 66.9e12, bytes_per_s: 4.81e12, launch: None },
            machine: Machine { units: 132.0, rows: 64.0, cache: 0.0 },
        }
    }

    /// 16 cores of a Xeon of the fifth generation: 64 operations a cycle at 2.1 GHz each, and eight channels of DDR5-5600.
    /// Of the 32 MiB of second-level cache, three eighths hold what an operator reads and writes, with the rest of the
    /// program around it. Sixteen lanes of a register are as many rows.
    pub fn xeon16() -> Self {
        Self {
            kind: Kind::Cpu,
            rates: Rates { flops_per_s: 2.15e12, bytes_per_s: 358.4e9, launch: None },
            machine: Machine { units: 16.0, rows: 16.0, cache: (12u64 << 20) as f64 },
        }
    }

    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Cuda => Self::h200(),
            Kind::Cpu => Self::xeon16(),
        }
    }
}

/// The terms of a class, with the coefficients that are assumed.
pub(super) fn form(kind: Kind, class: Class) -> &'static [(Term, f64)] {
    use Term::*;
    match (kind, class) {
        (Kind::Cuda, Class::Conv) => &[
            (FlopsPointwise, 2.0),
            (WavesPointwise, 0.5),
            (Flops3x3, 2.0),
            (Waves3x3, 0.5),
            (FlopsOther, 2.0),
            (WavesOther, 0.5),
            (DepthPointwise, 0.5),
            (DepthOther, 0.5),
            (BiasPass, 2.0),
            (OddRows, 0.5),
            (Read, 1.5),
            (Written, 1.5),
            (Weights, 1.5),
        ],
        (Kind::Cpu, Class::Conv) => &[
            (FlopsPointwise, 2.0),
            (Flops3x3, 2.0),
            (FlopsOther, 2.0),
            (Unfold, 0.5),
            (Read, 1.5),
            (Written, 1.5),
            (Weights, 1.5),
        ],
        (Kind::Cuda, Class::DepthwiseConv) => &[(KernelRows, 4.0)],
        (Kind::Cpu, Class::DepthwiseConv) => &[(Bytes, 2.0)],
        (Kind::Cuda, Class::MatMul) => {
            &[(Flops, 2.0), (Waves, 0.5), (Depth, 0.5), (Read, 1.5), (Written, 1.5), (Weights, 1.5)]
        }
        (Kind::Cpu, Class::MatMul) => &[(Flops, 2.0), (FewRows, 2.0), (Read, 1.5), (Written, 1.5), (Weights, 1.5)],
        (_, Class::MaxPool | Class::AveragePool | Class::Reduction) => &[(Read, 1.5), (Written, 1.5), (Flops, 2.0)],
        (Kind::Cuda, _) => &[(Read, 1.5), (Written, 1.5), (Weights, 1.5)],
        (Kind::Cpu, _) => &[(Read, 1.5), (Written, 1.5), (Weights, 1.5), (Spill, 1.5)],
    }
}

/// Launches, in those of the simplest kernel, that are assumed of a class: what PyTorch's have been seen to be.
fn launches(class: Class) -> f64 {
    match class {
        Class::Conv | Class::DepthwiseConv | Class::MatMul | Class::BatchNorm | Class::Recurrent => 2.0,
        Class::Normalization | Class::Softmax | Class::Other => 1.5,
        _ => 1.0,
    }
}

/// How much slower than a simple function of its elements a class is assumed to pass its bytes.
fn slowdown(class: Class) -> f64 {
    match class {
        // Statistics first, then the elements again.
        Class::Normalization | Class::Softmax => 2.0,
        // Each element is read by several windows.
        Class::MaxPool | Class::AveragePool | Class::DepthwiseConv => 3.0,
        // Single elements, wherever they are.
        Class::Gather => 3.0,
        Class::Other => 3.0,
        Class::BatchNorm | Class::Reduction => 1.5,
        Class::Copy | Class::Transcendental => 1.2,
        _ => 1.0,
    }
}

/// What is assumed of a class that was not measured, given those that were: products are like other products, windows like
/// other windows, steps of recurrent layers wait for each other, and everything else is like a simple function of its
/// elements, slowed down.
pub(super) fn assumed(kind: Kind, class: Class, measured: &BTreeMap<Class, Coefficients>) -> Coefficients {
    let like = |class: Class| measured.get(&class).map(|it| Coefficients { samples: 0, ..it.clone() });
    let (floor, added) = (launches(class), launches(class) / 2.0);
    let with = |terms: Vec<(Term, f64)>| Coefficients { floor, added, terms, ..Coefficients::default() };
    let form = |class: Class| form(kind, class).to_vec();
    match class {
        Class::MaxPool if measured.contains_key(&Class::AveragePool) => like(Class::AveragePool),
        Class::AveragePool if measured.contains_key(&Class::MaxPool) => like(Class::MaxPool),
        Class::Conv | Class::DepthwiseConv | Class::MatMul => Some(with(form(class))),
        Class::Recurrent => {
            let mut terms = like(Class::MatMul).map_or_else(|| form(Class::MatMul), |it| it.terms);
            terms.push((Term::Steps, 0.5));
            Some(with(terms))
        }
        _ => None,
    }
    .unwrap_or_else(|| {
        let mut terms = like(Class::Elementwise).map_or_else(|| form(Class::Elementwise), |it| it.terms);
        terms.iter_mut().for_each(|(_, coefficient)| *coefficient *= slowdown(class));
        with(terms)
    })
}
