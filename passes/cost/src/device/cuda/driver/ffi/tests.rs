use super::*;

unsafe extern "C" fn init(_: c_uint) -> c_int {
    SUCCESS
}

unsafe extern "C" fn two(count: *mut c_int) -> c_int {
    // SAFETY: the pointer is valid for writing an integer.
    unsafe { *count = 2 };
    SUCCESS
}

unsafe extern "C" fn device(device: *mut c_int, ordinal: c_int) -> c_int {
    // SAFETY: the pointer is valid for writing an integer.
    unsafe { *device = ordinal + 7 };
    SUCCESS
}

unsafe extern "C" fn name(name: *mut c_char, length: c_int, device: c_int) -> c_int {
    let text = format!("GPU {device}");
    assert!(length as usize > text.len());
    // SAFETY: the buffer has room for these bytes, and a zero follows.
    unsafe { name.copy_from(text.as_ptr().cast(), text.len()) };
    SUCCESS
}

unsafe extern "C" fn total_memory(bytes: *mut usize, _: c_int) -> c_int {
    // SAFETY: the pointer is valid for writing a size.
    unsafe { *bytes = 141 << 30 };
    SUCCESS
}

/// Reports the attributes of an H200, except the ratio of f64.
unsafe extern "C" fn attribute(value: *mut c_int, number: c_int, _: c_int) -> c_int {
    let result = match number {
        attribute::COMPUTE_CAPABILITY_MAJOR => 9,
        attribute::COMPUTE_CAPABILITY_MINOR => 0,
        attribute::MULTIPROCESSOR_COUNT => 132,
        attribute::CLOCK_RATE => 1_980_000,
        attribute::MEMORY_CLOCK_RATE => 3_201_000,
        attribute::GLOBAL_MEMORY_BUS_WIDTH => 6144,
        // A domain that no machine has.
        attribute::PCI_DOMAIN_ID => 0x7fff_ffff,
        attribute::PCI_BUS_ID | attribute::PCI_DEVICE_ID => 0,
        _ => return 1,
    };
    // SAFETY: the pointer is valid for writing an integer.
    unsafe { *value = result };
    SUCCESS
}

unsafe extern "C" fn yes(value: *mut c_int, _: c_int, _: c_int) -> c_int {
    // SAFETY: the pointer is valid for writing an integer.
    unsafe { *value = 1 };
    SUCCESS
}

unsafe extern "C" fn no_such_attribute(_: *mut c_int, _: c_int, _: c_int, _: c_int) -> c_int {
    1
}

unsafe extern "C" fn version(value: *mut c_int) -> c_int {
    // SAFETY: the pointer is valid for writing an integer.
    unsafe { *value = 13_000 };
    SUCCESS
}

const API: Api = Api {
    version,
    init,
    device_count: two,
    device,
    name,
    total_memory,
    attribute,
    can_access_peer: yes,
    peer_attribute: no_such_attribute,
};

#[test]
fn attributes_are_queried() {
    let gpus = API.gpus().unwrap();
    assert_eq!(gpus.len(), 2);
    let Attributes { name, memory, capability, multiprocessors, f64_ratio, pcie, .. } = &gpus[1].attributes;
    assert_eq!((name.as_str(), *memory, *capability), ("GPU 8", Bytes(141 << 30), 90));
    assert_eq!((*multiprocessors, *f64_ratio, *pcie), (132, 0, None));
    assert_eq!(gpus[1].peers, [Peer::Pcie, Peer::None]);
}

#[test]
fn driver_without_gpus_is_no_error() {
    unsafe extern "C" fn no_device(_: c_uint) -> c_int {
        NO_DEVICE
    }
    assert_eq!(Api { init: no_device, ..API }.gpus(), Ok(vec![]));
}

#[test]
fn broken_drivers_are_errors() {
    unsafe extern "C" fn mismatch(_: c_uint) -> c_int {
        803
    }
    unsafe extern "C" fn many(count: *mut c_int) -> c_int {
        // SAFETY: the pointer is valid for writing an integer.
        unsafe { *count = c_int::MAX };
        SUCCESS
    }
    unsafe extern "C" fn unknown(_: *mut c_int, _: c_int, _: c_int) -> c_int {
        1
    }
    unsafe extern "C" fn lost(_: *mut usize, _: c_int) -> c_int {
        719
    }
    let message = |api: Api| api.gpus().unwrap_err().to_string();
    assert_eq!(message(Api { init: mismatch, ..API }), "'cuInit' of the CUDA driver failed with error 803");
    assert_eq!(
        message(Api { device_count: many, ..API }),
        "the CUDA driver reports that the number of GPUs is 2147483647"
    );
    assert_eq!(
        message(Api { attribute: unknown, ..API }),
        "the CUDA driver reports that a compute capability, times ten, is 0"
    );
    assert_eq!(
        message(Api { total_memory: lost, ..API }),
        "'cuDeviceTotalMem_v2' of the CUDA driver failed with error 719"
    );
}

#[test]
fn unresponsive_driver_times_out() {
    let timeout = Duration::from_millis(20);
    let (_keep, never) = mpsc::channel::<()>();
    let result = with_timeout(timeout, move || Ok(never.recv().is_ok()));
    assert_eq!(result, Err(DriverError::Timeout { timeout }));
    assert_eq!(DriverError::Timeout { timeout: TIMEOUT }.to_string(), "the CUDA driver did not respond within 30 s");
    assert_eq!(with_timeout(TIMEOUT, || Ok(1)), Ok(1));
}

#[test]
fn missing_library_is_no_error() {
    assert!(matches!(Api::load("libdivi-no-such-driver.so.1"), Ok(None)));
}

#[test]
fn invalid_libraries_are_errors() {
    let error = Api::load("libc.so.6").map(|api| api.is_some()).unwrap_err().to_string();
    assert!(error.starts_with("the CUDA driver has no 'cuInit': "), "{error}");
    let file = std::env::temp_dir().join(format!("divi-no-driver-{}.so", std::process::id()));
    std::fs::write(&file, "not a library").unwrap();
    let error = Api::load(file.to_str().unwrap()).map(|api| api.is_some()).unwrap_err().to_string();
    std::fs::remove_file(&file).unwrap();
    assert!(error.starts_with("the CUDA driver cannot be loaded: "), "{error}");
}
