//! Translates If, Loop, Scan and operators on sequences. Their subgraphs become regions, and divi plans them as opaque
//! work. An If with a known condition is replaced by the branch taken, a Loop with a known trip count by its iterations
//! (`unroll`).

use super::{
    apply::Outputs,
    attributes::{NodeAttributes, subgraph},
    emit::NewRegion,
    proto::{GraphProto, NodeProto},
    translate::{Kind, Result, Slot, Translator, ValueId},
};
use divi_dialect::{Block, NewOperation};
use divi_onnx::{Attributes, DType, Dim, Op, TensorType, Value};
use melior::ir::Type;
use rustc_hash::FxHashSet;

/// Region of a subgraph, and the types that it yields.
struct Subgraph<'c> {
    region: NewRegion<'c>,
    yields: Vec<Kind<'c>>,
}

impl<'c, 'm> Translator<'c, 'm> {
    pub(super) fn control_flow(
        &mut self,
        node: &'m NodeProto,
        inputs: &[Option<ValueId>],
        attributes: NodeAttributes<'m>,
        names: Outputs<'_>,
    ) -> Result<Vec<ValueId>> {
        let find = |name: &str| {
            let graph = attributes.graphs.iter().find(|(other, _)| *other == name);
            graph.map(|(_, graph)| *graph).ok_or_else(|| format!("needs a subgraph '{name}'"))
        };
        if node.op_type() == Op::If.name() {
            let branches = [find("then_branch")?, find("else_branch")?];
            let condition = inputs.first().copied().flatten().ok_or("needs a condition")?;
            if let Kind::Tensor(value) = &self.slot(condition).kind
                && let Some(&[taken]) = value.tensor().and_then(|tensor| tensor.ints()).as_deref()
            {
                return self.inline_branch(branches[usize::from(taken == 0)]);
            }
            return self.branch(node, inputs, &attributes.plain, branches, names);
        }
        let body = find("body")?;
        if node.op_type() == Op::Loop.name()
            && let Some(results) = self.unroll(node, inputs, body, names)?
        {
            return Ok(results);
        }
        let (arguments, count) = self.body_arguments(node, inputs, &attributes.plain, body)?;
        let subgraph = self.subgraph(node, body, arguments)?;
        let results = self.body_results(node, subgraph.yields, count, names)?;
        self.count_opaque(node.op_type().to_owned());
        let regions = [subgraph.region.into_region()];
        self.emit_with_regions(node.op_type(), inputs, &attributes.plain, results, &regions)
    }

    fn inline_branch(&mut self, branch: &'m GraphProto) -> Result<Vec<ValueId>> {
        self.push_scope(Some(branch), true);
        self.graph_nodes(branch)?;
        let results = self.graph_outputs(branch);
        self.pop_scope();
        results
    }

