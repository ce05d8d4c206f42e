//! Cache of benchmark results in a file shared by bundles. It makes loading faster, and processes choose the same algorithms.

use super::launch::{Launch, LibraryCall, LibraryOp};
use crate::{
    bundle::write_atomically,
    error::{Error, Result},
};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

const FORMAT: &str = "divi-choices/1";

/// Cached choices for all GPUs.
#[derive(Default)]
pub(crate) struct AlgorithmCache {
    /// File of the cache.
    path: Option<PathBuf>,
    gpus: Vec<OfGpu>,
    is_dirty: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    gpus: Vec<OfGpu>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfGpu {
    gpu: String,
    calls: Vec<Choice>,
}

/// Cache key: calls with the same key have the same best algorithm. Consists of the computation, and of the grids of our own
/// kernels and of the kernels that follow the library call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallKey {
    #[serde(rename = "way")]
    computation: LibraryOp,
    /// Alignment of the buffers in bytes.
    pub(crate) alignment: u64,
    own: Vec<[u32; 2]>,
    then: Vec<[u32; 2]>,
}

impl CallKey {
    pub(crate) fn of(launch: &Launch, library: &LibraryCall, alignment: u64) -> Self {
        let first = [launch.blocks, launch.threads];
        let rest = launch.then.iter().map(|then| [then.blocks, then.threads]);
        let then = library.then.iter().map(|then| [then.blocks, then.threads]);
        let own = [first].into_iter().chain(rest).collect();
        Self { computation: library.computation.clone(), alignment, own, then: then.collect() }
    }
}

/// Best algorithm for a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    pub(crate) call: CallKey,
    /// Name of the library's plan; `None` for our own kernels.
    pub(crate) library: Option<String>,
    /// Measured time in µs.
    pub(crate) us: f64,
}

impl AlgorithmCache {
    /// Reads the cache from a file, which need not exist; returns an empty cache without a file for `None`.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: Some(path.to_owned()), ..Self::default() });
            }
            Err(error) => return Err(Error::Unreadable { path: path.to_owned(), error }),
        };
        let malformed = |reason: String| Error::MalformedChoices { path: path.to_owned(), reason };
        let file: File = divi_json::read(&text).map_err(|error| malformed(error.to_string()))?;
        if file.format != FORMAT {
            return Err(malformed(format!("its format is '{}', not '{FORMAT}'", file.format)));
        }
        Ok(Self { path: Some(path.to_owned()), gpus: file.gpus, is_dirty: false })
    }

    /// Returns the cached choice for a call on a GPU.
    pub(crate) fn find(&self, gpu: &str, call: &CallKey) -> Option<&Choice> {
        let of_gpu = self.gpus.iter().find(|known| known.gpu == gpu)?;
        of_gpu.calls.iter().find(|known| known.call == *call)
    }

    /// Inserts or replaces a choice.
    pub(crate) fn keep(&mut self, gpu: &str, choice: Choice) {
        let index = self.gpus.iter().position(|known| known.gpu == gpu).unwrap_or_else(|| {
            self.gpus.push(OfGpu { gpu: gpu.to_owned(), calls: vec![] });
            self.gpus.len() - 1
        });
        let calls = &mut self.gpus[index].calls;
        match calls.iter_mut().find(|known| known.call == choice.call) {
            Some(known) => *known = choice,
            None => calls.push(choice),
        }
        self.is_dirty = true;
    }

    /// Writes the file atomically if there are new choices.
    pub(crate) fn save(self) -> Result<()> {
        let Some(path) = self.path.filter(|_| self.is_dirty) else { return Ok(()) };
        let file = serde_json::json!({"format": FORMAT, "gpus": self.gpus});
        // One line per call.
        write_atomically(&path, &divi_json::write(&file, 1, &["gpus"]))
    }
}
