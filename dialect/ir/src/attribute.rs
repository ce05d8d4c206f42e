//! Attributes of the `divi` dialect.

mod ffi;

pub use ffi::{BatchAttribute, BatchCost, CostAttribute, ExternalAttribute, MoveAttribute};
