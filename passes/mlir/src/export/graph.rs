//! Converts a function to a model: operators become nodes, clusters are inlined, constants become initializers.

use super::{
    attributes,
    constants::Constants,
    names::Names,
    proto,
    structure::{is_below, source, subgraphs},
    types::{declared, element_type},
};
use crate::{
    import::{
        proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TypeProto, ValueInfoProto},
        tensor_proto::TensorProto,
    },
    ir::{Failure, ONNX_CONSTANT, describe, error},
};
use divi_dialect::{Block, Operation, Value, attr, op};
use divi_onnx::{
    Op,
    schema::{self, Schema},
};
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Names of a model's inputs and outputs that override those of the function.
#[derive(Clone, Debug, Default)]
pub(super) struct Signature {
    pub(super) inputs: Vec<Option<String>>,
    pub(super) outputs: Vec<Option<String>>,
}

/// Model of a function, with the names of its inputs and outputs.
#[derive(Debug)]
pub(super) struct Exported {
    pub(super) model: ModelProto,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
}

/// Converts a function to a model. Errors are emitted on the operations.
pub(super) fn export<'m>(
    function: Operation<'m>,
    signature: &Signature,
    constants: &mut Constants<'m>,
) -> Result<Exported, Failure> {
    let name = function.symbol_name().unwrap_or("main");
    let &[block] = &function.blocks()[..] else {
        error(
            function,
            &format!("{} '{name}' has no body, or several blocks: a model is one graph", describe(function)),
        );
        return Err(Failure);
    };
    let named = |list, i, name| function.signature_attribute(list, i, name).and_then(attr::as_string);
    let mut exporter = Exporter::new(constants);
    let mut graph = Graph::default();
    for (i, argument) in block.arguments().into_iter().enumerate() {
        let of_function = named(attr::ARG_ATTRS, i, "onnx.name");
        let of_plan = signature.inputs.get(i).and_then(Option::as_deref);
        let name = exporter.names.unique(of_plan.or(of_function).unwrap_or(&format!("input_{i}")));
        let dimensions = named(attr::ARG_ATTRS, i, "onnx.dim_params");
        let info = proto::value_info(&name, Some(typed(function, argument, dimensions.unwrap_or_default())?));
        graph.inputs.push(info);
        exporter.values.insert(argument, name);
    }
    let returned = returned(block);
    let mut output_names = vec![];
    for (i, &value) in returned.iter().enumerate() {
        let of_function = named(attr::RES_ATTRS, i, "onnx.name");
        let wanted = signature.outputs.get(i).and_then(Option::as_deref).or(of_function);
        output_names.push(wanted.map(|name| exporter.reserve(block, value, name, &mut graph)));
    }
    exporter.body(block, &mut graph)?;
    for (i, (&value, name)) in returned.iter().zip(output_names).enumerate() {
        let dimensions = named(attr::RES_ATTRS, i, "onnx.dim_params");
        let name = name.ok_or_else(|| format!("output_{i}"));
        exporter.output(value, name, dimensions.unwrap_or_default(), &mut graph);
    }
    Ok(exporter.finish(graph, name))
}

/// Builds a model without inputs whose outputs are constants.
pub(super) fn export_constants<'m>(
    operations: &[Operation<'m>],
    name: &str,
    constants: &mut Constants<'m>,
) -> Result<Exported, Failure> {
    let mut exporter = Exporter::new(constants);
    let mut graph = Graph::default();
    for &operation in operations {
        exporter.constant(operation, &mut graph)?;
        for result in operation.results() {
            let name = format!("{}_output_0", exporter.values.get(&result).map_or("constant", String::as_str));
            exporter.output(result, Err(name), "", &mut graph);
        }
    }
    Ok(exporter.finish(graph, name))
}

/// Returns the values that a block returns or yields.
fn returned(block: Block<'_>) -> Vec<Value<'_>> {
    block.terminator().map(Operation::operands).unwrap_or_default()
}

/// Returns the type that a model declares for a value of a function's signature.
fn typed(function: Operation<'_>, value: Value<'_>, dimensions: &str) -> Result<TypeProto, Failure> {
    declared(value, dimensions).ok_or_else(|| {
        error(function, &format!("{} takes a value of a type that ONNX does not have", describe(function)));
        Failure
    })
}

/// Graph or subgraph under construction.
#[derive(Default)]
struct Graph<'m> {
    inputs: Vec<ValueInfoProto>,
    outputs: Vec<ValueInfoProto>,
    initializers: Vec<TensorProto>,
    nodes: Vec<NodeProto>,
    values: Vec<ValueInfoProto>,
    /// Results of the graph's own nodes that are not outputs yet, and can become outputs without an Identity.
    own: FxHashSet<Value<'m>>,
    /// Names of results that are outputs.
    reserved: FxHashMap<Value<'m>, String>,
}

