//! Convolutions by cuDNN, in full `f32` precision (no TF32).

use super::{
    driver::{Address, CudaError, CudaResult, Plan, Stream},
    launch::{Convolution, Epilogue},
    real::raw,
};
use cudarc::cudnn::sys::{self, cudnnConvolutionFwdAlgo_t as Algorithm, cudnnStatus_t as Status};
use divi_threads::sync::Mutex;
use std::{
    ffi::{CStr, c_int, c_void},
    mem::MaybeUninit,
    ptr,
    sync::Arc,
};

/// Maximum workspace of an algorithm in bytes.
const MOST_WORKSPACE: usize = 512 << 20;
/// Minimum alignment of buffers in bytes: kernels may use vector loads of four numbers.
const LEAST_ALIGNMENT: u64 = 16;

pub(super) struct Cudnn {
    handle: Mutex<Handle>,
}

struct Handle(sys::cudnnHandle_t);

// SAFETY: it is used by one thread at a time.
unsafe impl Send for Handle {}

impl Cudnn {
    /// Opens the library; `None` if it is not installed or does not work with this driver.
    pub(super) fn new() -> Option<Arc<Self>> {
        let mut handle = ptr::null_mut();
        // SAFETY: only searches for the library and loads it.
        let is_available = unsafe { sys::is_culib_present() }
                // SAFETY: the library is loaded, and the pointer outlives the call.
                && unsafe { sys::cudnnCreate(&mut handle) } == Status::CUDNN_STATUS_SUCCESS;
        is_available.then(|| Arc::new(Self { handle: Mutex::new(Handle(handle)) }))
    }

    /// Returns the deterministic algorithms for a convolution.
    pub(super) fn plans(self: &Arc<Self>, convolution: &Convolution, alignment: u64) -> CudaResult<Vec<Arc<dyn Plan>>> {
        if alignment < LEAST_ALIGNMENT {
            return Ok(vec![]);
        }
        let shapes = Arc::new(Shapes::new(convolution)?);
        let handle = self.handle.lock();
        let mut plans: Vec<Arc<dyn Plan>> = Vec::new();
        for algorithm in shapes.algorithms(handle.0)? {
            let mut workspace = 0;
            // SAFETY: all descriptors are owned by `shapes`, and the number outlives the call.
            let code = unsafe {
                let Shapes { input, filters, convolution, output, .. } = &*shapes;
                let (x, w, y) = (input.0, filters.0, output.0);
                sys::cudnnGetConvolutionForwardWorkspaceSize(
                    handle.0,
                    x,
                    w,
                    convolution.0,
                    y,
                    algorithm,
                    &mut workspace,
                )
            };
            if code != Status::CUDNN_STATUS_SUCCESS || workspace > MOST_WORKSPACE {
                continue;
            }
            // With the identity activation, only one algorithm supports a fused bias.
            let is_precomputed = algorithm == Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
            let can_fuse = convolution.epilogue == Epilogue::Relu || is_precomputed;
            let can_split = convolution.epilogue == Epilogue::None && !convolution.has_residual;
            for (is_fused, is_possible) in [(true, can_fuse), (false, can_split)] {
                if is_possible {
                    let (cudnn, shapes) = (self.clone(), shapes.clone());
                    plans.push(Arc::new(AlgorithmPlan { cudnn, shapes, algorithm, workspace, is_fused }));
                }
            }
        }
        Ok(plans)
    }
}

impl Drop for Cudnn {
    fn drop(&mut self) {
        // SAFETY: it was created by `new` and is not used any more.
        let _ = unsafe { sys::cudnnDestroy(self.handle.lock().0) };
    }
}

/// Descriptor of cuDNN with its destructor.
struct Descriptor<T>(*mut T, unsafe fn(*mut T) -> Status);

impl<T> Descriptor<T> {
    fn new(make: unsafe fn(*mut *mut T) -> Status, destroy: unsafe fn(*mut T) -> Status) -> CudaResult<Self> {
        let mut descriptor = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        check(unsafe { make(&mut descriptor) })?;
        Ok(Self(descriptor, destroy))
    }
}

impl<T> Drop for Descriptor<T> {
    fn drop(&mut self) {
        // SAFETY: it was created by the matching function.
        let _ = unsafe { (self.1)(self.0) };
    }
}

type Tensor = Descriptor<sys::cudnnTensorStruct>;

