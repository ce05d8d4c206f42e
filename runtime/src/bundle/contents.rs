//! Integrity of the files that a bundle contains or refers to: hashes are recorded when it is written and compared on reads.
//!
//! Each constant in a file has a CRC-32, which is compared whenever it is read. Each file of the bundle has a SHA-256 of all
//! its bytes, and each file of the model one of the ranges that constants refer to, without duplicates and in ascending
//! order. The SHA-256 of executables is compared at every load, that of all other files by [`Bundle::check`].

use super::{Bundle, Constant, File, Source, WEIGHTS, file::digits};
use crate::{
    error::{Error, Result},
    files::{self, Roots},
    prepare::Expression,
    weights,
};
use crc32fast::Hasher;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Offsets and lengths of the ranges of a file that constants refer to.
type Ranges = BTreeSet<(u64, u64)>;
/// Ranges by path.
pub(crate) type FileRanges = BTreeMap<String, Ranges>;

/// Size, hash and checksums of the ranges of a file.
struct Contents {
    bytes: u64,
    sha256: String,
    checksums: BTreeMap<(u64, u64), u32>,
}

impl Bundle {
    /// Fills in the checksums of constants and the list of the model's files. Code and weights must have been written.
    pub fn describe_contents(&mut self, folder: &Path) -> Result<()> {
        let mut checksums = BTreeMap::new();
        self.model_files.clear();
        for (path, ranges) in self.ranges() {
            let contents = read(&folder.join(&path), &ranges)?;
            if path != WEIGHTS {
                self.model_files.push(File { path: path.clone(), bytes: contents.bytes, sha256: contents.sha256 });
            }
            checksums.insert(path, contents.checksums);
        }
        if self.model_files.is_empty() {
            self.model_folder.clear();
        }
        for constant in &mut self.constants {
            constant.crc32 = constant.file_range().and_then(|(path, range)| Some(*checksums.get(path)?.get(&range)?));
        }
        Ok(())
    }

    /// Checks that every file that the bundle contains or refers to is unchanged since the bundle was written. Reads all of
    /// them.
    pub fn check(&self, folder: &Path) -> Result<()> {
        self.check_allowing(folder, &[])
    }

    /// As [`Bundle::check`], with additional folders that weights may be in.
    pub fn check_allowing(&self, folder: &Path, allowed: &[PathBuf]) -> Result<()> {
        self.files.iter().try_for_each(|file| file.check(folder))?;
        let roots = Roots::new(folder, self.known_model_folder(), allowed)?;
        for (path, ranges) in self.ranges() {
            let full = roots.resolve(&path)?;
            let file = self.model_files.iter().find(|file| file.path == path);
            if let Some(file) = file {
                file.compare_size(&full, files::open(&full)?.1)?;
            }
            let contents = read(&full, &ranges)?;
            if file.is_some_and(|file| file.sha256 != contents.sha256) {
                return Err(Error::damaged(&full, "its SHA-256 does not match the bundle"));
            }
            let mut expected =
                self.constants.iter().filter_map(|constant| Some((constant.file_range()?, constant.crc32?)));
            if expected.any(|((file, range), crc32)| file == path && contents.checksums.get(&range) != Some(&crc32)) {
                return Err(other_contents(&full));
            }
        }
        Ok(())
    }

    /// Checks the SHA-256 of the model's files that expressions read, which have no checksums. `ranges` are those that the hashes
    /// cover: of the whole bundle if this is a part.
    pub(crate) fn check_expressions(&self, roots: &Roots, ranges: &FileRanges) -> Result<()> {
        let of_expressions = self.expression_ranges();
        for file in self.model_files.iter().filter(|file| of_expressions.contains_key(&file.path)) {
            let full = roots.resolve(&file.path)?;
            let contents = read(&full, ranges.get(&file.path).unwrap_or(&Ranges::new()))?;
            if file.sha256 != contents.sha256 {
                return Err(Error::damaged(&full, "its SHA-256 does not match the bundle"));
            }
        }
        Ok(())
    }

    /// Returns all ranges of files that constants refer to, by path.
    pub(crate) fn ranges(&self) -> FileRanges {
        let mut all = self.expression_ranges();
        for (path, range) in self.constants.iter().filter_map(Constant::file_range) {
            all.entry(path.to_owned()).or_default().insert(range);
        }
        all
    }

    fn expression_ranges(&self) -> FileRanges {
        let mut all = BTreeMap::new();
        for constant in &self.constants {
            if let Source::Evaluated(expression) = &constant.source {
                collect(expression, &mut all);
            }
        }
        all
    }
}

impl Constant {
    /// Returns the file, offset and length of the constant; `None` if it is not in a file.
    pub(crate) fn file_range(&self) -> Option<(&str, (u64, u64))> {
        match &self.source {
            Source::Packed { offset } => Some((WEIGHTS, (*offset, self.bytes))),
            Source::File { path, offset } => Some((path, (*offset, self.bytes))),
            Source::Evaluated(_) | Source::Computed => None,
        }
    }

    /// Compares bytes read from a file with the checksum of the constant.
    pub(crate) fn check_bytes(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        match self.crc32 {
            Some(crc32) if crc32 != crc32fast::hash(bytes) => Err(other_contents(path)),
            _ => Ok(()),
        }
    }
}

fn other_contents(path: &Path) -> Error {
    Error::damaged(path, "its checksum does not match the bundle")
}

/// Collects the ranges of files that an expression reads.
fn collect(expression: &Expression, all: &mut FileRanges) {
    if let Expression::File { path, offset, length } = expression {
        all.entry(path.clone()).or_default().insert((*offset, *length));
    }
    expression.parts().into_iter().for_each(|part| collect(part, all));
}

/// Hashes ranges of a file.
fn read(path: &Path, ranges: &Ranges) -> Result<Contents> {
    let (file, bytes) = files::open(path)?;
    let mut sha256 = Sha256::new();
    let mut checksums = BTreeMap::new();
    for &(offset, length) in ranges {
        weights::check_extent(path, bytes, offset, length).map_err(|error| Error::damaged(path, error.to_string()))?;
        let mut crc32 = Hasher::new();
        files::read_pieces(&file, path, offset, length, |piece| {
            sha256.update(piece);
            crc32.update(piece);
        })?;
        checksums.insert((offset, length), crc32.finalize());
    }
    Ok(Contents { bytes, sha256: digits(&sha256.finalize()), checksums })
}
