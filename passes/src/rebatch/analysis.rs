//! Follows the batch through a function.

use super::{
    describe_function, first_dimension,
    layout::{Layout, scaled},
    rules::{Change, Flow, Site, flow},
};
use crate::ir::{
    Failure, ONNX_CONSTANT, arguments_of, blocks, describe, error, operands, operation_name, operations, results,
    tensor_type_of_value, walk,
};
use divi_dialect::node::{attributes_of, is_none, present_results, value_of};
use divi_onnx::{Attributes, DType, Dim, Node, Op, TensorType, Value, fold, infer, node::Content};
use melior::ir::operation::OperationRef;
use mlir_sys::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::c_void;

/// What several runs make of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// It is the same in all of them.
    Same,
    /// One tensor has them all.
    At(Layout),
    /// Each has a value of its own, which has no axis to put them together on.
    Apart,
}

pub(super) struct Analysis {
    pub(super) factor: i64,
    /// The size of the batch in one run.
    unit: i64,
    /// Values that are not the same in all runs.
    batches: FxHashMap<*const c_void, Batch>,
    /// What is known of values in one run beyond their types.
    contents: FxHashMap<*const c_void, Value>,
    /// What operators need changed, by operand.
    pub(super) changes: FxHashMap<(*mut c_void, usize), Change>,
    /// Operators that a Reshape takes the place of.
    pub(super) reshapes: FxHashSet<*mut c_void>,
    /// Operators that tell a batched value's shape, with what it is in one run.
    pub(super) frozen: FxHashMap<*mut c_void, Value>,
    pub(super) repeats: FxHashSet<*mut c_void>,
    pub(super) repeated: Vec<MlirOperation>,
}

impl Analysis {
    pub(super) fn of(function: MlirOperation, factor: i64) -> Result<Self, Failure> {
        let mut analysis = Self::new(factor, 1);
        let Some(entry) = only_block(function)? else { return Ok(analysis) };
        analysis.arguments(function, entry)?;
        analysis.block(entry)?;
        analysis.returns(entry)?;
        Ok(analysis)
    }

    /// The same for a function that is a part of the one that this is of. Its arguments stand for values of that one, and
    /// are in the part what these are in the whole.
    pub(super) fn part(&self, function: MlirOperation, arguments: &[MlirValue]) -> Result<Self, Failure> {
        let mut analysis = Self::new(self.factor, self.unit);
        let Some(entry) = only_block(function)? else { return Ok(analysis) };
        for (argument, &outside) in arguments_of(entry).into_iter().zip(arguments) {
            match self.batch(outside) {
                Batch::Same => analysis.contents.extend(self.known(outside).map(|value| (argument.ptr, value))),
                batch => {
                    analysis.batches.insert(argument.ptr, batch);
                }
            }
        }
        analysis.block(entry)?;
        analysis.returns(entry)?;
        Ok(analysis)
    }

    fn new(factor: i64, unit: i64) -> Self {
        Self {
            factor,
            unit,
            batches: FxHashMap::default(),
            contents: FxHashMap::default(),
            changes: FxHashMap::default(),
            reshapes: FxHashSet::default(),
            frozen: FxHashMap::default(),
            repeats: FxHashSet::default(),
            repeated: vec![],
        }
    }

    pub(super) fn batch(&self, value: MlirValue) -> Batch {
        self.batches.get(&value.ptr).copied().unwrap_or(Batch::Same)
    }

    /// What is known of a value in one run.
    pub(super) fn known(&self, value: MlirValue) -> Option<Value> {
        self.contents.get(&value.ptr).cloned().or_else(|| value_of(value))
    }

    /// Arguments as large in front as the first that has a front are batched.
    fn arguments(&mut self, function: MlirOperation, entry: MlirBlock) -> Result<(), Failure> {
        let arguments = arguments_of(entry);
        let Some(Dim::Known(unit)) = arguments.iter().find_map(|&argument| first_dimension(argument)) else {
            return Ok(());
        };
        self.unit = unit;
        for argument in arguments.into_iter().filter(|&argument| first_dimension(argument) == Some(Dim::Known(unit))) {
            if tensor_type_of_value(argument).and_then(|ty| scaled(&ty, 0, self.factor)).is_none() {
                let name = describe_function(function);
                error(
                    function,
                    &format!("{name} has an argument that {} times its batch makes too large", self.factor),
                );
                return Err(Failure);
            }
            self.batches.insert(argument.ptr, Batch::At(Layout::of(0)));
        }
        Ok(())
    }

