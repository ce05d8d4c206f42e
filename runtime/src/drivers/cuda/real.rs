//! CUDA driver API, loaded dynamically on first use.

use super::{
    cublaslt::CublasLt,
    cudnn::Cudnn,
    driver::{Address, Api, CudaError, CudaResult, Event, Function, Gpu, Graph, Grid, Module, Plan, Stream},
    launch::LibraryOp,
};
use cudarc::driver::sys::{self, CUresult};
use divi_threads::sync::Mutex;
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
    sync::{Arc, OnceLock},
};

/// Minimum driver version, which has all functions in use: CUDA 12.8.
const OLDEST: c_int = 12_080;
/// Size of the error log of the PTX compiler in bytes.
const LOG_BYTES: usize = 8 << 10;

/// CUDA driver of this machine.
pub(crate) struct Cuda;

impl Cuda {
    /// Initializes the driver and checks its version.
    fn start() -> CudaResult<()> {
        // SAFETY: only searches for the library and loads it.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::Driver("this machine has no CUDA driver (libcuda.so.1)".to_owned()));
        }
        // SAFETY: the library is loaded.
        match unsafe { sys::cuInit(0) } {
            CUresult::CUDA_SUCCESS => {}
            CUresult::CUDA_ERROR_NO_DEVICE => {
                return Err(CudaError::Driver("this machine's CUDA driver finds no GPU".to_owned()));
            }
            other => return Err(CudaError::Driver(format!("the CUDA driver does not start: {}", text(other)))),
        }
        let mut version = 0;
        // SAFETY: the number outlives the call.
        check(unsafe { sys::cuDriverGetVersion(&mut version) }, "cuDriverGetVersion")?;
        if version < OLDEST {
            let name = |version: c_int| format!("{}.{}", version / 1000, version % 1000 / 10);
            let (found, oldest) = (name(version), name(OLDEST));
            return Err(CudaError::Driver(format!(
                "this machine's driver supports CUDA {found}, and at least {oldest} is required"
            )));
        }
        Ok(())
    }
}

impl Api for Cuda {
    fn count(&self) -> CudaResult<usize> {
        Self::start()?;
        let mut count = 0;
        // SAFETY: the number outlives the call.
        check(unsafe { sys::cuDeviceGetCount(&mut count) }, "cuDeviceGetCount")?;
        Ok(count as usize)
    }

    fn open(&self, ordinal: usize) -> CudaResult<Arc<dyn Gpu>> {
        Self::start()?;
        let mut device = 0;
        // SAFETY: the number outlives the call.
        check(unsafe { sys::cuDeviceGet(&mut device, ordinal as c_int) }, "cuDeviceGet")?;
        let mut name = [0 as c_char; 256];
        // SAFETY: the buffer is longer than the given length and zeroed, so the text is NUL-terminated.
        check(unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), 255, device) }, "cuDeviceGetName")?;
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        use sys::CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
        };
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: the number outlives the call.
            check(unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, device) }, "cuDeviceGetAttribute")?;
            Ok(value as u32)
        };
        let capability = (attribute(MAJOR)?, attribute(MINOR)?);
        let mut context = ptr::null_mut();
        // SAFETY: the pointer outlives the call; the context is released when the GPU is dropped.
        check(unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) }, "cuDevicePrimaryCtxRetain")?;
        let (made, cudnn, cublaslt) = (Mutex::new(Vec::new()), OnceLock::new(), OnceLock::new());
        Ok(Arc::new(RealGpu { device, context, name, capability, made, cudnn, cublaslt }))
    }
}

struct RealGpu {
    device: sys::CUdevice,
    context: sys::CUcontext,
    name: String,
    capability: (u32, u32),
    /// Objects to be destroyed with the GPU.
    made: Mutex<Vec<Made>>,
    cudnn: OnceLock<Option<Arc<Cudnn>>>,
    cublaslt: OnceLock<Option<Arc<CublasLt>>>,
}

/// Object that is destroyed when the GPU is dropped.
enum Made {
    Stream(Stream),
    Event(Event),
    Module(Module),
}

// SAFETY: any thread may use a context after making it current, which all functions here do.
unsafe impl Send for RealGpu {}
// SAFETY: as above.
unsafe impl Sync for RealGpu {}

impl RealGpu {
    /// Makes the context current on the calling thread.
    fn enter(&self) -> CudaResult<()> {
        // SAFETY: the context is retained until drop.
        check(unsafe { sys::cuCtxSetCurrent(self.context) }, "cuCtxSetCurrent")
    }
}

