"""PyTorch's own training of the exports of models/tiny (README.md there), for whoever trains them too."""
import numpy as np
from safetensors.numpy import load_file

# How far the first loss (relative), any loss (of the largest) and a gradient (of its norm) may be off. In bf16 every value between kernels is
# rounded to 2^-9 of its size. PyTorch's own training of gpt2 here in bf16, held against f32, is off by 4e-5, 3.3e-4 and 0.8 % under
# autocast, which keeps norms and residuals in f32, and by 1.2e-5, 3.7e-4 and 3.1 % where all of it is bf16, as it is here but for what
# happens inside kernels (test/e2e/make_bf16_bounds.py measures both).
# In f16 it is 2^-12 of its size: eight times as close. TF32 rounds so what is multiplied, and nothing else.
BOUNDS = {"f32": (1e-4, 3e-3, 1e-3), "bf16": (2e-3, 3e-3, 4e-2), "f16": (2.5e-4, 3e-3, 5e-3), "tf32": (2.5e-4, 3e-3, 5e-3)}
# Where a model has ReLUs, gradients jump where one opens: as often as rounding is coarse, and so by the root of that. PyTorch's are off by 4.9
# and 6.5 % there, and those of t5, as attention multiplies in f32 or rounds probabilities to bf16, by 5.9 and 8.2 % (of models without ReLUs
# they are off as much either way).
JUMPING = {"bf16": 9e-2, "f16": 2.8e-2, "tf32": 2.8e-2}
# A classifier's loss, over a few labels, does not average rounding out: after some updates of vit, plans that differ in nothing but what they
# round (kept or made again, for processors with and without AVX-512) are off by -9.0e-3 to 4.5e-3 of 2.77.
OF_CLASSIFIERS = {"bf16": 5e-3}


def bounds_of(reference, precision):
    """The three bounds for training a model in this precision."""
    first, any_step, gradient = BOUNDS[precision]
    if "Classification" in reference["model"]:
        any_step = OF_CLASSIFIERS.get(precision, any_step)
    return first, any_step, JUMPING.get(precision, gradient) if reference.get("relu") else gradient


def data_of(folder, export, steps):
    """The tensors that so many steps read, one batch after the other."""
    batches = np.load(folder / "batches.npz")
    stack = lambda name: np.concatenate([batches[f"{step}/{name}"] for step in range(steps)])
    data = {i["name"]: stack(i["name"]) for i in export["inputs"]}
    return data if "labels" in data else {**data, "labels": stack("targets")}


def bindings(folder, export, world):
    """Flags of zeroc that give each rank its part of PyTorch's batch, where the export leaves sizes open."""
    batches, binds = np.load(folder / "batches.npz"), {}
    for i in export["inputs"]:
        for axis, dimension in enumerate(i["shape"]):
            if isinstance(dimension, str):
                binds[dimension] = batches[f"0/{i['name']}"].shape[axis] // (world if axis == 0 else 1)
    return ["--bind", ",".join(f"{k}={v}" for k, v in binds.items())] if binds else []


def hyper_parameters(reference):
    """Flags of zerorun."""
    o = reference["optimizer"]
    return ["--lr", o["lr"], "--weight-decay", o["weight_decay"], "--betas", ",".join(map(str, o["betas"])), "--eps", o["eps"]]


def as_initializer(gradient, record):
    """PyTorch's gradient in the layout of the initializer, or None where part of the parameter was folded away."""
    how = record["transform"]
    if how == "identity":
        return gradient
    if how == "transpose":
        return gradient.transpose(record.get("perm", [1, 0]))
    if how == "reshape":
        return gradient.reshape(record["shape"])
    if how == "slice" and "start" in record:
        return gradient[record["start"]:record["stop"]].reshape(record["shape"])
    return None


def wanted_gradients(folder, export, reference):
    """The first gradients by initializer, in its layout: of those that have one that is more than rounding, and that no folding took apart."""
    found, wanted = load_file(folder / "gradients.safetensors"), {}
    for name, record in export["trainable"].items():
        gradient = as_initializer(found[record["torch"]], record)
        if gradient is not None and record["torch"] not in reference["noise_gradient"]:
            wanted[name] = gradient
    return wanted
