//! `divi-infer-shapes`: inference and folding on a module that is there already.

use crate::{
    import::Options,
    input_shapes,
    ir::{
        Failure, attribute, blocks, describe, error, operation_name, operations, run, string_attribute, text, warning,
    },
};
use divi_dialect::{
    dense_elements,
    node::{attributes_of, is_none, present_results, value_of},
    tensor_type, tensor_type_of,
};
use divi_onnx::{Dim, Node, Symbol, Value, fold, infer, node::Content};
use melior::{
    ContextRef, StringRef,
    ir::{AttributeLike, Type, TypeLike, operation::OperationRef},
};
use mlir_sys::*;
use rustc_hash::FxHashMap;
use std::{collections::BTreeMap, ffi::c_void};

/// What a run of the pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Results whose type became more precise.
    pub inferred: u64,
    /// Operators replaced by constants.
    pub folded: u64,
}

//===----------------------------------------------------------------------===//
// --divi-infer-shapes
//===----------------------------------------------------------------------===//

/// Infers every function of a module. Errors are emitted on the operations.
///
/// Operators that divi does not know keep their result types, even if their operands' change.
pub fn infer_shapes(module: MlirOperation, options: &Options) -> Result<Counts, Failure> {
    // SAFETY: the context of a live operation is alive.
    let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(module)) };
    let mut pass = Pass {
        // SAFETY: the context outlives the pass.
        context: unsafe { context.to_ref() },
        options,
        known: FxHashMap::default(),
        symbols: FxHashMap::default(),
        unmatched: options.input_shapes.iter().map(|(name, _)| name.as_str()).collect(),
        opaque: BTreeMap::new(),
        counts: Counts::default(),
    };
    for function in blocks(module).into_iter().flat_map(operations) {
        if operation_name(function) == "func.func" {
            pass.function(function)?;
        }
    }
    if let Some(name) = pass.unmatched.first() {
        error(module, &format!("no function has an argument named '{name}' (onnx.name) to give a shape"));
        return Err(Failure);
    }
    if !pass.opaque.is_empty() {
        let list: Vec<_> =
            pass.opaque.iter().map(|(op, (count, first))| format!("{op} ({count}, first {first})")).collect();
        warning(module, &format!("carried along as opaque work: {}", list.join(", ")));
    }
    Ok(pass.counts)
}

/// Operations of the dialect that are no operators.
const STRUCTURE: &[&str] = &["EntryPoint", "NoValue", "Return", "Yield"];

struct Pass<'a> {
    context: &'a melior::Context,
    options: &'a Options,
    /// What is known of values beyond their types: elements and named dimensions.
    known: FxHashMap<*const c_void, Value>,
    symbols: FxHashMap<String, Dim>,
    /// Arguments that are to get a shape and have not been met yet.
    unmatched: Vec<&'a str>,
    /// Operators that divi does not know, with how often and where first.
    opaque: BTreeMap<&'a str, (usize, String)>,
    counts: Counts,
}

