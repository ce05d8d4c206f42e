//! Rules that the sources of the workspace follow: layers, and names of operators.

#[path = "sources/layers.rs"]
mod layers;
#[path = "sources/operator_names.rs"]
mod operator_names;
