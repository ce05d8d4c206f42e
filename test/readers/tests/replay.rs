//! The corpora, and a few thousand mutants of them with a fixed seed: the short version of `tools/fuzz`.
#![cfg(test)]

use divi_readers::{READERS, corpus, memory::CountingAllocator, mutants::Mutants, trial};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Mutants of each reader.
const MUTANTS: u64 = 400;
/// Largest file of a corpus, which the repository keeps.
const MOST_BYTES: usize = 4096;

/// Files whose names begin with `bad-` are refused: they have led to bugs that are fixed.
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
fn mutants_are_accepted_or_refused() {
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
        assert!((1..MUTANTS).contains(&accepted), "{}: {accepted} accepted: too weak or too strong", reader.name);
    }
}
