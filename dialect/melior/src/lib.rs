//! melior without the operation builders of MLIR's own dialects, and still with its `dialect!` macro.
//!
//! Code that `melior::dialect!` generates names two marker types that melior declares only with its feature
//! `ods-dialects`. That feature generates builders for some thirty dialects, none of which divi uses, and takes half a
//! minute of every clean build. This crate declares the marker types instead; `divi-dialect` depends on it under the
//! name `melior`.

pub use melior::*;

/// melior's dialects, with the marker types that generated builders name.
pub mod dialect {
    pub use melior::dialect::*;

    /// Module in which generated code expects the marker types.
    pub mod ods {
        #[doc(hidden)]
        pub mod __private {
            /// A required field of a builder that has a value.
            pub struct Set;
            /// A required field of a builder that has no value yet.
            pub struct Unset;
        }
    }
}
