//! Agreement of ranks: they compare bundles, versions and options before anything is loaded, and report errors to each other
//! at the end of each phase of loading, so that all of them continue or all of them end.

use crate::{
    bundle::Bundle,
    communicator::Communicator,
    error::{Error, Result},
    options::Options,
    process::{Peer, Process},
};
use divi_threads::{core_count, cores};
use serde::{Deserialize, Serialize};
use std::{fs, time::Duration};

/// Version of the messages between ranks.
const PROTOCOL: u32 = 2;
/// Size of a record in bytes: the length of its text as four bytes, the text, and padding.
const RECORD_BYTES: usize = 8192;
/// Maximum length of an error message in bytes.
const MOST_TEXT: usize = 900;

/// Properties of a rank that are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    protocol: u32,
    version: String,
    /// Name of the host.
    host: String,
    /// Identifier of the running system: ranks with the same one share its cores.
    system: String,
    /// Name space of `process`: ranks with the same system and name space may end each other.
    namespace: String,
    process: Option<Process>,
    /// Cores that the rank may use, as ranges.
    cores: Vec<(usize, usize)>,
    /// Error that ends the rank.
    error: Option<String>,
    format: String,
    sha256: String,
    threads: Option<usize>,
    in_flight: Option<usize>,
    stall_timeout: Option<Duration>,
}

/// Cores of this rank, if ranks on one host share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoreShare {
    /// Number of cores; at least one.
    pub(crate) count: usize,
    /// Cores for pinned threads; empty if there are fewer cores than ranks.
    pub(crate) cores: Vec<usize>,
    /// True if other ranks may use the same cores without this division.
    pub(crate) is_shared: bool,
}

impl CoreShare {
    /// Returns all cores of this process.
    pub(crate) fn all() -> Self {
        Self { count: core_count(), cores: cores(), is_shared: false }
    }
}

/// Result of the comparison of all ranks.
pub(crate) struct Agreement {
    pub(crate) bundle: Bundle,
    pub(crate) share: CoreShare,
    /// By rank: the name of its host.
    pub(crate) hosts: Vec<String>,
    /// By rank: the rank as seen by this one.
    pub(crate) peers: Vec<Peer>,
}

/// Compares the bundle and the options of all ranks; `read` is the bundle of this rank or the error of reading it. The
/// result has the cores of this rank.
pub(crate) fn compare(options: &Options, read: Result<Bundle>) -> Result<Agreement> {
    let Some(communicator) = options.communicator.as_deref() else {
        return Ok(Agreement { bundle: read?, share: CoreShare::all(), hosts: vec![], peers: vec![] });
    };
    let (size, rank) = (communicator.size(), communicator.rank());
    let read = read.and_then(|bundle| {
        let hosts = bundle.host_count();
        if hosts == size { Ok(bundle) } else { Err(Error::Ranks { hosts, ranks: size }) }
    });
    let text = |text: &str| text.to_owned();
    let own = Record {
        protocol: PROTOCOL,
        version: text(env!("CARGO_PKG_VERSION")),
        host: line("/proc/sys/kernel/hostname"),
        system: line("/proc/sys/kernel/random/boot_id"),
        namespace: namespace(),
        process: Process::own(),
        cores: ranges(&cores()),
        error: read.as_ref().err().map(|error| cut(&error.to_string(), MOST_TEXT)),
        format: read.as_ref().map_or_else(|_| String::new(), |bundle| bundle.format.clone()),
        sha256: read.as_ref().map_or_else(|_| String::new(), |bundle| bundle.sha256.clone()),
        threads: options.threads,
        in_flight: options.in_flight,
        stall_timeout: options.stall_timeout,
    };
    let records = exchange(communicator, &own)?;
    // A rank's own error is reported as it is.
    let bundle = match (read, failed(&records)) {
        (Err(error), Some(first)) if first == rank => return Err(error),
        (_, Some(rank)) => return Err(reported(rank, &records[rank])),
        (read, None) => read?,
    };
    for (rank, record) in records.iter().enumerate().skip(1) {
        check(rank, record, &records[0])?;
    }
    let hosts = records.iter().map(|record| record.host.clone()).collect();
    let peers = (0..records.len()).map(|other| peer(&records, rank, other)).collect();
    Ok(Agreement { bundle, share: share(&records, rank), hosts, peers })
}