impl Graph<'_> {
    fn into_proto(self, name: &str) -> GraphProto {
        let is_output: FxHashSet<_> = self.outputs.iter().map(|output| output.name()).collect();
        let inner = self.values.iter().filter(|value| !is_output.contains(value.name()));
        let value_info = inner.map(|value| value.encode_to_vec().into()).collect();
        GraphProto {
            name: Some(name.to_owned()),
            input: self.inputs,
            output: self.outputs,
            initializer: self.initializers,
            node: self.nodes,
            value_info,
            ..GraphProto::default()
        }
    }
}

struct Exporter<'a, 'm> {
    constants: &'a mut Constants<'m>,
    names: Names,
    node_names: Names,
    /// Names of values; empty for absent ones.
    values: FxHashMap<Value<'m>, String>,
    opset: i64,
    domains: BTreeMap<String, i64>,
}

impl<'a, 'm> Exporter<'a, 'm> {
    fn new(constants: &'a mut Constants<'m>) -> Self {
        Self {
            constants,
            names: Names::default(),
            node_names: Names::default(),
            values: FxHashMap::default(),
            opset: schema::MIN_EXPORT_OPSET,
            domains: BTreeMap::new(),
        }
    }

    /// Builds the model of a graph, in the opset that it needs.
    fn finish(self, graph: Graph<'m>, name: &str) -> Exported {
        let names = |values: &[ValueInfoProto]| values.iter().map(|value| value.name().to_owned()).collect();
        let (inputs, outputs) = (names(&graph.inputs), names(&graph.outputs));
        let opset =
            |domain: &str, version| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
        let domains = self.domains.iter().map(|(domain, &version)| opset(domain, version));
        let model = ModelProto {
            ir_version: Some(schema::ir_version(self.opset)),
            producer_name: Some("divi".to_owned()),
            producer_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            opset_import: std::iter::once(opset("", self.opset)).chain(domains).collect(),
            graph: Some(graph.into_proto(name)),
            ..ModelProto::default()
        };
        Exported { model, inputs, outputs }
    }

    /// Reserves the name of an output, for the returned value if the graph itself computes it.
    fn reserve(&mut self, block: Block<'m>, returned: Value<'m>, name: &str, graph: &mut Graph<'m>) -> String {
        let name = self.names.unique(name);
        let value = source(returned);
        if value.defining_op().is_some_and(|owner| is_below(owner, block)) {
            graph.reserved.entry(value).or_insert_with(|| name.clone());
        }
        name
    }

    /// Converts the operators of a block, with clusters inlined.
    fn body(&mut self, block: Block<'m>, graph: &mut Graph<'m>) -> Result<(), Failure> {
        for operation in block.operations() {
            match operation.name() {
                op::RETURN | "onnx.Return" | "onnx.Yield" | op::YIELD => {}
                op::CLUSTER => {
                    for body in operation.blocks() {
                        self.body(body, graph)?;
                    }
                }
                "onnx.NoValue" => {
                    for result in operation.results() {
                        self.values.insert(result, String::new());
                    }
                }
                ONNX_CONSTANT => self.constant(operation, graph)?,
                _ => self.node(operation, graph)?,
            }
        }
        Ok(())
    }

    fn constant(&mut self, operation: Operation<'m>, graph: &mut Graph<'m>) -> Result<(), Failure> {
        let result = operation.results()[0];
        if result.uses().is_empty() {
            return Ok(());
        }
        let wanted = operation.get(attr::NODE_NAME).unwrap_or_default();
        let name = self.names.unique(if wanted.is_empty() { "constant" } else { wanted });
        graph.initializers.push(self.constants.tensor(operation, &name)?);
        self.values.insert(result, name);
        Ok(())
    }

