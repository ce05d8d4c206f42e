//! divi's vocabulary in MLIR: the `divi` dialect (devices, tasks, plans) and the `onnx` dialect (ONNX's operators).
//!
//! Both are ODS dialects (`td/`), compiled by the build script and registered through C handles. The modules
//! [`divi`] and [`onnx`] hold a typed builder and accessors for every operation, generated from the same files.

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
pub use verify::trusting_inference;

use melior::{
    Context,
    dialect::{DialectHandle, DialectRegistry},
};

/// Operations of the `divi` dialect.
pub mod divi {
    melior::dialect! {
        name: "divi",
        files: ["Divi.td"],
        include_directory_env_vars: ["DIVI_TD"],
    }
    pub use self::divi::*;
}

/// Operations of the `onnx` dialect.
pub mod onnx {
    melior::dialect! {
        name: "onnx",
        files: ["Onnx.td"],
        include_directory_env_vars: ["DIVI_TD"],
    }
    pub use self::onnx::*;
}

/// A context with both dialects and `func`, for work on one thread.
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
