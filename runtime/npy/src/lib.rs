//! NumPy's files, as tensors of the runtime: one array ([`npy`]) or several ([`npz`]).
//!
//! The files are inputs of `divi-run` and of tests, so any bytes give a tensor or an error, in memory that the file's size bounds.
//! The crate `npyz` (0.9) does not serve:
//!
//! - It allocates as many bytes for a header as the file claims: 4 GiB for a file of 12 bytes.
//! - The element count of a shape is an unchecked product: (2^32, 2^32) panics in debug builds and is 0 in release builds.
//! - Elements have a Rust type each. `bfloat16` and `float8`, which other libraries save as raw bytes (`V2`, `V1`), can be read
//!   only as one `Vec<u8>` an element. All others are copied twice, because tensors are aligned to 64 bytes.
//! - Its archives need `zip` 0.6 with `bzip2`, `zstd` and AES, which no array uses: 67 crates, two of them with C code, in place of
//!   `crc32fast` and `miniz_oxide`. Their expanded size is not limited, and of two entries of one name the last is read.

pub mod npy;
pub mod npz;
