//! Links the shared libraries of the readers.
fn main() {
    #[cfg(feature = "import")]
    divi_build::link_shared_mlir();
    divi_build::link_shared_highs();
}
