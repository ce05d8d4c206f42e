//! Convolutions by cuDNN, in `f32` without shortcuts.

use super::{
    driver::{Address, Fault, Outcome, Plan, Stream},
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

/// Algorithms that need more than this are left alone.
const MOST_WORKSPACE: usize = 512 << 20;
/// Kernels may read four numbers at once.
const LEAST_ALIGNMENT: u64 = 16;

pub(super) struct Cudnn {
    handle: Mutex<Handle>,
}

struct Handle(sys::cudnnHandle_t);

// SAFETY: it is used by one thread at a time.
unsafe impl Send for Handle {}

impl Cudnn {
    /// `None` if it is not installed, or does not work with this driver.
    pub(super) fn new() -> Option<Arc<Self>> {
        let mut handle = ptr::null_mut();
        // SAFETY: the library is there if it is called, and the pointer outlives the call.
        let is_there = unsafe { sys::is_culib_present() }
                // SAFETY: the library is there.
                && unsafe { sys::cudnnCreate(&mut handle) } == Status::CUDNN_STATUS_SUCCESS;
        is_there.then(|| Arc::new(Self { handle: Mutex::new(Handle(handle)) }))
    }

    pub(super) fn plans(self: &Arc<Self>, convolution: &Convolution, alignment: u64) -> Outcome<Vec<Arc<dyn Plan>>> {
        if alignment < LEAST_ALIGNMENT {
            return Ok(vec![]);
        }
        let shapes = Arc::new(Shapes::new(convolution)?);
        let handle = self.handle.lock();
        let mut plans: Vec<Arc<dyn Plan>> = Vec::new();
        for algorithm in shapes.algorithms(handle.0)? {
            let mut workspace = 0;
            // SAFETY: all descriptors live in `shapes`, and the number outlives the call.
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
            // Without an activation, only one algorithm adds the bias by itself.
            let is_precomputed = algorithm == Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
            let can_fuse = convolution.epilogue == Epilogue::Relu || is_precomputed;
            let can_split = convolution.epilogue == Epilogue::None && !convolution.has_residual;
            for (is_fused, is_possible) in [(true, can_fuse), (false, can_split)] {
                if is_possible {
                    let (cudnn, shapes) = (self.clone(), shapes.clone());
                    plans.push(Arc::new(Way { cudnn, shapes, algorithm, workspace, is_fused }));
                }
            }
        }
        Ok(plans)
    }
}

impl Drop for Cudnn {
    fn drop(&mut self) {
        // SAFETY: it was made by `new`, and is not used any more.
        let _ = unsafe { sys::cudnnDestroy(self.handle.lock().0) };
    }
}

/// A descriptor of cuDNN's, and how it is destroyed.
struct Descriptor<T>(*mut T, unsafe fn(*mut T) -> Status);

impl<T> Descriptor<T> {
    fn new(make: unsafe fn(*mut *mut T) -> Status, destroy: unsafe fn(*mut T) -> Status) -> Outcome<Self> {
        let mut descriptor = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        check(unsafe { make(&mut descriptor) })?;
        Ok(Self(descriptor, destroy))
    }
}

impl<T> Drop for Descriptor<T> {
    fn drop(&mut self) {
        // SAFETY: it was made by the function that belongs to this one.
        let _ = unsafe { (self.1)(self.0) };
    }
}

type Tensor = Descriptor<sys::cudnnTensorStruct>;

/// A convolution as cuDNN describes it.
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

// SAFETY: descriptors do not change after they are made.
unsafe impl Send for Shapes {}
// SAFETY: as above.
unsafe impl Sync for Shapes {}

impl Shapes {
    fn new(it: &Convolution) -> Outcome<Self> {
        const FLOAT: sys::cudnnDataType_t = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
        let [images, output_images, residual_images] = it.image_strides;
        let filters: Descriptor<_> =
            Descriptor::new(sys::cudnnCreateFilterDescriptor, sys::cudnnDestroyFilterDescriptor)?;
        let [k, c, h, w] = numbers(it.filters)?;
        let format = sys::cudnnTensorFormat_t::CUDNN_TENSOR_NCHW;
        // SAFETY: the descriptor was made above.
        check(unsafe { sys::cudnnSetFilter4dDescriptor(filters.0, FLOAT, format, k, c, h, w) })?;
        let convolution: Descriptor<_> =
            Descriptor::new(sys::cudnnCreateConvolutionDescriptor, sys::cudnnDestroyConvolutionDescriptor)?;
        let ([top, left], [down, right], [dilated_down, dilated_right]) =
            (numbers(it.padding)?, numbers(it.strides)?, numbers(it.dilations)?);
        let mode = sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION;
        let math = sys::cudnnMathType_t::CUDNN_FMA_MATH;
        let [groups] = numbers([it.groups])?;
        let own = convolution.0;
        // SAFETY: the descriptor was made above.
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
        // The only choice that cuDNN has for a convolution's activation.
        let nan = sys::cudnnNanPropagation_t::CUDNN_NOT_PROPAGATE_NAN;
        // SAFETY: the descriptor was made above.
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

    /// Those that could compute it, and always the same.
    fn algorithms(&self, handle: sys::cudnnHandle_t) -> Outcome<Vec<Algorithm>> {
        const MOST: usize = Algorithm::CUDNN_CONVOLUTION_FWD_ALGO_COUNT as usize;
        let mut found = [const { MaybeUninit::<sys::cudnnConvolutionFwdAlgoPerf_t>::uninit() }; MOST];
        let (list, mut count) = (found.as_mut_ptr().cast(), 0);
        let (x, w, y) = (self.input.0, self.filters.0, self.output.0);
        // SAFETY: all descriptors live in `self`, and the list is as long as is said.
        check(unsafe {
            let most = MOST as c_int;
            sys::cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, self.convolution.0, y, most, &mut count, list)
        })?;
        let mut algorithms = Vec::new();
        for found in &found[..(count as usize).min(MOST)] {
            // SAFETY: cuDNN wrote as many as it says.
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

fn tensor(shape: [u32; 4], image_stride: u64) -> Outcome<Tensor> {
    let tensor: Tensor = Descriptor::new(sys::cudnnCreateTensorDescriptor, sys::cudnnDestroyTensorDescriptor)?;
    let [n, c, h, w] = numbers(shape)?;
    let stride = c_int::try_from(image_stride).map_err(|_| too_large())?;
    let plane = h.checked_mul(w).ok_or_else(too_large)?;
    let float = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
    // SAFETY: the descriptor was made above.
    check(unsafe { sys::cudnnSetTensor4dDescriptorEx(tensor.0, float, n, c, h, w, stride, plane, w, 1) })?;
    Ok(tensor)
}

fn numbers<const N: usize>(numbers: [u32; N]) -> Outcome<[c_int; N]> {
    if numbers.iter().any(|&number| c_int::try_from(number).is_err()) {
        return Err(too_large());
    }
    Ok(numbers.map(|number| number as c_int))
}

fn too_large() -> Fault {
    Fault::Other("cuDNN does not count so far".to_owned())
}

/// An algorithm, and whether bias and activation are part of it.
struct Way {
    cudnn: Arc<Cudnn>,
    shapes: Arc<Shapes>,
    algorithm: Algorithm,
    workspace: usize,
    is_fused: bool,
}

impl Plan for Way {
    fn name(&self) -> String {
        // SAFETY: the library is there.
        let version = unsafe { sys::cudnnGetVersion() };
        let bias = if self.is_fused { "with" } else { "without" };
        format!("cuDNN {version}, algorithm {} {bias} bias", self.algorithm as u32)
    }

    fn workspace(&self) -> u64 {
        self.workspace as u64
    }

    unsafe fn run(&self, buffers: &[Address], workspace: Address, stream: Stream) -> Outcome<()> {
        let (&[input, filters, bias, residual, output] | &[input, filters, bias, output @ residual]) = buffers else {
            return Err(Fault::Other(format!("a convolution has {} buffers", buffers.len())));
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
        // SAFETY: the stream is alive.
        check(unsafe { sys::cudnnSetStream(handle, raw(stream.0)) })?;
        if self.is_fused {
            // SAFETY: descriptors live in `self`; buffers are as long as they say, by the caller.
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

fn check(code: Status) -> Outcome<()> {
    if code == Status::CUDNN_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: it takes a number.
    let text = unsafe { sys::cudnnGetErrorString(code) };
    // SAFETY: cuDNN's texts end with a zero and stay.
    let text = unsafe { CStr::from_ptr(text) };
    Err(Fault::Other(format!("cuDNN: {}", text.to_string_lossy())))
}
