//! File format of models (`divi-cost-model/1`), written by `divi-profile fit`:
//!
//! ```json
//! {
//!   "format": "divi-cost-model/1",
//!   "kind": "cuda",
//!   "device": "NVIDIA H200",
//!   "runtime": "PyTorch eager",
//!   "flops_per_s": 66900000000000.0,
//!   "bytes_per_s": 4810000000000.0,
//!   "machine": {"units": 132.0, "rows": 64.0, "cache": 50000000.0},
//!   "launch_us": {"eager": 11.2, "captured": 4.6},
//!   "classes": {
//!     "Conv": {"samples": 1535, "launch": {"floor": 2.3, "added": 1.2, "bias": 1.6}, "terms": {"flops.3x3": 1.3}}
//!   }
//! }
//! ```
//!
//! `captured` is absent if captured graphs were not measured. All classes except views are present; a class with 0 samples has
//! prior coefficients. The unit of `launch` is eager launches. [`super::term`] documents the terms.

use super::{Coefficients, Machine, Model, Rates, Term};
use crate::json::{At, Error, parse};
use crate::{Class, Micros};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const FORMAT: &str = "divi-cost-model/1";

/// All classes except views, with their names in files.
pub(crate) const CLASSES: &[(Class, &str)] = &[
    (Class::Conv, "Conv"),
    (Class::DepthwiseConv, "DepthwiseConv"),
    (Class::MatMul, "MatMul"),
    (Class::Elementwise, "Elementwise"),
    (Class::Transcendental, "Transcendental"),
    (Class::BatchNorm, "BatchNorm"),
    (Class::Normalization, "Normalization"),
    (Class::Softmax, "Softmax"),
    (Class::Reduction, "Reduction"),
    (Class::MaxPool, "MaxPool"),
    (Class::AveragePool, "AveragePool"),
    (Class::Copy, "Copy"),
    (Class::Gather, "Gather"),
    (Class::Recurrent, "Recurrent"),
    (Class::Other, "Other"),
];

impl Model {
    /// Parses a model file.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let value = parse(text)?;
        let root = At::root(&value);
        root.format(FORMAT)?;
        root.only(&[
            "format",
            "kind",
            "device",
            "runtime",
            "flops_per_s",
            "bytes_per_s",
            "machine",
            "launch_us",
            "classes",
        ])?;
        let machine = root.field("machine")?;
        machine.only(&["units", "rows", "cache", "fork_us", "scaling"])?;
        let launch = root.field("launch_us")?;
        launch.only(&["eager", "captured"])?;
        let rates = Rates {
            flops_per_s: root.field("flops_per_s")?.positive()?,
            bytes_per_s: root.field("bytes_per_s")?.positive()?,
            launch: None,
            threads: 1,
        };
        let classes = root.field("classes")?;
        classes.only(&CLASSES.iter().map(|(_, name)| *name).collect::<Vec<_>>())?;
        let coefficients = CLASSES.iter().map(|(class, name)| Ok((*class, read_class(&classes.field(name)?)?)));
        Ok(Self {
            kind: root.field("kind")?.string()?.to_owned(),
            device: root.field("device")?.string()?.to_owned(),
            runtime: root.field("runtime")?.string()?.to_owned(),
            rates,
            machine: Machine {
                units: machine.field("units")?.positive()?,
                rows: machine.field("rows")?.positive()?,
                cache: machine.field("cache")?.amount()?,
                fork: machine.optional("fork_us")?.map_or(Ok(0.0), |it| it.amount())?,
                scaling: machine.optional("scaling")?.map_or(Ok(1.0), |it| share(&it))?,
            },
            eager: Micros(launch.field("eager")?.positive()?),
            captured: launch.optional("captured")?.map(|it| it.amount().map(Micros)).transpose()?,
            classes: coefficients.collect::<Result<BTreeMap<_, _>, Error>>()?,
        })
    }

    /// Returns the contents of a model file. Deterministic, byte for byte.
    pub fn to_json(&self) -> String {
        let mut launch = Map::from_iter([("eager".to_owned(), json!(self.eager.0))]);
        if let Some(captured) = self.captured {
            launch.insert("captured".to_owned(), json!(captured.0));
        }
        let classes: Map<String, Value> = CLASSES
            .iter()
            .filter_map(|(class, name)| Some(((*name).to_owned(), write_class(self.classes.get(class)?))))
            .collect();
        let Machine { units, rows, cache, fork, scaling } = self.machine;
        let mut machine = json!({"units": units, "rows": rows, "cache": cache});
        if fork > 0.0 {
            machine["fork_us"] = json!(fork);
        }
        if scaling < 1.0 {
            machine["scaling"] = json!(scaling);
        }
        let value = json!({
            "format": FORMAT,
            "kind": self.kind,
            "device": self.device,
            "runtime": self.runtime,
            "flops_per_s": self.rates.flops_per_s,
            "bytes_per_s": self.rates.bytes_per_s,
            "machine": machine,
            "launch_us": launch,
            "classes": classes,
        });
        format!("{value:#}\n")
    }
}

/// Returns a number above 0 and at most 1.
fn share(at: &At<'_>) -> Result<f64, Error> {
    let share = at.positive()?;
    if share > 1.0 { Err(at.error(format!("must be at most 1, is {share}"))) } else { Ok(share) }
}

fn read_class(at: &At<'_>) -> Result<Coefficients, Error> {
    at.only(&["samples", "launch", "terms"])?;
    let launch = at.field("launch")?;
    launch.only(&["floor", "added", "bias"])?;
    let mut terms = vec![];
    for (name, coefficient) in at.field("terms")?.fields()? {
        let term = Term::from_name(name).ok_or_else(|| {
            let known: Vec<&str> = Term::ALL.iter().map(|term| term.name()).collect();
            coefficient.error(format!("unknown term; expected one of {}", known.join(", ")))
        })?;
        terms.push((term, coefficient.amount()?));
    }
    Ok(Coefficients {
        samples: usize::try_from(at.field("samples")?.count()?).unwrap_or(usize::MAX),
        floor: launch.field("floor")?.amount()?,
        added: launch.field("added")?.amount()?,
        bias: launch.optional("bias")?.map_or(Ok(0.0), |it| it.amount())?,
        terms,
    })
}

fn write_class(class: &Coefficients) -> Value {
    let mut launch =
        Map::from_iter([("floor".to_owned(), json!(class.floor)), ("added".to_owned(), json!(class.added))]);
    if class.bias > 0.0 {
        launch.insert("bias".to_owned(), json!(class.bias));
    }
    let terms: Map<String, Value> =
        class.terms.iter().map(|(term, value)| (term.name().to_owned(), json!(value))).collect();
    json!({"samples": class.samples, "launch": launch, "terms": terms})
}
