//! The constants of a bundle in memory: mapped where they lie, made where they do not.

use crate::{
    bundle::{ALIGNMENT, Bundle, Source, WEIGHTS},
    cpu,
    error::{Error, Result},
    memory::Aligned,
    prepare::Expression,
    random_weights::Recipe,
    sync::Mutex,
    weights,
};
use bytes::Bytes;
use std::{
    collections::HashMap,
    fs,
    os::unix::fs::FileExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Weights from a seed are made in pieces of this size, so that all cores work on a large one.
const PIECE: usize = 1 << 22;

pub(crate) struct Constants {
    pub(crate) constants: Vec<Memory>,
}

pub(crate) enum Memory {
    Mapped(Bytes),
    Owned(Aligned),
}

impl Memory {
    /// Kernels only write to those that `prepare` computes, and those are owned.
    pub(crate) fn pointer(&self) -> *mut u8 {
        match self {
            Self::Mapped(bytes) => bytes.as_ptr().cast_mut(),
            Self::Owned(memory) => memory.pointer(),
        }
    }
}

impl Constants {
    /// Maps and makes all constants; those that `prepare` computes are zeros.
    pub(crate) fn load(folder: &Path, bundle: &Bundle) -> Result<Self> {
        refuse_the_impossible(bundle)?;
        let mut files = Files { folder, mapped: HashMap::new() };
        let mut constants = Vec::with_capacity(bundle.constants.len());
        let mut made = Vec::new();
        for (index, constant) in bundle.constants.iter().enumerate() {
            let what = format!("constant {index}");
            constants.push(match &constant.source {
                Source::Packed { offset } => files.part(WEIGHTS, *offset, constant.bytes, &what)?,
                Source::File { path, offset } => files.part(path, *offset, constant.bytes, &what)?,
                Source::Computed => Memory::Owned(Aligned::zeroed(constant.bytes, &what)?),
                Source::Made(expression) => {
                    made.push((index, expression));
                    Memory::Mapped(Bytes::new())
                }
            });
        }
        // The largest first: what is needed to make them is gone again before all the others are there.
        made.sort_by_key(|&(index, _)| (std::cmp::Reverse(bundle.constants[index].bytes), index));
        for (index, memory) in make(folder, &made)? {
            constants[index] = Memory::Owned(memory);
        }
        Ok(Self { constants })
    }
}

/// A description may name any size; what is larger than the machine's memory must not even be tried.
fn refuse_the_impossible(bundle: &Bundle) -> Result<()> {
    let Some(limit) = memory_of_machine() else { return Ok(()) };
    for (index, constant) in bundle.constants.iter().enumerate() {
        let bytes = match &constant.source {
            Source::Made(expression) => largest(expression),
            Source::Computed => constant.bytes,
            Source::Packed { .. } | Source::File { .. } => 0,
        };
        if bytes > limit {
            return Err(Error::Memory { what: format!("constant {index}"), bytes });
        }
    }
    Ok(())
}

/// The most bytes of any part of an expression.
fn largest(expression: &Expression) -> u64 {
    let own = expression.length().unwrap_or(u64::MAX);
    expression.parts().into_iter().map(largest).fold(own, u64::max)
}

fn memory_of_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    Some((kib("MemTotal:")? + kib("SwapTotal:").unwrap_or(0_u64)) << 10)
}

/// Files that constants are in, each mapped once.
struct Files<'a> {
    folder: &'a Path,
    mapped: HashMap<String, Bytes>,
}

impl Files<'_> {
    fn part(&mut self, path: &str, offset: u64, length: u64, what: &str) -> Result<Memory> {
        let full = self.folder.join(path);
        let damaged = |error: weights::Error| match error {
            weights::Error::Unreadable { path, error } => Error::Unreadable { path, error },
            other => Error::damaged(&full, other.to_string()),
        };
        if !self.mapped.contains_key(path) {
            let file = weights::map(&full).map_err(damaged)?;
            self.mapped.insert(path.to_owned(), file);
        }
        let file = &self.mapped[path];
        weights::check_extent(&full, file.len() as u64, offset, length).map_err(damaged)?;
        if offset.is_multiple_of(ALIGNMENT) && file.as_ptr().addr().is_multiple_of(ALIGNMENT as usize) {
            return Ok(Memory::Mapped(file.slice(offset as usize..(offset + length) as usize)));
        }
        // Models put their tensors where they like; kernels want theirs at a multiple. Read, not copied from the mapping,
        // whose pages would count twice.
        let mut memory = Aligned::zeroed(length, what)?;
        let read = fs::File::open(&full).and_then(|file| file.read_exact_at(&mut memory, offset));
        read.map_err(Error::unreadable(&full))?;
        Ok(Memory::Owned(memory))
    }
}

/// Computes constants, on all cores.
fn make(folder: &Path, constants: &[(usize, &Expression)]) -> Result<Vec<(usize, Aligned)>> {
    let made = Mutex::new(Vec::with_capacity(constants.len()));
    let failure = Mutex::new(None);
    let next = AtomicUsize::new(0);
    cpu::on_cores(constants.len(), || {
        while let Some(&(index, expression)) = constants.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = catch_unwind(AssertUnwindSafe(|| evaluate(folder, index, expression)));
            let senseless = |_| Err(Error::Constant { index, reason: "its description makes no sense".into() });
            match result.unwrap_or_else(senseless) {
                Ok(memory) => made.lock().push((index, memory)),
                Err(error) => {
                    failure.lock().get_or_insert(error);
                    next.fetch_add(constants.len(), Ordering::Relaxed);
                }
            }
        }
    });
    match failure.into_inner() {
        Some(error) => Err(error),
        None => Ok(made.into_inner()),
    }
}

fn evaluate(folder: &Path, index: usize, expression: &Expression) -> Result<Aligned> {
    let what = format!("constant {index}");
    if let Expression::Random { seed, key, element, count, low, high } = expression {
        // The largest ones: made in their place, by all cores.
        let recipe = Recipe { key: key.clone(), element: *element, count: *count, low: *low, high: *high };
        let mut memory = Aligned::zeroed(recipe.byte_length(), &what)?;
        fill(&recipe, *seed, &mut memory);
        return Ok(memory);
    }
    let bytes = expression.evaluate(folder).map_err(|reason| Error::Constant { index, reason })?;
    if expression.length() != Some(bytes.len() as u64) {
        return Err(Error::Constant { index, reason: "its parts do not fit each other".into() });
    }
    Aligned::copied(&bytes, &what)
}

fn fill(recipe: &Recipe, seed: u64, memory: &mut [u8]) {
    let count = memory.len().div_ceil(PIECE);
    let pieces = Mutex::new(memory.chunks_mut(PIECE).enumerate());
    cpu::on_cores(count, || {
        loop {
            let piece = pieces.lock().next();
            let Some((index, piece)) = piece else { return };
            recipe.fill(seed, (index * PIECE) as u64, piece);
        }
    });
}
