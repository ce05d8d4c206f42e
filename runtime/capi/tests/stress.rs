//! Random calls from four threads: load, run, submit, wait, cancel and free, with handles that are valid, freed or made up.
//!
//! `DIVI_CALLS` is the number of calls (`tools/sanitize` sets it to 100,000), `DIVI_SEED` the seed.
#![cfg(test)]

#[allow(dead_code, reason = "the runtime's tests use more of it")]
#[path = "../../tests/runtime/kit.rs"]
mod kit;

use divi_runtime::bundle::Mode;
use divirun::{
    DiviBuffer, DiviOptions, DiviRequest, DiviRuntime, divi_cancel, divi_error, divi_free, divi_input_count, divi_load,
    divi_request_free, divi_run, divi_submit, divi_wait,
};
use kit::{Folder, Lcg, SIZE, two_devices};
use std::{
    ffi::{CStr, CString, c_int},
    os::unix::ffi::OsStrExt,
    process::Command,
    ptr,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
    thread,
};

const THREADS: u64 = 4;
/// Number of runtimes shared by all threads.
const RUNTIMES: usize = 2;
/// Number of requests shared by all threads.
const REQUESTS: usize = 8;

const OK: c_int = 0;
const TIMEOUT: c_int = -2;
const CANCELLED: c_int = -3;
const INVALID: c_int = -4;
const CLOSED: c_int = -5;

/// Handles shared by the threads, and the number of calls that returned each code.
struct Shared {
    folder: CString,
    runtimes: [AtomicPtr<DiviRuntime>; RUNTIMES],
    requests: [AtomicPtr<DiviRequest>; REQUESTS],
    codes: [AtomicUsize; 6],
}

impl Shared {
    fn new(folder: &Folder) -> Self {
        let folder = CString::new(folder.path().as_os_str().as_bytes()).unwrap();
        let (runtimes, requests) = (Default::default(), Default::default());
        let shared = Self { folder, runtimes, requests, codes: Default::default() };
        shared.runtimes.iter().for_each(|place| place.store(shared.load(3), Ordering::SeqCst));
        shared
    }

    fn load(&self, in_flight: usize) -> *mut DiviRuntime {
        let options = DiviOptions { threads: 1, in_flight, allow_path: ptr::null(), map_weights: 0 };
        // SAFETY: both outlive the call.
        let runtime = unsafe { divi_load(self.folder.as_ptr(), &options) };
        assert!(!runtime.is_null(), "{}", message());
        runtime
    }

