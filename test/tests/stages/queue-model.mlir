func.func @main(%x: tensor<4x6xf32> {onnx.name = "x"}) -> (tensor<24xf32> {onnx.name = "y"}, tensor<12xf32> {onnx.name = "z"}) {
  %shape = onnx.Constant dense<24> : tensor<1xi64>
  %short = onnx.Constant dense<12> : tensor<1xi64>
  %which = onnx.Constant dense<[2, 0]> : tensor<2xi64>
  %0 = "onnx.Exp"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "onnx.Neg"(%0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = "onnx.Transpose"(%1) {perm = [1, 0]} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %3 = "onnx.Reshape"(%2, %shape) : (tensor<6x4xf32>, tensor<1xi64>) -> tensor<24xf32>
  %4 = "onnx.Gather"(%2, %which) {axis = 1 : si64} : (tensor<6x4xf32>, tensor<2xi64>) -> tensor<6x2xf32>
  %5 = "onnx.Reshape"(%4, %short) : (tensor<6x2xf32>, tensor<1xi64>) -> tensor<12xf32>
  return %3, %5 : tensor<24xf32>, tensor<12xf32>
}
