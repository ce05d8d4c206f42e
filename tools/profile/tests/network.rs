//! Tests of `mpirun -n N divi-profile measure`, with each implementation of MPI that is installed.
#![cfg(test)]

// Implementations of MPI, shared with the tests of divi-run.
#[allow(dead_code, reason = "the tests of divi-run use more of it")]
#[path = "../../run/tests/mpi/launchers.rs"]
mod launchers;

use divi_cost::system::{Contention, System};
use launchers::{Mpi, finish, implementations};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// Returns an empty folder that no other test writes.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("network-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a job of ranks with these options each, in a folder.
fn run(mpi: &Mpi, folder: &Path, options: &[&[&str]]) -> Output {
    let mut command = Command::new(&mpi.mpirun);
    command.args(mpi.options).current_dir(folder);
    for (rank, options) in options.iter().enumerate() {
        let separator: &[&str] = if rank > 0 { &[":"] } else { &[] };
        command.args(separator).args(["-n", "1", env!("CARGO_BIN_EXE_divi-profile"), "measure"]).args(*options);
    }
    command.env("DIVI_MPI_BINDING", &mpi.binding).stdin(Stdio::null());
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Returns the errors of the ranks, sorted.
fn errors(output: &Output) -> Vec<String> {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    let errors = text.lines().filter_map(|line| line.split_once("divi-profile: error: "));
    let mut lines: Vec<String> = errors.map(|(_, error)| error.to_owned()).collect();
    lines.sort();
    lines
}

#[test]
fn networks_are_measured_and_described() {
    for mpi in implementations() {
        for size in [2, 4] {
            let folder = folder("measured");
            let options: &[&str] = &["--system-out", "cluster.toml", "--time-limit=0"];
            let output = run(mpi, &folder, &vec![options; size]);
            assert!(output.status.success(), "{output:?}");
            let report = String::from_utf8_lossy(&output.stderr);
            let shared =
                if size == 4 { "between two pairs of nodes at once take " } else { "both directions at once take " };
            for part in [&format!("{size} ranks on 1 host, "), "network: ", " GB/s after ", "67108864", shared] {
                assert!(report.contains(part), "{report}");
            }
            let text = fs::read_to_string(folder.join("cluster.toml")).unwrap();
            let system = System::parse("cluster.toml", &text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            assert!(text.contains("[[node]]\nid = \"n\"\n") && text.contains("\n[network]\n"), "{text}");
            let nodes: Vec<_> = system.devices.iter().filter(|device| device.id.ends_with("_cpu0")).collect();
            let expected: Vec<String> = (0..size).map(|rank| format!("n{rank}")).collect();
            assert_eq!(nodes.iter().map(|device| device.node.clone().unwrap()).collect::<Vec<_>>(), expected);
            for (from, to) in (0..size).flat_map(|from| (0..size).map(move |to| (from, to))).filter(|(a, b)| a != b) {
                let index = |rank: usize| system.devices.iter().position(|device| device.id == nodes[rank].id).unwrap();
                let link = system.link(index(from), index(to)).unwrap();
                // Memory of one machine, with processes that wait for each other.
                assert!(link.latency.micros() < 1e5 && (1e6..1e12).contains(&link.bandwidth.0), "{link:?}");
            }
            assert_eq!(system.contention == Contention::Shared, text.contains("contention = \"shared\""));
            let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names, ["cluster.toml"]);
        }
    }
}

#[test]
fn errors_end_all_ranks_with_one_message() {
    let folder = folder("errors");
    let good: &[&str] = &["--system-out", "c.toml"];
    for mpi in implementations() {
        let fails = |options: &[&[&str]], expected: &str| {
            let lines = errors(&run(mpi, &folder, options));
            assert_eq!(lines.len(), options.len(), "{lines:?}");
            for (rank, line) in lines.iter().enumerate() {
                assert!(line.starts_with(&format!("rank {rank}: ")) && line.contains(expected), "{lines:?}");
            }
        };
        fails(&[&[], &[]], "rank 0: under a launcher, measure needs --system-out FILE.toml");
        fails(&[good, &["--system-out", "no/c.toml"]], "rank 1: no/c.toml: 'no' is not a folder");
        fails(
            &[good, &["a.onnx", "--system-out", "c.toml"]],
            "rank 1: a.onnx: under a launcher, measure is for the links",
        );
        fails(&[good, good, &["--system-out=c.toml", "-o", "p.json"]], "rank 2: -o: under a launcher, measure is for");
        fails(
            &[&["--system=cpu-2", "--system-out=c.toml"], good],
            "rank 0: --system=cpu-2: under a launcher, each rank",
        );
        fails(
            &[good, &["--system-out=c.toml", "-q"]],
            " has options --system-out=c.toml --time-limit=20 -q, and rank 0 has ",
        );
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn outputs_that_cannot_be_written_end_all_ranks() {
    let folder = folder("unwritable");
    fs::create_dir(folder.join("c.toml")).unwrap();
    for mpi in implementations() {
        let options: &[&str] = &["--system-out=c.toml", "--time-limit=0", "-q"];
        let lines = errors(&run(mpi, &folder, &[options, options]));
        assert!(lines.len() == 2 && lines.iter().all(|line| line.contains("rank 0: c.toml: ")), "{lines:?}");
    }
}
