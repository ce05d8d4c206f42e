//! Invalid models with one defect each. Each is rejected with an error that names the file and the cause, or imported if it
//! is valid after all; none causes a panic, an endless loop or unbounded memory.

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
