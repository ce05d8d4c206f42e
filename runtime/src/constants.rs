//! Constants of a bundle in host memory: read or mapped from files, or evaluated.

use crate::{
    bundle::{ALIGNMENT, Bundle, Constant, FileRanges, Source},
    error::{Error, Result},
    files::{self, Roots},
    memory::AlignedBuffer,
    prepare::Expression,
    random_weights::RandomConstant,
    weights,
};
use bytes::Bytes;
use divi_threads::{run_on_cores, sync::Mutex};
use std::{
    collections::{HashMap, hash_map::Entry},
    fs,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Weights are generated from a seed in pieces of this many bytes, so that all cores work on a large constant.
const PIECE: usize = 1 << 22;

/// Constants of a bundle, by index.
pub(crate) struct Constants {
    pub(crate) constants: Vec<Memory>,
}

/// Bytes of a constant.
pub(crate) enum Memory {
    Mapped(Bytes),
    Owned(AlignedBuffer),
}

impl Memory {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Owned(memory) => memory,
        }
    }

    /// Returns the address. Only constants computed by `prepare` may be written, and these are owned.
    pub(crate) fn pointer(&self) -> *mut u8 {
        match self {
            Self::Mapped(bytes) => bytes.as_ptr().cast_mut(),
            Self::Owned(memory) => memory.pointer(),
        }
    }
}

impl Constants {
    /// Reads or maps constants in files and evaluates the others. Those that `prepare` computes are zero. `ranges` are the parts
    /// of files that hashes cover.
    pub(crate) fn load(roots: &Roots, bundle: &Bundle, ranges: &FileRanges, is_mapped: bool) -> Result<Self> {
        bundle.check_expressions(roots, ranges)?;
        let files = Files::open(roots, bundle)?;
        let mut order: Vec<usize> = (0..bundle.constants.len()).collect();
        // Largest first, to reduce the peak: their temporary memory is freed before most of the others are allocated.
        order.sort_by_key(|&index| (std::cmp::Reverse(bundle.constants[index].bytes), index));
        let made = Mutex::new(Vec::with_capacity(order.len()));
        let failure = Mutex::new(None);
        let next = AtomicUsize::new(0);
        run_on_cores(order.len(), || {
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

    /// Frees the memory of all constants that are not `needed`.
    pub(crate) fn retain(&mut self, needed: &[bool]) {
        let others = self.constants.iter_mut().zip(needed).filter(|(_, is_needed)| !**is_needed);
        others.for_each(|(memory, _)| *memory = Memory::Mapped(Bytes::new()));
    }
}

/// Files that contain constants, each opened once.
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
        for (path, _) in bundle.constants.iter().filter_map(Constant::file_range) {
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
            Source::Evaluated(expression) => evaluate(self.roots, index, expression).map(Memory::Owned),
            Source::Computed => AlignedBuffer::zeroed(constant.bytes, &what).map(Memory::Owned),
            Source::Packed { .. } | Source::File { .. } => {
                let Some((path, (offset, length))) = constant.file_range() else {
                    return Err(Error::Constant { index, reason: "it is not in a file".into() });
                };
                let Opened { path, file, bytes } = &self.opened[path];
                let short = |error: weights::Error| Error::damaged(path, error.to_string());
                weights::check_extent(path, *bytes, offset, length).map_err(short)?;
                // Tensors in models have arbitrary offsets, but kernels need aligned addresses.
                if is_mapped && offset.is_multiple_of(ALIGNMENT) && length > 0 {
                    let mapped = weights::map_range(file, offset, length).map_err(Error::unreadable(path))?;
                    constant.check_bytes(path, &mapped)?;
                    return Ok(Memory::Mapped(mapped));
                }
                let mut memory = AlignedBuffer::zeroed(length, &what)?;
                files::read_range(file, path, offset, &mut memory)?;
                constant.check_bytes(path, &memory)?;
                Ok(Memory::Owned(memory))
            }
        }
    }
}

fn evaluate(roots: &Roots, index: usize, expression: &Expression) -> Result<AlignedBuffer> {
    let what = format!("constant {index}");
    if let Expression::Random { seed, key, element, count, low, high } = expression {
        // Generated in place by all cores: these are the largest constants.
        let recipe = RandomConstant { key: key.clone(), element: *element, count: *count, low: *low, high: *high };
        let mut memory = AlignedBuffer::zeroed(recipe.byte_length(), &what)?;
        fill(&recipe, *seed, &mut memory);
        return Ok(memory);
    }
    let bytes = expression.evaluate(roots.folder()).map_err(|reason| Error::Constant { index, reason })?;
    if expression.length() != Some(bytes.len() as u64) {
        return Err(Error::Constant { index, reason: "the sizes of its operands do not match".into() });
    }
    AlignedBuffer::copied(&bytes, &what)
}

fn fill(recipe: &RandomConstant, seed: u64, memory: &mut [u8]) {
    let count = memory.len().div_ceil(PIECE);
    let pieces = Mutex::new(memory.chunks_mut(PIECE).enumerate());
    run_on_cores(count, || {
        loop {
            let piece = pieces.lock().next();
            let Some((index, piece)) = piece else { return };
            recipe.fill(seed, (index * PIECE) as u64, piece);
        }
    });
}
