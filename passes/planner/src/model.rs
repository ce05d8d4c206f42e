//! Planning problem, plan, and what both are made of.

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
