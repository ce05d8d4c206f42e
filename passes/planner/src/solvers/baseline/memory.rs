//! Schedules that fit into memory: under the liveness model, the peak is known only from a schedule.

use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, human_bytes};

/// Shares of activations that are reserved in successive attempts until the peak fits.
const ACTIVATION_SHARES: [f64; 6] = [0.0, 0.125, 0.25, 0.5, 1.0, 2.0];

/// Returns the first schedule that fits, from attempts that reserve more and more memory for activations.
pub(super) fn fitting<T>(
    instance: &Instance,
    attempt: impl Fn(f64) -> Result<T, Error>,
    held: impl Fn(&T) -> Vec<Bytes>,
) -> Result<T, Error> {
    if instance.memory_model() == MemoryModel::Static || !instance.memory_binds() {
        return attempt(0.0);
    }
    let mut failure = None;
    for share in ACTIVATION_SHARES {
        match attempt(share) {
            Ok(schedule) => match overflow(instance, &held(&schedule)) {
                None => return Ok(schedule),
                Some(error) => failure = Some(error),
            },
            // An attempt that fails with less reserved fails with more reserved, too.
            Err(error) => return Err(failure.unwrap_or(error)),
        }
    }
    Err(failure.unwrap_or_else(|| Error::NotFound("no schedule found that fits into memory".to_owned())))
}

fn overflow(instance: &Instance, held: &[Bytes]) -> Option<Error> {
    let over = (0..instance.devices()).find(|device| held[*device] > instance.capacity_bytes(*device))?;
    let room = instance.capacity_bytes(over);
    Some(Error::NotFound(format!(
        "no schedule found that fits: the last attempt needs {} on {}, which has {}: {} short",
        human_bytes(held[over]),
        instance.device_name(over),
        human_bytes(room),
        human_bytes(held[over] - room)
    )))
}
