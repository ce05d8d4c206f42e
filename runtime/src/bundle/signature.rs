//! Signatures of kernels: the calls that their code was compiled for.
//!
//! A kernel was compiled for so many iterations on buffers of so many bytes. The code of a bundle, which is trusted, has a line
//! for every call that it was compiled for; a description, which is not, may contain these calls alone.

use super::{ALIGNMENT, Buffer, Call, Then};
use std::fmt::Write as _;

/// Symbol of a shared object: the signatures of its calls as text, a line each, that ends with a NUL.
pub const SIGNATURES: &str = "divi_signatures";
/// Prefix of lines with signatures in PTX, where they are comments.
pub const SIGNATURE_COMMENT: &str = "// divi: ";

impl Call {
    /// The signatures of its kernels: of one that a CPU runs, or of all that a GPU may launch for it.
    pub fn signatures(&self) -> Vec<String> {
        let Some(launch) = &self.launch else { return vec![self.signature(&self.kernel, self.extent, None)] };
        let first = self.signature(&self.kernel, self.extent, Some((launch.blocks, launch.threads)));
        let others = launch.then.iter().chain(launch.library.iter().flat_map(|library| &library.then));
        let other = |then: &Then| self.signature(&then.kernel, then.extent, Some((then.blocks, then.threads)));
        [first].into_iter().chain(others.map(other)).collect()
    }

    /// `KERNEL EXTENT BYTES,… WRITTEN,…`, and behind that a GPU's blocks and threads. `BYTES@N` begin at a multiple of N, others at
    /// one of 64.
    fn signature(&self, kernel: &str, extent: i64, grid: Option<(u32, u32)>) -> String {
        let touched = |(bytes, buffer): (&u64, &Buffer)| match buffer {
            Buffer::Arena(offset) if !offset.is_multiple_of(ALIGNMENT) => {
                format!("{bytes}@{}", 1_u64 << offset.trailing_zeros())
            }
            _ => bytes.to_string(),
        };
        let bytes: Vec<_> = self.bytes.iter().zip(&self.buffers).map(touched).collect();
        let writes: Vec<_> = self.writes.iter().map(usize::to_string).collect();
        let mut text = format!("{kernel} {extent} {} {}", bytes.join(","), writes.join(","));
        if let Some((blocks, threads)) = grid {
            // Writing to a string cannot fail.
            let _ = write!(text, " {blocks} {threads}");
        }
        text
    }
}
