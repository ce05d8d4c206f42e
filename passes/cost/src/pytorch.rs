//! Tables that were measured with PyTorch, as profiles.
//!
//! Three kinds are read: operators of whole models with their times on a GPU and a CPU ([`Operators`]), times of whole models
//! with and without captured graphs ([`Models`]), and copies between host and device ([`transfers`]).

mod operators;
pub mod transfers;

use crate::device::{self, Kind, MemorySpace, TableField};
use crate::fit::Replay;
use crate::json::{At, Error, micros, parse};
use crate::profile::Entry;
use crate::{Micros, Profile};

/// Operators of models, each measured by itself.
#[derive(Clone, Debug)]
pub struct Operators {
    pub device: String,
    pub runtime: String,
    pub models: Vec<Model>,
}

/// The operators of a model. Those that are the same are one entry.
#[derive(Clone, Debug)]
pub struct Model {
    pub name: String,
    pub entries: Vec<Entry>,
    /// What was measured, operator by operator.
    pub times: Vec<Time>,
    /// Operators that ONNX has no form for, with the reason.
    pub left_out: Vec<Remark>,
    /// Operators of which the table does not say everything, with what is assumed.
    pub assumed: Vec<Remark>,
}

/// The time of one operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// The index of its entry.
    pub entry: usize,
    pub batch: u64,
    pub micros: Micros,
}

/// Something to be said of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    pub node: String,
    pub op: String,
    pub text: String,
}

/// Times of whole models.
#[derive(Clone, Debug)]
pub struct Models {
    rows: Vec<Whole>,
}

#[derive(Clone, Debug)]
struct Whole {
    model: String,
    batch: u64,
    /// In a captured graph.
    graph: Micros,
}

const RUNTIME: &str = "PyTorch eager";

impl Operators {
    /// Whether a text is such a table; it may be another file.
    pub fn recognizes(text: &str) -> bool {
        parse(text).is_ok_and(|value| value.get("models").is_some())
    }

    /// The kinds that a table describes a device of, those with memory of their own first.
    pub fn kinds(text: &str) -> Result<Vec<Kind>, Error> {
        let value = parse(text)?;
        let mut kinds = device::all();
        kinds.retain(|kind| value.get(kind.table_field().name()).is_some());
        kinds.sort_by_key(|kind| kind.memory() == MemorySpace::Host);
        Ok(kinds)
    }

    /// Reads the times of one kind of device.
    pub fn read(text: &str, kind: Kind) -> Result<Self, Error> {
        let value = parse(text)?;
        let root = At::root(&value);
        let kinds = device::all();
        let fields = kinds.iter().map(|kind| kind.table_field().name());
        root.only(&fields.chain(["note", "models"]).collect::<Vec<_>>())?;
        let device = match kind.table_field() {
            TableField::Product(field) => kind.profile_name("", Some(root.field(field)?.string()?)),
            TableField::Threads(field) => kind.profile_name(&format!("{} threads", root.field(field)?.count()?), None),
        };
        let models = root.field("models")?.fields()?;
        let models = models.iter().map(|(name, at)| operators::read(name, at, kind)).collect::<Result<_, _>>()?;
        Ok(Self { device, runtime: RUNTIME.to_owned(), models })
    }

    /// A profile of all models.
    pub fn profile(&self) -> Profile {
        let entries = self.models.iter().flat_map(|model| model.entries.iter().cloned()).collect();
        Profile::new(&self.device[..], &self.runtime[..], entries)
    }

    /// Whole models as tasks, for those that `models` has the time of.
    pub fn replays(&self, models: &Models) -> Result<Vec<Replay>, divi_onnx::Error> {
        let mut replays = vec![];
        for whole in &models.rows {
            let Some(model) = self.models.iter().find(|model| model.name == whole.model) else { continue };
            let tasks = model.entries.iter().map(|entry| Ok((entry.task(whole.batch)?, entry.count)));
            replays.push(Replay { tasks: tasks.collect::<Result<_, _>>()?, micros: whole.graph });
        }
        Ok(replays)
    }
}

impl Models {
    /// Reads the times in single precision: the rows are named `resnet18 b16 fp32`.
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
