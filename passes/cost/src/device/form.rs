//! Form of the estimate for a class of operators: which coefficients a fit determines.

use crate::{Class, model::Term};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    /// Terms, with the coefficients that are assumed before anything is measured.
    pub terms: &'static [(Term, f64)],
    /// True if a bias is a kernel of its own, whose launch is fitted.
    pub has_bias_launch: bool,
    /// Terms whose coefficients are not shared with samples of another class: see [`crate::fit`].
    pub unshared: &'static [Term],
}

impl Form {
    pub const fn new(terms: &'static [(Term, f64)]) -> Self {
        Self { terms, has_bias_launch: false, unshared: &[] }
    }

    /// Form for a kind of which little is known: operations and bytes at a part of the peak rates.
    pub fn roofline(class: Class) -> Self {
        use Term::*;
        Self::new(match class {
            Class::Conv | Class::MatMul => &[(Flops, 2.0), (Read, 1.5), (Written, 1.5), (Weights, 1.5)],
            Class::DepthwiseConv => &[(Bytes, 2.0)],
            Class::MaxPool | Class::AveragePool | Class::Reduction => &[(Read, 1.5), (Written, 1.5), (Flops, 2.0)],
            _ => &[(Read, 1.5), (Written, 1.5), (Weights, 1.5)],
        })
    }
}
