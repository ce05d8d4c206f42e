//! Communicator within a process: each rank is a thread, and messages pass through queues.

use divi_runtime::{
    Error,
    communicator::{Communicator, Envelope, Operation},
};
use std::{
    collections::{HashMap, VecDeque},
    ptr, slice,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};

type Result<T> = std::result::Result<T, Error>;

/// Ranks and the messages between them.
struct Job {
    size: usize,
    shared: Mutex<Shared>,
    changed: Condvar,
    /// By rank: its number at the start of the job.
    original_ranks: Vec<usize>,
    can_recover: bool,
    /// True if a send completes only after its message has been received (rendezvous), otherwise at once (eager).
    is_rendezvous: bool,
}

#[derive(Default)]
struct Shared {
    /// By receiver: messages that no receive operation has matched, in the order in which they were sent.
    mailboxes: Vec<VecDeque<Sent>>,
    /// Sends whose messages have not been received.
    open_sends: HashMap<(usize, u64), Envelope>,
    /// By round: records of the ranks that have arrived.
    rounds: Vec<Vec<Option<Vec<u8>>>>,
    dead: Vec<usize>,
    is_revoked: bool,
    /// By round: flags of the ranks that have arrived.
    agreements: Vec<Vec<Option<u32>>>,
    /// Ranks that have survived, and by rank its index among them.
    survivors: Option<Vec<(usize, Arc<Loopback>)>>,
}

struct Sent {
    from: usize,
    tag: u32,
    bytes: Vec<u8>,
    operation: u64,
}

/// One rank.
pub(crate) struct Loopback {
    job: Arc<Job>,
    rank: usize,
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    next: u64,
    receives: Vec<(u64, Receive)>,
    sends: HashMap<u64, Envelope>,
    round: usize,
    agreement: usize,
}

/// Receive operation. Operations with the same sender and tag match messages in the order in which they were started.
struct Receive {
    from: usize,
    tag: u32,
    data: *mut u8,
    bytes: u64,
}

// SAFETY: the engine gives up access to the memory until the operation is complete.
unsafe impl Send for Receive {}

impl Loopback {
    /// Returns all ranks of a job.
    pub(crate) fn job(size: usize, is_rendezvous: bool) -> Vec<Arc<Self>> {
        Self::job_of((0..size).collect(), is_rendezvous, false)
    }

    /// Returns all ranks of a job that can continue after the death of a rank.
    pub(crate) fn recoverable_job(size: usize, is_rendezvous: bool) -> Vec<Arc<Self>> {
        Self::job_of((0..size).collect(), is_rendezvous, true)
    }

    fn job_of(original_ranks: Vec<usize>, is_rendezvous: bool, can_recover: bool) -> Vec<Arc<Self>> {
        let size = original_ranks.len();
        let mailboxes = (0..size).map(|_| VecDeque::new()).collect();
        let shared = Mutex::new(Shared { mailboxes, ..Shared::default() });
        let job = Arc::new(Job { size, original_ranks, can_recover, shared, changed: Condvar::new(), is_rendezvous });
        (0..size).map(|rank| Arc::new(Self { job: job.clone(), rank, own: Mutex::default() })).collect()
    }

    /// Marks the rank as failed: operations with it become errors on all other ranks.
    pub(crate) fn kill(&self) {
        self.shared().dead.push(self.rank);
        self.job.changed.notify_all();
    }

    /// Sends a message that no step of the plan sends.
    pub(crate) fn inject(&self, to: usize, tag: u32, bytes: &[u8]) {
        let message = Sent { from: self.rank, tag, bytes: bytes.to_vec(), operation: u64::MAX };
        self.shared().mailboxes[to].push_back(message);
    }

    /// Returns true if no message is left in the mailbox.
    pub(crate) fn is_drained(&self) -> bool {
        self.shared().mailboxes[self.rank].is_empty()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.job.shared.lock().unwrap()
    }

    /// Returns an error for operations of this rank that end at once.
    fn check_own(&self, shared: &Shared) -> Result<()> {
        if self.job.can_recover && shared.dead.contains(&self.rank) {
            return Err(Error::Communication { problem: "this rank has left".to_owned() });
        }
        if shared.is_revoked { Err(Error::Revoked) } else { Ok(()) }
    }

    fn check_alive(shared: &Shared, rank: usize) -> Result<()> {
        let problem = || "it has left".to_owned();
        if shared.dead.contains(&rank) { Err(Error::PeerFailed { rank, problem: problem() }) } else { Ok(()) }
    }
}

