//! Converts constants to initializers.

use super::{proto, random::Recipes, sink::Sink};
use crate::{
    import::tensor_proto::TensorProto,
    ir::{Failure, describe, error},
};
use bytes::Bytes;
use divi_dialect::{
    ExternalAttribute, Operation, attr, elements_of, node::constant_of_short_form, strings_of, tensor_type_of,
};
use divi_onnx::DType;
use divi_runtime::{random_weights::RandomConstant, weights};
use melior::ir::Attribute;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// Constants of fewer bytes are stored in the model.
const INLINE_BYTES: u64 = 1024;

/// Identity of a constant that is written once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key<'m> {
    /// Bytes of a file.
    Extent { path: String, offset: u64, length: u64 },
    /// An attribute of the IR, which MLIR uniques.
    Attribute(Attribute<'m>),
}

/// Bytes of a constant, or their generator.
pub(super) enum Source<'a> {
    Bytes(Bytes),
    Random { recipe: &'a RandomConstant, seed: u64 },
}

/// Writer of a module's constants.
pub(super) struct Constants<'a> {
    /// Folder of the IR; paths of weights are relative to it.
    folder: &'a Path,
    /// Generator of missing weights, and its seed.
    random: Option<(&'a Recipes, u64)>,
    sink: Sink<'a>,
    files: FxHashMap<PathBuf, Bytes>,
    /// Constants that were generated.
    pub(super) made_up: rustc_hash::FxHashSet<Key<'a>>,
}

impl<'a> Constants<'a> {
    pub(super) fn new(folder: &'a Path, random: Option<(&'a Recipes, u64)>, sink: Sink<'a>) -> Self {
        Self { folder, random, sink, files: FxHashMap::default(), made_up: Default::default() }
    }

    /// Completes the weights file and returns its size in bytes.
    pub(super) fn finish(self) -> std::io::Result<u64> {
        self.sink.finish()
    }

    /// Returns the initializer for a constant.
    pub(super) fn tensor(&mut self, operation: Operation<'a>, name: &str) -> Result<TensorProto, Failure> {
        self.initializer(operation, name).map_err(|message| {
            error(operation, &format!("{} {message}", describe(operation)));
            Failure
        })
    }

    fn initializer(&mut self, operation: Operation<'a>, name: &str) -> Result<TensorProto, String> {
        let Some(value) = operation.get(attr::VALUE) else {
            let tensor = constant_of_short_form(operation).ok_or("has no value that ONNX's tensors can hold")?;
            return Ok(proto::tensor(name, tensor.dtype(), tensor.dims(), tensor.bytes().clone()));
        };
        let (dtype, dims) = tensor_type_of(attr::type_of(value))
            .and_then(|ty| Some((ty.dtype, ty.static_shape()?)))
            .ok_or("has a type that ONNX's constants do not have")?;
        if let Some(external) = ExternalAttribute::from_attribute(value) {
            return self.external(external, name, dtype, &dims);
        }
        if dtype == DType::String {
            let texts = strings_of(value).ok_or("has strings that cannot be read")?;
            let texts = texts.into_iter().map(|text| Bytes::copy_from_slice(text.as_bytes()));
            return Ok(proto::text_tensor(name, &dims, texts.collect()));
        }
        let tensor = elements_of(value, u64::MAX).ok_or(
            "has elements that were elided from the IR, or too few: print it without --mlir-elide-elementsattrs",
        )?;
        let bytes = tensor.bytes().clone();
        if (bytes.len() as u64) < INLINE_BYTES {
            return Ok(proto::tensor(name, dtype, &dims, bytes));
        }
        self.sink.put(name, dtype, &dims, Key::Attribute(value), Source::Bytes(bytes))
    }

    fn external(
        &mut self,
        external: ExternalAttribute<'_>,
        name: &str,
        dtype: DType,
        dims: &[i64],
    ) -> Result<TensorProto, String> {
        let (offset, length) = (external.offset(), external.length());
        let path = self.folder.join(external.path());
        if let Some(location) = self.sink.reference(&path) {
            return Ok(proto::external_tensor(name, dtype, dims, &location, (offset, length)));
        }
        let key = Key::Extent { path: external.path().to_owned(), offset, length };
        if weights::size(&path).is_none() {
            let Some((recipes, seed)) = self.random else {
                return Err(format!(
                    "refers to '{}', which does not exist; restore the weights, pass their folder with --weights-dir, or \
                     generate random ones with --weights=random:SEED",
                    path.display()
                ));
            };
            let recipe = recipes.find(external, dtype)?;
            self.made_up.insert(key.clone());
            if length < INLINE_BYTES {
                let mut bytes = vec![0; length as usize];
                recipe.fill(seed, 0, &mut bytes);
                return Ok(proto::tensor(name, dtype, dims, bytes.into()));
            }
            return self.sink.put(name, dtype, dims, key, Source::Random { recipe: &recipe, seed });
        }
        let file = match self.files.get(&path) {
            Some(file) => file,
            None => {
                let file = weights::map(&path).map_err(|error| error.to_string())?;
                self.files.entry(path.clone()).or_insert(file)
            }
        };
        weights::check_extent(&path, file.len() as u64, offset, length).map_err(|error| error.to_string())?;
        let bytes = file.slice(offset as usize..(offset + length) as usize);
        if length < INLINE_BYTES {
            // A copy, so that the model may outlive the file.
            return Ok(proto::tensor(name, dtype, dims, Bytes::copy_from_slice(&bytes)));
        }
        self.sink.put(name, dtype, dims, key, Source::Bytes(bytes))
    }
}
