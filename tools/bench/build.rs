//! Links the shared MLIR and HiGHS libraries.
fn main() {
    divi_build::link_shared_mlir();
    divi_build::link_shared_highs();
}
