//! One libFuzzer binary for all readers: `DIVI_READER` selects the reader.

#![no_main]

use divi_readers::{Reader, find};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static READER: LazyLock<&'static Reader> = LazyLock::new(|| {
    let name = std::env::var("DIVI_READER").unwrap_or_default();
    find(&name).unwrap_or_else(|| panic!("unknown reader '{name}' in DIVI_READER"))
});

fuzz_target!(|bytes: &[u8]| {
    if let Err(reason) = (READER.read)(bytes) {
        panic!("{reason}");
    }
});
