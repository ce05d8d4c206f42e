//! Recovery from the death of a rank: ranks are threads of the test.

use crate::{
    kit::{BundleBuilder, Folder, SIZE, call, full, numbers, options},
    loopback::Loopback,
};
use divi_runtime::{
    Error, Options, Recovery, RecoveryObserver, ResilientRuntime,
    bundle::{Buffer, Bundle, Loss, Mode},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    thread,
};

/// Builds stages `x * 2 * 2 …` on the given nodes of one device each, which return to the first one.
fn chain(nodes: &[usize]) -> BundleBuilder {
    let mut builder = BundleBuilder::new(Mode::Pipeline, nodes.iter().max().map_or(1, |last| last + 1));
    for (node, device) in builder.bundle.devices.iter_mut().enumerate() {
        device.node = Some(node);
    }
    let two = builder.packed(2.0);
    let mut value = builder.input("x", 0);
    for (stage, &device) in nodes.iter().enumerate() {
        if builder.bundle.values[value].device != device {
            value = builder.transfer(value, device);
        }
        let result = builder.value(&format!("v{stage}"), device);
        let product = call("scale", &[Buffer::Output(0), Buffer::Input(0), Buffer::Constant(two)]);
        builder.launch(&format!("stage{stage}"), vec![product], &[value], &[result]);
        value = result;
    }
    let y = if builder.bundle.values[value].device > 0 { builder.transfer(value, 0) } else { value };
    builder.output("y", y);
    builder
}

/// Writes a chain of three nodes with programs for the loss of the second and of the third one.
fn resilient_chain() -> Folder {
    let mut builder = chain(&[0, 1, 2]);
    builder.without = vec![(1, chain(&[0, 0, 1])), (2, chain(&[0, 1, 1]))];
    builder.write()
}

/// Runs requests with different inputs, and kills `victim` before one of them. Returns the results of the ranks and the recoveries.
fn run(ranks: &[Arc<Loopback>], victim: usize, at: usize) -> (Vec<Result<(), Error>>, Vec<Recovery>) {
    let folder = resilient_chain();
    let recoveries = Arc::new(Mutex::new(vec![]));
    let observed = recoveries.clone();
    let observer: RecoveryObserver = Arc::new(move |recovery| observed.lock().unwrap().push(recovery.clone()));
    let load = |rank: usize| {
        let options = Options { communicator: Some(ranks[rank].clone()), ..options() };
        ResilientRuntime::load(folder.path(), options, Some(observer.clone()))
    };
    let first = || {
        let runtime = load(0)?;
        let mut tickets = VecDeque::new();
        for number in 0..60 {
            if number == at {
                ranks[victim].kill();
            }
            if tickets.len() == 3 {
                check(&mut tickets)?;
            }
            let input = Arc::new(full(number as f32));
            tickets.push_back((number, runtime.submit_shared(&[("x", input)])?));
        }
        while !tickets.is_empty() {
            check(&mut tickets)?;
        }
        runtime.close()
    };
    let results = thread::scope(|scope| {
        let serve = |rank: usize| load(rank)?.serve();
        let others: Vec<_> = (1..ranks.len()).map(|rank| scope.spawn(move || serve(rank))).collect();
        let first = first();
        let others = others.into_iter().map(|other| other.join().unwrap());
        std::iter::once(first).chain(others).collect()
    });
    let recoveries = recoveries.lock().unwrap().clone();
    (results, recoveries)
}

/// Checks the outputs of the oldest request.
fn check(tickets: &mut VecDeque<(usize, divi_runtime::ResilientTicket<'_>)>) -> Result<(), Error> {
    let (number, ticket) = tickets.pop_front().unwrap();
    assert_eq!(numbers(&ticket.wait()?, "y"), [8.0 * number as f32; SIZE as usize], "request {number}");
    Ok(())
}

#[test]
fn all_requests_are_answered_after_the_death_of_a_rank() {
    for is_rendezvous in [false, true] {
        for (victim, at) in [(1, 0), (1, 7), (2, 30), (2, 59)] {
            let ranks = Loopback::recoverable_job(3, is_rendezvous);
            let (results, recoveries) = run(&ranks, victim, at);
            for (rank, result) in results.iter().enumerate().filter(|(rank, _)| *rank != victim) {
                assert!(result.is_ok(), "rank {rank} of {victim}, {at}: {result:?}");
            }
            assert_eq!(recoveries.len(), 1);
            assert_eq!((recoveries[0].node, recoveries[0].ranks), (victim, 2));
            assert!(recoveries[0].tasks_computed_otherwise.is_empty());
        }
    }
}

#[test]
fn the_death_of_rank_0_is_an_error_on_all_others() {
    let ranks = Loopback::recoverable_job(3, false);
    let (results, _) = run(&ranks, 0, 20);
    for result in &results[1..] {
        let error = result.as_ref().unwrap_err().to_string();
        assert!(error.starts_with("rank 0 has failed (host '"), "{error}");
        assert!(error.contains("; node 0 has the inputs and outputs, and cannot be replaced"), "{error}");
    }
}

#[test]
fn ranks_without_recovery_end_with_an_error() {
    let ranks = Loopback::job(3, false);
    let (results, recoveries) = run(&ranks, 2, 20);
    assert!(recoveries.is_empty());
    for result in &results[..2] {
        assert!(matches!(result, Err(Error::Lost { is_death: true, .. })), "{result:?}");
    }
}

#[test]
fn invalid_lists_of_losses_are_rejected() {
    let folder = chain(&[0, 1]).write();
    let error = |losses: &[(usize, Option<&str>, Option<&str>)]| {
        let mut bundle = Bundle::read(folder.path()).unwrap();
        let text = |text: Option<&str>| text.map(str::to_owned);
        let loss = |&(node, file, reason): &(usize, Option<&str>, Option<&str>)| Loss {
            node,
            file: text(file),
            reason: text(reason),
        };
        bundle.losses = losses.iter().map(loss).collect();
        bundle.validate().unwrap_err()
    };
    assert_eq!(error(&[(0, None, Some("r"))]), "loss of node 0: nodes that can be lost are 1 to 1");
    assert_eq!(error(&[(2, None, Some("r"))]), "loss of node 2: nodes that can be lost are 1 to 1");
    assert_eq!(error(&[(1, None, None)]), "loss of node 1: expected either 'file' or 'reason'");
    assert_eq!(error(&[(1, Some("a.json"), None)]), "loss of node 1: 'a.json' is not one of the files");
    assert_eq!(error(&[(1, None, Some("r")), (1, None, Some("s"))]), "loss of node 1: it is listed twice");
}
