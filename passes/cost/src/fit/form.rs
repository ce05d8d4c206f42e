//! The machine that a model is fitted to, and the coefficients that are assumed of classes before they are measured.
//!
//! The forms of the kinds and the assumptions were chosen by looking at an H200 and a Xeon; the coefficients were not.

use crate::Class;
use crate::device::{DeviceKind, Kind, Reference};
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

impl Target {
    /// The machine that the kind's own model is fitted to.
    pub fn of(kind: Kind) -> Self {
        let Reference { rates, machine } = kind.reference();
        Self { kind, rates, machine }
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
pub(super) fn assumed(kind: &dyn DeviceKind, class: Class, measured: &BTreeMap<Class, Coefficients>) -> Coefficients {
    let like = |class: Class| measured.get(&class).map(|it| Coefficients { samples: 0, ..it.clone() });
    let (floor, added) = (launches(class), launches(class) / 2.0);
    let with = |terms: Vec<(Term, f64)>| Coefficients { floor, added, terms, ..Coefficients::default() };
    let form = |class: Class| kind.form(class).terms.to_vec();
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
