// RUN: rm -rf %t && mkdir -p %t/weights
// RUN: echo "0123456789abcde" > %t/weights/w.bin
// RUN: cd %t/weights
// RUN: divi-opt %s --split-input-file --verify-diagnostics --divi-verify-weights
// RUN: divi-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(divi-verify-weights{weights-dir=.})' -o /dev/null
// RUN: not divi-opt %s --split-input-file --divi-verify-weights=weights-dir=%t/elsewhere 2>&1 | FileCheck %s --check-prefix=ELSEWHERE

// Tests that constants are accepted whose bytes are in the IR or in a file, up to its last byte.
// ELSEWHERE: error: 'onnx.Constant' op 'w' refers to '{{.*}}/elsewhere/w.bin', which does not exist; restore the weights or pass their folder with weights-dir
func.func @fine() {
  %0 = onnx.Constant #divi.external<"w.bin", offset = 8, length = 8> : tensor<2xf32> {onnx_node_name = "w"}
  %1 = onnx.Constant #divi.external<"../weights/w.bin", offset = 0, length = 16> : tensor<4xf32>
  %2 = onnx.Constant dense<1.0> : tensor<1000xf32>
  %3 = onnx.Constant dense_resource<here> : tensor<2xf32>
  %4 = onnx.Constant {value_int = 1 : si64} : tensor<i64>
  return
}
{-#
  dialect_resources: {
    builtin: {
      here: "0x040000000000803F00000040"
    }
  }
#-}

// -----

// Tests that a missing file is an error, and that all of them are reported.
func.func @missing() {
  // expected-error @below {{'onnx.Constant' op 'w' refers to './nowhere.bin', which does not exist; restore the weights or pass their folder with weights-dir}}
  %0 = onnx.Constant #divi.external<"nowhere.bin", offset = 0, length = 8> : tensor<2xf32> {onnx_node_name = "w"}
  // expected-error @below {{'onnx.Constant' op refers to './folder/nowhere.bin', which does not exist}}
  %1 = onnx.Constant #divi.external<"folder/nowhere.bin", offset = 0, length = 8> : tensor<2xf32>
  return
}

// -----

// Tests that a file that is too short is an error, also if the end overflows.
func.func @short() {
  // expected-error @below {{'onnx.Constant' op './w.bin' has 16 bytes, too few for 8 at offset 9: it is truncated or not the file the model was saved with}}
  %0 = onnx.Constant #divi.external<"w.bin", offset = 9, length = 8> : tensor<2xf32>
  // expected-error @below {{has 16 bytes, too few for 8 at offset 18446744073709551615}}
  %1 = onnx.Constant #divi.external<"w.bin", offset = 18446744073709551615, length = 8> : tensor<2xf32>
  return
}

// -----

// Tests that elided elements are an error.
func.func @elided() {
  // expected-error @below {{'onnx.Constant' op has elements that were elided from the IR, or too few: print it without --mlir-elide-elementsattrs}}
  %0 = onnx.Constant dense_resource<__elided__> : tensor<4x3x3x3xf32>
  return
}

// -----

// Tests that constants within clusters are checked.
func.func @nested() {
  divi.cluster "constant"() {
    // expected-error @below {{'onnx.Constant' op refers to './nowhere.bin', which does not exist}}
    %0 = onnx.Constant #divi.external<"nowhere.bin", offset = 0, length = 8> : tensor<2xf32>
  }
  return
}
