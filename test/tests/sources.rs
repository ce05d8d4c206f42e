//! Rules that the sources of the workspace follow: examples, layers, and names of operators.

#[path = "sources/examples.rs"]
mod examples;
#[path = "sources/layers.rs"]
mod layers;
#[path = "sources/operator_names.rs"]
mod operator_names;
