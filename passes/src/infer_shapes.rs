//! `divi-infer-shapes`: inference and folding on a module that is there already.

mod functions;

use crate::{
    declared::{InferShapes, InferShapesStatistics},
    import::{Options, input_shapes, list_names},
    ir::{
        Failure, ONNX_CONSTANT, arguments_of, attribute, blocks, blocks_in_order, describe, error, named_attribute,
        operands, operation_name, operations, reshaped_type, results, signature_attribute, string_attribute, type_of,
        uses, warning,
    },
};
use divi_dialect::{
    dense_elements,
    node::{attributes_of, is_none, present_results, value_of},
    tensor_type_of,
};
use divi_onnx::{Dim, Node, Op, Symbol, Tensor, TensorType, Value, fold, infer, node::Content};
use functions::Functions;
use melior::{
    ContextRef, StringRef,
    ir::{AttributeLike, Type, operation::OperationRef},
};
use mlir_sys::*;
use rustc_hash::FxHashMap;
use std::{collections::BTreeMap, ffi::c_void};

//===----------------------------------------------------------------------===//
// --divi-infer-shapes
//===----------------------------------------------------------------------===//

/// Infers every function of a module. Errors are emitted on the operations.
///
/// Operators that divi does not know keep their result types, even if their operands' change.
pub fn infer_shapes(module: MlirOperation, options: &Options) -> Result<InferShapesStatistics, Failure> {
    // SAFETY: the context of a live operation is alive.
    let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(module)) };
    let mut pass = Pass {
        // SAFETY: the context outlives the pass.
        context: unsafe { context.to_ref() },
        options,
        functions: Functions::of(module),
        known: FxHashMap::default(),
        symbols: FxHashMap::default(),
        unmatched: options.input_shapes.iter().map(|(name, _)| name.as_str()).collect(),
        opaque: BTreeMap::new(),
        statistics: InferShapesStatistics::default(),
    };
    pass.all_functions()?;
    if let Some(name) = pass.unmatched.first() {
        let names = argument_names(module);
        let others = match names.is_empty() {
            true => "no argument has a name".to_owned(),
            false => format!("there are {}", list_names(names.into_iter())),
        };
        error(module, &format!("no function has an argument named '{name}' (onnx.name) to give a shape: {others}"));
        return Err(Failure);
    }
    if let Some((name, _)) = options.dims.iter().find(|(name, _)| !pass.symbols.contains_key(name)) {
        let mut names: Vec<_> = pass.symbols.keys().map(String::as_str).collect();
        names.sort_unstable();
        let others = match names.is_empty() {
            true => "no open dimension of an argument has a name".to_owned(),
            false => format!("there are {}", list_names(names.into_iter())),
        };
        error(module, &format!("there is no dimension '{name}' (onnx.dim_params) to give a size: {others}"));
        return Err(Failure);
    }
    if !pass.opaque.is_empty() {
        let list: Vec<_> =
            pass.opaque.iter().map(|(op, (count, first))| format!("{op} ({count}, first {first})")).collect();
        warning(module, &format!("carried along as opaque work: {}", list.join(", ")));
    }
    Ok(pass.statistics)
}

/// Names of the arguments of a module's functions.
fn argument_names(module: MlirOperation) -> Vec<&'static str> {
    let mut names = vec![];
    for function in blocks(module).into_iter().flat_map(operations).filter(|&op| operation_name(op) == "func.func") {
        let count = blocks(function).first().map_or(0, |&entry| arguments_of(entry).len());
        let name = |i| signature_attribute(function, "arg_attrs", i, "onnx.name").and_then(string_attribute);
        names.extend((0..count).filter_map(name));
    }
    names
}

/// Operations of the dialect that are no operators.
const STRUCTURE: &[&str] = &["EntryPoint", "NoValue", "Return", "Yield"];

struct Pass<'a> {
    context: &'a melior::Context,
    options: &'a Options,
    functions: Functions,
    /// What is known of values beyond their types: elements and named dimensions.
    known: FxHashMap<*const c_void, Value>,
    symbols: FxHashMap<String, Dim>,
    /// Arguments that are to get a shape and have not been met yet.
    unmatched: Vec<&'a str>,
    /// Operators that divi does not know, with how often and where first.
    opaque: BTreeMap<&'a str, (usize, String)>,
    statistics: InferShapesStatistics,
}

