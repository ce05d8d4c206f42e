//! What a profile knows a task by.

use crate::{
    ir::{blocks, operands, operation_name, operations, results, tensor_type_of_value},
    tasks::{definer, is_constant, is_constant_value},
};
use divi_cost::profile::{Key, Operand};
use divi_dialect::node::{attributes_of, is_none, operator};
use divi_onnx::Attributes;
use melior::ir::operation::OperationRef;
use mlir_sys::*;

/// The key of a task of a module whose batch is `batch`; `None` for tasks that no profile can have: operators of other
/// dialects, open shapes, results without the batch.
pub(super) fn key_of(task: MlirOperation, batch: u64) -> Option<Key> {
    let is_cluster = operation_name(task) == "divi.cluster";
    let members: Vec<MlirOperation> = if is_cluster {
        let all = blocks(task).into_iter().flat_map(operations);
        all.filter(|&member| !is_constant(member) && operation_name(member) != "divi.yield").collect()
    } else {
        vec![task]
    };
    let mut ops = vec![];
    let mut shapes = vec![];
    for &member in &members {
        // SAFETY: the operation is alive.
        let reference = unsafe { OperationRef::from_raw(member) };
        ops.push((operator(&reference)?, own_attributes(&attributes_of(&reference))));
        for operand in operands(member) {
            let inside = is_cluster && definer(operand).is_some();
            if !inside && !is_none(operand) {
                shapes.push((shape(operand)?, is_constant_value(operand)));
            }
        }
    }
    let ops: Vec<(&str, &Attributes)> = ops.iter().map(|(op, attributes)| (*op, attributes)).collect();
    let operands: Vec<_> =
        shapes.iter().map(|(shape, is_constant)| Operand { shape, is_constant: *is_constant }).collect();
    let results: Vec<_> = results(task).into_iter().filter(|&result| !is_none(result)).collect();
    let dtype = tensor_type_of_value(*results.first()?)?.dtype;
    let results: Vec<Vec<u64>> = results.into_iter().map(shape).collect::<Option<_>>()?;
    let results: Vec<&[u64]> = results.iter().map(Vec::as_slice).collect();
    Key::new(&ops, &operands, &results, dtype, batch)
}

fn shape(value: MlirValue) -> Option<Vec<u64>> {
    let sizes = tensor_type_of_value(value)?.static_shape()?;
    sizes.into_iter().map(|size| u64::try_from(size).ok()).collect()
}

/// The attributes that are the operator's, not divi's or the importer's.
fn own_attributes(all: &Attributes) -> Attributes {
    let own = all.iter().filter(|(name, _)| *name != "onnx_node_name" && !name.contains('.'));
    own.map(|(name, attribute)| (name.to_owned(), attribute.clone())).collect()
}
