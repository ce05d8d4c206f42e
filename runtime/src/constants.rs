//! The constants of a bundle in memory: read or mapped where they lie in files, made where they do not.

use crate::{
    bundle::{ALIGNMENT, Bundle, Constant, Source},
    error::{Error, Result},
    files::{self, Roots},
    memory::Aligned,
    prepare::Expression,
    random_weights::Recipe,
    weights,
};
use bytes::Bytes;
use divi_threads::{on_cores, sync::Mutex};
use std::{
    collections::{HashMap, hash_map::Entry},
    fs,
    path::PathBuf,
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
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Owned(memory) => memory,
        }
    }

    /// Kernels only write to those that `prepare` computes, and those are owned.
    pub(crate) fn pointer(&self) -> *mut u8 {
        match self {
            Self::Mapped(bytes) => bytes.as_ptr().cast_mut(),
            Self::Owned(memory) => memory.pointer(),
        }
    }
}

impl Constants {
    /// Reads or maps constants that lie in files, and makes the others; those that `prepare` computes are zeros.
    pub(crate) fn load(roots: &Roots, bundle: &Bundle, is_mapped: bool) -> Result<Self> {
        bundle.check_expressions(roots)?;
        let files = Files::open(roots, bundle)?;
        let mut order: Vec<usize> = (0..bundle.constants.len()).collect();
        // The largest first: what is needed to make them is gone again before all the others are there.
        order.sort_by_key(|&index| (std::cmp::Reverse(bundle.constants[index].bytes), index));
        let made = Mutex::new(Vec::with_capacity(order.len()));
        let failure = Mutex::new(None);
        let next = AtomicUsize::new(0);
        on_cores(order.len(), || {
            while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                match files.load(index, &bundle.constants[index], is_mapped) {
                    Ok(memory) => made.lock().push((index, memory)),
                    Err(error) => {
                        failure.lock().get_or_insert(error);
                        next.fetch_add(order.len(), Ordering::Relaxed);
                    }
                }
            }
        });
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        let mut made = made.into_inner();
        made.sort_by_key(|(index, _)| *index);
        Ok(Self { constants: made.into_iter().map(|(_, memory)| memory).collect() })
    }

    /// Gives the memory of all constants back but of those that are needed.
    pub(crate) fn keep(&mut self, needed: &[bool]) {
        let others = self.constants.iter_mut().zip(needed).filter(|(_, is_needed)| !**is_needed);
        others.for_each(|(memory, _)| *memory = Memory::Mapped(Bytes::new()));
    }
}

/// Files that constants are in, each opened once.
struct Files<'a> {
    roots: &'a Roots,
    opened: HashMap<&'a str, Opened>,
}

struct Opened {
    path: PathBuf,
    file: fs::File,
    bytes: u64,
}

impl<'a> Files<'a> {
    fn open(roots: &'a Roots, bundle: &'a Bundle) -> Result<Self> {
        let mut opened = HashMap::new();
        for (path, _) in bundle.constants.iter().filter_map(Constant::place) {
            if let Entry::Vacant(place) = opened.entry(path) {
                let path = roots.resolve(path)?;
                let (file, bytes) = files::open(&path)?;
                place.insert(Opened { path, file, bytes });
            }
        }
        for described in &bundle.model_files {
            if let Some(Opened { path, bytes, .. }) = opened.get(&described.path[..]) {
                described.compare_size(path, *bytes)?;
            }
        }
        Ok(Self { roots, opened })
    }

    fn load(&self, index: usize, constant: &Constant, is_mapped: bool) -> Result<Memory> {
        let what = format!("constant {index}");
        match &constant.source {
            Source::Made(expression) => evaluate(self.roots, index, expression).map(Memory::Owned),
            Source::Computed => Aligned::zeroed(constant.bytes, &what).map(Memory::Owned),
            Source::Packed { .. } | Source::File { .. } => {
                let Some((path, (offset, length))) = constant.place() else {
                    return Err(Error::Constant { index, reason: "it is in no file".into() });
                };
                let Opened { path, file, bytes } = &self.opened[path];
                let short = |error: weights::Error| Error::damaged(path, error.to_string());
                weights::check_extent(path, *bytes, offset, length).map_err(short)?;
                // Models put tensors anywhere; kernels need theirs at multiples.
                if is_mapped && offset.is_multiple_of(ALIGNMENT) && length > 0 {
                    let mapped = weights::map_range(file, offset, length).map_err(Error::unreadable(path))?;
                    constant.check_bytes(path, &mapped)?;
                    return Ok(Memory::Mapped(mapped));
                }
                let mut memory = Aligned::zeroed(length, &what)?;
                files::read_range(file, path, offset, &mut memory)?;
                constant.check_bytes(path, &memory)?;
                Ok(Memory::Owned(memory))
            }
        }
    }
}

fn evaluate(roots: &Roots, index: usize, expression: &Expression) -> Result<Aligned> {
    let what = format!("constant {index}");
    if let Expression::Random { seed, key, element, count, low, high } = expression {
        // The largest ones: made in their place, by all cores.
        let recipe = Recipe { key: key.clone(), element: *element, count: *count, low: *low, high: *high };
        let mut memory = Aligned::zeroed(recipe.byte_length(), &what)?;
        fill(&recipe, *seed, &mut memory);
        return Ok(memory);
    }
    let bytes = expression.evaluate(roots.folder()).map_err(|reason| Error::Constant { index, reason })?;
    if expression.length() != Some(bytes.len() as u64) {
        return Err(Error::Constant { index, reason: "its parts do not fit each other".into() });
    }
    Aligned::copied(&bytes, &what)
}

fn fill(recipe: &Recipe, seed: u64, memory: &mut [u8]) {
    let count = memory.len().div_ceil(PIECE);
    let pieces = Mutex::new(memory.chunks_mut(PIECE).enumerate());
    on_cores(count, || {
        loop {
            let piece = pieces.lock().next();
            let Some((index, piece)) = piece else { return };
            recipe.fill(seed, (index * PIECE) as u64, piece);
        }
    });
}
