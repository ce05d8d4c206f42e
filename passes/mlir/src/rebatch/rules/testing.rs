//! Compact notation for tests of rules.

use super::{Change, Flow, Layout, Site, flow};
use divi_onnx::{Attr, Attributes, DType, Dim, Node, Op, Tensor, TensorType, Value};

/// Number of runs at once, of one input each.
const FACTOR: i64 = 3;

/// Operator application under test.
pub(crate) struct Case {
    op: Op,
    inputs: Vec<Option<Value>>,
    batch: Vec<Option<Layout>>,
    attributes: Attributes,
    changes: Vec<(usize, Change)>,
    as_reshape: bool,
}

impl Case {
    pub(crate) fn new(op: &'static str) -> Self {
        Self {
            op: Op::from_name(op).expect("the table has the operator"),
            inputs: vec![],
            batch: vec![],
            attributes: Attributes::default(),
            changes: vec![],
            as_reshape: false,
        }
    }

    fn operand(mut self, value: Option<Value>, batch: Option<Layout>) -> Self {
        self.inputs.push(value);
        self.batch.push(batch);
        self
    }

    /// Adds an operand with a batch on an axis: `float[1x3]`.
    pub(crate) fn batched(self, ty: &str, axis: usize) -> Self {
        self.merged(ty, axis, 1)
    }

    /// Adds an operand whose runs are contiguous in each of `outer` parts of an axis.
    pub(crate) fn merged(self, ty: &str, axis: usize, outer: i64) -> Self {
        self.operand(Some(Value::new(parse(ty))), Some(Layout { axis, outer }))
    }

    /// Adds an operand that all runs share.
    pub(crate) fn same(self, ty: &str) -> Self {
        self.operand(Some(Value::new(parse(ty))), None)
    }

    pub(crate) fn none(self) -> Self {
        self.operand(None, None)
    }

    /// Adds a constant list of integers.
    pub(crate) fn list(self, values: &[i64]) -> Self {
        self.operand(Some(Value::constant(Tensor::from_shape(values))), None)
    }

    pub(crate) fn scalar(self, value: i64) -> Self {
        self.operand(Some(Value::constant(Tensor::scalar_i64(value))), None)
    }

    /// Adds a constant list of numbers.
    pub(crate) fn floats(self, values: &[f64]) -> Self {
        let tensor = Tensor::from_floats(DType::F32, vec![values.len() as i64], values).unwrap();
        self.operand(Some(Value::constant(tensor)), None)
    }

    pub(crate) fn int(mut self, name: &str, value: i64) -> Self {
        self.attributes.push(name, Attr::Int(value));
        self
    }

    pub(crate) fn ints(mut self, name: &str, values: &[i64]) -> Self {
        self.attributes.push(name, Attr::Ints(values.to_vec()));
        self
    }

    pub(crate) fn str(mut self, name: &str, value: &str) -> Self {
        self.attributes.push(name, Attr::Str(value.into()));
        self
    }

    /// Expects that a constant list of integers gets other elements.
    pub(crate) fn becomes(mut self, operand: usize, values: &[i64]) -> Self {
        self.changes.push((operand, Change::Constant(Tensor::from_shape(values))));
        self
    }

    /// Expects that an operand is repeated along an axis.
    pub(crate) fn spreads(mut self, operand: usize, axis: usize) -> Self {
        self.changes.push((operand, Change::Spread(axis)));
        self
    }

    /// Expects that a Reshape replaces the operator.
    pub(crate) fn reshapes(mut self) -> Self {
        self.as_reshape = true;
        self
    }

    fn flow(&self, results: &[&str]) -> Option<Flow> {
        let inputs: Vec<_> = self.inputs.iter().map(Option::as_ref).collect();
        let node = Node { op: self.op, inputs: &inputs, attributes: &self.attributes, outputs: results.len() };
        let results: Vec<_> = results.iter().map(|ty| parse(ty)).collect();
        flow(&Site { node: &node, batch: &self.batch, results: &results, factor: FACTOR, unit: 1 })
    }

    /// Asserts the position of the batch in the one result of this type, and the expected changes of operands.
    #[track_caller]
    pub(crate) fn gives(self, result: &str, axis: usize, outer: i64) {
        self.gives_all(&[result], &[Layout { axis, outer }]);
    }

    #[track_caller]
    pub(crate) fn gives_all(self, results: &[&str], layouts: &[Layout]) {
        let flow = self.flow(results).unwrap_or_else(|| panic!("{} mixes", self.op));
        assert_eq!(flow.results, layouts.iter().copied().map(Some).collect::<Vec<_>>(), "{}", self.op);
        assert_eq!(flow.changes, self.changes, "{}", self.op);
        assert_eq!(flow.as_reshape, self.as_reshape, "{}", self.op);
    }

    /// Asserts that all runs share the result.
    #[track_caller]
    pub(crate) fn gives_the_same(self, result: &str) {
        assert_eq!(self.flow(&[result]).expect("it does not mix").results, [None], "{}", self.op);
    }

    #[track_caller]
    pub(crate) fn mixes(self, result: &str) {
        let flow = self.flow(&[result]);
        assert!(flow.is_none(), "{}: {flow:?}", self.op);
    }
}

fn parse(ty: &str) -> TensorType {
    let (dtype, shape) = ty.strip_suffix(']').and_then(|ty| ty.split_once('[')).expect("a type is name[dims]");
    let dtype = DType::ALL.iter().copied().find(|d| d.name() == dtype).expect("a known element type");
    let dims = shape.split('x').filter(|dim| !dim.is_empty());
    TensorType::new(dtype, dims.map(|dim| dim.parse().map_or(Dim::Unknown, Dim::Known)).collect::<Vec<_>>())
}
