//! Exports a plan: one model for each stage, and the steps that run them.

use super::{
    constants::Constants,
    graph::{self, Exported, Signature},
    names::Names,
};
use crate::{
    import::proto::{ModelProto, StringStringEntryProto},
    ir::{Failure, ONNX_CONSTANT, describe, error},
    steps::{integer, integers, refuse, symbol},
    tasks::entry,
};
use divi_cost::device;
use divi_dialect::{Operation, Value, attr, op};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json, json};
use std::{fs, path::Path};

/// Folder of the models.
pub(super) const MODELS: &str = "stages";
/// File with their weights, in that folder.
pub(super) const WEIGHTS: &str = "weights.bin";
/// File that describes the execution of the models.
pub(super) const DESCRIPTION: &str = "stages.json";
/// File that drivers add to the folder.
const PLAN: &str = "plan.json";
const FORMAT: &str = "divi-stages/1";

/// Checks that everything in a folder was written by [`super::write_stages`], so that other stages may replace it. The
/// error names a file that was not.
pub(super) fn check_replaceable(folder: &Path) -> Result<(), String> {
    let text = fs::read(folder.join(DESCRIPTION)).unwrap_or_default();
    let description: Json = serde_json::from_slice(&text).unwrap_or_default();
    if !description["format"].as_str().is_some_and(|format| format.starts_with("divi-stages/")) {
        return divi_files::check_listed(folder, []);
    }
    let weights = format!("{MODELS}/{WEIGHTS}");
    let models = description["stages"].as_array().into_iter().flatten().filter_map(|stage| stage["model"].as_str());
    divi_files::check_listed(folder, models.chain([DESCRIPTION, PLAN, &weights]))
}

/// Models of a plan, and the steps of its entry function.
pub(super) struct Stages {
    stages: Vec<Stage>,
    inputs: Vec<Json>,
    outputs: Vec<Json>,
    steps: Vec<Json>,
}

struct Stage {
    name: String,
    file: String,
    device: String,
    exported: Exported,
}

impl Stages {
    pub(super) fn of<'m>(module: Operation<'m>, constants: &mut Constants<'m>) -> Result<Self, Failure> {
        let function = entry(module)?;
        let &[block] = &function.blocks()[..] else {
            error(function, &format!("{} has several blocks: a plan is one list of steps", describe(function)));
            return Err(Failure);
        };
        let mut walk = Walk {
            functions: functions(module),
            constants,
            names: Names::default(),
            files: Names::default(),
            values: FxHashMap::default(),
            returned: FxHashMap::default(),
            stages: vec![],
            steps: vec![],
        };
        let name_in = |list, i| function.signature_attribute(list, i, "onnx.name").and_then(attr::as_string);
        let mut inputs = vec![];
        for (i, argument) in block.arguments().into_iter().enumerate() {
            let name = walk.names.unique(name_in(attr::ARG_ATTRS, i).unwrap_or(&format!("input_{i}")));
            inputs.push(described(&name, argument));
            walk.values.insert(argument, name);
        }
        let returned = block.terminator().map(Operation::operands).unwrap_or_default();
        for (i, &value) in returned.iter().enumerate() {
            if let Some(name) = name_in(attr::RES_ATTRS, i) {
                walk.returned.entry(moved(value)).or_insert_with(|| name.to_owned());
            }
        }
        let (constants, steps): (Vec<_>, Vec<_>) =
            block.operations().into_iter().partition(|&operation| operation.name() == ONNX_CONSTANT);
        walk.constants_stage(function, constants, host(module))?;
        for operation in steps {
            walk.step(operation)?;
        }
        let mut outputs = vec![];
        for (i, &value) in returned.iter().enumerate() {
            let name = name_in(attr::RES_ATTRS, i).map_or_else(|| format!("output_{i}"), str::to_owned);
            let mut output = described(&name, value);
            output["value"] = walk.value(value, function)?.into();
            outputs.push(output);
        }
        Ok(Self { stages: walk.stages, inputs, outputs, steps: walk.steps })
    }

    /// Returns the models, each with the name of its file.
    pub(super) fn models(&self) -> impl Iterator<Item = (&str, &ModelProto)> {
        self.stages.iter().map(|stage| (stage.file.as_str(), &stage.exported.model))
    }

    pub(super) fn json(&self) -> String {
        let stages = self.stages.iter().map(|stage| {
            json!({
                "name": stage.name,
                "device": stage.device,
                "model": format!("{MODELS}/{}", stage.file),
                "inputs": stage.exported.inputs,
                "outputs": stage.exported.outputs,
            })
        });
        let stages: Vec<_> = stages.collect();
        // One entry per line, for readability: a plan has hundreds.
        let list = |values: &[Json]| {
            let lines: Vec<_> = values.iter().map(|value| format!("    {value}")).collect();
            if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n  ]", lines.join(",\n")) }
        };
        format!(
            "{{\n  \"format\": \"{FORMAT}\",\n  \"inputs\": {},\n  \"outputs\": {},\n  \"stages\": {},\n  \"steps\": {}\n}}\n",
            list(&self.inputs),
            list(&self.outputs),
            list(&stages),
            list(&self.steps)
        )
    }
}

