//! Translates the model's inputs, with the shapes and values of the options.

use super::input_shapes;
use super::{
    list_names,
    proto::GraphProto,
    translate::{Kind, Result, Slot, Translator, ValueId},
    types::ValueType,
};
use divi_dialect::{Block, attr};
use divi_onnx::{Dim, TensorType, Value};
use melior::ir::Attribute;
use rustc_hash::FxHashSet;

impl<'c, 'm> Translator<'c, 'm> {
    /// Adds an argument for every graph input without an initializer or a value.
    pub(super) fn inputs(&mut self, graph: &'m GraphProto, block: Block<'c>) -> Result<Vec<Attribute<'c>>> {
        let initialized: FxHashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
        let shaped = self.options.input_shapes.iter().map(|(name, _)| (name.as_str(), "shape"));
        let valued = self.options.input_values.iter().map(|(name, _)| (name.as_str(), "value"));
        for (name, what) in shaped.chain(valued).filter(|(name, _)| !name.is_empty()) {
            if initialized.contains(name) {
                return Err(format!(
                    "input '{name}' has an initializer, so it is a constant and takes no other {what}"
                ));
            }
            if !graph.input.iter().any(|input| input.name() == name) {
                let open = graph.input.iter().map(|input| input.name()).filter(|name| !initialized.contains(name));
                return Err(format!(
                    "cannot give a {what} to unknown input '{name}'; the inputs are {}",
                    list_names(open)
                ));
            }
        }
        let mut types = vec![];
        for input in graph.input.iter().filter(|input| !initialized.contains(input.name())) {
            let name = input.name();
            let declared = self
                .declared_type(input.r#type.as_ref())
                .and_then(|ty| ty.ok_or_else(|| "declares no type".to_owned()))
                .map_err(|message| format!("input '{name}' {message}"))?;
            match self.options.input_values.iter().find(|(other, _)| other == name) {
                Some((_, value)) => self.fix_value(name, &declared, value)?,
                None => types.push((name, declared)),
            }
        }
        self.check_dims()?;
        self.fix_shapes(&mut types)?;
        let mut attributes = vec![];
        for (name, declared) in types {
            if let ValueType::Tensor(ty) = &declared {
                self.note_open_dimensions(name, ty);
            }
            let mlir_type = self.mlir_type(&declared);
            let location = self.emitter.location(name);
            let value = block.add_argument(mlir_type, location);
            let id = self.add(Slot { kind: declared.into(), mlir: Some(value), constant: None });
            self.bind(name, id)?;
            let dims = self.dim_params(id);
            attributes.push(self.value_attributes(name, dims));
        }
        Ok(attributes)
    }

    /// Checks that every size of the options is for a dimension that an input has.
    fn check_dims(&self) -> Result<()> {
        let Some((name, _)) = self.options.dims.iter().find(|(name, _)| !self.symbols.contains_key(name)) else {
            return Ok(());
        };
        let mut names: Vec<_> = self.symbols.keys().map(String::as_str).collect();
        names.sort_unstable();
        Err(match names[..] {
            [] => format!("cannot give a size to unknown dimension '{name}': no dimension of the inputs has a name"),
            _ => format!(
                "cannot give a size to unknown dimension '{name}'; the inputs have {}",
                list_names(names.into_iter())
            ),
        })
    }

    /// Applies the shapes of the options, which also determine the sizes of named dimensions.
    fn fix_shapes(&mut self, types: &mut [(&'m str, ValueType<'c>)]) -> Result<()> {
        let shaped = |name: &str| self.options.input_shapes.iter().any(|(other, _)| other == name || other.is_empty());
        let is_tensor = |ty: &ValueType<'_>| matches!(ty, ValueType::Tensor(_));
        if let Some((name, _)) = types.iter().find(|(name, ty)| shaped(name) && !is_tensor(ty)) {
            return Err(format!("input '{name}' is not a tensor and cannot be given a shape"));
        }
        let mut inputs: Vec<_> = types
            .iter_mut()
            .filter_map(|(name, ty)| match ty {
                ValueType::Tensor(ty) => Some((*name, ty)),
                ValueType::Other(_) => None,
            })
            .collect();
        if let Some(batch) = self.options.batch
            && !input_shapes::has_batch(&inputs)
        {
            return Err(format!(
                "no input has a first dimension, so there is no batch to set to {batch}: give shapes with \
                 --input-shape=NAME:{batch}x…"
            ));
        }
        let sizes = input_shapes::fix(self.options, &mut inputs)?;
        for dim in self.symbols.values_mut() {
            if let Dim::Symbol(symbol) = dim
                && let Some(&size) = sizes.get(symbol)
            {
                *dim = Dim::Known(size);
            }
        }
        Ok(())
    }

    /// Returns the attributes of an argument or result: its name, and the names of its dimensions (`0:batch,2:length`).
    pub(super) fn value_attributes(&self, name: &str, dim_params: String) -> Attribute<'c> {
        let mut attributes = vec![];
        if !dim_params.is_empty() {
            attributes.push(("onnx.dim_params", self.emitter.string(&dim_params)));
        }
        attributes.push(("onnx.name", self.emitter.string(name)));
        attr::dictionary(self.emitter.context, &attributes)
    }

    pub(super) fn dim_params(&self, id: ValueId) -> String {
        let Kind::Tensor(Value { ty: TensorType { shape: Some(shape), .. }, .. }) = &self.slot(id).kind else {
            return String::new();
        };
        let named = shape.iter().enumerate().filter_map(|(i, &dim)| {
            // A name that contains a separator is omitted.
            let name = self.symbol_name(dim).filter(|name| !name.contains([',', ':']))?;
            Some(format!("{i}:{name}"))
        });
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
