//! Compiler back ends, one for each kind of device.
//!
//! A back end decides which nodes a device can run ([`TargetBackend::supports`]), which both planning and code generation ask, and
//! compiles stages.

use crate::{
    error::Error,
    graph::{Node, Value},
};
use divi_runtime::bundle::Device;
use std::fmt;

/// Compiler back end of one kind of device.
pub trait TargetBackend: Send + Sync {
    /// Name of the kind in machine descriptions: `cpu`.
    fn kind(&self) -> &str;

    /// Checks that code can be generated for a device.
    fn supports_device(&self, device: &Device) -> Result<(), Reason>;

    /// Returns true if there is code for an operator in some types.
    fn has_operator(&self, op: &str) -> bool;

    /// Checks that code can be generated for a node. Its operands and results are indices of `values`.
    fn supports(&self, node: &Node, values: &[Value]) -> Result<(), Reason>;
}

/// Reason why a device cannot run a node, and a remedy where there is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason(pub String);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Reason {
    fn from(error: Error) -> Self {
        match error {
            Error::Node { message, .. } => Self(message),
            error => Self(error.to_string()),
        }
    }
}
