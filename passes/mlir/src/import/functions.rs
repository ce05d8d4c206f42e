//! Inlines the functions that a model defines.

use super::{
    attributes::find,
    proto::{FunctionProto, NodeProto},
    translate::{Result, Translator, ValueId, display_name},
};
use divi_onnx::schema::OPSET;

/// Limit of nested calls, which only recursion exceeds in practice.
const MAX_DEPTH: usize = 64;

/// Limit of nodes that inlining creates: functions that call each other twice grow exponentially.
pub(super) const MAX_INLINED_NODES: usize = 1 << 17;

impl<'m> Translator<'_, 'm> {
    pub(super) fn inline_function(
        &mut self,
        function: &'m FunctionProto,
        call: &'m NodeProto,
        inputs: &[Option<ValueId>],
    ) -> Result<Vec<ValueId>> {
        if self.call_stack.iter().any(|&caller| std::ptr::eq(caller, function)) || self.call_stack.len() == MAX_DEPTH {
            return Err(format!("calls function '{}', which calls itself", function.name()));
        }
        self.inlined_nodes += function.node.len();
        if self.inlined_nodes > MAX_INLINED_NODES {
            return Err(format!("makes the model's functions grow beyond {MAX_INLINED_NODES} nodes"));
        }
        if inputs.len() > function.input.len() {
            return Err(format!(
                "has {} operands, but function '{}' takes {}",
                inputs.len(),
                function.name(),
                function.input.len()
            ));
        }
        let arguments = function
            .attribute
            .iter()
            .filter_map(|name| self.argument(call, name))
            .chain(
                function.attribute_proto.iter().map(|default| self.argument(call, default.name()).unwrap_or(default)),
            )
            .collect();
        let opset = function.opset_import.iter().find(|import| matches!(import.domain(), "" | "ai.onnx"));
        let outer_opset = self.opset;
        self.opset = opset.map_or(outer_opset, |import| import.version());
        if !(1..=OPSET).contains(&self.opset) {
            return Err(format!(
                "calls function '{}', which is written in opset {}; divi reads 1 to {OPSET}",
                function.name(),
                self.opset
            ));
        }
        let outer_prefix = self.prefix.len();
        self.prefix.push_str(display_name(call));
        self.prefix.push('/');
        self.call_stack.push(function);
        self.push_scope(None, false);
        for (name, input) in function.input.iter().zip(inputs) {
            if let Some(id) = input {
                self.bind(name, *id)?;
            }
        }
        // Optional parameters that the call omits are absent in the body too: names without a value.
        self.absent
            .push(function.input.iter().map(String::as_str).filter(|name| self.lookup(name).is_none()).collect());
        self.arguments.push(arguments);
        self.nodes(&function.node)?;
        let results = function
            .output
            .iter()
            .map(|name| {
                self.lookup(name).ok_or_else(|| {
                    format!("calls function '{}', whose output '{name}' nothing computes", function.name())
                })
            })
            .collect();
        self.arguments.pop();
        self.absent.pop();
        self.pop_scope();
        self.call_stack.pop();
        self.prefix.truncate(outer_prefix);
        self.opset = outer_opset;
        results
    }

    /// Returns an attribute of a call; within a function, it may refer to an attribute of the caller.
    fn argument(&self, call: &'m NodeProto, name: &str) -> Option<&'m super::proto::AttributeProto> {
        let attribute = call.attribute.iter().find(|attribute| attribute.name() == name)?;
        match attribute.ref_attr_name() {
            "" => Some(attribute),
            reference => find(self.arguments.last()?, reference),
        }
    }
}