impl Communicator for Loopback {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.job.size
    }

    fn max_tag(&self) -> u32 {
        1 << 10
    }

    unsafe fn send(&self, to: usize, tag: u32, data: *const u8, bytes: u64) -> Result<Operation> {
        let mut own = self.own.lock().unwrap();
        let mut shared = self.shared();
        self.check_own(&shared)?;
        own.next += 1;
        let (operation, envelope) = (own.next, Envelope { rank: to, tag, bytes });
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { slice::from_raw_parts(data, bytes as usize) }.to_vec();
        shared.mailboxes[to].push_back(Sent { from: self.rank, tag, bytes, operation });
        match self.job.is_rendezvous {
            true => _ = shared.open_sends.insert((self.rank, operation), envelope),
            false => _ = own.sends.insert(operation, envelope),
        }
        Ok(Operation(operation))
    }

    unsafe fn receive(&self, from: usize, tag: u32, data: *mut u8, bytes: u64) -> Result<Operation> {
        let mut own = self.own.lock().unwrap();
        own.next += 1;
        let operation = own.next;
        own.receives.push((operation, Receive { from, tag, data, bytes }));
        Ok(Operation(operation))
    }

    fn test(&self, Operation(operation): Operation) -> Result<Option<Envelope>> {
        let mut own = self.own.lock().unwrap();
        if let Some(envelope) = own.sends.remove(&operation) {
            return Ok(Some(envelope));
        }
        let mut shared = self.shared();
        self.check_own(&shared)?;
        let Some(index) = own.receives.iter().position(|(other, _)| *other == operation) else {
            let Some(envelope) = shared.open_sends.get(&(self.rank, operation)) else {
                return Ok(Some(Envelope { rank: self.rank, tag: 0, bytes: 0 }));
            };
            return Self::check_alive(&shared, envelope.rank).map(|()| None);
        };
        let Receive { from, tag, .. } = own.receives[index].1;
        let is_match = |sent: &Sent| (sent.from, sent.tag) == (from, tag);
        let is_first = own.receives[..index].iter().all(|(_, other)| (other.from, other.tag) != (from, tag));
        let Some(position) = shared.mailboxes[self.rank].iter().position(is_match).filter(|_| is_first) else {
            return Self::check_alive(&shared, from).map(|()| None);
        };
        let Some(sent) = shared.mailboxes[self.rank].remove(position) else { return Ok(None) };
        shared.open_sends.remove(&(from, sent.operation));
        let (_, Receive { data, bytes, .. }) = own.receives.remove(index);
        if sent.bytes.len() as u64 > bytes {
            let reason = format!("it has {} bytes, more than {bytes}", sent.bytes.len());
            return Err(Error::InvalidMessage { rank: from, reason });
        }
        // SAFETY: the operation has exclusive access to its memory, which is large enough.
        unsafe { ptr::copy_nonoverlapping(sent.bytes.as_ptr(), data, sent.bytes.len()) };
        Ok(Some(Envelope { rank: from, tag, bytes: sent.bytes.len() as u64 }))
    }

    fn probe(&self, tag: Option<u32>) -> Result<Option<Envelope>> {
        let own = self.own.lock().unwrap();
        let shared = self.shared();
        self.check_own(&shared)?;
        let is_expected =
            |sent: &Sent| own.receives.iter().any(|(_, receive)| (receive.from, receive.tag) == (sent.from, sent.tag));
        let mut found = shared.mailboxes[self.rank].iter().filter(|sent| !is_expected(sent));
        let found = found.find(|sent| tag.is_none_or(|tag| sent.tag == tag));
        if let Some(&dead) = shared.dead.first().filter(|_| found.is_none()) {
            Self::check_alive(&shared, dead)?;
        }
        Ok(found.map(|sent| Envelope { rank: sent.from, tag: sent.tag, bytes: sent.bytes.len() as u64 }))
    }

    fn all_gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut state = self.own.lock().unwrap();
        let round = state.round;
        state.round += 1;
        let mut shared = self.shared();
        if shared.rounds.len() <= round {
            shared.rounds.push(vec![None; self.job.size]);
        }
        shared.rounds[round][self.rank] = Some(own.to_vec());
        self.job.changed.notify_all();
        loop {
            self.check_own(&shared)?;
            if let Some(all) = shared.rounds[round].iter().cloned().collect() {
                return Ok(all);
            }
            for rank in 0..self.job.size {
                Self::check_alive(&shared, rank)?;
            }
            shared = self.job.changed.wait_timeout(shared, Duration::from_millis(50)).unwrap().0;
        }
    }

    fn can_recover(&self) -> bool {
        self.job.can_recover
    }

    fn revoke(&self) -> Result<()> {
        self.shared().is_revoked = true;
        self.job.changed.notify_all();
        Ok(())
    }

    fn agree(&self, flags: u32) -> Result<u32> {
        let mut own = self.own.lock().unwrap();
        let round = own.agreement;
        own.agreement += 1;
        let mut shared = self.shared();
        if shared.agreements.len() <= round {
            shared.agreements.push(vec![None; self.job.size]);
        }
        shared.agreements[round][self.rank] = Some(flags);
        self.job.changed.notify_all();
        loop {
            let is_awaited = |rank: &usize| shared.agreements[round][*rank].is_none() && !shared.dead.contains(rank);
            if !(0..self.job.size).any(|rank| is_awaited(&rank)) {
                return Ok(shared.agreements[round].iter().flatten().fold(u32::MAX, |all, flags| all & flags));
            }
            shared = self.job.changed.wait_timeout(shared, Duration::from_millis(50)).unwrap().0;
        }
    }

    fn survivors(&self) -> Result<Arc<dyn Communicator>> {
        self.agree(0)?;
        let mut shared = self.shared();
        let alive: Vec<usize> = (0..self.job.size).filter(|rank| !shared.dead.contains(rank)).collect();
        let original_ranks = alive.iter().map(|&rank| self.job.original_ranks[rank]).collect();
        let make = || alive.into_iter().zip(Self::job_of(original_ranks, self.job.is_rendezvous, true)).collect();
        let all = shared.survivors.get_or_insert_with(make);
        let (_, own) = all.iter().find(|(rank, _)| *rank == self.rank).ok_or(Error::Revoked)?;
        Ok(own.clone())
    }

    fn original_rank(&self, rank: usize) -> usize {
        self.job.original_ranks[rank]
    }

    fn finalize(&self) -> Result<()> {
        self.all_gather(&[]).map(drop)
    }
}
