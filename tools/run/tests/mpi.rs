//! Tests of `mpirun -n N divi-run`, with each implementation of MPI that is installed.
#![cfg(test)]

// Builder of bundles, shared with the runtime's tests.
#[allow(dead_code, reason = "the runtime's tests use more of it")]
#[path = "../../../runtime/tests/runtime/kit.rs"]
mod kit;
#[path = "mpi/launchers.rs"]
mod launchers;

use divi_npy::npy;
use divi_runtime::{
    TensorData,
    bundle::{Buffer, Mode, Port},
};
use kit::{BundleBuilder, Folder, SIZE, call_of, floats};
use launchers::{LIMIT, Mpi, finish, implementations};
use serde_json::Value;
use std::{
    cell::Cell,
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

impl Mpi {
    /// Starts a job with `ranks` ranks.
    fn start(&self, ranks: usize, folder: &Folder, arguments: &[&str]) -> Child {
        self.start_ranks(&[], &[(ranks, folder, arguments)])
    }

    /// Starts a job in which long messages are sent in parts.
    fn start_with_parts(&self, ranks: usize, folder: &Folder, arguments: &[&str]) -> Child {
        let (options, mpirun, binding_of_parts) = (self.options, self.mpirun.clone(), self.binding_of_parts.clone());
        let binding = binding_of_parts.clone();
        Self { mpirun, options, binding, binding_of_parts, is_fault_tolerant: false }.start(ranks, folder, arguments)
    }

    /// Starts a job of groups of ranks with their own bundles and arguments. `options` are those of the launcher.
    fn start_ranks(&self, options: &[&str], groups: &[(usize, &Folder, &[&str])]) -> Child {
        let mut command = Command::new(&self.mpirun);
        command.args(self.options).args(options);
        for (index, (ranks, folder, arguments)) in groups.iter().enumerate() {
            if index > 0 {
                command.arg(":");
            }
            command
                .args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_divi-run")])
                .arg(folder.path())
                .args(*arguments);
        }
        command.env("DIVI_MPI_BINDING", &self.binding);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// Returns the errors of divi-run in the output of a job, sorted.
fn errors(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines: Vec<String> = text
        .lines()
        .filter_map(|line| line.split_once("divi-run: error: "))
        .map(|(_, error)| error.to_owned())
        .collect();
    lines.sort();
    lines
}

/// Builds stages `x * 2 * 2 …` on `hosts` hosts of one device, which return to the first host.
fn chain(mode: Mode, hosts: usize, kernel: &str) -> Folder {
    chain_of(mode, hosts, kernel, SIZE, 0.1)
}

/// As [`chain`], with values of `count` numbers and an input that is full of `number`.
fn chain_of(mode: Mode, hosts: usize, kernel: &str, count: u64, number: f32) -> Folder {
    let nodes: Vec<usize> = (0..hosts).collect();
    written(chain_on(mode, &nodes, kernel, count), count, number)
}

/// Builds stages `x * 2 * 2 …` on the given nodes of one device each, which return to the first node.
fn chain_on(mode: Mode, nodes: &[usize], kernel: &str, count: u64) -> BundleBuilder {
    let mut builder = BundleBuilder::new(mode, nodes.iter().max().map_or(1, |last| last + 1));
    for (node, device) in builder.bundle.devices.iter_mut().enumerate() {
        device.node = Some(node);
    }
    let two = builder.packed(2.0);
    let mut value = builder.value_of("x", 0, floats(&[count]));
    builder.bundle.inputs.push(Port { name: "x".into(), value });
    for (stage, &device) in nodes.iter().enumerate() {
        if builder.bundle.values[value].device != device {
            value = builder.transfer(value, device);
        }
        let result = builder.value_of(&format!("v{stage}"), device, floats(&[count]));
        let product = |result, operand| call_of("scale", &[result, operand, Buffer::Constant(two)], count);
        let calls = match kernel {
            "slow and scale" => vec![
                call_of("slow", &[Buffer::Arena(0), Buffer::Input(0)], count),
                product(Buffer::Output(0), Buffer::Arena(0)),
            ],
            "scale" => vec![product(Buffer::Output(0), Buffer::Input(0))],
            kernel => vec![call_of(kernel, &[Buffer::Output(0), Buffer::Input(0)], count)],
        };
        builder.launch(&format!("stage{stage}"), calls, &[value], &[result]);
        value = result;
    }
    let y = if builder.bundle.values[value].device > 0 { builder.transfer(value, 0) } else { value };
    builder.output("y", y);
    builder
}

/// Writes a bundle with an input that is full of `number`.
fn written(builder: BundleBuilder, count: u64, number: f32) -> Folder {
    let folder = builder.write();
    let input = TensorData::from_f32(&[count], &vec![number; count as usize]).unwrap();
    fs::write(folder.join("x.npy"), npy::write(input.view())).unwrap();
    folder
}

#[test]
fn outputs_are_those_of_one_process() {
    for mpi in implementations() {
        for (hosts, mode) in [(2, Mode::Latency), (2, Mode::Pipeline), (4, Mode::Pipeline)] {
            let folder = chain(mode, hosts, "scale");
            let input = folder.join("x.npy");
            let results = Folder::new();
            let run = |name: &str, command: &mut dyn FnMut(&[&str]) -> Output| {
                let path = results.join(name);
                let out = path.to_str().unwrap();
                let output =
                    command(&["--input", input.to_str().unwrap(), "--output", out, "--repeat", "20", "--warmup", "0"]);
                assert!(output.status.success(), "{output:?}");
                let text = String::from_utf8(output.stdout).unwrap();
                assert_eq!(text.matches("latency   median").count(), 1, "{text}");
                fs::read(path.join("y.npy")).unwrap()
            };
            let alone = run("alone", &mut |arguments| {
                Command::new(env!("CARGO_BIN_EXE_divi-run")).arg(folder.path()).args(arguments).output().unwrap()
            });
            let together = run("together", &mut |arguments| finish(mpi.start(hosts, &folder, arguments)));
            assert!(alone == together, "{hosts} ranks with {}", mpi.mpirun.display());
        }
    }
}

#[test]
fn long_messages_are_sent_in_parts() {
    let folder = chain_of(Mode::Latency, 2, "scale", 4 * SIZE, 0.1);
    let failing = chain_of(Mode::Latency, 2, "root", 4 * SIZE, -1.0);
    let (input, negative) = (folder.join("x.npy"), failing.join("x.npy"));
    for mpi in implementations() {
        let results = Folder::new();
        let arguments = ["--input", input.to_str().unwrap(), "-o", results.path().to_str().unwrap(), "--repeat", "10"];
        assert!(finish(mpi.start_with_parts(2, &folder, &arguments)).status.success());
        let outputs = npy::read(&fs::read(results.join("y.npy")).unwrap()).unwrap().to_f32().unwrap();
        assert_eq!(outputs, [0.4; 4 * SIZE as usize]);
        // A failed stage sends one empty part.
        let output = finish(mpi.start_with_parts(2, &failing, &["--input", negative.to_str().unwrap()]));
        assert!(errors(&output)[0].starts_with("rank 0: stage 'stage0' failed"), "{output:?}");
    }
}

#[test]
fn errors_before_the_first_request_end_all_ranks() {
    let folder = chain(Mode::Latency, 2, "scale");
    let (file, one) = (Folder::new(), chain(Mode::Latency, 1, "scale"));
    fs::write(file.join("out"), "").unwrap();
    let out = file.join("out");
    for mpi in implementations() {
        // Ranks with different options.
        let groups = [(1, &folder, &["--random-inputs"][..]), (1, &folder, &["--random-inputs", "--threads", "1"])];
        let output = finish(mpi.start_ranks(&[], &groups));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let lines = errors(&output);
        for (rank, line) in lines.iter().enumerate() {
            assert!(line.starts_with(&format!("rank {rank}: rank 1 (")), "{lines:?}");
            assert!(line.contains(") has threads per device: 1, and rank 0 has the plan's number: "), "{lines:?}");
        }
        assert_eq!(lines.len(), 2, "{lines:?}");
        // Another number of ranks than hosts.
        let lines = errors(&finish(mpi.start(3, &folder, &["--random-inputs"])));
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("for 2 hosts, and the job has 3 ranks: start one")), "{lines:?}");
        let lines = errors(&finish(mpi.start(2, &one, &["--random-inputs"])));
        assert!(lines.iter().all(|line| line.contains("for 1 host, and the job has 2 ranks: start one")), "{lines:?}");
        // An error of rank 0 only, before and after it has loaded.
        let inputs = errors(&finish(mpi.start(2, &folder, &[])));
        let outputs = errors(&finish(mpi.start(2, &folder, &["--random-inputs", "-o", out.to_str().unwrap()])));
        for (lines, part) in [(inputs, "missing inputs"), (outputs, "/out")] {
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines.iter().all(|line| line.contains(part)), "{lines:?}");
        }
    }
}

