//! What goes wrong, and what is said then.

use super::kit::{Maker, SIZE, ask, by, call, change, product, scale_and_add};
use crate::{
    Options, Recording,
    bundle::{Buffer, Call, File},
    drivers::cuda::{
        Cuda, Target,
        driver::{Api, Fault},
        find,
        launch::{Convolution, Epilogue, Launch, Library, Product},
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
    let stub = Stub { refusal: Some("no driver".into()), ..Stub::new() };
    assert_eq!(find(&stub).unwrap_err().to_string(), "no driver");
}

#[test]
fn a_kernel_that_fails_ends_its_request() {
    let stub = Stub::new();
    let mut maker = Maker::new(1);
    let (x, y) = (maker.input("x", 0), maker.value("y", 0));
    maker.launch("roots", vec![call("root", &[Buffer::Output(0), Buffer::Input(0)], &[])], &[x], &[y]);
    maker.output("y", y);
    let runtime = maker.load(&stub, Options::default()).unwrap();
    for _ in 0..2 {
        let text = ask(&runtime, -1.0).unwrap_err().to_string();
        assert_eq!(text, "stage 'roots' failed: an operand has a value that the operator is not defined for");
        assert_eq!(ask(&runtime, 3.0).unwrap(), [9.0; SIZE as usize]);
    }
}

#[test]
fn a_gpu_that_is_lost_says_so() {
    for recording in [Recording::Off, Recording::Steps] {
        let stub = Stub::new();
        let runtime = scale_and_add(1).load(&stub, Options::default()).unwrap();
        runtime.record(recording);
        assert_eq!(ask(&runtime, 1.0).unwrap(), [4.0; SIZE as usize]);
        stub.state.lock().crashes = Some("add".to_owned());
        let expected = "value 'y' did not get from 'gpu0' to 'cpu0': an illegal memory access was encountered in stage 'main'; \
                        CUDA does nothing more on this GPU in this process: start it again";
        assert_eq!(ask(&runtime, 1.0).unwrap_err().to_string(), expected);
        runtime.record(recording);
        assert!(ask(&runtime, 1.0).unwrap_err().to_string().contains("an illegal memory access was encountered"));
        let of_the_first = if recording == Recording::Off { 0 } else { 3 };
        assert_eq!(runtime.take_spans().0.len(), of_the_first);
    }
}

#[test]
fn code_runs_on_newer_architectures() {
    assert!(runs("sm_90", 90) && runs("sm_80", 90) && runs("sm_90", 120) && runs("sm_90a", 90));
    assert!(!runs("sm_90", 80) && !runs("sm_90a", 100) && !runs("gfx90", 90) && !runs("sm_", 90));
}

#[test]
fn the_real_driver_is_found_or_missed() {
    if let Err(fault) = Cuda.count() {
        assert!(matches!(&fault, Fault::Driver(text) if text.contains("driver")), "{fault}");
    }
}

#[test]
fn machines_that_cannot_run_it_are_told() {
    let refused = |stub: &Stub| scale_and_add(1).refusal(stub);
    let expected = |reason: &str| {
        format!(
            "the bundle needs the cuda device 'gpu0' (sm_90), and {reason}: plan for a system of CPUs, as --system=cpu-2"
        )
    };
    let none = "this machine has no CUDA driver (libcuda.so.1)";
    assert_eq!(refused(&Stub { refusal: Some(none.into()), ..Stub::new() }), expected(none));
    assert_eq!(refused(&Stub { count: 0, ..Stub::new() }), expected("this machine has 0 GPUs"));
    let old = Stub { capability: (8, 0), ..Stub::new() };
    assert_eq!(refused(&old), expected("this machine's stub is sm_80"));
    assert!(scale_and_add(1).load(&Stub { capability: (10, 0), ..Stub::new() }, Options::default()).is_ok());
}

#[test]
fn what_does_not_fit_is_named() {
    let stub = Stub::new();
    stub.state.lock().free = 2000;
    let text = scale_and_add(0).refusal(&stub);
    assert!(text.starts_with("there is not enough memory for the arena of 'gpu0' (stub, "), "{text}");
    assert!(text.ends_with(" bytes free): it takes 4096 bytes"), "{text}");
    assert_eq!(stub.pieces(), 0);
}

#[test]
fn code_that_cannot_be_loaded() {
    let mut maker = scale_and_add(0);
    maker.ptx = "nonsense";
    let expected = "the code in 'FOLDER/sm_90.ptx' cannot be loaded: stub: a PTX JIT compilation failed: line 1; fatal: \
                    unexpected end";
    assert_eq!(maker.refusal(&Stub::new()), expected);
    let mut maker = scale_and_add(0);
    maker.bundle.stages[0].calls[0].kernel = "divide".into();
    let expected = "the code in 'FOLDER/sm_90.ptx' cannot be loaded: it has no kernel 'divide'";
    assert_eq!(maker.refusal(&Stub::new()), expected);
}

#[test]
fn launches_that_make_no_sense() {
    type Change = fn(&mut Launch);
    let cases: [(Change, &str); 5] = [
        (|it| it.blocks = 0, "0 blocks of 32 threads"),
        (|it| it.threads = 2048, "1 blocks of 2048 threads"),
        (
            |it| it.library = by(Library::Product(square(9))),
            "the library's buffer 0 has 324 bytes, more than the 64 there are",
        ),
        (
            |it| {
                let product = Product { has_bias: true, epilogue: Epilogue::Relu, ..square(4) };
                it.library = by(Library::Product(product));
            },
            "it has 3 buffers, and the library 4",
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
                it.library = by(Library::Convolution(convolution));
            },
            "the library's filters [2, 3, 1, 1] do not lead from [1, 4, 2, 2] to [1, 2, 2, 2] in 1 groups",
        ),
    ];
    for (case, expected) in cases {
        let mut maker = product();
        change(&mut maker.bundle.stages[0].calls[0], case);
        maker.bundle.files = vec![File { path: "sm_90.ptx".into(), bytes: 0, sha256: String::new() }];
        assert_eq!(maker.bundle.validate().unwrap_err(), format!("stage 'main': kernel 'product': {expected}"));
    }
}

