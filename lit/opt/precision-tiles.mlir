// Products of bf16 with weights use tile registers if the processor is named, and only then does a bundle require them.
// RUN: rm -rf %t && mkdir %t
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --cpu=sapphirerapids --precision=bf16 -o %t/tiles
// RUN: FileCheck %s --input-file=%t/tiles/bundle.json
// RUN: llvm-objdump-22 -d %t/tiles/sapphirerapids.so | FileCheck %s --check-prefix=CODE
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --cpu=sapphirerapids -o %t/f32
// RUN: FileCheck %s --check-prefix=PLAIN --input-file=%t/f32/bundle.json
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --cpu=x86-64-v4 --precision=bf16 -o %t/v4
// RUN: FileCheck %s --check-prefix=PLAIN --input-file=%t/v4/bundle.json

// The fastest type depends on the processor and on the devices.
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --cpu=sapphirerapids --precision=auto -o %t/auto
// RUN: FileCheck %s --input-file=%t/auto/bundle.json
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --cpu=x86-64-v4 --precision=auto -o %t/auto-v4
// RUN: FileCheck %s --check-prefix=PLAIN --input-file=%t/auto-v4/bundle.json
// RUN: divi-opt %s --system=cpu-2 --cpu=sapphirerapids --precision=auto | FileCheck %s --check-prefix=HALF
// RUN: divi-opt %s --system=cpu-2 --cpu=x86-64-v3 --precision=auto | FileCheck %s --check-prefix=SINGLE
// RUN: divi-opt %s --system=cpu+h200 --cpu=sapphirerapids --precision=auto | FileCheck %s --check-prefix=SINGLE
// RUN: divi-opt %s --divi-annotate-cost=system=cpu-2 \
// RUN:   --divi-convert-precision="precision=auto cpu=sapphirerapids" | FileCheck %s --check-prefix=HALF
// RUN: not divi-opt %s --divi-convert-precision="precision=auto cpu=z80" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// HALF: "onnx.MatMul"{{.*}} -> tensor<40x48xbf16>
// SINGLE: "onnx.MatMul"{{.*}} -> tensor<40x48xf32>
// UNKNOWN: error: unsupported processor 'z80'; expected native, x86-64-v3, x86-64-v4 or sapphirerapids
// CHECK-DAG: "amx_tile"
// CHECK-DAG: "file":{{ *}}"sapphirerapids.so"
// CODE: ldtilecfg
// CODE: tdpbf16ps
// CODE: tilerelease
// PLAIN-NOT: amx
func.func @main(%x: tensor<40x64xf32> {onnx.name = "x"}) -> (tensor<40x48xf32> {onnx.name = "y"}) {
  %w = "onnx.Constant"() {value = dense<0.37> : tensor<64x48xf32>} : () -> tensor<64x48xf32>
  %0 = "onnx.MatMul"(%x, %w) : (tensor<40x64xf32>, tensor<64x48xf32>) -> tensor<40x48xf32>
  return %0 : tensor<40x48xf32>
}
