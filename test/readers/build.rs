fn main() {
    #[cfg(feature = "import")]
    divi_build::link_shared_mlir();
    divi_build::link_shared_highs();
}
