//! Faults of GPUs and invalid bundles, with their messages.

use super::kit::{BundleBuilder, SIZE, by, call, change, product, run_full, scale_and_add};
use crate::{
    Options, Recording,
    bundle::{Buffer, Call, File},
    drivers::cuda::{
        Cuda, Target,
        driver::{Api, CudaError},
        find,
        launch::{Convolution, Epilogue, Launch, LibraryOp, MatMul},
        runs,
        stub::{Stub, square},
    },
};
use serde_json::json;

#[test]
fn gpus_are_found() {
    let stub = Stub { count: 2, ..Stub::new() };
    let found: Vec<_> = find(&stub).unwrap().into_iter().map(|gpu| (gpu.name, gpu.arch)).collect();
    assert_eq!(found, vec![("stub".to_owned(), "sm_90".to_owned()); 2]);
    let stub = Stub { driver_error: Some("no driver".into()), ..Stub::new() };
    assert_eq!(find(&stub).unwrap_err().to_string(), "no driver");
}

#[test]
fn a_failing_kernel_ends_its_request() {
    let stub = Stub::new();
    let mut builder = BundleBuilder::new(1);
    let (x, y) = (builder.input("x", 0), builder.value("y", 0));
    builder.launch("roots", vec![call("root", &[Buffer::Output(0), Buffer::Input(0)], &[])], &[x], &[y]);
    builder.output("y", y);
    let runtime = builder.load(&stub, Options::default()).unwrap();
    for _ in 0..2 {
        let text = run_full(&runtime, -1.0).unwrap_err().to_string();
        assert_eq!(text, "stage 'roots' failed: an operand has a value that the operator is not defined for");
        assert_eq!(run_full(&runtime, 3.0).unwrap(), [9.0; SIZE as usize]);
    }
}

