//! Moves operators into a `divi.cluster`.

use super::{
    cluster::Task,
    graph::{Graph, Node},
};
use divi_dialect::{Block, NamedAttribute, NewOperation, Operation, Region, Value, attr, fused_location, op};
use melior::ContextRef;
use rustc_hash::{FxHashMap, FxHashSet};

/// Moves the operators of a task into a cluster at the position of the last of them. All of their operands are defined
/// before it, and all of their uses come after it.
pub(super) fn rewrite<'m>(context: ContextRef<'m>, graph: &Graph<'m>, task: &Task<'m>) {
    let members: Vec<_> = task.nodes.iter().map(|&node| graph.nodes[node].operation).collect();
    let last = members[members.len() - 1];
    let mut body = Body::new(&members);
    let arguments: Vec<_> = body.inputs.iter().map(|input| (input.r#type(), last.location())).collect();
    let block = Block::create(&arguments);
    let cluster = create(context, task, &body.inputs, graph, &members, block).insert_before(last);
    let kept: Vec<_> = last.results().into_iter().filter(|result| !result.is_none()).collect();
    for (&inner, outer) in kept.iter().zip(cluster.results()) {
        inner.replace_all_uses_with(outer);
    }
    for member in members {
        body.adopt(member, block);
    }
    NewOperation { operands: &kept, ..NewOperation::new(op::YIELD, last.location()) }.create().append_to(block);
    body.drop_unused();
}

/// Values that a cluster's body reads: its arguments, and absent operands, which it has copies of.
struct Body<'m> {
    /// Values that members read and do not compute, constants included; each once, in order.
    inputs: Vec<Value<'m>>,
    arguments: FxHashMap<Value<'m>, usize>,
    /// `onnx.NoValue` outside, and its copy inside.
    absent: FxHashMap<Value<'m>, (Operation<'m>, Option<Value<'m>>)>,
}

impl<'m> Body<'m> {
    fn new(members: &[Operation<'m>]) -> Self {
        let mut body = Self { inputs: vec![], arguments: FxHashMap::default(), absent: FxHashMap::default() };
        let computed: FxHashSet<_> = members.iter().flat_map(|member| member.results()).collect();
        for value in members.iter().flat_map(|member| member.operands()) {
            if computed.contains(&value) || body.arguments.contains_key(&value) {
                continue;
            }
            match absent(value) {
                Some(operation) => {
                    body.absent.insert(value, (operation, None));
                }
                None => {
                    body.arguments.insert(value, body.inputs.len());
                    body.inputs.push(value);
                }
            }
        }
        body
    }

    /// Moves a member to the end of the body, and replaces its operands by the values inside.
    fn adopt(&mut self, member: Operation<'m>, block: Block<'m>) {
        for (i, operand) in member.operands().into_iter().enumerate() {
            let inside = if let Some(&argument) = self.arguments.get(&operand) {
                block.argument(argument)
            } else if let Some((outside, inside)) = self.absent.get_mut(&operand) {
                *inside.get_or_insert_with(|| outside.clone_detached().append_to(block).result(0))
            } else {
                continue;
            };
            member.set_operand(i, inside);
        }
        member.detach();
        member.append_to(block);
    }

    /// Removes markers of absent operands that only members used.
    fn drop_unused(&self) {
        for &(outside, _) in self.absent.values() {
            // The graph has no node for it.
            if outside.result(0).uses().is_empty() {
                outside.erase();
            }
        }
    }
}

/// Returns the `onnx.NoValue` that defines a value.
fn absent(value: Value<'_>) -> Option<Operation<'_>> {
    value.defining_op().filter(|owner| owner.name() == "onnx.NoValue")
}

/// Creates a cluster with an empty body, outside of any block.
fn create<'m>(
    context: ContextRef<'m>,
    task: &Task<'m>,
    inputs: &[Value<'m>],
    graph: &Graph<'m>,
    members: &[Operation<'m>],
    body: Block<'m>,
) -> Operation<'m> {
    let names: Vec<_> = task.nodes.iter().map(|&node| member_name(&graph.nodes[node])).collect();
    let mut attributes = vec![attr::KIND.named(context, &task.kind), attr::MEMBERS.named(context, &names)];
    for (name, value) in [(attr::PIN.name(), task.placement.pin), (attr::DEVICE.name(), task.placement.device)] {
        attributes.extend(value.map(|attribute| NamedAttribute::with_name(name, attribute)));
    }
    let last = members[members.len() - 1];
    let types: Vec<_> = last.results().into_iter().filter(|result| !result.is_none()).map(Value::r#type).collect();
    let locations: Vec<_> = members.iter().map(|member| member.location()).collect();
    let region = Region::create();
    region.append(body);
    let cluster = NewOperation {
        name: op::CLUSTER,
        location: fused_location(context, &locations),
        operands: inputs,
        results: &types,
        attributes: &attributes,
        regions: &[region],
    };
    cluster.create()
}

/// Returns the name of an operator's ONNX node, or of the operator if the node has none.
fn member_name<'m>(node: &Node<'m>) -> &'m str {
    node.operation.get(attr::NODE_NAME).unwrap_or_else(|| node.operation.name())
}