    fn node(&mut self, operation: Operation<'m>, graph: &mut Graph<'m>) -> Result<(), Failure> {
        let fail = |message: String| {
            error(operation, &format!("{} {message}", describe(operation)));
            Failure
        };
        let (domain, op) = self.operator(operation).map_err(fail)?;
        let schema = if domain.is_empty() { schema::find(op) } else { None };
        let wanted = operation.get(attr::NODE_NAME).unwrap_or_default();
        let name = self.node_names.unique(if wanted.is_empty() { op } else { wanted });
        let mut inputs = vec![];
        for operand in operation.operands() {
            inputs.push(match self.values.get(&source(operand)) {
                Some(name) => name.clone(),
                None if operand.is_none() => String::new(),
                None => return Err(fail("reads a value that no ONNX operator computes".into())),
            });
        }
        let mut outputs = vec![];
        for (i, result) in operation.results().into_iter().enumerate() {
            outputs.push(if result.is_none() { String::new() } else { self.result(result, &name, i, graph) });
        }
        // Trailing absent operands and results are left out.
        for list in [&mut inputs, &mut outputs] {
            list.truncate(list.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1));
        }
        let mut attributes = attributes::convert(operation, schema).map_err(fail)?;
        for (attribute, block) in subgraphs(operation, op).map_err(fail)? {
            attributes.push(proto::graph_attribute(attribute, self.subgraph(block, &name, attribute)?));
        }
        if domain.is_empty() {
            let present: Vec<_> = attributes.iter().map(|attribute| attribute.name()).collect();
            self.need(schema, inputs.len(), &present, &[operation.operands(), operation.results()].concat());
        }
        graph.nodes.push(NodeProto {
            name: Some(name),
            op_type: Some(op.to_owned()),
            domain: (!domain.is_empty()).then(|| domain.to_owned()),
            input: inputs,
            output: outputs,
            attribute: attributes,
            ..NodeProto::default()
        });
        Ok(())
    }

    /// Returns domain and name of an operator.
    fn operator(&mut self, operation: Operation<'m>) -> Result<(&'m str, &'m str), String> {
        let text = |name| operation.attribute(name).and_then(attr::as_string);
        check_operator(operation)?;
        match operation.name().strip_prefix("onnx.") {
            None => Err("is not an ONNX operator".into()),
            Some("Custom") => {
                let op = text("function_name").ok_or("has no attribute 'function_name'")?;
                let domain = text("domain_name").unwrap_or_default();
                if !domain.is_empty() {
                    let version = operation.attribute("domain_version").and_then(attr::as_integer).unwrap_or(1);
                    let entry = self.domains.entry(domain.to_owned()).or_insert(version);
                    *entry = version.max(*entry);
                }
                Ok((domain, op))
            }
            Some(op) => Ok(("", Op::from_name(op).map_or(op, |op| op.onnx_op().name()))),
        }
    }

    /// Assigns a name to a result and declares its type.
    fn result(&mut self, result: Value<'m>, node: &str, index: usize, graph: &mut Graph<'m>) -> String {
        let reserved = graph.reserved.get(&result).cloned();
        let name = reserved.unwrap_or_else(|| self.names.unique(&format!("{node}_output_{index}")));
        if let Some(ty) = declared(result, "") {
            graph.values.push(proto::value_info(&name, Some(ty)));
        }
        graph.own.insert(result);
        self.values.insert(result, name.clone());
        name
    }

    /// Makes a value an output of the graph: directly if it is a result that is not an output yet, through an Identity
    /// otherwise. The name is `Ok` if it is reserved for the output, and `Err` if it may be made unique.
    fn output(&mut self, value: Value<'m>, name: Result<String, String>, dimensions: &str, graph: &mut Graph<'m>) {
        let origin = source(value);
        let input = self.values.get(&origin).cloned().unwrap_or_default();
        let name = if graph.own.remove(&origin) {
            input
        } else {
            let own = name.unwrap_or_else(|wanted| self.names.unique(&wanted));
            self.need(schema::find(Op::Identity.name()), 1, &[], &[origin]);
            graph.nodes.push(NodeProto {
                name: Some(self.node_names.unique(&format!("{own}_identity"))),
                op_type: Some(Op::Identity.name().to_owned()),
                input: vec![input],
                output: vec![own.clone()],
                ..NodeProto::default()
            });
            own
        };
        graph.outputs.push(proto::value_info(&name, declared(value, dimensions)));
    }

    fn subgraph(&mut self, block: Block<'m>, node: &str, attribute: &str) -> Result<GraphProto, Failure> {
        let mut graph = Graph::default();
        for (i, argument) in block.arguments().into_iter().enumerate() {
            let name = self.names.unique(&format!("{node}_{attribute}_input_{i}"));
            graph.inputs.push(proto::value_info(&name, declared(argument, "")));
            self.values.insert(argument, name);
        }
        self.body(block, &mut graph)?;
        for (i, value) in returned(block).into_iter().enumerate() {
            self.output(value, Err(format!("{node}_{attribute}_output_{i}")), "", &mut graph);
        }
        Ok(graph.into_proto(&format!("{node}_{attribute}")))
    }

    /// Raises the opset to the lowest one that has a node.
    fn need(&mut self, schema: Option<&Schema>, inputs: usize, attributes: &[&str], values: &[Value<'_>]) {
        let types: Vec<_> = values.iter().filter_map(|&value| element_type(value)).collect();
        let needed = schema.map_or(schema::OPSET, |schema| schema.lowest_opset(inputs, attributes, &types));
        self.opset = self.opset.max(needed);
    }
}

/// Checks that an operation can be converted to an ONNX node.
pub(crate) fn check_operator(operation: Operation<'_>) -> Result<(), String> {
    let name = operation.name();
    if name.starts_with("onnx.") {
        return Ok(());
    }
    Err(match op::is_divi(name) {
        true => "belongs to a plan, not to a model: write the stages of the plan, one model each".into(),
        false => "is not an ONNX operator: only modules of onnx operators can be written as models".into(),
    })
}
