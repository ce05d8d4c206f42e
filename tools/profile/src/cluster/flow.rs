//! Transfers from one rank to another: messages of growing sizes, each of which is acknowledged.
//!
//! Ranks wait as the polling thread of the runtime does, so that the times are those of its messages.

use divi_runtime::{
    Error,
    communicator::{Communicator, Message, idle_sleep},
    median,
};
use serde::{Deserialize, Serialize};
use std::{
    hint, mem, thread,
    time::{Duration, Instant},
};

/// Time without any progress after which a rank gives up.
const STALL: Duration = Duration::from_secs(60);

/// Estimated round trip in seconds above which a size is left out.
const LONGEST: f64 = 0.5;

/// Minimum number of messages of a size.
const LEAST_MESSAGES: usize = 4;

/// Transfer from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Flow {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Round trips of a transfer: sizes in bytes, and the medians of their times in seconds.
pub(super) type Points = Vec<(u64, f64)>;

/// Messages of a transfer.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    /// Sizes in bytes, ascending and positive.
    pub(super) sizes: Vec<u64>,
    /// Time for each size, if the messages are not longer.
    pub(super) window: Duration,
}

/// Runs transfers between several ranks at once, and returns the times of those that this rank sends. `spin_timeout` is zero if
/// the runtime would not spin. All ranks call it with the same transfers.
pub(super) fn run(
    communicator: &dyn Communicator,
    flows: &[Flow],
    burst: &Burst,
    spin_timeout: Duration,
) -> Result<Vec<(Flow, Points)>, Error> {
    let rank = communicator.rank();
    let mut senders = vec![];
    let mut receivers = vec![];
    for (index, &flow) in flows.iter().enumerate() {
        let tags = Tags { data: 2 * index as u32, acknowledgment: 2 * index as u32 + 1 };
        if flow.from == rank {
            senders.push(Sender::new(communicator, flow, tags, burst)?);
        }
        if flow.to == rank {
            receivers.push(Receiver::new(communicator, flow.from, tags, burst)?);
        }
    }
    let mut last = Instant::now();
    loop {
        let mut has_progressed = false;
        for sender in &mut senders {
            has_progressed |= sender.advance()?;
        }
        for receiver in &mut receivers {
            has_progressed |= receiver.advance()?;
        }
        if senders.iter().all(Sender::is_done) && receivers.iter().all(Receiver::is_done) {
            return Ok(senders.into_iter().map(|sender| (sender.flow, sender.points)).collect());
        }
        let waited = last.elapsed();
        if has_progressed {
            last = Instant::now();
        } else if waited > STALL {
            let pending = senders.iter().find(|sender| !sender.is_done()).map(|sender| sender.flow.to);
            let pending = pending.or_else(|| receivers.iter().find(|it| !it.is_done()).map(|it| it.from));
            let problem = format!("it has not answered for {} s", STALL.as_secs());
            return Err(Error::PeerFailed { rank: pending.unwrap_or(rank), problem });
        } else if waited < spin_timeout {
            hint::spin_loop();
        } else {
            thread::sleep(idle_sleep(waited));
        }
    }
}

#[derive(Clone, Copy)]
struct Tags {
    data: u32,
    acknowledgment: u32,
}

/// First byte of a message: whether another one follows.
const MORE: u8 = 0;
const LAST: u8 = 1;

/// Sending end.
struct Sender<'c> {
    communicator: &'c dyn Communicator,
    flow: Flow,
    tags: Tags,
    sizes: std::iter::Peekable<std::vec::IntoIter<u64>>,
    window: Duration,
    /// Bytes to send; empty while a message is in progress.
    bytes: Vec<u8>,
    message: Option<Message<'c>>,
    acknowledgment: Option<Message<'c>>,
    /// Size of the messages, and times of those that are complete.
    size: u64,
    times: Vec<f64>,
    /// Start of the first message of this size, and of the last one.
    first: Instant,
    start: Instant,
    is_last: bool,
    points: Points,
}

impl<'c> Sender<'c> {
    fn new(communicator: &'c dyn Communicator, flow: Flow, tags: Tags, burst: &Burst) -> Result<Self, Error> {
        let mut sizes = burst.sizes.clone().into_iter().peekable();
        let size = sizes.next().unwrap_or(1);
        // Growing in place keeps the large pages of a long buffer.
        let mut bytes = Vec::with_capacity(burst.sizes.iter().copied().max().unwrap_or(size) as usize);
        bytes.resize(size as usize, MORE);
        let now = Instant::now();
        let mut sender = Self {
            communicator,
            flow,
            tags,
            sizes,
            window: burst.window,
            bytes,
            message: None,
            acknowledgment: None,
            size,
            times: vec![],
            first: now,
            start: now,
            is_last: false,
            points: vec![],
        };
        sender.send()?;
        Ok(sender)
    }

