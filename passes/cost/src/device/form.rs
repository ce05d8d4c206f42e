//! Form of the model for a class of operators: the coefficients that a fit determines.

use crate::{Class, model::Term};

/// Terms and launches of the model for a class of operators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelForm {
    /// Terms, with their prior coefficients.
    pub terms: &'static [(Term, f64)],
    /// True if a bias is a separate kernel, whose launch is fitted.
    pub has_bias_launch: bool,
    /// Terms whose coefficients are not shared with samples borrowed from another class: see [`crate::fit`].
    pub unshared: &'static [Term],
    /// True if the host itself computes: a launch only adds time, and does not overlap with the work of a device.
    pub is_synchronous: bool,
}

impl ModelForm {
    /// Returns a form with these terms and without a launch for the bias.
    pub const fn new(terms: &'static [(Term, f64)]) -> Self {
        Self { terms, has_bias_launch: false, unshared: &[], is_synchronous: false }
    }

    /// Returns a generic form: operations and bytes at a fraction of the peak rates.
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
