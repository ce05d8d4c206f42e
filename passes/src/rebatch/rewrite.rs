//! Makes a function what [`Rebatched`] says that it becomes.

mod build;
mod runs;

use super::{Rebatched, analysis::Batch, layout::scaled, rules::Change};
use crate::{
    ir::{
        arguments_of, attribute, blocks, op_of, operands, operation_name, operations, reshaped_type, results,
        set_attribute, string_attribute, tensor_type_of_value, text, type_of, uses,
    },
    tasks::definer,
};
use build::Builder;
use divi_onnx::{Op, Tensor, node::Content};
use melior::{Context, StringRef};
use mlir_sys::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::c_void;

/// Rewrites a function. The analysis does not hold afterwards. Returns how many constants were made.
pub(super) fn rewrite(context: &Context, function: MlirOperation, rebatched: &Rebatched) -> u64 {
    let Some(&entry) = blocks(function).first() else { return 0 };
    // All types are known before the first of them changes.
    let mut types = vec![];
    collect_types(context, entry, rebatched, &mut types);
    for (value, r#type) in types {
        // SAFETY: value and type are alive.
        unsafe { mlirValueSetType(value, r#type) };
    }
    let mut rewriter = Rewriter {
        context,
        rebatched,
        constants: FxHashMap::default(),
        tiles: FxHashMap::default(),
        parts: FxHashMap::default(),
        replacements: vec![],
        dead: vec![],
        left: vec![],
    };
    rewriter.block(entry);
    rewriter.finish();
    let constants = rewriter.constants.len() as u64;
    update_function_type(context, function, entry);
    constants
}

/// The types that batched values of a block get, but for the results of operators that repeat: those are replaced.
fn collect_types(context: &Context, block: MlirBlock, rebatched: &Rebatched, types: &mut Vec<(MlirValue, MlirType)>) {
    let mut add = |value: MlirValue| {
        if let (Batch::At(_), Some(ty)) = (rebatched.analysis.batch(value), rebatched.scaled_type(value)) {
            types.push((value, reshaped_type(context, type_of(value), &ty)));
        }
    };
    arguments_of(block).into_iter().for_each(&mut add);
    let mut operations = operations(block);
    operations.retain(|&operation| !rebatched.repeats(operation));
    operations.iter().flat_map(|&operation| results(operation)).for_each(&mut add);
    for cluster in operations.into_iter().filter(|&operation| operation_name(operation) == "divi.cluster") {
        blocks(cluster).into_iter().for_each(|body| collect_types(context, body, rebatched, types));
    }
}

/// Values are replaced and operators removed at the end, so that what the analysis says of them can be looked up.
struct Rewriter<'a> {
    context: &'a Context,
    rebatched: &'a Rebatched,
    /// Constants that were made, by the block that they are in: type, shape and elements.
    constants: FxHashMap<(*mut c_void, String), MlirValue>,
    /// Values that were repeated, by block, value and axis.
    tiles: FxHashMap<(*mut c_void, *const c_void, usize), MlirValue>,
    /// The runs of values that are batched, as far as they were asked for.
    parts: FxHashMap<*const c_void, Vec<MlirValue>>,
    replacements: Vec<(MlirValue, MlirValue)>,
    dead: Vec<MlirOperation>,
    /// Values that fewer use than before.
    left: Vec<MlirValue>,
}

impl Rewriter<'_> {
    fn factor(&self) -> i64 {
        self.rebatched.analysis.factor
    }

    fn builder(&self, before: MlirOperation) -> Builder<'_> {
        Builder { context: self.context, before }
    }

    fn block(&mut self, block: MlirBlock) {
        for operation in operations(block) {
            if self.rebatched.repeats(operation) {
                self.unroll(operation);
            } else if let Some(value) = self.rebatched.analysis.frozen.get(&operation.ptr) {
                if let Some(Content::Constant(tensor)) = &value.content {
                    let constant = self.constant(operation, tensor, name(operation));
                    self.replace(operation, constant);
                }
            } else if self.rebatched.analysis.reshapes.contains(&operation.ptr) {
                self.reshape(operation);
            } else {
                self.operands(operation);
                if operation_name(operation) == "divi.cluster" {
                    blocks(operation).into_iter().for_each(|body| self.block(body));
                }
            }
        }
    }

    /// Gives an operator the operands that it needs at the new batch.
    fn operands(&mut self, operation: MlirOperation) {
        for (i, value) in operands(operation).into_iter().enumerate() {
            let changed = match self.rebatched.change(operation, i) {
                Some(Change::Constant(tensor)) => self.constant(operation, tensor, name_of(value)),
                Some(&Change::Spread(axis)) => self.tile(operation, value, axis),
                // Only what ends the function takes values that are not together, and gets them behind each other.
                None if self.rebatched.analysis.batch(value) == Batch::Apart => self.stack(operation, value),
                None => continue,
            };
            // SAFETY: operation and value are alive.
            unsafe { mlirOperationSetOperand(operation, i as isize, changed) };
            self.left.push(value);
        }
    }

    /// A constant in front of an operator; one for all that need the same in a block.
    fn constant(&mut self, before: MlirOperation, tensor: &Tensor, name: Option<&str>) -> MlirValue {
        // SAFETY: the operation is alive.
        let block = unsafe { mlirOperationGetBlock(before) };
        let key = (block.ptr, format!("{} {:?} {:?}", tensor.dtype(), tensor.dims(), tensor.bytes()));
        if let Some(&constant) = self.constants.get(&key) {
            return constant;
        }
        let constant = self.builder(before).constant(tensor, name);
        self.constants.insert(key, constant);
        constant
    }

    fn list(&mut self, before: MlirOperation, values: &[i64]) -> MlirValue {
        self.constant(before, &Tensor::from_shape(values), None)
    }

    /// A value once for each run, along an axis.
    fn tile(&mut self, before: MlirOperation, value: MlirValue, axis: usize) -> MlirValue {
        // SAFETY: the operation is alive.
        let block = unsafe { mlirOperationGetBlock(before) };
        let key = (block.ptr, value.ptr, axis);
        if let Some(&tiled) = self.tiles.get(&key) {
            return tiled;
        }
        let ty = tensor_type_of_value(value).expect("what is repeated is a tensor");
        let mut repeats = vec![1; ty.rank().expect("what is repeated has the axis")];
        repeats[axis] = self.factor();
        let repeats = self.list(before, &repeats);
        let result = scaled(&ty, axis, self.factor()).expect("the analysis found the size");
        let r#type = reshaped_type(self.context, type_of(value), &result);
        let name = name_of(value).map(|name| format!("{name}#repeat"));
        let tiled =
            self.builder(before).result(Op::Tile.operation_name(), &[value, repeats], r#type, &[], name.as_deref());
        self.tiles.insert(key, tiled);
        tiled
    }

    /// Puts a Reshape in the place of an operator.
    fn reshape(&mut self, operation: MlirOperation) {
        let (operand, result) = (operands(operation)[0], results(operation)[0]);
        let reshaped = self.reshaped(operation, operand, type_of(result), name(operation));
        if let Some(owner) = definer(reshaped) {
            keep_task(operation, owner);
        }
        self.replace(operation, reshaped);
    }

    /// A value with the dimensions of a type.
    fn reshaped(&mut self, before: MlirOperation, value: MlirValue, r#type: MlirType, name: Option<&str>) -> MlirValue {
        // SAFETY: the type is alive.
        let ty = divi_dialect::tensor_type_of(unsafe { melior::ir::Type::from_raw(r#type) });
        let sizes = ty.and_then(|ty| ty.static_shape()).expect("the analysis found the sizes");
        let sizes = self.list(before, &sizes);
        let builder = self.builder(before);
        builder.result(Op::Reshape.operation_name(), &[value, sizes], r#type, &[builder.int("allowzero", 0)], name)
    }

    fn replace(&mut self, operation: MlirOperation, value: MlirValue) {
        self.replacements.extend(results(operation).first().map(|&result| (result, value)));
        self.left.extend(operands(operation));
        self.dead.push(operation);
    }

    /// Replaces and removes what is to be.
    fn finish(&mut self) {
        for &(before, after) in &self.replacements {
            // SAFETY: both values are alive.
            unsafe { mlirValueReplaceAllUsesOfWith(before, after) };
        }
        for operation in self.dead.drain(..).rev() {
            // SAFETY: what used it is behind it and gone, or uses its replacement.
            unsafe { mlirOperationDestroy(operation) };
        }
        let gone: FxHashSet<_> = self.replacements.iter().map(|(before, _)| before.ptr).collect();
        let mut seen = FxHashSet::default();
        let left = self.left.iter().chain(self.replacements.iter().map(|(_, after)| after));
        for &value in left.filter(|value| !gone.contains(&value.ptr) && seen.insert(value.ptr)) {
            erase_unused(value);
        }
    }
}

/// Removes a constant that nobody uses any more, and what was only made to put runs together.
fn erase_unused(value: MlirValue) {
    // SAFETY: the value is alive; nothing uses what is destroyed.
    unsafe {
        if mlirValueIsAOpResult(value) && uses(value).is_empty() {
            let owner = mlirOpResultGetOwner(value);
            if matches!(op_of(owner), Some(Op::Constant | Op::Concat)) {
                mlirOperationDestroy(owner);
            }
        }
    }
}

/// What is said of a task, such as its cost, holds for the operator that takes its place.
fn keep_task(before: MlirOperation, after: MlirOperation) {
    // SAFETY: the operation is alive, and the index is below the count.
    let named = unsafe { (0..mlirOperationGetNumAttributes(before)).map(|i| mlirOperationGetAttribute(before, i)) };
    for named in named {
        // SAFETY: a name lives as long as its context.
        let name = unsafe { text(mlirIdentifierStr(named.name)) };
        if name.starts_with("divi.") {
            set_attribute(after, name, named.attribute);
        }
    }
}

fn name<'a>(operation: MlirOperation) -> Option<&'a str> {
    attribute(operation, "onnx_node_name").and_then(string_attribute)
}

/// The name of the node that computes a value.
fn name_of<'a>(value: MlirValue) -> Option<&'a str> {
    // SAFETY: the value is alive.
    unsafe { mlirValueIsAOpResult(value).then(|| mlirOpResultGetOwner(value)) }.and_then(name)
}

/// A function's type is that of its arguments and of what it returns.
fn update_function_type(context: &Context, function: MlirOperation, entry: MlirBlock) {
    let inputs: Vec<_> = arguments_of(entry).into_iter().map(type_of).collect();
    // SAFETY: everything is alive, and the lists outlive the call.
    unsafe {
        let terminator = mlirBlockGetTerminator(entry);
        if terminator.ptr.is_null() {
            return;
        }
        let outputs: Vec<_> = operands(terminator).into_iter().map(type_of).collect();
        let r#type = mlirFunctionTypeGet(
            context.to_raw(),
            inputs.len() as isize,
            inputs.as_ptr(),
            outputs.len() as isize,
            outputs.as_ptr(),
        );
        let name = StringRef::new("function_type").to_raw();
        mlirOperationSetAttributeByName(function, name, mlirTypeAttrGet(r#type));
    }
}
