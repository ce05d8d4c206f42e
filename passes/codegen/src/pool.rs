//! The constants of a bundle, each once, and what is computed of them at load.

use divi_runtime::{
    bundle::{ALIGNMENT, Call, Constant, Source, WEIGHTS},
    prepare::Expression,
};
use rustc_hash::FxHashMap;
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

#[derive(Default)]
pub(crate) struct Pool {
    entries: Vec<(u64, Option<Expression>)>,
    /// Where a constant is, by its text.
    known: FxHashMap<String, usize>,
    pub(crate) prepare: Vec<Call>,
}

impl Pool {
    /// A constant that weights are made into.
    pub(crate) fn constant(&mut self, source: Expression, bytes: u64) -> usize {
        let key = format!("{source:?}");
        let next = self.entries.len();
        let index = *self.known.entry(key).or_insert(next);
        if index == next {
            self.entries.push((bytes, Some(source)));
        }
        index
    }

    /// A constant that is written at load.
    pub(crate) fn computed(&mut self, bytes: u64) -> usize {
        self.entries.push((bytes, None));
        self.entries.len() - 1
    }

    /// All constants; those that are computed at load as zeros.
    #[cfg(test)]
    pub(crate) fn evaluate(&self) -> Result<Vec<bytes::Bytes>, String> {
        let evaluate = |(bytes, expression): &(u64, Option<Expression>)| match expression {
            Some(expression) => expression.evaluate(Path::new("")),
            None => Ok(vec![0; *bytes as usize].into()),
        };
        self.entries.iter().map(evaluate).collect()
    }

    /// Computes what does not come from a seed, and writes it into the bundle's folder. `from` is the folder that paths of
    /// weights are relative to, `refer` says how the bundle refers to a file there, if it may.
    pub(crate) fn write(
        self,
        folder: &Path,
        from: &Path,
        refer: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Vec<Constant>, bool), String> {
        let path = folder.join(WEIGHTS);
        let cannot = |problem: io::Error| format!("cannot write '{}': {problem}", path.display());
        let mut writer = None;
        let mut end = 0_u64;
        let mut constants = vec![];
        for (bytes, expression) in self.entries {
            let source = match expression {
                None => Source::Computed,
                Some(mut expression) if expression.any(&|part| matches!(part, Expression::Random { .. })) => {
                    relocate(&mut expression, from, refer)?;
                    Source::Made(expression)
                }
                Some(expression) => match as_it_is(&expression, refer) {
                    Some(source) => source,
                    None => {
                        let content = expression.evaluate(from)?;
                        if content.len() as u64 != bytes {
                            return Err(format!("a constant of {bytes} bytes was made of {}", content.len()));
                        }
                        let writer = match &mut writer {
                            Some(writer) => writer,
                            none => none.insert(BufWriter::new(File::create(&path).map_err(cannot)?)),
                        };
                        let offset = end.next_multiple_of(ALIGNMENT);
                        let gap = [0; ALIGNMENT as usize];
                        writer.write_all(&gap[..(offset - end) as usize]).map_err(cannot)?;
                        writer.write_all(&content).map_err(cannot)?;
                        end = offset + bytes;
                        Source::Packed { offset }
                    }
                },
            };
            constants.push(Constant { bytes, source, crc32: None });
        }
        if let Some(mut writer) = writer.take() {
            writer.flush().map_err(cannot)?;
            return Ok((constants, true));
        }
        Ok((constants, false))
    }
}

/// A part of one of the model's own files that kernels can read where it is.
fn as_it_is(expression: &Expression, refer: &dyn Fn(&str) -> Option<String>) -> Option<Source> {
    /// Smaller constants are better kept together.
    const LEAST: u64 = 4096;
    /// No element is wider.
    const WIDTH: u64 = 8;
    match expression {
        Expression::File { path, offset, length } if *length >= LEAST && offset % WIDTH == 0 => {
            Some(Source::File { path: refer(path)?, offset: *offset })
        }
        _ => None,
    }
}

/// Makes an expression that is evaluated in the bundle's folder of one for the folder of the weights: what the bundle cannot refer
/// to becomes part of it.
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
