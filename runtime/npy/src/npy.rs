//! NumPy files with one array (`.npy`, versions 1 to 3).

use divi_runtime::{DType, TensorData, TensorRef};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Headers are padded so that the data starts at a multiple of this many bytes.
const ALIGNMENT: usize = 64;

/// Reads an array.
///
/// Other libraries write types that NumPy lacks as raw bytes: elements of two bytes are read as `bfloat16`, of one byte as
/// `float8e4m3fn`; see [`reinterpret`] for other types.
pub fn read(bytes: &[u8]) -> Result<TensorData, String> {
    let truncated = || "the file is truncated".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as a NumPy file")?;
    let (&[major, _], rest) = rest.split_first_chunk().ok_or_else(truncated)?;
    let (length, rest) = match major {
        1 => rest.split_first_chunk().map(|(length, rest)| (u16::from_le_bytes(*length) as usize, rest)),
        2 | 3 => rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length) as usize, rest)),
        _ => return Err(format!("version {major} of NumPy's format is not known")),
    }
    .ok_or_else(truncated)?;
    let (header, data) = rest.split_at_checked(length).ok_or_else(truncated)?;
    let header = Header::parse(&String::from_utf8_lossy(header))?;
    let expected = header.bytes().ok_or("its shape is larger than any file")?;
    if (data.len() as u64) < expected {
        return Err(format!("the file is truncated: it has {} bytes of data instead of {expected}", data.len()));
    }
    header.tensor(&data[..expected as usize])
}

/// Writes an array. Types that NumPy lacks are written as integers with the same bits; elements below 8 bits take one byte
/// each.
pub fn write(tensor: TensorRef<'_>) -> Vec<u8> {
    let sizes: String = tensor.shape.iter().map(|size| format!("{size}, ")).collect();
    let shape = match tensor.shape {
        [_] => sizes.trim_end(),
        _ => sizes.trim_end_matches(", "),
    };
    let mut header = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", tensor.dtype.numpy());
    // Version 1, unless the header is longer than 64 KiB.
    let is_short = header.len() + ALIGNMENT < usize::from(u16::MAX);
    let prefix = MAGIC.len() + if is_short { 4 } else { 6 };
    let padding = (prefix + header.len() + 1).next_multiple_of(ALIGNMENT) - (prefix + header.len() + 1);
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut file = MAGIC.to_vec();
    if is_short {
        file.extend([1, 0]);
        file.extend((header.len() as u16).to_le_bytes());
    } else {
        file.extend([2, 0]);
        file.extend((header.len() as u32).to_le_bytes());
    }
    file.extend(header.as_bytes());
    if tensor.dtype.bits() < 8 {
        file.extend(unpack(tensor));
    } else {
        file.extend(tensor.bytes);
    }
    file
}

/// Expands elements below 8 bits to one byte each, with sign extension.
fn unpack(tensor: TensorRef<'_>) -> impl Iterator<Item = u8> {
    let bits = tensor.dtype.bits() as u32;
    let (per_byte, unused) = (8 / bits as usize, 8 - bits);
    let count: u64 = tensor.shape.iter().product();
    let is_signed = matches!(tensor.dtype, DType::I4 | DType::I2);
    (0..count as usize).map(move |index| {
        let top = tensor.bytes[index / per_byte] << (unused - (index % per_byte) as u32 * bits);
        if is_signed { (top as i8 >> unused) as u8 } else { top >> unused }
    })
}

/// Reinterprets the elements of a tensor as `dtype` if files represent `dtype` in that way: raw bytes and integers for types
/// that NumPy lacks, one-byte integers for elements below 8 bits. Otherwise returns the unchanged tensor as the error.
pub fn reinterpret(tensor: TensorData, dtype: DType) -> Result<TensorData, TensorData> {
    if tensor.dtype() == dtype {
        return Ok(tensor);
    }
    let is_raw =
        |dtype: DType| matches!(dtype.name(), "bfloat16" | "uint16" | "uint8") || dtype.name().starts_with("float8");
    if is_raw(dtype) && is_raw(tensor.dtype()) {
        return tensor.with_type(dtype);
    }
    if dtype.bits() < 8 && matches!(tensor.dtype(), DType::I8 | DType::U8 | DType::F8E4M3FN) {
        let Ok(mut packed) = TensorData::zeroed(dtype, tensor.shape()) else { return Err(tensor) };
        let (bits, mask) = (dtype.bits() as usize, (1_u8 << dtype.bits()) - 1);
        for (index, &byte) in tensor.bytes().iter().enumerate() {
            packed.bytes_mut()[index * bits / 8] |= (byte & mask) << (index * bits % 8);
        }
        return Ok(packed);
    }
    Err(tensor)
}

