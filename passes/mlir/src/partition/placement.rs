//! Placements in the format of onnx-mlir: a JSON file with regular expressions that assign operators to devices.

use super::constraints::{Targets, exclude};
use crate::ir::Failure;
use crate::node_names::typed_names;
use regex_lite::Regex;
use serde::Deserialize;
use std::{fs, path::Path};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct File {
    device_placement: Vec<Entry>,
}

/// Operators whose type and name both match as a whole.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct Entry {
    device: String,
    #[serde(default = "anything")]
    node_type: String,
    #[serde(default = "anything")]
    onnx_node_name: String,
}

fn anything() -> String {
    ".*".to_owned()
}

/// Pins the tasks that a file names. `device` is the id of a device, or a kind, ignoring case: a task that is placed on
/// a kind runs on any device of that kind. The first matching entry of an operator applies. An entry without a device
/// (`""`) leaves the choice to the planner; an entry without a match is an error.
pub(super) fn apply(targets: &Targets<'_>, file: &Path) -> Result<(), Failure> {
    let refuse = |message: String| targets.refuse(&format!("placement '{}': {message}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| refuse(error.to_string()))?;
    let file: File = divi_json::read(&text).map_err(|error| refuse(error.to_string()))?;
    let mut rules = vec![];
    for (i, entry) in file.device_placement.iter().enumerate() {
        let whole = |key: &str, pattern: &str| {
            Regex::new(&format!("^(?:{pattern})$"))
                .map_err(|error| refuse(format!("'{key}' of entry {i} is not a regular expression: {error}")))
        };
        let place = Place::named(targets, &entry.device).ok_or_else(|| {
            let known: Vec<&str> = targets.devices.iter().map(|(id, _)| id.as_str()).collect();
            let device = &entry.device;
            refuse(format!("entry {i} names unknown device '{device}'; expected one of {}", known.join(", ")))
        })?;
        let rule = (whole("node_type", &entry.node_type)?, whole("onnx_node_name", &entry.onnx_node_name)?, place);
        rules.push(rule);
    }
    let mut used = vec![false; rules.len()];
    for &task in &targets.tasks {
        for (r#type, name) in typed_names(task) {
            let fits = |rule: &(Regex, Regex, Place)| rule.0.is_match(r#type) && rule.1.is_match(name);
            rules.iter().zip(&mut used).for_each(|(rule, used)| *used |= fits(rule));
            match rules.iter().find(|rule| fits(rule)).map(|(_, _, place)| place) {
                None | Some(Place::Anywhere) => {}
                Some(Place::Device(id)) => targets.pin(task, id)?,
                Some(Place::Kind(kind)) => {
                    let others = targets.devices.iter().filter(|(_, other)| other != kind);
                    others.for_each(|(id, _)| exclude(task, id));
                }
            }
        }
    }
    match used.iter().position(|used| !used) {
        None => Ok(()),
        Some(i) => {
            let Entry { node_type, onnx_node_name, .. } = &file.device_placement[i];
            Err(refuse(format!(
                "entry {i} matches no operator: none has type '{node_type}' and name '{onnx_node_name}'"
            )))
        }
    }
}

enum Place {
    Anywhere,
    Device(String),
    Kind(String),
}

impl Place {
    fn named(targets: &Targets<'_>, name: &str) -> Option<Self> {
        if name.is_empty() {
            return Some(Self::Anywhere);
        }
        if let Some((id, _)) = targets.devices.iter().find(|(id, _)| id == name) {
            return Some(Self::Device(id.clone()));
        }
        let kind = name.to_ascii_lowercase();
        targets.devices.iter().any(|(_, other)| *other == kind).then_some(Self::Kind(kind))
    }
}
