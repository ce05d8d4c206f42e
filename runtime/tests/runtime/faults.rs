//! Failures during a request: they end this request only, and the error names the stage.

use crate::kit::{BundleBuilder, SIZE, call, full, numbers, options, scale_and_add, two_devices};
use divi_runtime::{
    DType, Error, MemoryCopy, Options, Runtime, TensorData, Transport,
    bundle::{Action, Buffer, Bundle, Mode, Step},
    hal::{Copy, Event, Owner},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

fn message<T>(result: Result<T, Error>) -> String {
    result.err().unwrap().to_string()
}

#[test]
fn a_failing_kernel_ends_its_request() {
    let mut builder = BundleBuilder::new(Mode::Latency, 1);
    let (x, y) = (builder.input("x", 0), builder.value("y", 0));
    builder.launch("roots", vec![call("root", &[Buffer::Output(0), Buffer::Input(0)])], &[x], &[y]);
    builder.output("y", y);
    let folder = builder.write();
    for threads in [1, 3] {
        let options = Options { threads: Some(threads), ..options() };
        let runtime = Runtime::load(folder.path(), options).unwrap();
        for _ in 0..3 {
            let text = message(runtime.run(&[("x", full(-1.0).view())]));
            let problem = "an operand has a value that the operator is not defined for";
            assert_eq!(text, format!("stage 'roots' failed in 'roots task': {problem}"));
            assert_eq!(numbers(&runtime.run(&[("x", full(3.0).view())]).unwrap(), "y"), [9.0; SIZE as usize]);
        }
    }
}

#[test]
fn a_panicking_stage_does_not_affect_other_requests() {
    let folder = two_devices(Mode::Pipeline, false).write();
    let launches = Arc::new(AtomicUsize::new(0));
    let count = launches.clone();
    let hook = move |stage: &str| {
        if stage == "second" && count.fetch_add(1, Ordering::SeqCst) % 3 == 1 {
            panic!("killed");
        }
    };
    let options = Options { before_launch: Some(Arc::new(hook)), in_flight: Some(4), ..options() };
    let runtime = Runtime::load(folder.path(), options).unwrap();
    let tickets: Vec<_> = (0..9).map(|number| runtime.submit(&[("x", full(number as f32).view())]).unwrap()).collect();
    for (number, ticket) in tickets.into_iter().enumerate() {
        match ticket.wait() {
            Err(error) => {
                assert_eq!(number % 3, 1);
                assert_eq!(error.to_string(), "stage 'second' panicked: killed");
            }
            Ok(outputs) => assert_eq!(numbers(&outputs, "y"), [20.0 * number as f32; SIZE as usize]),
        }
    }
}

#[test]
fn errors_of_transfers_name_the_devices() {
    /// Transport that fails at a step for one number.
    struct Broken(usize);
    impl Transport for Broken {
        unsafe fn begin(&self, owner: Owner, copy: Copy) -> Result<Option<Event>, String> {
            // SAFETY: all values have at least four bytes.
            let number = unsafe { copy.from.cast::<f32>().read() };
            if owner.step == Some(self.0) && number == 20.0 {
                return Err("the cable is out".into());
            }
            // SAFETY: guaranteed by the caller.
            unsafe { MemoryCopy.begin(owner, copy) }
        }
    }
    let folder = two_devices(Mode::Latency, false).write();
    let bundle = Bundle::read(folder.path()).unwrap();
    let is_back =
        |step: &Step| matches!(step.action, Action::Transfer { output, .. } if bundle.values[output].device == 0);
    let step = bundle.steps.iter().position(is_back).unwrap();
    for link_threads in [false, true] {
        let transport = Arc::new(Broken(step));
        let options = Options { transport, link_threads: Some(link_threads), ..options() };
        let runtime = Runtime::load(folder.path(), options).unwrap();
        let text = message(runtime.run(&[("x", full(1.0).view())]));
        assert_eq!(text, "transfer of value 'whole' from 'cpu1' to 'cpu0' failed: the cable is out");
        assert_eq!(numbers(&runtime.run(&[("x", full(2.0).view())]).unwrap(), "y")[0], 40.0);
    }
}

#[test]
fn requests_can_be_cancelled() {
    let folder = two_devices(Mode::Pipeline, true).write();
    let launches = Arc::new(AtomicUsize::new(0));
    let count = launches.clone();
    let hook = move |_: &str| _ = count.fetch_add(1, Ordering::SeqCst);
    let options = Options { before_launch: Some(Arc::new(hook)), ..options() };
    let runtime = Runtime::load(folder.path(), options).unwrap();
    let first = runtime.submit(&[("x", full(1.0).view())]).unwrap();
    let second = runtime.submit(&[("x", full(2.0).view())]).unwrap();
    while launches.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    first.cancel();
    let canceller = second.canceller();
    assert!(matches!(first.wait(), Err(Error::Cancelled)));
    assert_eq!(numbers(&second.wait().unwrap(), "y")[0], 40.0);
    canceller.cancel();
    assert_eq!(numbers(&runtime.run(&[("x", full(3.0).view())]).unwrap(), "y")[0], 60.0);
}

#[test]
fn dropping_the_runtime_cancels_its_requests() {
    let folder = two_devices(Mode::Pipeline, true).write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let tickets: Vec<_> = (0..3).map(|_| runtime.submit(&[("x", full(1.0).view())]).unwrap()).collect();
    drop(runtime);
    for ticket in tickets {
        assert!(ticket.is_done());
        assert!(matches!(ticket.wait(), Err(Error::Cancelled)));
    }
}

#[test]
fn a_closed_runtime_rejects_requests() {
    let folder = scale_and_add().write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    runtime.close();
    assert_eq!(message(runtime.run(&[("x", full(1.0).view())])), "the runtime is shutting down");
}

#[test]
fn invalid_inputs_are_rejected() {
    let folder = scale_and_add().write();
    let runtime = Runtime::load(folder.path(), options()).unwrap();
    let right = full(1.0);
    let refused = |inputs: &[(&str, &TensorData)], expected: &str| {
        let inputs: Vec<_> = inputs.iter().map(|(name, tensor)| (*name, tensor.view())).collect();
        assert_eq!(message(runtime.run(&inputs)), expected);
        assert_eq!(message(runtime.submit(&inputs)), expected);
    };
    refused(&[], "input 'x' is missing: expected float [64]");
    refused(&[("z", &right)], "input 'z' is not an input of the model; expected one of 'x'");
    refused(&[("x", &right), ("x", &right)], "input 'x' is given twice");
    let short = TensorData::from_f32(&[2, 3], &[0.0; 6]).unwrap();
    refused(&[("x", &short)], "input 'x' must be float [64], and the one given is float [2, 3]");
    let integers = TensorData::zeroed(DType::I64, &[64]).unwrap();
    refused(&[("x", &integers)], "input 'x' must be float [64], and the one given is int64 [64]");
    let mut cut = right.view();
    cut.bytes = &cut.bytes[..8];
    let expected = "input 'x' must be float [64], and the one given is float [64] with 8 bytes instead of 256";
    assert_eq!(message(runtime.run(&[("x", cut)])), expected);
    let mut buffer = [0; 8];
    let expected = "invalid outputs: 'y' has 256 bytes, its buffer 8";
    assert_eq!(message(runtime.run_into(&[("x", right.view())], &mut [&mut buffer])), expected);
    assert_eq!(numbers(&runtime.run(&[("x", right.view())]).unwrap(), "y")[0], 4.0);
}
