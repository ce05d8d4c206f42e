//! Libraries, kernels, and which of them is the fastest.

use super::kit::{SIZE, ask, change, product};
use crate::{
    Options,
    drivers::cuda::{
        launch::{Library, LibraryCall, Then},
        stub::{Stub, square},
    },
};
use std::fs;

#[test]
fn the_fastest_way_is_chosen() {
    for (plans, chosen) in [
        (vec![], "kernel product"),
        (vec![(30.0, 0), (20.0, 64)], "kernel product"),
        (vec![(9.0, 64), (8.0, 512)], "library 8"),
    ] {
        let stub = Stub { plans, ..Stub::new() };
        let runtime = product().load(&stub, Options::default()).unwrap();
        stub.state.lock().log.clear();
        assert_eq!(ask(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
        assert_eq!((stub.times(chosen), stub.times("kernel") + stub.times("library")), (1, 1));
    }
}

#[test]
fn choices_are_kept_for_other_bundles() {
    let maker = product();
    let path = maker.folder.join("choices.json");
    // What is loaded runs how many kernels and plans, and takes which in the end.
    let load = |plans: Vec<(f64, u64)>| {
        let stub = Stub { plans, ..Stub::new() };
        let options = Options { choices: Some(path.clone()), ..Options::default() };
        let runtime = product().load(&stub, options).unwrap();
        let tried = stub.times("kernel") + stub.times("library");
        stub.state.lock().log.clear();
        assert_eq!(ask(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
        // What is known runs once: its code is loaded then.
        (tried > 1, if stub.times("kernel") > 0 { 0 } else { 1 })
    };
    assert_eq!(load(vec![]), (false, 0));
    assert!(!path.exists(), "nothing was measured");
    assert_eq!(load(vec![(9.0, 64), (8.0, 512)]), (true, 1));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#""library":"library 8""#), "{text}");
    assert_eq!(load(vec![(9.0, 64), (8.0, 512)]), (false, 1), "it is known");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(load(vec![(30.0, 0)]), (true, 0), "that plan is not there any more");
    assert_eq!(load(vec![(30.0, 0)]), (false, 0));
    assert_eq!(load(vec![]), (false, 0));

    let fails = |text: &str, expected: &str| {
        fs::write(&path, text).unwrap();
        let options = Options { choices: Some(path.clone()), ..Options::default() };
        let message = product().load(&Stub::new(), options).err().unwrap().to_string();
        assert!(message.contains(expected), "{message}");
    };
    fails("{", "choices.json");
    fails(r#"{"format": "divi-choices/7", "gpus": []}"#, "its format is 'divi-choices/7', not 'divi-choices/1'");
}

#[test]
fn kernels_behind_finish_what_was_begun() {
    for (plans, expected) in
        [(vec![], ["kernel product", "kernel add"]), (vec![(1.0, 0)], ["library 1", "kernel scale"])]
    {
        let mut maker = product();
        let then = |kernel: &str| vec![Then { kernel: kernel.into(), blocks: 1, threads: 32, extent: SIZE as i64 }];
        change(&mut maker.bundle.stages[0].calls[0], |launch| {
            launch.then = then("add");
            launch.library = Some(LibraryCall { way: Library::Product(square(4)), then: then("scale") });
        });
        let stub = Stub { plans, ..Stub::new() };
        let runtime = maker.load(&stub, Options::default()).unwrap();
        stub.state.lock().log.clear();
        ask(&runtime, 1.0).unwrap();
        assert_eq!(expected.map(|line| stub.times(line)), [1, 1]);
        assert_eq!(stub.times("kernel") + stub.times("library"), 2);
    }
}
