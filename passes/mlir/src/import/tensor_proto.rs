//! Hand-written decoder of `TensorProto`: numbers stay undecoded slices of their file.
//!
//! A generated decoder would copy packed floats into a vector and lose their offset, which the IR refers to.

use super::proto::StringStringEntryProto;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use divi_onnx::{DType, Tensor};
use prost::{
    DecodeError, Message,
    encoding::{self, DecodeContext, WireType},
};

/// Payload of a packed repeated field, in wire encoding. A single chunk aliases the file; several are joined in a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Packed(Bytes);

impl Packed {
    /// Returns true if the field has no elements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes on the wire: for fixed-width fields, the numbers themselves.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    fn append(&mut self, chunk: Bytes) {
        if self.0.is_empty() {
            self.0 = chunk;
        } else {
            // An exclusive buffer grows in place: a field may be encoded one element at a time.
            let mut joined = std::mem::take(&mut self.0).try_into_mut().unwrap_or_else(|shared| shared[..].into());
            joined.extend_from_slice(&chunk);
            self.0 = joined.freeze();
        }
    }

    /// Decodes both encodings of a repeated number: packed, or one element at a time.
    fn merge(&mut self, wire_type: WireType, buf: &mut impl Buf, context: DecodeContext) -> Result<(), DecodeError> {
        let width = match wire_type {
            WireType::LengthDelimited => {
                let mut chunk = Bytes::new();
                encoding::bytes::merge(wire_type, &mut chunk, buf, context)?;
                self.append(chunk);
                return Ok(());
            }
            WireType::Varint => {
                let mut element = BytesMut::new();
                encoding::encode_varint(encoding::decode_varint(buf)?, &mut element);
                self.append(element.freeze());
                return Ok(());
            }
            WireType::ThirtyTwoBit => 4,
            WireType::SixtyFourBit => 8,
            _ => return Err(wrong_wire_type()),
        };
        if buf.remaining() < width {
            return Err(wrong_wire_type());
        }
        self.append(buf.copy_to_bytes(width));
        Ok(())
    }

    /// Decodes the varints of an integer field; `None` if the payload is truncated or malformed.
    pub fn varints(&self) -> Option<Vec<u64>> {
        let mut rest = self.0.clone();
        let mut values = Vec::with_capacity(rest.len().min(1 << 16));
        while rest.has_remaining() {
            values.push(encoding::decode_varint(&mut rest).ok()?);
        }
        Some(values)
    }

    fn encode(&self, tag: u32, buf: &mut impl BufMut) {
        if !self.is_empty() {
            encoding::bytes::encode(tag, &self.0, buf);
        }
    }

    fn encoded_len(&self, tag: u32) -> usize {
        if self.is_empty() { 0 } else { encoding::bytes::encoded_len(tag, &self.0) }
    }
}

/// Creates a decoding error. prost has no public constructor for it, so decoding an empty buffer has to fail.
fn wrong_wire_type() -> DecodeError {
    encoding::decode_varint(&mut &[][..]).expect_err("an empty buffer is not a varint")
}

/// `TensorProto` of ONNX. Its fields have the names of the schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorProto {
    /// Shape.
    pub dims: Vec<i64>,
    /// Code of the element type.
    pub data_type: i32,
    /// True if the tensor is stored in segments, which are not supported.
    pub has_segment: bool,
    /// Elements of types float and complex64.
    pub float_data: Packed,
    /// Elements of integers up to 32 bits, of narrow floats and of bool.
    pub int32_data: Packed,
    /// Elements of type string.
    pub string_data: Vec<Bytes>,
    /// Elements of type int64.
    pub int64_data: Packed,
    /// Name of an initializer.
    pub name: String,
    /// Elements of any numeric type, in little-endian order.
    pub raw_data: Option<Bytes>,
    /// Elements of types double and complex128.
    pub double_data: Packed,
    /// Elements of types uint32 and uint64.
    pub uint64_data: Packed,
    /// Location, offset and length of external data.
    pub external_data: Vec<StringStringEntryProto>,
    /// 1 if the elements are external data.
    pub data_location: i32,
}

