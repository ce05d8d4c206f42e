//! Shared helpers of tests on small problems.

pub(crate) mod brute_force;
pub(crate) mod edges;
pub(crate) mod naive;
pub(crate) mod random_problem;