/// Traces, profiles and reports have the spans of all ranks, on one clock.
#[test]
fn ranks_are_recorded_on_one_clock() {
    let (folder, out) = (chain(Mode::Pipeline, 3, "scale"), Folder::new());
    for mpi in implementations() {
        let trace = out.join("trace.json").to_str().unwrap().to_owned();
        let options = ["--random-inputs", "--repeat=5", "--warmup=2"];
        let output = finish(mpi.start(3, &folder, &[&options[..], &["--trace", &trace]].concat()));
        assert!(output.status.success(), "{output:?}");
        let trace: Value = serde_json::from_str(&fs::read_to_string(trace).unwrap()).unwrap();
        let drifts: Vec<f64> = trace["otherData"]["clocks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["drift_us"].as_f64().unwrap())
            .collect();
        assert!(drifts.len() == 2 && drifts.iter().all(|drift| drift.abs() < 1e5), "{drifts:?}");
        let events: Vec<&Value> = trace["traceEvents"].as_array().unwrap().iter().collect();
        let spans = |kind: &str| {
            let is_it = |event: &&&Value| event["cat"] == kind && event["pid"] == 1;
            events.iter().filter(is_it).map(|event| (event["args"]["request"].as_u64(), *event)).collect::<Vec<_>>()
        };
        let (stages, transfers) = (spans("stage"), spans("transfer"));
        assert_eq!((stages.len(), transfers.len()), (15, 15), "three stages and messages for each of five requests");
        assert!(transfers.iter().all(|(_, event)| event["args"]["bytes"] == SIZE * 4));
        let lanes: BTreeSet<u64> = stages.iter().map(|(_, event)| event["tid"].as_u64().unwrap()).collect();
        assert_eq!(lanes.len(), 3, "all devices");

        let output = finish(mpi.start(3, &folder, &[&options[..], &["--json"]].concat()));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["devices"].as_array().unwrap().len(), 3);
        let steps = report["steps"].as_array().unwrap();
        assert!(steps.iter().all(|step| step["runs_us"].as_array().unwrap().len() == 5), "{steps:?}");
        let links = report["links"].as_array().unwrap();
        assert_eq!(links.len(), 3, "{links:?}");
        assert!(links.iter().all(|link| link["bytes"] == SIZE * 4 * 5 && link["planned_bytes"] == link["bytes"]));
    }
}

