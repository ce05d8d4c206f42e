//! File format of profiles (`divi-profile/1`):
//!
//! ```json
//! {
//!   "format": "divi-profile/1",
//!   "device": "NVIDIA H200",
//!   "runtime": "PyTorch eager",
//!   "launch_us": 11.2,
//!   "entries": [
//!     {"ops": ["Conv", "Relu"], "attrs": {"strides": [2, 2]}, "in": [[1, 3, 224, 224]], "weights": [[64, 3, 7, 7]],
//!      "out": [1, 64, 112, 112], "dtype": "f32", "us": {"1": 37.0, "16": 155.3}, "count": 2}
//!   ]
//! }
//! ```
//!
//! `launch_us`, `types`, `weights` and `count` (1) are optional. `attrs` has ONNX's names and values; it belongs to the first operator,
//! or is a list with one object per operator. `types` is a list with one object per operator, with the types of its operands
//! and results: `{"in": ["f32[N,3,224,224]", "const f32[64,3,7,7]"], "out": ["f32[N,64,112,112]"]}`. `out` is a shape, or a list of shapes.

use super::types::{MemberTypes, dtype_name, dtype_of};
use super::{Entry, Member, Profile};
use crate::Micros;
use crate::json::{At, Error, micros, parse};
use divi_onnx::{Attr, Attributes, DType};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const FORMAT: &str = "divi-profile/1";

impl Profile {
    /// Parses a profile.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let value = parse(text)?;
        let root = At::root(&value);
        root.format(FORMAT)?;
        root.only(&["format", "device", "runtime", "launch_us", "entries"])?;
        let entries = root.field("entries")?.items()?.iter().map(read_entry).collect::<Result<_, _>>()?;
        let mut profile = Self::new(root.field("device")?.string()?, root.field("runtime")?.string()?, entries);
        profile.launch = root.optional("launch_us")?.map(|it| it.amount().map(Micros)).transpose()?;
        Ok(profile)
    }

    /// Returns the contents of a profile, one line per entry.
    pub fn to_json(&self) -> String {
        let mut file = Map::new();
        file.insert("format".to_owned(), json!(FORMAT));
        file.insert("device".to_owned(), json!(self.device));
        file.insert("runtime".to_owned(), json!(self.runtime));
        if let Some(launch) = self.launch {
            file.insert("launch_us".to_owned(), json!(launch.0));
        }
        file.insert("entries".to_owned(), self.entries.iter().map(write_entry).collect());
        divi_json::write(&Value::Object(file), 2, &[])
    }
}

fn read_entry(at: &At<'_>) -> Result<Entry, Error> {
    at.only(&["ops", "attrs", "types", "in", "weights", "out", "dtype", "us", "count"])?;
    let ops = at.field("ops")?;
    let names = ops.items()?.iter().map(|name| name.string()).collect::<Result<Vec<_>, _>>()?;
    if names.is_empty() {
        return Err(ops.error("must name at least one operator"));
    }
    let mut attributes = match at.optional("attrs")? {
        Some(attrs) if attrs.value.is_array() => {
            let items = attrs.items()?;
            if items.len() != names.len() {
                return Err(attrs.error(format!("must have one object for each of {} operators", names.len())));
            }
            items.iter().map(read_attributes).collect::<Result<Vec<_>, _>>()?
        }
        Some(attrs) => vec![read_attributes(&attrs)?],
        None => vec![],
    };
    attributes.resize(names.len(), Attributes::default());
    let types = at.optional("types")?.map(|types| read_types(&types, names.len())).transpose()?;
    let ops = names.iter().zip(attributes).map(|(name, attributes)| Member { name: (*name).to_owned(), attributes });
    let out = at.field("out")?;
    let is_list = out.value.as_array().is_some_and(|items| items.first().is_some_and(Value::is_array));
    Ok(Entry {
        ops: ops.collect(),
        types,
        inputs: at.field("in")?.shapes()?,
        weights: at.optional("weights")?.map(|it| it.shapes()).transpose()?,
        outputs: if is_list { out.shapes()? } else { vec![out.shape()?] },
        dtype: read_dtype(&at.field("dtype")?)?,
        micros: read_times(&at.field("us")?)?,
        count: at.optional("count")?.map_or(Ok(1), |it| it.count())?,
    })
}

fn read_types(at: &At<'_>, count: usize) -> Result<Vec<MemberTypes>, Error> {
    let items = at.items()?;
    if items.len() != count {
        return Err(at.error(format!("must have one object for each of {count} operators")));
    }
    let wrong = |at: &At<'_>| at.error("must be a type such as 'f32[N,64,56,56]'");
    let operand = |at: &At<'_>| match at.value {
        Value::Null => Ok(None),
        _ => at.string()?.parse().map(Some).map_err(|()| wrong(at)),
    };
    let result = |at: &At<'_>| at.string()?.parse().map_err(|()| wrong(at));
    let read = |at: &At<'_>| {
        at.only(&["in", "out"])?;
        let operands = at.field("in")?.items()?.iter().map(operand).collect::<Result<_, _>>()?;
        let results = at.field("out")?.items()?.iter().map(result).collect::<Result<_, _>>()?;
        Ok(MemberTypes { operands, results })
    };
    items.iter().map(read).collect()
}

