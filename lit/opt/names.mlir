// RUN: rm -rf %t && mkdir -p "%t/my dir" "%t/to, {here}" && cp %s "%t/my dir/in.mlir" && cd %t

// Tests that names may contain separators of pipeline options.
// RUN: divi-opt "my dir/in.mlir" -o "to, {here}/out.mlir" && FileCheck %s --input-file="to, {here}/out.mlir"
// RUN: divi-opt --weights-dir="my dir" < "my dir/in.mlir" | FileCheck %s --check-prefix=STREAM
// RUN: divi-opt "my dir/in.mlir" --input-shape="x y:1x3" | FileCheck %s --check-prefix=SHAPE
// CHECK: #divi.external<"../my dir/w.bin", offset = 0, length = 12>
// STREAM: #divi.external<"my dir/w.bin", offset = 0, length = 12>
// SHAPE: func.func @main(%{{.*}}: tensor<1x3xf32> {onnx.name = "x y"})

// Tests that names need not be UTF-8.
// RUN: bash -c 'name=$(printf "m\377"); cp %S/../../test/models/alexnet.onnx $name.onnx; mkdir $name; cp $name.onnx $name/m.onnx; cp %s $name.mlir'
// RUN: bash -c 'divi-opt -q $(printf "m\377").mlir -o $(printf "n\377").mlir; cat n*.mlir' | FileCheck %s --check-prefix=BYTES
// RUN: bash -c 'cd $(printf "m\377"); divi-opt -q ../$(printf "m\377")/m.onnx -o ../$(printf "m\377")/o.mlir; cat o.mlir' | FileCheck %s --check-prefix=FOLDER
// BYTES: #divi.external<"w.bin", offset = 0, length = 12>
// FOLDER: #divi.external<"m.onnx", offset

// Tests that a reference to a file whose name is not UTF-8 is rejected, as IR is UTF-8.
// RUN: bash -c 'not divi-opt $(printf "m\377").onnx' 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: a path that is not UTF-8

func.func @main(%x: tensor<?x3xf32> {onnx.name = "x y"}) -> tensor<?x3xf32> {
  %0 = onnx.Constant #divi.external<"w.bin", offset = 0, length = 12> : tensor<1x3xf32>
  %1 = "onnx.Add"(%x, %0) : (tensor<?x3xf32>, tensor<1x3xf32>) -> tensor<?x3xf32>
  return %1 : tensor<?x3xf32>
}
