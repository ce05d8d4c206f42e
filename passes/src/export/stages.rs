//! A plan as models: one a stage, and how they are run.

use super::{
    constants::Constants,
    graph::{self, Exported, Signature},
    names::Names,
};
use crate::{
    import::proto::{ModelProto, StringStringEntryProto},
    ir::{
        Failure, ONNX_CONSTANT, arguments_of, attribute, blocks, describe, error, float_attribute, integer_attribute,
        operands, operation_name, operations, results, signature_attribute, string_attribute, tensor_type_of_value,
        uses,
    },
    steps::{integer, integers, symbol},
    tasks::{definer, entry},
};
use divi_cost::device;
use mlir_sys::*;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::{ffi::c_void, fs, path::Path};

/// The folder with the models.
pub(super) const MODELS: &str = "stages";
/// The file with their weights, in that folder.
pub(super) const WEIGHTS: &str = "weights.bin";
/// How the models are run.
pub(super) const DESCRIPTION: &str = "stages.json";
/// What drivers put beside it.
const PLAN: &str = "plan.json";
const FORMAT: &str = "divi-stages/1";

/// Checks that everything in a folder was written by [`super::write_stages`], so that other stages may replace it. The error says
/// what was not.
pub(super) fn check_replaceable(folder: &Path) -> Result<(), String> {
    let text = fs::read(folder.join(DESCRIPTION)).unwrap_or_default();
    let description: Value = serde_json::from_slice(&text).unwrap_or_default();
    if !description["format"].as_str().is_some_and(|format| format.starts_with("divi-stages/")) {
        return divi_files::check_listed(folder, []);
    }
    let weights = format!("{MODELS}/{WEIGHTS}");
    let models = description["stages"].as_array().into_iter().flatten().filter_map(|stage| stage["model"].as_str());
    divi_files::check_listed(folder, models.chain([DESCRIPTION, PLAN, &weights]))
}

/// The models of a plan and the steps of its entry function.
pub(super) struct Stages {
    stages: Vec<Stage>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    steps: Vec<Value>,
}

struct Stage {
    name: String,
    file: String,
    device: String,
    exported: Exported,
}

impl Stages {
    pub(super) fn of(module: MlirOperation, constants: &mut Constants<'_>) -> Result<Self, Failure> {
        let function = entry(module)?;
        let &[block] = &blocks(function)[..] else {
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
        let name_in = |list, i| signature_attribute(function, list, i, "onnx.name").and_then(string_attribute);
        let mut inputs = vec![];
        for (i, argument) in arguments_of(block).into_iter().enumerate() {
            let name = walk.names.unique(name_in("arg_attrs", i).unwrap_or(&format!("input_{i}")));
            inputs.push(described(&name, argument));
            walk.values.insert(argument.ptr, name);
        }
        // SAFETY: the block is alive, and a function's body ends in a terminator.
        let returned = operands(unsafe { mlirBlockGetTerminator(block) });
        for (i, &value) in returned.iter().enumerate() {
            if let Some(name) = name_in("res_attrs", i) {
                walk.returned.entry(moved(value).ptr).or_insert_with(|| name.to_owned());
            }
        }
        let (constants, steps): (Vec<_>, Vec<_>) =
            operations(block).into_iter().partition(|&operation| operation_name(operation) == ONNX_CONSTANT);
        walk.constants_stage(function, constants, host(module))?;
        for operation in steps {
            walk.step(operation)?;
        }
        let mut outputs = vec![];
        for (i, &value) in returned.iter().enumerate() {
            let name = name_in("res_attrs", i).map_or_else(|| format!("output_{i}"), str::to_owned);
            let mut output = described(&name, value);
            output["value"] = walk.value(value, function)?.into();
            outputs.push(output);
        }
        Ok(Self { stages: walk.stages, inputs, outputs, steps: walk.steps })
    }

    /// The models, each with the name of its file.
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
        // A line an entry: a plan has hundreds, and people look at them.
        let list = |values: &[Value]| {
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

/// A value's name and type.
fn described(name: &str, value: MlirValue) -> Value {
    let mut fields = Map::new();
    fields.insert("name".into(), name.into());
    if let Some(ty) = tensor_type_of_value(value) {
        fields.insert("type".into(), ty.dtype.name().into());
        let size = |dim: divi_onnx::Dim| dim.known().map_or(Value::Null, Value::from);
        fields.insert("shape".into(), ty.shape.map(|shape| shape.into_iter().map(size).collect::<Vec<_>>()).into());
    }
    fields.into()
}

/// The functions of a module, by name.
fn functions(module: MlirOperation) -> FxHashMap<&'static str, MlirOperation> {
    let all = blocks(module).into_iter().flat_map(operations);
    let functions = all.filter(|&operation| operation_name(operation) == "func.func");
    let named = functions
        .map(|function| (attribute(function, "sym_name").and_then(string_attribute).unwrap_or_default(), function));
    named.collect()
}

/// Where inputs and outputs are.
fn host(module: MlirOperation) -> &'static str {
    let all = blocks(module).into_iter().flat_map(operations);
    let devices: Vec<_> = all.filter(|&operation| operation_name(operation) == "divi.device").collect();
    let kind = |&device: &MlirOperation| attribute(device, "kind").and_then(string_attribute).unwrap_or_default();
    let host = devices.get(device::host(devices.iter().map(kind)));
    host.and_then(|&device| attribute(device, "sym_name")).and_then(string_attribute).unwrap_or_default()
}

/// The value that transfers have moved.
fn moved(mut value: MlirValue) -> MlirValue {
    while let Some(transfer) = definer(value).filter(|&definer| operation_name(definer) == "divi.transfer") {
        value = operands(transfer)[0];
    }
    value
}

/// The walk over the entry function.
struct Walk<'a, 'b> {
    functions: FxHashMap<&'static str, MlirOperation>,
    constants: &'a mut Constants<'b>,
    names: Names,
    files: Names,
    /// What values are called in the steps.
    values: FxHashMap<*const c_void, String>,
    /// Names of the values that are returned.
    returned: FxHashMap<*const c_void, String>,
    stages: Vec<Stage>,
    steps: Vec<Value>,
}

impl Walk<'_, '_> {
    fn step(&mut self, operation: MlirOperation) -> Result<(), Failure> {
        let mut step = match operation_name(operation) {
            "func.return" | "onnx.Return" | "onnx.NoValue" => return Ok(()),
            "divi.launch" => self.launch(operation)?,
            "divi.transfer" => {
                let input = self.value(operands(operation)[0], operation)?;
                let (from, to) = (symbol(operation, "from"), symbol(operation, "to"));
                let output = self.name(results(operation)[0], &format!("{input}@{to}"));
                json!({"transfer": input, "from": from, "to": to, "output": output})
            }
            "divi.slice" => {
                let input = self.value(operands(operation)[0], operation)?;
                let output = self.name(results(operation)[0], &format!("{input}_slice"));
                let positions = integers(operation, "positions");
                let of = integer(operation, "count");
                json!({"slice": input, "positions": positions, "of": of, "axis": integer(operation, "axis"),
                       "outer": integer(operation, "outer"), "output": output})
            }
            "divi.gather" => {
                let inputs = self.value_list(operation)?;
                let first = inputs.first().map_or("empty", String::as_str);
                let output = self.name(results(operation)[0], &format!("{first}_gather"));
                let counts = integers(operation, "counts");
                json!({"gather": inputs, "of": counts, "axis": integer(operation, "axis"),
                       "outer": integer(operation, "outer"), "output": output})
            }
            _ => {
                let message = format!(
                    "{} is no step of a plan: outline the plan first, with --divi-outline",
                    describe(operation)
                );
                error(operation, &message);
                return Err(Failure);
            }
        };
        if let Some(start) = attribute(operation, "divi.start").and_then(float_attribute) {
            step["start"] = start.into();
        }
        self.steps.push(step);
        Ok(())
    }

