//! Reports against hand counts, against the planner's verifier, against simulations, and in a real browser.

mod browser;
mod hand;
mod memory;
mod pipeline;
mod queue;
mod shown;
mod timeline;
