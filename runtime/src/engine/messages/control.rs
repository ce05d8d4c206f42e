//! Control messages between ranks: begin and end of requests, errors, the end of the job, and recorded spans. Rank 0 begins
//! requests; each other rank reports when its part of a request is complete.

use crate::{
    agreement::cut,
    error::{Error, Result},
    span::{Recording, Span, Spans},
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
    /// All ranks record these spans from now on.
    Record { recording: Recording },
    /// Asks for the time of the receiver. `sent_ns` is the time of the sender.
    Clock { sent_ns: u64 },
    /// Reply to [`Control::Clock`].
    ClockReply { sent_ns: u64, now_ns: u64 },
    /// Asks for the recorded spans.
    TakeSpans,
    /// Some of the recorded spans, and the number of those that were dropped.
    Spans { spans: Vec<Span>, dropped: u64, is_last: bool },
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
const RECORD: u64 = 8;
const CLOCK: u64 = 9;
const CLOCK_REPLY: u64 = 10;
const TAKE_SPANS: u64 = 11;
const SPANS: u64 = 12;
const LAST_SPANS: u64 = 13;

/// Numbers of a span, of eight bytes each, and the maximum number of spans of a message.
const SPAN_NUMBERS: usize = 5;
const MOST_SPANS: usize = MOST_TEXT / (8 * SPAN_NUMBERS);

impl Control {
    pub(super) fn encode(&self) -> Box<[u8; BYTES]> {
        if let Self::Spans { spans, dropped, is_last } = self {
            return encode_spans(spans, *dropped, *is_last);
        }
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
            Self::Record { recording } => (RECORD, 0, *recording as usize, 0, ""),
            Self::Clock { sent_ns } => (CLOCK, *sent_ns, 0, 0, ""),
            Self::ClockReply { sent_ns, now_ns } => (CLOCK_REPLY, *sent_ns, *now_ns as usize, 0, ""),
            Self::TakeSpans => (TAKE_SPANS, 0, 0, 0, ""),
            Self::Spans { .. } => (SPANS, 0, 0, 0, ""),
        };
        let text = cut(text, MOST_TEXT);
        let numbers: [u64; NUMBERS] = [kind, request, slot as u64, step as u64, text.len() as u64];
        let mut bytes = of_numbers(numbers);
        bytes[8 * NUMBERS..][..text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    /// Decodes a message of `rank`.
    pub(super) fn decode(rank: usize, bytes: &[u8; BYTES]) -> Result<Self> {
        let invalid = |reason: &str| Error::InvalidMessage { rank, reason: reason.to_owned() };
        let mut numbers = bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number));
        let mut number = || numbers.next().unwrap_or(0);
        let (kind, request, slot, step, length) = (number(), number(), number(), number(), number());
        if matches!(kind, SPANS | LAST_SPANS) {
            let spans = (0..slot.min(MOST_SPANS as u64)).map(|_| decode_span(&mut number)).collect::<Option<_>>();
            let spans = spans.ok_or_else(|| invalid("a span is invalid"))?;
            return Ok(Self::Spans { spans, dropped: request, is_last: kind == LAST_SPANS });
        }
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
            RECORD => {
                let recording = [Recording::Off, Recording::Steps, Recording::Tasks].get(slot).copied();
                Ok(Self::Record { recording: recording.ok_or_else(|| invalid("it records unknown spans"))? })
            }
            CLOCK => Ok(Self::Clock { sent_ns: request }),
            CLOCK_REPLY => Ok(Self::ClockReply { sent_ns: request, now_ns: slot as u64 }),
            TAKE_SPANS => Ok(Self::TakeSpans),
            _ => Err(invalid(&format!("its kind is {kind}"))),
        }
    }
}

impl Control {
    /// Returns the messages with all spans.
    pub(super) fn spans(Spans { spans, dropped }: Spans) -> impl Iterator<Item = Self> {
        let count = spans.len().div_ceil(MOST_SPANS).max(1);
        (0..count).map(move |part| {
            let some = spans.iter().skip(part * MOST_SPANS).take(MOST_SPANS).copied().collect();
            let is_last = part + 1 == count;
            Self::Spans { spans: some, dropped: if is_last { dropped } else { 0 }, is_last }
        })
    }
}

fn encode_spans(spans: &[Span], dropped: u64, is_last: bool) -> Box<[u8; BYTES]> {
    let kind = if is_last { LAST_SPANS } else { SPANS };
    let of_span = |span: &Span| {
        let task = span.task.map_or(0, |task| task as u64 + 1);
        [span.request, span.step as u64, task, span.begin_ns, span.end_ns]
    };
    let numbers = [kind, dropped, spans.len() as u64, 0, 0];
    of_numbers(numbers.into_iter().chain(spans.iter().take(MOST_SPANS).flat_map(of_span)))
}

fn decode_span(number: &mut impl FnMut() -> u64) -> Option<Span> {
    let (request, step, task, begin_ns, end_ns) = (number(), number(), number(), number(), number());
    let index = |number: u64| usize::try_from(number).ok();
    let task = if task == 0 { None } else { Some(index(task - 1)?) };
    (begin_ns <= end_ns).then_some(Span { request, step: index(step)?, task, begin_ns, end_ns })
}

fn of_numbers(numbers: impl IntoIterator<Item = u64>) -> Box<[u8; BYTES]> {
    let mut bytes = Box::new([0; BYTES]);
    for (part, number) in bytes.chunks_mut(8).zip(numbers) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    bytes
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
            Control::Record { recording: Recording::Tasks },
            Control::Clock { sent_ns: 5 },
            Control::ClockReply { sent_ns: 5, now_ns: u64::MAX },
            Control::TakeSpans,
        ] {
            assert_eq!(Control::decode(1, &control.encode()).unwrap(), control);
        }
    }

    #[test]
    fn spans_take_several_messages() {
        let task = |index: u64| (index % 2 == 1).then_some(index as usize);
        let span = |index| Span { request: index, step: 3, task: task(index), begin_ns: index, end_ns: index + 7 };
        for count in [0, 1, MOST_SPANS as u64, MOST_SPANS as u64 * 2 + 1] {
            let spans: Vec<Span> = (0..count).map(span).collect();
            let messages = Control::spans(Spans { spans: spans.clone(), dropped: 4 });
            let mut received = Spans::default();
            let mut ends = vec![];
            for message in messages {
                let decoded = Control::decode(1, &message.encode()).unwrap();
                assert_eq!(decoded, message);
                let Control::Spans { spans, dropped, is_last } = decoded else { panic!() };
                received.spans.extend(spans);
                received.dropped += dropped;
                ends.push(is_last);
            }
            assert_eq!((received.spans, received.dropped), (spans, 4));
            assert_eq!((ends.pop(), ends.contains(&true)), (Some(true), false));
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
        assert_eq!(message(&|bytes| bytes[0] = 99), "rank 2 has sent an invalid message: its kind is 99");
        let text = "rank 2 has sent an invalid message: its text is invalid";
        assert_eq!(message(&|bytes| bytes[32..40].fill(255)), text);
        assert_eq!(message(&|bytes| bytes[40] = 255), text);
    }
}
