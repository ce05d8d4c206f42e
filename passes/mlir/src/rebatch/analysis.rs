//! Follows the batch through a function: computes for each value where it holds the runs, as defined in [`super`].

use super::{
    describe_function, first_dimension,
    layout::{Layout, scaled},
    rules::{Change, Flow, Site, flow},
};
use crate::ir::{Failure, ONNX_CONSTANT, describe, error};
use divi_dialect::{
    Block, Operation, Value,
    node::{self, inference_value, present_results},
    op,
};
use divi_onnx::{DType, Dim, Node, Op, TensorType, Value as Known, fold, infer, node::KnownElements};
use rustc_hash::{FxHashMap, FxHashSet};

/// Position of the runs in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// All runs share the value.
    Same,
    /// One tensor holds all runs.
    At(Layout),
    /// Each run has its own value, without an axis to concatenate them on.
    Separate,
}

/// Result of the analysis of one function.
pub(super) struct Analysis<'m> {
    pub(super) factor: i64,
    /// Size of the batch in one run.
    unit: i64,
    /// Values that the runs do not share.
    batches: FxHashMap<Value<'m>, Batch>,
    /// Types and known elements of values in one run, where the module does not have them.
    contents: FxHashMap<Value<'m>, Known>,
    /// Changes of operands that operators need.
    pub(super) changes: FxHashMap<(Operation<'m>, usize), Change>,
    /// Operators that are replaced by a Reshape.
    pub(super) reshapes: FxHashSet<Operation<'m>>,
    /// Operators that return the shape of a batched value, with their results in one run.
    pub(super) frozen: FxHashMap<Operation<'m>, Known>,
    /// Unrolled operators; of an unrolled cluster, the cluster and all operators in it.
    pub(super) all_unrolled: FxHashSet<Operation<'m>>,
    /// Unrolled operators in order; of an unrolled cluster, only the cluster.
    pub(super) unrolled: Vec<Operation<'m>>,
}

impl<'m> Analysis<'m> {
    pub(super) fn of(function: Operation<'m>, factor: i64) -> Result<Self, Failure> {
        let mut analysis = Self::new(factor, 1);
        let Some(entry) = only_block(function)? else { return Ok(analysis) };
        analysis.arguments(function, entry)?;
        analysis.block(entry)?;
        analysis.returns(entry)?;
        Ok(analysis)
    }