struct Header {
    dtype: DType,
    is_big_endian: bool,
    is_fortran: bool,
    shape: Vec<u64>,
}

impl Header {
    /// Parses a Python dictionary literal.
    fn parse(text: &str) -> Result<Self, String> {
        let field = |name: &str| {
            let start = text.find(&format!("'{name}'")).or_else(|| text.find(&format!("\"{name}\"")));
            let rest = start.map(|start| &text[start + name.len() + 2..]);
            rest.and_then(|rest| rest.trim_start().strip_prefix(':')).map(str::trim_start)
        };
        let wrong = |name: &str| format!("its header has no valid '{name}'");
        let descr = field("descr").ok_or_else(|| wrong("descr"))?;
        let quote = descr.chars().next().filter(|&quote| quote == '\'' || quote == '"');
        let quote = quote.ok_or("its elements have several fields each, which no tensor has")?;
        let descr = descr[1..].split(quote).next().unwrap_or_default();
        let is_fortran = field("fortran_order").ok_or_else(|| wrong("fortran_order"))?.starts_with("True");
        let shape = field("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
        let sizes = shape.ok_or_else(|| wrong("shape"))?.0.split(',').map(|size| size.trim().trim_end_matches('L'));
        let shape = sizes.filter(|size| !size.is_empty()).map(|size| size.parse().map_err(|_| wrong("shape")));
        let (order, kind) = descr.split_at_checked(1).ok_or_else(|| wrong("descr"))?;
        let dtype = match kind {
            // Raw bytes, as other libraries write the types that NumPy lacks.
            "V2" => Some(DType::BF16),
            "V1" => Some(DType::F8E4M3FN),
            "u2" => Some(DType::U16),
            "u1" => Some(DType::U8),
            "i1" => Some(DType::I8),
            _ => DType::ALL.iter().copied().find(|dtype| &dtype.numpy()[1..] == kind),
        };
        let dtype = dtype.ok_or_else(|| format!("its elements are of NumPy's type '{descr}', which no tensor has"))?;
        Ok(Self { dtype, is_big_endian: order == ">", is_fortran, shape: shape.collect::<Result<_, _>>()? })
    }

    fn bytes(&self) -> Option<u64> {
        self.dtype.bytes_of(&self.shape)
    }

    fn tensor(&self, data: &[u8]) -> Result<TensorData, String> {
        let width = (self.dtype.bits() / 8) as usize;
        let mut tensor = TensorData::zeroed(self.dtype, &self.shape).map_err(|error| error.to_string())?;
        if self.is_fortran && self.shape.len() > 1 {
            from_columns(data, tensor.bytes_mut(), &self.shape, width);
        } else {
            tensor.bytes_mut().copy_from_slice(data);
        }
        // The byte order applies to the real and imaginary part of a complex number separately.
        let is_complex = matches!(self.dtype, DType::Complex64 | DType::Complex128);
        let part = if is_complex { width / 2 } else { width };
        if self.is_big_endian && part > 1 {
            tensor.bytes_mut().chunks_exact_mut(part).for_each(<[u8]>::reverse);
        }
        Ok(tensor)
    }
}

/// Converts column-major to row-major order.
fn from_columns(source: &[u8], target: &mut [u8], shape: &[u64], width: usize) {
    let mut indices = vec![0; shape.len()];
    let strides: Vec<u64> =
        shape.iter().scan(1, |stride, size| Some(std::mem::replace(stride, *stride * size))).collect();
    for element in target.chunks_exact_mut(width) {
        let offset: u64 = indices.iter().zip(&strides).map(|(index, stride)| index * stride).sum();
        element.copy_from_slice(&source[offset as usize * width..][..width]);
        for axis in (0..shape.len()).rev() {
            indices[axis] += 1;
            if indices[axis] < shape[axis] {
                break;
            }
            indices[axis] = 0;
        }
    }
}
