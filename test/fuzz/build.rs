//! Links the libraries of the readers, as test/readers/build.rs does.

fn main() {
    if std::env::var_os("CARGO_FEATURE_IMPORT").is_some() {
        divi_build::link_shared_mlir();
    }
    divi_build::link_shared_highs();
}