    /// Analyzes a function that is part of the analyzed one. Its arguments correspond to values of the latter, and have
    /// the same position of the runs.
    pub(super) fn part(&self, function: Operation<'m>, arguments: &[Value<'m>]) -> Result<Self, Failure> {
        let mut analysis = Self::new(self.factor, self.unit);
        let Some(entry) = only_block(function)? else { return Ok(analysis) };
        for (argument, &outside) in entry.arguments().into_iter().zip(arguments) {
            match self.batch(outside) {
                Batch::Same => analysis.contents.extend(self.known(outside).map(|value| (argument, value))),
                batch => {
                    analysis.batches.insert(argument, batch);
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
            all_unrolled: FxHashSet::default(),
            unrolled: vec![],
        }
    }

    pub(super) fn batch(&self, value: Value<'m>) -> Batch {
        self.batches.get(&value).copied().unwrap_or(Batch::Same)
    }

    /// Returns the facts about a value in one run.
    pub(super) fn known(&self, value: Value<'m>) -> Option<Known> {
        self.contents.get(&value).cloned().or_else(|| inference_value(value))
    }

    /// Marks arguments as batched. The batch size is the first dimension of the first argument that has one; an
    /// argument is batched if its first dimension has that size.
    fn arguments(&mut self, function: Operation<'m>, entry: Block<'m>) -> Result<(), Failure> {
        let arguments = entry.arguments();
        let Some(Dim::Known(unit)) = arguments.iter().find_map(|&argument| first_dimension(argument)) else {
            return Ok(());
        };
        self.unit = unit;
        for argument in arguments.into_iter().filter(|&argument| first_dimension(argument) == Some(Dim::Known(unit))) {
            if argument.tensor_type().and_then(|ty| scaled(&ty, 0, self.factor)).is_none() {
                let name = describe_function(function);
                error(
                    function,
                    &format!("{name} has an argument that is too large at {} times the batch size", self.factor),
                );
                return Err(Failure);
            }
            self.batches.insert(argument, Batch::At(Layout::of(0)));
        }
        Ok(())
    }

    fn block(&mut self, block: Block<'m>) -> Result<(), Failure> {
        block.operations().into_iter().try_for_each(|operation| self.operation(operation))
    }

    fn operation(&mut self, operation: Operation<'m>) -> Result<(), Failure> {
        let name = operation.name();
        match name {
            ONNX_CONSTANT | "onnx.NoValue" | op::RETURN | "onnx.Return" | op::YIELD => return Ok(()),
            op::CLUSTER => return self.cluster(operation),
            op::TRANSFER => {
                if operation.operands().into_iter().any(|operand| self.batch(operand) == Batch::Separate) {
                    return self.unroll(operation);
                }
                self.propagate(&operation.operands(), &operation.results());
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
        self.unroll(operation)
    }

    /// Returns true if an operation, or one nested in it, uses a batched value.
    fn takes_batch(&self, operation: Operation<'m>) -> bool {
        let batched =
            |operation: Operation<'m>| operation.operands().into_iter().any(|value| self.batch(value) != Batch::Same);
        if batched(operation) {
            return true;
        }
        let mut found = false;
        if !operation.blocks().is_empty() {
            operation.walk(|inner| found |= batched(inner));
        }
        found
    }

    /// Follows the batch through a cluster's body. If a member has to be unrolled, the whole cluster is unrolled
    /// instead, and its body does not change.
    fn cluster(&mut self, cluster: Operation<'m>) -> Result<(), Failure> {
        let Some(&body) = cluster.blocks().first() else { return Ok(()) };
        let count_before = self.unrolled.len();
        self.propagate(&cluster.operands(), &body.arguments());
        let is_separate = body.arguments().into_iter().any(|argument| self.batch(argument) == Batch::Separate);
        if !is_separate {
            self.block(body)?;
        }
        if !is_separate && self.unrolled.len() == count_before {
            let yielded = body.terminator().map(Operation::operands).unwrap_or_default();
            self.propagate(&yielded, &cluster.results());
            return Ok(());
        }
        self.unrolled.truncate(count_before);
        cluster.walk(|member| {
            for argument in member.blocks().into_iter().flat_map(Block::arguments) {
                self.batches.remove(&argument);
            }
            self.all_unrolled.insert(member);
            self.reshapes.remove(&member);
            self.frozen.remove(&member);
            for index in 0..member.operand_count() {
                self.changes.remove(&(member, index));
            }
            for result in member.results() {
                self.batches.remove(&result);
            }
        });
        self.unroll(cluster)
    }

    fn propagate(&mut self, from: &[Value<'m>], to: &[Value<'m>]) {
        for (&from, &to) in from.iter().zip(to) {
            match self.batch(from) {
                Batch::Same => {
                    if let Some(value) = self.known(from).filter(|value| value.content.is_some()) {
                        self.contents.insert(to, value);
                    }
                }
                batch => {
                    self.batches.insert(to, batch);
                }
            }
        }
    }

    /// Calls `f` with the operator in one run. `None` if an operand is not a tensor.
    fn with_node<R>(&self, operation: Operation<'m>, op: Op, f: impl FnOnce(&Node<'_>) -> R) -> Option<R> {
        node::with_inference_node(operation, op, |value| self.known(value), f)
    }

    /// Folds shape arithmetic that has not been folded yet.
    fn fold(&mut self, operation: Operation<'m>, op: Op) {
        let operands = operation.operands();
        let known = |&operand: &Value<'m>| {
            operand.is_none() || self.known(operand).is_some_and(|value| value.content.is_some())
        };
        if !matches!(op, Op::Shape | Op::Size) && (operands.is_empty() || !operands.iter().all(known)) {
            return;
        }
        for (result, value) in self.folded(operation, op) {
            self.contents.insert(result, value);
        }
    }

    /// Returns the results of an operator whose elements are known in one run.
    fn folded(&self, operation: Operation<'m>, op: Op) -> Vec<(Value<'m>, Known)> {
        let contents = self.with_node(operation, op, |node| {
            let types = infer::infer(node).ok()?;
            let contents = fold::fold(node, &types);
            Some(types.into_iter().zip(contents).map(|(ty, content)| Known { ty, content }).collect::<Vec<_>>())
        });
        let values = contents.flatten().unwrap_or_default();
        operation.results().into_iter().zip(values).filter(|(_, value)| value.content.is_some()).collect()
    }

    /// Replaces the shape of a batched value by a constant: the shape in one run, as in the module.
    fn freeze(&mut self, operation: Operation<'m>, op: Op) -> bool {
        match &self.folded(operation, op)[..] {
            [(result, value)] if matches!(value.content, Some(KnownElements::Constant(_))) => {
                self.contents.insert(*result, value.clone());
                self.frozen.insert(operation, value.clone());
                true
            }
            _ => false,
        }
    }

    /// Applies the rule of an operator. `None` if it has none, or if inference at the new batch size contradicts it.
    fn flow(&self, operation: Operation<'m>, op: Op) -> Option<Flow> {
        let operands = operation.operands();
        let batch = operands.iter().map(|&operand| match self.batch(operand) {
            Batch::Same => Some(None),
            Batch::At(layout) => Some(Some(layout)),
            Batch::Separate => None,
        });
        let batch: Vec<Option<Layout>> = batch.collect::<Option<_>>()?;
        let results = operation.results();
        let types: Vec<TensorType> = results
            .iter()
            .take(present_results(operation))
            .map(|&result| match result.tensor_type() {
                Some(ty) => Some(ty),
                // An absent result.
                None => result.is_none().then(|| TensorType::unranked(DType::F32)),
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
            // Slicing needs the size of the batch's dimension.
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
                    (Some(_), Some(Change::Constant(tensor))) => Some(Known::constant(tensor.clone())),
                    (Some(value), Some(&Change::Spread(axis))) => {
                        Some(Known::new(scaled(&value.ty, axis, self.factor)?))
                    }
                    (Some(value), None) if layout.is_some() => Some(Known::new(scale(&value.ty, layout)?)),
                    (Some(value), None) => Some(Known::clone(value)),
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

    fn apply(&mut self, operation: Operation<'m>, flow: Flow) {
        for (result, layout) in operation.results().into_iter().zip(flow.results) {
            if let Some(layout) = layout.filter(|_| result.tensor_type().is_some()) {
                self.batches.insert(result, Batch::At(layout));
            }
        }
        for (index, change) in flow.changes {
            self.changes.insert((operation, index), change);
        }
        if flow.as_reshape {
            self.reshapes.insert(operation);
        }
    }

    /// Unrolls an operator. Its results are concatenated on the axis of the operands' batch, or else on the first.
    fn unroll(&mut self, operation: Operation<'m>) -> Result<(), Failure> {
        let first_batched = operation.operands().into_iter().find_map(|operand| match self.batch(operand) {
            Batch::At(layout) => Some((layout.axis, operand.tensor_type()?.rank()?)),
            _ => None,
        });
        for result in operation.results().into_iter().filter(|&result| !result.is_none()) {
            let shape = result.tensor_type().and_then(|ty| ty.shape).unwrap_or_default();
            let axis = first_batched.filter(|&(_, rank)| rank == shape.len()).map_or(0, |(axis, _)| axis);
            let batch = match shape.get(axis) {
                Some(Dim::Known(size)) if *size > 0 => Batch::At(Layout::of(axis)),
                _ => Batch::Separate,
            };
            if batch != Batch::Separate && result.tensor_type().and_then(|ty| scaled(&ty, axis, self.factor)).is_none()
            {
                error(
                    operation,
                    &format!(
                        "{} has a result that is too large at {} times the batch size",
                        describe(operation),
                        self.factor
                    ),
                );
                return Err(Failure);
            }
            self.batches.insert(result, batch);
        }
        self.all_unrolled.insert(operation);
        self.unrolled.push(operation);
        Ok(())
    }

    /// Checks that each returned value can be one tensor.
    fn returns(&self, entry: Block<'m>) -> Result<(), Failure> {
        let Some(terminator) = entry.terminator() else { return Ok(()) };
        for (i, value) in terminator.operands().into_iter().enumerate() {
            if self.batch(value) == Batch::Separate && value.tensor_type().and_then(|ty| ty.shape).is_none() {
                let name = describe(terminator);
                error(
                    terminator,
                    &format!(
                        "{name} returns operand {i}, which differs between the inputs of a batch, but is not a tensor of \
                         known rank: the values cannot be concatenated"
                    ),
                );
                return Err(Failure);
            }
        }
        Ok(())
    }
}

/// Returns the only block of a function, if it has a body.
fn only_block(function: Operation<'_>) -> Result<Option<Block<'_>>, Failure> {
    match function.blocks()[..] {
        [] => Ok(None),
        [entry] => Ok(Some(entry)),
        [..] => {
            let (name, count) = (describe_function(function), function.blocks().len());
            error(function, &format!("{name} has {count} blocks: a batch can be followed through one block only"));
            Err(Failure)
        }
    }
}

/// Returns the argument of a cluster's body that corresponds to an operand.
pub(super) fn cluster_argument(user: Operation<'_>, index: usize) -> Option<Value<'_>> {
    if user.name() != op::CLUSTER {
        return None;
    }
    user.blocks().first()?.arguments().get(index).copied()
}

/// Returns true if a value is a constant, or an argument, which may be one.
pub(super) fn may_be_constant(value: Value<'_>) -> bool {
    value.defining_op().is_none_or(|definer| definer.name() == ONNX_CONSTANT)
}