impl Pass<'_> {
    fn function(&mut self, function: MlirOperation) -> Result<(), Failure> {
        let Some(&entry) = blocks(function).first() else { return Ok(()) };
        self.arguments(function, entry)?;
        for block in blocks(function) {
            self.block(block)?;
        }
        self.update_function_type(function, entry);
        Ok(())
    }

    /// Gives arguments the shapes that the options ask for, and their dimensions the names they have.
    fn arguments(&mut self, function: MlirOperation, entry: MlirBlock) -> Result<(), Failure> {
        // SAFETY: the block is alive, and indices are below the count.
        let arguments: Vec<_> =
            unsafe { (0..mlirBlockGetNumArguments(entry)).map(|i| mlirBlockGetArgument(entry, i)).collect() };
        let attributes = attribute(function, "arg_attrs");
        let argument_attribute = |index: usize, name: &str| {
            // SAFETY: the attributes are alive; a function has one dictionary an argument.
            unsafe {
                let dictionary = mlirArrayAttrGetElement(attributes?, index as isize);
                let value = mlirDictionaryAttrGetElementByName(dictionary, StringRef::new(name).to_raw());
                if value.ptr.is_null() { None } else { string_attribute(value) }
            }
        };
        let mut values: Vec<Option<Value>> = arguments.iter().map(|&argument| value_of(argument)).collect();
        for (i, value) in values.iter_mut().enumerate() {
            let (Some(value), Some(params)) = (value, argument_attribute(i, "onnx.dim_params")) else { continue };
            for (axis, name) in params.split(',').filter_map(|part| part.split_once(':')) {
                if let (Some(shape), Ok(axis)) = (&mut value.ty.shape, axis.parse::<usize>())
                    && let Some(dim @ Dim::Unknown) = shape.get_mut(axis)
                {
                    let fresh = Dim::Symbol(Symbol(self.symbols.len() as u32));
                    *dim = *self.symbols.entry(name.to_owned()).or_insert(fresh);
                }
            }
        }
        let mut inputs: Vec<_> = values
            .iter_mut()
            .enumerate()
            .filter_map(|(i, value)| Some((argument_attribute(i, "onnx.name").unwrap_or(""), &mut value.as_mut()?.ty)))
            .collect();
        self.unmatched.retain(|name| !inputs.iter().any(|(other, _)| other == name));
        if let Err(message) = input_shapes::fix(self.options, &mut inputs) {
            error(function, &format!("{} {message}", describe(function)));
            return Err(Failure);
        }
        for (&argument, value) in arguments.iter().zip(values) {
            if let Some(value) = value {
                self.set_type(argument, &value);
                self.known.insert(argument.ptr, value);
            }
        }
        Ok(())
    }

    fn block(&mut self, block: MlirBlock) -> Result<(), Failure> {
        for operation in operations(block) {
            for nested in blocks(operation) {
                self.block(nested)?;
            }
            self.operation(operation)?;
        }
        Ok(())
    }

    fn operation(&mut self, operation: MlirOperation) -> Result<(), Failure> {
        let Some(op) = operation_name(operation).strip_prefix("onnx.") else { return Ok(()) };
        if op == "Constant" {
            return Ok(());
        }
        if !infer::knows(op) {
            if !STRUCTURE.contains(&op) {
                self.opaque.entry(op).or_insert_with(|| (0, describe(operation))).0 += 1;
            }
            return Ok(());
        }
        // SAFETY: the operation is alive, and indices are below the counts.
        let (operands, results): (Vec<_>, Vec<_>) = unsafe {
            let operands = (0..mlirOperationGetNumOperands(operation)).map(|i| mlirOperationGetOperand(operation, i));
            let results = (0..mlirOperationGetNumResults(operation)).map(|i| mlirOperationGetResult(operation, i));
            (operands.collect(), results.collect())
        };
        if let ("Identity", [operand], [result]) = (op, &operands[..], &results[..]) {
            self.replace(operation, &[(*result, *operand)]);
            return Ok(());
        }
        let mut values = Vec::with_capacity(operands.len());
        for &operand in &operands {
            match self.known.get(&operand.ptr).cloned().or_else(|| value_of(operand)) {
                Some(value) => values.push(Some(value)),
                None if is_none(operand) => values.push(None),
                None => return Ok(()),
            }
        }
        let inputs: Vec<_> = values.iter().map(Option::as_ref).collect();
        // SAFETY: the operation is alive.
        let attributes = attributes_of(&unsafe { OperationRef::from_raw(operation) });
        let node = Node { op, inputs: &inputs, attributes: &attributes, outputs: present_results(operation) };
        let types = match infer::infer(&node) {
            Ok(types) => types,
            Err(message) => {
                error(operation, &format!("{} {message}", describe(operation)));
                return Err(Failure);
            }
        };
        let contents = fold::fold(&node, &types);
        if !results.is_empty()
            && results
                .iter()
                .enumerate()
                .all(|(i, &result)| is_none(result) || matches!(contents.get(i), Some(Some(Content::Constant(_)))))
        {
            self.fold(operation, &results, &contents);
            return Ok(());
        }
        for (i, (&result, ty)) in results.iter().zip(types).enumerate() {
            if is_none(result) {
                continue;
            }
            // SAFETY: the result is alive.
            let before = tensor_type_of(unsafe { Type::from_raw(mlirValueGetType(result)) });
            // Without new shapes, what the IR says already may be more precise than inference.
            let ty = match before {
                Some(before) if !self.options_change_shapes() => before.unify(&ty).unwrap_or(ty),
                _ => ty,
            };
            let value = Value { ty, content: contents.get(i).cloned().flatten() };
            self.set_type(result, &value);
            self.known.insert(result.ptr, value);
        }
        Ok(())
    }

    fn options_change_shapes(&self) -> bool {
        self.options.batch.is_some() || !self.options.input_shapes.is_empty()
    }

    fn set_type(&mut self, value: MlirValue, known: &Value) {
        let r#type = tensor_type(self.context, &known.ty).to_raw();
        // SAFETY: value and type are alive.
        unsafe {
            if !mlirTypeEqual(mlirValueGetType(value), r#type) {
                mlirValueSetType(value, r#type);
                self.counts.inferred += 1;
            }
        }
    }

    /// Puts constants in an operator's place.
    fn fold(&mut self, operation: MlirOperation, results: &[MlirValue], contents: &[Option<Content>]) {
        let mut replacements = vec![];
        for (&result, content) in results.iter().zip(contents) {
            let Some(Content::Constant(tensor)) = content else { continue };
            // SAFETY: everything belongs to one context; the block takes ownership of the constant.
            unsafe {
                let location = mlirOperationGetLocation(operation);
                let mut state = mlirOperationStateGet(StringRef::new("onnx.Constant").to_raw(), location);
                let value = dense_elements(self.context, tensor).to_raw();
                let mut attributes = vec![self.named("value", value)];
                attributes
                    .extend(attribute(operation, "onnx_node_name").map(|name| self.named("onnx_node_name", name)));
                mlirOperationStateAddAttributes(&mut state, attributes.len() as isize, attributes.as_ptr());
                mlirOperationStateAddResults(&mut state, 1, &mlirAttributeGetType(value));
                let constant = mlirOperationCreate(&mut state);
                mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(operation), operation, constant);
                replacements.push((result, mlirOperationGetResult(constant, 0)));
            }
        }
        self.replace(operation, &replacements);
    }

    fn named(&self, name: &str, attribute: MlirAttribute) -> MlirNamedAttribute {
        // SAFETY: the name outlives the call.
        let name = unsafe { mlirIdentifierGet(self.context.to_raw(), StringRef::new(name).to_raw()) };
        MlirNamedAttribute { name, attribute }
    }

    fn replace(&mut self, operation: MlirOperation, replacements: &[(MlirValue, MlirValue)]) {
        // SAFETY: nothing uses the operation's results afterwards, and nothing refers to it any more.
        unsafe {
            for &(before, after) in replacements {
                mlirValueReplaceAllUsesOfWith(before, after);
                self.known.remove(&before.ptr);
            }
            mlirOperationDestroy(operation);
        }
        self.counts.folded += 1;
    }

    /// A function's type is that of its arguments and of what it returns.
    fn update_function_type(&self, function: MlirOperation, entry: MlirBlock) {
        // SAFETY: function and block are alive; a function's body ends in a terminator.
        unsafe {
            let arguments: Vec<_> = (0..mlirBlockGetNumArguments(entry))
                .map(|i| mlirValueGetType(mlirBlockGetArgument(entry, i)))
                .collect();
            let last = blocks(function).pop().unwrap_or(entry);
            let terminator = mlirBlockGetTerminator(last);
            if terminator.ptr.is_null() {
                return;
            }
            let results: Vec<_> = (0..mlirOperationGetNumOperands(terminator))
                .map(|i| mlirValueGetType(mlirOperationGetOperand(terminator, i)))
                .collect();
            let r#type = mlirFunctionTypeGet(
                self.context.to_raw(),
                arguments.len() as isize,
                arguments.as_ptr(),
                results.len() as isize,
                results.as_ptr(),
            );
            mlirOperationSetAttributeByName(
                function,
                StringRef::new("function_type").to_raw(),
                mlirTypeAttrGet(r#type),
            );
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn diviRunInferShapes(
    module: MlirOperation,
    batch: i64,
    input_shapes: MlirStringRef,
    counts: *mut Counts,
) -> bool {
    run(module, || {
        // SAFETY: the caller's string outlives the call.
        let shapes = Options::parse_input_shapes(unsafe { text(input_shapes) });
        let input_shapes = shapes.map_err(|message| {
            error(module, &message);
            Failure
        })?;
        if batch < 0 {
            error(module, &format!("batch is {batch}: it must be positive"));
            return Err(Failure);
        }
        let options = Options { batch: (batch > 0).then_some(batch), input_shapes, ..Options::default() };
        let result = infer_shapes(module, &options)?;
        // SAFETY: the caller's counter outlives the call.
        unsafe { *counts = result };
        Ok(())
    })
}
