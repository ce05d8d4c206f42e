"""Writes models of NNSmith (https://github.com/ise-uiuc/nnsmith) with inputs: FOLDER/SEED/model.onnx and inputs.npz.

    nnsmith_models.py FOLDER COUNT [SEED]

Runs in a separate environment with the versions of nnsmith-requirements.txt, which tools/fuzz --nnsmith creates.
"""

import functools
import pathlib
import random
import sys
import warnings

import numpy as np
import torch

# NNSmith 0.1.0 relies on torch.onnx.export tracing models; the current default exporter does not support its models.
torch.onnx.export = functools.wraps(torch.onnx.export)(functools.partial(torch.onnx.export, dynamo=False))

from nnsmith.graph_gen import model_gen  # noqa: E402
from nnsmith.materialize import Model  # noqa: E402
from nnsmith.narrow_spec import auto_opset  # noqa: E402


def main():
    warnings.simplefilter("ignore")
    folder, count, first = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int((sys.argv[3:] or ["0"])[0])
    kind = Model.init("onnx")
    # Queries torch.onnx.export for the supported types of each operator; takes half a minute.
    operators = auto_opset(kind, None)
    written = 0
    for seed in range(first, first + count):
        random.seed(seed)
        np.random.seed(seed % (1 << 32))
        torch.manual_seed(seed)
        try:
            generator = model_gen(opset=operators, method="symbolic", seed=seed, max_nodes=random.randrange(5, 16), timeout_ms=10_000)
            model = kind.from_gir(generator.make_concrete())
            model.refine_weights()
            inputs = model.make_oracle().input
            place = folder / str(seed)
            place.mkdir(parents=True, exist_ok=True)
            model.dump(str(place / "model.onnx"))
            np.savez(place / "inputs.npz", **{name: np.asarray(array) for name, array in inputs.items()})
            written += 1
        except Exception as error:
            print(f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}", file=sys.stderr)
    print(f"{written} of {count} models written to {folder}")


if __name__ == "__main__":
    main()
