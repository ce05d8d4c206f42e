//! The planning problem and its answer: what every layer above speaks of.

pub(crate) mod budget;
pub mod error;
pub mod instance;
pub mod json;
mod named;
pub mod observer;
pub mod options;
pub mod plan;
pub mod problem;
pub mod units;