    fn count(&self, code: c_int) {
        self.codes[code.unsigned_abs() as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn counted(&self, code: c_int) -> usize {
        self.codes[code.unsigned_abs() as usize].load(Ordering::Relaxed)
    }

    /// Makes one random call.
    fn call(&self, numbers: &mut Lcg) {
        let runtime = self.runtimes[numbers.below(RUNTIMES)].load(Ordering::SeqCst);
        let place = &self.requests[numbers.below(REQUESTS)];
        let request = match numbers.below(16) {
            0 => ptr::null_mut(),
            1 => ptr::without_provenance_mut(numbers.below(1 << 20)),
            2 => runtime.cast(),
            _ => place.load(Ordering::SeqCst),
        };
        match numbers.below(200) {
            // Replace a runtime while other threads use it.
            0 => {
                let new = self.load(1 + numbers.below(3));
                divi_free(self.runtimes[numbers.below(RUNTIMES)].swap(new, Ordering::SeqCst));
            }
            1..40 => self.run(runtime, numbers.below(1000)),
            40..100 => self.submit(runtime, place, numbers.below(1000)),
            100..140 => self.wait(request, [0, 0, 1, 5, -1][numbers.below(5)]),
            140..180 => {
                let code = divi_cancel(request);
                assert!([OK, INVALID].contains(&code), "{code}: {}", message());
                self.count(code);
            }
            180..190 => self.free(place),
            190..195 => self.free(&AtomicPtr::new(request)),
            _ => assert!(divi_input_count(runtime) <= 1),
        }
    }

    fn run(&self, runtime: *mut DiviRuntime, number: usize) {
        let (mut input, mut output) = (filled(number), filled(0));
        let (inputs, outputs) = ([buffer(&mut input)], [buffer(&mut output)]);
        // SAFETY: the buffers have the given sizes and outlive the call.
        let code = unsafe { divi_run(runtime, inputs.as_ptr(), 1, outputs.as_ptr(), 1) };
        match code {
            OK => assert_eq!(output, [20.0 * number as f32; SIZE as usize]),
            CANCELLED | INVALID | CLOSED => assert!(!message().is_empty()),
            other => panic!("{other}: {}", message()),
        }
        self.count(code);
    }

    fn submit(&self, runtime: *mut DiviRuntime, place: &AtomicPtr<DiviRequest>, number: usize) {
        let mut input = filled(number);
        let inputs = [buffer(&mut input)];
        // SAFETY: as above.
        let request = unsafe { divi_submit(runtime, inputs.as_ptr(), 1) };
        if request.is_null() {
            let message = message();
            assert!(message.contains("runtime was freed") || message.contains("shutting down"), "{message}");
            return self.count(INVALID);
        }
        divi_request_free(place.swap(request, Ordering::SeqCst));
    }

    fn wait(&self, request: *mut DiviRequest, timeout: i64) {
        let mut output = filled(0);
        let outputs = [buffer(&mut output)];
        // SAFETY: as above.
        let code = unsafe { divi_wait(request, timeout, outputs.as_ptr(), 1) };
        match code {
            OK => assert!(output.iter().all(|&number| number == output[0] && number % 20.0 == 0.0), "{output:?}"),
            TIMEOUT => assert!(timeout >= 0),
            CANCELLED | INVALID => assert!(!message().is_empty()),
            other => panic!("{other}: {}", message()),
        }
        self.count(code);
    }

    fn free(&self, place: &AtomicPtr<DiviRequest>) {
        let request = place.swap(ptr::null_mut(), Ordering::SeqCst);
        let code = divi_request_free(request);
        assert!([OK, INVALID].contains(&code));
        if !request.is_null() {
            // Freed by this thread or another one: the handle is invalid.
            assert_eq!((divi_request_free(request), divi_cancel(request)), (INVALID, INVALID));
            // SAFETY: there are no buffers.
            assert_eq!(unsafe { divi_wait(request, -1, ptr::null(), 0) }, INVALID);
        }
        self.count(code);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let end = |place: &AtomicPtr<DiviRequest>| _ = divi_request_free(place.swap(ptr::null_mut(), Ordering::SeqCst));
        self.requests.iter().for_each(end);
        self.runtimes.iter().for_each(|place| divi_free(place.swap(ptr::null_mut(), Ordering::SeqCst)));
    }
}

fn filled(number: usize) -> Vec<f32> {
    vec![number as f32; SIZE as usize]
}

fn buffer(numbers: &mut [f32]) -> DiviBuffer {
    DiviBuffer { data: numbers.as_mut_ptr().cast(), bytes: size_of_val(numbers) }
}

fn message() -> String {
    // SAFETY: the message is valid until this thread's next call.
    unsafe { CStr::from_ptr(divi_error()) }.to_string_lossy().into_owned()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn random_calls_from_four_threads() {
    let (calls, seed) = (setting("DIVI_CALLS", 4000), setting("DIVI_SEED", 1));
    let folder = two_devices(Mode::Pipeline, false).write();
    let shared = Shared::new(&folder);
    thread::scope(|scope| {
        for index in 0..THREADS {
            let shared = &shared;
            scope.spawn(move || {
                let mut numbers = Lcg(seed * THREADS + index);
                (0..calls / THREADS).for_each(|_| shared.call(&mut numbers));
            });
        }
    });
    let counts = [OK, TIMEOUT, CANCELLED, INVALID, CLOSED].map(|code| shared.counted(code));
    println!(
        "{calls} calls: ok {}, timeout {}, cancelled {}, invalid {}, closed {}",
        counts[0], counts[1], counts[2], counts[3], counts[4]
    );
    // `CLOSED` and `CANCELLED` depend on timing; `OK` and `INVALID` always occur.
    assert!(counts[0] > calls as usize / 10 && counts[3] > 0, "{counts:?}");
}

#[test]
fn requests_can_be_waited_for_and_cancelled_at_any_time() {
    let folder = two_devices(Mode::Pipeline, true).write();
    let shared = Shared::new(&folder);
    let mut input = filled(2);
    let inputs = [buffer(&mut input)];
    let runtime = shared.runtimes[0].load(Ordering::SeqCst);
    // SAFETY: the buffers have the given sizes and outlive the calls.
    let submit = || unsafe { divi_submit(runtime, inputs.as_ptr(), 1) };
    let wait = |request, timeout| {
        let mut output = filled(0);
        // SAFETY: as above.
        (unsafe { divi_wait(request, timeout, [buffer(&mut output)].as_ptr(), 1) }, output[0])
    };
    let (first, second, third) = (submit(), submit(), submit());
    assert_eq!(wait(first, 1), (TIMEOUT, 0.0));
    assert_eq!(message(), "the request is not done after 1 ms");
    assert_eq!(divi_cancel(first), OK);
    assert_eq!((wait(first, -1).0, wait(first, 0).0), (CANCELLED, CANCELLED));
    assert_eq!(message(), "the request was cancelled");
    assert_eq!((wait(second, 60_000), wait(second, 0)), ((OK, 40.0), (OK, 40.0)));
    assert_eq!((divi_cancel(second), wait(second, 0)), (OK, (OK, 40.0)));
    let mut short = [0.0];
    // SAFETY: as above.
    assert_eq!(unsafe { divi_wait(second, 0, [buffer(&mut short)].as_ptr(), 1) }, -1);
    assert_eq!(message(), "output 0 has 256 bytes, and its buffer 4");
    thread::scope(|scope| {
        let theirs = AtomicPtr::new(third);
        let waiting = scope.spawn(move || wait(theirs.into_inner(), -1).0);
        assert_eq!(divi_request_free(third), OK);
        // The waiting thread looked the handle up before or after it was freed.
        assert!([CANCELLED, INVALID].contains(&waiting.join().unwrap()));
    });
    let last = submit();
    divi_free(runtime);
    assert_eq!(wait(last, -1).0, CANCELLED);
    // SAFETY: as above.
    assert!(unsafe { divi_submit(runtime, inputs.as_ptr(), 1) }.is_null());
    assert_eq!(message(), "the runtime was freed, or never loaded");
    [first, second, last].into_iter().for_each(|request| assert_eq!(divi_request_free(request), OK));
    assert_eq!(divi_request_free(first), INVALID);
}

/// Runs `random_calls_from_four_threads` with fewer calls under valgrind.
#[test]
fn random_calls_have_no_memory_errors() {
    if Command::new("valgrind").arg("--version").output().is_err() || std::env::var_os("DIVI_SANITIZER").is_some() {
        eprintln!("skipped: valgrind is not installed (run tools/setup), or a sanitizer is enabled");
        return;
    }
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9", "--fair-sched=yes", "--leak-check=full"]);
    command.arg("--errors-for-leak-kinds=definite").arg(std::env::current_exe().unwrap());
    command.args(["--exact", "random_calls_from_four_threads"]).env("DIVI_CALLS", "400");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
