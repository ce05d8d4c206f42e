//! The model's inputs: what shapes they have, and what the options make of them.

use super::{
    proto::GraphProto,
    translate::{Kind, Result, Slot, Translator, ValueId},
    types::ValueType,
};
use divi_onnx::{Dim, TensorType, Value};
use mlir_sys::*;
use rustc_hash::FxHashSet;

impl<'m> Translator<'_, 'm> {
    /// Graph inputs become arguments, but for those that an initializer gives a value.
    pub(super) fn inputs(&mut self, graph: &'m GraphProto, block: MlirBlock) -> Result<Vec<MlirAttribute>> {
        let initialized: FxHashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
        for (name, _) in &self.options.input_shapes {
            if !graph.input.iter().any(|input| input.name() == name) {
                let names: Vec<_> = graph.input.iter().map(|input| format!("'{}'", input.name())).collect();
                return Err(format!("has no input '{name}' to give a shape: its inputs are {}", names.join(", ")));
            }
        }
        let mut types = vec![];
        for input in graph.input.iter().filter(|input| !initialized.contains(input.name())) {
            let declared = self
                .declared_type(input.r#type.as_ref())
                .and_then(|ty| ty.ok_or_else(|| "declares no type".to_owned()))
                .map_err(|message| format!("input '{}' {message}", input.name()))?;
            types.push((input.name(), declared));
        }
        self.fix_batch(&mut types)?;
        let mut attributes = vec![];
        for (name, mut declared) in types {
            if let ValueType::Tensor(ty) = &mut declared {
                self.fix_shape(name, ty)?;
                self.note_open_dimensions(name, ty);
            }
            let mlir_type = self.mlir_type(&declared);
            let location = self.emitter.location(name);
            // SAFETY: block, type and location belong to this import.
            let value = unsafe { mlirBlockAddArgument(block, mlir_type, location) };
            let kind = match declared {
                ValueType::Tensor(ty) => Kind::Tensor(Value::new(ty)),
                ValueType::Other(ty) => Kind::Other(ty),
            };
            let id = self.add(Slot { kind, mlir: Some(value), constant: None });
            self.bind(name, id)?;
            let dims = self.dim_params(id);
            attributes.push(self.value_attributes(name, dims));
        }
        Ok(attributes)
    }

    /// `--batch`: the first dimension of every input that leaves it open, and every dimension of the same name.
    fn fix_batch(&mut self, types: &mut [(&'m str, ValueType)]) -> Result<()> {
        let Some(batch) = self.options.batch else { return Ok(()) };
        let mut fixed = vec![];
        let mut found = false;
        for (name, ty) in types.iter_mut() {
            if self.options.input_shapes.iter().any(|(other, _)| other == name) {
                found = true;
                continue;
            }
            let ValueType::Tensor(TensorType { shape: Some(shape), .. }) = ty else { continue };
            match shape.first_mut() {
                Some(first @ (Dim::Symbol(_) | Dim::Unknown)) => {
                    fixed.push(*first);
                    *first = Dim::Known(batch);
                    found = true;
                }
                Some(Dim::Known(size)) if *size == batch => found = true,
                _ => {}
            }
        }
        if !found {
            return Err(format!(
                "has no input whose first dimension is open, so there is no batch to set to {batch}: give shapes with \
                 --input-shape=NAME:{batch}x…"
            ));
        }
        fixed.retain(|dim| matches!(dim, Dim::Symbol(_)));
        for dim in self.symbols.values_mut().filter(|dim| fixed.contains(dim)) {
            *dim = Dim::Known(batch);
        }
        for (_, ty) in types {
            if let ValueType::Tensor(TensorType { shape: Some(shape), .. }) = ty {
                shape.iter_mut().filter(|dim| fixed.contains(dim)).for_each(|dim| *dim = Dim::Known(batch));
            }
        }
        Ok(())
    }

    /// `--input-shape`, which also says what the named dimensions are.
    fn fix_shape(&mut self, name: &str, ty: &mut TensorType) -> Result<()> {
        if let Some((_, dims)) = self.options.input_shapes.iter().find(|(other, _)| other == name) {
            if let Some(shape) = &ty.shape {
                if shape.len() != dims.len() {
                    return Err(format!(
                        "input '{name}' has rank {}, but --input-shape gives it {}",
                        shape.len(),
                        dims.len()
                    ));
                }
                for (&declared, &dim) in shape.iter().zip(dims) {
                    if let Some(name) = self.symbol_name(declared).map(str::to_owned) {
                        self.symbols.insert(name, Dim::Known(dim));
                    }
                }
            }
            ty.shape = Some(dims.iter().copied().map(Dim::Known).collect());
        } else if let Some(shape) = &mut ty.shape {
            // A dimension may have been fixed by an input that came before.
            for dim in shape {
                if let Some(fixed) = self.symbol_name(*dim).and_then(|name| self.symbols.get(name)) {
                    *dim = *fixed;
                }
            }
        }
        Ok(())
    }

    /// The attributes of an argument or result: its name, and those of its dimensions (`0:batch,2:length`).
    pub(super) fn value_attributes(&mut self, name: &str, dim_params: String) -> MlirAttribute {
        let mut attributes = vec![];
        if !dim_params.is_empty() {
            let text = self.emitter.string(&dim_params);
            attributes.push(self.emitter.named("onnx.dim_params", text));
        }
        let text = self.emitter.string(name);
        attributes.push(self.emitter.named("onnx.name", text));
        // SAFETY: the attributes outlive the call.
        unsafe { mlirDictionaryAttrGet(self.emitter.context.to_raw(), attributes.len() as isize, attributes.as_ptr()) }
    }

    pub(super) fn dim_params(&self, id: ValueId) -> String {
        let Kind::Tensor(Value { ty: TensorType { shape: Some(shape), .. }, .. }) = &self.slot(id).kind else {
            return String::new();
        };
        let named = shape.iter().enumerate().filter_map(|(i, &dim)| Some(format!("{i}:{}", self.symbol_name(dim)?)));
        named.collect::<Vec<_>>().join(",")
    }

    fn note_open_dimensions(&mut self, name: &str, ty: &TensorType) {
        let Some(shape) = &ty.shape else {
            self.open_dimensions.push(format!("the shape of '{name}'"));
            return;
        };
        for (i, &dim) in shape.iter().enumerate().filter(|(_, dim)| dim.known().is_none()) {
            let symbol = self.symbol_name(dim).map_or(String::new(), |symbol| format!(" ({symbol})"));
            self.open_dimensions.push(format!("dimension {i}{symbol} of '{name}'"));
        }
    }
}
