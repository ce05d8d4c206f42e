//! `divi-fuse` on every model of `test/models`, and on random graphs.

#[path = "fuse/inspect.rs"]
mod inspect;
#[path = "fuse/models.rs"]
mod models;
#[path = "fuse/properties.rs"]
mod properties;
#[path = "fuse/random_graph.rs"]
mod random_graph;
