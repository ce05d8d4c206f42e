// A convolution of 3x3 windows has larger packed weights, of 64 KiB instead of 36, unless the memory of a device is tight.
// RUN: rm -rf %t && mkdir %t
// RUN: divi-opt %s --emit=bundle -q --system=cpu-2 --algorithm=single --cpu=x86-64-v3 --weights=random:1 -o %t/roomy
// RUN: FileCheck %s --input-file=%t/roomy/bundle.json
// CHECK: {"bytes":65536,"source":{"made":{"pack":{"source":{"winograd":
// CHECK-NOT: "bytes":36864

// RUN: printf '[[device]]\nid = "cpu0"\nkind = "cpu"\nthreads = 1\nmemory = "105 kB"\n' > %t/tight.toml
// RUN: divi-opt %s --emit=bundle -q --system=%t/tight.toml --cpu=x86-64-v3 --weights=random:1 -o %t/tight
// RUN: FileCheck %s --check-prefix=TIGHT --input-file=%t/tight/bundle.json
// TIGHT-NOT: "winograd":
// TIGHT: {"bytes":36864,"source":{"made":{"pack":

// RUN: divi-run %t/roomy --random-inputs --compare %t/tight | FileCheck %s --check-prefix=SAME
// SAME: y {{ *}}8192 {{ *}}{{[0-9.]+}}e-{{[678]}}
func.func @main(%x: tensor<1x32x16x16xf32> {onnx.name = "x"}) -> (tensor<1x32x16x16xf32> {onnx.name = "y"}) {
  %w = onnx.Constant #divi.external<"w.bin", offset = 0, length = 36864> : tensor<32x32x3x3xf32>
  %none = "onnx.NoValue"() {value} : () -> none
  %0 = "onnx.Conv"(%x, %w, %none) {pads = [1, 1, 1, 1]} : (tensor<1x32x16x16xf32>, tensor<32x32x3x3xf32>, none) -> tensor<1x32x16x16xf32>
  return %0 : tensor<1x32x16x16xf32>
}