/// Reports an error that precedes [`Runtime::load`](crate::Runtime::load) to the other ranks, which end with it, too.
pub fn refuse(communicator: &dyn Communicator, message: &str) -> Result<()> {
    exchange(communicator, &failure(message)).map(drop)
}

/// Returns the result if all ranks were successful; otherwise the error of the first rank that was not.
pub(crate) fn all_succeeded<T>(communicator: Option<&dyn Communicator>, result: Result<T>) -> Result<T> {
    let Some(communicator) = communicator else { return result };
    let own = match &result {
        Err(error) => failure(&error.to_string()),
        Ok(_) => Record { error: None, ..failure("") },
    };
    let records = exchange(communicator, &own)?;
    match failed(&records) {
        Some(rank) if rank != communicator.rank() => Err(reported(rank, &records[rank])),
        _ => result,
    }
}

/// Returns the record of a rank that ends with an error.
fn failure(message: &str) -> Record {
    Record {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: line("/proc/sys/kernel/hostname"),
        system: String::new(),
        namespace: String::new(),
        process: None,
        cores: vec![],
        error: Some(cut(message, MOST_TEXT)),
        format: String::new(),
        sha256: String::new(),
        threads: None,
        in_flight: None,
        stall_timeout: None,
    }
}

/// Returns the first rank that ends with an error.
fn failed(records: &[Record]) -> Option<usize> {
    records.iter().position(|record| record.error.is_some())
}

fn reported(rank: usize, Record { error, host, .. }: &Record) -> Error {
    let message = error.as_deref().unwrap_or("it reports no reason");
    Error::Reported { rank, message: format!("{message} (on host '{host}')") }
}

/// Compares the record of a rank with that of rank 0.
fn check(rank: usize, record: &Record, first: &Record) -> Result<()> {
    let differs = |what, found: &str, expected: &str, remedy| {
        let host = record.host.clone();
        if found == expected {
            return Ok(());
        }
        Err(Error::Mismatch { rank, host, what, found: found.into(), expected: expected.into(), remedy })
    };
    let count = |count: Option<usize>| count.map_or_else(|| "the plan's number".to_owned(), |count| count.to_string());
    let options = "start all ranks with the same options";
    let bundle = "give all ranks the same bundle";
    differs("divi-run", &record.version, &first.version, "install the same version on all hosts")?;
    differs("format", &record.format, &first.format, bundle)?;
    differs("a bundle with SHA-256", &record.sha256, &first.sha256, bundle)?;
    differs("threads per device:", &count(record.threads), &count(first.threads), options)?;
    differs("requests in flight:", &count(record.in_flight), &count(first.in_flight), options)?;
    let seconds =
        |timeout: Option<Duration>| timeout.map_or_else(|| "none".to_owned(), |it| it.as_secs_f64().to_string());
    differs("a stall timeout of", &seconds(record.stall_timeout), &seconds(first.stall_timeout), options)
}

/// Sends the record to all ranks and returns theirs.
fn exchange(communicator: &dyn Communicator, own: &Record) -> Result<Vec<Record>> {
    let mut bytes = Vec::with_capacity(RECORD_BYTES);
    let mut text = to_text(own);
    if text.len() > RECORD_BYTES - 4 {
        // Only the list of cores can be that long.
        text = to_text(&Record { cores: vec![], ..own.clone() });
    }
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(RECORD_BYTES, 0);
    let all = communicator.all_gather(&bytes)?;
    all.iter().enumerate().map(|(rank, bytes)| parse(rank, bytes)).collect()
}

fn to_text(record: &Record) -> String {
    serde_json::to_string(record).expect("a record has no maps")
}

fn parse(rank: usize, bytes: &[u8]) -> Result<Record> {
    let invalid = |reason: &str| Error::InvalidMessage { rank, reason: reason.to_owned() };
    let (length, rest) = bytes.split_first_chunk().ok_or_else(|| invalid("its record is too short"))?;
    let text = rest.get(..u32::from_le_bytes(*length) as usize).ok_or_else(|| invalid("its record is too short"))?;
    let other = || invalid("its record is not one of this version: install the same version of divi-run on all hosts");
    serde_json::from_slice::<Record>(text).ok().filter(|record| record.protocol == PROTOCOL).ok_or_else(other)
}

