//! Reports compared with manual results, the planner's verifier and simulations, and displayed in a browser.

mod browser;
mod hand;
mod memory;
mod pipeline;
mod queue;
mod shown;
mod timeline;