#[test]
fn failures_of_requests_name_the_rank() {
    // The kernel squares, and negative numbers are an error.
    let folder = chain_of(Mode::Latency, 2, "root", SIZE, -1.0);
    let input = folder.join("x.npy");
    for mpi in implementations() {
        let output = finish(mpi.start(2, &folder, &["--input", input.to_str().unwrap()]));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let lines = errors(&output);
        assert!(lines[0].starts_with("rank 0: stage 'stage0' failed in 'stage0 task'"), "{lines:?}");
    }
}

/// Builds a chain of three nodes with stages of 4 ms, which continues after the loss of node 1 or 2.
fn resilient_chain(mode: Mode) -> Folder {
    let mut builder = chain_on(mode, &[0, 1, 2], "slow and scale", 4);
    // The other nodes are numbered without gaps.
    builder.without.push((1, chain_on(mode, &[0, 0, 1], "slow and scale", 4)));
    builder.without.push((2, chain_on(mode, &[0, 1, 1], "slow and scale", 4)));
    written(builder, 4, 0.1)
}

/// Runs a resilient chain under each implementation with fault tolerance, and disturbs its ranks. `check` gets the output of the job,
/// its errors, and the output of the model if it was written.
fn disturb(
    requests: &str,
    options: &[&str],
    disturb: impl Fn(&[u32]),
    check: impl Fn(&Output, &[String], Option<Vec<f32>>),
) {
    let folder = resilient_chain(Mode::Pipeline);
    for mpi in implementations().iter().filter(|mpi| mpi.is_fault_tolerant) {
        let results = Folder::new();
        let (input, output) = (folder.join("x.npy"), results.path().to_str().unwrap().to_owned());
        let arguments = [&["--input", input.to_str().unwrap(), "--repeat", requests, "-o", &output], options].concat();
        let job = mpi.start_ranks(&["--with-ft", "ulfm"], &[(3, &folder, &arguments)]);
        let (output, ranks) = finish_disturbed(job, 3, &disturb);
        assert!(ranks.iter().all(|rank| !is_running(*rank)), "a rank is left: {output:?}");
        let written = fs::read(results.join("y.npy")).ok();
        check(&output, &errors(&output), written.map(|bytes| npy::read(&bytes).unwrap().to_f32().unwrap()));
    }
}

