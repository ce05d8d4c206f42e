//! Element types, with the codes of ONNX's `TensorProto.DataType`.

use std::fmt;

macro_rules! dtypes {
    ($($variant:ident = $code:literal, $name:literal, $bits:literal;)*) => {
        /// Element type of a tensor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DType {
            $(#[doc = concat!("ONNX's type `", $name, "`.")] $variant,)*
        }

        impl DType {
            /// All element types of ONNX.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the type with this `TensorProto.DataType` code; `None` for 0 (undefined) and unknown codes.
            pub const fn from_code(code: i64) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }

            /// Returns the `TensorProto.DataType` code.
            pub const fn code(self) -> i64 {
                match self { $(Self::$variant => $code,)* }
            }

            /// Returns ONNX's name of the type in signatures, as in `tensor(float)`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the width in bits of an element in a dense buffer; 0 for strings, which have no fixed width.
            pub const fn bits(self) -> u64 {
                match self { $(Self::$variant => $bits,)* }
            }
        }
    };
}

dtypes! {
    F32 = 1, "float", 32;
    U8 = 2, "uint8", 8;
    I8 = 3, "int8", 8;
    U16 = 4, "uint16", 16;
    I16 = 5, "int16", 16;
    I32 = 6, "int32", 32;
    I64 = 7, "int64", 64;
    String = 8, "string", 0;
    Bool = 9, "bool", 8;
    F16 = 10, "float16", 16;
    F64 = 11, "double", 64;
    U32 = 12, "uint32", 32;
    U64 = 13, "uint64", 64;
    Complex64 = 14, "complex64", 64;
    Complex128 = 15, "complex128", 128;
    BF16 = 16, "bfloat16", 16;
    F8E4M3FN = 17, "float8e4m3fn", 8;
    F8E4M3FNUZ = 18, "float8e4m3fnuz", 8;
    F8E5M2 = 19, "float8e5m2", 8;
    F8E5M2FNUZ = 20, "float8e5m2fnuz", 8;
    U4 = 21, "uint4", 4;
    I4 = 22, "int4", 4;
    F4E2M1 = 23, "float4e2m1", 4;
    F8E8M0 = 24, "float8e8m0", 8;
    U2 = 25, "uint2", 2;
    I2 = 26, "int2", 2;
    F6E2M3 = 27, "float6e2m3", 6;
    F6E3M2 = 28, "float6e3m2", 6;
}

impl DType {
    /// Returns true for integers of any width, except `bool`.
    pub const fn is_int(self) -> bool {
        self.is_signed_int() || self.is_unsigned_int()
    }

    /// Returns true for signed integers of any width.
    pub const fn is_signed_int(self) -> bool {
        matches!(self, Self::I2 | Self::I4 | Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns true for unsigned integers of any width, except `bool`.
    pub const fn is_unsigned_int(self) -> bool {
        matches!(self, Self::U2 | Self::U4 | Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// Returns true for floating-point types with arithmetic: 16 bits and wider.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// Returns true for complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::Complex64 | Self::Complex128)
    }

    /// Returns the size in bytes of a dense buffer of `count` elements; types narrower than a byte are packed. `None` on
    /// overflow and for strings.
    pub fn byte_len(self, count: u64) -> Option<u64> {
        if matches!(self, Self::String) {
            return None;
        }
        count.checked_mul(self.bits()).map(|bits| bits.div_ceil(8))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for &dtype in DType::ALL {
            assert_eq!(DType::from_code(dtype.code()), Some(dtype));
        }
        assert_eq!(DType::from_code(0), None);
        assert_eq!(DType::from_code(999), None);
    }

    #[test]
    fn sub_byte_types_are_packed() {
        assert_eq!(DType::I4.byte_len(3), Some(2));
        assert_eq!(DType::U2.byte_len(5), Some(2));
        assert_eq!(DType::Bool.byte_len(3), Some(3));
        assert_eq!(DType::F64.byte_len(u64::MAX), None);
        assert_eq!(DType::String.byte_len(1), None);
    }
}
