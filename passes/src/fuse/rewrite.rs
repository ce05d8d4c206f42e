//! Putting operators into a `divi.cluster`.

use super::{
    cluster::Task,
    graph::{Graph, Node},
};
use crate::ir::{
    attribute, named_attribute, operands, operation_name, results, string_array, string_attribute, type_of,
};
use divi_dialect::node::is_none;
use melior::{Context, StringRef, ir::AttributeLike, ir::attribute::StringAttribute};
use mlir_sys::*;
use rustc_hash::FxHashMap;

/// Moves the operators of a task into a cluster that stands where the last of them stood. All that they read is defined
/// before, and all that reads them comes after.
pub(super) fn rewrite(context: &Context, graph: &Graph, task: &Task) {
    let members: Vec<_> = task.nodes.iter().map(|&node| graph.nodes[node].operation).collect();
    let last = members[members.len() - 1];
    let mut body = Body::new(&members);
    // SAFETY: all operations are alive and of one context; types and locations have one entry an operand.
    let block = unsafe {
        let types: Vec<_> = body.inputs.iter().map(|&input| type_of(input)).collect();
        let locations = vec![mlirOperationGetLocation(last); types.len()];
        mlirBlockCreate(types.len() as isize, types.as_ptr(), locations.as_ptr())
    };
    let cluster = create(context, task, &body.inputs, graph, &members, block);
    // SAFETY: as above; the parent block takes ownership of the cluster, and its body of the members.
    unsafe {
        mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(last), last, cluster);
        let kept: Vec<_> = results(last).into_iter().filter(|&result| !is_none(result)).collect();
        for (&inner, outer) in kept.iter().zip(results(cluster)) {
            mlirValueReplaceAllUsesOfWith(inner, outer);
        }
        for member in members {
            body.adopt(member, block);
        }
        let location = mlirOperationGetLocation(last);
        let mut state = mlirOperationStateGet(StringRef::new("divi.yield").to_raw(), location);
        mlirOperationStateAddOperands(&mut state, kept.len() as isize, kept.as_ptr());
        mlirBlockAppendOwnedOperation(block, mlirOperationCreate(&mut state));
    }
    body.drop_unused();
}

/// What a cluster's body reads: its arguments, and what is so small that it has it itself.
struct Body {
    /// Each value that members read and do not compute, once, in order; constants too.
    inputs: Vec<MlirValue>,
    arguments: FxHashMap<*const std::ffi::c_void, isize>,
    /// `onnx.NoValue` outside, and the one inside that stands for it.
    absent: FxHashMap<*const std::ffi::c_void, (MlirOperation, Option<MlirValue>)>,
}

impl Body {
    fn new(members: &[MlirOperation]) -> Self {
        let mut body = Self { inputs: vec![], arguments: FxHashMap::default(), absent: FxHashMap::default() };
        let computed: rustc_hash::FxHashSet<_> =
            members.iter().flat_map(|&member| results(member)).map(|result| result.ptr).collect();
        for value in members.iter().flat_map(|&member| operands(member)) {
            if computed.contains(&value.ptr) || body.arguments.contains_key(&value.ptr) {
                continue;
            }
            match absent(value) {
                Some(operation) => {
                    body.absent.insert(value.ptr, (operation, None));
                }
                None => {
                    body.arguments.insert(value.ptr, body.inputs.len() as isize);
                    body.inputs.push(value);
                }
            }
        }
        body
    }

    /// Moves a member to the end of the body, and makes it read what is there.
    fn adopt(&mut self, member: MlirOperation, block: MlirBlock) {
        // SAFETY: everything is alive; indices are below the counts; the block takes ownership of what is put into it.
        unsafe {
            for (i, operand) in operands(member).into_iter().enumerate() {
                let inside = if let Some(&argument) = self.arguments.get(&operand.ptr) {
                    mlirBlockGetArgument(block, argument)
                } else if let Some((outside, inside)) = self.absent.get_mut(&operand.ptr) {
                    *inside.get_or_insert_with(|| {
                        let copy = mlirOperationClone(*outside);
                        mlirBlockAppendOwnedOperation(block, copy);
                        mlirOperationGetResult(copy, 0)
                    })
                } else {
                    continue;
                };
                mlirOperationSetOperand(member, i as isize, inside);
            }
            mlirOperationRemoveFromParent(member);
            mlirBlockAppendOwnedOperation(block, member);
        }
    }

    /// Takes away what stood for absent operands of members alone.
    fn drop_unused(&self) {
        for &(outside, _) in self.absent.values() {
            // SAFETY: nothing uses the operation that is destroyed, and the graph has no node for it.
            unsafe {
                if mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(outside, 0))) {
                    mlirOperationDestroy(outside);
                }
            }
        }
    }
}

/// The `onnx.NoValue` that a value is.
fn absent(value: MlirValue) -> Option<MlirOperation> {
    // SAFETY: the value is alive; a result has an owner.
    let owner = unsafe { mlirValueIsAOpResult(value).then(|| mlirOpResultGetOwner(value)) };
    owner.filter(|&owner| operation_name(owner) == "onnx.NoValue")
}

/// A cluster, which nobody owns yet, around a body that is empty still.
fn create(
    context: &Context,
    task: &Task,
    inputs: &[MlirValue],
    graph: &Graph,
    members: &[MlirOperation],
    body: MlirBlock,
) -> MlirOperation {
    let names: Vec<_> = task.nodes.iter().map(|&node| member_name(&graph.nodes[node])).collect();
    let mut attributes = vec![
        named_attribute(context, "kind", StringAttribute::new(context, &task.kind).to_raw()),
        named_attribute(context, "divi.members", string_array(context, &names)),
    ];
    for (name, pointer) in [("divi.pin", task.decisions.pin), ("divi.device", task.decisions.device)] {
        if !pointer.is_null() {
            attributes.push(named_attribute(context, name, MlirAttribute { ptr: pointer }));
        }
    }
    let last = members[members.len() - 1];
    let types: Vec<_> = results(last).into_iter().filter(|&result| !is_none(result)).map(type_of).collect();
    // SAFETY: everything is alive and of one context; the state takes ownership of the region, and that of the body.
    unsafe {
        let locations: Vec<_> = members.iter().map(|&member| mlirOperationGetLocation(member)).collect();
        let location = mlirLocationFusedGet(
            context.to_raw(),
            locations.len() as isize,
            locations.as_ptr(),
            mlirAttributeGetNull(),
        );
        let mut state = mlirOperationStateGet(StringRef::new("divi.cluster").to_raw(), location);
        mlirOperationStateAddOperands(&mut state, inputs.len() as isize, inputs.as_ptr());
        mlirOperationStateAddResults(&mut state, types.len() as isize, types.as_ptr());
        mlirOperationStateAddAttributes(&mut state, attributes.len() as isize, attributes.as_ptr());
        let region = mlirRegionCreate();
        mlirRegionAppendOwnedBlock(region, body);
        mlirOperationStateAddOwnedRegions(&mut state, 1, &region);
        mlirOperationCreate(&mut state)
    }
}

/// The ONNX node that an operator was; the operator's name if nobody says.
fn member_name(node: &Node) -> &str {
    let name = attribute(node.operation, "onnx_node_name").and_then(string_attribute);
    name.unwrap_or_else(|| operation_name(node.operation))
}