impl Gpu for RealGpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn capability(&self) -> (u32, u32) {
        self.capability
    }

    fn free_memory(&self) -> CudaResult<u64> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the numbers outlive the call.
        check(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) }, "cuMemGetInfo")?;
        Ok(free as u64)
    }

    fn allocate(&self, bytes: u64) -> CudaResult<Address> {
        self.enter()?;
        let mut address = 0;
        // SAFETY: the number outlives the call.
        check(unsafe { sys::cuMemAlloc_v2(&mut address, bytes as usize) }, "cuMemAlloc")?;
        Ok(address)
    }

    fn free(&self, address: Address) {
        if self.enter().is_ok() {
            // SAFETY: it was allocated here and is not used any more. If the context is lost, the memory is already freed.
            let _ = unsafe { sys::cuMemFree_v2(address) };
        }
    }

    fn allocate_pinned(&self, bytes: u64) -> CudaResult<*mut u8> {
        self.enter()?;
        let mut pointer = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        let code = unsafe { sys::cuMemHostAlloc(&mut pointer, bytes as usize, sys::CU_MEMHOSTALLOC_PORTABLE) };
        check(code, "cuMemHostAlloc")?;
        Ok(pointer.cast())
    }

    fn free_pinned(&self, pointer: *mut u8) {
        if self.enter().is_ok() {
            // SAFETY: it was allocated here and is not used any more.
            let _ = unsafe { sys::cuMemFreeHost(pointer.cast()) };
        }
    }

    fn is_pinned(&self, pointer: *const u8) -> bool {
        let mut kind = 0_u32;
        let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        // SAFETY: the number has the type of the attribute and outlives the call; the pointer is not dereferenced.
        let code = self
            .enter()
            .map(|()| unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, pointer.addr() as u64) });
        code.is_ok_and(|code| code == CUresult::CUDA_SUCCESS) && kind == sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32
    }

    fn stream(&self) -> CudaResult<Stream> {
        self.enter()?;
        let mut stream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the pointer outlives the call.
        check(unsafe { sys::cuStreamCreate(&mut stream, flags) }, "cuStreamCreate")?;
        let stream = Stream(stream.expose_provenance());
        self.made.lock().push(Made::Stream(stream));
        Ok(stream)
    }

    fn event(&self) -> CudaResult<Event> {
        self.enter()?;
        let mut event = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        check(unsafe { sys::cuEventCreate(&mut event, 0) }, "cuEventCreate")?;
        let event = Event(event.expose_provenance());
        self.made.lock().push(Made::Event(event));
        Ok(event)
    }

    fn record(&self, event: Event, stream: Stream) -> CudaResult<()> {
        self.enter()?;
        // SAFETY: both were created here.
        check(unsafe { sys::cuEventRecord(raw(event.0), raw(stream.0)) }, "cuEventRecord")
    }

    fn record_in_graph(&self, event: Event, stream: Stream) -> CudaResult<()> {
        self.enter()?;
        let flags = sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32;
        // SAFETY: both were created here.
        check(unsafe { sys::cuEventRecordWithFlags(raw(event.0), raw(stream.0), flags) }, "cuEventRecordWithFlags")
    }

    fn wait(&self, stream: Stream, event: Event) -> CudaResult<()> {
        self.enter()?;
        // SAFETY: both were created here.
        check(unsafe { sys::cuStreamWaitEvent(raw(stream.0), raw(event.0), 0) }, "cuStreamWaitEvent")
    }

    fn wait_in_graph(&self, stream: Stream, event: Event) -> CudaResult<()> {
        self.enter()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_EXTERNAL as u32;
        // SAFETY: both were created here.
        check(unsafe { sys::cuStreamWaitEvent(raw(stream.0), raw(event.0), flags) }, "cuStreamWaitEvent")
    }

    fn micros_between(&self, first: Event, second: Event) -> CudaResult<f64> {
        self.enter()?;
        let mut millis = 0.0;
        // SAFETY: both were created here, and the number outlives the call.
        let code = unsafe { sys::cuEventElapsedTime_v2(&mut millis, raw(first.0), raw(second.0)) };
        check(code, "cuEventElapsedTime")?;
        Ok(f64::from(millis) * 1e3)
    }

    fn await_event(&self, event: Event) -> CudaResult<()> {
        self.enter()?;
        loop {
            // SAFETY: it was created here.
            match unsafe { sys::cuEventQuery(raw(event.0)) } {
                CUresult::CUDA_ERROR_NOT_READY => std::hint::spin_loop(),
                other => return check(other, "cuEventQuery"),
            }
        }
    }

    fn synchronize(&self, stream: Stream) -> CudaResult<()> {
        self.enter()?;
        loop {
            // SAFETY: it was created here.
            match unsafe { sys::cuStreamQuery(raw(stream.0)) } {
                CUresult::CUDA_ERROR_NOT_READY => std::hint::spin_loop(),
                other => return check(other, "cuStreamQuery"),
            }
        }
    }

    unsafe fn copy_to_device(&self, to: Address, from: *const u8, bytes: u64, stream: Stream) -> CudaResult<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.enter()?;
        // SAFETY: guaranteed by the caller.
        let code = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.cast(), bytes as usize, raw(stream.0)) };
        check(code, "cuMemcpyHtoDAsync")
    }

    unsafe fn copy_to_host(&self, to: *mut u8, from: Address, bytes: u64, stream: Stream) -> CudaResult<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.enter()?;
        // SAFETY: guaranteed by the caller.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes as usize, raw(stream.0)) };
        check(code, "cuMemcpyDtoHAsync")
    }

    unsafe fn copy_on_device(&self, to: Address, from: Address, bytes: u64, stream: Stream) -> CudaResult<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.enter()?;
        // SAFETY: guaranteed by the caller.
        let code = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes as usize, raw(stream.0)) };
        check(code, "cuMemcpyDtoDAsync")
    }

    unsafe fn zero(&self, at: Address, bytes: u64, stream: Stream) -> CudaResult<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.enter()?;
        // SAFETY: guaranteed by the caller.
        check(unsafe { sys::cuMemsetD8Async(at, 0, bytes as usize, raw(stream.0)) }, "cuMemsetD8Async")
    }

    fn load(&self, ptx: &CStr) -> CudaResult<Module> {
        self.enter()?;
        let mut log = vec![0_u8; LOG_BYTES];
        use sys::CUjit_option::{CU_JIT_ERROR_LOG_BUFFER as LOG, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as LOG_SIZE};
        let mut options = [LOG, LOG_SIZE];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES - 1)];
        let mut module = ptr::null_mut();
        // SAFETY: the text is NUL-terminated; the log is longer than the given size; all of them outlive the call.
        let code = unsafe {
            sys::cuModuleLoadDataEx(&mut module, ptx.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
        };
        check(code, "cuModuleLoadDataEx").map_err(|fault| {
            let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
            if log.is_empty() { fault } else { CudaError::Other(format!("{fault}: {}", log.trim())) }
        })?;
        let module = Module(module.expose_provenance());
        self.made.lock().push(Made::Module(module));
        Ok(module)
    }

    fn function(&self, module: Module, name: &CStr) -> CudaResult<Function> {
        self.enter()?;
        let mut function = ptr::null_mut();
        // SAFETY: the module was created here; the name is NUL-terminated.
        let code = unsafe { sys::cuModuleGetFunction(&mut function, raw(module.0), name.as_ptr()) };
        check(code, "cuModuleGetFunction")?;
        // Load it now: the driver loads lazily at the first launch, which may be in a capture.
        // SAFETY: the function was found above.
        check(unsafe { sys::cuFuncLoad(function) }, "cuFuncLoad")?;
        Ok(Function(function.expose_provenance()))
    }

    unsafe fn launch(&self, function: Function, grid: Grid, arguments: &[u64], stream: Stream) -> CudaResult<()> {
        self.enter()?;
        let mut arguments: Vec<*mut c_void> =
            arguments.iter().map(|argument| ptr::from_ref(argument).cast_mut().cast()).collect();
        let (list, rest) = (arguments.as_mut_ptr(), ptr::null_mut());
        // SAFETY: guaranteed by the caller; arguments are read before it returns.
        let code = unsafe {
            sys::cuLaunchKernel(raw(function.0), grid.blocks, 1, 1, grid.threads, 1, 1, 0, raw(stream.0), list, rest)
        };
        check(code, "cuLaunchKernel")
    }

    fn begin_capture(&self, stream: Stream) -> CudaResult<()> {
        self.enter()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: it was created here.
        check(unsafe { sys::cuStreamBeginCapture_v2(raw(stream.0), mode) }, "cuStreamBeginCapture")
    }

    fn end_capture(&self, stream: Stream) -> CudaResult<Graph> {
        self.enter()?;
        let mut graph = ptr::null_mut();
        // SAFETY: it was created here, and the pointer outlives the call.
        check(unsafe { sys::cuStreamEndCapture(raw(stream.0), &mut graph) }, "cuStreamEndCapture")?;
        let mut ready = ptr::null_mut();
        // SAFETY: the graph was captured above, and the pointer outlives the call.
        let code = unsafe { sys::cuGraphInstantiateWithFlags(&mut ready, graph, 0) };
        // SAFETY: the executable graph does not refer to it.
        let _ = unsafe { sys::cuGraphDestroy(graph) };
        check(code, "cuGraphInstantiate")?;
        Ok(Graph(ready.expose_provenance()))
    }

    fn upload_graph(&self, graph: Graph, stream: Stream) -> CudaResult<()> {
        self.enter()?;
        // SAFETY: both were created here.
        check(unsafe { sys::cuGraphUpload(raw(graph.0), raw(stream.0)) }, "cuGraphUpload")
    }

    fn launch_graph(&self, graph: Graph, stream: Stream) -> CudaResult<()> {
        self.enter()?;
        // SAFETY: both were created here.
        check(unsafe { sys::cuGraphLaunch(raw(graph.0), raw(stream.0)) }, "cuGraphLaunch")
    }

    fn drop_graph(&self, graph: Graph) {
        if self.enter().is_ok() {
            // SAFETY: it was created here and is not used any more.
            let _ = unsafe { sys::cuGraphExecDestroy(raw(graph.0)) };
        }
    }

    fn plans(&self, library: &LibraryOp, alignment: u64) -> CudaResult<Vec<Arc<dyn Plan>>> {
        self.enter()?;
        match library {
            LibraryOp::Convolution(convolution) => match self.cudnn.get_or_init(Cudnn::new) {
                Some(cudnn) => cudnn.plans(convolution, alignment),
                None => Ok(vec![]),
            },
            LibraryOp::MatMul(product) => match self.cublaslt.get_or_init(CublasLt::new) {
                Some(cublaslt) => cublaslt.plans(product, alignment),
                None => Ok(vec![]),
            },
        }
    }
}

