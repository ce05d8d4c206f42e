//! Every reader of files that divi has, as functions of bytes, with corpora and mutations: what is fuzzed.
//!
//! Coverage-guided fuzzing (`test/fuzz`), runs of millions of seeded mutants (`divi-mutants`) and the tests share this list.
//! `tools/fuzz` runs the first two.

pub mod corpus;
pub mod memory;
pub mod mutants;
pub mod mutate;
pub mod random;
mod readers;
pub mod trial;

pub use readers::{READERS, Reader, find};
