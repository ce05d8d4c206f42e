divi.device @cpu0 {kind = "cpu", memory = 1000000000 : i64}
divi.device @cpu1 {kind = "cpu", memory = 1000000000 : i64}
divi.link @cpu0 -> @cpu1 {bandwidth = 1.0e10 : f64, latency = 1.0e-5 : f64}
divi.link @cpu1 -> @cpu0 {bandwidth = 1.0e10 : f64, latency = 1.0e-5 : f64}
func.func private @main.cpu0.0(%x: tensor<2x6xf32>) -> tensor<6x2xf32> attributes {divi.device = @cpu0} {
  %0 = "onnx.Exp"(%x) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %1 = "onnx.Transpose"(%0) {perm = [1, 0]} : (tensor<2x6xf32>) -> tensor<6x2xf32>
  return %1 : tensor<6x2xf32>
}
func.func private @main.cpu1.0(%x: tensor<2x6xf32>) -> tensor<6x2xf32> attributes {divi.device = @cpu1} {
  %0 = "onnx.Exp"(%x) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %1 = "onnx.Transpose"(%0) {perm = [1, 0]} : (tensor<2x6xf32>) -> tensor<6x2xf32>
  return %1 : tensor<6x2xf32>
}
func.func private @main.cpu0.1(%x: tensor<24xf32>) -> tensor<24xf32> attributes {divi.device = @cpu0} {
  %0 = "onnx.Neg"(%x) : (tensor<24xf32>) -> tensor<24xf32>
  return %0 : tensor<24xf32>
}
func.func private @main.cpu0.2(%x: tensor<6x4xf32>) -> tensor<24xf32> attributes {divi.device = @cpu0} {
  %shape = onnx.Constant dense<24> : tensor<1xi64>
  %0 = "onnx.Reshape"(%x, %shape) : (tensor<6x4xf32>, tensor<1xi64>) -> tensor<24xf32>
  return %0 : tensor<24xf32>
}
func.func @main(%x: tensor<4x6xf32> {onnx.name = "x"}) -> (tensor<24xf32> {onnx.name = "y"}, tensor<12xf32> {onnx.name = "z"}) {
  %t = divi.transfer %x from @cpu0 to @cpu1 : tensor<4x6xf32>
  %a = divi.slice %x[0, 3] of 4 axis 0 : tensor<4x6xf32> -> tensor<2x6xf32>
  %b = divi.slice %t[1, 2] of 4 axis 0 : tensor<4x6xf32> -> tensor<2x6xf32>
  %c = divi.launch @main.cpu0.0(%a) on @cpu0 {divi.inputs = array<i64: 0, 3>} : (tensor<2x6xf32>) -> tensor<6x2xf32>
  %d = divi.launch @main.cpu1.0(%b) on @cpu1 {divi.inputs = array<i64: 1, 2>} : (tensor<2x6xf32>) -> tensor<6x2xf32>
  %u = divi.transfer %d from @cpu1 to @cpu0 : tensor<6x2xf32>
  %e = divi.gather %c of 2, %u of 2 axis 1 : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x4xf32>
  %f = divi.slice %e[0, 2, 3, 1] of 4 axis 1 : tensor<6x4xf32> -> tensor<6x4xf32>
  %g = divi.launch @main.cpu0.2(%f) on @cpu0 : (tensor<6x4xf32>) -> tensor<24xf32>
  %h = divi.launch @main.cpu0.1(%g) on @cpu0 : (tensor<24xf32>) -> tensor<24xf32>
  %i = divi.slice %h[2, 0] of 4 axis 0 outer 6 : tensor<24xf32> -> tensor<12xf32>
  return %h, %i : tensor<24xf32>, tensor<12xf32>
}
