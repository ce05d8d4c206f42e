// RUN: not divi-opt %s --divi-convert-precision=precision=int8 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not divi-opt %s --divi-convert-precision="precision=bf16 exclude=head*" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not divi-opt %s --precision=tf32 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not divi-opt %s --precision-exclude=head 2>&1 | FileCheck %s --check-prefix=ALONE

// TYPE: error: precision is 'int8': expected f32, bf16, f16 or auto
// NAME: error: no convolution or matrix product has a name like 'head*'
// OPTION: divi-opt: error: --precision is 'tf32'; expected f32, bf16, f16 or auto
// ALONE: divi-opt: error: --precision-exclude requires --precision=bf16, f16 or auto
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "onnx.MatMul"(%x, %x) {onnx_node_name = "tail"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
