//! Descriptions of machines: devices, links, and how fast they are.
//!
//! A description is a TOML file; README.md lists its keys. Presets are such files compiled in, and `host` is what this
//! machine has.

mod error;
mod fields;
pub mod host;
mod nodes;
pub mod presets;
mod rates;
mod read;
pub mod units;

use crate::device::{self, Kind, Rates};
pub use error::{Error, Errors, Fault, Owner, Problem};
use std::{
    io::Read,
    path::{Path, PathBuf},
};
use units::{Bytes, BytesPerSecond, Seconds};

/// A description longer than this is something else.
const MAX_FILE_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct System {
    pub name: String,
    /// At least one; their ids differ.
    pub devices: Vec<Device>,
    /// At most one from a device to another. Devices without a link cannot exchange tensors.
    pub links: Vec<Link>,
    pub contention: Contention,
    /// What detection had to leave out, one sentence each.
    pub warnings: Vec<String>,
}

/// A processor with its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// A bare identifier of MLIR: the device's symbol in the IR.
    pub id: String,
    pub kind: Kind,
    pub memory: Bytes,
    /// What may be computed at once, in increasing order.
    pub batch_sizes: Vec<u32>,
    /// What code is generated for: `sm_90`, or a CPU as LLVM names it.
    pub arch: Option<String>,
    /// Threads of the host that it computes with, if its kind does so.
    pub threads: Option<u32>,
    pub rates: Rates,
    /// What starting a task costs, if it is not what the model says.
    pub launch: Option<Seconds>,
    pub execution: Execution,
    /// Where measured times are. Nothing is known yet about the file.
    pub profile: Option<PathBuf>,
    /// True if weights come from the host whenever they are needed, because the memory is not for all of them.
    pub streams_weights: bool,
    /// The machine that it is part of, where there are several.
    pub node: Option<String>,
}

/// How a device is given its tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Execution {
    /// One by one.
    #[default]
    Eager,
    /// Recorded once and launched together, as CUDA graphs are.
    Captured,
}

/// A way for tensors from one device to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// An index of a device.
    pub from: usize,
    /// An index of a device.
    pub to: usize,
    pub bandwidth: BytesPerSecond,
    pub latency: Seconds,
    /// Links on the same bus share it, as [`Contention`] says.
    pub bus: Option<String>,
}

/// What transfers on the same bus do to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Contention {
    /// Nothing: a bus only names.
    #[default]
    Off,
    /// They wait for each other.
    Exclusive,
    /// They slow each other down.
    Shared,
}

impl Contention {
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

impl System {
    /// Reads a description from a file, or takes a preset by its name. Where a file has the name of a preset, `./NAME` is
    /// the file.
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

    /// Reads a description. Its name is used in messages, for the system if the text gives none, and to find profiles,
    /// whose paths are relative to its folder.
    pub fn parse(name_of_file: &str, text: &str) -> Result<Self, Errors> {
        read::system(name_of_file, text)
    }

    pub fn link(&self, from: usize, to: usize) -> Option<&Link> {
        self.links.iter().find(|link| link.from == from && link.to == to)
    }

    /// The device that has a model's inputs and wants its outputs: see [`device::host`].
    pub fn host(&self) -> usize {
        device::host(self.devices.iter().map(|device| device.kind.name()))
    }

    /// The link that weights come to a device by, from the host's memory.
    pub fn way_of_weights(&self, device: usize) -> Option<&Link> {
        self.link(self.host(), device)
    }
}

fn read_file(spec: &str) -> Result<Vec<u8>, Error> {
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::UnknownSystem { spec: spec.to_owned() },
        _ => Error::Unreadable { path: spec.to_owned(), reason: error.to_string() },
    };
    let file = std::fs::File::open(spec).map_err(unreadable)?;
    // A file's length is not asked for first: pipes have none.
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::TooLarge { path: spec.to_owned(), limit: Bytes(MAX_FILE_BYTES) });
    }
    Ok(bytes)
}

/// A path in a description, as seen from the working directory.
fn beside(name_of_file: &str, path: &str) -> PathBuf {
    Path::new(name_of_file).parent().unwrap_or(Path::new("")).join(path)
}

#[cfg(test)]
mod tests;
