//! Builder for tests of inference rules and folders.

use crate::{
    Attr, Attributes, DType, Dim, Node, Op, Symbol, Tensor, TensorType, Value, fold, infer, node::KnownElements,
};

/// Node under test.
pub(crate) struct Case {
    op: Op,
    inputs: Vec<Option<Value>>,
    attributes: Attributes,
    outputs: usize,
}

impl Case {
    pub(crate) fn new(op: &'static str) -> Self {
        let op = Op::from_name(op).expect("the table has the operator");
        Self { op, inputs: vec![], attributes: Attributes::default(), outputs: 1 }
    }

    /// Adds an operand of a type in the syntax of messages: `float[2x?]`, `int64[]` (a scalar), `bool[*]` (unknown rank).
    /// A capital letter is a symbol: `float[Nx3]`.
    pub(crate) fn input(mut self, ty: &str) -> Self {
        self.inputs.push(Some(Value::new(parse(ty))));
        self
    }

    /// Adds an absent optional operand.
    pub(crate) fn none(mut self) -> Self {
        self.inputs.push(None);
        self
    }

    /// Adds a constant `int64` operand of shape `[values.len()]`.
    pub(crate) fn shape_input(self, values: &[i64]) -> Self {
        self.constant(Tensor::from_shape(values))
    }

    pub(crate) fn constant(mut self, tensor: Tensor) -> Self {
        self.inputs.push(Some(Value::constant(tensor)));
        self
    }

    /// Adds an operand that may be partly known.
    pub(crate) fn value(mut self, value: Value) -> Self {
        self.inputs.push(Some(value));
        self
    }

    /// Adds a one-dimensional `int64` operand with elements in the syntax of dimensions: `Nx-1x64`.
    pub(crate) fn partial(self, elements: &str) -> Self {
        let dims: Vec<_> = elements.split('x').map(parse_dim).collect();
        let ty = TensorType::new(DType::I64, vec![Dim::Known(dims.len() as i64)]);
        self.value(Value { ty, content: Some(KnownElements::Partial(dims)) })
    }

    pub(crate) fn int(self, name: &str, value: i64) -> Self {
        self.attr(name, Attr::Int(value))
    }

    pub(crate) fn ints(self, name: &str, values: &[i64]) -> Self {
        self.attr(name, Attr::Ints(values.to_vec()))
    }

    pub(crate) fn str(self, name: &str, value: &str) -> Self {
        self.attr(name, Attr::Str(value.into()))
    }

    pub(crate) fn attr(mut self, name: &str, attr: Attr) -> Self {
        self.attributes.push(name, attr);
        self
    }

    pub(crate) fn outputs(mut self, outputs: usize) -> Self {
        self.outputs = outputs;
        self
    }

    pub(crate) fn with_node<R>(&self, f: impl FnOnce(&Node<'_>) -> R) -> R {
        let inputs: Vec<_> = self.inputs.iter().map(Option::as_ref).collect();
        f(&Node { op: self.op, inputs: &inputs, attributes: &self.attributes, outputs: self.outputs })
    }

    fn types(&self) -> infer::Types {
        self.with_node(infer::infer)
    }

    /// Asserts the inferred types, in the syntax of messages.
    #[track_caller]
    pub(crate) fn infers(self, expected: &[&str]) {
        let types: Vec<_> = self.types().expect("inference succeeds").iter().map(spell).collect();
        assert_eq!(types, expected, "{}", self.op);
    }

    /// Asserts that inference fails with a message that contains `part`.
    #[track_caller]
    pub(crate) fn fails(self, part: &str) {
        let message = self.types().expect_err("inference fails").to_string();
        assert!(message.contains(part), "'{message}' does not contain '{part}'");
    }

    /// Returns the first result if folding determines some of its elements.
    #[track_caller]
    pub(crate) fn folded(&self) -> Option<Value> {
        let types = self.types().expect("inference succeeds");
        let contents = self.with_node(|node| fold::fold(node, &types));
        let content = contents.into_iter().next().flatten()?;
        Some(Value { ty: types[0].clone(), content: Some(content) })
    }
}

pub(crate) fn parse(ty: &str) -> TensorType {
    let (dtype, shape) = ty.strip_suffix(']').and_then(|ty| ty.split_once('[')).expect("a type is name[dims]");
    let dtype = DType::ALL.iter().copied().find(|d| d.name() == dtype).expect("a known element type");
    let shape = match shape {
        "*" => None,
        "" => Some(vec![]),
        dims => Some(dims.split('x').map(parse_dim).collect()),
    };
    TensorType::new(dtype, shape)
}

fn parse_dim(dim: &str) -> Dim {
    match dim.as_bytes() {
        &[letter @ b'A'..=b'Z'] => Dim::Symbol(Symbol(letter.into())),
        _ => dim.parse().map_or(Dim::Unknown, Dim::Known),
    }
}

/// Returns a type in the syntax of messages, except that the symbols of `parse_dim` are printed as letters.
fn spell(ty: &TensorType) -> String {
    let letter = |dim: &Dim| match *dim {
        Dim::Symbol(Symbol(id)) if (65..=90).contains(&id) => char::from(id as u8).to_string(),
        _ => dim.to_string(),
    };
    match &ty.shape {
        Some(shape) => format!("{}[{}]", ty.dtype, shape.iter().map(letter).collect::<Vec<_>>().join("x")),
        None => ty.to_string(),
    }
}