/// Descriptors of a convolution.
struct Shapes {
    input: Tensor,
    filters: Descriptor<sys::cudnnFilterStruct>,
    bias: Tensor,
    residual: Tensor,
    output: Tensor,
    convolution: Descriptor<sys::cudnnConvolutionStruct>,
    activation: Descriptor<sys::cudnnActivationStruct>,
    has_residual: bool,
}

// SAFETY: descriptors are immutable after their creation.
unsafe impl Send for Shapes {}
// SAFETY: as above.
unsafe impl Sync for Shapes {}

impl Shapes {
    fn new(it: &Convolution) -> CudaResult<Self> {
        const FLOAT: sys::cudnnDataType_t = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
        let [images, output_images, residual_images] = it.image_strides;
        let filters: Descriptor<_> =
            Descriptor::new(sys::cudnnCreateFilterDescriptor, sys::cudnnDestroyFilterDescriptor)?;
        let [k, c, h, w] = numbers(it.filters)?;
        let format = sys::cudnnTensorFormat_t::CUDNN_TENSOR_NCHW;
        // SAFETY: the descriptor was created above.
        check(unsafe { sys::cudnnSetFilter4dDescriptor(filters.0, FLOAT, format, k, c, h, w) })?;
        let convolution: Descriptor<_> =
            Descriptor::new(sys::cudnnCreateConvolutionDescriptor, sys::cudnnDestroyConvolutionDescriptor)?;
        let ([top, left], [down, right], [dilated_down, dilated_right]) =
            (numbers(it.padding)?, numbers(it.strides)?, numbers(it.dilations)?);
        let mode = sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION;
        let math = sys::cudnnMathType_t::CUDNN_FMA_MATH;
        let [groups] = numbers([it.groups])?;
        let own = convolution.0;
        // SAFETY: the descriptor was created above.
        let status = unsafe {
            sys::cudnnSetConvolution2dDescriptor(own, top, left, down, right, dilated_down, dilated_right, mode, FLOAT)
        };
        check(status)?;
        // SAFETY: as above.
        check(unsafe { sys::cudnnSetConvolutionMathType(own, math) })?;
        // SAFETY: as above.
        check(unsafe { sys::cudnnSetConvolutionGroupCount(own, groups) })?;
        let activation: Descriptor<_> =
            Descriptor::new(sys::cudnnCreateActivationDescriptor, sys::cudnnDestroyActivationDescriptor)?;
        let mode = match it.epilogue {
            Epilogue::None => sys::cudnnActivationMode_t::CUDNN_ACTIVATION_IDENTITY,
            Epilogue::Relu => sys::cudnnActivationMode_t::CUDNN_ACTIVATION_RELU,
        };
        // The only value that cuDNN supports for a convolution's activation.
        let nan = sys::cudnnNanPropagation_t::CUDNN_NOT_PROPAGATE_NAN;
        // SAFETY: the descriptor was created above.
        check(unsafe { sys::cudnnSetActivationDescriptor(activation.0, mode, nan, 0.0) })?;
        let [_, channels, ..] = it.output;
        Ok(Self {
            input: tensor(it.input, images)?,
            filters,
            bias: tensor([1, channels, 1, 1], u64::from(channels))?,
            residual: tensor(it.output, if it.has_residual { residual_images } else { output_images })?,
            output: tensor(it.output, output_images)?,
            convolution,
            activation,
            has_residual: it.has_residual,
        })
    }

    /// Returns the algorithms that support the convolution and are deterministic.
    fn algorithms(&self, handle: sys::cudnnHandle_t) -> CudaResult<Vec<Algorithm>> {
        const MOST: usize = Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_COUNT as usize;
        let mut found = [const { MaybeUninit::<sys::cudnnConvolutionFwdAlgoPerf_t>::uninit() }; MOST];
        let (list, mut count) = (found.as_mut_ptr().cast(), 0);
        let (x, w, y) = (self.input.0, self.filters.0, self.output.0);
        // SAFETY: all descriptors are owned by `self`, and the list has the given length.
        check(unsafe {
            let most = MOST as c_int;
            sys::cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, self.convolution.0, y, most, &mut count, list)
        })?;
        let mut algorithms = Vec::new();
        for found in &found[..(count as usize).min(MOST)] {
            // SAFETY: cuDNN initialized `count` results.
            let found = unsafe { found.assume_init_ref() };
            let is_usable = found.status == Status::CUDNN_STATUS_SUCCESS
                && found.determinism == sys::cudnnDeterminism_t::CUDNN_DETERMINISTIC;
            if is_usable && !algorithms.contains(&found.algo) {
                algorithms.push(found.algo);
            }
        }
        Ok(algorithms)
    }
}

