//! Machine that a model is fitted to, and prior coefficients of classes that were not measured.
//!
//! The forms of the kinds and the priors were chosen from measurements of an H200 and a Xeon; coefficients are always fitted.

use crate::Class;
use crate::device::{DeviceKind, Kind, Reference};
use crate::model::{Coefficients, Machine, Rates, Term};
use std::collections::BTreeMap;

/// Kind of device, with the properties of the measured one.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Kind of the device.
    pub kind: Kind,
    /// Peak rates in single precision.
    pub rates: Rates,
    /// Properties that the model's terms depend on.
    pub machine: Machine,
}

impl Target {
    /// Returns the reference machine of a kind.
    pub fn of(kind: Kind) -> Self {
        let Reference { rates, machine } = kind.reference();
        Self { kind, rates, machine }
    }
}

/// Returns the prior launch overhead of a class, in launches of an elementwise kernel: typical values of PyTorch.
fn launches(class: Class) -> f64 {
    match class {
        Class::Conv | Class::DepthwiseConv | Class::MatMul | Class::BatchNorm | Class::Recurrent => 2.0,
        Class::Normalization | Class::Softmax | Class::Other => 1.5,
        _ => 1.0,
    }
}

/// Returns the prior ratio of the time per byte of a class to that of elementwise operators.
fn slowdown(class: Class) -> f64 {
    match class {
        // Two passes over the elements: statistics, then normalization.
        Class::Normalization | Class::Softmax => 2.0,
        // Several windows read each element.
        Class::MaxPool | Class::AveragePool | Class::DepthwiseConv => 3.0,
        // Random access to single elements.
        Class::Gather => 3.0,
        Class::Other => 3.0,
        Class::BatchNorm | Class::Reduction => 1.5,
        Class::Copy | Class::Transcendental => 1.2,
        _ => 1.0,
    }
}

/// Returns prior coefficients of a class that was not measured, given those that were: pools are like other pools, recurrent
/// layers are dependent steps of products, and other classes are like elementwise operators, slowed down.
pub(super) fn coefficients(
    kind: &dyn DeviceKind,
    class: Class,
    measured: &BTreeMap<Class, Coefficients>,
) -> Coefficients {
    let like = |class: Class| measured.get(&class).map(|it| Coefficients { samples: 0, ..it.clone() });
    let (floor, added) = (launches(class), launches(class) / 2.0);
    let with = |terms: Vec<(Term, f64)>| Coefficients { floor, added, terms, ..Coefficients::default() };
    let form = |class: Class| kind.model_form(class).terms.to_vec();
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
