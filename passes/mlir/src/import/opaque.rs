//! Translates operators that divi has no rules for: of other domains, on sequences and optionals, or newer than divi.

use super::{
    apply::Outputs,
    attributes::NodeAttributes,
    proto::OperatorSetIdProto,
    translate::{Kind, Result, Translator, ValueId},
};
use divi_dialect::attr;
use divi_onnx::{Attr, Attributes, DType, Dim, Op, TensorType, Value};

impl<'c, 'm> Translator<'c, 'm> {
    /// Translates an operator of another domain to `onnx.Custom`, as in onnx-mlir.
    pub(super) fn custom(
        &mut self,
        domain: &str,
        inputs: &[Option<ValueId>],
        attributes: NodeAttributes<'m>,
        names: Outputs<'_>,
    ) -> Result<Vec<ValueId>> {
        if let Some((name, _)) = attributes.graphs.first() {
            return Err(format!("of domain '{domain}' has a subgraph '{name}', which divi cannot carry along"));
        }
        let mut plain = attributes.plain;
        check_names(&plain)?;
        plain.push("domain_name", Attr::Str(domain.to_owned()));
        plain.push("function_name", Attr::Str(self.current.op.clone()));
        // Version 1 is the default.
        if let Some(version) = self.domain_version(domain).filter(|&version| version != 1) {
            plain.push("domain_version", Attr::Int(version));
        }
        self.count_opaque(format!("{domain}.{}", self.current.op));
        let types = self.opaque_types(inputs, names)?;
        self.emit("Custom", inputs, &plain, types)
    }

    /// Returns the version of a domain that the enclosing function imports, or the model.
    fn domain_version(&self, domain: &str) -> Option<i64> {
        let imports = self.call_stack.last().map(|function| &function.opset_import[..]);
        let find = |imports: &[OperatorSetIdProto]| {
            imports.iter().find(|import| import.domain() == domain).map(OperatorSetIdProto::version)
        };
        imports.and_then(find).or_else(|| find(self.opset_imports))
    }

    /// Translates an operator that divi does not know, or with operands that are not tensors.
    pub(super) fn opaque(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: Attributes,
        names: Outputs<'_>,
    ) -> Result<Vec<ValueId>> {
        check_names(&attributes)?;
        self.count_opaque(op.to_owned());
        let types = match self.container_types(op, inputs, &attributes, names)? {
            Some(types) => types,
            None => self.opaque_types(inputs, names)?,
        };
        self.emit(op, inputs, &attributes, types)
    }

    pub(super) fn count_opaque(&mut self, op: String) {
        let first = self.current.name.clone();
        self.opaque.entry(op).or_insert((0, first)).0 += 1;
    }

    /// Returns the result types of an operator without a rule: as declared, or unranked with the first operand's
    /// element type.
    fn opaque_types(&mut self, inputs: &[Option<ValueId>], names: Outputs<'_>) -> Result<Vec<Option<Kind<'c>>>> {
        let like = inputs.iter().flatten().find_map(|&id| match &self.slot(id).kind {
            Kind::Tensor(value) => Some(value.ty.dtype),
            Kind::Other(_) => None,
        });
        let mut types = vec![];
        for name in names {
            let declared = match name {
                Some(name) => self.declared(name)?,
                None => None,
            };
            types.push(match (name, declared) {
                (None, _) => None,
                (Some(_), Some(declared)) => Some(declared.into()),
                (Some(_), None) => {
                    let dtype = like.unwrap_or(DType::F32);
                    let (count, _) = self.undeclared.get_or_insert_with(|| (0, self.current.name.clone()));
                    *count += 1;
                    Some(Kind::Tensor(Value::new(TensorType::unranked(dtype))))
                }
            });
        }
        Ok(types)
    }

    /// Returns the result types of operators on sequences and optionals.
    fn container_types(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: &Attributes,
        names: Outputs<'_>,
    ) -> Result<Option<Vec<Option<Kind<'c>>>>> {
        if let [Some(name)] = names
            && let Some(declared) = self.declared(name)?
        {
            return Ok(Some(vec![Some(declared.into())]));
        }
        let tensor = |dtype, shape: Option<Vec<Dim>>| Some(Kind::Tensor(Value::new(TensorType::new(dtype, shape))));
        let first = inputs.first().copied().flatten().map(|id| &self.slot(id).kind);
        let element = match first {
            Some(Kind::Tensor(value)) => Some(TensorType::unranked(value.ty.dtype)),
            Some(&Kind::Other(ty)) => divi_dialect::contained_type(ty).and_then(divi_dialect::tensor_type_of),
            None => match attributes.get("dtype") {
                Some(&Attr::Int(code)) => DType::from_code(code).map(TensorType::unranked),
                _ => Some(TensorType::unranked(DType::F32)),
            },
        };
        let same = first.map(|kind| match kind {
            Kind::Tensor(value) => Kind::Tensor(Value::new(value.ty.clone())),
            Kind::Other(ty) => Kind::Other(*ty),
        });
        let kind = match (Op::from_name(op), element) {
            (Some(Op::SequenceConstruct | Op::SequenceEmpty | Op::SplitToSequence), Some(element)) => {
                Some(Kind::Other(self.sequence_of(&element)))
            }
            (Some(Op::SequenceInsert | Op::SequenceErase | Op::Identity | Op::StringNormalizer), _) => same,
            (Some(Op::SequenceAt | Op::ConcatFromSequence | Op::OptionalGetElement), Some(element)) => {
                Some(Kind::Tensor(Value::new(TensorType::unranked(element.dtype))))
            }
            (Some(Op::SequenceLength), _) => tensor(DType::I64, Some(vec![])),
            (Some(Op::OptionalHasElement), _) => tensor(DType::Bool, Some(vec![])),
            (Some(Op::RegexFullMatch), _) => tensor(DType::Bool, None),
            _ => None,
        };
        Ok(kind.map(|kind| vec![Some(kind)]))
    }
}

/// Checks that no attribute of an unknown operator has a name that the IR reserves.
fn check_names(attributes: &Attributes) -> Result<()> {
    const RESERVED: &[&str] = &["domain_name", "domain_version", "function_name", attr::NODE_NAME.name()];
    match attributes.iter().find(|(name, _)| RESERVED.contains(name)) {
        Some((name, _)) => Err(format!("has attribute '{name}', a name that the IR reserves: rename it")),
        None => Ok(()),
    }
}
