//! Options of a runtime.

use crate::{
    communicator::Communicator,
    drivers::Drivers,
    hal::ColdStartMode,
    transport::{MemoryCopy, Transport},
};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// Callback that is called with the name of a stage before its launch.
pub type LaunchHook = Arc<dyn Fn(&str) + Send + Sync>;

/// Options for running a bundle. The defaults follow its plan.
#[derive(Clone)]
pub struct Options {
    /// Threads per device; `None` for the number in the bundle.
    pub threads: Option<usize>,
    /// Maximum number of requests in flight. Default: number of stages + 1 for a pipeline, otherwise 1.
    pub in_flight: Option<usize>,
    /// True if links have threads of their own; otherwise the receiving device's thread copies a value. Default: true if enough
    /// cores are available.
    pub link_threads: Option<bool>,
    /// True if idle threads poll until a spin timeout before they sleep. Default: true if there is a core for each thread.
    pub spin: Option<bool>,
    /// Mode of copying constants to devices with their own memory in the first request. Default: constants are copied at load.
    pub cold: Option<ColdStartMode>,
    /// File with the fastest library algorithm or kernel of each call, as measured on a device. Missing entries are measured
    /// and added. Default: all of them are measured at every load.
    pub choices: Option<PathBuf>,
    /// Folders that weights may be read from, in addition to those of the bundle and its model.
    pub allowed_paths: Vec<PathBuf>,
    /// True if weights are mapped instead of read, so that processes share them. Truncating a mapped file kills the process
    /// (`SIGBUS`).
    pub map_weights: bool,
    /// Transport between devices in host memory.
    pub transport: Arc<dyn Transport>,
    /// Ranks of a job, each of which runs the part of one host. Default: this process runs all parts.
    pub communicator: Option<Arc<dyn Communicator>>,
    /// Time after which a rank that does not answer is treated as dead. Default: ranks wait for each other without a limit.
    pub stall_timeout: Option<Duration>,
    /// Node of the plan that is lost: the program of the bundle for the other nodes runs. Default: the one for all nodes.
    pub lost_node: Option<usize>,
    /// Drivers of all device kinds.
    pub drivers: Drivers,
    /// Called before each launch. A panic in it is handled like one in the stage.
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
            communicator: None,
            stall_timeout: None,
            lost_node: None,
            drivers: Drivers::default(),
            before_launch: None,
        }
    }
}