    fn launch(&mut self, launch: MlirOperation) -> Result<Value, Failure> {
        let inputs = self.value_list(launch)?;
        let (callee, device) = (symbol(launch, "callee"), symbol(launch, "device"));
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
            results(launch).into_iter().zip(names).map(|(result, name)| self.name(result, &name)).collect();
        let mut step = json!({"launch": callee, "device": device, "inputs": inputs, "outputs": outputs});
        if let Some(stage) = attribute(launch, "divi.stage").and_then(integer_attribute) {
            step["stage"] = stage.into();
        }
        if attribute(launch, "divi.inputs").is_some() {
            step["queued"] = integers(launch, "divi.inputs").into();
        }
        Ok(step)
    }

    /// What the entry function itself has constants for, as outputs that nothing computes: a model that gives them.
    fn constants_stage(
        &mut self,
        function: MlirOperation,
        mut constants: Vec<MlirOperation>,
        device: &str,
    ) -> Result<(), Failure> {
        constants.retain(|&constant| !uses(results(constant)[0]).is_empty());
        if constants.is_empty() {
            return Ok(());
        }
        let entry = attribute(function, "sym_name").and_then(string_attribute).unwrap_or("main");
        let name = format!("{entry}.constants");
        let exported = graph::export_constants(&constants, &name, self.constants)?;
        let named = constants.iter().zip(&exported.outputs);
        let outputs: Vec<_> = named.map(|(&constant, name)| self.name(results(constant)[0], name)).collect();
        self.steps.push(json!({"launch": name, "device": device, "inputs": [], "outputs": outputs}));
        let file = format!("{}.onnx", self.files.unique(&plain(&name)));
        self.stages.push(Stage { name, file, device: device.to_owned(), exported });
        Ok(())
    }

    /// The model of a function that is launched for the first time. Values keep the names they have outside.
    fn stage(&mut self, launch: MlirOperation, callee: &str, device: &str) -> Result<Stage, Failure> {
        let Some(&function) = self.functions.get(callee) else {
            error(launch, &format!("{} launches @{callee}, which is not there", describe(launch)));
            return Err(Failure);
        };
        let inputs = operands(launch).into_iter().map(|value| self.values.get(&moved(value).ptr).cloned());
        let outputs = results(launch).into_iter().map(|value| self.returned.get(&value.ptr).cloned());
        let signature = Signature { inputs: inputs.collect(), outputs: outputs.collect() };
        let mut exported = graph::export(function, &signature, self.constants)?;
        let entry =
            |key: &str, value: &str| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
        exported.model.metadata_props.push(entry("divi.device", device));
        let file = format!("{}.onnx", self.files.unique(&plain(callee)));
        Ok(Stage { name: callee.to_owned(), file, device: device.to_owned(), exported })
    }

    fn name(&mut self, value: MlirValue, wanted: &str) -> String {
        let name = self.names.unique(wanted);
        self.values.insert(value.ptr, name.clone());
        name
    }

    fn value(&self, value: MlirValue, reader: MlirOperation) -> Result<String, Failure> {
        self.values.get(&value.ptr).cloned().ok_or_else(|| {
            let message = format!("{} reads a value that no step of the plan computes", describe(reader));
            error(reader, &message);
            Failure
        })
    }

    fn value_list(&self, reader: MlirOperation) -> Result<Vec<String>, Failure> {
        operands(reader).into_iter().map(|value| self.value(value, reader)).collect()
    }
}

/// A name that every file system has.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}