fn read_times(at: &At<'_>) -> Result<BTreeMap<u64, f64>, Error> {
    let mut times = BTreeMap::new();
    for (name, time) in at.fields()? {
        let batch = name.parse().ok().filter(|batch| *batch > 0);
        let batch: u64 = batch.ok_or_else(|| time.error("must be named after a batch size"))?;
        if times.insert(batch, micros(&time)?).is_some() {
            return Err(time.error(format!("batch size {batch} is given twice")));
        }
    }
    if times.is_empty() { Err(at.error("must have the time of at least one batch size")) } else { Ok(times) }
}

fn read_dtype(at: &At<'_>) -> Result<DType, Error> {
    let name = at.string()?;
    dtype_of(name).ok_or_else(|| at.error(format!("unknown element type '{name}'; expected f32, f16, bf16, int8, …")))
}

fn read_attributes(at: &At<'_>) -> Result<Attributes, Error> {
    at.fields()?.into_iter().map(|(name, value)| Ok((name, read_attribute(&value)?))).collect()
}

/// Returns a number as `f32`, ONNX's type of attributes; `None` if it overflows, because JSON has no infinity.
fn float(value: &Value) -> Option<f32> {
    value.as_f64().map(|value| value as f32).filter(|value| value.is_finite())
}

fn read_attribute(at: &At<'_>) -> Result<Attr, Error> {
    let wrong = || at.error("must be a number, a string, or a list of one of them");
    let number = |value: &Value| match value.as_i64() {
        Some(value) => Some(Attr::Int(value)),
        None => float(value).map(Attr::Float),
    };
    match at.value {
        Value::Number(_) => number(at.value).ok_or_else(wrong),
        Value::String(value) => Ok(Attr::Str(value.clone())),
        Value::Array(items) => {
            let ints = items.iter().map(Value::as_i64).collect::<Option<Vec<_>>>().map(Attr::Ints);
            let floats = || items.iter().map(float).collect::<Option<Vec<_>>>().map(Attr::Floats);
            let strings = || {
                let strings = items.iter().map(|item| item.as_str().map(str::to_owned));
                strings.collect::<Option<Vec<_>>>().map(Attr::Strs)
            };
            ints.or_else(floats).or_else(strings).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

impl Entry {
    /// Returns the entry as in a file, but without times, which are measured later.
    pub fn without_times(&self) -> Value {
        let mut value = write_entry(self);
        value.as_object_mut().and_then(|fields| fields.remove("us"));
        value
    }
}

fn write_entry(entry: &Entry) -> Value {
    let mut fields = Map::new();
    let names: Vec<&str> = entry.ops.iter().map(|op| &op.name[..]).collect();
    fields.insert("ops".to_owned(), json!(names));
    let mut attributes: Vec<Value> = entry.ops.iter().map(|op| write_attributes(&op.attributes)).collect();
    let is_first_only = entry.ops.iter().skip(1).all(|op| op.attributes.is_empty());
    let attrs =
        if is_first_only && !attributes.is_empty() { attributes.swap_remove(0) } else { Value::Array(attributes) };
    fields.insert("attrs".to_owned(), attrs);
    if let Some(types) = &entry.types {
        fields.insert("types".to_owned(), types.iter().map(write_types).collect());
    }
    fields.insert("in".to_owned(), json!(entry.inputs));
    if let Some(weights) = &entry.weights {
        fields.insert("weights".to_owned(), json!(weights));
    }
    let out = match &entry.outputs[..] {
        [output] => json!(output),
        outputs => json!(outputs),
    };
    fields.insert("out".to_owned(), out);
    fields.insert("dtype".to_owned(), json!(dtype_name(entry.dtype)));
    let times: Map<String, Value> =
        entry.micros.iter().map(|(batch, micros)| (batch.to_string(), json!(micros))).collect();
    fields.insert("us".to_owned(), Value::Object(times));
    if entry.count != 1 {
        fields.insert("count".to_owned(), json!(entry.count));
    }
    Value::Object(fields)
}

fn write_types(types: &MemberTypes) -> Value {
    let operands: Vec<_> = types.operands.iter().map(|operand| operand.as_ref().map(ToString::to_string)).collect();
    let results: Vec<_> = types.results.iter().map(ToString::to_string).collect();
    json!({"in": operands, "out": results})
}

fn write_attributes(attributes: &Attributes) -> Value {
    let written = attributes.iter().filter_map(|(name, attr)| {
        let value = match attr {
            Attr::Int(value) => json!(value),
            Attr::Float(value) => json!(value),
            Attr::Str(value) => json!(value),
            Attr::Ints(values) => json!(values),
            Attr::Floats(values) => json!(values),
            Attr::Strs(values) => json!(values),
            Attr::DType(dtype) => json!(dtype.code()),
            // In the newest opset constants are operands, and operators with graphs are not measured.
            Attr::Tensor(_) | Attr::Other => return None,
        };
        Some((name.to_owned(), value))
    });
    Value::Object(written.collect())
}
