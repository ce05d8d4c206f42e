//! `mpirun … divi-profile measure`: measures the links between hosts, one rank each, and describes all of them as a system.
//!
//! Layers: `flow` (messages of one transfer) < `rounds` (all transfers, alone and at once) < `network` (model of the links) <
//! `describe`. `exchange` and `host` compare the ranks before anything is measured.

mod describe;
mod exchange;
mod flow;
mod host;
mod network;
mod report;
mod rounds;

use crate::{
    files,
    measure::{Measure, progress::Progress},
};
use divi_cost::system::System;
use divi_mpi::{Job, Launch};
use divi_runtime::communicator::Communicator;
use exchange::Failure;
use host::Host;
use network::Network;
use rounds::Rounds;
use std::{
    fmt::Display,
    io::{self, Write},
    process,
    sync::Arc,
    thread,
    time::Duration,
};

/// Time that a failed rank gives the others to end with their own errors, before its launcher ends them.
const FAREWELL: Duration = Duration::from_millis(300);

/// This rank of a job that measures its network.
pub(crate) struct Cluster {
    job: Job,
}

/// Prints an error in one piece, so that those of several ranks do not mix.
fn print_error(error: &dyn Display) {
    // Nothing can be done about an error of standard error.
    let _ = io::stderr().write_all(format!("divi-profile: error: {error}\n").as_bytes());
}

impl Cluster {
    /// Joins the job of a launcher; `None` if there is no launcher, or only one rank.
    pub(crate) fn join() -> Result<Option<Self>, String> {
        let Some(launch) = Launch::detect() else { return Ok(None) };
        let job = Job::join(&launch, print_error).map_err(|error| error.to_string())?;
        Ok(job.map(|job| Self { job }))
    }

    /// Measures, and ends the process with an error if a rank has failed.
    pub(crate) fn run(&self, arguments: &Measure) {
        let (error, is_agreed) = match self.measure(arguments) {
            Ok(()) => return self.job.finalize(None),
            Err(Failure::Agreed(error)) => (error, true),
            Err(Failure::Communication(error)) => (error.to_string(), false),
        };
        print_error(&self.job.named(&error));
        // The launcher ends the other ranks when one has ended.
        if is_agreed {
            self.job.finalize(None);
        } else {
            thread::sleep(FAREWELL);
        }
        divi_files::discard_all();
        process::exit(1)
    }

    fn measure(&self, arguments: &Measure) -> Result<(), Failure> {
        let world: Arc<dyn Communicator> = self.job.world().clone();
        let is_first = world.rank() == 0;
        let hosts = exchange::compare(&*world, check(arguments).and_then(|()| Host::of_this_rank()), arguments)?;
        let systems = host::systems(&hosts).map_err(Failure::Agreed)?;
        let progress = Progress::new(arguments.quiet || !is_first, 1);
        progress.say(&report::ranks(&hosts, self.job.world().library()));
        let measured = Rounds::new(&*world, &hosts, &systems, arguments.time_limit).run(&progress);
        let measured = measured.map_err(Failure::Communication)?;
        let network = Network::of(&measured, world.size());
        let written = match (&network, is_first) {
            (Err(error), _) => Err(error.clone()),
            (Ok(_), false) => Ok(()),
            (Ok(network), true) => {
                progress.next();
                report::lines(&measured, network).iter().for_each(|line| progress.say(line));
                let output = arguments.system_out.as_deref();
                let (text, notes) = describe::toml(&hosts, systems, network, output.unwrap_or("-"));
                notes.iter().for_each(|note| progress.say(note));
                drop(progress);
                // Systems have limits, such as the number of devices.
                let read = System::parse(output.unwrap_or("-"), &text).map_err(|errors| errors.to_string());
                read.and_then(|_| files::write(output, &text))
            }
        };
        exchange::all_succeeded(&*world, written)
    }
}

/// Checks the arguments before anything is measured.
fn check(arguments: &Measure) -> Result<(), String> {
    let alone = |what: &str| {
        Err(format!("{what}: under a launcher, measure is for the links between hosts; measure models in one process"))
    };
    let Measure { models, output, system, batch, weights, weights_dir, links, choices, system_out, .. } = arguments;
    if let Some(model) = models.first() {
        return alone(model);
    }
    let given = [
        ("-o", output.is_some()),
        ("--batch", batch.is_some()),
        ("--weights", weights.is_some()),
        ("--weights-dir", weights_dir.is_some()),
        ("--choices", choices.is_some()),
        ("--links=keep", links == "keep"),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return alone(option);
    }
    if system != "host" {
        return Err(format!("--system={system}: under a launcher, each rank describes its own host"));
    }
    let Some(output) = system_out else {
        return Err("under a launcher, measure needs --system-out FILE.toml for the hosts and their network".to_owned());
    };
    files::check_folder(output)
}
