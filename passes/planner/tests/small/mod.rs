//! What tests on small problems share.

pub(crate) mod brute_force;
pub(crate) mod naive;
pub(crate) mod random_problem;