    fn block(&mut self, block: MlirBlock) -> Result<(), Failure> {
        operations(block).into_iter().try_for_each(|operation| self.operation(operation))
    }

    fn operation(&mut self, operation: MlirOperation) -> Result<(), Failure> {
        let name = operation_name(operation);
        match name {
            ONNX_CONSTANT | "onnx.NoValue" | "func.return" | "onnx.Return" | "divi.yield" => return Ok(()),
            "divi.cluster" => return self.cluster(operation),
            "divi.transfer" => {
                if operands(operation).into_iter().any(|operand| self.batch(operand) == Batch::Apart) {
                    return self.repeat(operation);
                }
                self.hand_on(&operands(operation), &results(operation));
                return Ok(());
            }
            _ => {}
        }
        let op = Op::from_operation(name).filter(|op| op.is_inferred());
        if !self.takes_batch(operation) {
            if let Some(op) = op {
                self.fold(operation, op);
            }
            return Ok(());
        }
        if let Some(op) = op {
            if matches!(op, Op::Shape | Op::Size) && self.freeze(operation, op) {
                return Ok(());
            }
            if let Some(flow) = self.flow(operation, op) {
                self.apply(operation, flow);
                return Ok(());
            }
        }
        self.repeat(operation)
    }

    /// Whether an operation, or something inside it, uses a batched value.
    fn takes_batch(&self, operation: MlirOperation) -> bool {
        let batched = |operation| operands(operation).into_iter().any(|value| self.batch(value) != Batch::Same);
        if batched(operation) {
            return true;
        }
        let mut found = false;
        if !blocks(operation).is_empty() {
            walk(operation, &mut |inner| found |= batched(inner));
        }
        found
    }

    /// A cluster's body is followed like the function's; if a member repeats, the cluster does, and inside it one run is
    /// as it is in the module.
    fn cluster(&mut self, cluster: MlirOperation) -> Result<(), Failure> {
        let Some(&body) = blocks(cluster).first() else { return Ok(()) };
        let repeated = self.repeated.len();
        self.hand_on(&operands(cluster), &arguments_of(body));
        let apart = arguments_of(body).into_iter().any(|argument| self.batch(argument) == Batch::Apart);
        if !apart {
            self.block(body)?;
        }
        if !apart && self.repeated.len() == repeated {
            // SAFETY: the block is alive, and a cluster's body ends in a terminator.
            let terminator = unsafe { mlirBlockGetTerminator(body) };
            self.hand_on(&operands(terminator), &results(cluster));
            return Ok(());
        }
        self.repeated.truncate(repeated);
        walk(cluster, &mut |member| {
            for argument in blocks(member).into_iter().flat_map(arguments_of) {
                self.batches.remove(&argument.ptr);
            }
            self.repeats.insert(member.ptr);
            self.reshapes.remove(&member.ptr);
            self.frozen.remove(&member.ptr);
            for index in 0..operands(member).len() {
                self.changes.remove(&(member.ptr, index));
            }
            for result in results(member) {
                self.batches.remove(&result.ptr);
            }
        });
        self.repeat(cluster)
    }

    fn hand_on(&mut self, from: &[MlirValue], to: &[MlirValue]) {
        for (&from, &to) in from.iter().zip(to) {
            match self.batch(from) {
                Batch::Same => {
                    if let Some(value) = self.known(from).filter(|value| value.content.is_some()) {
                        self.contents.insert(to.ptr, value);
                    }
                }
                batch => {
                    self.batches.insert(to.ptr, batch);
                }
            }
        }
    }

