//! Validation of the parts of a bundle that concern CUDA devices.

use super::{
    Target,
    launch::{Launch, LibraryCall},
};
use crate::bundle::{Bundle, Call, Stage};

/// Maximum number of blocks in the first dimension of a grid.
const MOST_BLOCKS: u32 = i32::MAX as u32;
/// Maximum number of threads per block.
const MOST_THREADS: u32 = 1024;

/// Checks the stages of a device.
pub(super) fn validate(bundle: &Bundle, device: usize) -> Result<(), String> {
    let description = &bundle.devices[device];
    for (_, stage) in bundle.stages_of(device) {
        let wrong = |reason| format!("stage '{}': {reason}", stage.name);
        let Target { arch } = Target::of(&bundle.executables[stage.executable]).map_err(wrong)?;
        if description.arch.as_ref() != Some(&arch) {
            let has = description.arch.as_deref().unwrap_or_default();
            return Err(wrong(format!("it has code for '{arch}', and device '{}' is '{has}'", description.id)));
        }
        if !stage.payload.is_null() {
            return Err(wrong("it has a payload, and CUDA devices use none".to_owned()));
        }
        for call in &stage.calls {
            validate_launch(bundle, stage, call)
                .map_err(|reason| wrong(format!("kernel '{}': {reason}", call.kernel)))?;
        }
    }
    Ok(())
}

fn validate_launch(bundle: &Bundle, stage: &Stage, call: &Call) -> Result<(), String> {
    let Launch { blocks, threads, then, library, .. } = &Launch::of(call)?;
    let others = then.iter().chain(library.iter().flat_map(|library| &library.then));
    for (blocks, threads) in others.map(|then| (then.blocks, then.threads)).chain([(*blocks, *threads)]) {
        if !(1..=MOST_BLOCKS).contains(&blocks) || !(1..=MOST_THREADS).contains(&threads) {
            return Err(format!("invalid grid: {blocks} blocks of {threads} threads"));
        }
    }
    let Some(LibraryCall { computation: library, .. }) = library else { return Ok(()) };
    if let Some(problem) = library.problem() {
        return Err(problem);
    }
    let wanted = library.buffer_bytes();
    let Some((output, inputs)) = call.buffers.split_last().filter(|(_, inputs)| inputs.len() + 1 >= wanted.len())
    else {
        return Err(format!("it has {} buffers, and the library needs {}", call.buffers.len(), wanted.len()));
    };
    let known = inputs[..wanted.len() - 1].iter().chain([output]);
    for (number, (buffer, wanted)) in known.zip(wanted).enumerate() {
        let size = bundle.buffer_bytes(buffer, Some(stage));
        if wanted > size {
            return Err(format!("the library accesses {wanted} bytes of its buffer {number}, which has {size}"));
        }
    }
    Ok(())
}
