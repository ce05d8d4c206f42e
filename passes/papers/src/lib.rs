//! Problems that the papers evaluate on: generators of random networks, graphs and chains, and a reader of the graphs that
//! MTPP's authors have published. Planning does not need them; benchmarks and tests do.

pub mod convert;
pub mod generate;
