//! Options and statistics of the passes, as `td/Passes.td` declares them. The build script generates a struct with the options of each
//! pass, and one with its statistics. The body of a pass is the method `run` of the former, in the module of its phase.

include!(concat!(env!("OUT_DIR"), "/declared.rs"));
