//! What was measured before, in a file that bundles share: they load faster with it, and processes agree on how calls are
//! computed.

use super::launch::{Launch, Library, LibraryCall};
use crate::{
    bundle::write_whole,
    error::{Error, Result},
};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

const FORMAT: &str = "divi-choices/1";

/// What is known of GPUs.
#[derive(Default)]
pub(crate) struct Choices {
    /// Where it is kept, if it is.
    path: Option<PathBuf>,
    gpus: Vec<OfGpu>,
    has_news: bool,
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

/// What calls have in common that take the same time: what is computed, and on which grids our own kernels do it, or finish
/// what a library has computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alike {
    way: Library,
    /// What buffers begin at multiples of.
    pub(crate) alignment: u64,
    own: Vec<[u32; 2]>,
    then: Vec<[u32; 2]>,
}

impl Alike {
    pub(crate) fn of(launch: &Launch, library: &LibraryCall, alignment: u64) -> Self {
        let first = [launch.blocks, launch.threads];
        let rest = launch.then.iter().map(|then| [then.blocks, then.threads]);
        let then = library.then.iter().map(|then| [then.blocks, then.threads]);
        let own = [first].into_iter().chain(rest).collect();
        Self { way: library.way.clone(), alignment, own, then: then.collect() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    pub(crate) call: Alike,
    /// The name of a library's plan; `None` for our own kernels.
    pub(crate) library: Option<String>,
    /// What it took when it was measured.
    pub(crate) us: f64,
}

impl Choices {
    /// Those of a file, which need not be there yet; none if there is no file to keep them in.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: Some(path.to_owned()), ..Self::default() });
            }
            Err(error) => return Err(Error::Unreadable { path: path.to_owned(), error }),
        };
        let malformed = |reason: String| Error::malformed(path, reason);
        let file: File = divi_json::read(&text).map_err(|error| malformed(error.to_string()))?;
        if file.format != FORMAT {
            return Err(malformed(format!("its format is '{}', not '{FORMAT}'", file.format)));
        }
        Ok(Self { path: Some(path.to_owned()), gpus: file.gpus, has_news: false })
    }

    /// What was chosen on a GPU of that name for calls like this.
    pub(crate) fn find(&self, gpu: &str, call: &Alike) -> Option<&Choice> {
        let of_gpu = self.gpus.iter().find(|known| known.gpu == gpu)?;
        of_gpu.calls.iter().find(|known| known.call == *call)
    }

    /// Keeps a choice, instead of what was kept for calls like these.
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
        self.has_news = true;
    }

    /// Writes the file if there is something new, whole or not at all.
    pub(crate) fn save(self) -> Result<()> {
        let Some(path) = self.path.filter(|_| self.has_news) else { return Ok(()) };
        let file = serde_json::json!({"format": FORMAT, "gpus": self.gpus});
        // A line for each call.
        write_whole(&path, &divi_json::write(&file, 1, &["gpus"]))
    }
}
