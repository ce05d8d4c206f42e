//! Signatures of kernels: the calls that their code was compiled for.
//!
//! A kernel is compiled for an extent and for buffers of certain sizes. The code of a bundle, which is trusted, contains a
//! line for every call that it was compiled for, in a place defined by its format. The description, which is not trusted, may
//! only contain these calls.

use super::{ALIGNMENT, Buffer, Call};

impl Call {
    /// Returns the signature of a kernel on the buffers of this call: `KERNEL EXTENT BYTES,… WRITTEN,…`. `BYTES@N` is aligned
    /// to N bytes, all others to 64.
    pub fn signature(&self, kernel: &str, extent: i64) -> String {
        let extent_of = |(bytes, buffer): (&u64, &Buffer)| match buffer {
            Buffer::Arena(offset) if !offset.is_multiple_of(ALIGNMENT) => {
                format!("{bytes}@{}", 1_u64 << offset.trailing_zeros())
            }
            _ => bytes.to_string(),
        };
        let bytes: Vec<_> = self.bytes.iter().zip(&self.buffers).map(extent_of).collect();
        let writes: Vec<_> = self.writes.iter().map(usize::to_string).collect();
        format!("{kernel} {extent} {} {}", bytes.join(","), writes.join(","))
    }
}
