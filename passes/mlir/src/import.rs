//! Imports ONNX into MLIR: decodes a model, upgrades its operators to the newest opset, infers all types, folds
//! constants, and builds a module of the `onnx` dialect.
//!
//! Weights are not read: a constant whose bytes are stored verbatim in a file refers to them.

mod apply;
mod attributes;
mod checkpoint;
mod constants;
mod control_flow;
mod diagnostics;
mod emit;
mod files;
mod functions;
pub(crate) mod input_shapes;
mod input_values;
mod inputs;
mod names;
mod opaque;
mod options;
pub mod proto;
mod source;
pub mod tensor_proto;
mod translate;
mod types;
mod unroll;
mod upgrade;
mod verify;

pub(crate) use diagnostics::list_names;
pub use diagnostics::{Error, Warning};
pub use options::Options;
pub use source::{Source, is_onnx};
pub(crate) use unroll::{MAX_ITERATIONS, MAX_NODES};

use divi_onnx::schema::{IR_VERSION, OPSET};
use melior::{Context, ir::Module};
use prost::Message;
use proto::ModelProto;

/// Imports a model into a module with one function, `@main`, that verifies.
///
/// Warnings list operators that are carried along as opaque work, and dimensions that stay dynamic.
pub fn import<'c>(
    context: &'c Context,
    source: &Source,
    options: &Options,
) -> Result<(Module<'c>, Vec<Warning>), Error> {
    let fail = |message: String| Error::new(&source.name, None, message);
    let model = decode(source).map_err(fail)?;
    let graph = model.graph.as_ref().ok_or_else(|| fail("the model has no graph".into()))?;
    let opset = check_versions(&model).map_err(fail)?;
    let (module, warnings) = translate::translate(context, source, options, &model, graph, opset)?;
    verify::verify(context, &module, &source.name)?;
    Ok((module, warnings))
}

/// Decodes the protobuf; tensors alias the source.
pub fn decode(source: &Source) -> Result<ModelProto, String> {
    ModelProto::decode(source.bytes.clone())
        .map_err(|error| format!("not an ONNX model: the protobuf is truncated or damaged ({error})"))
}

/// Returns the ai.onnx opset of a model.
fn check_versions(model: &ModelProto) -> Result<i64, String> {
    let ir_version = model.ir_version();
    if !(1..=IR_VERSION).contains(&ir_version) {
        return Err(format!(
            "the model has IR version {ir_version}, divi reads 1 to {IR_VERSION}: save it with an older onnx"
        ));
    }
    let mut opset = None;
    for import in &model.opset_import {
        if matches!(import.domain(), "" | "ai.onnx") && opset.replace(import.version()).is_some() {
            return Err("the model imports the ai.onnx opset twice".into());
        }
    }
    // Before IR version 3, the only opset was the first.
    match opset.unwrap_or(if ir_version < 3 { 1 } else { OPSET }) {
        opset @ 1..=OPSET => Ok(opset),
        opset => Err(format!(
            "the model is written in opset {opset}, divi reads 1 to {OPSET}: convert it with onnx.version_converter"
        )),
    }
}
