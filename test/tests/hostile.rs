//! Models that are wrong on purpose, one defect each. Each is refused with an error that names the file and what is at
//! fault, or imported where nothing is wrong with it; none panics, runs on, or takes memory without bound.

#[path = "hostile/constants.rs"]
mod constants;
#[path = "hostile/graphs.rs"]
mod graphs;
#[path = "hostile/operators.rs"]
mod operators;
#[path = "hostile/subgraphs.rs"]
mod subgraphs;
#[path = "hostile/suite.rs"]
mod suite;

#[global_allocator]
static ALLOCATOR: divi_test::memory::CountingAllocator = divi_test::memory::CountingAllocator;