impl Message for TensorProto {
    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => encoding::int64::merge_repeated(wire_type, &mut self.dims, buf, context),
            2 => encoding::int32::merge(wire_type, &mut self.data_type, buf, context),
            3 => {
                self.has_segment = true;
                encoding::skip_field(wire_type, tag, buf, context)
            }
            4 => self.float_data.merge(wire_type, buf, context),
            5 => self.int32_data.merge(wire_type, buf, context),
            6 => encoding::bytes::merge_repeated(wire_type, &mut self.string_data, buf, context),
            7 => self.int64_data.merge(wire_type, buf, context),
            8 => encoding::string::merge(wire_type, &mut self.name, buf, context),
            9 => encoding::bytes::merge(wire_type, self.raw_data.get_or_insert_default(), buf, context),
            10 => self.double_data.merge(wire_type, buf, context),
            11 => self.uint64_data.merge(wire_type, buf, context),
            13 => encoding::message::merge_repeated(wire_type, &mut self.external_data, buf, context),
            14 => encoding::int32::merge(wire_type, &mut self.data_location, buf, context),
            _ => encoding::skip_field(wire_type, tag, buf, context),
        }
    }

    fn encode_raw(&self, buf: &mut impl BufMut) {
        encoding::int64::encode_repeated(1, &self.dims, buf);
        encoding::int32::encode(2, &self.data_type, buf);
        self.float_data.encode(4, buf);
        self.int32_data.encode(5, buf);
        encoding::bytes::encode_repeated(6, &self.string_data, buf);
        self.int64_data.encode(7, buf);
        encoding::string::encode(8, &self.name, buf);
        if let Some(raw_data) = &self.raw_data {
            encoding::bytes::encode(9, raw_data, buf);
        }
        self.double_data.encode(10, buf);
        self.uint64_data.encode(11, buf);
        encoding::message::encode_repeated(13, &self.external_data, buf);
        encoding::int32::encode(14, &self.data_location, buf);
    }

    fn encoded_len(&self) -> usize {
        encoding::int64::encoded_len_repeated(1, &self.dims)
            + encoding::int32::encoded_len(2, &self.data_type)
            + self.float_data.encoded_len(4)
            + self.int32_data.encoded_len(5)
            + encoding::bytes::encoded_len_repeated(6, &self.string_data)
            + self.int64_data.encoded_len(7)
            + encoding::string::encoded_len(8, &self.name)
            + self.raw_data.as_ref().map_or(0, |raw_data| encoding::bytes::encoded_len(9, raw_data))
            + self.double_data.encoded_len(10)
            + self.uint64_data.encoded_len(11)
            + encoding::message::encoded_len_repeated(13, &self.external_data)
            + encoding::int32::encoded_len(14, &self.data_location)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Elements of a tensor, or their location.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// In memory. The buffer aliases the file where the encoding allows.
    Here(Tensor),
    /// In a file next to the model.
    External {
        /// Element type.
        dtype: DType,
        /// Shape.
        dims: Vec<i64>,
        /// Path of the file, relative to the model's folder.
        location: String,
        /// Offset in the file, in bytes.
        offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// Strings, which have no dense form.
    Strings {
        /// Shape.
        dims: Vec<i64>,
        /// Elements in row-major order.
        values: Vec<Bytes>,
    },
}

impl TensorProto {
    /// Returns the elements, checked against type and shape. The error is a predicate whose subject is the tensor.
    pub fn elements(&self) -> Result<Elements, String> {
        let dtype = DType::from_code(self.data_type.into())
            .ok_or_else(|| format!("has element type code {}, which ONNX does not have", self.data_type))?;
        if self.has_segment {
            return Err("is stored in segments, which divi does not read: save the model again without them".into());
        }
        let shape = || self.dims.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        let count = divi_onnx::tensor::count_of(&self.dims).filter(|&count| count <= i64::MAX as u64);
        let Some(count) = count else {
            return Err(format!("has shape {}, which no tensor can have", shape()));
        };
        if dtype == DType::String {
            return match self.string_data.len() as u64 == count {
                true => Ok(Elements::Strings { dims: self.dims.clone(), values: self.string_data.clone() }),
                false => Err(format!("has {} strings, but shape {} takes {count}", self.string_data.len(), shape())),
            };
        }
        let Some(length) = dtype.byte_len(count) else {
            return Err(format!("has shape {}, which no tensor can have", shape()));
        };
        if self.data_location == 1 {
            return self.external(dtype, length);
        }
        let bytes = self.dense_bytes(dtype)?;
        let actual = bytes.len();
        Tensor::new(dtype, self.dims.clone(), bytes)
            .map(Elements::Here)
            .ok_or_else(|| format!("has {actual} bytes of data, but shape {} of {dtype} takes {length}", shape()))
    }

    fn external(&self, dtype: DType, expected: u64) -> Result<Elements, String> {
        let entry = |key: &str| {
            self.external_data.iter().find(|entry| entry.key.as_deref() == Some(key)).and_then(|e| e.value.as_deref())
        };
        let number = |key: &str| {
            entry(key).map(|text| {
                text.parse::<u64>().map_err(|_| format!("has external {key} '{text}', which is not a number"))
            })
        };
        let location = entry("location").ok_or("is stored externally, but has no location")?;
        let offset = number("offset").transpose()?.unwrap_or(0);
        let length = number("length").transpose()?.unwrap_or(expected);
        if length != expected {
            return Err(format!("has {length} bytes of external data, but its type and shape take {expected}"));
        }
        Ok(Elements::External { dtype, dims: self.dims.clone(), location: location.to_owned(), offset, length })
    }

    /// Returns the elements in the layout of `raw_data`, whichever field they are in.
    fn dense_bytes(&self, dtype: DType) -> Result<Bytes, String> {
        if let Some(raw_data) = &self.raw_data {
            return Ok(raw_data.clone());
        }
        let malformed = || "has integer data that is truncated or malformed".to_owned();
        let narrow = |packed: &Packed, bytes: usize| -> Result<Bytes, String> {
            let values = packed.varints().ok_or_else(malformed)?;
            Ok(values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(bytes)).collect())
        };
        match dtype {
            DType::F32 | DType::Complex64 => Ok(self.float_data.bytes().clone()),
            DType::F64 | DType::Complex128 => Ok(self.double_data.bytes().clone()),
            DType::I64 => narrow(&self.int64_data, 8),
            DType::U64 => narrow(&self.uint64_data, 8),
            DType::U32 => narrow(&self.uint64_data, 4),
            DType::I32 => narrow(&self.int32_data, 4),
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => narrow(&self.int32_data, 2),
            // Types of less than a byte have one packed byte per entry, except for six bits, which have one element.
            DType::F6E2M3 | DType::F6E3M2 => {
                let values = self.int32_data.varints().ok_or_else(malformed)?;
                let mut bytes = vec![0u8; (values.len() * 6).div_ceil(8)];
                for (bit, value) in values.iter().flat_map(|v| (0..6).map(move |i| v >> i & 1)).enumerate() {
                    bytes[bit / 8] |= (value as u8) << (bit % 8);
                }
                Ok(bytes.into())
            }
            _ => narrow(&self.int32_data, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(wire: &[u8]) -> TensorProto {
        TensorProto::decode(Bytes::copy_from_slice(wire)).unwrap()
    }

    #[test]
    fn packed_floats_alias_the_file() {
        let mut wire = vec![0x08, 2, 0x10, 1, 0x22, 8];
        wire.extend(1.0f32.to_le_bytes());
        wire.extend(2.0f32.to_le_bytes());
        let wire = Bytes::from(wire);
        let proto = TensorProto::decode(wire.clone()).unwrap();
        let Ok(Elements::Here(tensor)) = proto.elements() else { panic!("the elements are in memory") };
        assert_eq!(tensor.floats().unwrap(), [1.0, 2.0]);
        assert_eq!(tensor.bytes().as_ptr(), wire[6..].as_ptr());
    }

    #[test]
    fn unpacked_and_split_fields_are_joined() {
        let mut wire = vec![0x08, 2, 0x10, 1];
        for value in [1.0f32, 2.0] {
            wire.push(0x25);
            wire.extend(value.to_le_bytes());
        }
        let Ok(Elements::Here(tensor)) = decode(&wire).elements() else { panic!("the elements are in memory") };
        assert_eq!(tensor.floats().unwrap(), [1.0, 2.0]);
        let ints = decode(&[0x08, 3, 0x10, 7, 0x38, 5, 0x3a, 2, 6, 7]);
        let Ok(Elements::Here(tensor)) = ints.elements() else { panic!("the elements are in memory") };
        assert_eq!(tensor.ints().unwrap(), [5, 6, 7]);
    }

    #[test]
    fn encoding_round_trips() {
        let proto = decode(&[0x08, 1, 0x10, 6, 0x2a, 1, 9, 0x42, 1, b'x']);
        assert_eq!(TensorProto::decode(Bytes::from(proto.encode_to_vec())).unwrap(), proto);
    }

    #[test]
    fn lengths_and_shapes_must_agree() {
        let message = decode(&[0x08, 3, 0x10, 1, 0x4a, 4, 0, 0, 0, 0]).elements().unwrap_err();
        assert_eq!(message, "has 4 bytes of data, but shape 3 of float takes 12");
        let huge = TensorProto { dims: vec![1 << 62, 4], data_type: 1, ..Default::default() };
        assert!(huge.elements().unwrap_err().contains("which no tensor can have"));
        let negative = TensorProto { dims: vec![-1], data_type: 1, ..Default::default() };
        assert!(negative.elements().unwrap_err().contains("which no tensor can have"));
        let unknown = TensorProto { data_type: 99, ..Default::default() };
        assert!(unknown.elements().unwrap_err().contains("element type code 99"));
    }
}
