//! `divi-infer-shapes`: shape inference and folding on an existing module.

mod functions;

use crate::{
    declared::{InferShapes, InferShapesStatistics},
    import::{Options, input_shapes, list_names},
    ir::{Failure, describe, error, new_constant, warning},
};
use divi_dialect::{
    Block, Operation, Value, attr, blocks_in_order, dense_elements,
    node::{inference_value, with_inference_node},
    op, reshaped_type, tensor_type_of,
};
use divi_onnx::{Dim, Op, Symbol, Tensor, TensorType, Value as Known, fold, infer, node::KnownElements};
use functions::Functions;
use melior::ContextRef;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

//===----------------------------------------------------------------------===//
// --divi-infer-shapes
//===----------------------------------------------------------------------===//

/// Infers every function of a module. Errors are emitted on the operations.
///
/// Operators that divi does not know keep their result types, even if their operands' change.
pub fn infer_shapes(module: Operation<'_>, options: &Options) -> Result<InferShapesStatistics, Failure> {
    let mut pass = Pass {
        context: module.context(),
        options,
        functions: Functions::of(module),
        known: FxHashMap::default(),
        symbols: FxHashMap::default(),
        resizable: BTreeSet::new(),
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
    if let Some((name, _)) = options.dims.iter().find(|(name, _)| !pass.resizable.contains(name)) {
        let others = match pass.resizable.is_empty() {
            true => "no dynamic dimension of an argument has a name".to_owned(),
            false => format!("there are {}", list_names(pass.resizable.iter().map(String::as_str))),
        };
        error(module, &format!("cannot give a size to unknown dimension '{name}' (onnx.dim_params): {others}"));
        return Err(Failure);
    }
    if !pass.opaque.is_empty() {
        let list: Vec<_> =
            pass.opaque.iter().map(|(op, (count, first))| format!("{op} ({count}, first {first})")).collect();
        warning(module, &format!("carried along as opaque work: {}", list.join(", ")));
    }
    Ok(pass.statistics)
}

/// Returns the names of the arguments of a module's functions.
fn argument_names(module: Operation<'_>) -> Vec<&str> {
    let mut names = vec![];
    for function in module.children().into_iter().filter(|child| child.name() == op::FUNC) {
        let count = function.blocks().first().map_or(0, |entry| entry.argument_count());
        let name = |i| function.signature_attribute(attr::ARG_ATTRS, i, "onnx.name").and_then(attr::as_string);
        names.extend((0..count).filter_map(name));
    }
    names
}

/// Operations of the dialect that are not operators.
const STRUCTURE: &[&str] = &["EntryPoint", "NoValue", "Return", "Yield"];

struct Pass<'m> {
    context: ContextRef<'m>,
    options: &'m Options,
    functions: Functions<'m>,
    /// Facts about values beyond their types: elements and named dimensions.
    known: FxHashMap<Value<'m>, Known>,
    symbols: FxHashMap<String, Dim>,
    /// Names of dimensions that the options can give a size to: those of functions that nothing calls or refers to.
    resizable: BTreeSet<String>,
    /// Arguments with a requested shape that have not been found yet.
    unmatched: Vec<&'m str>,
    /// Unknown operators: their counts, and the first operation of each.
    opaque: BTreeMap<&'m str, (usize, String)>,
    statistics: InferShapesStatistics,
}

