//! Translates one node: upgrades it to the newest opset, infers its results, and folds or emits it.

use super::{
    attributes::NodeAttributes,
    constants::Constant,
    proto::NodeProto,
    translate::{Kind, Result, Slot, Translator, ValueId, display_name},
    types::ValueType,
    upgrade::{Form, Upgraded},
};
use divi_dialect::{NewOperation, Region, Value, attr};
use divi_onnx::{
    Attr, Attributes, DType, Node, Op, TensorType, Value as Known, fold, infer, node::KnownElements, operators::Family,
    schema,
};

/// Limit of the bytes of constants that folding creates in one import. Shape arithmetic takes kilobytes.
const MAX_FOLDED_BYTES: usize = 64 << 20;

/// Names of a node's results; `None` for unnamed ones.
pub(super) type Outputs<'a> = &'a [Option<&'a str>];

impl<'c, 'm> Translator<'c, 'm> {
    pub(super) fn node(&mut self, node: &'m NodeProto) -> Result<()> {
        self.enter_node(node);
        if node.op_type().is_empty() {
            return Err("has no operator".into());
        }
        // MLIR allows every other name for an operation.
        if node.op_type().contains('\0') {
            return Err("has an operator with a NUL in its name".into());
        }
        let inputs: Vec<_> = node.input.iter().map(|name| self.lookup(name).filter(|_| !name.is_empty())).collect();
        let attributes = self.attributes(&node.attribute)?;
        let names: Vec<_> = node.output.iter().map(|name| (!name.is_empty()).then_some(name.as_str())).collect();
        let results = match node.domain() {
            "" | "ai.onnx" => self.standard(node, inputs, attributes, &names)?,
            domain => match self.functions.get(&(domain, node.op_type(), node.overload())) {
                Some(function) => self.inline_function(function, node, &inputs)?,
                None => self.custom(domain, &inputs, attributes, &names)?,
            },
        };
        if results.len() < names.iter().rposition(Option::is_some).map_or(0, |last| last + 1) {
            return Err(format!("names {} results, but has {}", names.len(), results.len()));
        }
        // Inlining and subgraphs have translated other nodes.
        self.enter_node(node);
        for (name, &id) in names.iter().zip(&results) {
            if let Some(name) = name {
                self.bind(name, id)?;
            }
        }
        Ok(())
    }

    /// Translates an ai.onnx operator.
    fn standard(
        &mut self,
        node: &'m NodeProto,
        inputs: Vec<Option<ValueId>>,
        attributes: NodeAttributes<'m>,
        names: Outputs<'_>,
    ) -> Result<Vec<ValueId>> {
        match Op::from_name(node.op_type()) {
            Some(Op::Constant) => return Ok(vec![self.constant_node(node, &attributes.plain)?]),
            Some(Op::Scan) if self.opset < 9 => {
                // Opset 8 scanned each element of a batch separately, with its own length.
                return Err(format!(
                    "is of opset {}, where Scan had batches: export the model with opset 9 or newer",
                    self.opset
                ));
            }
            Some(Op::Scan) if attributes.plain.get("num_scan_inputs").is_none() => {
                return Err("needs the attribute 'num_scan_inputs'".into());
            }
            Some(op) if op.family() == Family::ControlFlow => {
                return self.control_flow(node, &inputs, attributes, names);
            }
            _ => {
                // A model may define a function for an operator that ONNX does not have.
                if schema::find(node.op_type()).is_none()
                    && let Some(function) = self.functions.get(&(node.domain(), node.op_type(), node.overload()))
                {
                    return self.inline_function(function, node, &inputs);
                }
            }
        }
        if let Some((name, _)) = attributes.graphs.first() {
            return Err(format!("has a subgraph '{name}', which this operator does not take"));
        }
        let names = wanted(node.op_type(), names);
        let (op, inputs, attributes) = match self.upgrade(node.op_type(), inputs, attributes.plain, names.len())? {
            Upgraded::Node(Form { op, inputs, attributes, .. }) => (op, inputs, attributes),
            Upgraded::Done(results) => return Ok(results),
        };
        check_signature(op, &inputs, &attributes, names)?;
        self.apply_named(op, &inputs, attributes, names)
    }

    fn constant_node(&mut self, node: &'m NodeProto, attributes: &Attributes) -> Result<ValueId> {
        let name = display_name(node).to_owned();
        if let Some(tensor) = node.attribute.iter().find(|a| a.name() == "value").and_then(|a| a.t.as_ref()) {
            return self.constant_from(&name, tensor);
        }
        if let Some(sparse) = node.attribute.iter().find_map(|a| a.sparse_tensor.as_ref()) {
            return self.sparse_initializer(sparse);
        }
        match (attributes.get("value_string"), attributes.get("value_strings")) {
            (Some(Attr::Str(text)), None) => return Ok(self.text_constant(&name, &[], vec![text.clone().into()])),
            (None, Some(Attr::Strs(texts))) => {
                let values = texts.iter().map(|text| text.clone().into()).collect();
                return Ok(self.text_constant(&name, &[texts.len() as i64], values));
            }
            _ => {}
        }
        let node = Node { op: Op::Constant, inputs: &[], attributes, outputs: 1 };
        let types = infer::infer(&node).map_err(|error| error.to_string())?;
        match fold::fold(&node, &types).into_iter().next().flatten() {
            Some(KnownElements::Constant(tensor)) => Ok(self.constant(&name, tensor)),
            _ => Err("has a value that divi does not read".into()),
        }
    }

    /// Applies an operator without result names, as upgrades of nodes do.
    pub(super) fn apply(&mut self, op: &str, inputs: &[Option<ValueId>], attributes: Attributes) -> Result<ValueId> {
        let results = self.apply_named(op, inputs, attributes, &[None])?;
        Ok(results[0])
    }

    /// Infers an operator's results, folds them if they are constant, and emits the operation if they are not.
    pub(super) fn apply_named(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: Attributes,
        names: Outputs<'_>,
    ) -> Result<Vec<ValueId>> {
        let known = Op::from_name(op).filter(|op| op.is_inferred());
        if let (Some(Op::Identity), [Some(input)]) = (known, inputs) {
            return Ok(vec![*input]);
        }
        let values: Option<Vec<Option<&Known>>> = inputs
            .iter()
            .map(|input| match input.map(|id| &self.slot(id).kind) {
                None => Some(None),
                Some(Kind::Tensor(value)) => Some(Some(value)),
                Some(Kind::Other(_)) => None,
            })
            .collect();
        let (Some(known), Some(values)) = (known, values) else {
            return self.opaque(op, inputs, attributes, names);
        };
        let node = Node { op: known, inputs: &values, attributes: &attributes, outputs: names.len() };
        let types = infer::infer(&node).map_err(|error| error.to_string())?;
        let contents = fold::fold(&node, &types);
        let operands_known = values.iter().flatten().all(|value| value.ty.is_static());
        if let Some(results) = self.folded(names, &contents) {
            return Ok(results);
        }
        if let (true, Some(Some(input)), [ty]) = (known.is_view(), inputs.first(), &types[..])
            && let Some(constant) = self.reshaped_constant(*input, ty)
        {
            return Ok(vec![constant]);
        }
        let mut types = types;
        self.refine(names, &mut types, operands_known)?;
        // An unnamed result is absent if it is optional and not part of a variadic list.
        let schema = schema::find(op);
        let all = names.len() == 1 || schema.is_some_and(|schema| schema.outputs.variadic);
        let required = schema.map_or(0, |schema| schema.outputs.required);
        let kinds = (0..result_count(op, names.len()))
            .map(|i| match types.get(i) {
                Some(ty) if i < names.len() && (all || i < required || names[i].is_some()) => {
                    let content = contents.get(i).cloned().flatten().filter(|c| matches!(c, KnownElements::Partial(_)));
                    Some(Kind::Tensor(Known { ty: ty.clone(), content }))
                }
                _ => None,
            })
            .collect();
        self.emit(op, inputs, &attributes, kinds)
    }

    /// Returns the results as constants, if every named one is constant.
    fn folded(&mut self, names: Outputs<'_>, contents: &[Option<KnownElements>]) -> Option<Vec<ValueId>> {
        if contents.is_empty() {
            return None;
        }
        let wanted = |i: usize| names.len() == 1 || names[i].is_some();
        let mut tensors = vec![];
        for i in 0..names.len() {
            match contents.get(i) {
                Some(Some(KnownElements::Constant(tensor))) => tensors.push(tensor.clone()),
                // An unnamed result may have any value.
                _ if !wanted(i) => tensors.push(divi_onnx::Tensor::from_shape(&[])),
                _ => return None,
            }
        }
        let bytes: usize = tensors.iter().map(|tensor| tensor.bytes().len()).sum();
        if bytes > MAX_FOLDED_BYTES - self.folded_bytes {
            return None;
        }
        self.folded_bytes += bytes;
        let name = self.current.name.clone();
        Some(tensors.into_iter().map(|tensor| self.constant(&name, tensor)).collect())
    }

    /// Completes inferred types with those that the model declares.
    fn refine(&mut self, names: Outputs<'_>, types: &mut [TensorType], operands_known: bool) -> Result<()> {
        for (ty, name) in types.iter_mut().zip(names) {
            let Some(name) = name else { continue };
            if ty.is_static() {
                continue;
            }
            if let Some(ValueType::Tensor(declared)) = self.declared(name)?
                && let Some(unified) = ty.unify(&declared)
            {
                *ty = unified;
            }
            if operands_known && !ty.is_static() {
                let (count, _) = self.data_dependent.get_or_insert_with(|| (0, self.current.name.clone()));
                *count += 1;
            }
        }
        Ok(())
    }

    /// Creates the operation. Absent operands and results have type `none`.
    pub(super) fn emit(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: &Attributes,
        results: Vec<Option<Kind<'c>>>,
    ) -> Result<Vec<ValueId>> {
        self.emit_with_regions(op, inputs, attributes, results, &[])
    }

    pub(super) fn emit_with_regions(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: &Attributes,
        results: Vec<Option<Kind<'c>>>,
        regions: &[Region<'c>],
    ) -> Result<Vec<ValueId>> {
        let arity = schema::find(op).map_or(0, |schema| schema.inputs.named);
        let mut operands = Vec::with_capacity(inputs.len().max(arity));
        for input in inputs {
            operands.push(match input {
                Some(id) => self.materialize(*id)?,
                None => self.no_value(),
            });
        }
        while operands.len() < arity {
            operands.push(self.no_value());
        }
        let types: Vec<_> = results
            .iter()
            .map(|kind| kind.as_ref().map_or(self.emitter.none_type(), |kind| self.kind_type(kind)))
            .collect();
        let known = Op::from_name(op);
        let mut named = Vec::with_capacity(attributes.len() + 1);
        for (name, value) in attributes.iter() {
            let attribute = match (known, name, value) {
                // ONNX has a code here, the dialect a type.
                (Some(Op::Cast | Op::BitCast), "to", &Attr::Int(code)) => {
                    DType::from_code(code).and_then(|dtype| self.emitter.attribute(&Attr::DType(dtype)))
                }
                _ => self.emitter.attribute(value),
            };
            let attribute =
                attribute.ok_or_else(|| format!("has attribute '{name}', which divi cannot carry into the IR"))?;
            named.push(self.emitter.named(name, attribute));
        }
        let text = self.emitter.string(&self.current.name);
        named.push(self.emitter.named(attr::NODE_NAME.name(), text));
        let location = self.emitter.location(&self.current.name);
        let name = format!("onnx.{op}");
        let operation = self.emitter.append(&NewOperation {
            name: &name,
            location,
            operands: &operands,
            results: &types,
            attributes: &named,
            regions,
        });
        // MLIR drops attributes that do not match the operator's definition.
        let lost = |name: &str| operation.attribute(name).is_none();
        if let Some((name, _)) = attributes.iter().find(|(name, _)| lost(name)) {
            return Err(format!("has attribute '{name}' of a kind that this operator does not take"));
        }
        let none = self.emitter.none_type();
        let slots = results.into_iter().enumerate().map(|(i, kind)| Slot {
            kind: kind.unwrap_or(Kind::Other(none)),
            mlir: Some(operation.result(i)),
            constant: None::<Constant>,
        });
        let slots: Vec<_> = slots.collect();
        Ok(slots.into_iter().map(|slot| self.add(slot)).collect())
    }

    /// Returns the marker of absent operands.
    fn no_value(&mut self) -> Value<'c> {
        if let Some(value) = self.no_value {
            return value;
        }
        let unit = attr::unit(self.emitter.context);
        let attributes = [self.emitter.named(attr::VALUE.name(), unit)];
        let (location, none) = (self.emitter.file_location(), self.emitter.none_type());
        let operation = NewOperation::new("onnx.NoValue", location);
        let operation = self.emitter.hoist(&NewOperation { results: &[none], attributes: &attributes, ..operation });
        *self.no_value.insert(operation.result(0))
    }
}

/// Returns the results without unnamed ones at the end, which are not requested. In a variadic list, as of Split,
/// listing a result requests it.
fn wanted<'a>(op: &str, names: Outputs<'a>) -> Outputs<'a> {
    if !matches!(names, [_, .., None]) || schema::find(op).is_none_or(|schema| schema.outputs.variadic) {
        return names;
    }
    &names[..names.iter().rposition(Option::is_some).map_or(1, |last| last + 1)]
}

