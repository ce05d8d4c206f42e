//! Runs cases in child processes, one per core, so that a crash is attributed to its case and does not affect the others.
//!
//! The parent sends a case's name to a child, which responds with three lines. A child that exits has crashed on the case.

use crate::case::{Outcome, attempt};
use divi_test::{compiled::Settings, node_cases::node_cases};
use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio, abort, id},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// Environment variable of child processes: the folder for their output.
const FOLDER: &str = "DIVI_RUN_FOLDER";

/// Prefix of responses, which distinguishes them from the output of the test harness.
const PREFIX: &str = "@ ";

/// Time limit of a case, far above the actual time.
const LIMIT: Duration = Duration::from_secs(60);

/// System with one device, independent of the machine.
const SYSTEM: &str = "system.toml";
const ONE_DEVICE: &str = "[[device]]\nid = \"cpu0\"\nkind = \"cpu\"\nmemory = \"4 GiB\"\nthreads = 1\n";

/// Runs cases; returns the results in order. `temporary` is the calling test's `CARGO_TARGET_TMPDIR`.
pub(crate) fn run(names: &[&str], temporary: &str) -> Vec<Outcome> {
    let folder = Path::new(temporary).join(format!("onnx-run-{}", id()));
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join(SYSTEM), ONE_DEVICE))
        .expect("the folder is writable");
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![Outcome::default(); names.len()]);
    let processes = thread::available_parallelism().map_or(1, |count| count.get()).min(names.len().max(1));
    thread::scope(|scope| {
        for _ in 0..processes {
            scope.spawn(|| {
                let mut worker: Option<Worker> = None;
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(name) = names.get(index) else { break };
                    let outcome = worker.get_or_insert_with(|| Worker::start(&folder)).request(name);
                    let outcome = outcome.unwrap_or_else(|| {
                        let end = worker.take().map(Worker::end).unwrap_or_default();
                        Outcome { problem: Some(format!("the process ended: {end}")), ..Outcome::default() }
                    });
                    outcomes.lock().expect("no thread panics")[index] = outcome;
                }
                worker.map(Worker::end);
            });
        }
    });
    let _ = fs::remove_dir_all(folder);
    outcomes.into_inner().expect("no thread panicked")
}

struct Worker {
    child: Child,
    requests: ChildStdin,
    responses: BufReader<ChildStdout>,
}

impl Worker {
    fn start(folder: &Path) -> Self {
        let program = env::current_exe().expect("the path of this executable is known");
        let mut child = Command::new(program)
            .args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this executable can be started");
        let requests = child.stdin.take().expect("stdin is a pipe");
        let responses = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        Self { child, requests, responses }
    }

    /// Runs a case; `None` if the child exited without a response.
    fn request(&mut self, name: &str) -> Option<Outcome> {
        writeln!(self.requests, "{name}").ok()?;
        Some(Outcome { problem: self.response()?, constants: self.response()?, loose: self.response()? })
    }

    /// Reads one line of a response; an empty line is `Some(None)`, the end of the stream `None`.
    fn response(&mut self) -> Option<Option<String>> {
        loop {
            let mut line = String::new();
            if self.responses.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // The harness does not terminate its own line.
            if let Some((_, response)) = line.trim_end_matches('\n').split_once(PREFIX) {
                return Some(Some(response.to_owned()).filter(|response| !response.is_empty()));
            }
        }
    }

    /// Closes the child's input, which makes it exit; returns its status.
    fn end(self) -> String {
        let Self { mut child, requests, .. } = self;
        drop(requests);
        child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

/// Serves requests of the parent until its input ends.
pub(crate) fn serve(temporary: &str) {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let cases: BTreeMap<_, _> = node_cases(temporary).into_iter().map(|case| (case.name.clone(), case)).collect();
    let settings = Settings::single(folder.join(SYSTEM).to_str().expect("the target folder's name is UTF-8"));
    let alive = watchdog();
    for name in io::stdin().lines() {
        let name = name.expect("requests are UTF-8");
        let outcome = attempt(&cases[&name], &folder.join(&name), &settings);
        for response in [outcome.problem, outcome.constants, outcome.loose] {
            println!("{PREFIX}{}", response.unwrap_or_default());
        }
        let _ = alive.send(());
    }
}

/// Starts a thread that aborts the process if nothing is sent within the time limit.
fn watchdog() -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        loop {
            match receiver.recv_timeout(LIMIT) {
                Ok(()) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    eprintln!("a case exceeds the time limit of {LIMIT:?}");
                    abort();
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    });
    sender
}
