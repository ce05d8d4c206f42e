//! Rewrites a function as analyzed in [`Rebatched`].

mod build;
mod runs;

use super::{Rebatched, analysis::Batch, layout::scaled, rules::Change};
use crate::ir::type_of_body;
use build::Builder;
use divi_dialect::{Block, Operation, Value, attr, op, reshaped_type, tensor_type_of};
use divi_onnx::{Op, Tensor, node::KnownElements};
use melior::{ContextRef, ir::Type};
use rustc_hash::{FxHashMap, FxHashSet};

/// Rewrites a function and returns the number of new constants. The analysis is invalid afterwards.
pub(super) fn rewrite<'m>(function: Operation<'m>, rebatched: &Rebatched<'m>) -> u64 {
    let Some(&entry) = function.blocks().first() else { return 0 };
    let context = function.context();
    // Compute all types before changing any.
    let mut types = vec![];
    collect_types(context, entry, rebatched, &mut types);
    for (value, r#type) in types {
        value.set_type(r#type);
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
    function.set(attr::FUNCTION_TYPE, type_of_body(function.context(), entry));
    constants
}

/// Collects the new types of batched values of a block. Results of unrolled operators are replaced instead.
fn collect_types<'m>(
    context: ContextRef<'m>,
    block: Block<'m>,
    rebatched: &Rebatched<'m>,
    types: &mut Vec<(Value<'m>, Type<'m>)>,
) {
    let mut add = |value: Value<'m>| {
        if let (Batch::At(_), Some(ty)) = (rebatched.analysis.batch(value), rebatched.scaled_type(value)) {
            types.push((value, reshaped_type(context, value.r#type(), &ty)));
        }
    };
    block.arguments().into_iter().for_each(&mut add);
    let mut operations = block.operations();
    operations.retain(|&operation| !rebatched.is_unrolled(operation));
    operations.iter().flat_map(|&operation| operation.results()).for_each(&mut add);
    for cluster in operations.into_iter().filter(|&operation| operation.name() == op::CLUSTER) {
        cluster.blocks().into_iter().for_each(|body| collect_types(context, body, rebatched, types));
    }
}

/// State of the rewrite. Values are replaced and operators erased at the end, so that the analysis can be looked up by
/// value.
struct Rewriter<'m> {
    context: ContextRef<'m>,
    rebatched: &'m Rebatched<'m>,
    /// New constants, by block, and type, shape and elements.
    constants: FxHashMap<(Option<Block<'m>>, String), Value<'m>>,
    /// Repeated values, by block, value and axis.
    tiles: FxHashMap<(Option<Block<'m>>, Value<'m>, usize), Value<'m>>,
    /// Slices of batched values, one per run, as far as they are needed.
    parts: FxHashMap<Value<'m>, Vec<Value<'m>>>,
    replacements: Vec<(Value<'m>, Value<'m>)>,
    dead: Vec<Operation<'m>>,
    /// Values that have lost uses.
    left: Vec<Value<'m>>,
}

impl<'m> Rewriter<'m> {
    fn factor(&self) -> i64 {
        self.rebatched.analysis.factor
    }

    fn block(&mut self, block: Block<'m>) {
        for operation in block.operations() {
            if self.rebatched.is_unrolled(operation) {
                self.unroll(operation);
            } else if let Some(value) = self.rebatched.analysis.frozen.get(&operation) {
                if let Some(KnownElements::Constant(tensor)) = &value.content {
                    let constant = self.constant(operation, tensor, name(operation));
                    self.replace(operation, constant);
                }
            } else if self.rebatched.analysis.reshapes.contains(&operation) {
                self.reshape(operation);
            } else {
                self.operands(operation);
                if operation.name() == op::CLUSTER {
                    operation.blocks().into_iter().for_each(|body| self.block(body));
                }
            }
        }
    }

    /// Sets the operands that an operator needs at the new batch size.
    fn operands(&mut self, operation: Operation<'m>) {
        for (i, value) in operation.operands().into_iter().enumerate() {
            let changed = match self.rebatched.change(operation, i) {
                Some(Change::Constant(tensor)) => self.constant(operation, tensor, name_of(value)),
                Some(&Change::Spread(axis)) => self.tile(operation, value, axis),
                // Only the terminator takes values that the runs have separately. They are concatenated.
                None if self.rebatched.analysis.batch(value) == Batch::Separate => self.stack(operation, value),
                None => continue,
            };
            operation.set_operand(i, changed);
            self.left.push(value);
        }
    }

    /// Inserts a constant before an operator; equal constants of a block are shared.
    fn constant(&mut self, before: Operation<'m>, tensor: &Tensor, name: Option<&str>) -> Value<'m> {
        let key = (before.block(), format!("{} {:?} {:?}", tensor.dtype(), tensor.dims(), tensor.bytes()));
        if let Some(&constant) = self.constants.get(&key) {
            return constant;
        }
        let constant = Builder { before }.constant(tensor, name);
        self.constants.insert(key, constant);
        constant
    }

    fn list(&mut self, before: Operation<'m>, values: &[i64]) -> Value<'m> {
        self.constant(before, &Tensor::from_shape(values), None)
    }

    /// Repeats a value once for each run, along an axis.
    fn tile(&mut self, before: Operation<'m>, value: Value<'m>, axis: usize) -> Value<'m> {
        let key = (before.block(), value, axis);
        if let Some(&tiled) = self.tiles.get(&key) {
            return tiled;
        }
        let ty = value.tensor_type().expect("only tensors are repeated");
        let mut repeats = vec![1; ty.rank().expect("a repeated tensor has the axis")];
        repeats[axis] = self.factor();
        let repeats = self.list(before, &repeats);
        let result = scaled(&ty, axis, self.factor()).expect("the analysis found the size");
        let r#type = reshaped_type(self.context, value.r#type(), &result);
        let name = name_of(value).map(|name| format!("{name}#repeat"));
        let tiled =
            Builder { before }.result(Op::Tile.operation_name(), &[value, repeats], r#type, &[], name.as_deref());
        self.tiles.insert(key, tiled);
        tiled
    }

    /// Replaces an operator by a Reshape.
    fn reshape(&mut self, operation: Operation<'m>) {
        let (operand, result) = (operation.operand(0), operation.result(0));
        let reshaped = self.reshaped(operation, operand, result.r#type(), name(operation));
        if let Some(owner) = reshaped.defining_op() {
            keep_task(operation, owner);
        }
        self.replace(operation, reshaped);
    }

    /// Reshapes a value to the shape of a type.
    fn reshaped(&mut self, before: Operation<'m>, value: Value<'m>, r#type: Type<'m>, name: Option<&str>) -> Value<'m> {
        let ty = tensor_type_of(r#type);
        let sizes = ty.and_then(|ty| ty.static_shape()).expect("the analysis found the sizes");
        let sizes = self.list(before, &sizes);
        let builder = Builder { before };
        builder.result(Op::Reshape.operation_name(), &[value, sizes], r#type, &[builder.int("allowzero", 0)], name)
    }

    fn replace(&mut self, operation: Operation<'m>, value: Value<'m>) {
        self.replacements.extend(operation.results().first().map(|&result| (result, value)));
        self.left.extend(operation.operands());
        self.dead.push(operation);
    }

    /// Performs the replacements and erases dead operators.
    fn finish(&mut self) {
        for &(before, after) in &self.replacements {
            before.replace_all_uses_with(after);
        }
        for operation in self.dead.drain(..).rev() {
            operation.erase();
        }
        let gone: FxHashSet<_> = self.replacements.iter().map(|&(before, _)| before).collect();
        let mut seen = FxHashSet::default();
        let left = self.left.iter().chain(self.replacements.iter().map(|(_, after)| after));
        for &value in left.filter(|&value| !gone.contains(value) && seen.insert(*value)) {
            erase_unused(value);
        }
    }
}

/// Erases a constant or a concatenation of runs without uses.
fn erase_unused(value: Value<'_>) {
    if let Some(owner) = value.defining_op()
        && value.uses().is_empty()
        && matches!(owner.op(), Some(Op::Constant | Op::Concat))
    {
        owner.erase();
    }
}

/// Copies the attributes of a task, such as its cost, to the operator that replaces it.
fn keep_task<'m>(before: Operation<'m>, after: Operation<'m>) {
    for (name, attribute) in before.attributes().into_iter().filter(|(name, _)| attr::is_divi(name)) {
        after.set_attribute(name, attribute);
    }
}

fn name(operation: Operation<'_>) -> Option<&str> {
    operation.get(attr::NODE_NAME)
}

/// Returns the name of the node that computes a value.
fn name_of(value: Value<'_>) -> Option<&str> {
    value.defining_op().and_then(name)
}
