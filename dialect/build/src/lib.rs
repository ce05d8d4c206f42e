//! Helpers for build scripts of crates that compile TableGen or C++.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns the installation prefix of LLVM and MLIR, from the environment variable that `mlir-sys` also reads.
///
/// # Panics
/// If the variable is unset or the prefix has no `mlir-tblgen`.
pub fn llvm_prefix() -> PathBuf {
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let prefix =
        PathBuf::from(env::var("MLIR_SYS_220_PREFIX").expect("MLIR_SYS_220_PREFIX is set by .cargo/config.toml"));
    let tablegen = prefix.join("bin/mlir-tblgen");
    assert!(tablegen.exists(), "{} is missing: run tools/setup, which installs MLIR", tablegen.display());
    prefix
}

/// Returns Cargo's output directory (`OUT_DIR`) of the crate being built.
pub fn out_dir() -> PathBuf {
    env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts").into()
}

/// Runs `mlir-tblgen` with `arguments` on `td/{file}`, writing `output` into the output directory.
pub fn tablegen(file: &str, output: &str, arguments: &[&str]) {
    run_tablegen("mlir-tblgen", file, output, arguments);
}

/// Returns all records of `td/{file}` as JSON, the output of TableGen's `--dump-json`.
pub fn tablegen_records(file: &str) -> String {
    let output = format!("{file}.json");
    run_tablegen("llvm-tblgen", file, &output, &["--dump-json"]);
    fs::read_to_string(out_dir().join(output)).expect("TableGen has written the file")
}

fn run_tablegen(program: &str, file: &str, output: &str, arguments: &[&str]) {
    println!("cargo:rerun-if-changed=td");
    let prefix = llvm_prefix();
    let status = Command::new(prefix.join("bin").join(program))
        .args(arguments)
        .arg(Path::new("td").join(file))
        .args(["-I", "td", "-I"])
        .arg(prefix.join("include"))
        .arg("--write-if-changed")
        .arg("-o")
        .arg(out_dir().join(output))
        .status()
        .unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    assert!(status.success(), "{program} failed on td/{file}");
}

/// Returns a C++ build with the flags that MLIR's headers need. Include directories are `cpp/` and the output directory.
pub fn cxx() -> cc::Build {
    println!("cargo:rerun-if-changed=cpp");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .compiler(llvm_prefix().join("bin/clang++"))
        .std("c++17")
        .include("cpp")
        .include(out_dir())
        .flag(format!("-isystem{}", llvm_prefix().join("include").display()))
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .flag("-fvisibility-inlines-hidden")
        .flag("-Wall")
        .flag("-Wno-unused-parameter")
        // Must match Debian's LLVM: assertions change the layout of some of its classes.
        .define("NDEBUG", None)
        .define("_GNU_SOURCE", None)
        .define("__STDC_CONSTANT_MACROS", None)
        .define("__STDC_FORMAT_MACROS", None)
        .define("__STDC_LIMIT_MACROS", None)
        // Generated code is large and not performance-critical; higher levels only increase compile time.
        .opt_level(if is_optimized() { 1 } else { 0 })
        .debug(false);
    build
}

/// Returns true if the crate being built is optimized.
fn is_optimized() -> bool {
    env::var("OPT_LEVEL").is_ok_and(|level| level != "0")
}

/// Compiles `files` into `lib{name}.a`, unless the archive exists and is newer than `files` and the `headers` they include.
pub fn compile_if_stale(name: &str, files: &[PathBuf], headers: &[PathBuf]) {
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let archive = modified(&out_dir().join(format!("lib{name}.a")));
    let fresh = archive.is_some() && files.iter().chain(headers).all(|input| modified(input) < archive);
    if fresh {
        println!("cargo:rustc-link-search=native={}", out_dir().display());
        println!("cargo:rustc-link-lib=static={name}");
    } else {
        cxx().files(files).compile(name);
    }
}

/// Links MLIR's C API. Debian ships it as static libraries only, but `mlir-sys` links a shared `libMLIR-C.so`; a linker
/// script of that name links the C API from the archives and MLIR itself from its shared library.
pub fn link_mlir_c_api() {
    let prefix = llvm_prefix();
    let mut archives: Vec<String> = fs::read_dir(prefix.join("lib"))
        .expect("LLVM's prefix has a lib directory")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_prefix("libMLIRCAPI")?.strip_suffix(".a")?.to_owned()))
        .collect();
    archives.sort();
    let inputs: Vec<String> = archives.iter().map(|name| format!("-lMLIRCAPI{name}")).collect();
    let folder = out_dir().join("mlir-c");
    fs::create_dir_all(&folder).expect("the output directory is writable");
    fs::write(folder.join("libMLIR-C.so"), format!("INPUT( {} )\n", inputs.join(" ")))
        .expect("the output directory is writable");
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-search=native={}", prefix.join("lib").display());
}

/// Adds the directory of MLIR's shared library to the run path of the crate's binaries.
pub fn link_shared_mlir() {
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", llvm_prefix().join("lib").display());
}

/// Adds the directory of the HiGHS library that tools/setup installs to the run path of the crate's binaries. Without that
/// installation HiGHS is compiled from source and linked statically.
pub fn link_shared_highs() {
    if let Ok(folder) = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.highs/lib").canonicalize() {
        println!("cargo:rerun-if-changed={}", folder.display());
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    }
}
