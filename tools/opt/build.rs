//! Builds the C++ driver and links the shared libraries.

use divi_build::{cxx, link_shared_highs, link_shared_mlir};

fn main() {
    let dialect = std::env::var("DEP_DIVI_DIALECT_INCLUDE").expect("divi-dialect exports its include path");
    let passes = std::env::var("DEP_DIVI_PASSES_INCLUDE").expect("divi-passes exports its include path");
    cxx()
        .includes(dialect.split(':').chain(passes.split(':')))
        .files(["cpp/Driver.cpp", "cpp/Losses.cpp", "cpp/Options.cpp", "cpp/Output.cpp"])
        .compile("divi_driver");
    link_shared_mlir();
    link_shared_highs();
}