impl Pass<'_> {
    /// Gives a function's arguments the names of their dimensions and, if it is `open` to them, the shapes that the
    /// options ask for.
    fn arguments(&mut self, function: MlirOperation, arguments: &[MlirValue], open: bool) -> Result<(), Failure> {
        let argument_attribute =
            |index, name| signature_attribute(function, "arg_attrs", index, name).and_then(string_attribute);
        let mut values: Vec<Option<Value>> = arguments.iter().map(|&argument| value_of(argument)).collect();
        for (i, value) in values.iter_mut().enumerate() {
            let (Some(value), Some(params)) = (value, argument_attribute(i, "onnx.dim_params")) else { continue };
            for (axis, name) in params.split(',').filter_map(|part| part.split_once(':')) {
                if let (Some(shape), Ok(axis)) = (&mut value.ty.shape, axis.parse::<usize>())
                    && let Some(dim @ Dim::Unknown) = shape.get_mut(axis)
                {
                    let size = self.options.dims.iter().find(|(other, _)| open && other == name);
                    let fresh = Dim::Symbol(Symbol(self.symbols.len() as u32));
                    let fresh = size.map_or(fresh, |&(_, size)| Dim::Known(size));
                    *dim = *self.symbols.entry(name.to_owned()).or_insert(fresh);
                }
            }
        }
        let mut inputs: Vec<_> = values
            .iter_mut()
            .enumerate()
            .filter_map(|(i, value)| Some((argument_attribute(i, "onnx.name").unwrap_or(""), &mut value.as_mut()?.ty)))
            .collect();
        if open {
            self.unmatched.retain(|name| !name.is_empty() && !inputs.iter().any(|(other, _)| other == name));
            if let Err(message) = input_shapes::fix(self.options, &mut inputs) {
                error(function, &format!("{} {message}", describe(function)));
                return Err(Failure);
            }
        }
        for (&argument, value) in arguments.iter().zip(values) {
            if let Some(value) = value {
                self.set_shape(argument, &value.ty)?;
                self.known.insert(argument.ptr, value);
            }
        }
        Ok(())
    }

    fn block(&mut self, block: MlirBlock) -> Result<(), Failure> {
        for operation in operations(block) {
            match operation_name(operation) {
                // Symbols of other scopes than the module's.
                "builtin.module" | "func.func" => {}
                "divi.cluster" => self.cluster(operation)?,
                "divi.transfer" => self.hand_on(&operands(operation), &results(operation))?,
                "divi.launch" | "func.call" => self.call(operation)?,
                _ => {
                    self.body(operation)?;
                    self.operation(operation)?;
                }
            }
        }
        Ok(())
    }

    /// What is below an operation, definitions before uses.
    fn body(&mut self, operation: MlirOperation) -> Result<(), Failure> {
        blocks_in_order(operation).into_iter().try_for_each(|block| self.block(block))
    }

    /// A cluster's body has its operands as arguments, and it has what the body yields as results.
    fn cluster(&mut self, operation: MlirOperation) -> Result<(), Failure> {
        let Some(&block) = blocks(operation).first() else { return Ok(()) };
        self.hand_on(&operands(operation), &arguments_of(block))?;
        self.body(operation)?;
        // SAFETY: the block is alive, and a cluster's body ends in a terminator.
        let terminator = unsafe { mlirBlockGetTerminator(block) };
        self.hand_on(&operands(terminator), &results(operation))
    }

    /// Makes values what others are: their types, and what is known of them.
    fn hand_on(&mut self, from: &[MlirValue], to: &[MlirValue]) -> Result<(), Failure> {
        for (&from, &to) in from.iter().zip(to) {
            self.set_type(to, type_of(from))?;
            if let Some(value) = self.value(from) {
                self.known.insert(to.ptr, value);
            }
        }
        Ok(())
    }

    /// What is known of a value; `None` if it is no tensor.
    fn value(&self, value: MlirValue) -> Option<Value> {
        self.known.get(&value.ptr).cloned().or_else(|| value_of(value))
    }

    fn operation(&mut self, operation: MlirOperation) -> Result<(), Failure> {
        let Some(name) = operation_name(operation).strip_prefix("onnx.") else { return Ok(()) };
        let Some(op) = Op::from_name(name).filter(|op| op.is_inferred()) else {
            if !STRUCTURE.contains(&name) {
                self.opaque.entry(name).or_insert_with(|| (0, describe(operation))).0 += 1;
            }
            return Ok(());
        };
        if op == Op::Constant {
            return Ok(());
        }
        let (operands, results) = (operands(operation), results(operation));
        if let (Op::Identity, &[operand], &[result]) = (op, &operands[..], &results[..])
            && self.identity(operation, operand, result)
        {
            return Ok(());
        }
        let mut values = Vec::with_capacity(operands.len());
        for &operand in &operands {
            match self.value(operand) {
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
        if let Some(constants) = self.constants(&results, &contents) {
            return self.fold(operation, &constants);
        }
        for (i, (&result, ty)) in results.iter().zip(types).enumerate() {
            // SAFETY: the type of a live value is alive.
            let Some(before) = tensor_type_of(unsafe { Type::from_raw(type_of(result)) }) else { continue };
            // Without new shapes, what the IR says already may be more precise than inference.
            let ty = if self.options_change_shapes() { ty } else { before.unify(&ty).unwrap_or(ty) };
            self.set_shape(result, &ty)?;
            self.known.insert(result.ptr, Value { ty, content: contents.get(i).cloned().flatten() });
        }
        Ok(())
    }

    /// Takes an Identity away if its operand is as good as its result. Says whether all is done for it.
    fn identity(&mut self, operation: MlirOperation, operand: MlirValue, result: MlirValue) -> bool {
        let (from, to) = (type_of(operand), type_of(result));
        // SAFETY: values and types are alive.
        let (same_value, same_type, from_tensor, to_tensor) = unsafe {
            let tensor = |r#type| tensor_type_of(Type::from_raw(r#type));
            (mlirValueEqual(operand, result), mlirTypeEqual(from, to), tensor(from), tensor(to))
        };
        // In code that is never reached, an operation may be its own operand.
        if same_value {
            return true;
        }
        if !same_type {
            let (Some(from_tensor), Some(to_tensor)) = (from_tensor, to_tensor) else { return false };
            let precise = match from_tensor.unify(&to_tensor) {
                Some(both) => both == from_tensor,
                None => self.options_change_shapes(),
            };
            // SAFETY: the types are alive.
            if !precise || !unsafe { mlirTypeEqual(reshaped_type(self.context, to, &from_tensor), from) } {
                return false;
            }
            // It is there to forget the shape for one that insists on its operand's type.
            if to_tensor.unify(&from_tensor).is_some() && uses(result).iter().any(|&(user, _)| !self.follows(user)) {
                if let Some(value) = self.value(operand) {
                    self.known.insert(result.ptr, value);
                }
                return true;
            }
        }
        self.replace(operation, &[(result, operand)]);
        true
    }

    /// The constants that results are, if there are any and no other result is used.
    fn constants<'c>(
        &self,
        results: &[MlirValue],
        contents: &'c [Option<Content>],
    ) -> Option<Vec<(MlirValue, &'c Tensor)>> {
        let mut constants = vec![];
        for (i, &result) in results.iter().enumerate() {
            match contents.get(i) {
                Some(Some(Content::Constant(tensor))) if !is_none(result) => {
                    let r#type = reshaped_type(self.context, type_of(result), &tensor_type_of_constant(tensor));
                    let constant = dense_elements(self.context, tensor).to_raw();
                    // SAFETY: attribute and types are alive; what insists on signs or an encoding is no constant.
                    if !unsafe { mlirTypeEqual(mlirAttributeGetType(constant), r#type) } {
                        return None;
                    }
                    constants.push((result, tensor));
                }
                _ if is_none(result) && uses(result).is_empty() => {}
                _ => return None,
            }
        }
        (!constants.is_empty()).then_some(constants)
    }

    fn options_change_shapes(&self) -> bool {
        self.options.batch.is_some() || !self.options.input_shapes.is_empty() || !self.options.dims.is_empty()
    }

    /// Puts constants in an operator's place.
    fn fold(&mut self, operation: MlirOperation, constants: &[(MlirValue, &Tensor)]) -> Result<(), Failure> {
        let mut replacements = vec![];
        for &(result, tensor) in constants {
            self.set_shape(result, &tensor_type_of_constant(tensor))?;
            // SAFETY: everything belongs to one context; the block takes ownership of the constant.
            unsafe {
                let location = mlirOperationGetLocation(operation);
                let mut state = mlirOperationStateGet(StringRef::new(ONNX_CONSTANT).to_raw(), location);
                let value = dense_elements(self.context, tensor).to_raw();
                let mut attributes = vec![named_attribute(self.context, "value", value)];
                attributes.extend(
                    attribute(operation, "onnx_node_name")
                        .map(|name| named_attribute(self.context, "onnx_node_name", name)),
                );
                mlirOperationStateAddAttributes(&mut state, attributes.len() as isize, attributes.as_ptr());
                mlirOperationStateAddResults(&mut state, 1, &mlirAttributeGetType(value));
                let constant = mlirOperationCreate(&mut state);
                mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(operation), operation, constant);
                replacements.push((result, mlirOperationGetResult(constant, 0)));
            }
        }
        self.replace(operation, &replacements);
        Ok(())
    }

    fn replace(&mut self, operation: MlirOperation, replacements: &[(MlirValue, MlirValue)]) {
        for &(before, after) in replacements {
            // SAFETY: both values are alive.
            unsafe { mlirValueReplaceAllUsesOfWith(before, after) };
        }
        let results = results(operation);
        if results.iter().any(|&result| !uses(result).is_empty()) {
            return;
        }
        for result in results {
            self.known.remove(&result.ptr);
        }
        // SAFETY: nothing uses the operation's results, `known` has forgotten them, and the loop over its block, which
        // has a list of its own, is past it or at it.
        unsafe { mlirOperationDestroy(operation) };
        self.statistics.num_folded += 1;
    }
}

fn tensor_type_of_constant(tensor: &Tensor) -> TensorType {
    TensorType::new(tensor.dtype(), tensor.dims().iter().copied().map(Dim::Known).collect::<Vec<_>>())
}

impl InferShapes {
    pub(crate) fn run(&self, module: MlirOperation) -> Result<InferShapesStatistics, Failure> {
        let fail = |message: String| {
            error(module, &message);
            Failure
        };
        let input_shapes = Options::parse_input_shapes(&self.input_shapes.join(",")).map_err(fail)?;
        let dims = Options::parse_dims(&self.dims.join(",")).map_err(fail)?;
        if self.batch < 0 {
            return Err(fail(format!("batch is {}: it must be positive", self.batch)));
        }
        let batch = (self.batch > 0).then_some(self.batch);
        infer_shapes(module, &Options { batch, input_shapes, dims, ..Options::default() })
    }
}
