//! Conversion of tables that were measured with PyTorch to profiles.
//!
//! There are three kinds of tables: operators of networks with their times on a GPU and a CPU ([`Operators`]), times of whole
//! networks with and without captured graphs ([`NetworkTimes`]), and copies between host and device ([`transfers`]).

mod operators;
pub mod transfers;

use crate::device::{self, DeviceField, Kind, MemorySpace};
use crate::fit::CapturedNetwork;
use crate::json::{At, Error, micros, parse};
use crate::profile::Entry;
use crate::{Micros, Profile};

/// Operators of networks, each measured separately.
#[derive(Clone, Debug)]
pub struct Operators {
    /// Name of the device.
    pub device: String,
    /// Runtime that was measured.
    pub runtime: String,
    /// Networks.
    pub models: Vec<Network>,
}

/// Operators of a network.
#[derive(Clone, Debug)]
pub struct Network {
    /// Name of the network.
    pub name: String,
    /// Distinct operators, with the medians of their times.
    pub entries: Vec<Entry>,
    /// Measured times of all operators.
    pub times: Vec<Time>,
    /// Operators without an ONNX equivalent, with the reason.
    pub skipped: Vec<Note>,
    /// Operators that the table describes incompletely, with the assumption.
    pub assumptions: Vec<Note>,
}

/// Time of one operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// Index of its entry.
    pub entry: usize,
    /// Batch size.
    pub batch: u64,
    /// Time.
    pub micros: Micros,
}

/// Note about an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Name of the node.
    pub node: String,
    /// PyTorch's name of the operator.
    pub op: String,
    /// Text of the remark, a predicate.
    pub text: String,
}

/// Times of whole networks.
#[derive(Clone, Debug)]
pub struct NetworkTimes {
    rows: Vec<Whole>,
}

#[derive(Clone, Debug)]
struct Whole {
    model: String,
    batch: u64,
    /// Time in a captured graph.
    graph: Micros,
}

const RUNTIME: &str = "PyTorch eager";

impl Operators {
    /// Returns true if a text is such a table.
    pub fn recognizes(text: &str) -> bool {
        parse(text).is_ok_and(|value| value.get("models").is_some())
    }

    /// Returns the device kinds of a table, those with their own memory first.
    pub fn kinds(text: &str) -> Result<Vec<Kind>, Error> {
        let value = parse(text)?;
        let mut kinds = device::all();
        kinds.retain(|kind| value.get(kind.device_field().name()).is_some());
        kinds.sort_by_key(|kind| kind.memory() == MemorySpace::Host);
        Ok(kinds)
    }

    /// Reads the times of one kind of device.
    pub fn read(text: &str, kind: Kind) -> Result<Self, Error> {
        let value = parse(text)?;
        let root = At::root(&value);
        let kinds = device::all();
        let fields = kinds.iter().map(|kind| kind.device_field().name());
        root.only(&fields.chain(["note", "models"]).collect::<Vec<_>>())?;
        let device = match kind.device_field() {
            DeviceField::Product(field) => kind.profile_name("", Some(root.field(field)?.string()?)),
            DeviceField::Threads(field) => kind.profile_name(&format!("{} threads", root.field(field)?.count()?), None),
        };
        let models = root.field("models")?.fields()?;
        let models = models.iter().map(|(name, at)| operators::read(name, at, kind)).collect::<Result<_, _>>()?;
        Ok(Self { device, runtime: RUNTIME.to_owned(), models })
    }

    /// Returns a profile of all networks.
    pub fn profile(&self) -> Profile {
        let entries = self.models.iter().flat_map(|model| model.entries.iter().cloned()).collect();
        Profile::new(&self.device[..], &self.runtime[..], entries)
    }

    /// Returns the networks whose times `models` contains, as tasks.
    pub fn replays(&self, models: &NetworkTimes) -> Result<Vec<CapturedNetwork>, divi_onnx::Error> {
        let mut replays = vec![];
        for whole in &models.rows {
            let Some(model) = self.models.iter().find(|model| model.name == whole.model) else { continue };
            let tasks = model.entries.iter().map(|entry| Ok((entry.task(whole.batch)?, entry.count)));
            replays.push(CapturedNetwork { tasks: tasks.collect::<Result<_, _>>()?, micros: whole.graph });
        }
        Ok(replays)
    }
}

impl NetworkTimes {
    /// Reads the times in single precision from rows such as `resnet18 b16 fp32`.
    pub fn read(text: &str) -> Result<Self, Error> {
        let value = parse(text)?;
        let root = At::root(&value);
        root.only(&["gpu", "torch", "rows"])?;
        let mut rows = vec![];
        for (name, at) in root.field("rows")?.fields()? {
            at.only(&["eager", "graph"])?;
            let words: Vec<&str> = name.split(' ').collect();
            let batch = words.get(1).and_then(|word| word.strip_prefix('b')?.parse().ok());
            let ([model, _, precision], Some(batch)) = (&words[..], batch) else {
                return Err(at.error("must be named like 'resnet18 b16 fp32'"));
            };
            let graph = Micros(micros(&at.field("graph")?)? * 1e3);
            if *precision == "fp32" {
                rows.push(Whole { model: (*model).to_owned(), batch, graph });
            }
        }
        Ok(Self { rows })
    }
}