#[test]
fn stages_that_are_not_for_their_device() {
    let refusal = |change: &dyn Fn(&mut Maker)| {
        let mut maker = product();
        maker.bundle.files = vec![File { path: "sm_90.ptx".into(), bytes: 0, sha256: String::new() }];
        change(&mut maker);
        maker.bundle.validate().unwrap_err()
    };
    let of_call = |change: &dyn Fn(&mut Call)| refusal(&|it| change(&mut it.bundle.stages[0].calls[0]));
    assert_eq!(of_call(&|it| it.payload = json!(null)), "stage 'main': kernel 'product': it has no grid to launch");
    assert_eq!(
        of_call(&|it| it.payload = json!({"blocks": 1})),
        "stage 'main': kernel 'product': its payload is not a launch: missing field `threads`"
    );
    assert_eq!(
        of_call(&|it| it.after = vec![0]),
        "stage 'main': kernel 'product': it comes after call 0, which is not before it"
    );
    assert_eq!(refusal(&|it| it.bundle.files.clear()), "the code 'sm_90.ptx' is not one of the files of the bundle");
    assert_eq!(refusal(&|it| it.bundle.executables.clear()), "stage 'main': index 0 is outside the 0 executables");
    assert_eq!(
        refusal(&|it| it.bundle.executables[0].format = "spirv".into()),
        "stage 'main' on device 'gpu0' has code in format 'spirv'; driver 'cuda' loads ptx"
    );
    assert_eq!(
        refusal(&|it| it.bundle.executables = vec![Target { arch: "sm_80".into() }.executable("sm_90.ptx".into())]),
        "stage 'main': it has code for 'sm_80', and device 'gpu0' is 'sm_90'"
    );
    assert_eq!(
        refusal(&|it| it.bundle.executables[0].target = json!({})),
        "stage 'main': the target of 'sm_90.ptx' is not a GPU architecture: missing field `arch`"
    );
    assert_eq!(
        refusal(&|it| it.bundle.stages[0].payload = json!([1])),
        "stage 'main': it has a payload, and CUDA devices use none"
    );
}
