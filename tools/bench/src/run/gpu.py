"""Times bundles and PyTorch on the same GPU, and compares the bundles' outputs with those of CPUs.

Usage: compare.py [FOLDER]: the folder has divi-run and bundles, MODEL-b1, MODEL-b16 and MODEL-cpu. Needs PyTorch and torchvision.

Times are medians in milliseconds. "Resident": inputs and outputs stay on the GPU; for divi, the launch of its stage. "End to
end": from and to host memory. Everything is computed in 32 bits, without TF32.
"""

import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import numpy
import torch
import torchvision

RUNS = 50


def divi(folder, bundle, output=None, runs=RUNS):
    command = [folder / "divi-run", bundle, "--random-inputs=3", "--json"]
    command += ["--output", output] if output else [f"--repeat={runs}", "--warmup=10"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def relative_error(folder, model):
    """Returns the largest difference from the CPU's outputs, relative to the largest output."""
    for kind in ("cpu", "b1"):
        divi(folder, folder / f"{model}-{kind}", folder / "outputs" / f"{model}-{kind}")
    differences, largest = [], []
    for file in (folder / "outputs" / f"{model}-cpu").glob("*.npy"):
        expected, found = numpy.load(file), numpy.load(folder / "outputs" / f"{model}-b1" / file.name)
        differences.append(float(numpy.abs(expected - found).max()) if numpy.isfinite(found).all() else math.inf)
        largest.append(float(numpy.abs(expected).max()))
    return max(differences) / max(largest)


def median(run):
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    samples = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples) * 1e3


def pytorch(model, batch):
    """Returns the times of eager mode, of a CUDA graph, and of a graph with copies from and to the host."""
    options = {"aux_logits": False, "init_weights": False} if model in ("googlenet", "inception_v3") else {}
    module = getattr(torchvision.models, model)(**options).cuda().eval()
    size = 299 if model == "inception_v3" else 224
    host = torch.randn(batch, 3, size, size)
    x = host.cuda()
    eager = median(lambda: module(x))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            module(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = module(x)

    def end_to_end():
        x.copy_(host)
        graph.replay()
        y.cpu()

    return eager, median(graph.replay), median(end_to_end)


def mean(ratios):
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios)) if ratios else math.nan


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    folder = folder if folder.is_dir() else folder.parent
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.set_grad_enabled(False)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {time.strftime('%Y-%m-%d')}")
    models = sorted(path.name.removesuffix("-cpu") for path in folder.glob("*-cpu"))
    for batch in (1, 16):
        print(f"\nbatch {batch}: milliseconds, resident and end to end, compared with PyTorch; * not available in PyTorch")
        heads = ("model", "divi", "eager", "graph", "/ eager", "/ graph", "end to end", "graph's", "ratio", "rel. err")
        print("{:<20}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12}{:>9}{:>8}{:>10}".format(*heads))
        ratios = []
        for model in models:
            bundle = folder / f"{model}-b{batch}"
            if not bundle.exists():
                continue
            try:
                error = f"{relative_error(folder, model):.1e}" if batch == 1 else ""
                ours = divi(folder, bundle)
                launch, latency = sum(step["us"] for step in ours["steps"]) / 1e3, ours["latency_us"]["median"] / 1e3
                if not hasattr(torchvision.models, model):
                    print(f"{model + '*':<20}{launch:>9.3f}{'':>36}{latency:>12.3f}{'':>17}{error:>10}", flush=True)
                    continue
                eager, graph, copied = pytorch(model, batch)
            except RuntimeError as problem:
                print(f"{model:<20} {problem}", flush=True)
                continue
            row = (launch / eager, launch / graph, latency / copied)
            ratios.append(row)
            print(
                f"{model:<20}{launch:>9.3f}{eager:>9.3f}{graph:>9.3f}{row[0]:>8.3f}x{row[1]:>8.3f}x"
                f"{latency:>12.3f}{copied:>9.3f}{row[2]:>7.3f}x{error:>10}",
                flush=True,
            )
        means = [mean([row[i] for row in ratios]) for i in range(3)]
        worst = [max((row[i] for row in ratios), default=math.nan) for i in range(3)]
        print(f"geometric mean: {means[0]:.3f}x of eager, {means[1]:.3f}x of the graph; end to end {means[2]:.3f}x")
        print(f"worst: {worst[0]:.3f}x of eager, {worst[1]:.3f}x of the graph; end to end {worst[2]:.3f}x")


main()
