//! The MLIR dialects of divi: `divi` (devices, tasks, plans) and `onnx` (ONNX's operators).
//!
//! Both are ODS dialects (`td/`), compiled by the build script and registered through C handles. [`op`] and [`attr`] contain the
//! names of operations and attributes; [`NewOperation`] creates operations.

pub mod attr;
mod attribute;
mod block;
mod context;
mod diagnostic;
mod elements;
mod ffi;
mod kind;
pub mod node;
pub mod op;
mod operation;
mod types;
mod value;
mod verify;

pub use attribute::{BatchAttribute, BatchCost, CostAttribute, ExternalAttribute, MoveAttribute};
pub use block::{Block, Region, blocks_in_order};
pub use context::{ContextLike, fused_location, text};
pub use diagnostic::{emit_error, emit_error_at, emit_warning, location_name};
pub use elements::{dense_elements, dense_resource, element_count, elements_of, string_elements, strings_of};
pub use kind::{DeviceKindInfo, DeviceKinds, set_device_kinds};
pub use operation::{NamedAttribute, NewOperation, Operation, parse_module};
pub use types::{
    contained_type, element_type, element_type_of, function_results, function_type, is_memory, is_tensor,
    optional_type, print_type, ranked_tensor_bytes, reshaped_type, sequence_type, tensor_type, tensor_type_of,
};
pub use value::Value;
pub use verify::skip_type_verification;

use melior::{
    Context,
    dialect::{DialectHandle, DialectRegistry},
};

/// Creates a single-threaded context with both dialects and `func`.
pub fn new_context() -> Context {
    let registry = DialectRegistry::new();
    register(&registry);
    DialectHandle::func().insert_dialect(&registry);
    let context = Context::new();
    context.enable_multi_threading(false);
    context.append_dialect_registry(&registry);
    context.load_all_available_dialects();
    context
}

/// Adds both dialects to a registry.
pub fn register(registry: &DialectRegistry) {
    for handle in ffi::dialect_handles() {
        handle.insert_dialect(registry);
    }
}
