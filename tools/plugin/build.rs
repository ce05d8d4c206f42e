//! Builds the plugin's C++ entry points and links the shared libraries.

use divi_build::{cxx, link_shared_highs, link_shared_mlir};

fn main() {
    let dialect = std::env::var("DEP_DIVI_DIALECT_INCLUDE").expect("divi-dialect exports its include path");
    cxx().includes(dialect.split(':')).file("cpp/Plugin.cpp").compile("divi_plugin");
    link_shared_mlir();
    link_shared_highs();
}
