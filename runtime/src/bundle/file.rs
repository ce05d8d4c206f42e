//! Bundles on disk: `bundle.json` and the hashes of the other files in its folder.

use super::{Bundle, DESCRIPTION, File, Source};
use crate::{
    error::{Error, Result},
    files,
    prepare::Expression,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{collections::BTreeSet, fs, path::Path};

impl Bundle {
    /// Parses a description of the current version. The flag is true if its SHA-256 matches its contents. Nothing else is
    /// checked.
    pub(crate) fn parse(text: &[u8]) -> std::result::Result<(Self, bool), String> {
        let mut bundle: Self = divi_json::read(text).map_err(|error| error.to_string())?;
        let named = std::mem::take(&mut bundle.sha256);
        bundle.sha256 = hash(&bundle).map_err(|error| error.to_string())?;
        let is_intact = bundle.sha256 == named;
        Ok((bundle, is_intact))
    }

    /// As [`Bundle::write`], without validation; for tests of readers.
    pub fn write_unvalidated(&mut self, folder: &Path) -> Result<()> {
        self.write_file(&folder.join(DESCRIPTION))
    }

    /// Writes the description, with its hash.
    pub(crate) fn write_file(&mut self, path: &Path) -> Result<()> {
        self.sha256.clear();
        self.sha256 = hash(self).map_err(|error| Error::malformed(path, error.to_string()))?;
        let text = self.text().map_err(|error| Error::malformed(path, error.to_string()))?;
        write_atomically(path, &text)
    }

    /// Returns the paths of the model's own files that the bundle reads weights from, relative to its folder.
    pub fn weight_files(&self) -> BTreeSet<&str> {
        fn add<'a>(expression: &'a Expression, files: &mut BTreeSet<&'a str>) {
            if let Expression::File { path, .. } = expression {
                files.insert(path);
            }
            expression.parts().into_iter().for_each(|part| add(part, files));
        }
        let mut files = BTreeSet::new();
        for constant in &self.constants {
            match &constant.source {
                Source::File { path, .. } => {
                    files.insert(path.as_str());
                }
                Source::Evaluated(expression) => add(expression, &mut files),
                Source::Packed { .. } | Source::Computed => {}
            }
        }
        files
    }

    /// Prints the description with one line per entry of the long lists, for readability.
    fn text(&self) -> serde_json::Result<String> {
        Ok(divi_json::write(&serde_json::to_value(self)?, 1, &["stages"]))
    }
}

/// Checks that a folder contains nothing but the files of a bundle, so that another bundle may replace it. The error names the
/// first other file.
pub fn check_replaceable(folder: &Path) -> std::result::Result<(), String> {
    #[derive(Deserialize)]
    struct Listing {
        format: String,
        files: Vec<Listed>,
    }
    #[derive(Deserialize)]
    struct Listed {
        path: String,
    }
    let text = fs::read(folder.join(DESCRIPTION)).unwrap_or_default();
    let listing = divi_json::read::<Listing>(&text).ok();
    let listing = listing.filter(|listing| listing.format.starts_with("divi-bundle/"));
    let files = listing.iter().flat_map(|listing| &listing.files).map(|file| file.path.as_str());
    divi_files::check_listed(folder, files.chain(listing.as_ref().map(|_| DESCRIPTION)))
}

/// Writes a file atomically.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<()> {
    divi_files::write(path, text).map_err(|error| Error::Unwritable { path: path.to_owned(), error })
}

impl File {
    /// Describes a file with its size and hash. The path is relative to the bundle's folder.
    pub fn of(folder: &Path, path: &str) -> Result<Self> {
        let (bytes, sha256) = hash_file(&folder.join(path))?;
        Ok(Self { path: path.to_owned(), bytes, sha256 })
    }

    /// Checks the size and the hash.
    pub fn check(&self, folder: &Path) -> Result<()> {
        self.check_size(folder)?;
        let path = &folder.join(&self.path);
        if hash_file(path)?.1 != self.sha256 {
            return Err(Error::damaged(path, "its SHA-256 does not match the bundle"));
        }
        Ok(())
    }

    /// Checks the size only.
    pub fn check_size(&self, folder: &Path) -> Result<()> {
        let path = &folder.join(&self.path);
        self.compare_size(path, files::open(path)?.1)
    }

    /// Compares the actual size of a file with the recorded one.
    pub(crate) fn compare_size(&self, path: &Path, size: u64) -> Result<()> {
        if size != self.bytes {
            let verb = if size < self.bytes { "truncated" } else { "another file" };
            return Err(Error::damaged(path, format!("it has {size} bytes instead of {}: it is {verb}", self.bytes)));
        }
        Ok(())
    }
}

/// Returns the size and the SHA-256 of a file.
fn hash_file(path: &Path) -> Result<(u64, String)> {
    let (file, bytes) = files::open(path)?;
    let mut hash = Sha256::new();
    files::read_pieces(&file, path, 0, bytes, |piece| hash.update(piece))?;
    Ok((bytes, digits(&hash.finalize())))
}

/// Returns a hash in hexadecimal digits.
pub(super) fn digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the hash of a description whose field `sha256` is empty.
pub(crate) fn hash(description: &impl Serialize) -> serde_json::Result<String> {
    Ok(digits(&Sha256::digest(serde_json::to_vec(description)?)))
}

/// Returns the field `format` of a description of any version.
pub(crate) fn named_format(text: &[u8]) -> std::result::Result<String, String> {
    /// Field common to all versions.
    #[derive(Deserialize)]
    struct Head {
        format: String,
    }
    serde_json::from_slice::<Head>(text).map(|head| head.format).map_err(|error| error.to_string())
}
