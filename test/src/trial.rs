//! Imports that may go wrong in ordinary ways only.

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

/// Memory that an import may take whatever the file: folding may create this much.
const BASE_BYTES: u64 = 64 << 20;

/// The same for the whole process, which has MLIR's operations: functions may be inlined to this much.
const RESIDENT_BASE_BYTES: u64 = 256 << 20;

/// Memory that an import may take for each byte of the file, decoded.
const BYTES_A_BYTE: u64 = 40;

/// MLIR's operations are larger than what they are in a file: an operation of 500 bytes may stand for one of 20.
const RESIDENT_BYTES_A_BYTE: u64 = 200;

/// Nothing a file says may make import run on and on. Far more than any takes, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// How an import ended, both ways in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The text, if it verifies.
    Imported {
        text: String,
    },
    /// Imported, but MLIR's verifier refuses it, and says why.
    Unverified {
        messages: String,
    },
    Refused {
        message: String,
    },
}

/// What a run of trials did, for a line of summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    pub imported: usize,
    pub unverified: usize,
    pub refused: usize,
    pub most_heap_bytes: u64,
    pub slowest: Duration,
}

/// Imports hostile files, and keeps a note of the one in hand: if the process dies, the note names the culprit.
pub struct Trials {
    note: PathBuf,
    pub summary: Summary,
}

impl Trials {
    /// `temporary` is the calling test's `CARGO_TARGET_TMPDIR`, `name` the test's.
    pub fn new(temporary: &str, name: &str) -> Self {
        let note = Path::new(temporary).join(format!("{name}.current"));
        Self { note, summary: Summary::default() }
    }

    /// Imports a file. The error says what must not happen: a panic, an error without the file's name, too much memory,
    /// text that does not read back.
    pub fn run(&mut self, description: &str, source: &Source) -> Result<Outcome, String> {
        std::fs::write(&self.note, description).expect("the target folder can be written");
        let resident = peak_resident_bytes();
        let start = Instant::now();
        let (outcome, heap) = measure_heap(|| catch_unwind(AssertUnwindSafe(|| attempt(source))));
        let elapsed = start.elapsed();
        let size = source.bytes.len() as u64;
        // The kernel's count may lag behind a little.
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
    // A context remembers the names of resources, so that the same model reads differently the second time.
    let context = crate::context();
    let module = match import(&context, source, &Options::default()) {
        Ok((module, warnings)) => {
            if let Some(warning) = warnings.iter().find(|warning| !warning.to_string().contains(&source.name)) {
                return Err(format!("does not name the file in the warning: {warning}"));
            }
            module
        }
        Err(error) => {
            let message = error.to_string();
            return match message.contains(&source.name) {
                true => Ok(Outcome::Refused { message }),
                false => Err(format!("does not name the file in the error: {message}")),
            };
        }
    };
    let text = print(&module);
    if let Err(messages) = verify(&context, &module) {
        return match messages.contains("panicked") || messages.is_empty() {
            true => Err(format!("is refused by the verifier out of order: {messages}")),
            false => Ok(Outcome::Unverified { messages }),
        };
    }
    let other_context = crate::context();
    let again =
        parse(&other_context, text.as_bytes()).map_err(|messages| format!("prints what cannot be read: {messages}"))?;
    let again = print(&again);
    match text.lines().zip(again.lines()).find(|(before, after)| before != after) {
        None if text == again => Ok(Outcome::Imported { text }),
        difference => Err(format!("prints what reads as something else: {difference:?}")),
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(message), _) => message,
        (_, Some(message)) => message,
        _ => "without a message",
    }
}
