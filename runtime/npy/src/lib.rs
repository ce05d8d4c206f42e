//! Readers and writers for NumPy files as tensors of the runtime: one array ([`npy`]) or several ([`npz`]).
//!
//! The files are untrusted inputs of `divi-run`: any bytes give a tensor or an error, with memory bounded by the file size.
//! Reasons not to use the crate `npyz` (0.9):
//!
//! - It allocates as many bytes for a header as the file claims: 4 GiB for a file of 12 bytes.
//! - The element count of a shape is an unchecked product: (2^32, 2^32) panics in debug builds and is 0 in release builds.
//! - Elements are typed statically. `bfloat16` and `float8`, which other libraries save as raw bytes (`V2`, `V1`), can only be read
//!   as one `Vec<u8>` per element. All others are copied twice, because tensors are aligned to 64 bytes.
//! - Its archives need `zip` 0.6 with `bzip2`, `zstd` and AES, which no array uses: 67 crates, two of them with C code, instead of
//!   `crc32fast` and `miniz_oxide`. The expanded size is not limited, and of two entries with the same name the last is read.

pub mod npy;
pub mod npz;
