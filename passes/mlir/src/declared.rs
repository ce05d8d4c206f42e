//! Options and statistics of the passes of `td/Passes.td`. The build script generates for each pass a struct with its
//! options, and one with its statistics. The body of a pass is the method `run` of the former, in the module of its
//! phase.

include!(concat!(env!("OUT_DIR"), "/declared.rs"));
