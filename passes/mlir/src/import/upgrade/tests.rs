//! Imports models of one node in an older opset, and checks the result.

use crate::export::proto::attribute;
use crate::import::{
    Options, Source, import,
    proto::{
        GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto, TypeProto, ValueInfoProto,
        tensor_shape_proto::{Dimension, dimension},
        type_proto,
    },
    tensor_proto::TensorProto,
};
use divi_onnx::{Attr, DType, Tensor};
use melior::ir::operation::OperationLike;
use prost::Message;

mod cases;

/// Model of one node under construction. Negative dimensions are dynamic.
struct Case {
    opset: i64,
    node: NodeProto,
    graph: GraphProto,
}

impl Case {
    fn new(opset: i64, op: &str) -> Self {
        let node = NodeProto { op_type: Some(op.into()), name: Some("node".into()), ..Default::default() };
        let graph = GraphProto { name: Some("graph".into()), ..Default::default() };
        Self { opset, node, graph }.outputs(1)
    }

    fn typed_input(mut self, dtype: DType, dims: Option<&[i64]>) -> Self {
        let name = format!("in{}", self.node.input.len());
        let dimension = |&dim: &i64| Dimension { value: (dim >= 0).then_some(dimension::Value::DimValue(dim)) };
        let shape = dims.map(|dims| TensorShapeProto { dim: dims.iter().map(dimension).collect() });
        let tensor = type_proto::Tensor { elem_type: Some(dtype.code() as i32), shape };
        let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)) };
        self.graph.input.push(ValueInfoProto { name: Some(name.clone()), r#type: Some(ty) });
        self.node.input.push(name);
        self
    }

    fn input(self, dims: &[i64]) -> Self {
        self.typed_input(DType::F32, Some(dims))
    }

    fn unranked(self) -> Self {
        self.typed_input(DType::F32, None)
    }

    fn constant(mut self, tensor: &Tensor) -> Self {
        let name = format!("in{}", self.node.input.len());
        self.graph.initializer.push(TensorProto {
            name: name.clone(),
            dims: tensor.dims().to_vec(),
            data_type: tensor.dtype().code() as i32,
            raw_data: Some(tensor.bytes().clone()),
            ..Default::default()
        });
        self.node.input.push(name);
        self
    }

    fn floats(self, dims: &[i64], values: &[f64]) -> Self {
        self.constant(&Tensor::from_floats(DType::F32, dims.to_vec(), values).unwrap())
    }

    fn absent(mut self) -> Self {
        self.node.input.push(String::new());
        self
    }

    fn attr(mut self, name: &str, attr: Attr) -> Self {
        self.node.attribute.push(attribute(name, attr));
        self
    }

    fn int(self, name: &str, value: i64) -> Self {
        self.attr(name, Attr::Int(value))
    }

    fn float(self, name: &str, value: f32) -> Self {
        self.attr(name, Attr::Float(value))
    }

    fn str(self, name: &str, value: &str) -> Self {
        self.attr(name, Attr::Str(value.into()))
    }

    fn ints(self, name: &str, values: &[i64]) -> Self {
        self.attr(name, Attr::Ints(values.to_vec()))
    }

    fn outputs(mut self, count: usize) -> Self {
        self.node.output = (0..count).map(|i| format!("out{i}")).collect();
        self
    }

    /// Lists a result without naming it.
    fn unnamed_output(mut self) -> Self {
        self.node.output.push(String::new());
        self
    }

    fn import(mut self) -> Result<String, String> {
        let outputs = self.node.output.iter().filter(|name| !name.is_empty());
        self.graph.output =
            outputs.map(|name| ValueInfoProto { name: Some(name.clone()), ..Default::default() }).collect();
        self.graph.node.push(self.node);
        let opset = OperatorSetIdProto { domain: None, version: Some(self.opset) };
        let (graph, opset_import) = (Some(self.graph), vec![opset]);
        let model = ModelProto { ir_version: Some(3), graph, opset_import, ..Default::default() };
        let context = crate::new_context();
        let source = Source::from_memory("test", model.encode_to_vec().into());
        let (module, _) = import(&context, &source, &Options::default()).map_err(|error| error.to_string())?;
        let text = module.as_operation().to_string();
        assert!(module.as_operation().verify(), "{text}");
        Ok(text)
    }

    /// Checks that the module has these operations of the dialect, without constants, in this order, and contains these
    /// texts.
    fn becomes(self, operations: &[&str], texts: &[&str]) {
        let module = self.import().unwrap();
        let found: Vec<_> = module
            .split("onnx.")
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or(""))
            .filter(|op| op.starts_with(char::is_uppercase) && !matches!(*op, "Constant" | "NoValue"))
            .collect();
        assert_eq!(found, operations, "{module}");
        for text in texts {
            assert!(module.contains(text), "no '{text}' in {module}");
        }
    }

    fn fails(self, message: &str) {
        let error = self.import().unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}
