//! `divi-mutants`: runs seeded mutants through all readers, in one process, on all cores.

use divi_readers::{
    memory::{CountingAllocator, peak_resident_bytes},
    mutants::Mutants,
    trial::{self, LIMIT},
};
use lexopt::prelude::{Long, ValueExt};
use std::{
    error::Error,
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const USAGE: &str = "\
usage: divi-mutants [OPTIONS]

  --mutants N      total number of mutants (100000)
  --reader NAME    test one reader only
  --seed N         seed of the mutants (0)
  --threads N      number of threads (all cores)
  --only N         test only the mutant with this number, and write it to the folder
  --folder PATH    folder for failing mutants and each thread's current number (target/mutants)
";

struct Arguments {
    mutants: u64,
    reader: Option<String>,
    seed: u64,
    threads: usize,
    only: Option<u64>,
    folder: PathBuf,
}

fn arguments() -> Result<Option<Arguments>, lexopt::Error> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let folder = PathBuf::from("target/mutants");
    let mut read = Arguments { mutants: 100_000, reader: None, seed: 0, threads, only: None, folder };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") => return Ok(None),
            Long("mutants") => read.mutants = parser.value()?.parse()?,
            Long("reader") => read.reader = Some(parser.value()?.string()?),
            Long("seed") => read.seed = parser.value()?.parse()?,
            Long("threads") => read.threads = parser.value()?.parse()?,
            Long("only") => read.only = Some(parser.value()?.parse()?),
            Long("folder") => read.folder = parser.value()?.into(),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(read))
}

/// Statistics of a reader.
#[derive(Clone, Default)]
struct Count {
    mutants: u64,
    accepted: u64,
    findings: u64,
    time: Duration,
    slowest: Duration,
    heap_bytes: u64,
}

impl Count {
    fn add(&mut self, other: &Self) {
        self.mutants += other.mutants;
        self.accepted += other.accepted;
        self.findings += other.findings;
        self.time += other.time;
        self.slowest = self.slowest.max(other.slowest);
        self.heap_bytes = self.heap_bytes.max(other.heap_bytes);
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("divi-mutants: error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, Box<dyn Error>> {
    let Some(arguments) = arguments()? else {
        print!("{USAGE}");
        return Ok(true);
    };
    let mutants = Mutants::new(arguments.seed, arguments.reader.as_deref());
    if mutants.readers().next().is_none() {
        return Err("unknown reader".into());
    }
    fs::create_dir_all(&arguments.folder)?;
    if let Some(number) = arguments.only {
        let (reader, bytes) = mutants.get(number);
        return Ok(!record(&mutants, number, reader, &bytes, &arguments.folder));
    }
    // Panics are findings, which are printed with the mutant's number.
    std::panic::set_hook(Box::new(|_| {}));
    let (next, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let current: Vec<_> = (0..arguments.threads).map(|_| Mutex::new(None::<(u64, Instant)>)).collect();
    let start = Instant::now();
    let counts = thread::scope(|scope| {
        scope.spawn(|| watchdog(&current, &is_done));
        let (mutants, arguments, next) = (&mutants, &arguments, &next);
        let workers: Vec<_> = current
            .iter()
            .enumerate()
            .map(|(index, current)| scope.spawn(move || work(mutants, arguments, next, index, current)))
            .collect();
        let mut counts = vec![Count::default(); mutants.readers().count()];
        for worker in workers {
            let of_worker = worker.join().map_err(|_| "a worker panicked outside of readers")??;
            counts.iter_mut().zip(&of_worker).for_each(|(count, other)| count.add(other));
        }
        is_done.store(true, Ordering::Relaxed);
        Ok::<_, Box<dyn Error>>(counts)
    })?;
    report(&mutants, &counts, start.elapsed());
    Ok(counts.iter().all(|count| count.findings == 0))
}

/// Tests mutants until all numbers are taken.
fn work(
    mutants: &Mutants,
    arguments: &Arguments,
    next: &AtomicU64,
    index: usize,
    current: &Mutex<Option<(u64, Instant)>>,
) -> Result<Vec<Count>, String> {
    // If a signal ends the process, this file has the mutant's number.
    let note = arguments.folder.join(format!("current.{index}"));
    let file = File::create(&note).map_err(|error| format!("{}: {error}", note.display()))?;
    let readers: Vec<_> = mutants.readers().collect();
    let mut counts = vec![Count::default(); readers.len()];
    let set = |value| *current.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = value;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= arguments.mutants {
            break;
        }
        let (reader, bytes) = mutants.get(number);
        file.write_all_at(format!("{number:<20}\n").as_bytes(), 0).map_err(|error| error.to_string())?;
        set(Some((number, Instant::now())));
        let outcome = trial::run(readers[reader], &bytes);
        set(None);
        let count = &mut counts[reader];
        count.mutants += 1;
        match outcome {
            Ok(trial) => {
                count.accepted += u64::from(trial.is_accepted);
                count.time += trial.elapsed;
                count.slowest = count.slowest.max(trial.elapsed);
                count.heap_bytes = count.heap_bytes.max(trial.heap_bytes);
            }
            Err(_) => {
                count.findings += 1;
                record(mutants, number, reader, &bytes, &arguments.folder);
            }
        }
    }
    let _ = fs::remove_file(note);
    Ok(counts)
}

/// Runs a mutant and writes it to the folder; returns true if the reader fails on it.
fn record(mutants: &Mutants, number: u64, reader: usize, bytes: &[u8], folder: &Path) -> bool {
    let Some(reader) = mutants.readers().nth(reader) else { return false };
    let path = folder.join(format!("{}-{number}", reader.name));
    if let Err(error) = fs::write(&path, bytes) {
        eprintln!("divi-mutants: {}: {error}", path.display());
    }
    match trial::run(reader, bytes) {
        Ok(trial) => {
            println!("{}: accepted: {}, {:?}", path.display(), trial.is_accepted, trial.elapsed);
            false
        }
        Err(reason) => {
            println!("{}: {reason}", path.display());
            true
        }
    }
}

/// Ends the process if a mutant exceeds the time limit.
fn watchdog(current: &[Mutex<Option<(u64, Instant)>>], is_done: &AtomicBool) {
    while !is_done.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
        for current in current {
            let running = *current.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some((number, since)) = running
                && since.elapsed() > LIMIT * 2
            {
                println!("mutant {number}: hangs: {:?} so far", since.elapsed());
                std::process::exit(1);
            }
        }
    }
}

fn report(mutants: &Mutants, counts: &[Count], elapsed: Duration) {
    println!("reader     mutants  accepted  findings mutants/s  slowest (ms)  heap (MiB)");
    let mut all = Count::default();
    let line = |name: &str, count: &Count, seconds: f64| {
        let rate = count.mutants as f64 / seconds.max(1e-9);
        let slowest = count.slowest.as_secs_f64() * 1e3;
        let (mutants, accepted, findings, heap) =
            (count.mutants, count.accepted, count.findings, count.heap_bytes as f64 / f64::from(1 << 20));
        println!("{name:<8} {mutants:>9} {accepted:>9} {findings:>9} {rate:>9.0} {slowest:>13.1} {heap:>11.2}");
    };
    for (reader, count) in mutants.readers().zip(counts) {
        line(reader.name, count, count.time.as_secs_f64());
        all.add(count);
    }
    line("all", &all, elapsed.as_secs_f64());
    println!("{:.1} s, peak memory of the process {} MiB", elapsed.as_secs_f64(), peak_resident_bytes() >> 20);
}
