//! Comparison of the calls of a description with those that code was compiled for. Drivers extract the signatures from the
//! code.

use crate::error::{Error, Result};
use std::{collections::HashSet, path::Path};

/// Signatures of the calls that code was compiled for; `None` in code of version 1.
pub(crate) struct Signatures(Option<HashSet<String>>);

impl Signatures {
    pub(crate) fn new(lines: Option<HashSet<String>>) -> Self {
        Self(lines)
    }

    /// Checks that code was compiled for a call whose kernels have the signatures `wanted`. `has_extents` is that of the
    /// bundle.
    pub(crate) fn check(&self, wanted: &[String], kernel: &str, has_extents: bool, path: &Path) -> Result<()> {
        let is_known = match (&self.0, has_extents) {
            (Some(known), true) => wanted.iter().all(|signature| known.contains(signature)),
            (Some(_), false) => false,
            (None, has_extents) => !has_extents,
        };
        if is_known {
            return Ok(());
        }
        let reason = format!("its kernel '{kernel}' was not compiled for a call of the description");
        Err(Error::Code { path: path.to_owned(), reason })
    }
}
