//! Reads the attributes of nodes.

use super::{
    proto::{AttributeProto, GraphProto, attribute_proto::AttributeType},
    tensor_proto::Elements,
    translate::{Result, Translator},
};
use bytes::Bytes;
use divi_onnx::{Attr, Attributes, Op};

/// Attributes of a node, with subgraphs separate.
#[derive(Default)]
pub(super) struct NodeAttributes<'m> {
    pub(super) plain: Attributes,
    pub(super) graphs: Vec<(&'m str, &'m GraphProto)>,
}

/// Attributes that the caller of a function passes for those that the function's nodes refer to.
pub(super) type Arguments<'m> = Vec<&'m AttributeProto>;

impl<'m> Translator<'_, 'm> {
    /// Reads a node's attributes. References to a function's attributes are resolved; those that the caller omits are
    /// omitted.
    pub(super) fn attributes(&mut self, protos: &'m [AttributeProto]) -> Result<NodeAttributes<'m>> {
        let mut attributes = NodeAttributes::default();
        for proto in protos {
            let name = proto.name();
            if name.is_empty() {
                return Err("has an attribute without a name".into());
            }
            if attributes.plain.get(name).is_some() || attributes.graphs.iter().any(|(other, _)| *other == name) {
                return Err(format!("has attribute '{name}' twice"));
            }
            let value = match proto.ref_attr_name() {
                "" => proto,
                reference => match self.arguments.last().and_then(|frame| find(frame, reference)) {
                    Some(argument) => argument,
                    None => continue,
                },
            };
            let attr = match kind(value) {
                AttributeType::Int => Attr::Int(value.i()),
                AttributeType::Float => Attr::Float(value.f()),
                AttributeType::String => Attr::Str(text(name, value.s.as_ref().unwrap_or(&Bytes::new()))?),
                AttributeType::Ints => Attr::Ints(value.ints.clone()),
                AttributeType::Floats => Attr::Floats(value.floats.clone()),
                AttributeType::Strings => {
                    Attr::Strs(value.strings.iter().map(|bytes| text(name, bytes)).collect::<Result<_>>()?)
                }
                AttributeType::Tensor => {
                    let tensor =
                        value.t.as_ref().ok_or_else(|| format!("has attribute '{name}' without its tensor"))?;
                    match tensor.elements().map_err(|message| format!("has attribute '{name}', which {message}"))? {
                        Elements::Here(tensor) => Attr::Tensor(tensor),
                        // Only Constant may have these, and it reads them itself.
                        Elements::External { .. } | Elements::Strings { .. } => Attr::Other,
                    }
                }
                AttributeType::Graph => {
                    let graph = value.g.as_ref().ok_or_else(|| format!("has attribute '{name}' without its graph"))?;
                    attributes.graphs.push((name, graph));
                    continue;
                }
                AttributeType::SparseTensor if self.current.op == Op::Constant.name() => Attr::Other,
                AttributeType::TypeProto => Attr::Other,
                other => {
                    return Err(format!(
                        "has attribute '{name}' of kind {}, which divi does not read",
                        other.as_str_name()
                    ));
                }
            };
            attributes.plain.push(name, attr);
        }
        Ok(attributes)
    }
}

pub(super) fn find<'m>(attributes: &[&'m AttributeProto], name: &str) -> Option<&'m AttributeProto> {
    attributes.iter().copied().find(|attribute| attribute.name() == name)
}

/// Returns the subgraph of an attribute, if it is one.
pub(super) fn subgraph(attribute: &AttributeProto) -> Option<&GraphProto> {
    attribute.g.as_deref().filter(|_| kind(attribute) == AttributeType::Graph)
}

/// Returns the kind of an attribute. IR version 1 has none, so it follows from the field that is set.
fn kind(attribute: &AttributeProto) -> AttributeType {
    match attribute.r#type() {
        AttributeType::Undefined if attribute.f.is_some() => AttributeType::Float,
        AttributeType::Undefined if attribute.i.is_some() => AttributeType::Int,
        AttributeType::Undefined if attribute.s.is_some() => AttributeType::String,
        AttributeType::Undefined if attribute.t.is_some() => AttributeType::Tensor,
        AttributeType::Undefined if attribute.g.is_some() => AttributeType::Graph,
        AttributeType::Undefined if !attribute.ints.is_empty() => AttributeType::Ints,
        AttributeType::Undefined if !attribute.floats.is_empty() => AttributeType::Floats,
        AttributeType::Undefined if !attribute.strings.is_empty() => AttributeType::Strings,
        kind => kind,
    }
}

fn text(name: &str, bytes: &Bytes) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| format!("has attribute '{name}', whose text is not UTF-8"))
}
