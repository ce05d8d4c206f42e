//! Links MLIR, and records the path of the linker for shared objects.

fn main() {
    divi_build::link_mlir_c_api();
    divi_build::link_shared_mlir();
    println!("cargo:rustc-env=DIVI_LLD={}", divi_build::llvm_prefix().join("bin/ld.lld").display());
}
