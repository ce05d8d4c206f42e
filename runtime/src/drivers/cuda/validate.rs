//! Checks of what a bundle says of CUDA devices.

use crate::bundle::{Bundle, Call, GpuCode, Launch, LibraryCall, Stage};

/// As many as a grid has in its first dimension, and a block of threads.
const MOST_BLOCKS: u32 = i32::MAX as u32;
const MOST_THREADS: u32 = 1024;

/// The code for a device of a bundle.
pub(super) fn code(bundle: &Bundle, device: usize) -> Option<&GpuCode> {
    bundle.gpus.iter().find(|code| Some(&code.arch) == bundle.devices[device].arch.as_ref())
}

pub(super) fn validate(bundle: &Bundle, device: usize) -> Result<(), String> {
    let description = &bundle.devices[device];
    let Some(code) = code(bundle, device) else {
        let arch = description.arch.as_deref().unwrap_or_default();
        return Err(format!("there is no code for '{arch}', which device '{}' is", description.id));
    };
    bundle.validate_code(&code.code)?;
    for stage in bundle.stages.iter().filter(|stage| stage.device == device) {
        for (index, call) in stage.calls.iter().enumerate() {
            validate_launch(bundle, stage, index, call)
                .map_err(|reason| format!("stage '{}': kernel '{}': {reason}", stage.name, call.kernel))?;
        }
    }
    Ok(())
}

fn validate_launch(bundle: &Bundle, stage: &Stage, index: usize, call: &Call) -> Result<(), String> {
    let Some(launch) = &call.launch else { return Err("it has no grid to launch".to_owned()) };
    let Launch { blocks, threads, then, library, after, .. } = launch;
    let others = then.iter().chain(library.iter().flat_map(|library| &library.then));
    for (blocks, threads) in others.map(|then| (then.blocks, then.threads)).chain([(*blocks, *threads)]) {
        if !(1..=MOST_BLOCKS).contains(&blocks) || !(1..=MOST_THREADS).contains(&threads) {
            return Err(format!("{blocks} blocks of {threads} threads"));
        }
    }
    if let Some(other) = after.iter().find(|&&other| other >= index) {
        return Err(format!("it comes after call {other}, which is not before it"));
    }
    let Some(LibraryCall { way: library, .. }) = library else { return Ok(()) };
    if let Some(problem) = library.problem() {
        return Err(problem);
    }
    let wanted = library.buffer_bytes();
    let Some((output, inputs)) = call.buffers.split_last().filter(|(_, inputs)| inputs.len() + 1 >= wanted.len())
    else {
        return Err(format!("it has {} buffers, and the library {}", call.buffers.len(), wanted.len()));
    };
    let known = inputs[..wanted.len() - 1].iter().chain([output]);
    for (number, (buffer, wanted)) in known.zip(wanted).enumerate() {
        let there = bundle.buffer_bytes(buffer, Some(stage));
        if wanted > there {
            return Err(format!("the library's buffer {number} has {wanted} bytes, more than the {there} there are"));
        }
    }
    Ok(())
}
