"""Writes model.onnx and model.onnx.data, the model of the tutorial. Needs torch, onnx and onnxscript."""

import torch


class Model(torch.nn.Module):
    """Two convolution branches of different cost between a stem and a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU())
        self.left = torch.nn.Sequential(torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU())
        self.right = torch.nn.Sequential(torch.nn.Conv2d(32, 64, 5, padding=2), torch.nn.ReLU())
        self.head = torch.nn.Linear(128, 10)

    def forward(self, x):
        x = self.stem(x)
        x = torch.cat([self.left(x), self.right(x)], dim=1)
        return self.head(x.mean(dim=(2, 3)))


torch.manual_seed(0)
image = torch.randn(1, 3, 64, 64)
torch.onnx.export(Model().eval(), (image,), "model.onnx", input_names=["image"], output_names=["scores"])
