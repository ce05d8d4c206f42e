//! All file readers of divi as functions of bytes, with corpora and mutations for fuzzing.
//!
//! Shared by coverage-guided fuzzing (`test/fuzz`), runs of millions of seeded mutants (`divi-mutants`) and the tests.
//! `tools/fuzz` runs the first two.

pub mod corpus;
pub mod memory;
pub mod mutants;
pub mod mutate;
pub mod random;
mod readers;
pub mod trial;

pub use readers::{READERS, Reader, find};