    fn branch(
        &mut self,
        node: &'m NodeProto,
        inputs: &[Option<ValueId>],
        attributes: &Attributes,
        branches: [&'m GraphProto; 2],
        names: Outputs<'_>,
    ) -> Result<Vec<ValueId>> {
        let [then_branch, else_branch] = branches;
        let then_graph = self.subgraph(node, then_branch, vec![])?;
        let else_graph = self.subgraph(node, else_branch, vec![])?;
        let results: Option<Vec<_>> =
            then_graph.yields.into_iter().zip(else_graph.yields).map(|(a, b)| either(a, b)).collect();
        let results = results
            .filter(|results| results.len() >= names.len())
            .ok_or("has branches that do not yield values of the same types for each of its results")?;
        self.count_opaque(Op::If.name().into());
        let results = results.into_iter().take(names.len()).map(Some).collect();
        let regions = [then_graph.region, else_graph.region].map(NewRegion::into_region);
        self.emit_with_regions(Op::If.name(), inputs, attributes, results, &regions)
    }

    /// Returns the types of a body's parameters, and the number of loop-carried ones.
    fn body_arguments(
        &mut self,
        node: &'m NodeProto,
        inputs: &[Option<ValueId>],
        attributes: &Attributes,
        body: &'m GraphProto,
    ) -> Result<(Vec<Kind<'c>>, usize)> {
        let any_shape = |translator: &Self, id: ValueId| match &translator.slot(id).kind {
            Kind::Tensor(value) => Kind::Tensor(Value::new(TensorType::unranked(value.ty.dtype))),
            Kind::Other(ty) => Kind::Other(*ty),
        };
        let mut arguments = vec![];
        let carried;
        match Op::from_name(node.op_type()) {
            Some(Op::Loop) => {
                arguments.push(Kind::Tensor(Value::new(TensorType::scalar(DType::I64))));
                arguments.push(Kind::Tensor(Value::new(TensorType::scalar(DType::Bool))));
                let states: Vec<_> = inputs.iter().skip(2).flatten().copied().collect();
                carried = states.len();
                arguments.extend(states.into_iter().map(|id| any_shape(self, id)));
            }
            _ => {
                let scans = match attributes.get("num_scan_inputs") {
                    Some(divi_onnx::Attr::Int(scans)) => *scans as usize,
                    _ => inputs.len(),
                };
                carried = inputs.len().saturating_sub(scans);
                arguments.extend(inputs.iter().flatten().copied().map(|id| any_shape(self, id)));
            }
        }
        if arguments.len() != body.input.len() {
            return Err(format!("passes {} values to its body, which takes {}", arguments.len(), body.input.len()));
        }
        // Types that the body declares for its parameters hold in every iteration.
        for (argument, input) in arguments.iter_mut().zip(&body.input) {
            let declared = self.declared_type(input.r#type.as_ref())?;
            if let Some(declared) = declared {
                *argument = self.still_valid(declared).into();
            }
        }
        Ok((arguments, carried))
    }

    /// Returns the result types of Loop, Scan and SequenceMap: final states, then the concatenated values of all
    /// iterations.
    fn body_results(
        &mut self,
        node: &NodeProto,
        yields: Vec<Kind<'c>>,
        carried: usize,
        names: Outputs<'_>,
    ) -> Result<Vec<Option<Kind<'c>>>> {
        // The body of a Loop yields its condition first.
        let conditions = usize::from(node.op_type() == Op::Loop.name());
        if yields.len() < conditions + names.len() {
            return Err(format!(
                "has {} results, but its body yields {}",
                names.len(),
                yields.len() - conditions.min(yields.len())
            ));
        }
        let mut results = vec![];
        for (i, (kind, name)) in yields.into_iter().skip(conditions).zip(names).enumerate() {
            let declared = match name {
                Some(name) => self.declared(name)?,
                None => None,
            };
            results.push(Some(match (declared, kind) {
                (Some(declared), _) => declared.into(),
                (None, Kind::Other(ty)) => Kind::Other(ty),
                (None, Kind::Tensor(value)) if node.op_type() == Op::SequenceMap.name() => {
                    Kind::Other(self.sequence_of(&value.ty))
                }
                (None, Kind::Tensor(value)) if i < carried => {
                    Kind::Tensor(Value::new(TensorType::unranked(value.ty.dtype)))
                }
                (None, Kind::Tensor(value)) => {
                    let rank = value.ty.rank().map(|rank| vec![Dim::Unknown; rank + 1]);
                    Kind::Tensor(Value::new(TensorType::new(value.ty.dtype, rank)))
                }
            }));
        }
        Ok(results)
    }

    pub(super) fn sequence_of(&self, element: &TensorType) -> Type<'c> {
        divi_dialect::sequence_type(self.emitter.tensor_type(element))
    }

