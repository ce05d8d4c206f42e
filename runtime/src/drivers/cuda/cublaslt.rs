//! Products of matrices by cuBLASLt, in `f32` without shortcuts.

use super::{
    driver::{Address, Fault, Outcome, Plan, Stream},
    launch::{Epilogue, Product},
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

/// Algorithms that need more than this are left alone.
const MOST_WORKSPACE: u64 = 32 << 20;
/// As many algorithms are looked at.
const ALGORITHMS: usize = 8;
/// Sums of parts are added up in a fixed order, not in place by whoever comes first.
const REDUCTIONS: u32 = sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32
    | sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE as u32;

pub(super) struct CublasLt {
    handle: sys::cublasLtHandle_t,
}

// SAFETY: the library's handles may be used by several threads.
unsafe impl Send for CublasLt {}
// SAFETY: as above.
unsafe impl Sync for CublasLt {}

impl CublasLt {
    /// `None` if it is not installed, or does not work with this driver.
    pub(super) fn new() -> Option<Arc<Self>> {
        let mut handle = ptr::null_mut();
        // SAFETY: the library is there if it is called, and the pointer outlives the call.
        let is_there = unsafe { sys::is_culib_present() }
                // SAFETY: the library is there.
                && unsafe { sys::cublasLtCreate(&mut handle) } == Status::CUBLAS_STATUS_SUCCESS;
        is_there.then(|| Arc::new(Self { handle }))
    }

    pub(super) fn plans(self: &Arc<Self>, product: &Product, alignment: u64) -> Outcome<Vec<Arc<dyn Plan>>> {
        let shapes = Arc::new(Shapes::new(product)?);
        let mut preference = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        check(unsafe { sys::cublasLtMatmulPreferenceCreate(&mut preference) })?;
        let preference = Owned(preference, sys::cublasLtMatmulPreferenceDestroy);
        let prefer = |attribute, value: &dyn AsBytes| {
            let (value, bytes) = value.bytes();
            // SAFETY: the attribute is as long as its value, which outlives the call.
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
        // SAFETY: all descriptors live in `shapes`, and the list is as long as is said.
        check(unsafe {
            let (own, most) = (self.handle, ALGORITHMS as c_int);
            sys::cublasLtMatmulAlgoGetHeuristic(own, operation.0.0, a, b, d, d, preference.0, most, list, &mut count)
        })?;
        drop(operation);
        let mut plans: Vec<Arc<dyn Plan>> = Vec::new();
        for found in &found[..(count as usize).min(ALGORITHMS)] {
            // SAFETY: cuBLASLt wrote as many as it says.
            let found = unsafe { found.assume_init_ref() };
            if found.state == Status::CUBLAS_STATUS_SUCCESS {
                let (library, shapes) = (self.clone(), shapes.clone());
                plans.push(Arc::new(Way { library, shapes, algorithm: found.algo, workspace: found.workspaceSize }));
            }
        }
        Ok(plans)
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // SAFETY: it was made by `new`, and is not used any more.
        let _ = unsafe { sys::cublasLtDestroy(self.handle) };
    }
}

/// A descriptor of cuBLASLt's, and how it is destroyed.
struct Owned<T>(*mut T, unsafe fn(*mut T) -> Status);

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: it was made by the function that belongs to this one.
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

/// The library's matrices lie column by column: what it multiplies are our matrices turned, in the other order. A bias for each
/// of our columns is one for each of its rows, which it can add.
struct Shapes {
    /// Which bias it adds is part of it.
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
// SAFETY: layouts do not change after they are made.
unsafe impl Send for Shapes {}
// SAFETY: as above.
unsafe impl Sync for Shapes {}

impl Matmul {
    fn set(&self, attribute: Attribute, value: &dyn AsBytes) -> Outcome<()> {
        let (value, bytes) = value.bytes();
        // SAFETY: the attribute is as long as its value, which outlives the call.
        check(unsafe { sys::cublasLtMatmulDescSetAttribute(self.0.0, attribute, value, bytes) })
    }
}

impl Shapes {
    fn new(it: &Product) -> Outcome<Self> {
        let mut operation = ptr::null_mut();
        let (compute, scale) = (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F, sys::cudaDataType_t::CUDA_R_32F);
        // SAFETY: the pointer outlives the call.
        check(unsafe { sys::cublasLtMatmulDescCreate(&mut operation, compute, scale) })?;
        let operation = Matmul(Owned(operation, sys::cublasLtMatmulDescDestroy));
        // `CUBLAS_OP_N` and `CUBLAS_OP_T`
        operation.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &i32::from(it.right_is_turned))?;
        operation.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &i32::from(it.left_is_turned))?;
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
            // Row by row: what is a row of ours is a column of the library's.
            let (length, count) = if is_turned { (rows, columns) } else { (columns, rows) };
            layout(length, count, it.count, stride)
        };
        Ok(Self {
            operation: Mutex::new(operation),
            left: side((it.rows, it.depth), it.left_is_turned, it.left_stride)?,
            right: side((it.depth, it.columns), it.right_is_turned, it.right_stride)?,
            output: side((it.rows, it.columns), false, it.output_stride)?,
            alpha: f32::from_bits(it.alpha),
            has_bias: it.has_bias,
        })
    }
}

