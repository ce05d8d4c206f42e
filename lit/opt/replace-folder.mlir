// Tests which folders --emit=bundle and --emit=onnx replace. Files that divi did not write are never lost.
// RUN: rm -rf %t && mkdir %t && cd %t && cp %s model.mlir && cp %S/Inputs/four.npy weights.npy
// DEFINE: %{bundle} = divi-opt model.mlir --emit=bundle --system=cpu-2 -q
// DEFINE: %{onnx} = divi-opt model.mlir --emit=onnx --system=cpu-2 -q

// A bundle replaces a bundle, also if the name ends in a slash or is a symbolic link, which is kept.
// RUN: %{bundle} -o out && %{bundle} -o out/ && mkdir empty && %{bundle} -o empty
// RUN: ln -s out link && %{bundle} -o link && test -L link
// RUN: divi-run out --check -q && divi-run empty --check -q && divi-run link --check -q
// RUN: %{onnx} -o stages && %{onnx} -o stages/

// Other files are reported and kept, beside a bundle.json of a bundle or of another program.
// RUN: echo mine > out/notes.txt && not %{bundle} -o out 2>&1 | FileCheck %s --check-prefix=NOTES
// RUN: cat out/notes.txt out/bundle.json | FileCheck %s --check-prefix=KEPT
// RUN: mkdir other && echo '{"files": []}' > other/bundle.json && not %{bundle} -o other 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: mkdir stages/deep && not %{onnx} -o stages 2>&1 | FileCheck %s --check-prefix=DEEP
// NOTES: error: cannot write 'out': 'notes.txt' is in it, which divi did not write: move it, or choose another folder
// KEPT: mine
// KEPT: "format": "divi-bundle/
// OTHER: error: cannot write 'other': 'bundle.json' is in it, which divi did not write: move it, or choose another folder
// DEEP: error: cannot write 'stages': 'deep' is in it, which divi did not write: move it, or choose another folder

// A folder with the model or its weights is rejected, even if an old bundle lists them.
// RUN: mkdir mine && cp model.mlir weights.npy mine
// RUN: echo '{"format": "divi-bundle/1", "files": [{"path": "model.mlir"}, {"path": "weights.npy"}]}' > mine/bundle.json
// RUN: not divi-opt mine/model.mlir --emit=bundle --system=cpu-2 -q -o mine 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: not divi-opt model.mlir --weights-dir=mine --emit=bundle --system=cpu-2 -q -o mine 2>&1 | FileCheck %s --check-prefix=WEIGHTS
// RUN: not divi-opt model.mlir --weights-dir=mine --emit=onnx --system=cpu-2 -q -o mine 2>&1 | FileCheck %s --check-prefix=WEIGHTS
// RUN: ls mine | count 3
// MODEL: divi-opt: error: cannot write 'mine': it contains the model 'mine/model.mlir': choose another folder
// WEIGHTS: error: cannot write 'mine': it contains a file with weights of the model 'mine/weights.npy': choose another folder

// Output files do not replace the model, its weights or other inputs.
// RUN: not divi-opt model.mlir -o weights.npy 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: not divi-opt model.mlir --emit=problem --system=cpu-2 -o model.mlir 2>&1 | FileCheck %s --check-prefix=PROBLEM
// RUN: not divi-opt model.mlir --partition --system=cpu-2 -q --report=report.svg -o report.svg 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: ln -s model.mlir page.html && not divi-opt model.mlir --partition --system=cpu-2 -q --report=page.html 2>&1 | FileCheck %s --check-prefix=REPORT
// RUN: not %{bundle} -o new --report=new/page.html 2>&1 | FileCheck %s --check-prefix=INSIDE
// RUN: cmp weights.npy %S/Inputs/four.npy && cmp model.mlir %s
// FILE: error: cannot write 'weights.npy': it is a file with weights of the model itself: choose another name
// PROBLEM: divi-opt: error: cannot write 'model.mlir': it is the model itself: choose another name
// TWICE: divi-opt: error: -o and --report both write 'report.svg': choose two names
// REPORT: divi-opt: error: cannot write 'page.html': it is the model itself: choose another name
// INSIDE: divi-opt: error: cannot write 'new/page.html': it is in the folder that -o replaces, 'new': choose another place

// Outputs that cannot be replaced.
// RUN: not %{bundle} -o model.mlir 2>&1 | FileCheck %s --check-prefix=PROBLEM
// RUN: not %{bundle} -o link/bundle.json 2>&1 | FileCheck %s --check-prefix=PLAIN
// RUN: mkdir here && cd here && not divi-opt ../model.mlir --weights-dir=.. --emit=bundle --system=cpu-2 -q -o . 2>&1 | FileCheck %s --check-prefix=HERE
// RUN: not divi-opt ../model.mlir --weights-dir=.. --emit=bundle --system=cpu-2 -q -o /proc/out 2>&1 | FileCheck %s --check-prefix=PROC
// RUN: ls -A . | count 0
// RUN: cd %t && not ls -d .*.tmp
// PLAIN: error: cannot write '{{.*}}': it is a file
// HERE: error: cannot write '.': it is the working directory or contains it: name a folder in it
// PROC: error: cannot write '/proc/out':

// A temporary folder of a dead process is removed by the next run for the same output; others are kept.
// RUN: mkdir .fresh.4194305.tmp .fresh.1.tmp && %{bundle} -o fresh
// RUN: ls -d .fresh.1.tmp && not ls -d .fresh.4194305.tmp

func.func @main(%x: tensor<1x4xf32> {onnx.name = "x"}) -> (tensor<1x4xf32> {onnx.name = "y"}) {
  %w = onnx.Constant #divi.external<"weights.npy", offset = 128, length = 16> : tensor<4xf32>
  %0 = "onnx.Add"(%x, %w) {onnx_node_name = "shift"} : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}
