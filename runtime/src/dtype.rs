//! Element types of ONNX and their representation in NumPy files.

use std::fmt;

macro_rules! dtypes {
    ($($variant:ident, $name:literal, $bits:literal, $numpy:literal;)*) => {
        /// Element type of a tensor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DType { $(#[doc = concat!("`", $name, "`.")] $variant,)* }

        impl DType {
            /// All element types.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name in ONNX and in bundles.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the width of an element in bits. Elements below 8 bits are packed, the first in the lowest bits.
            pub const fn bits(self) -> u64 {
                match self { $(Self::$variant => $bits,)* }
            }

            /// Returns the type in NumPy files. Types that NumPy lacks are represented by integers of at least 8 bits.
            pub const fn numpy(self) -> &'static str {
                match self { $(Self::$variant => $numpy,)* }
            }
        }
    };
}

dtypes! {
    F32, "float", 32, "<f4";
    U8, "uint8", 8, "|u1";
    I8, "int8", 8, "|i1";
    U16, "uint16", 16, "<u2";
    I16, "int16", 16, "<i2";
    I32, "int32", 32, "<i4";
    I64, "int64", 64, "<i8";
    Bool, "bool", 8, "|b1";
    F16, "float16", 16, "<f2";
    F64, "double", 64, "<f8";
    U32, "uint32", 32, "<u4";
    U64, "uint64", 64, "<u8";
    Complex64, "complex64", 64, "<c8";
    Complex128, "complex128", 128, "<c16";
    BF16, "bfloat16", 16, "<u2";
    F8E4M3FN, "float8e4m3fn", 8, "|u1";
    F8E4M3FNUZ, "float8e4m3fnuz", 8, "|u1";
    F8E5M2, "float8e5m2", 8, "|u1";
    F8E5M2FNUZ, "float8e5m2fnuz", 8, "|u1";
    U4, "uint4", 4, "|u1";
    I4, "int4", 4, "|i1";
    F4E2M1, "float4e2m1", 4, "|u1";
    F8E8M0, "float8e8m0", 8, "|u1";
    U2, "uint2", 2, "|u1";
    I2, "int2", 2, "|i1";
}

impl DType {
    /// Returns the type with an ONNX name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }

    /// Returns the size in bytes of a dense tensor of this shape; `None` if it overflows.
    pub fn bytes_of(self, shape: &[u64]) -> Option<u64> {
        if shape.contains(&0) {
            return Some(0);
        }
        let elements = shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size))?;
        Some(elements.checked_mul(self.bits())?.div_ceil(8))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