fn layout(length: u32, columns: u32, count: u32, stride: u64) -> Outcome<Layout> {
    let mut layout = ptr::null_mut();
    let float = sys::cudaDataType_t::CUDA_R_32F;
    // SAFETY: the pointer outlives the call.
    check(unsafe {
        sys::cublasLtMatrixLayoutCreate(&mut layout, float, length.into(), columns.into(), length.max(1).into())
    })?;
    let layout = Owned(layout, sys::cublasLtMatrixLayoutDestroy);
    let set = |attribute, value: &dyn AsBytes| {
        let (value, bytes) = value.bytes();
        // SAFETY: the attribute is as long as its value, which outlives the call.
        check(unsafe { sys::cublasLtMatrixLayoutSetAttribute(layout.0, attribute, value, bytes) })
    };
    if count > 1 {
        set(LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count.cast_signed())?;
        set(LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride.cast_signed())?;
    }
    Ok(layout)
}

/// An algorithm for a product.
struct Way {
    library: Arc<CublasLt>,
    shapes: Arc<Shapes>,
    algorithm: sys::cublasLtMatmulAlgo_t,
    workspace: usize,
}

impl Plan for Way {
    fn name(&self) -> String {
        // SAFETY: the library is there.
        let version = unsafe { sys::cublasLtGetVersion() };
        let words: Vec<String> = self.algorithm.data.iter().map(|word| format!("{word:x}")).collect();
        format!("cuBLASLt {version}, algorithm {}", words.join("-"))
    }

    fn workspace(&self) -> u64 {
        self.workspace as u64
    }

    unsafe fn run(&self, buffers: &[Address], workspace: Address, stream: Stream) -> Outcome<()> {
        let Shapes { operation, left: b, right: a, output: d, alpha, has_bias } = &*self.shapes;
        let (left, right, bias, output) = match *buffers {
            [left, right, bias, output] if *has_bias => (left, right, Some(bias), output),
            [left, right, output] if !has_bias => (left, right, None, output),
            _ => return Err(Fault::Other(format!("a product has {} buffers", buffers.len()))),
        };
        let operation = operation.lock();
        if let Some(bias) = bias {
            operation.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
        let beta = 0.0_f32;
        let [left, right, output, workspace] =
            [left, right, output, workspace].map(|address| raw::<c_void>(address as usize));
        // SAFETY: descriptors live in `self`; buffers are as long as they say, by the caller.
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

fn check(code: Status) -> Outcome<()> {
    if code == Status::CUBLAS_STATUS_SUCCESS { Ok(()) } else { Err(Fault::Other(format!("cuBLASLt: {code:?}"))) }
}
