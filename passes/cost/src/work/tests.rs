//! Tests of counts against values by hand; each expected value is written as its arithmetic.

mod conv;
mod coverage;
mod elementwise;
mod errors;
mod movement;
mod product;
mod reduce;
mod rest;

use super::{Class, Geometry, Work, opaque_work, work};
use divi_onnx::{Attr, Attributes, DType, Dim, Error, Node, Op, Tensor, TensorType, Value, infer};

/// Size of a `float` in bytes.
const F32: u64 = 4;
/// Size of an `int64` in bytes.
const I64: u64 = 8;

/// Node to count.
struct Case {
    op: &'static str,
    inputs: Vec<Option<Value>>,
    constant: Vec<bool>,
    attributes: Attributes,
    outputs: usize,
    results: Option<Vec<TensorType>>,
}

impl Case {
    fn new(op: &'static str) -> Self {
        Self { op, inputs: vec![], constant: vec![], attributes: Attributes::default(), outputs: 1, results: None }
    }

    fn operand(mut self, value: Option<Value>, constant: bool) -> Self {
        self.inputs.push(value);
        self.constant.push(constant);
        self
    }

    /// Adds an operand that another task computes, of a type in the syntax of messages: `float[2x3]`.
    fn input(self, ty: &str) -> Self {
        self.operand(Some(Value::new(parse(ty))), false)
    }

    /// Adds a constant operand with unknown elements.
    fn weights(self, ty: &str) -> Self {
        self.operand(Some(Value::new(parse(ty))), true)
    }

    fn none(self) -> Self {
        self.operand(None, false)
    }

    /// Adds a constant `int64` operand with these elements.
    fn list(self, values: &[i64]) -> Self {
        self.tensor(Tensor::from_shape(values))
    }

    fn scalar(self, value: i64) -> Self {
        self.tensor(Tensor::scalar_i64(value))
    }

    fn tensor(self, tensor: Tensor) -> Self {
        self.operand(Some(Value::constant(tensor)), true)
    }

    fn attr(mut self, name: &str, attr: Attr) -> Self {
        self.attributes.push(name, attr);
        self
    }

    fn int(self, name: &str, value: i64) -> Self {
        self.attr(name, Attr::Int(value))
    }

    fn ints(self, name: &str, values: &[i64]) -> Self {
        self.attr(name, Attr::Ints(values.to_vec()))
    }

    fn float(self, name: &str, value: f32) -> Self {
        self.attr(name, Attr::Float(value))
    }

    fn str(self, name: &str, value: &str) -> Self {
        self.attr(name, Attr::Str(value.into()))
    }

    /// Sets the number of results, by default 1.
    fn outputs(mut self, outputs: usize) -> Self {
        self.outputs = outputs;
        self
    }

    /// Sets the types of the results, for operators without (precise) inference.
    fn results(mut self, types: &[&str]) -> Self {
        self.results = Some(types.iter().map(|ty| parse(ty)).collect());
        self
    }

    fn try_work(&self) -> Result<Work, Error> {
        let inputs: Vec<_> = self.inputs.iter().map(Option::as_ref).collect();
        let Some(op) = Op::from_name(self.op) else {
            return opaque_work(&inputs, self.results.as_deref().expect("the test gives the results"), &self.constant);
        };
        let node = Node { op, inputs: &inputs, attributes: &self.attributes, outputs: self.outputs };
        let results = match &self.results {
            Some(results) => results.clone(),
            None => infer::infer(&node).expect("inference succeeds").into_iter().take(self.outputs).collect(),
        };
        work(&node, &results, &self.constant)
    }

    #[track_caller]
    fn work(&self) -> Work {
        self.try_work().expect("counting succeeds")
    }

    /// Asserts the class and the number of operations.
    #[track_caller]
    fn does(self, class: Class, flops: u64) -> Self {
        let work = self.work();
        assert_eq!((work.class, work.flops), (class, flops), "class and operations of {}", self.op);
        self
    }

    /// Asserts bytes read, weights read, bytes written.
    #[track_caller]
    fn moves(self, read: u64, weights: u64, written: u64) -> Self {
        let work = self.work();
        let moved = (work.read, work.weights, work.written);
        assert_eq!(moved, (read, weights, written), "read, weights, written of {}", self.op);
        self
    }

    #[track_caller]
    fn resides(self, resident_weights: u64) -> Self {
        assert_eq!(self.work().resident_weights, resident_weights, "resident weights of {}", self.op);
        self
    }

    #[track_caller]
    fn loops(self, geometry: Geometry) -> Self {
        assert_eq!(self.work().geometry, geometry, "loops of {}", self.op);
        self
    }

    #[track_caller]
    fn scratch(self, bytes: u64) -> Self {
        assert_eq!(self.work().scratch, bytes, "scratch of {}", self.op);
        self
    }

    #[track_caller]
    fn computes_in(self, dtype: DType) -> Self {
        assert_eq!(self.work().dtype, dtype, "element type of {}", self.op);
        self
    }

    /// Asserts that counting fails with a message that contains `part`.
    #[track_caller]
    fn fails(self, part: &str) {
        let message = self.try_work().expect_err("counting fails").to_string();
        assert!(message.contains(part), "'{message}' does not contain '{part}'");
    }
}

fn parse(ty: &str) -> TensorType {
    let (dtype, shape) = ty.strip_suffix(']').and_then(|ty| ty.split_once('[')).expect("a type is name[dims]");
    let dtype = DType::ALL.iter().copied().find(|d| d.name() == dtype).expect("a known element type");
    let dim = |dim: &str| dim.parse().map_or(Dim::Unknown, Dim::Known);
    let shape = match shape {
        "*" => None,
        "" => Some(vec![]),
        dims => Some(dims.split('x').map(dim).collect()),
    };
    TensorType::new(dtype, shape)
}
