"""What the tables of models share: inputs of STEPS batches, and a model as one function of tensors."""
import numpy as np
from torch import nn

STEPS, BATCH = 5, 2


def real(*shape):
    return np.random.default_rng(len(shape)).standard_normal((STEPS, BATCH, *shape)).astype(np.float32)


def whole(below, *shape):
    return np.random.default_rng(below).integers(0, below, (STEPS, BATCH, *shape))


class Calling(nn.Module):
    """`model` as one function of tensors."""

    def __init__(self, model, call):
        super().__init__()
        self.model, self.call = model, call

    def forward(self, *inputs):
        return self.call(self.model, *inputs)