    /// Translates a subgraph into a region that ends in `onnx.Yield`.
    fn subgraph(&mut self, node: &NodeProto, graph: &'m GraphProto, arguments: Vec<Kind<'c>>) -> Result<Subgraph<'c>> {
        let block = Block::create(&[]);
        let region = NewRegion::of(block);
        self.push_scope(Some(graph), true);
        self.emitter.enter(block);
        let outcome = self.subgraph_body(graph, arguments, block);
        self.emitter.leave();
        self.pop_scope();
        let yields = outcome?;
        self.enter_node(node);
        Ok(Subgraph { region, yields })
    }

    fn subgraph_body(
        &mut self,
        graph: &'m GraphProto,
        arguments: Vec<Kind<'c>>,
        block: Block<'c>,
    ) -> Result<Vec<Kind<'c>>> {
        for (input, kind) in graph.input.iter().zip(arguments) {
            let ty = self.kind_type(&kind);
            let location = self.emitter.location(input.name());
            let value = block.add_argument(ty, location);
            let id = self.add(Slot { kind, mlir: Some(value), constant: None });
            self.bind(input.name(), id)?;
        }
        self.graph_nodes(graph)?;
        let outputs = self.graph_outputs(graph)?;
        let mut operands = vec![];
        let mut yields = vec![];
        for id in outputs {
            operands.push(self.materialize(id)?);
            yields.push(match &self.slot(id).kind {
                Kind::Tensor(value) => Kind::Tensor(Value::new(value.ty.clone())),
                Kind::Other(ty) => Kind::Other(*ty),
            });
        }
        let location = self.emitter.file_location();
        let operation = NewOperation::new("onnx.Yield", location);
        self.emitter.append(&NewOperation { operands: &operands, ..operation });
        Ok(yields)
    }

    pub(super) fn graph_outputs(&mut self, graph: &'m GraphProto) -> Result<Vec<ValueId>> {
        let find = |name: &str| {
            self.lookup(name).ok_or_else(|| format!("has a subgraph whose output '{name}' nothing computes"))
        };
        graph.output.iter().map(|output| find(output.name())).collect()
    }

    /// Returns the names from outside that a node's subgraphs use.
    pub(super) fn captures(&self, node: &'m NodeProto) -> Vec<&'m str> {
        let mut free = vec![];
        for graph in node.attribute.iter().filter_map(subgraph) {
            free_names(graph, &mut vec![], &mut free);
        }
        free
    }
}

/// Returns the common type of what two branches yield.
fn either<'c>(a: Kind<'c>, b: Kind<'c>) -> Option<Kind<'c>> {
    match (a, b) {
        (Kind::Tensor(a), Kind::Tensor(b)) if a.ty.dtype == b.ty.dtype => {
            let shape = match (a.ty.shape, b.ty.shape) {
                (Some(a), Some(b)) if a.len() == b.len() => {
                    Some(a.into_iter().zip(b).map(|(a, b)| if a == b { a } else { Dim::Unknown }).collect())
                }
                _ => None,
            };
            Some(Kind::Tensor(Value::new(TensorType::new(a.ty.dtype, shape))))
        }
        (Kind::Other(a), Kind::Other(b)) if a == b => Some(Kind::Other(a)),
        _ => None,
    }
}

/// Collects the names that a subgraph, including nested ones, uses and does not define.
fn free_names<'m>(graph: &'m GraphProto, bound: &mut Vec<FxHashSet<&'m str>>, free: &mut Vec<&'m str>) {
    let mut names: FxHashSet<&str> = graph.input.iter().map(|input| input.name()).collect();
    names.extend(graph.initializer.iter().map(|tensor| tensor.name.as_str()));
    let sparse = graph.sparse_initializer.iter().filter_map(|sparse| sparse.values.as_ref());
    names.extend(sparse.map(|values| values.name.as_str()));
    names.extend(graph.node.iter().flat_map(|node| node.output.iter().map(String::as_str)));
    bound.push(names);
    let mut used: Vec<&str> = graph.output.iter().map(|output| output.name()).collect();
    for node in &graph.node {
        used.extend(node.input.iter().map(String::as_str));
        for graph in node.attribute.iter().filter_map(subgraph) {
            free_names(graph, bound, free);
        }
    }
    free.extend(used.into_iter().filter(|name| !name.is_empty() && !bound.iter().any(|names| names.contains(name))));
    bound.pop();
}
