//! System descriptions: devices, links and their rates.
//!
//! A description is a TOML file (docs/formats/system.md). Presets are such files, compiled in; `host` is the detected
//! description of this machine.

mod error;
mod fields;
pub mod host;
mod nodes;
pub mod presets;
mod rates;
mod read;
pub mod units;

use crate::device::{self, Kind, Rates};
pub use error::{DescriptionError, Diagnostic, Error, Errors, Owner};
use std::{
    io::Read,
    path::{Path, PathBuf},
};
use units::{Bytes, BytesPerSecond, Seconds};

/// Maximum size of a description file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Description of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Name, for reports.
    pub name: String,
    /// Devices: at least one, with distinct ids.
    pub devices: Vec<Device>,
    /// Links, at most one per ordered pair of devices. Devices without a link cannot exchange tensors.
    pub links: Vec<Link>,
    /// Model of concurrent transfers on one bus.
    pub contention: Contention,
    /// Warnings of detection and of the description, one message each.
    pub warnings: Vec<String>,
}

/// Processor with its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Identifier, a bare identifier of MLIR: the device's symbol in the IR.
    pub id: String,
    /// Kind of the device.
    pub kind: Kind,
    /// Memory.
    pub memory: Bytes,
    /// Supported batch sizes, in increasing order.
    pub batch_sizes: Vec<u32>,
    /// Architecture to compile for: `sm_90`, or LLVM's name of a CPU.
    pub arch: Option<String>,
    /// Number of host threads, for kinds that use them.
    pub threads: Option<u32>,
    /// Peak rates.
    pub rates: Rates,
    /// Overhead of a launch; `None` for the model's own.
    pub launch: Option<Seconds>,
    /// Launch mode of tasks.
    pub execution: Execution,
    /// Path of a profile, which is not read yet.
    pub profile: Option<PathBuf>,
    /// Path of a cost model that was fitted to the device, which is not read yet.
    pub cost_model: Option<PathBuf>,
    /// True if weights stay in host memory and are copied whenever a task needs them.
    pub streams_weights: bool,
    /// Name of the host that the device belongs to, in a system of several hosts.
    pub node: Option<String>,
}

/// Launch mode of a device's tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Execution {
    /// Each task is launched separately.
    #[default]
    Eager,
    /// Tasks are recorded once and launched together, like CUDA graphs.
    Captured,
}

/// Directed connection from one device to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Index of the source device.
    pub from: usize,
    /// Index of the destination device.
    pub to: usize,
    /// Bandwidth.
    pub bandwidth: BytesPerSecond,
    /// Latency.
    pub latency: Seconds,
    /// Name of the bus; links on the same bus share it according to [`Contention`].
    pub bus: Option<String>,
}

/// Model of concurrent transfers on one bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Contention {
    /// Transfers do not affect each other.
    #[default]
    Off,
    /// One transfer at a time.
    Exclusive,
    /// Concurrent transfers share the bandwidth.
    Shared,
}

impl Contention {
    /// Returns the name in descriptions and in `divi.contention`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

impl System {
    /// Loads a preset by name, or a description from a file. A file with the name of a preset is loaded as `./NAME`.
    pub fn load(spec: &str) -> Result<Self, Error> {
        if spec == presets::HOST {
            return Ok(host::detect());
        }
        if let Some(preset) = presets::find(spec) {
            return Self::parse(spec, preset.text).map_err(Error::Description);
        }
        let bytes = read_file(spec)?;
        match String::from_utf8(bytes) {
            Ok(text) => Self::parse(spec, &text).map_err(Error::Description),
            Err(error) => Err(Error::Description(Errors::not_utf8(spec, &error))),
        }
    }

    /// Parses a description. `name_of_file` is used in messages, as the name of the system if the text has none, and to
    /// resolve paths of profiles, which are relative to its directory.
    pub fn parse(name_of_file: &str, text: &str) -> Result<Self, Errors> {
        read::system(name_of_file, text)
    }

    /// Returns the link from one device to another.
    pub fn link(&self, from: usize, to: usize) -> Option<&Link> {
        self.links.iter().find(|link| link.from == from && link.to == to)
    }

    /// Returns the names of the nodes, in the order of their first devices.
    pub fn nodes(&self) -> Vec<&str> {
        let mut nodes = vec![];
        for node in self.devices.iter().filter_map(|device| device.node.as_deref()) {
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        nodes
    }

    /// Returns the system without the devices and links of a node; `None` if there is no such node or it has all devices.
    pub fn without_node(&self, node: usize) -> Option<Self> {
        let name = (*self.nodes().get(node)?).to_owned();
        let is_left = |device: &Device| device.node.as_deref() != Some(&name[..]);
        let mut next = 0..;
        let new: Vec<Option<usize>> =
            self.devices.iter().map(|device| if is_left(device) { next.next() } else { None }).collect();
        let link = |link: &Link| Some(Link { from: new[link.from]?, to: new[link.to]?, ..link.clone() });
        let devices: Vec<Device> = self.devices.iter().filter(|device| is_left(device)).cloned().collect();
        let links = self.links.iter().filter_map(link).collect();
        (!devices.is_empty()).then(|| Self { devices, links, ..self.clone() })
    }

    /// Returns the index of the device that holds a model's inputs and outputs: see [`device::host`].
    pub fn host(&self) -> usize {
        device::host(self.devices.iter().map(|device| device.kind.name()))
    }

    /// Returns the link by which weights are copied from host memory to a device.
    pub fn weight_link(&self, device: usize) -> Option<&Link> {
        self.link(self.host(), device)
    }
}

fn read_file(spec: &str) -> Result<Vec<u8>, Error> {
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::UnknownSystem { spec: spec.to_owned() },
        _ => Error::Unreadable { path: spec.to_owned(), reason: error.to_string() },
    };
    let file = std::fs::File::open(spec).map_err(unreadable)?;
    // The length is not checked first, because pipes have none.
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::TooLarge { path: spec.to_owned(), limit: Bytes(MAX_FILE_BYTES) });
    }
    Ok(bytes)
}

/// Resolves a path in a description relative to the working directory.
fn resolve_path(name_of_file: &str, path: &str) -> PathBuf {
    Path::new(name_of_file).parent().unwrap_or(Path::new("")).join(path)
}

#[cfg(test)]
mod tests;
