//! Files that contain constants. A model refers to a few files, thousands of times.

use super::{Options, Source};
use crate::paths::relative;
use divi_runtime::weights;
use rustc_hash::FxHashMap;
use std::{
    path::{Path, PathBuf},
    rc::Rc,
};

/// File with weights.
#[derive(Debug)]
pub(super) struct WeightFile {
    pub(super) path: PathBuf,
    /// Path relative to the IR's folder.
    pub(super) from_ir: String,
    /// `None` if the file does not exist, which planning allows.
    size: Option<u64>,
}

impl WeightFile {
    fn new(path: PathBuf, ir_folder: &Path) -> Result<Self, String> {
        let from_ir = relative(&path, ir_folder);
        let from_ir =
            from_ir.to_str().ok_or_else(|| format!("is in '{}', a path that is not UTF-8", path.display()))?;
        Ok(Self { from_ir: from_ir.to_owned(), size: weights::size(&path), path })
    }

    pub(super) fn is_there(&self) -> bool {
        self.size.is_some()
    }

    /// Checks that the file has these bytes. A missing file passes.
    pub(super) fn check_extent(&self, offset: u64, length: u64) -> Result<(), weights::Error> {
        self.size.map_or(Ok(()), |size| weights::check_extent(&self.path, size, offset, length))
    }
}

/// Cache of files.
#[derive(Debug, Default)]
pub(super) struct Files {
    external: FxHashMap<String, Rc<WeightFile>>,
    model: Option<Rc<WeightFile>>,
}

impl Files {
    /// Returns the file that a model names as `location`, which must be in the model's folder.
    pub(super) fn external(
        &mut self,
        location: &str,
        source: &Source,
        options: &Options,
    ) -> Result<Rc<WeightFile>, String> {
        if let Some(file) = self.external.get(location) {
            return Ok(file.clone());
        }
        let folder = options.weights_dir.as_deref().unwrap_or(source.folder());
        let path = weights::confine(folder, location).map_err(|error| format!("is refused: {error}"))?;
        let file = Rc::new(WeightFile::new(folder.join(path), &options.ir_folder)?);
        self.external.insert(location.to_owned(), file.clone());
        Ok(file)
    }

    /// Returns the model's own file; `None` for a model from a pipe.
    pub(super) fn model(&mut self, source: &Source, options: &Options) -> Result<Option<Rc<WeightFile>>, String> {
        if let (None, Some(path)) = (&self.model, &source.path) {
            self.model = Some(Rc::new(WeightFile::new(path.clone(), &options.ir_folder)?));
        }
        Ok(self.model.clone())
    }
}
