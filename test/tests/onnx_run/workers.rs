//! Cases run in child processes, one a core: whatever a kernel does, it is known in which case, and the others go on.
//!
//! The parent writes a case's name to a child, the child answers with three lines. A child that ends has died of the case.

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

/// Says that a process is a child, and in which folder it writes.
const FOLDER: &str = "DIVI_RUN_FOLDER";

/// Begins what children say, as the test harness says things too.
const PREFIX: &str = "@ ";

/// No case takes nearly as long.
const LIMIT: Duration = Duration::from_secs(60);

/// One device, whatever the machine has.
const SYSTEM: &str = "system.toml";
const ONE_DEVICE: &str = "[[device]]\nid = \"cpu0\"\nkind = \"cpu\"\nmemory = \"4 GiB\"\nthreads = 1\n";

/// What became of cases, in their order. `temporary` is the calling test's `CARGO_TARGET_TMPDIR`.
pub(crate) fn run(names: &[&str], temporary: &str) -> Vec<Outcome> {
    let folder = Path::new(temporary).join(format!("onnx-run-{}", id()));
    fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(SYSTEM), ONE_DEVICE)).expect("the folder is ours");
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
                    let outcome = worker.get_or_insert_with(|| Worker::start(&folder)).ask(name);
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
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    fn start(folder: &Path) -> Self {
        let program = env::current_exe().expect("Linux knows which program this is");
        let mut child = Command::new(program)
            .args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        let questions = child.stdin.take().expect("it is a pipe");
        let answers = BufReader::new(child.stdout.take().expect("it is a pipe"));
        Self { child, questions, answers }
    }

    /// `None` if the child has ended instead of answering.
    fn ask(&mut self, name: &str) -> Option<Outcome> {
        writeln!(self.questions, "{name}").ok()?;
        Some(Outcome { problem: self.answer()?, constants: self.answer()?, loose: self.answer()? })
    }

    /// Nothing is an empty line.
    fn answer(&mut self) -> Option<Option<String>> {
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // The harness leaves its own line open.
            if let Some((_, answer)) = line.trim_end_matches('\n').split_once(PREFIX) {
                return Some(Some(answer.to_owned()).filter(|answer| !answer.is_empty()));
            }
        }
    }

    /// Without questions a child ends by itself.
    fn end(self) -> String {
        let Self { mut child, questions, .. } = self;
        drop(questions);
        child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

/// Answers the parent's questions until there are no more.
pub(crate) fn serve(temporary: &str) {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let cases: BTreeMap<_, _> = node_cases(temporary).into_iter().map(|case| (case.name.clone(), case)).collect();
    let settings = Settings::single(folder.join(SYSTEM).to_str().expect("the target folder has a plain name"));
    let alive = watch();
    for name in io::stdin().lines() {
        let name = name.expect("the parent writes text");
        let outcome = attempt(&cases[&name], &folder.join(&name), &settings);
        for answer in [outcome.problem, outcome.constants, outcome.loose] {
            println!("{PREFIX}{}", answer.unwrap_or_default());
        }
        let _ = alive.send(());
    }
}

/// Ends the process if nothing is sent for too long.
fn watch() -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        loop {
            match receiver.recv_timeout(LIMIT) {
                Ok(()) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    eprintln!("a case takes longer than {LIMIT:?}");
                    abort();
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    });
    sender
}
