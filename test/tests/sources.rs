//! Conventions checked in the sources of the workspace: documents, doc examples, layers, operator names, and
//! unsafe code.

#[path = "sources/documents.rs"]
mod documents;
#[path = "sources/examples.rs"]
mod examples;
#[path = "sources/formats.rs"]
mod formats;
#[path = "sources/layers.rs"]
mod layers;
#[path = "sources/operator_names.rs"]
mod operator_names;
#[path = "sources/scan.rs"]
mod scan;
#[path = "sources/unsafe_code.rs"]
mod unsafe_code;
