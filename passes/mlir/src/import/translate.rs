//! Walk over a model's graph: names, order, inputs and outputs. `apply` translates single nodes.

use super::{
    Options, Source, Warning,
    attributes::Arguments,
    constants::Constant,
    diagnostics::{Error, NodeName},
    emit::{Emitter, NewRegion},
    files::Files,
    names::Scope,
    proto::{FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto},
    types::ValueType,
};
use divi_dialect::{Block, NewOperation, Operation, Value, attr, function_type, op};
use divi_onnx::{Dim, Value as Known};
use melior::{
    Context,
    ir::{Attribute, Module, Type},
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Value of the model: index into [`Translator::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueId(pub(super) usize);

/// Facts about a value of the model, and its MLIR value.
pub(super) struct Slot<'c> {
    pub(super) kind: Kind<'c>,
    /// Constants get one on first use.
    pub(super) mlir: Option<Value<'c>>,
    pub(super) constant: Option<Constant>,
}

/// Type of a value, and its elements as far as they are known.
pub(super) enum Kind<'c> {
    Tensor(Known),
    Other(Type<'c>),
}

/// Converts the type of a value with unknown elements.
impl<'c> From<ValueType<'c>> for Kind<'c> {
    fn from(ty: ValueType<'c>) -> Self {
        match ty {
            ValueType::Tensor(ty) => Self::Tensor(Known::new(ty)),
            ValueType::Other(ty) => Self::Other(ty),
        }
    }
}

/// State of one import.
pub(super) struct Translator<'c, 'm> {
    pub(super) emitter: Emitter<'c>,
    pub(super) source: &'m Source,
    pub(super) options: &'m Options,
    pub(super) opset: i64,
    pub(super) opset_imports: &'m [OperatorSetIdProto],
    pub(super) functions: FxHashMap<(&'m str, &'m str, &'m str), &'m FunctionProto>,
    pub(super) values: Vec<Slot<'c>>,
    pub(super) scopes: Vec<Scope<'m>>,
    pub(super) symbols: FxHashMap<String, Dim>,
    pub(super) symbol_names: Vec<String>,
    /// Node being translated, for messages and locations.
    pub(super) current: NodeName,
    /// Prefix of the names of inlined nodes: the names of the calls.
    pub(super) prefix: String,
    /// Functions being inlined, outermost first.
    pub(super) call_stack: Vec<&'m FunctionProto>,
    /// Attributes of each of those calls.
    pub(super) arguments: Vec<Arguments<'m>>,
    /// Parameters that each of those calls omits.
    pub(super) absent: Vec<Vec<&'m str>>,
    pub(super) inlined_nodes: usize,
    /// Number of loops being unrolled. Types that a body declares may differ between iterations.
    pub(super) unrolling: usize,
    /// Number of nodes of all iterations so far.
    pub(super) unrolled_nodes: usize,
    /// Opaque operators: their counts, and the first node of each.
    pub(super) opaque: std::collections::BTreeMap<String, (usize, String)>,
    /// Number of results with a dynamic shape although all operands are static, and the first node.
    pub(super) data_dependent: Option<(usize, String)>,
    /// Number of results of opaque operators without a declared type, and the first node.
    pub(super) undeclared: Option<(usize, String)>,
    pub(super) warnings: Vec<Warning>,
    pub(super) no_value: Option<Value<'c>>,
    /// Constants in the IR, by attribute.
    pub(super) constants: FxHashMap<Attribute<'c>, Value<'c>>,
    pub(super) files: Files,
    /// Dynamic dimensions of inputs.
    pub(super) open_dimensions: Vec<String>,
    /// Bytes of folded constants so far.
    pub(super) folded_bytes: usize,
}

/// Result with an error message, which is completed with file and node.
pub(super) type Result<T> = std::result::Result<T, String>;

pub(super) fn translate<'c>(
    context: &'c Context,
    source: &Source,
    options: &Options,
    model: &ModelProto,
    graph: &GraphProto,
    opset: i64,
) -> std::result::Result<(Module<'c>, Vec<Warning>), Error> {
    let mut translator = Translator {
        emitter: Emitter::new(context, &source.name),
        source,
        options,
        opset,
        opset_imports: &model.opset_import,
        functions: FxHashMap::default(),
        values: Vec::with_capacity(graph.node.len() + graph.initializer.len()),
        scopes: vec![],
        symbols: FxHashMap::default(),
        symbol_names: vec![],
        current: NodeName { name: String::new(), op: String::new() },
        prefix: String::new(),
        call_stack: vec![],
        arguments: vec![],
        absent: vec![],
        inlined_nodes: 0,
        unrolling: 0,
        unrolled_nodes: 0,
        opaque: Default::default(),
        data_dependent: None,
        undeclared: None,
        warnings: vec![],
        no_value: None,
        constants: FxHashMap::default(),
        files: Files::default(),
        open_dimensions: vec![],
        folded_bytes: 0,
    };
    let module = Module::new(translator.emitter.file_location());
    match translator.model(model, graph, &module) {
        Ok(()) => Ok((module, translator.warnings)),
        Err(message) => {
            let NodeName { name, op } = &translator.current;
            let node = (!name.is_empty() || !op.is_empty()).then_some(translator.current);
            Err(Error::new(&source.name, node, message))
        }
    }
}

impl<'c, 'm> Translator<'c, 'm> {
    pub(super) fn warn(&mut self, message: String) {
        self.warnings.push(Warning::new(&self.source.name, message));
    }

    fn model(&mut self, model: &'m ModelProto, graph: &'m GraphProto, module: &Module<'_>) -> Result<()> {
        if !model.training_info.is_empty() {
            self.warn("training information is left out: divi compiles inference".into());
        }
        for function in &model.functions {
            let key = (function.domain(), function.name(), function.overload());
            if self.functions.insert(key, function).is_some() {
                return Err(format!(
                    "function '{}' of domain '{}' is defined twice",
                    function.name(),
                    function.domain()
                ));
            }
        }
        self.function(graph, module)?;
        self.report_open_ends();
        Ok(())
    }

    /// Translates the model's graph to `func.func @main`.
    fn function(&mut self, graph: &'m GraphProto, module: &Module<'_>) -> Result<()> {
        let block = Block::create(&[]);
        let region = NewRegion::of(block);
        self.emitter.enter(block);
        let outcome = self.function_body(graph, block);
        self.emitter.leave();
        let (argument_attributes, results, result_attributes) = outcome?;
        let context = self.emitter.context;
        let arguments: Vec<_> = block.arguments().into_iter().map(Value::r#type).collect();
        let function_type = function_type(context, &arguments, &results);
        let attributes = [
            self.emitter.named(attr::ARG_ATTRS.name(), attr::array(context, &argument_attributes)),
            self.emitter.named(attr::FUNCTION_TYPE.name(), attr::type_attribute(function_type)),
            self.emitter.named(attr::RES_ATTRS.name(), attr::array(context, &result_attributes)),
            self.emitter.named(attr::SYM_NAME.name(), self.emitter.string("main")),
        ];
        let operation = NewOperation::new(op::FUNC, self.emitter.location(graph.name()));
        let regions = [region.into_region()];
        let function = NewOperation { attributes: &attributes, regions: &regions, ..operation }.create();
        function.append_to(Operation::from(module).blocks()[0]);
        Ok(())
    }

    /// Translates the body. Returns the attributes of arguments, and types and attributes of results.
    #[allow(clippy::type_complexity)]
    fn function_body(
        &mut self,
        graph: &'m GraphProto,
        block: Block<'c>,
    ) -> Result<(Vec<Attribute<'c>>, Vec<Type<'c>>, Vec<Attribute<'c>>)> {
        self.push_scope(Some(graph), false);
        let arguments = self.inputs(graph, block)?;
        self.graph_nodes(graph)?;
        let mut operands = vec![];
        let mut results = vec![];
        let mut result_attributes = vec![];
        self.current = NodeName { name: String::new(), op: String::new() };
        for output in &graph.output {
            let name = output.name();
            let id = self.lookup(name).ok_or_else(|| {
                format!("output '{name}' is neither an input, an initializer, nor the result of a node")
            })?;
            self.check_output(output, id)?;
            operands.push(self.materialize(id)?);
            results.push(self.type_of(id));
            let dims = self.dim_params(id);
            result_attributes.push(self.value_attributes(name, dims));
        }
        let location = self.emitter.file_location();
        let operation = NewOperation::new(op::RETURN, location);
        self.emitter.append(&NewOperation { operands: &operands, ..operation });
        self.pop_scope();
        Ok((arguments, results, result_attributes))
    }

    /// Translates the nodes of a graph, or of a subgraph whose scope is open.
    pub(super) fn graph_nodes(&mut self, graph: &'m GraphProto) -> Result<()> {
        for tensor in &graph.initializer {
            let id = self.initializer(tensor).map_err(|message| format!("initializer '{}' {message}", tensor.name))?;
            self.bind(&tensor.name, id)?;
        }
        for sparse in &graph.sparse_initializer {
            let name = sparse.values.as_ref().map_or("", |values| &values.name);
            let id = self.sparse_initializer(sparse).map_err(|message| format!("initializer '{name}' {message}"))?;
            self.bind(name, id)?;
        }
        self.nodes(&graph.node)
    }

    /// Translates nodes in topological order, which is nearly always the order of the list.
    pub(super) fn nodes(&mut self, nodes: &'m [NodeProto]) -> Result<()> {
        let mut producers: Option<FxHashMap<&'m str, usize>> = None;
        let mut done = vec![false; nodes.len()];
        for start in 0..nodes.len() {
            if done[start] {
                continue;
            }
            if self.is_ready(&nodes[start]) {
                self.node(&nodes[start])?;
                done[start] = true;
                continue;
            }
            let producers = producers.get_or_insert_with(|| {
                let outputs = |(index, node): (usize, &'m NodeProto)| {
                    node.output.iter().map(move |output| (output.as_str(), index))
                };
                nodes.iter().enumerate().flat_map(outputs).collect()
            });
            self.node_after_its_producers(nodes, start, producers, &mut done)?;
        }
        Ok(())
    }

    /// Translates a node that is listed before one of its producers.
    fn node_after_its_producers(
        &mut self,
        nodes: &'m [NodeProto],
        start: usize,
        producers: &FxHashMap<&'m str, usize>,
        done: &mut [bool],
    ) -> Result<()> {
        // Stack of nodes that wait for the next one, each with its unresolved names.
        let mut path = vec![(start, self.needs(&nodes[start]))];
        let mut waiting = FxHashSet::from_iter([start]);
        while let Some((index, needs)) = path.last_mut() {
            let node = &nodes[*index];
            while needs.last().is_some_and(|name| self.lookup(name).is_some()) {
                needs.pop();
            }
            let Some(&missing) = needs.last() else {
                self.node(node)?;
                done[*index] = true;
                waiting.remove(index);
                path.pop();
                continue;
            };
            self.enter_node(node);
            match producers.get(missing) {
                Some(&producer) if waiting.contains(&producer) => {
                    let cycle: Vec<_> = path
                        .iter()
                        .skip_while(|(index, _)| *index != producer)
                        .map(|(index, _)| format!("'{}'", display_name(&nodes[*index])))
                        .take(8)
                        .collect();
                    return Err(format!("is part of a cycle: {}", cycle.join(" needs ")));
                }
                // A translated node has bound its outputs, so the name is not one of them.
                Some(&producer) if !done[producer] => {
                    waiting.insert(producer);
                    path.push((producer, self.needs(&nodes[producer])));
                }
                _ => {
                    return Err(format!(
                        "needs '{missing}', which is neither an input, an initializer, nor the result of a node"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the values that a node and its subgraphs use, in reverse order.
    fn needs(&self, node: &'m NodeProto) -> Vec<&'m str> {
        let absent = self.absent.last().map_or(&[][..], Vec::as_slice);
        let inputs = node.input.iter().map(String::as_str).chain(self.captures(node));
        let mut needs: Vec<_> = inputs.filter(|name| !name.is_empty() && !absent.contains(name)).collect();
        needs.reverse();
        needs
    }

    /// Returns true if all values that a node needs are defined, as is the case for most nodes.
    fn is_ready(&self, node: &'m NodeProto) -> bool {
        let absent = self.absent.last().map_or(&[][..], Vec::as_slice);
        let there = |name: &str| name.is_empty() || self.lookup(name).is_some() || absent.contains(&name);
        node.input.iter().all(|name| there(name)) && self.captures(node).into_iter().all(there)
    }

    pub(super) fn enter_node(&mut self, node: &NodeProto) {
        self.current.name.clear();
        self.current.name.push_str(&self.prefix);
        self.current.name.push_str(display_name(node));
        self.current.op.clear();
        self.current.op.push_str(node.op_type());
    }

    /// Checks that the declared type of an output does not contradict the inferred one.
    fn check_output(&mut self, output: &ValueInfoProto, id: ValueId) -> Result<()> {
        let name = output.name();
        let declared =
            self.declared_type(output.r#type.as_ref()).map_err(|message| format!("output '{name}' {message}"))?;
        let (Some(ValueType::Tensor(declared)), Kind::Tensor(value)) = (declared, &self.slot(id).kind) else {
            return Ok(());
        };
        if declared.dtype != value.ty.dtype {
            return Err(format!(
                "output '{name}' is declared {}, but its nodes compute {}: correct the model's output or add a Cast",
                declared.dtype, value.ty.dtype
            ));
        }
        if declared.unify(&value.ty).is_none() && !self.options.overrides_shapes() {
            let message =
                format!("output '{name}' is declared {declared}, but its nodes compute {}: the latter holds", value.ty);
            self.warn(message);
        }
        Ok(())
    }

    /// Reports opaque operators and dynamic shapes.
    fn report_open_ends(&mut self) {
        if !self.opaque.is_empty() {
            let list: Vec<_> =
                self.opaque.iter().map(|(op, (count, first))| format!("{op} ({count}, first '{first}')")).collect();
            self.warn(format!("carried along as opaque work: {}", list.join(", ")));
        }
        if let Some((count, first)) = self.undeclared.take() {
            self.warn(format!(
                "the types of {count} results of opaque operators are not declared (first node '{first}'): each is assumed \
                 to be an unranked tensor with its first operand's element type; declare them in the model's value_info"
            ));
        }
        if !self.open_dimensions.is_empty() {
            self.open_dimensions.truncate(8);
            let open = self.open_dimensions.join(", ");
            let by_name = if self.symbol_names.is_empty() { "" } else { "--dim=NAME=N, " };
            self.warn(format!("stays dynamic: {open}; fix with {by_name}--batch=N or --input-shape=NAME:AxBxC"));
        } else if let Some((count, first)) = self.data_dependent.take() {
            self.warn(format!(
                "{count} {} a shape that depends on data, the first is of node '{first}'",
                if count == 1 { "result has" } else { "results have" }
            ));
        }
    }
}

/// Returns the name of a node in messages: its own, or that of its first result.
pub(super) fn display_name(node: &NodeProto) -> &str {
    if !node.name().is_empty() {
        return node.name();
    }
    node.output.iter().map(String::as_str).find(|name| !name.is_empty()).unwrap_or("")
}
