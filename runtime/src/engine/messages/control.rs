//! Control messages between ranks: begin and end of requests, errors, and the end of the job. Rank 0 begins requests; each
//! other rank reports when its part of a request is complete.

use crate::{
    agreement::cut,
    error::{Error, Result},
};

/// Tag of control messages; values have higher ones.
pub(super) const TAG: u32 = 0;
/// Size of a control message in bytes.
pub(super) const BYTES: usize = 512;
/// Numbers at the start of a message, of eight bytes each.
const NUMBERS: usize = 5;
/// Maximum length of the text of a message in bytes.
const MOST_TEXT: usize = BYTES - 8 * NUMBERS;

/// Control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// Rank 0 has begun a request.
    Begin { request: u64, slot: usize },
    /// The sender has completed its part of a request.
    Complete { request: u64, slot: usize, failure: Option<PartFailure> },
    /// The sender ends with an error that concerns all requests.
    Fail { message: String, is_death: bool },
    /// All requests are complete, and there will be no others.
    End,
    /// Sign of life.
    Alive,
}

/// Failure of a rank's part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct PartFailure {
    /// Step of the whole bundle that failed.
    pub(super) step: usize,
    /// Message of the error; empty if the failure is a consequence of one on another rank.
    pub(super) message: String,
}

impl PartFailure {
    pub(in crate::engine) fn of(step: usize, error: &Error) -> Self {
        let is_consequence = matches!(error, Error::Withheld { .. });
        Self { step, message: if is_consequence { String::new() } else { error.to_string() } }
    }
}

const BEGIN: u64 = 1;
const COMPLETE: u64 = 2;
const COMPLETE_WITH_FAILURE: u64 = 3;
const FAIL: u64 = 4;
const END: u64 = 5;
const FAIL_OF_DEATH: u64 = 6;
const ALIVE: u64 = 7;

impl Control {
    pub(super) fn encode(&self) -> Box<[u8; BYTES]> {
        let (kind, request, slot, step, text) = match self {
            Self::Begin { request, slot } => (BEGIN, *request, *slot, 0, ""),
            Self::Complete { request, slot, failure: None } => (COMPLETE, *request, *slot, 0, ""),
            Self::Complete { request, slot, failure: Some(PartFailure { step, message }) } => {
                (COMPLETE_WITH_FAILURE, *request, *slot, *step, &message[..])
            }
            Self::Fail { message, is_death: false } => (FAIL, 0, 0, 0, &message[..]),
            Self::Fail { message, is_death: true } => (FAIL_OF_DEATH, 0, 0, 0, &message[..]),
            Self::End => (END, 0, 0, 0, ""),
            Self::Alive => (ALIVE, 0, 0, 0, ""),
        };
        let text = cut(text, MOST_TEXT);
        let numbers: [u64; NUMBERS] = [kind, request, slot as u64, step as u64, text.len() as u64];
        let mut bytes = Box::new([0; BYTES]);
        for (part, number) in bytes.chunks_mut(8).zip(numbers) {
            part.copy_from_slice(&number.to_le_bytes());
        }
        bytes[8 * NUMBERS..][..text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    /// Decodes a message of `rank`.
    pub(super) fn decode(rank: usize, bytes: &[u8; BYTES]) -> Result<Self> {
        let invalid = |reason: &str| Error::InvalidMessage { rank, reason: reason.to_owned() };
        let mut numbers = bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number));
        let mut number = || numbers.next().unwrap_or(0);
        let (kind, request, slot, step, length) = (number(), number(), number(), number(), number());
        let index = |number: u64| usize::try_from(number).map_err(|_| invalid("an index is out of range"));
        let text = bytes[8 * NUMBERS..].get(..index(length)?).and_then(|text| str::from_utf8(text).ok());
        let message = text.ok_or_else(|| invalid("its text is invalid"))?.to_owned();
        let (slot, step) = (index(slot)?, index(step)?);
        match kind {
            BEGIN => Ok(Self::Begin { request, slot }),
            COMPLETE => Ok(Self::Complete { request, slot, failure: None }),
            COMPLETE_WITH_FAILURE => Ok(Self::Complete { request, slot, failure: Some(PartFailure { step, message }) }),
            FAIL | FAIL_OF_DEATH => Ok(Self::Fail { message, is_death: kind == FAIL_OF_DEATH }),
            END => Ok(Self::End),
            ALIVE => Ok(Self::Alive),
            _ => Err(invalid(&format!("its kind is {kind}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        let failure = Some(PartFailure { step: 7, message: "stage 'a' failed".into() });
        for control in [
            Control::Begin { request: u64::MAX, slot: 3 },
            Control::Complete { request: 2, slot: 1, failure: None },
            Control::Complete { request: 2, slot: 1, failure },
            Control::Fail { message: "no memory".into(), is_death: false },
            Control::Fail { message: "rank 1 has failed".into(), is_death: true },
            Control::End,
            Control::Alive,
        ] {
            assert_eq!(Control::decode(1, &control.encode()).unwrap(), control);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let control = Control::Fail { message: "ä".repeat(BYTES), is_death: false };
        let Control::Fail { message, .. } = Control::decode(1, &control.encode()).unwrap() else { panic!() };
        assert_eq!(message, "ä".repeat(MOST_TEXT / 2));
    }

    #[test]
    fn invalid_messages_are_errors() {
        let message = |change: &dyn Fn(&mut [u8; BYTES])| {
            let mut bytes = Control::Fail { message: "ab".into(), is_death: false }.encode();
            change(&mut bytes);
            Control::decode(2, &bytes).unwrap_err().to_string()
        };
        assert_eq!(message(&|bytes| bytes[0] = 9), "rank 2 has sent an invalid message: its kind is 9");
        let text = "rank 2 has sent an invalid message: its text is invalid";
        assert_eq!(message(&|bytes| bytes[32..40].fill(255)), text);
        assert_eq!(message(&|bytes| bytes[40] = 255), text);
    }
}
