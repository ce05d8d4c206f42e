//! Options of a runtime.

use crate::{
    drivers::Drivers,
    hal::Cold,
    transport::{MemoryCopy, Transport},
};
use std::{path::PathBuf, sync::Arc};

/// Called with a stage's name before it is launched.
pub type LaunchHook = Arc<dyn Fn(&str) + Send + Sync>;

/// How to run a bundle; the default is as its plan has it.
#[derive(Clone)]
pub struct Options {
    /// Threads of each device, instead of what the bundle says.
    pub threads: Option<usize>,
    /// How many requests may be in flight. One more than there are stages if nothing is said, in a pipeline; else one.
    pub in_flight: Option<usize>,
    /// Whether links have threads of their own. If nothing is said, they have them where cores are left for them; else the
    /// device that receives a value fetches it.
    pub link_threads: Option<bool>,
    /// Whether threads that wait look for work for a while before they sleep. If nothing is said, they do where there is a
    /// core for each.
    pub spin: Option<bool>,
    /// When constants are copied to devices with memory of their own. If nothing is said, they are there when the bundle is loaded.
    pub cold: Option<Cold>,
    /// A file of the algorithms of libraries and kernels that are the fastest on devices. What it lacks is measured and added. If
    /// nothing is said, all of it is measured whenever a bundle is loaded.
    pub choices: Option<PathBuf>,
    /// Folders that weights may be in beside the bundle's and its model's.
    pub allowed_paths: Vec<PathBuf>,
    /// True if weights are mapped instead of read, so that processes share them. A file that is truncated while it is mapped ends
    /// the process (`SIGBUS`).
    pub map_weights: bool,
    /// Moves values between devices in the host's memory.
    pub transport: Arc<dyn Transport>,
    /// Drivers of all kinds of devices.
    pub drivers: Drivers,
    /// Called before each launch. If it panics, so does the stage.
    pub before_launch: Option<LaunchHook>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: None,
            in_flight: None,
            link_threads: None,
            spin: None,
            cold: None,
            choices: None,
            allowed_paths: vec![],
            map_weights: false,
            transport: Arc::new(MemoryCopy),
            drivers: Drivers::default(),
            before_launch: None,
        }
    }
}