fn tensor(shape: [u32; 4], image_stride: u64) -> CudaResult<Tensor> {
    let tensor: Tensor = Descriptor::new(sys::cudnnCreateTensorDescriptor, sys::cudnnDestroyTensorDescriptor)?;
    let [n, c, h, w] = numbers(shape)?;
    let stride = c_int::try_from(image_stride).map_err(|_| too_large())?;
    let plane = h.checked_mul(w).ok_or_else(too_large)?;
    let float = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
    // SAFETY: the descriptor was created above.
    check(unsafe { sys::cudnnSetTensor4dDescriptorEx(tensor.0, float, n, c, h, w, stride, plane, w, 1) })?;
    Ok(tensor)
}

fn numbers<const N: usize>(numbers: [u32; N]) -> CudaResult<[c_int; N]> {
    if numbers.iter().any(|&number| c_int::try_from(number).is_err()) {
        return Err(too_large());
    }
    Ok(numbers.map(|number| number as c_int))
}

fn too_large() -> CudaError {
    CudaError::Other("a size exceeds the range of cuDNN".to_owned())
}

/// Algorithm for a convolution; `is_fused` if it includes bias and activation.
struct AlgorithmPlan {
    cudnn: Arc<Cudnn>,
    shapes: Arc<Shapes>,
    algorithm: Algorithm,
    workspace: usize,
    is_fused: bool,
}

impl Plan for AlgorithmPlan {
    fn name(&self) -> String {
        // SAFETY: the library is loaded.
        let version = unsafe { sys::cudnnGetVersion() };
        let bias = if self.is_fused { "with" } else { "without" };
        format!("cuDNN {version}, algorithm {} {bias} bias", self.algorithm as u32)
    }

    fn workspace(&self) -> u64 {
        self.workspace as u64
    }

    unsafe fn run(&self, buffers: &[Address], workspace: Address, stream: Stream) -> CudaResult<()> {
        let (&[input, filters, bias, residual, output] | &[input, filters, bias, output @ residual]) = buffers else {
            return Err(CudaError::Other(format!("a convolution has {} buffers", buffers.len())));
        };
        let handle = self.cudnn.handle.lock();
        let handle = handle.0;
        let Shapes { input: x, filters: w, bias: b, residual: z, output: y, convolution, activation, has_residual } =
            &*self.shapes;
        let (one, zero) = (1.0_f32, 0.0_f32);
        let (one, zero) = ((&raw const one).cast::<c_void>(), (&raw const zero).cast::<c_void>());
        let of_residual = if *has_residual { one } else { zero };
        let [input, filters, bias, residual] = [input, filters, bias, residual].map(|it| raw::<c_void>(it as usize));
        let (output, workspace) = (raw::<c_void>(output as usize), raw::<c_void>(workspace as usize));
        // SAFETY: the stream is valid.
        check(unsafe { sys::cudnnSetStream(handle, raw(stream.0)) })?;
        if self.is_fused {
            // SAFETY: descriptors are owned by `self`; the sizes of buffers are guaranteed by the caller.
            let status = unsafe {
                sys::cudnnConvolutionBiasActivationForward(
                    handle,
                    one,
                    x.0,
                    input,
                    w.0,
                    filters,
                    convolution.0,
                    self.algorithm,
                    workspace,
                    self.workspace,
                    of_residual,
                    z.0,
                    residual,
                    b.0,
                    bias,
                    activation.0,
                    y.0,
                    output,
                )
            };
            return check(status);
        }
        // SAFETY: as above.
        let status = unsafe {
            sys::cudnnConvolutionForward(
                handle,
                one,
                x.0,
                input,
                w.0,
                filters,
                convolution.0,
                self.algorithm,
                workspace,
                self.workspace,
                zero,
                y.0,
                output,
            )
        };
        check(status)?;
        // SAFETY: as above.
        check(unsafe { sys::cudnnAddTensor(handle, one, b.0, bias, one, y.0, output) })
    }
}

fn check(code: Status) -> CudaResult<()> {
    if code == Status::CUDNN_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: takes an enumerator.
    let text = unsafe { sys::cudnnGetErrorString(code) };
    // SAFETY: cuDNN returns static NUL-terminated strings.
    let text = unsafe { CStr::from_ptr(text) };
    Err(CudaError::Other(format!("cuDNN: {}", text.to_string_lossy())))
}
