//! Plans for several hosts: ranks are threads of the test, and every test that succeeds compares its outputs with those of one
//! process.

use crate::{
    kit::{BundleBuilder, Folder, SIZE, call, full, is_under_valgrind, numbers, options, scale_and_add, two_devices},
    loopback::Loopback,
};
use divi_runtime::{
    Options, Recording, Runtime,
    bundle::{Action, Buffer, Mode, Source},
    prepare::Expression,
    refuse,
};
use std::{collections::VecDeque, sync::Arc, thread, time::Duration};

/// Assigns devices to hosts.
fn on_hosts(mut builder: BundleBuilder, hosts: &[usize]) -> Folder {
    for (device, &host) in builder.bundle.devices.iter_mut().zip(hosts) {
        device.node = Some(host);
    }
    builder.write()
}

/// Builds a chain of stages `x * 2 * 2 …`, one per device, which returns to the first device.
fn chain(mode: Mode, devices: usize) -> BundleBuilder {
    let mut builder = BundleBuilder::new(mode, devices);
    let two = builder.packed(2.0);
    let mut value = builder.input("x", 0);
    for device in 0..devices {
        if device > 0 {
            value = builder.transfer(value, device);
        }
        let result = builder.value(&format!("v{device}"), device);
        let product = call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(two)]);
        builder.launch(&format!("stage{device}"), vec![product], &[value], &[result]);
        value = result;
    }
    let y = builder.transfer(value, 0);
    builder.output("y", y);
    builder
}

/// Runs `first` on rank 0 and serves on the others. Returns the results of all ranks.
pub(crate) fn launch(
    folder: &Folder,
    ranks: &[Arc<Loopback>],
    options: impl Fn(usize) -> Options + Sync,
    first: impl FnOnce(&Runtime) -> Result<(), String> + Send,
) -> Vec<Result<(), String>> {
    let load = |rank: usize| {
        let options = Options { communicator: Some(ranks[rank].clone()), ..options(rank) };
        Runtime::load(folder.path(), options).map_err(|error| error.to_string())
    };
    thread::scope(|scope| {
        let serve = |rank: usize| load(rank).and_then(|runtime| runtime.serve().map_err(|error| error.to_string()));
        let others: Vec<_> = (1..ranks.len()).map(|rank| scope.spawn(move || serve(rank))).collect();
        let first = load(0).and_then(|runtime| first(&runtime));
        let others = others.into_iter().map(|other| other.join().unwrap());
        std::iter::once(first).chain(others).collect()
    })
}

/// Runs requests with as many in flight as the runtime admits, and returns their outputs.
fn stream(runtime: &Runtime, count: usize) -> Result<Vec<Vec<f32>>, String> {
    let mut tickets = VecDeque::new();
    let mut outputs = vec![];
    for number in 0..count {
        if tickets.len() == runtime.in_flight() {
            let ticket: divi_runtime::Ticket = tickets.pop_front().unwrap();
            outputs.push(numbers(&ticket.wait().map_err(|error| error.to_string())?, "y"));
        }
        tickets.push_back(runtime.submit(&[("x", full(number as f32 / 3.0).view())]).map_err(|e| e.to_string())?);
    }
    for ticket in tickets {
        outputs.push(numbers(&ticket.wait().map_err(|error| error.to_string())?, "y"));
    }
    Ok(outputs)
}

/// Checks that several ranks compute what one process computes.
fn compare(folder: &Folder, size: usize, count: usize) {
    let count = if is_under_valgrind() { count / 4 } else { count };
    let expected = stream(&Runtime::load(folder.path(), options()).unwrap(), count).unwrap();
    for is_rendezvous in [false, true] {
        for spin in [false, true] {
            let ranks = Loopback::job(size, is_rendezvous);
            let options = |_| Options { spin: Some(spin), ..options() };
            let results = launch(folder, &ranks, options, |runtime| {
                assert_eq!(stream(runtime, count)?, expected);
                Ok(())
            });
            assert_eq!(results, vec![Ok(()); size]);
            assert!(ranks.iter().all(|rank| rank.is_drained()), "a message was not received");
        }
    }
}

#[test]
fn ranks_compute_what_one_process_computes() {
    for mode in [Mode::Latency, Mode::Pipeline] {
        compare(&on_hosts(two_devices(mode, false), &[0, 1]), 2, 20);
        compare(&on_hosts(chain(mode, 4), &[0, 1, 2, 3]), 4, 20);
        // Two devices per host, in another order than that of the hosts.
        compare(&on_hosts(chain(mode, 4), &[0, 1, 1, 0]), 2, 20);
        // A host without steps.
        compare(&on_hosts(chain(mode, 2), &[0, 0]), 1, 5);
    }
}