#[test]
fn a_lost_gpu_is_reported() {
    for recording in [Recording::Off, Recording::Steps] {
        let stub = Stub::new();
        let runtime = scale_and_add(1).load(&stub, Options::default()).unwrap();
        runtime.record(recording);
        assert_eq!(run_full(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
        stub.state.lock().crashes = Some("add".to_owned());
        let expected = "transfer of value 'y' from 'gpu0' to 'cpu0' failed: an illegal memory access was encountered in stage \
                        'main'; the CUDA context is lost: restart the process";
        assert_eq!(run_full(&runtime, 1.0).unwrap_err().to_string(), expected);
        runtime.record(recording);
        assert!(run_full(&runtime, 1.0).unwrap_err().to_string().contains("an illegal memory access was encountered"));
        let spans_of_first = if recording == Recording::Off { 0 } else { 3 };
        assert_eq!(runtime.take_spans().0.len(), spans_of_first);
    }
}

#[test]
fn code_runs_on_newer_architectures() {
    assert!(runs("sm_90", 90) && runs("sm_80", 90) && runs("sm_90", 120) && runs("sm_90a", 90));
    assert!(!runs("sm_90", 80) && !runs("sm_90a", 100) && !runs("gfx90", 90) && !runs("sm_", 90));
}

#[test]
fn the_real_driver_is_found_or_reported_missing() {
    if let Err(fault) = Cuda.count() {
        assert!(matches!(&fault, CudaError::Driver(text) if text.contains("driver")), "{fault}");
    }
}

#[test]
fn unsuitable_machines_are_reported() {
    let refused = |stub: &Stub| scale_and_add(1).load_error(stub);
    let expected = |reason: &str| {
        format!(
            "the bundle needs the cuda device 'gpu0' (sm_90), and {reason}: plan for a system of CPUs, as --system=cpu-2"
        )
    };
    let none = "this machine has no CUDA driver (libcuda.so.1)";
    assert_eq!(refused(&Stub { driver_error: Some(none.into()), ..Stub::new() }), expected(none));
    assert_eq!(refused(&Stub { count: 0, ..Stub::new() }), expected("this machine has 0 GPUs"));
    let old = Stub { capability: (8, 0), ..Stub::new() };
    assert_eq!(refused(&old), expected("this machine's stub is sm_80"));
    assert!(scale_and_add(1).load(&Stub { capability: (10, 0), ..Stub::new() }, Options::default()).is_ok());
}

#[test]
fn allocations_that_do_not_fit_are_named() {
    let stub = Stub::new();
    stub.state.lock().free = 2000;
    let text = scale_and_add(0).load_error(&stub);
    assert!(text.starts_with("there is not enough memory for the arena of 'gpu0' (stub, "), "{text}");
    assert!(text.ends_with(" bytes free): it takes 4096 bytes"), "{text}");
    assert_eq!(stub.pieces(), 0);
}

#[test]
fn invalid_code_is_rejected() {
    let mut builder = scale_and_add(0);
    builder.ptx = "nonsense";
    let expected = "the code in 'FOLDER/sm_90.ptx' cannot be loaded: stub: a PTX JIT compilation failed: line 1; fatal: \
                    unexpected end";
    assert_eq!(builder.load_error(&Stub::new()), expected);
    let mut builder = scale_and_add(0);
    builder.bundle.stages[0].calls[0].kernel = "divide".into();
    let expected = "the code in 'FOLDER/sm_90.ptx' cannot be loaded: it has no kernel 'divide'";
    assert_eq!(builder.load_error(&Stub::new()), expected);
}

#[test]
fn invalid_launches_are_rejected() {
    type Change = fn(&mut Launch);
    let cases: [(Change, &str); 5] = [
        (|it| it.blocks = 0, "invalid grid: 0 blocks of 32 threads"),
        (|it| it.threads = 2048, "invalid grid: 1 blocks of 2048 threads"),
        (
            |it| it.library = by(LibraryOp::MatMul(square(9))),
            "the library accesses 324 bytes of its buffer 0, which has 64",
        ),
        (
            |it| {
                let product = MatMul { has_bias: true, epilogue: Epilogue::Relu, ..square(4) };
                it.library = by(LibraryOp::MatMul(product));
            },
            "it has 3 buffers, and the library needs 4",
        ),
        (
            |it| {
                let [input, filters, output] = [[1, 4, 2, 2], [2, 3, 1, 1], [1, 2, 2, 2]];
                let convolution = Convolution {
                    input,
                    filters,
                    output,
                    image_strides: [16, 8, 8],
                    padding: [0, 0],
                    strides: [1, 1],
                    dilations: [1, 1],
                    groups: 1,
                    has_residual: false,
                    epilogue: Epilogue::None,
                };
                it.library = by(LibraryOp::Convolution(convolution));
            },
            "the library's filters [2, 3, 1, 1] do not map [1, 4, 2, 2] to [1, 2, 2, 2] in 1 groups",
        ),
    ];
    for (case, expected) in cases {
        let mut builder = product();
        change(&mut builder.bundle.stages[0].calls[0], case);
        builder.bundle.files = vec![File { path: "sm_90.ptx".into(), bytes: 0, sha256: String::new() }];
        assert_eq!(builder.bundle.validate().unwrap_err(), format!("stage 'main': kernel 'product': {expected}"));
    }
}

#[test]
fn stages_that_do_not_match_their_device_are_rejected() {
    let load_error = |change: &dyn Fn(&mut BundleBuilder)| {
        let mut builder = product();
        builder.bundle.files = vec![File { path: "sm_90.ptx".into(), bytes: 0, sha256: String::new() }];
        change(&mut builder);
        builder.bundle.validate().unwrap_err()
    };
    let of_call = |change: &dyn Fn(&mut Call)| load_error(&|it| change(&mut it.bundle.stages[0].calls[0]));
    assert_eq!(of_call(&|it| it.payload = json!(null)), "stage 'main': kernel 'product': it has no grid to launch");
    assert_eq!(
        of_call(&|it| it.payload = json!({"blocks": 1})),
        "stage 'main': kernel 'product': its payload is not a launch: missing field `threads`"
    );
    assert_eq!(
        of_call(&|it| it.after = vec![0]),
        "stage 'main': kernel 'product': it depends on call 0, which is not an earlier one"
    );
    assert_eq!(load_error(&|it| it.bundle.files.clear()), "the code 'sm_90.ptx' is not one of the files of the bundle");
    assert_eq!(load_error(&|it| it.bundle.executables.clear()), "stage 'main': index 0 is outside the 0 executables");
    assert_eq!(
        load_error(&|it| it.bundle.executables[0].format = "spirv".into()),
        "stage 'main' on device 'gpu0' has code in format 'spirv'; driver 'cuda' loads ptx"
    );
    assert_eq!(
        load_error(&|it| it.bundle.executables = vec![Target { arch: "sm_80".into() }.executable("sm_90.ptx".into())]),
        "stage 'main': it has code for 'sm_80', and device 'gpu0' is 'sm_90'"
    );
    assert_eq!(
        load_error(&|it| it.bundle.executables[0].target = json!({})),
        "stage 'main': the target of 'sm_90.ptx' is not a GPU architecture: missing field `arch`"
    );
    assert_eq!(
        load_error(&|it| it.bundle.stages[0].payload = json!([1])),
        "stage 'main': it has a payload, and CUDA devices use none"
    );
}
