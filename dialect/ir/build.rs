//! Compiles TableGen and C++ of the two dialects.

use divi_build::{compile_if_stale, cxx, link_mlir_c_api, link_shared_mlir, out_dir, tablegen};
use std::{env, fs, path::PathBuf};

/// Number of translation units for the 80,000 generated lines of the `onnx` dialect's operators. Shards compile in parallel,
/// but each parses all declarations again.
const SHARDS: usize = 2;

fn main() {
    for (file, name) in [("Divi.td", "divi"), ("Onnx.td", "onnx")] {
        let stem = file.strip_suffix(".td").expect("a TableGen file");
        let dialect = format!("-dialect={name}");
        tablegen(file, &format!("{stem}Dialect.h.inc"), &["-gen-dialect-decls", &dialect]);
        tablegen(file, &format!("{stem}Dialect.cpp.inc"), &["-gen-dialect-defs", &dialect]);
    }
    tablegen("Divi.td", "DiviAttributes.h.inc", &["-gen-attrdef-decls", "-attrdefs-dialect=divi"]);
    tablegen("Divi.td", "DiviAttributes.cpp.inc", &["-gen-attrdef-defs", "-attrdefs-dialect=divi"]);
    tablegen("Divi.td", "DiviOps.h.inc", &["-gen-op-decls"]);
    tablegen("Divi.td", "DiviOps.cpp.inc", &["-gen-op-defs"]);
    tablegen("Onnx.td", "OnnxTypes.h.inc", &["-gen-typedef-decls", "-typedefs-dialect=onnx"]);
    tablegen("Onnx.td", "OnnxTypes.cpp.inc", &["-gen-typedef-defs", "-typedefs-dialect=onnx"]);
    let shards = format!("-op-shard-count={SHARDS}");
    tablegen("Onnx.td", "OnnxOps.h.inc", &["-gen-op-decls", &shards]);
    tablegen("Onnx.td", "OnnxOps.cpp.inc", &["-gen-op-defs", &shards]);

    cxx().files(["cpp/CApi.cpp", "cpp/DiviAttributes.cpp", "cpp/DiviOps.cpp", "cpp/Onnx.cpp"]).compile("divi_dialect");
    let shards: Vec<_> = (0..SHARDS).map(shard).collect();
    let generated = ["OnnxDialect.h.inc", "OnnxOps.h.inc", "OnnxOps.cpp.inc", "OnnxTypes.h.inc"];
    let mut headers: Vec<PathBuf> = generated.iter().map(|name| out_dir().join(name)).collect();
    headers.extend(["cpp/Onnx.h".into(), "cpp/OnnxShard.h".into()]);
    compile_if_stale("divi_onnx_ops", &shards, &headers);
    link_mlir_c_api();
    link_shared_mlir();
    let manifest_dir = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR for build scripts");
    println!("cargo:include={manifest_dir}/cpp:{}", out_dir().display());
}

/// Returns the path of a source file that compiles one shard of the operators; writes it if it does not exist.
fn shard(index: usize) -> PathBuf {
    let path = out_dir().join(format!("OnnxOps{index}.cpp"));
    if !path.exists() {
        let text = format!("#define GET_OP_DEFS_{index}\n#include \"OnnxShard.h\"\n");
        fs::write(&path, text).expect("the output directory is writable");
    }
    path
}