impl<'m> Pass<'m> {
    /// Assigns names to the dimensions of a function's arguments and, if `open`, the shapes that the options request.
    fn arguments(&mut self, function: Operation<'m>, arguments: &[Value<'m>], open: bool) -> Result<(), Failure> {
        let argument_attribute =
            |index, name| function.signature_attribute(attr::ARG_ATTRS, index, name).and_then(attr::as_string);
        let mut values: Vec<Option<Known>> = arguments.iter().map(|&argument| inference_value(argument)).collect();
        for (i, value) in values.iter_mut().enumerate() {
            let (Some(value), Some(params)) = (value, argument_attribute(i, "onnx.dim_params")) else { continue };
            for (axis, name) in params.split(',').filter_map(|part| part.split_once(':')) {
                if let (Some(shape), Ok(axis)) = (&mut value.ty.shape, axis.parse::<usize>())
                    && let Some(dim @ Dim::Unknown) = shape.get_mut(axis)
                {
                    let size = self.options.dims.iter().find(|(other, _)| open && other == name);
                    let fresh = Dim::Symbol(Symbol(self.symbols.len() as u32));
                    let symbol = *self.symbols.entry(name.to_owned()).or_insert(fresh);
                    *dim = size.map_or(symbol, |&(_, size)| Dim::Known(size));
                    if open {
                        self.resizable.insert(name.to_owned());
                    }
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
                self.known.insert(argument, value);
            }
        }
        Ok(())
    }

    fn block(&mut self, block: Block<'m>) -> Result<(), Failure> {
        for operation in block.operations() {
            match operation.name() {
                // They are not symbols of the module itself.
                "builtin.module" | op::FUNC => {}
                op::CLUSTER => self.cluster(operation)?,
                op::TRANSFER => self.propagate(&operation.operands(), &operation.results())?,
                op::LAUNCH | op::CALL => self.call(operation)?,
                _ => {
                    self.body(operation)?;
                    self.operation(operation)?;
                }
            }
        }
        Ok(())
    }

    /// Infers the regions of an operation, definitions before uses.
    fn body(&mut self, operation: Operation<'m>) -> Result<(), Failure> {
        blocks_in_order(operation).into_iter().try_for_each(|block| self.block(block))
    }

    /// Infers a cluster: its arguments have the types of its operands, and its results those of the yielded values.
    fn cluster(&mut self, operation: Operation<'m>) -> Result<(), Failure> {
        let Some(&block) = operation.blocks().first() else { return Ok(()) };
        self.propagate(&operation.operands(), &block.arguments())?;
        self.body(operation)?;
        let yielded = block.terminator().map(Operation::operands).unwrap_or_default();
        self.propagate(&yielded, &operation.results())
    }

    /// Copies types and facts from values to others.
    fn propagate(&mut self, from: &[Value<'m>], to: &[Value<'m>]) -> Result<(), Failure> {
        for (&from, &to) in from.iter().zip(to) {
            self.set_type(to, from.r#type())?;
            if let Some(value) = self.value(from) {
                self.known.insert(to, value);
            }
        }
        Ok(())
    }

    /// Returns the facts about a value; `None` if it is not a tensor.
    fn value(&self, value: Value<'m>) -> Option<Known> {
        self.known.get(&value).cloned().or_else(|| inference_value(value))
    }

    fn operation(&mut self, operation: Operation<'m>) -> Result<(), Failure> {
        let Some(name) = operation.name().strip_prefix("onnx.") else { return Ok(()) };
        let Some(op) = Op::from_name(name).filter(|op| op.is_inferred()) else {
            if !STRUCTURE.contains(&name) {
                self.opaque.entry(name).or_insert_with(|| (0, describe(operation))).0 += 1;
            }
            return Ok(());
        };
        if op == Op::Constant {
            return Ok(());
        }
        let (operands, results) = (operation.operands(), operation.results());
        if let (Op::Identity, &[operand], &[result]) = (op, &operands[..], &results[..])
            && self.identity(operation, operand, result)
        {
            return Ok(());
        }
        let inferred = with_inference_node(
            operation,
            op,
            |value| self.value(value),
            |node| {
                let types = infer::infer(node)?;
                let contents = fold::fold(node, &types);
                Ok::<_, divi_onnx::node::Error>((types, contents))
            },
        );
        let Some(inferred) = inferred else { return Ok(()) };
        let (types, contents) = inferred.map_err(|message| {
            error(operation, &format!("{} {message}", describe(operation)));
            Failure
        })?;
        if let Some(constants) = self.constants(&results, &contents) {
            return self.fold(operation, &constants);
        }
        for (i, (&result, ty)) in results.iter().zip(types).enumerate() {
            let Some(before) = result.tensor_type() else { continue };
            // Without new shapes, the type in the IR may be more precise than the inferred one.
            let ty = if self.options_change_shapes() { ty } else { before.unify(&ty).unwrap_or(ty) };
            self.set_shape(result, &ty)?;
            self.known.insert(result, Known { ty, content: contents.get(i).cloned().flatten() });
        }
        Ok(())
    }

    /// Removes an Identity whose operand can replace its result. Returns true if the operation needs no further
    /// inference.
    fn identity(&mut self, operation: Operation<'m>, operand: Value<'m>, result: Value<'m>) -> bool {
        // In unreachable code, an operation may be its own operand.
        if operand == result {
            return true;
        }
        let (from, to) = (operand.r#type(), result.r#type());
        if from != to {
            let (Some(from_tensor), Some(to_tensor)) = (tensor_type_of(from), tensor_type_of(to)) else { return false };
            let precise = match from_tensor.unify(&to_tensor) {
                Some(both) => both == from_tensor,
                None => self.options_change_shapes(),
            };
            if !precise || reshaped_type(self.context, to, &from_tensor) != from {
                return false;
            }
            // The Identity hides the shape from a user that requires its operand's type.
            if to_tensor.unify(&from_tensor).is_some() && result.uses().iter().any(|&(user, _)| !self.follows(user)) {
                if let Some(value) = self.value(operand) {
                    self.known.insert(result, value);
                }
                return true;
            }
        }
        self.replace(operation, &[(result, operand)]);
        true
    }

    /// Returns the constants that replace the results; `None` if another result is used.
    fn constants<'c>(
        &self,
        results: &[Value<'m>],
        contents: &'c [Option<KnownElements>],
    ) -> Option<Vec<(Value<'m>, &'c Tensor)>> {
        let mut constants = vec![];
        for (i, &result) in results.iter().enumerate() {
            match contents.get(i) {
                Some(Some(KnownElements::Constant(tensor))) if !result.is_none() => {
                    let r#type = reshaped_type(self.context, result.r#type(), &tensor_type_of_constant(tensor));
                    // A constant cannot have this type's signedness or encoding.
                    if attr::type_of(dense_elements(self.context, tensor)) != r#type {
                        return None;
                    }
                    constants.push((result, tensor));
                }
                _ if result.is_none() && result.uses().is_empty() => {}
                _ => return None,
            }
        }
        (!constants.is_empty()).then_some(constants)
    }

    fn options_change_shapes(&self) -> bool {
        self.options.batch.is_some() || !self.options.input_shapes.is_empty() || !self.options.dims.is_empty()
    }

    /// Replaces an operator by constants.
    fn fold(&mut self, operation: Operation<'m>, constants: &[(Value<'m>, &Tensor)]) -> Result<(), Failure> {
        let mut replacements = vec![];
        let name = operation.get(attr::NODE_NAME);
        for &(result, tensor) in constants {
            self.set_shape(result, &tensor_type_of_constant(tensor))?;
            let constant = new_constant(operation.location(), tensor, name).insert_before(operation);
            replacements.push((result, constant.result(0)));
        }
        self.replace(operation, &replacements);
        Ok(())
    }

    fn replace(&mut self, operation: Operation<'m>, replacements: &[(Value<'m>, Value<'m>)]) {
        for &(before, after) in replacements {
            before.replace_all_uses_with(after);
        }
        let results = operation.results();
        if results.iter().any(|&result| !result.uses().is_empty()) {
            return;
        }
        for result in results {
            self.known.remove(&result);
        }
        operation.erase();
        self.statistics.num_folded += 1;
    }
}

fn tensor_type_of_constant(tensor: &Tensor) -> TensorType {
    TensorType::new(tensor.dtype(), tensor.dims().iter().copied().map(Dim::Known).collect::<Vec<_>>())
}

impl InferShapes {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<InferShapesStatistics, Failure> {
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
