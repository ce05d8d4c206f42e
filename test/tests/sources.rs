//! Rules that the sources of the workspace follow: examples, layers, names, and unsafe code.

#[path = "sources/examples.rs"]
mod examples;
#[path = "sources/layers.rs"]
mod layers;
#[path = "sources/operator_names.rs"]
mod operator_names;
#[path = "sources/scan.rs"]
mod scan;
#[path = "sources/unsafe_code.rs"]
mod unsafe_code;
