//! Replays the corpora and a few thousand mutants with a fixed seed: a short version of `tools/fuzz`.
#![cfg(test)]

use divi_readers::{READERS, corpus, memory::CountingAllocator, mutants::Mutants, trial};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Number of mutants per reader.
const MUTANTS: u64 = 400;
/// Maximum size of a corpus file, as they are kept in the repository.
const MOST_BYTES: usize = 4096;

/// Files whose names begin with `bad-` must be rejected: they reproduce fixed bugs.
#[test]
fn corpora_are_read() {
    for reader in READERS {
        let files = corpus::files(reader.name);
        assert!(files.len() >= 3, "{} has a corpus of {}", reader.name, files.len());
        for (name, bytes) in files {
            assert!(bytes.len() <= MOST_BYTES, "{}/{name} has {} bytes", reader.name, bytes.len());
            let trial = trial::run(reader, &bytes).unwrap_or_else(|reason| panic!("{}/{name}: {reason}", reader.name));
            assert_eq!(trial.is_accepted, !name.starts_with("bad-"), "{}/{name}", reader.name);
        }
    }
}

#[test]
fn mutants_are_accepted_or_rejected() {
    for reader in READERS {
        let mutants = Mutants::new(1, Some(reader.name));
        let mut accepted = 0;
        for number in 0..MUTANTS {
            let trial = trial::run(reader, &mutants.get(number).1);
            let trial = trial.unwrap_or_else(|reason| {
                panic!("{reason}: see divi-mutants --seed 1 --reader {} --only {number}", reader.name)
            });
            accepted += u64::from(trial.is_accepted);
        }
        println!("{}: {accepted} of {MUTANTS} are accepted", reader.name);
        assert!(
            (1..MUTANTS).contains(&accepted),
            "{}: {accepted} accepted: mutations are too weak or too strong",
            reader.name
        );
    }
}
