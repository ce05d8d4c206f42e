//! Semantics of ONNX operators, independent of MLIR: element types, shapes that may be partly unknown,
//! constants, and for each operator the function that infers its results and, where it is cheap,
//! the one that evaluates it on constants.
//!
//! The importer, the verifiers of the `onnx` dialect and re-inference at another batch size all use this crate.

pub mod dtype;
pub mod fold;
pub mod infer;
pub mod node;
pub mod operators;
pub mod schema;
pub mod shape;
pub mod tensor;

pub use dtype::DType;
pub use node::{Attr, Attributes, Error, Node, Value};
pub use operators::Op;
pub use shape::{Dim, Shape, Symbol, TensorType};
pub use tensor::Tensor;
