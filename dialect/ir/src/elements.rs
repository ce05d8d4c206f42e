//! Conversion between constants and MLIR's elements attributes.

mod ffi;

pub use ffi::{dense_elements, dense_resource, element_count, elements_of, string_elements, strings_of};
