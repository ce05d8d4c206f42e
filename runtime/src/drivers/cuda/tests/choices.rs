//! Choice between library algorithms and kernels.

use super::kit::{SIZE, change, product, run_full};
use crate::{
    Options,
    drivers::cuda::{
        choices::AlgorithmCache,
        launch::{FollowUpKernel, LibraryCall, LibraryOp},
        stub::{Stub, square},
    },
};
use serde_json::Value;
use std::fs;

#[test]
fn the_fastest_algorithm_is_chosen() {
    for (plans, chosen) in [
        (vec![], "kernel product"),
        (vec![(30.0, 0), (20.0, 64)], "kernel product"),
        (vec![(9.0, 64), (8.0, 512)], "library 8"),
    ] {
        let stub = Stub { plans, ..Stub::new() };
        let runtime = product().load(&stub, Options::default()).unwrap();
        stub.state.lock().log.clear();
        assert_eq!(run_full(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
        assert_eq!((stub.times(chosen), stub.times("kernel") + stub.times("library")), (1, 1));
    }
}

#[test]
fn choices_are_cached_for_other_bundles() {
    let builder = product();
    let path = builder.folder.join("choices.json");
    // Returns true if loading measured algorithms, and 1 if requests use the library.
    let load = |plans: Vec<(f64, u64)>| {
        let stub = Stub { plans, ..Stub::new() };
        let options = Options { choices: Some(path.clone()), ..Options::default() };
        let runtime = product().load(&stub, options).unwrap();
        let tried = stub.times("kernel") + stub.times("library");
        stub.state.lock().log.clear();
        assert_eq!(run_full(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
        // A cached algorithm runs once at load, to load its code.
        (tried > 1, if stub.times("kernel") > 0 { 0 } else { 1 })
    };
    assert_eq!(load(vec![]), (false, 0));
    assert!(!path.exists(), "nothing was measured");
    assert_eq!(load(vec![(9.0, 64), (8.0, 512)]), (true, 1));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#""library":"library 8""#), "{text}");
    assert_eq!(load(vec![(9.0, 64), (8.0, 512)]), (false, 1), "it is cached");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(load(vec![(30.0, 0)]), (true, 0), "the cached algorithm does not exist any more");
    assert_eq!(load(vec![(30.0, 0)]), (false, 0));
    assert_eq!(load(vec![]), (false, 0));

    let fails = |text: &str, expected: &str| {
        fs::write(&path, text).unwrap();
        let options = Options { choices: Some(path.clone()), ..Options::default() };
        let message = product().load(&Stub::new(), options).err().unwrap().to_string();
        assert!(message.contains(expected), "{message}");
    };
    fails("{", "choices.json': invalid choices file: not JSON");
    fails(r#"{"format": "divi-choices/7", "gpus": []}"#, "its format is 'divi-choices/7', not 'divi-choices/1'");
}

#[test]
fn choices_that_cannot_be_written_are_reported() {
    let stub = Stub { plans: vec![(9.0, 64)], ..Stub::new() };
    let mut builder = product();
    let path = builder.folder.join("missing").join("choices.json");
    let options = Options { choices: Some(path.clone()), ..Options::default() };
    let message = builder.load(&stub, options).err().unwrap().to_string();
    assert!(message.starts_with(&format!("cannot write '{}': ", path.display())), "{message}");
}

#[test]
fn subsequent_kernels_run_after_the_kernel_or_library() {
    for (plans, expected) in
        [(vec![], ["kernel product", "kernel add"]), (vec![(1.0, 0)], ["library 1", "kernel scale"])]
    {
        let mut builder = product();
        let then =
            |kernel: &str| vec![FollowUpKernel { kernel: kernel.into(), blocks: 1, threads: 32, extent: SIZE as i64 }];
        change(&mut builder.bundle.stages[0].calls[0], |launch| {
            launch.then = then("add");
            launch.library = Some(LibraryCall { computation: LibraryOp::MatMul(square(4)), then: then("scale") });
        });
        let stub = Stub { plans, ..Stub::new() };
        let runtime = builder.load(&stub, Options::default()).unwrap();
        stub.state.lock().log.clear();
        run_full(&runtime, 1.0).unwrap();
        assert_eq!(expected.map(|line| stub.times(line)), [1, 1]);
        assert_eq!(stub.times("kernel") + stub.times("library"), 2);
    }
}

/// The example of the documentation is read, and the page mentions its keys. No key is optional, so the example has all of
/// them.
#[test]
fn choices_are_documented() {
    fn check(page: &str, value: &Value) {
        for (key, field) in value.as_object().into_iter().flatten() {
            assert!(page.contains(&format!("`{key}`")), "the page does not mention '{key}'");
            check(page, field);
        }
        value.as_array().into_iter().flatten().for_each(|item| check(page, item));
    }
    let page = include_str!("../../../../../docs/formats/choices.md");
    let example = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let builder = product();
    let path = builder.folder.join("documented.json");
    fs::write(&path, example).unwrap();
    AlgorithmCache::read(Some(&path)).unwrap();
    let value: Value = serde_json::from_str(example).unwrap();
    check(page, &value);
    let ways: Vec<_> =
        value["gpus"][0]["calls"].as_array().unwrap().iter().map(|choice| &choice["call"]["way"]).collect();
    assert!(ways.iter().any(|way| way["product"].is_object()) && ways.iter().any(|way| way["convolution"].is_object()));
}
