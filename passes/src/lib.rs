//! The compiler, one module a phase, in the order in which data flows. So far: [`import`].

pub mod import;
