//! Matrix products by cuBLASLt, in full `f32` precision (no TF32).

use super::{
    driver::{Address, CudaError, CudaResult, Plan, Stream},
    launch::{Epilogue, MatMul},
    real::raw,
};
use cudarc::cublaslt::sys::{
    self, cublasLtMatmulDescAttributes_t as Attribute, cublasLtMatmulPreferenceAttributes_t as Preference,
    cublasLtMatrixLayoutAttribute_t as LayoutAttribute, cublasStatus_t as Status,
};
use divi_threads::sync::Mutex;
use std::{
    ffi::{c_int, c_void},
    mem::MaybeUninit,
    ptr,
    sync::Arc,
};

/// Maximum workspace of an algorithm in bytes.
const MOST_WORKSPACE: u64 = 32 << 20;
/// Maximum number of algorithms to consider.
const ALGORITHMS: usize = 8;
/// Deterministic split-K reductions: partial sums are added in a fixed order instead of atomically in place.
const REDUCTIONS: u32 = sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32
    | sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE as u32;

pub(super) struct CublasLt {
    handle: sys::cublasLtHandle_t,
}

// SAFETY: cuBLASLt handles are thread-safe.
unsafe impl Send for CublasLt {}
// SAFETY: as above.
unsafe impl Sync for CublasLt {}

impl CublasLt {
    /// Opens the library; `None` if it is not installed or does not work with this driver.
    pub(super) fn new() -> Option<Arc<Self>> {
        let mut handle = ptr::null_mut();
        // SAFETY: only searches for the library and loads it.
        let is_available = unsafe { sys::is_culib_present() }
                // SAFETY: the library is loaded, and the pointer outlives the call.
                && unsafe { sys::cublasLtCreate(&mut handle) } == Status::CUBLAS_STATUS_SUCCESS;
        is_available.then(|| Arc::new(Self { handle }))
    }

    /// Returns the algorithms that the library's heuristic proposes for a product.
    pub(super) fn plans(self: &Arc<Self>, product: &MatMul, alignment: u64) -> CudaResult<Vec<Arc<dyn Plan>>> {
        let shapes = Arc::new(Shapes::new(product)?);
        let mut preference = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        check(unsafe { sys::cublasLtMatmulPreferenceCreate(&mut preference) })?;
        let preference = Owned(preference, sys::cublasLtMatmulPreferenceDestroy);
        let prefer = |attribute, value: &dyn AsBytes| {
            let (value, bytes) = value.bytes();
            // SAFETY: the value has the size of the attribute and outlives the call.
            check(unsafe { sys::cublasLtMatmulPreferenceSetAttribute(preference.0, attribute, value, bytes) })
        };
        prefer(Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &MOST_WORKSPACE)?;
        prefer(Preference::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &REDUCTIONS)?;
        let alignment = alignment.min(256) as u32;
        prefer(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment)?;
        prefer(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignment)?;
        prefer(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignment)?;
        prefer(Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignment)?;
        let mut found = [const { MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::uninit() }; ALGORITHMS];
        let (list, mut count) = (found.as_mut_ptr().cast(), 0);
        let operation = shapes.operation.lock();
        let (a, b, d) = (shapes.right.0, shapes.left.0, shapes.output.0);
        // SAFETY: all descriptors are owned by `shapes`, and the list has the given length.
        check(unsafe {
            let (own, most) = (self.handle, ALGORITHMS as c_int);
            sys::cublasLtMatmulAlgoGetHeuristic(own, operation.0.0, a, b, d, d, preference.0, most, list, &mut count)
        })?;
        drop(operation);
        let mut plans: Vec<Arc<dyn Plan>> = Vec::new();
        for found in &found[..(count as usize).min(ALGORITHMS)] {
            // SAFETY: cuBLASLt initialized `count` results.
            let found = unsafe { found.assume_init_ref() };
            if found.state == Status::CUBLAS_STATUS_SUCCESS {
                let (library, shapes) = (self.clone(), shapes.clone());
                plans.push(Arc::new(Algorithm {
                    library,
                    shapes,
                    algorithm: found.algo,
                    workspace: found.workspaceSize,
                }));
            }
        }
        Ok(plans)
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // SAFETY: it was created by `new` and is not used any more.
        let _ = unsafe { sys::cublasLtDestroy(self.handle) };
    }
}

/// Descriptor of cuBLASLt with its destructor.
struct Owned<T>(*mut T, unsafe fn(*mut T) -> Status);

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: it was created by the matching function.
        let _ = unsafe { (self.1)(self.0) };
    }
}

/// Values of attributes.
trait AsBytes {
    fn bytes(&self) -> (*const c_void, usize);
}

impl<T: Copy> AsBytes for T {
    fn bytes(&self) -> (*const c_void, usize) {
        (ptr::from_ref(self).cast(), size_of::<T>())
    }
}

type Layout = Owned<sys::cublasLtMatrixLayoutOpaque_t>;

/// Descriptors of a product. The library's matrices are column-major, so it computes the transposed product with swapped
/// operands: `Cᵀ = Bᵀ Aᵀ`. A bias per column of ours is a bias per row of the library's, which its epilogue supports.
struct Shapes {
    /// Locked, because the address of the bias is one of its attributes.
    operation: Mutex<Matmul>,
    left: Layout,
    right: Layout,
    output: Layout,
    alpha: f32,
    has_bias: bool,
}

struct Matmul(Owned<sys::cublasLtMatmulDescOpaque_t>);

