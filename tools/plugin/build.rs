//! The plugin's entry points.

use divi_build::{cxx, link_shared_highs, link_shared_mlir};

fn main() {
    let dialect = std::env::var("DEP_DIVI_DIALECT_INCLUDE").expect("divi-dialect says where its headers are");
    cxx().includes(dialect.split(':')).file("cpp/Plugin.cpp").compile("divi_plugin");
    link_shared_mlir();
    link_shared_highs();
}