/// Sends a signal to a process.
fn send(signal: &str, process: u32) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

fn wait(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

#[test]
fn requests_survive_the_death_of_a_rank() {
    for victim in [1, 2] {
        let kill = |ranks: &[u32]| {
            wait(300);
            send("-9", ranks[victim]);
        };
        disturb("200", &[], kill, |output, _, written| {
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), written), (Some(0), Some(vec![0.8; 4])), "{text}");
            assert!(text.contains(&format!("divi-run: warning: rank {victim} has failed (host '")), "{text}");
            assert!(text.contains(&format!("with the plan without node {victim}, on 2 ranks; repeated ")), "{text}");
            assert!(text.contains("outputs keep their bits"), "{text}");
        });
    }
}

#[test]
fn a_rank_that_is_slow_is_not_dead() {
    let pause = |ranks: &[u32]| {
        wait(200);
        send("-STOP", ranks[1]);
        wait(1500);
        send("-CONT", ranks[1]);
    };
    disturb("100", &[], pause, |output, errors, written| {
        assert_eq!((output.status.code(), written), (Some(0), Some(vec![0.8; 4])), "{errors:?}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("warning"), "{output:?}");
    });
}

#[test]
fn a_rank_that_stalls_is_dead_on_request() {
    let stop = |ranks: &[u32]| {
        wait(200);
        send("-STOP", ranks[2]);
    };
    disturb("100", &["--stall-timeout", "1"], stop, |output, errors, written| {
        assert_eq!((output.status.code(), written), (Some(0), Some(vec![0.8; 4])), "{errors:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("warning: rank 2 has failed"), "{output:?}");
    });
}

#[test]
fn deaths_without_a_plan_are_one_error_on_each_rank() {
    for (victims, pause, reason) in [
        (&[0][..], 0, "; node 0 has the inputs and outputs, and cannot be replaced"),
        (&[1, 2], 10, "; the bundle has plans for the loss of one node"),
        (&[2, 1], 300, "; the bundle has plans for the loss of one node"),
    ] {
        let kill = |ranks: &[u32]| {
            wait(300);
            for &victim in victims {
                send("-9", ranks[victim]);
                wait(pause);
            }
        };
        disturb("1000", &[], kill, |output, errors, _| {
            assert_eq!((output.status.code(), errors.len()), (Some(1), 3 - victims.len()), "{output:?}");
            for error in errors {
                assert!(error.contains("has failed (host '") && error.contains(", stage 'stage"), "{error}");
                assert!(error.contains(reason), "{error}");
            }
            assert!(victims == [0] || errors[0].ends_with(" lost"), "{errors:?}");
        });
    }
}

/// Calls `disturb` with the ranks of a job when they have loaded, and waits for the job. Returns its output and its ranks.
fn finish_disturbed(mut job: Child, count: usize, disturb: impl Fn(&[u32])) -> (Output, Vec<u32>) {
    let mut stderr = BufReader::new(job.stderr.take().unwrap());
    // Rank 0 prints a line when all ranks have loaded.
    let mut text = String::new();
    while !text.contains(" ranks, ") {
        assert!(stderr.read_line(&mut text).unwrap() > 0, "the job has ended: {text}");
    }
    let ranks = wait_for_ranks(&job, count);
    disturb(&ranks);
    let rest = thread::spawn(move || {
        stderr.read_to_string(&mut text).unwrap();
        text.into_bytes()
    });
    let mut output = finish(job);
    output.stderr = rest.join().unwrap();
    (output, ranks)
}

/// Kills a rank of a pipeline with three ranks, and returns the errors of the others and the exit code of the launcher.
fn kill_rank(mpi: &Mpi, options: &[&str], folder: &Folder, victim: usize) -> (Vec<String>, Option<i32>) {
    let job = mpi.start_ranks(options, &[(3, folder, &["--random-inputs", "--repeat", "1000"])]);
    let killed = Cell::new(None);
    let (output, ranks) = finish_disturbed(job, 3, |ranks| {
        // After the warm-up, all ranks have requests.
        wait(700);
        killed.set(Some(Instant::now()));
        send("-9", ranks[victim]);
    });
    let time = killed.get().map_or(Duration::MAX, |killed| killed.elapsed());
    assert!(time < Duration::from_secs(10), "{time:?}");
    let left: Vec<_> = (0..ranks.len()).filter(|rank| is_running(ranks[*rank])).collect();
    assert!(left.is_empty(), "ranks {left:?} are left after the death of rank {victim}: {output:?}");
    (errors(&output), output.status.code())
}

#[test]
fn the_death_of_a_rank_ends_the_job() {
    // Each stage takes 64 ms.
    let folder = chain(Mode::Pipeline, 3, "slow");
    for mpi in implementations() {
        for victim in [0, 2] {
            let (lines, code) = kill_rank(mpi, &[], &folder, victim);
            // The launcher ends the survivors, with SIGTERM or at once.
            assert_ne!(code, Some(0));
            let expected = "a signal has ended this rank, which a launcher sends if another rank has failed";
            assert!(lines.len() <= 2 && lines.iter().all(|line| line.contains(expected)), "{lines:?}");
        }
    }
    for mpi in implementations().iter().filter(|mpi| mpi.is_fault_tolerant) {
        for victim in [0, 2] {
            let (lines, code) = kill_rank(mpi, &["--with-ft", "ulfm"], &folder, victim);
            // Each survivor names the rank and its stage, and the requests that it was running.
            assert_eq!((lines.len(), code), (2, Some(1)), "{lines:?}");
            assert!(lines.iter().any(|line| line.ends_with(" lost")), "{lines:?}");
            for line in lines {
                assert!(line.contains(&format!(": rank {victim} has failed: ")), "{line}");
                assert!(line.contains(&format!(", stage 'stage{victim}')")), "{line}");
            }
        }
    }
}

fn is_running(process: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits until the ranks of a job run, and returns their processes in the order of their numbers.
fn wait_for_ranks(job: &Child, count: usize) -> Vec<u32> {
    let start = Instant::now();
    loop {
        let mut found: Vec<(usize, u32)> = descendants(job.id())
            .into_iter()
            .filter_map(|process| {
                let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
                let program = fs::read_link(format!("/proc/{process}/exe")).ok()?;
                let rank = environment.split(|&byte| byte == 0).find_map(|variable| {
                    let text = str::from_utf8(variable).ok()?;
                    let value = text.strip_prefix("OMPI_COMM_WORLD_RANK=").or_else(|| text.strip_prefix("PMI_RANK="));
                    value?.parse().ok()
                });
                Some((rank?, process)).filter(|_| program.ends_with("divi-run"))
            })
            .collect();
        found.sort_unstable();
        if found.len() == count {
            return found.into_iter().map(|(_, process)| process).collect();
        }
        assert!(start.elapsed() < LIMIT, "the ranks do not start: {found:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the processes that a process has started, directly or not.
fn descendants(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let mut next = 0;
    while next < all.len() {
        let tasks = fs::read_dir(format!("/proc/{}/task", all[next])).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        next += 1;
    }
    all
}

#[test]
fn a_missing_binding_is_an_error() {
    let folder = chain(Mode::Latency, 2, "scale");
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_divi-run"));
        command.arg(folder.path()).arg("--random-inputs").env_remove("DIVI_MPI_BINDING");
        command.envs(variables.iter().copied()).output().unwrap()
    };
    let missing = run(&[("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("DIVI_MPI_BINDING", "/no/such/file.so")]);
    let error = String::from_utf8(missing.stderr).unwrap();
    assert!(error.starts_with("divi-run: error: cannot load '/no/such/file.so': "), "{error}");
    assert!(error.ends_with("; build it again with tools/mpi-binding\n"), "{error}");
    // The code of a bundle is no binding.
    let code = folder.join(kit::CODE);
    let other = run(&[("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("DIVI_MPI_BINDING", code.to_str().unwrap())]);
    let error = String::from_utf8(other.stderr).unwrap();
    assert!(error.contains("it has no function divi_mpi_binding"), "{error}");
    // One rank needs no MPI, and runs all hosts.
    assert!(run(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]).status.success());
}