/// Operations of the dialect that a model cannot use as operators.
const DIALECT_ONLY: &[&str] = &["Custom", "EntryPoint", "NoValue", "Return", "Yield"];

/// Checks a node against its operator's signature.
fn check_signature(op: &str, inputs: &[Option<ValueId>], attributes: &Attributes, names: Outputs<'_>) -> Result<()> {
    // Some operators have another name in the dialect for their inference mode.
    let op = Op::from_name(op).map_or(op, |op| op.onnx_op().name());
    let Some(schema) = schema::find(op) else {
        return match DIALECT_ONLY.contains(&op) {
            true => Err("is not an ONNX operator, but a name that the dialect reserves".into()),
            false => Ok(()),
        };
    };
    let mismatch = |what: &str, arity: schema::Arity, count: usize| {
        let expected = match (arity.required, arity.named, arity.variadic) {
            (required, _, true) => format!("at least {required}"),
            (required, named, false) if required == named => named.to_string(),
            (required, named, false) => format!("{required} to {named}"),
        };
        format!("has {count} {what}, takes {expected}")
    };
    if !schema.inputs.allows(inputs.len()) {
        return Err(mismatch("operands", schema.inputs, inputs.len()));
    }
    if !schema.outputs.allows(names.len()) {
        return Err(mismatch("results", schema.outputs, names.len()));
    }
    let takes = |name: &str| schema.attributes.iter().any(|attribute| attribute.name == name);
    if let Some((name, _)) = attributes.iter().find(|(name, _)| !takes(name)) {
        let known: Vec<_> = schema.attributes.iter().map(|attribute| attribute.name).collect();
        return Err(match &known[..] {
            [] => format!("has attribute '{name}', but takes none"),
            known => format!("has attribute '{name}', but takes only {}", known.join(", ")),
        });
    }
    let lacks = |attribute: &&schema::Attribute| attribute.required && attributes.get(attribute.name).is_none();
    if let Some(attribute) = schema.attributes.iter().find(lacks) {
        return Err(format!("needs the attribute '{}'", attribute.name));
    }
    match inputs.iter().take(schema.inputs.required).position(Option::is_none) {
        Some(index) => Err(format!("lacks operand {index}, which is not optional")),
        None => Ok(()),
    }
}

/// Returns the number of results in the dialect, which includes optional ones.
fn result_count(op: &str, named: usize) -> usize {
    schema::find(op).map_or(named, |schema| schema.outputs.named.max(named))
}