    /// Starts the next message.
    fn send(&mut self) -> Result<(), Error> {
        let is_last_of_size = self.times.len() + 1 >= LEAST_MESSAGES && self.first.elapsed() >= self.window;
        self.is_last = is_last_of_size && self.next_size().is_none();
        let mut bytes = mem::take(&mut self.bytes);
        bytes[0] = if self.is_last { LAST } else { MORE };
        let Flow { to, .. } = self.flow;
        self.start = Instant::now();
        self.acknowledgment = Some(Message::receive(self.communicator, to, self.tags.acknowledgment, vec![0])?);
        self.message = Some(Message::send(self.communicator, to, self.tags.data, bytes)?);
        Ok(())
    }

    /// Returns the next size, unless its messages would take too long.
    fn next_size(&mut self) -> Option<u64> {
        let next = *self.sizes.peek()?;
        let longest = self.times.last().map_or(0.0, |time| time * next as f64 / self.size as f64);
        // Small messages take the same time.
        (self.size < 1 << 16 || longest <= LONGEST).then_some(next)
    }

    /// Tests the messages in progress. Returns true if one of them has completed.
    fn advance(&mut self) -> Result<bool, Error> {
        let mut has_progressed = false;
        if let Some(message) = &mut self.message
            && let Some((bytes, _)) = message.test()?
        {
            (self.bytes, self.message) = (bytes, None);
            has_progressed = true;
        }
        if let Some(message) = &mut self.acknowledgment
            && message.test()?.is_some()
        {
            self.times.push(self.start.elapsed().as_secs_f64());
            self.acknowledgment = None;
            has_progressed = true;
        }
        if has_progressed && self.message.is_none() && self.acknowledgment.is_none() {
            self.complete()?;
        }
        Ok(has_progressed)
    }

    /// Continues after a message that was acknowledged.
    fn complete(&mut self) -> Result<(), Error> {
        let is_complete = self.times.len() >= LEAST_MESSAGES && self.first.elapsed() >= self.window;
        if self.is_last || (is_complete && self.next_size().is_some()) {
            let next = self.next_size();
            self.points.push((self.size, median(&mem::take(&mut self.times))));
            if let Some(size) = next.filter(|_| !self.is_last) {
                self.sizes.next();
                self.size = size;
                self.bytes.resize(size as usize, MORE);
                self.first = Instant::now();
            }
        }
        if self.is_last { Ok(()) } else { self.send() }
    }

    fn is_done(&self) -> bool {
        self.is_last && self.message.is_none() && self.acknowledgment.is_none()
    }
}

/// Receiving end.
struct Receiver<'c> {
    communicator: &'c dyn Communicator,
    from: usize,
    tags: Tags,
    message: Option<Message<'c>>,
    acknowledgment: Option<Message<'c>>,
}

impl<'c> Receiver<'c> {
    fn new(communicator: &'c dyn Communicator, from: usize, tags: Tags, burst: &Burst) -> Result<Self, Error> {
        let most = burst.sizes.iter().copied().max().unwrap_or(1);
        let message = Message::receive(communicator, from, tags.data, vec![0; most as usize])?;
        Ok(Self { communicator, from, tags, message: Some(message), acknowledgment: None })
    }

    /// Tests the messages in progress. Returns true if one of them has completed.
    fn advance(&mut self) -> Result<bool, Error> {
        let mut has_progressed = false;
        if let Some(message) = &mut self.acknowledgment
            && message.test()?.is_some()
        {
            self.acknowledgment = None;
            has_progressed = true;
        }
        // The next message comes only after the acknowledgment has arrived.
        let Some(message) = self.message.as_mut().filter(|_| self.acknowledgment.is_none()) else {
            return Ok(has_progressed);
        };
        if let Some((bytes, _)) = message.test()? {
            let is_last = bytes.first() == Some(&LAST);
            let Self { communicator, from, tags, .. } = *self;
            // The operation of the next message is started before it is requested.
            self.message = if is_last { None } else { Some(Message::receive(communicator, from, tags.data, bytes)?) };
            self.acknowledgment = Some(Message::send(communicator, from, tags.acknowledgment, vec![0])?);
            has_progressed = true;
        }
        Ok(has_progressed)
    }

    fn is_done(&self) -> bool {
        self.message.is_none() && self.acknowledgment.is_none()
    }
}