impl Drop for RealGpu {
    fn drop(&mut self) {
        if self.enter().is_ok() {
            self.cudnn.take();
            self.cublaslt.take();
            for made in self.made.lock().drain(..) {
                let _ = match made {
                    // SAFETY: it was created here and is not used any more.
                    Made::Stream(stream) => unsafe { sys::cuStreamDestroy_v2(raw(stream.0)) },
                    // SAFETY: as above.
                    Made::Event(event) => unsafe { sys::cuEventDestroy_v2(raw(event.0)) },
                    // SAFETY: as above.
                    Made::Module(module) => unsafe { sys::cuModuleUnload(raw(module.0)) },
                };
            }
        }
        // SAFETY: it was retained once.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Converts a handle to CUDA's pointer.
pub(super) fn raw<T>(handle: usize) -> *mut T {
    ptr::with_exposed_provenance_mut(handle)
}

/// Converts a result code. Errors after which CUDA rejects all further calls become [`CudaError::Lost`].
pub(super) fn check(code: CUresult, function: &str) -> CudaResult<()> {
    use CUresult::{
        CUDA_ERROR_ASSERT, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_ECC_UNCORRECTABLE,
        CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS,
    };
    match code {
        CUDA_SUCCESS => Ok(()),
        CUDA_ERROR_OUT_OF_MEMORY => Err(CudaError::Memory),
        CUDA_ERROR_ASSERT
        | CUDA_ERROR_CONTEXT_IS_DESTROYED
        | CUDA_ERROR_ECC_UNCORRECTABLE
        | CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUDA_ERROR_ILLEGAL_ADDRESS
        | CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUDA_ERROR_INVALID_PC
        | CUDA_ERROR_LAUNCH_FAILED
        | CUDA_ERROR_LAUNCH_TIMEOUT
        | CUDA_ERROR_MISALIGNED_ADDRESS => Err(CudaError::Lost(text(code))),
        _ => Err(CudaError::Other(format!("{function}: {}", text(code)))),
    }
}

/// Returns the driver's description of an error.
fn text(code: CUresult) -> String {
    let mut text = ptr::null();
    // SAFETY: the pointer outlives the call.
    let found = unsafe { sys::cuGetErrorString(code, &mut text) };
    if found != CUresult::CUDA_SUCCESS || text.is_null() {
        return format!("error {}", code as u32);
    }
    // SAFETY: the driver returns static NUL-terminated strings.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
