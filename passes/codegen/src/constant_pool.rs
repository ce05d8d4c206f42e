//! Constants of a bundle, without duplicates, and the calls that compute constants at load.

use divi_runtime::{
    bundle::{ALIGNMENT, Call, Constant, Source, WEIGHTS},
    prepare::Expression,
};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

/// Constants of a bundle.
#[derive(Default)]
pub(crate) struct ConstantPool {
    /// Size in bytes and expression of each constant; no expression if calls compute it at load.
    entries: Vec<(u64, Option<Expression>)>,
    /// Index of a constant by the text of its expression.
    known: FxHashMap<String, usize>,
    /// Calls that compute constants at load.
    pub(crate) load_calls: Vec<Call>,
}

impl ConstantPool {
    /// Returns the index of the constant with this expression; adds it if there is none yet.
    pub(crate) fn constant(&mut self, source: Expression, bytes: u64) -> usize {
        let key = format!("{source:?}");
        let next = self.entries.len();
        let index = *self.known.entry(key).or_insert(next);
        if index == next {
            self.entries.push((bytes, Some(source)));
        }
        index
    }

    /// Adds a constant that a call computes at load. Returns its index.
    pub(crate) fn computed(&mut self, bytes: u64) -> usize {
        self.entries.push((bytes, None));
        self.entries.len() - 1
    }

    /// Returns the bytes of all constants; zeros for those that are computed at load.
    #[cfg(test)]
    pub(crate) fn evaluate(&self) -> Result<Vec<bytes::Bytes>, String> {
        let evaluate = |(bytes, expression): &(u64, Option<Expression>)| match expression {
            Some(expression) => expression.evaluate(Path::new("")),
            None => Ok(vec![0; *bytes as usize].into()),
        };
        self.entries.iter().map(evaluate).collect()
    }

    /// Evaluates the expressions without random weights and writes their bytes into the bundle's folder. `from` is the folder that paths
    /// of weights are relative to. `refer` returns the path by which the bundle refers to a file there, or `None` if it must copy it.
    /// Returns the constants, and true if a file of weights was written.
    pub(crate) fn write(
        self,
        folder: &Path,
        from: &Path,
        refer: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Vec<Constant>, bool), String> {
        let path = folder.join(WEIGHTS);
        let write_error = |problem: io::Error| format!("cannot write '{}': {problem}", path.display());
        let mut writer = None;
        let mut end = 0_u64;
        // Programs that share a bundle fold the same constants to different files.
        let mut offsets: FxHashMap<[u8; 32], u64> = FxHashMap::default();
        let mut constants = vec![];
        for (bytes, expression) in self.entries {
            let source = match expression {
                None => Source::Computed,
                Some(mut expression) if expression.any(&|part| matches!(part, Expression::Random { .. })) => {
                    relocate(&mut expression, from, refer)?;
                    Source::Evaluated(expression)
                }
                Some(expression) => match unchanged_source(&expression, refer) {
                    Some(source) => source,
                    None => {
                        let content = expression.evaluate(from)?;
                        if content.len() as u64 != bytes {
                            return Err(format!("a constant has {} bytes; expected {bytes}", content.len()));
                        }
                        let hash: [u8; 32] = Sha256::digest(&content).into();
                        if let Some(&offset) = offsets.get(&hash) {
                            constants.push(Constant { bytes, source: Source::Packed { offset }, crc32: None });
                            continue;
                        }
                        let writer = match &mut writer {
                            Some(writer) => writer,
                            none => none.insert(BufWriter::new(File::create(&path).map_err(write_error)?)),
                        };
                        let offset = end.next_multiple_of(ALIGNMENT);
                        let gap = [0; ALIGNMENT as usize];
                        writer.write_all(&gap[..(offset - end) as usize]).map_err(write_error)?;
                        writer.write_all(&content).map_err(write_error)?;
                        end = offset + bytes;
                        offsets.insert(hash, offset);
                        Source::Packed { offset }
                    }
                },
            };
            constants.push(Constant { bytes, source, crc32: None });
        }
        if let Some(mut writer) = writer.take() {
            writer.flush().map_err(write_error)?;
            return Ok((constants, true));
        }
        Ok((constants, false))
    }
}

/// Returns a reference into one of the model's own files if kernels can read the constant there without a copy.
fn unchanged_source(expression: &Expression, refer: &dyn Fn(&str) -> Option<String>) -> Option<Source> {
    /// Minimal size in bytes; smaller constants are packed into the bundle's own file.
    const LEAST: u64 = 4096;
    /// Required alignment: bytes of the widest element type.
    const WIDTH: u64 = 8;
    match expression {
        Expression::File { path, offset, length } if *length >= LEAST && offset % WIDTH == 0 => {
            Some(Source::File { path: refer(path)?, offset: *offset })
        }
        _ => None,
    }
}

/// Rewrites paths of an expression from the folder of the weights to the bundle's folder. Contents of files that the bundle cannot refer
/// to are inlined.
fn relocate(expression: &mut Expression, from: &Path, refer: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
    if let Expression::File { path, .. } = expression {
        match refer(path) {
            Some(other) => *path = other,
            None => *expression = Expression::bytes(&expression.evaluate(from)?),
        }
        return Ok(());
    }
    expression.parts_mut().into_iter().try_for_each(|part| relocate(part, from, refer))
}
