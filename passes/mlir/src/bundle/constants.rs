//! Constants for code generation: the source of their bytes, and the elements of small ones.

use crate::export::Recipes;
use divi_codegen::graph::Constant;
use divi_dialect::{
    ExternalAttribute, Operation, attr, elements_of,
    node::{MAX_INFERENCE_BYTES, constant_of_short_form},
    tensor_type_of,
};
use divi_onnx::Tensor;
use divi_runtime::{prepare::Expression, weights};
use std::path::Path;

/// External constants of at most this many bytes are read, and carry their elements.
const INLINE: u64 = 1024;

/// Resolves the constants of a module.
pub(crate) struct Constants<'a> {
    /// Folder of the IR.
    folder: &'a Path,
    /// Generator of missing weights, and its seed.
    random: Option<(&'a Recipes, u64)>,
}

impl<'a> Constants<'a> {
    pub(crate) fn new(folder: &'a Path, random: Option<(&'a Recipes, u64)>) -> Self {
        Self { folder, random }
    }

    /// Returns the constant that an operation defines. The error is a predicate: a sentence whose subject is the
    /// operation.
    pub(crate) fn find(&self, operation: Operation<'_>) -> Result<Constant, String> {
        let Some(value) = operation.get(attr::VALUE) else {
            let tensor = constant_of_short_form(operation).ok_or("has no value that code can be generated for")?;
            return Ok(known(tensor));
        };
        let (dtype, dims) = tensor_type_of(attr::type_of(value))
            .and_then(|ty| Some((ty.dtype, ty.static_shape()?)))
            .ok_or("has a type that code cannot be generated for")?;
        let Some(external) = ExternalAttribute::from_attribute(value) else {
            let tensor = elements_of(value, u64::MAX).ok_or(
                "has elements that are strings, elided from the IR, or too few; code generation needs all elements of a \
                 numeric constant",
            )?;
            return Ok(known(tensor));
        };
        let (offset, length) = (external.offset(), external.length());
        let path = self.folder.join(external.path());
        let source = match weights::size(&path) {
            Some(size) => {
                weights::check_extent(&path, size, offset, length).map_err(|error| error.to_string())?;
                Expression::File { path: external.path().to_owned(), offset, length }
            }
            None => {
                let (recipes, seed) = self.random.ok_or_else(|| {
                    format!(
                        "refers to '{}', which does not exist; restore the weights, pass their folder with \
                         --weights-dir, or generate random ones with --weights=random:SEED",
                        path.display()
                    )
                })?;
                Expression::random(&recipes.find(external, dtype)?, seed)
            }
        };
        let bytes = (length <= INLINE).then(|| source.evaluate(self.folder)).transpose()?;
        let tensor = bytes.and_then(|bytes| Tensor::new(dtype, dims, bytes));
        Ok(Constant { source, tensor })
    }
}

fn known(tensor: Tensor) -> Constant {
    let source = Expression::bytes(tensor.bytes());
    let is_small = tensor.bytes().len() as u64 <= MAX_INFERENCE_BYTES;
    Constant { source, tensor: is_small.then_some(tensor) }
}
