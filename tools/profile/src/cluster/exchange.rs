//! Texts of all ranks: comparison of versions and options, and errors, so that all ranks continue or all of them end.

use super::host::Host;
use crate::measure::Measure;
use divi_runtime::{Error, communicator::Communicator};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Maximum length of a text in bytes.
const MOST_TEXT: u64 = 1 << 26;

/// Error that ends a rank.
pub(super) enum Failure {
    /// Error that all ranks end with.
    Agreed(String),
    /// Messages cannot be passed any more.
    Communication(Error),
}

/// Properties of a rank that are compared.
#[derive(Serialize, Deserialize)]
struct Record {
    version: String,
    options: String,
    host: Result<Host, String>,
}

/// Compares the versions and options of all ranks, and returns their hosts; `own` is that of this rank.
pub(super) fn compare(
    communicator: &dyn Communicator,
    own: Result<Host, String>,
    arguments: &Measure,
) -> Result<Vec<Host>, Failure> {
    let Measure { system_out, time_limit, quiet, .. } = arguments;
    let options =
        format!("--system-out={} --time-limit={}", system_out.as_deref().unwrap_or(""), time_limit.as_secs_f64());
    let options = if *quiet { options + " -q" } else { options };
    let own = Record { version: env!("CARGO_PKG_VERSION").to_owned(), options, host: own };
    let records = gather(communicator, &own).map_err(Failure::Communication)?;
    let hosts: Result<Vec<Host>, String> = all(records.iter().map(|record| record.host.clone()));
    let (hosts, first) = (hosts.map_err(Failure::Agreed)?, &records[0]);
    for (rank, record) in records.iter().enumerate() {
        let differs = |what: &str, found: &str, expected: &str, remedy: &str| {
            let host = &hosts[rank].name;
            let error = format!("rank {rank} ({host}) has {what} {found}, and rank 0 has {expected}: {remedy}");
            if found == expected { Ok(()) } else { Err(Failure::Agreed(error)) }
        };
        differs("divi-profile", &record.version, &first.version, "install the same version on all hosts")?;
        differs("options", &record.options, &first.options, "start all ranks with the same options")?;
    }
    Ok(hosts)
}

/// Returns an error of the first rank that has one.
pub(super) fn all_succeeded(communicator: &dyn Communicator, own: Result<(), String>) -> Result<(), Failure> {
    let results: Vec<Result<(), String>> = gather(communicator, &own).map_err(Failure::Communication)?;
    all(results.into_iter()).map(drop).map_err(Failure::Agreed)
}

/// Returns the values of all ranks, or the first error with the number of its rank.
fn all<T>(results: impl Iterator<Item = Result<T, String>>) -> Result<Vec<T>, String> {
    results.enumerate().map(|(rank, result)| result.map_err(|error| format!("rank {rank}: {error}"))).collect()
}

/// Sends a value of each rank to all ranks, and returns them in the order of the ranks.
pub(super) fn gather<T: Serialize + DeserializeOwned>(
    communicator: &dyn Communicator,
    own: &T,
) -> Result<Vec<T>, Error> {
    let invalid = |rank: usize| Error::InvalidMessage {
        rank,
        reason: "it is not one of this version: install the same version of divi-profile on all hosts".to_owned(),
    };
    let mut text = serde_json::to_vec(own).map_err(|error| Error::Communication { problem: error.to_string() })?;
    let lengths = communicator.all_gather(&(text.len() as u64).to_le_bytes())?;
    let length = |(rank, bytes): (usize, &Vec<u8>)| {
        let length = bytes.as_slice().try_into().ok().map(u64::from_le_bytes);
        length.filter(|length| *length <= MOST_TEXT).ok_or_else(|| invalid(rank)).map(|length| length as usize)
    };
    let lengths: Vec<usize> = lengths.iter().enumerate().map(length).collect::<Result<_, Error>>()?;
    text.resize(lengths.iter().copied().max().unwrap_or(0), 0);
    let texts = communicator.all_gather(&text)?;
    let parse = |(rank, text): (usize, &Vec<u8>)| {
        let text = text.get(..lengths[rank]).ok_or_else(|| invalid(rank))?;
        serde_json::from_slice(text).map_err(|_| invalid(rank))
    };
    texts.iter().enumerate().map(parse).collect()
}
