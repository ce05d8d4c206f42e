//! Models from modules, so that another tool can run what divi has made of one.

use crate::{attribute, model, operation_name, read_constant, walk};
use divi_dialect::{
    node::{attributes_of, is_none},
    tensor_type_of,
};
use divi_onnx::{Attr, Dim, TensorType, schema};
use divi_passes::import::{
    proto::{NodeProto, ValueInfoProto},
    tensor_proto::TensorProto,
};
use melior::ir::{Attribute, Module, Type, operation::OperationRef};
use mlir_sys::*;
use std::{collections::HashMap, ffi::c_void, path::Path};

/// The file of a model that computes what `@main` does. `folder` is that of the file that the module came from. The error
/// is what such a model cannot say.
pub fn to_onnx(module: &Module<'_>, folder: &Path) -> Result<Vec<u8>, String> {
    let mut export = Export { folder, names: HashMap::new(), inputs: vec![], constants: vec![], nodes: vec![] };
    let mut functions = vec![];
    walk(module, &mut |operation| {
        if operation_name(operation) == "func.func" {
            functions.push(operation);
        }
    });
    let [main] = functions[..] else { return Err(format!("there are {} functions", functions.len())) };
    let mut outputs = None;
    // SAFETY: a function that is not only declared has a region with a block; the list of operations ends with null.
    unsafe {
        let block = mlirRegionGetFirstBlock(mlirOperationGetRegion(main, 0));
        export.arguments(block);
        let mut next = mlirBlockGetFirstOperation(block);
        while !next.ptr.is_null() {
            match operation_name(next) {
                "func.return" => outputs = Some(export.operand_names(next)),
                _ => export.operation(next)?,
            }
            next = mlirOperationGetNextInBlock(next);
        }
    }
    let mut outputs = outputs.ok_or("nothing is returned")?;
    // An output has a name of its own, even if it is an input or another output.
    for (i, output) in outputs.iter_mut().enumerate() {
        let own = format!("output_{i}");
        export.nodes.push(model::node("Identity", &[output], &[&own]));
        *output = own;
    }
    let names: Vec<_> = outputs.iter().map(String::as_str).collect();
    let graph = model::graph(export.inputs, export.constants, export.nodes, &names);
    let mut proto = model::model(graph);
    proto.ir_version = Some(schema::IR_VERSION);
    proto.opset_import.truncate(1);
    proto.opset_import[0].version = Some(schema::OPSET);
    Ok(model::encode(&proto))
}

struct Export<'a> {
    folder: &'a Path,
    names: HashMap<*const c_void, String>,
    inputs: Vec<ValueInfoProto>,
    constants: Vec<TensorProto>,
    nodes: Vec<NodeProto>,
}

impl Export<'_> {
    fn arguments(&mut self, block: MlirBlock) {
        // SAFETY: the block is alive, and indices are below the count.
        unsafe {
            for i in 0..mlirBlockGetNumArguments(block) {
                let argument = mlirBlockGetArgument(block, i);
                let name = format!("input_{i}");
                if let Some(ty) = tensor(argument) {
                    let dims: Vec<_> = ty.shape.iter().flatten().map(|dim: &Dim| dim.known().unwrap_or(-1)).collect();
                    self.inputs.push(model::value(&name, ty.dtype, &dims));
                }
                self.names.insert(argument.ptr, name);
            }
        }
    }

    fn operation(&mut self, operation: MlirOperation) -> Result<(), String> {
        let name = operation_name(operation);
        let op = match name.strip_prefix("onnx.").ok_or_else(|| format!("{name} is no operator"))? {
            "NoValue" => return Ok(()),
            "BatchNormalizationInferenceMode" => "BatchNormalization",
            "MaxPoolSingleOut" => "MaxPool",
            op => op,
        };
        let results = self.result_names(operation);
        if op == "Constant" {
            let value = attribute(operation, "value").ok_or("a constant has no value")?;
            // SAFETY: the attribute is alive.
            let tensor = read_constant(unsafe { Attribute::from_raw(value) }, self.folder);
            let bytes = tensor.bytes().to_vec();
            self.constants.push(model::initializer(&results[0], tensor.dtype(), tensor.dims(), bytes));
            return Ok(());
        }
        let schema = schema::find(op).ok_or_else(|| format!("{op} is not in ONNX"))?;
        let (mut operands, mut outputs) = (self.operand_names(operation), results);
        // What is absent at the end is left out.
        operands.truncate(operands.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1));
        outputs.truncate(outputs.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1));
        let texts = |names: &[String]| names.iter().map(String::clone).collect::<Vec<_>>();
        let mut node = NodeProto {
            name: Some(format!("node_{}", self.nodes.len())),
            op_type: Some(op.to_owned()),
            input: texts(&operands),
            output: texts(&outputs),
            ..NodeProto::default()
        };
        // SAFETY: the operation is alive.
        for (key, value) in attributes_of(&unsafe { OperationRef::from_raw(operation) }).iter() {
            if !schema.attributes.iter().any(|attribute| attribute.name == key) {
                continue;
            }
            match value {
                // Not every tool has heard of it, and it is what they all do.
                Attr::Str(mode) if key == "round_mode" && mode == "up" => {}
                Attr::Other => return Err(format!("{op} has an attribute '{key}' that is not looked into")),
                value => node.attribute.push(model::attribute(key, value.clone())),
            }
        }
        self.nodes.push(node);
        Ok(())
    }

    fn result_names(&mut self, operation: MlirOperation) -> Vec<String> {
        // SAFETY: the operation is alive, and indices are below the count.
        let results = unsafe {
            (0..mlirOperationGetNumResults(operation)).map(|i| mlirOperationGetResult(operation, i)).collect::<Vec<_>>()
        };
        let mut names = vec![];
        for result in results {
            let name = if is_none(result) { String::new() } else { format!("value_{}", self.names.len()) };
            self.names.insert(result.ptr, name.clone());
            names.push(name);
        }
        names
    }

    fn operand_names(&self, operation: MlirOperation) -> Vec<String> {
        // SAFETY: the operation is alive, and indices are below the count.
        let operands =
            unsafe { (0..mlirOperationGetNumOperands(operation)).map(|i| mlirOperationGetOperand(operation, i)) };
        operands.map(|operand| self.names.get(&operand.ptr).cloned().unwrap_or_default()).collect()
    }
}

fn tensor(value: MlirValue) -> Option<TensorType> {
    // SAFETY: the type of a live value is alive.
    tensor_type_of(unsafe { Type::from_raw(mlirValueGetType(value)) })
}
