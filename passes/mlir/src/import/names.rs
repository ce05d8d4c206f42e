//! Scopes of names, and the types that the model declares for them.

use super::{
    proto::{GraphProto, ValueInfoProto},
    translate::{Kind, Result, Slot, Translator, ValueId},
    types::ValueType,
};
use divi_onnx::TensorType;
use melior::ir::Type;
use prost::Message;
use rustc_hash::FxHashMap;

/// Scope of names. The body of a function does not see those of its caller.
pub(super) struct Scope<'m> {
    names: FxHashMap<&'m str, ValueId>,
    declared: Declared<'m>,
    sees_outer: bool,
}

/// Types that the model declares for values, decoded on first use.
struct Declared<'m> {
    graph: Option<&'m GraphProto>,
    types: Option<FxHashMap<String, ValueInfoProto>>,
}

impl<'c, 'm> Translator<'c, 'm> {
    pub(super) fn push_scope(&mut self, graph: Option<&'m GraphProto>, sees_outer: bool) {
        let declared = Declared { graph, types: None };
        self.scopes.push(Scope { names: FxHashMap::default(), declared, sees_outer });
    }

    pub(super) fn pop_scope(&mut self) {
        self.scopes.pop();
    }

    pub(super) fn lookup(&self, name: &str) -> Option<ValueId> {
        for scope in self.scopes.iter().rev() {
            if let Some(&id) = scope.names.get(name) {
                return Some(id);
            }
            if !scope.sees_outer {
                break;
            }
        }
        None
    }

    /// Binds a name, which must be unique in the graph, to a value.
    pub(super) fn bind(&mut self, name: &'m str, id: ValueId) -> Result<()> {
        let scope = self.scopes.last_mut().expect("a scope is open while a graph is translated");
        match scope.names.insert(name, id) {
            None => Ok(()),
            Some(_) => Err(format!("defines '{name}', which is defined already: names of values must be unique")),
        }
    }

    pub(super) fn add(&mut self, slot: Slot<'c>) -> ValueId {
        self.values.push(slot);
        ValueId(self.values.len() - 1)
    }

    pub(super) fn slot(&self, id: ValueId) -> &Slot<'c> {
        &self.values[id.0]
    }

    pub(super) fn slot_mut(&mut self, id: ValueId) -> &mut Slot<'c> {
        &mut self.values[id.0]
    }

    pub(super) fn type_of(&self, id: ValueId) -> Type<'c> {
        self.kind_type(&self.slot(id).kind)
    }

    pub(super) fn kind_type(&self, kind: &Kind<'c>) -> Type<'c> {
        match kind {
            Kind::Tensor(value) => self.emitter.tensor_type(&value.ty),
            Kind::Other(ty) => *ty,
        }
    }

    /// Returns the type that the innermost graph declares for a value, as far as it is still valid.
    pub(super) fn declared(&mut self, name: &str) -> Result<Option<ValueType<'c>>> {
        let scope = self.scopes.last_mut().expect("a scope is open while a graph is translated");
        let Some(graph) = scope.declared.graph else { return Ok(None) };
        let types = match &mut scope.declared.types {
            Some(types) => types,
            empty => {
                let mut types = FxHashMap::default();
                for bytes in &graph.value_info {
                    let info = ValueInfoProto::decode(bytes.clone())
                        .map_err(|error| format!("has value_info that is damaged ({error})"))?;
                    types.insert(info.name().to_owned(), info);
                }
                types.extend(graph.output.iter().map(|output| (output.name().to_owned(), output.clone())));
                empty.insert(types)
            }
        };
        let Some(info) = types.get(name) else { return Ok(None) };
        let ty = info.r#type.clone();
        let declared =
            self.declared_type(ty.as_ref()).map_err(|message| format!("declares '{name}', which {message}"))?;
        Ok(declared.map(|declared| self.still_valid(declared)))
    }

    /// Weakens a declared type: if the options override input shapes, or in an unrolled loop, only its rank is certain.
    pub(super) fn still_valid(&self, declared: ValueType<'c>) -> ValueType<'c> {
        match declared {
            ValueType::Tensor(TensorType { dtype, shape: Some(shape) })
                if self.options.overrides_shapes() || self.unrolling > 0 =>
            {
                ValueType::Tensor(TensorType::of_rank(dtype, shape.len()))
            }
            declared => declared,
        }
    }
}