#[test]
fn queued_inputs_are_divided_among_hosts() {
    // Two inputs: a launch for each of them, on different hosts.
    let mut builder = BundleBuilder::new(Mode::Batch, 3);
    builder.bundle.objective.inputs = 2;
    let two = builder.packed(2.0);
    let x = builder.input("x", 0);
    let mut halves = vec![];
    for device in [1, 2] {
        let part = builder.value_of("part", 0, crate::kit::floats(&[SIZE / 2]));
        let positions = vec![device as u64 - 1];
        builder.step(Action::Slice { input: x, output: part, positions, of: 2, axis: 0, outer: 1 });
        let moved = builder.transfer(part, device);
        let result = builder.value_of("result", device, crate::kit::floats(&[SIZE / 2]));
        let product =
            crate::kit::call_of("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(two)], SIZE / 2);
        builder.launch(&format!("stage{device}"), vec![product], &[moved], &[result]);
        halves.push(builder.transfer(result, 0));
    }
    let y = builder.value("y", 0);
    builder.step(Action::Gather { inputs: halves, output: y, of: vec![1, 1], axis: 0, outer: 1 });
    builder.output("y", y);
    compare(&on_hosts(builder, &[0, 1, 2]), 3, 10);
}

#[test]
fn a_rank_loads_its_own_part() {
    let folder = on_hosts(chain(Mode::Pipeline, 3), &[0, 1, 2]);
    let ranks = Loopback::job(3, false);
    let results = launch(
        &folder,
        &ranks,
        |_| options(),
        |runtime| {
            let bundle = runtime.bundle();
            let stages: Vec<&str> = bundle.stages.iter().map(|stage| &stage.name[..]).collect();
            assert_eq!(stages, ["stage0"]);
            assert_eq!(bundle.devices.len(), 1);
            // Requests of the whole pipeline, not of the only stage here.
            assert_eq!(runtime.in_flight(), 7, "one, one per stage, and one per pair of hosts");
            runtime.record(Recording::Steps);
            stream(runtime, 1)?;
            let (spans, dropped, clocks) = runtime.take_spans_and_clocks();
            assert_eq!(dropped, 0);
            let steps: Vec<usize> = spans.iter().filter(|span| span.task.is_none()).map(|span| span.step).collect();
            assert_eq!(steps, [0, 1, 2, 3, 4, 5], "a launch and a message of each rank, in the order of the plan");
            assert_eq!(clocks.iter().map(|clock| clock.rank).collect::<Vec<_>>(), [1, 2]);
            Ok(())
        },
    );
    assert_eq!(results, vec![Ok(()); 3]);
}

#[test]
fn hosts_read_parts_of_the_models_files() {
    // Each host computes its factor from its own part of a file, whose hash covers both parts.
    let folder = Folder::new();
    std::fs::write(folder.join("model.bin"), [4.0_f32, 5.0].map(f32::to_le_bytes).concat()).unwrap();
    let mut builder = chain(Mode::Latency, 2);
    builder.bundle.model_folder = ".".into();
    for device in 0..2 {
        let part = Expression::File { path: "model.bin".into(), offset: 4 * device as u64, length: 4 };
        let factor = builder.constant(4, Source::Evaluated(Expression::Concat(vec![part])));
        builder.bundle.stages[device].calls[0].buffers[2] = Buffer::Constant(factor);
        builder.bundle.devices[device].node = Some(device);
    }
    let folder = builder.write_into(folder);
    compare(&folder, 2, 5);
    std::fs::write(folder.join("model.bin"), [4.0_f32, 6.0].map(f32::to_le_bytes).concat()).unwrap();
    let results = launch(&folder, &Loopback::job(2, false), |_| options(), |_| Ok(()));
    assert!(
        results.iter().all(|result| result.as_ref().unwrap_err().contains("was modified or damaged")),
        "{results:?}"
    );
}

#[test]
fn failures_of_a_stage_end_one_request() {
    // The kernel squares, and negative numbers are an error.
    let mut builder = BundleBuilder::new(Mode::Pipeline, 3);
    let mut value = builder.input("x", 0);
    for device in [1, 2] {
        value = builder.transfer(value, device);
        let result = builder.value("square", device);
        let calls = vec![call("root", &[Buffer::Output(0), Buffer::Input(0)])];
        builder.launch(&format!("stage{device}"), calls, &[value], &[result]);
        value = result;
    }
    let y = builder.transfer(value, 0);
    builder.output("y", y);
    let folder = on_hosts(builder, &[0, 1, 2]);
    let fails = |runtime: &Runtime| runtime.run(&[("x", full(-1.0).view())]).unwrap_err().to_string();
    let alone = fails(&Runtime::load(folder.path(), options()).unwrap());
    for is_rendezvous in [false, true] {
        let ranks = Loopback::job(3, is_rendezvous);
        let results = launch(
            &folder,
            &ranks,
            |_| options(),
            |runtime| {
                for _ in 0..3 {
                    // The third stage does not run, and the first error is reported.
                    assert_eq!(fails(runtime), format!("rank 1: {alone}"));
                    let outputs = runtime.run(&[("x", full(2.0).view())]).unwrap();
                    assert_eq!(numbers(&outputs, "y"), [16.0; SIZE as usize]);
                }
                Ok(())
            },
        );
        assert_eq!(results, vec![Ok(()); 3]);
    }
}

#[test]
fn requests_are_cancelled_on_all_ranks() {
    let folder = on_hosts(two_devices(Mode::Pipeline, true), &[0, 1]);
    let results = launch(
        &folder,
        &Loopback::job(2, false),
        |_| options(),
        |runtime| {
            let ticket = runtime.submit(&[("x", full(1.0).view())]).unwrap();
            ticket.cancel();
            assert_eq!(ticket.wait().unwrap_err().to_string(), "the request was cancelled");
            let outputs = runtime.run(&[("x", full(1.0).view())]).unwrap();
            assert_eq!(numbers(&outputs, "y"), [20.0; SIZE as usize]);
            Ok(())
        },
    );
    assert_eq!(results, vec![Ok(()); 2]);
}

#[test]
fn the_death_of_a_rank_ends_all_ranks() {
    let folder = on_hosts(chain(Mode::Pipeline, 3), &[0, 1, 2]);
    let ranks = Loopback::job(3, false);
    let results = launch(
        &folder,
        &ranks,
        |_| options(),
        |runtime| {
            stream(runtime, 3)?;
            ranks[2].kill();
            let error = runtime.run(&[("x", full(1.0).view())]).unwrap_err().to_string();
            // The next request fails at once.
            assert!(runtime.submit(&[("x", full(1.0).view())]).unwrap().wait().is_err());
            Err(error)
        },
    );
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let start = format!("rank 2 has failed: it has left (host '{}', stage 'stage2')", host.trim());
    let first = results[0].as_ref().unwrap_err();
    assert!(first.starts_with(&start), "{first}");
    assert!(results[1].is_err() && results[2].is_err(), "{results:?}");
}

#[test]
fn a_lying_rank_ends_all_ranks() {
    let folder = on_hosts(chain(Mode::Latency, 2), &[0, 1]);
    // Tags 1 and 2 are those of the messages to rank 1 and back.
    let begin = {
        let mut bytes = [0; 512];
        bytes[0] = 1;
        bytes
    };
    let cases: &[(u32, &[u8], &str)] = &[
        (99, &[1], "rank 0 has sent an invalid message: no step expects its tag 99"),
        (2, &[1], "rank 0 has sent an invalid message: no step expects its tag 2"),
        (1, &[1], "rank 0 has sent an invalid message: it has 1 bytes instead of 256"),
        (1, &[1; 300], "rank 0 has sent an invalid message: it has 300 bytes"),
        (0, &[1], "rank 0 has sent an invalid message: it has 1 bytes instead of 512"),
        (0, &[77; 512], "rank 0 has sent an invalid message: "),
        (
            0,
            &[&begin[..16], &[9; 8], &[0; 488]].concat(),
            "rank 0 has sent an invalid message: it begins request 0 in slot ",
        ),
    ];
    for (tag, bytes, expected) in cases {
        let ranks = Loopback::job(2, false);
        let results = launch(
            &folder,
            &ranks,
            |_| options(),
            |runtime| {
                ranks[0].inject(1, *tag, bytes);
                // The other rank is waiting, and finds the message.
                for _ in 0..200 {
                    let outputs = runtime.run(&[("x", full(1.0).view())]);
                    outputs.map_err(|error| error.to_string())?;
                    thread::sleep(Duration::from_millis(10));
                }
                Ok(())
            },
        );
        let second = results[1].as_ref().unwrap_err();
        assert!(second.starts_with(expected), "{second}");
        let first = results[0].as_ref().unwrap_err();
        assert!(first.starts_with(expected), "{first}");
    }
}

#[test]
fn an_error_of_rank_0_ends_all_ranks() {
    let folder = on_hosts(chain(Mode::Latency, 2), &[0, 1]);
    let results = launch(
        &folder,
        &Loopback::job(2, false),
        |_| options(),
        |runtime| runtime.fail("no such file 'x.npy'").map_err(|error| error.to_string()),
    );
    assert_eq!(results, vec![Err("rank 0: no such file 'x.npy'".to_owned()); 2]);
}

#[test]
fn ranks_agree_before_they_load() {
    let (folder, other) = (on_hosts(chain(Mode::Latency, 2), &[0, 1]), on_hosts(chain(Mode::Pipeline, 2), &[0, 1]));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim();
    let all = |size: usize, load: &(dyn Fn(usize, Options) -> Result<(), String> + Sync)| -> Vec<String> {
        let ranks = Loopback::job(size, false);
        thread::scope(|scope| {
            let one = |rank: usize| load(rank, Options { communicator: Some(ranks[rank].clone()), ..options() });
            let threads: Vec<_> = (0..size).map(|rank| scope.spawn(move || one(rank).unwrap_err())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    };
    let load = |folder: &Folder, options: Options| match Runtime::load(folder.path(), options) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    // Another bundle.
    for error in all(2, &|rank, options| load(if rank == 1 { &other } else { &folder }, options)) {
        assert!(error.starts_with(&format!("rank 1 ({host}) has a bundle with SHA-256 ")), "{error}");
        assert!(error.ends_with(": give all ranks the same bundle"), "{error}");
    }
    // Other options.
    for error in all(2, &|rank, options| load(&folder, Options { threads: (rank == 1).then_some(2), ..options })) {
        let expected = format!(
            "rank 1 ({host}) has threads per device: 2, and rank 0 has the plan's number: start all ranks with the same options"
        );
        assert_eq!(error, expected);
    }
    // Another number of ranks.
    for error in all(3, &|_, options| load(&folder, options)) {
        assert!(
            error.contains("the bundle is for 2 hosts, and the job has 3 ranks: start one rank per host"),
            "{error}"
        );
    }
    let one = scale_and_add().write();
    for error in all(2, &|_, options| load(&one, options)) {
        assert!(
            error.contains("the bundle is for 1 host, and the job has 2 ranks: start one rank per host"),
            "{error}"
        );
    }
    // A bundle that one rank cannot read, and one that one rank cannot run.
    let errors =
        all(2, &|rank, options| if rank == 1 { load(&Folder::new(), options) } else { load(&folder, options) });
    assert!(errors[0].starts_with("rank 1: cannot read '"), "{errors:?}");
    assert!(errors[1].starts_with("cannot read '"), "{errors:?}");
    let mut builder = chain(Mode::Latency, 2);
    builder.bundle.executables[0].target["features"] = serde_json::json!(["no_such_feature"]);
    builder.bundle.executables.push(chain(Mode::Latency, 1).bundle.executables.remove(0));
    builder.bundle.stages[0].executable = 1;
    let folder = on_hosts(builder, &[0, 1]);
    let errors = all(2, &|_, options| load(&folder, options));
    let missing = "the bundle is for x86-64-v3, and this processor lacks no_such_feature: compile the model for this \
                   processor";
    assert_eq!(errors, [format!("rank 1: {missing} (on host '{host}')"), missing.to_owned()]);
    // An error that precedes the load.
    let errors = all(2, &|rank, options| match rank {
        0 => load(&folder, options),
        _ => refuse(&*options.communicator.unwrap(), "no output folder")
            .map_err(|e| e.to_string())
            .and(Err("own".into())),
    });
    assert_eq!(errors, [format!("rank 1: no output folder (on host '{host}')"), "own".to_owned()]);
}

#[test]
fn inputs_and_outputs_are_at_rank_0() {
    let folder = on_hosts(chain(Mode::Latency, 2), &[1, 0]);
    let results = launch(&folder, &Loopback::job(2, false), |_| options(), |_| Ok(()));
    let expected = "input 'x' is on device 'cpu0' of node 1, and inputs and outputs are at rank 0: describe that node first in \
                    the system description";
    assert!(results.iter().all(|result| result.as_ref().unwrap_err().contains(expected)), "{results:?}");
}

#[test]
fn requests_start_at_rank_0() {
    let folder = on_hosts(chain(Mode::Latency, 2), &[0, 1]);
    let ranks = Loopback::job(2, false);
    let load = |rank: usize| {
        let options = Options { communicator: Some(ranks[rank].clone()), ..options() };
        Runtime::load(folder.path(), options).unwrap()
    };
    thread::scope(|scope| {
        let second = scope.spawn(|| {
            let runtime = load(1);
            assert_eq!(runtime.rank(), 1);
            assert_eq!(runtime.run(&[]).unwrap_err().to_string(), "requests start at rank 0, and this is rank 1");
            runtime.serve().unwrap();
        });
        drop(load(0));
        second.join().unwrap();
    });
}

#[test]
fn too_many_requests_in_flight_are_an_error() {
    let folder = on_hosts(chain(Mode::Pipeline, 2), &[0, 1]);
    let options = |_| Options { in_flight: Some(513), ..options() };
    let results = launch(&folder, &Loopback::job(2, false), options, |_| Ok(()));
    let expected = "message passing failed: 513 requests in flight with 2 messages each take 1026 tags, and the library has \
                    1024: allow fewer requests, with --in-flight";
    assert_eq!(results, vec![Err(expected.to_owned()); 2]);
}