/// Returns the name space of this process's number.
fn namespace() -> String {
    fs::read_link("/proc/self/ns/pid").map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the rank `other` as seen by `own`.
fn peer(records: &[Record], own: usize, other: usize) -> Peer {
    let is_near = |rank: &usize| {
        let of = |rank: usize| (&records[rank].system, &records[rank].namespace);
        *rank != other && of(*rank) == of(other) && !records[other].system.is_empty()
    };
    let process = records[other].process.filter(|process| !process.is_own());
    Peer {
        process: process.filter(|_| is_near(&own)),
        can_be_ended: process.is_some() && (0..records.len()).any(|rank| is_near(&rank)),
    }
}

/// Divides the cores of a host among the ranks that may use the same ones.
fn share(records: &[Record], rank: usize) -> CoreShare {
    let own = &records[rank];
    let overlaps = |other: &Record| {
        let overlap = |&(begin, end): &(usize, usize)| own.cores.iter().any(|&(b, e)| begin < e && b < end);
        other.system == own.system && other.cores.iter().any(overlap)
    };
    let sharing: Vec<usize> = (0..records.len()).filter(|&other| other == rank || overlaps(&records[other])).collect();
    let all = CoreShare::all();
    if sharing.len() == 1 {
        return all;
    }
    let index = sharing.iter().position(|&other| other == rank).unwrap_or(0);
    let count = all.count.min(all.cores.len()) / sharing.len();
    let cores = all.cores.into_iter().skip(index * count).take(count).collect();
    CoreShare { count: count.max(1), cores, is_shared: true }
}

/// Returns the ranges of ascending numbers.
fn ranges(numbers: &[usize]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = vec![];
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end == number => *end += 1,
            _ => ranges.push((number, number + 1)),
        }
    }
    ranges
}

/// Returns the first line of a file of the system, at most 255 bytes; empty if it cannot be read.
fn line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    cut(text.lines().next().unwrap_or_default(), 255)
}

/// Returns the start of a text, at most `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record { error: None, system: "a".into(), cores: vec![(0, 2)], sha256: "12".into(), ..failure("") }
    }

    #[test]
    fn differences_name_the_rank() {
        let host = |mut record: Record| {
            record.host = "node7".into();
            record
        };
        let message = |other: Record| check(3, &host(other), &record()).map_err(|error| error.to_string());
        assert_eq!(message(record()), Ok(()));
        assert_eq!(
            message(Record { sha256: "34".into(), ..record() }).unwrap_err(),
            "rank 3 (node7) has a bundle with SHA-256 34, and rank 0 has 12: give all ranks the same bundle"
        );
        assert_eq!(
            message(Record { threads: Some(2), ..record() }).unwrap_err(),
            "rank 3 (node7) has threads per device: 2, and rank 0 has the plan's number: start all ranks with the same options"
        );
        assert_eq!(
            message(Record { version: "9.9".into(), ..record() }).unwrap_err(),
            format!(
                "rank 3 (node7) has divi-run 9.9, and rank 0 has {}: install the same version on all hosts",
                env!("CARGO_PKG_VERSION")
            )
        );
    }

    #[test]
    fn invalid_records_name_the_rank() {
        for bytes in [vec![], vec![255; 8], vec![0; 8], [&4_u32.to_le_bytes()[..], b"null"].concat()] {
            let error = parse(2, &bytes).unwrap_err().to_string();
            assert!(error.starts_with("rank 2 has sent an invalid message: its record is "), "{error}");
        }
    }

    #[test]
    fn ranks_on_one_host_divide_its_cores() {
        let all = CoreShare::all();
        let own = Record { cores: ranges(&all.cores), ..record() };
        let elsewhere = Record { system: "b".into(), ..own.clone() };
        assert_eq!(share(&[own.clone(), elsewhere], 0), all);
        let many: Vec<Record> = vec![own; all.cores.len()];
        for rank in 0..many.len().min(2) {
            let CoreShare { count, cores, .. } = share(&many, rank);
            assert_eq!((count, cores), (1, if many.len() > 1 { vec![all.cores[rank]] } else { all.cores.clone() }));
        }
        let too_many = vec![many[0].clone(); all.cores.len() + 1];
        assert_eq!(share(&too_many, 0), CoreShare { count: 1, cores: vec![], is_shared: true });
    }

    #[test]
    fn ranges_are_maximal() {
        assert_eq!(ranges(&[0, 1, 4, 5, 6, 9]), [(0, 2), (4, 7), (9, 10)]);
        assert_eq!(ranges(&[]), []);
    }
}