    /// Calls `f` with the operator as it is in one run. `None` if it takes something that is no tensor.
    fn with_node<R>(&self, operation: MlirOperation, op: Op, f: impl FnOnce(&Node<'_>) -> R) -> Option<R> {
        let mut values = vec![];
        for operand in operands(operation) {
            match self.known(operand) {
                Some(value) => values.push(Some(value)),
                None if is_none(operand) => values.push(None),
                None => return None,
            }
        }
        let inputs: Vec<_> = values.iter().map(Option::as_ref).collect();
        let attributes = attributes(operation);
        Some(f(&Node { op, inputs: &inputs, attributes: &attributes, outputs: present_results(operation) }))
    }

    /// Shape arithmetic that nobody has folded yet.
    fn fold(&mut self, operation: MlirOperation, op: Op) {
        let operands = operands(operation);
        let known =
            |&operand: &MlirValue| is_none(operand) || self.known(operand).is_some_and(|value| value.content.is_some());
        if !matches!(op, Op::Shape | Op::Size) && (operands.is_empty() || !operands.iter().all(known)) {
            return;
        }
        for (result, value) in self.folded(operation, op) {
            self.contents.insert(result.ptr, value);
        }
    }

    /// The results of an operator whose elements are known in one run.
    fn folded(&self, operation: MlirOperation, op: Op) -> Vec<(MlirValue, Value)> {
        let contents = self.with_node(operation, op, |node| {
            let types = infer::infer(node).ok()?;
            let contents = fold::fold(node, &types);
            Some(types.into_iter().zip(contents).map(|(ty, content)| Value { ty, content }).collect::<Vec<_>>())
        });
        let values = contents.flatten().unwrap_or_default();
        results(operation).into_iter().zip(values).filter(|(_, value)| value.content.is_some()).collect()
    }

    /// The shape of a batched value is, in one run, what it is in the module: a constant.
    fn freeze(&mut self, operation: MlirOperation, op: Op) -> bool {
        match &self.folded(operation, op)[..] {
            [(result, value)] if matches!(value.content, Some(Content::Constant(_))) => {
                self.contents.insert(result.ptr, value.clone());
                self.frozen.insert(operation.ptr, value.clone());
                true
            }
            _ => false,
        }
    }

    /// What a rule says of an operator, if inference at the new batch agrees.
    fn flow(&self, operation: MlirOperation, op: Op) -> Option<Flow> {
        let operands = operands(operation);
        let batch = operands.iter().map(|&operand| match self.batch(operand) {
            Batch::Same => Some(None),
            Batch::At(layout) => Some(Some(layout)),
            Batch::Apart => None,
        });
        let batch: Vec<Option<Layout>> = batch.collect::<Option<_>>()?;
        let results = results(operation);
        let types: Vec<TensorType> = results
            .iter()
            .take(present_results(operation))
            .map(|&result| match tensor_type_of_value(result) {
                Some(ty) => Some(ty),
                // Nobody asks for it.
                None => is_none(result).then(|| TensorType::unranked(DType::F32)),
            })
            .collect::<Option<_>>()?;
        self.with_node(operation, op, |node| {
            let site = Site { node, batch: &batch, results: &types, factor: self.factor, unit: self.unit };
            let flow = flow(&site)?;
            let scale = |ty: &TensorType, layout: Option<Layout>| match layout {
                Some(layout) => scaled(ty, layout.axis, self.factor),
                None => Some(ty.clone()),
            };
            let expected: Vec<_> = types
                .iter()
                .zip(&flow.results)
                .map(|(ty, &layout)| if ty.shape.is_none() { Some(ty.clone()) } else { scale(ty, layout) })
                .collect::<Option<_>>()?;
            // A batch is taken apart by its dimension's size.
            let countable = |(ty, layout): (&TensorType, &Option<Layout>)| match (layout, &ty.shape) {
                (Some(layout), Some(shape)) => shape[layout.axis].known().is_some(),
                _ => true,
            };
            if !types.iter().zip(&flow.results).all(countable) {
                return None;
            }
            if flow.as_reshape {
                return expected.iter().all(TensorType::is_static).then_some(flow);
            }
            let mut values = vec![];
            for (i, (input, &layout)) in node.inputs.iter().zip(&batch).enumerate() {
                let change = flow.changes.iter().find(|(operand, _)| *operand == i).map(|(_, change)| change);
                values.push(match (input, change) {
                    (None, _) => None,
                    (Some(_), Some(Change::Constant(tensor))) => Some(Value::constant(tensor.clone())),
                    (Some(value), Some(&Change::Spread(axis))) => {
                        Some(Value::new(scaled(&value.ty, axis, self.factor)?))
                    }
                    (Some(value), None) if layout.is_some() => Some(Value::new(scale(&value.ty, layout)?)),
                    (Some(value), None) => Some(Value::clone(value)),
                });
            }
            let inputs: Vec<_> = values.iter().map(Option::as_ref).collect();
            let inferred = infer::infer(&Node { inputs: &inputs, ..*node }).ok()?;
            let agrees = |(found, expected): (&TensorType, &TensorType)| {
                expected.shape.is_none() || found.unify(expected).is_some()
            };
            inferred.iter().zip(&expected).all(agrees).then_some(flow)
        })?
    }

    fn apply(&mut self, operation: MlirOperation, flow: Flow) {
        for (result, layout) in results(operation).into_iter().zip(flow.results) {
            if let Some(layout) = layout.filter(|_| tensor_type_of_value(result).is_some()) {
                self.batches.insert(result.ptr, Batch::At(layout));
            }
        }
        for (index, change) in flow.changes {
            self.changes.insert((operation.ptr, index), change);
        }
        if flow.as_reshape {
            self.reshapes.insert(operation.ptr);
        }
    }

    /// Each run has results of its own. They are put together on the axis that the operand's batch has, or else on the
    /// first.
    fn repeat(&mut self, operation: MlirOperation) -> Result<(), Failure> {
        let leader = operands(operation).into_iter().find_map(|operand| match self.batch(operand) {
            Batch::At(layout) => Some((layout.axis, tensor_type_of_value(operand)?.rank()?)),
            _ => None,
        });
        for result in results(operation).into_iter().filter(|&result| !is_none(result)) {
            let shape = tensor_type_of_value(result).and_then(|ty| ty.shape).unwrap_or_default();
            let axis = leader.filter(|&(_, rank)| rank == shape.len()).map_or(0, |(axis, _)| axis);
            let batch = match shape.get(axis) {
                Some(Dim::Known(size)) if *size > 0 => Batch::At(Layout::of(axis)),
                _ => Batch::Apart,
            };
            if batch != Batch::Apart
                && tensor_type_of_value(result).and_then(|ty| scaled(&ty, axis, self.factor)).is_none()
            {
                error(
                    operation,
                    &format!(
                        "{} has a result that {} times its batch makes too large",
                        describe(operation),
                        self.factor
                    ),
                );
                return Err(Failure);
            }
            self.batches.insert(result.ptr, batch);
        }
        self.repeats.insert(operation.ptr);
        self.repeated.push(operation);
        Ok(())
    }

    /// What the function returns is one tensor each.
    fn returns(&self, entry: MlirBlock) -> Result<(), Failure> {
        // SAFETY: the block is alive.
        let terminator = unsafe { mlirBlockGetTerminator(entry) };
        if terminator.ptr.is_null() {
            return Ok(());
        }
        for (i, value) in operands(terminator).into_iter().enumerate() {
            if self.batch(value) == Batch::Apart && tensor_type_of_value(value).and_then(|ty| ty.shape).is_none() {
                let name = describe(terminator);
                error(
                    terminator,
                    &format!(
                        "{name} returns operand {i}, which each input of a batch has one of, but which is no tensor of \
                         known rank: several cannot be put together"
                    ),
                );
                return Err(Failure);
            }
        }
        Ok(())
    }
}

/// The block of a function, if it has a body.
fn only_block(function: MlirOperation) -> Result<Option<MlirBlock>, Failure> {
    match blocks(function)[..] {
        [] => Ok(None),
        [entry] => Ok(Some(entry)),
        [..] => {
            let (name, count) = (describe_function(function), blocks(function).len());
            error(function, &format!("{name} has {count} blocks: a batch is followed through one only"));
            Err(Failure)
        }
    }
}

fn attributes(operation: MlirOperation) -> Attributes {
    // SAFETY: the operation is alive.
    attributes_of(&unsafe { OperationRef::from_raw(operation) })
}

/// The argument of a cluster's body that one of its operands is.
pub(super) fn cluster_argument(user: MlirOperation, index: isize) -> Option<MlirValue> {
    if operation_name(user) != "divi.cluster" {
        return None;
    }
    arguments_of(*blocks(user).first()?).get(index as usize).copied()
}

/// Whether a value is a constant, or an argument, which may stand for one.
pub(super) fn may_be_constant(value: MlirValue) -> bool {
    // SAFETY: the value is alive.
    unsafe { mlirValueIsABlockArgument(value) || operation_name(mlirOpResultGetOwner(value)) == ONNX_CONSTANT }
}