/// Returns name and type of a value.
fn described(name: &str, value: Value<'_>) -> Json {
    let mut fields = Map::new();
    fields.insert("name".into(), name.into());
    if let Some(ty) = value.tensor_type() {
        fields.insert("type".into(), ty.dtype.name().into());
        let size = |dim: divi_onnx::Dim| dim.known().map_or(Json::Null, Json::from);
        fields.insert("shape".into(), ty.shape.map(|shape| shape.into_iter().map(size).collect::<Vec<_>>()).into());
    }
    fields.into()
}

/// Returns the functions of a module, by name.
fn functions(module: Operation<'_>) -> FxHashMap<&str, Operation<'_>> {
    let functions = module.children().into_iter().filter(|operation| operation.name() == op::FUNC);
    functions.map(|function| (function.symbol_name().unwrap_or_default(), function)).collect()
}

/// Returns the device that inputs and outputs are on.
fn host(module: Operation<'_>) -> &str {
    let devices: Vec<_> = module.children().into_iter().filter(|operation| operation.name() == op::DEVICE).collect();
    let host = devices.get(device::host(devices.iter().map(|device| device.get(attr::KIND).unwrap_or_default())));
    host.and_then(|device| device.symbol_name()).unwrap_or_default()
}

/// Returns the value that a chain of transfers copies.
fn moved(mut value: Value<'_>) -> Value<'_> {
    while let Some(transfer) = value.defining_op().filter(|&definer| definer.name() == op::TRANSFER) {
        value = transfer.operands()[0];
    }
    value
}

/// State of the walk over the entry function.
struct Walk<'a, 'm> {
    functions: FxHashMap<&'m str, Operation<'m>>,
    constants: &'a mut Constants<'m>,
    names: Names,
    files: Names,
    /// Names of values in the steps.
    values: FxHashMap<Value<'m>, String>,
    /// Names of returned values.
    returned: FxHashMap<Value<'m>, String>,
    stages: Vec<Stage>,
    steps: Vec<Json>,
}

impl<'m> Walk<'_, 'm> {
    fn step(&mut self, operation: Operation<'m>) -> Result<(), Failure> {
        let mut step = match operation.name() {
            op::RETURN | "onnx.Return" | "onnx.NoValue" => return Ok(()),
            op::LAUNCH => self.launch(operation)?,
            op::TRANSFER => {
                let input = self.value(operation.operands()[0], operation)?;
                let (from, to) = (symbol(operation, attr::FROM), symbol(operation, attr::TO));
                let output = self.name(operation.results()[0], &format!("{input}@{to}"));
                json!({"transfer": input, "from": from, "to": to, "output": output})
            }
            op::SLICE => {
                let input = self.value(operation.operands()[0], operation)?;
                let output = self.name(operation.results()[0], &format!("{input}_slice"));
                let positions = integers(operation, attr::POSITIONS);
                let of = integer(operation, attr::COUNT);
                json!({"slice": input, "positions": positions, "of": of, "axis": integer(operation, attr::AXIS),
                       "outer": integer(operation, attr::OUTER), "output": output})
            }
            op::GATHER => {
                let inputs = self.value_list(operation)?;
                let first = inputs.first().map_or("empty", String::as_str);
                let output = self.name(operation.results()[0], &format!("{first}_gather"));
                let counts = integers(operation, attr::COUNTS);
                json!({"gather": inputs, "of": counts, "axis": integer(operation, attr::AXIS),
                       "outer": integer(operation, attr::OUTER), "output": output})
            }
            _ => return Err(refuse(operation)),
        };
        if let Some(start) = operation.get(attr::START) {
            step["start"] = start.into();
        }
        self.steps.push(step);
        Ok(())
    }

    fn launch(&mut self, launch: Operation<'m>) -> Result<Json, Failure> {
        let inputs = self.value_list(launch)?;
        let (callee, device) = (symbol(launch, attr::CALLEE), symbol(launch, attr::LAUNCH_DEVICE));
        let index = match self.stages.iter().position(|stage| stage.name == callee) {
            Some(index) => index,
            None => {
                let stage = self.stage(launch, callee, device)?;
                self.stages.push(stage);
                self.stages.len() - 1
            }
        };
        let names = self.stages[index].exported.outputs.clone();
        let outputs: Vec<_> =
            launch.results().into_iter().zip(names).map(|(result, name)| self.name(result, &name)).collect();
        let mut step = json!({"launch": callee, "device": device, "inputs": inputs, "outputs": outputs});
        if let Some(stage) = launch.get(attr::STAGE) {
            step["stage"] = stage.into();
        }
        if launch.has(attr::INPUTS) {
            step["queued"] = integers(launch, attr::INPUTS).into();
        }
        Ok(step)
    }

    /// Adds a stage for the constants of the entry function, which are outputs that no step computes.
    fn constants_stage(
        &mut self,
        function: Operation<'m>,
        mut constants: Vec<Operation<'m>>,
        device: &str,
    ) -> Result<(), Failure> {
        constants.retain(|&constant| !constant.results()[0].uses().is_empty());
        if constants.is_empty() {
            return Ok(());
        }
        let entry = function.symbol_name().unwrap_or("main");
        let name = format!("{entry}.constants");
        let exported = graph::export_constants(&constants, &name, self.constants)?;
        let named = constants.iter().zip(&exported.outputs);
        let outputs: Vec<_> = named.map(|(&constant, name)| self.name(constant.results()[0], name)).collect();
        self.steps.push(json!({"launch": name, "device": device, "inputs": [], "outputs": outputs}));
        let file = format!("{}.onnx", self.files.unique(&plain(&name)));
        self.stages.push(Stage { name, file, device: device.to_owned(), exported });
        Ok(())
    }

    /// Builds the model of a function that is launched for the first time. Values keep their names in the entry
    /// function.
    fn stage(&mut self, launch: Operation<'m>, callee: &str, device: &str) -> Result<Stage, Failure> {
        let Some(&function) = self.functions.get(callee) else {
            error(launch, &format!("{} launches @{callee}, which is not defined", describe(launch)));
            return Err(Failure);
        };
        let inputs = launch.operands().into_iter().map(|value| self.values.get(&moved(value)).cloned());
        let outputs = launch.results().into_iter().map(|value| self.returned.get(&value).cloned());
        let signature = Signature { inputs: inputs.collect(), outputs: outputs.collect() };
        let mut exported = graph::export(function, &signature, self.constants)?;
        let entry =
            |key: &str, value: &str| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
        exported.model.metadata_props.push(entry(attr::DEVICE.name(), device));
        let file = format!("{}.onnx", self.files.unique(&plain(callee)));
        Ok(Stage { name: callee.to_owned(), file, device: device.to_owned(), exported })
    }

    fn name(&mut self, value: Value<'m>, wanted: &str) -> String {
        let name = self.names.unique(wanted);
        self.values.insert(value, name.clone());
        name
    }

    fn value(&self, value: Value<'m>, reader: Operation<'m>) -> Result<String, Failure> {
        self.values.get(&value).cloned().ok_or_else(|| {
            let message = format!("{} reads a value that no step of the plan computes", describe(reader));
            error(reader, &message);
            Failure
        })
    }

    fn value_list(&self, reader: Operation<'m>) -> Result<Vec<String>, Failure> {
        reader.operands().into_iter().map(|value| self.value(value, reader)).collect()
    }
}

/// Replaces characters that some file systems do not allow.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}