// SAFETY: it is used by one thread at a time.
unsafe impl Send for Matmul {}
// SAFETY: layouts are immutable after their creation.
unsafe impl Send for Shapes {}
// SAFETY: as above.
unsafe impl Sync for Shapes {}

impl Matmul {
    fn set(&self, attribute: Attribute, value: &dyn AsBytes) -> CudaResult<()> {
        let (value, bytes) = value.bytes();
        // SAFETY: the value has the size of the attribute and outlives the call.
        check(unsafe { sys::cublasLtMatmulDescSetAttribute(self.0.0, attribute, value, bytes) })
    }
}

impl Shapes {
    fn new(it: &MatMul) -> CudaResult<Self> {
        let mut operation = ptr::null_mut();
        let (compute, scale) = (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F, sys::cudaDataType_t::CUDA_R_32F);
        // SAFETY: the pointer outlives the call.
        check(unsafe { sys::cublasLtMatmulDescCreate(&mut operation, compute, scale) })?;
        let operation = Matmul(Owned(operation, sys::cublasLtMatmulDescDestroy));
        // `CUBLAS_OP_N` is 0, `CUBLAS_OP_T` is 1.
        operation.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &i32::from(it.right_is_transposed))?;
        operation.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &i32::from(it.left_is_transposed))?;
        use sys::cublasLtEpilogue_t::{
            CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS,
        };
        let epilogue = match (it.epilogue, it.has_bias) {
            (Epilogue::None, false) => CUBLASLT_EPILOGUE_DEFAULT,
            (Epilogue::None, true) => CUBLASLT_EPILOGUE_BIAS,
            (Epilogue::Relu, false) => CUBLASLT_EPILOGUE_RELU,
            (Epilogue::Relu, true) => CUBLASLT_EPILOGUE_RELU_BIAS,
        };
        operation.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
        let side = |(rows, columns): (u32, u32), is_turned, stride| {
            // A row of ours is a column of the library's.
            let (length, count) = if is_turned { (rows, columns) } else { (columns, rows) };
            layout(length, count, it.count, stride)
        };
        Ok(Self {
            operation: Mutex::new(operation),
            left: side((it.rows, it.depth), it.left_is_transposed, it.left_stride)?,
            right: side((it.depth, it.columns), it.right_is_transposed, it.right_stride)?,
            output: side((it.rows, it.columns), false, it.output_stride)?,
            alpha: f32::from_bits(it.alpha),
            has_bias: it.has_bias,
        })
    }
}

fn layout(length: u32, columns: u32, count: u32, stride: u64) -> CudaResult<Layout> {
    let mut layout = ptr::null_mut();
    let float = sys::cudaDataType_t::CUDA_R_32F;
    // SAFETY: the pointer outlives the call.
    check(unsafe {
        sys::cublasLtMatrixLayoutCreate(&mut layout, float, length.into(), columns.into(), length.max(1).into())
    })?;
    let layout = Owned(layout, sys::cublasLtMatrixLayoutDestroy);
    let set = |attribute, value: &dyn AsBytes| {
        let (value, bytes) = value.bytes();
        // SAFETY: the value has the size of the attribute and outlives the call.
        check(unsafe { sys::cublasLtMatrixLayoutSetAttribute(layout.0, attribute, value, bytes) })
    };
    if count > 1 {
        set(LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count.cast_signed())?;
        set(LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride.cast_signed())?;
    }
    Ok(layout)
}

/// Algorithm for a product.
struct Algorithm {
    library: Arc<CublasLt>,
    shapes: Arc<Shapes>,
    algorithm: sys::cublasLtMatmulAlgo_t,
    workspace: usize,
}

impl Plan for Algorithm {
    fn name(&self) -> String {
        // SAFETY: the library is loaded.
        let version = unsafe { sys::cublasLtGetVersion() };
        let words: Vec<String> = self.algorithm.data.iter().map(|word| format!("{word:x}")).collect();
        format!("cuBLASLt {version}, algorithm {}", words.join("-"))
    }

    fn workspace(&self) -> u64 {
        self.workspace as u64
    }

    unsafe fn run(&self, buffers: &[Address], workspace: Address, stream: Stream) -> CudaResult<()> {
        let Shapes { operation, left: b, right: a, output: d, alpha, has_bias } = &*self.shapes;
        let (left, right, bias, output) = match *buffers {
            [left, right, bias, output] if *has_bias => (left, right, Some(bias), output),
            [left, right, output] if !has_bias => (left, right, None, output),
            _ => return Err(CudaError::Other(format!("a product has {} buffers", buffers.len()))),
        };
        let operation = operation.lock();
        if let Some(bias) = bias {
            operation.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
        let beta = 0.0_f32;
        let [left, right, output, workspace] =
            [left, right, output, workspace].map(|address| raw::<c_void>(address as usize));
        // SAFETY: descriptors are owned by `self`; the sizes of buffers are guaranteed by the caller.
        check(unsafe {
            sys::cublasLtMatmul(
                self.library.handle,
                operation.0.0,
                ptr::from_ref(alpha).cast(),
                right,
                a.0,
                left,
                b.0,
                (&raw const beta).cast(),
                output,
                d.0,
                output,
                d.0,
                &self.algorithm,
                workspace,
                self.workspace,
                raw(stream.0),
            )
        })
    }
}

fn check(code: Status) -> CudaResult<()> {
    if code == Status::CUBLAS_STATUS_SUCCESS { Ok(()) } else { Err(CudaError::Other(format!("cuBLASLt: {code:?}"))) }
}
