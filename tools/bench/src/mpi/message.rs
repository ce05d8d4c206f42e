//! Round trips of a tensor of 1 MiB between two ranks, compared with those of a program that only passes messages.

use super::Mpi;
use crate::{
    run::{
        build::{output_of, program, write},
        launch::launch,
    },
    runs::median,
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// An operator on the second of two nodes, so that its operand and its result are messages of 1 MiB.
const MODULE: &str = include_str!("message.mlir");

/// Program that prints the median time of a round trip of 1 MiB in microseconds.
const PING_PONG: &str = include_str!("ping_pong.c");

pub(super) fn message(settings: &Mpi) -> Result<(), String> {
    let (bundle, ping_pong) = (bundle(settings)?, ping_pong(settings)?);
    let options = ["--repeat=2000".to_owned()];
    let (mut rounds, mut own, mut plain) = (vec![], vec![], vec![]);
    for _ in 0..settings.rounds {
        let latency = "/latency_us/median";
        let here = launch(&bundle, &options)?.number(latency)?;
        // The time of the operator, and of a request without messages, is not one of messages.
        let trip = settings.launch(2, &bundle, &options)?.number(latency)? - here;
        let text = output_of(settings.on_ranks(2, &ping_pong), "the ping-pong")?;
        let ping: f64 = text.trim().parse().map_err(|_| format!("the ping-pong printed '{text}'"))?;
        own.push(trip / 2.0);
        plain.push(ping / 2.0);
        rounds.push(trip / ping);
    }
    println!("a tensor of 1 MiB from one rank to the other; medians of {} rounds of 2000 round trips", settings.rounds);
    println!(
        "divi-run {:.1} µs (beyond the latency in one process), MPI_Send and MPI_Recv {:.1} µs, ratio {:.2}x",
        median(&own),
        median(&plain),
        median(&rounds)
    );
    Ok(())
}

fn bundle(settings: &Mpi) -> Result<PathBuf, String> {
    if let Some(folder) = &settings.bundles {
        return Ok(folder.join("message"));
    }
    let output = write("message.mlir", MODULE)?.with_file_name("message");
    let mut command = Command::new(program("divi-opt")?);
    command.arg(output.with_extension("mlir")).args([
        "-q",
        "--system=cpu-2x1",
        "--pin=relu=n1_cpu",
        "--emit=bundle",
        "-o",
    ]);
    command.arg(&output);
    output_of(command, "message")?;
    Ok(output)
}

fn ping_pong(settings: &Mpi) -> Result<PathBuf, String> {
    let source = write("ping_pong.c", PING_PONG)?;
    let output = source.with_extension("");
    let mut command = Command::new(settings.mpicc());
    command.arg("-O2").arg(&source).arg("-o").arg(&output);
    output_of(command, "the ping-pong")?;
    std::fs::canonicalize(Path::new(&output)).map_err(|error| error.to_string())
}
