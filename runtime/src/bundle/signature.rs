//! Signatures of kernels: the calls that their code was compiled for.
//!
//! A kernel was compiled for so many iterations on buffers of so many bytes. The code of a bundle, which is trusted, contains a line
//! for every call that it was compiled for, where the driver of its format looks for it. A description, which is not trusted, may
//! contain these calls alone.

use super::{ALIGNMENT, Buffer, Call};

impl Call {
    /// Returns the signature of a kernel on the buffers of this call: `KERNEL EXTENT BYTES,… WRITTEN,…`. `BYTES@N` begin at a multiple
    /// of N, others at one of 64.
    pub fn signature(&self, kernel: &str, extent: i64) -> String {
        let touched = |(bytes, buffer): (&u64, &Buffer)| match buffer {
            Buffer::Arena(offset) if !offset.is_multiple_of(ALIGNMENT) => {
                format!("{bytes}@{}", 1_u64 << offset.trailing_zeros())
            }
            _ => bytes.to_string(),
        };
        let bytes: Vec<_> = self.bytes.iter().zip(&self.buffers).map(touched).collect();
        let writes: Vec<_> = self.writes.iter().map(usize::to_string).collect();
        format!("{kernel} {extent} {} {}", bytes.join(","), writes.join(","))
    }
}
