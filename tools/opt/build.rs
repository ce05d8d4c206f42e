//! The driver around MLIR's.

use divi_build::{cxx, link_shared_highs, link_shared_mlir};

fn main() {
    let dialect = std::env::var("DEP_DIVI_DIALECT_INCLUDE").expect("divi-dialect says where its headers are");
    let passes = std::env::var("DEP_DIVI_PASSES_INCLUDE").expect("divi-passes says where its headers are");
    cxx()
        .includes(dialect.split(':').chain(passes.split(':')))
        .files(["cpp/Driver.cpp", "cpp/Options.cpp", "cpp/Output.cpp"])
        .compile("divi_driver");
    link_shared_mlir();
    link_shared_highs();
}
