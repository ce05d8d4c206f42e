//! Imports with limits on time and memory that may fail only with proper errors.

use crate::{
    memory::{measure_heap, peak_resident_bytes},
    parse, print, verify,
};
use divi_passes::import::{Options, Source, import};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Heap limit independent of the file size: folding may create this much.
const BASE_BYTES: u64 = 64 << 20;

/// Limit on resident memory, which includes MLIR's operations: inlining of functions may create this much.
const RESIDENT_BASE_BYTES: u64 = 256 << 20;

/// Additional heap limit per byte of the file.
const BYTES_A_BYTE: u64 = 40;

/// Additional limit on resident memory per byte of the file: 20 bytes in a file may become an operation of 500 bytes.
const RESIDENT_BYTES_A_BYTE: u64 = 200;

/// Time limit of an import, generous for a loaded machine.
const LIMIT: Duration = Duration::from_secs(90);

/// Permitted result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Imported and verified.
    Imported {
        /// Printed module.
        text: String,
    },
    /// Imported, but rejected by MLIR's verifier.
    Unverified {
        /// Diagnostics of the verifier.
        messages: String,
    },
    /// Rejected with an error.
    Refused {
        /// Text of the error.
        message: String,
    },
}

/// Statistics of a series of trials.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// Number of imported files.
    pub imported: usize,
    /// Number of files rejected by the verifier.
    pub unverified: usize,
    /// Number of files rejected by import.
    pub refused: usize,
    /// Maximum heap of an import.
    pub most_heap_bytes: u64,
    /// Duration of the slowest import.
    pub slowest: Duration,
}

/// Imports hostile files. Records the current one in a file, which identifies it if the process dies.
pub struct Trials {
    note: PathBuf,
    /// Statistics so far.
    pub summary: Summary,
}

impl Trials {
    /// Creates an empty series. `temporary` is the test's `CARGO_TARGET_TMPDIR`, `name` the test's name.
    pub fn new(temporary: &str, name: &str) -> Self {
        let note = Path::new(temporary).join(format!("{name}.current"));
        Self { note, summary: Summary::default() }
    }

    /// Imports a file. Returns an error on a panic, a message without the file's name, excessive memory or time, or text that
    /// does not round-trip.
    pub fn run(&mut self, description: &str, source: &Source) -> Result<Outcome, String> {
        std::fs::write(&self.note, description).expect("the target folder is writable");
        let resident = peak_resident_bytes();
        let start = Instant::now();
        let (outcome, heap) = measure_heap(|| catch_unwind(AssertUnwindSafe(|| attempt(source))));
        let elapsed = start.elapsed();
        let size = source.bytes.len() as u64;
        // The kernel's counter may lag slightly.
        let resident = peak_resident_bytes().saturating_sub(resident);
        let outcome = outcome.map_err(|panic| format!("panicked: {}", panic_message(&*panic)))??;
        if heap > BASE_BYTES + BYTES_A_BYTE * size {
            return Err(format!("took {} MiB of heap for a file of {size} bytes", heap >> 20));
        }
        if resident > RESIDENT_BASE_BYTES + RESIDENT_BYTES_A_BYTE * size {
            return Err(format!("took {} MiB of memory for a file of {size} bytes", resident >> 20));
        }
        if elapsed > LIMIT {
            return Err(format!("took {elapsed:?} for a file of {size} bytes"));
        }
        if elapsed > Duration::from_secs(1) {
            println!("slow: {description} took {elapsed:?}");
        }
        let summary = &mut self.summary;
        summary.most_heap_bytes = summary.most_heap_bytes.max(heap);
        summary.slowest = summary.slowest.max(elapsed);
        match &outcome {
            Outcome::Imported { .. } => summary.imported += 1,
            Outcome::Unverified { .. } => summary.unverified += 1,
            Outcome::Refused { .. } => summary.refused += 1,
        }
        Ok(outcome)
    }
}

impl Drop for Trials {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.note);
    }
}

fn attempt(source: &Source) -> Result<Outcome, String> {
    // A context keeps the names of resources, which changes the text of a second import.
    let context = crate::context();
    let module = match import(&context, source, &Options::default()) {
        Ok((module, warnings)) => {
            if let Some(warning) = warnings.iter().find(|warning| !warning.to_string().contains(&source.name)) {
                return Err(format!("the warning does not name the file: {warning}"));
            }
            module
        }
        Err(error) => {
            let message = error.to_string();
            return match message.contains(&source.name) {
                true => Ok(Outcome::Refused { message }),
                false => Err(format!("the error does not name the file: {message}")),
            };
        }
    };
    let text = print(&module);
    if let Err(messages) = verify(&context, &module) {
        return match messages.contains("panicked") || messages.is_empty() {
            true => Err(format!("the verifier panicked or gave no diagnostics: {messages}")),
            false => Ok(Outcome::Unverified { messages }),
        };
    }
    let other_context = crate::context();
    let again = parse(&other_context, text.as_bytes())
        .map_err(|messages| format!("the printed text does not parse: {messages}"))?;
    let again = print(&again);
    match text.lines().zip(again.lines()).find(|(before, after)| before != after) {
        None if text == again => Ok(Outcome::Imported { text }),
        difference => Err(format!("the printed text does not round-trip: {difference:?}")),
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(message), _) => message,
        (_, Some(message)) => message,
        _ => "no message",
    }
}
