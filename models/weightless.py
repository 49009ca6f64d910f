"""Models whose parameters have dimensions and no memory: what is exported of one that is larger than this machine's memory is its graph."""


def building():
    """While a model is made: layers ask for memory with torch.empty and fill it later. Here they get a tensor that has none."""
    import torch
    from torch.overrides import TorchFunctionMode

    class NoMemory(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if function is torch.empty:
                kwargs["device"] = "meta"
            return function(*args, **kwargs)

    return NoMemory()


def forget(model):
    """Every parameter becomes one that the exporter takes for a tensor in memory. What is not trained is part of the graph and keeps its numbers: buffers,
    such as the frequencies of rotary positions, and parameters such as sinusoidal tables."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    fixed = [*model.named_buffers(), *((name, p) for name, p in model.named_parameters() if not p.requires_grad)]
    empty = [name for name, tensor in fixed if tensor.is_meta]
    if empty:
        raise ValueError(f"{len(empty)} tensors that are not trained, such as {empty[0]}, have numbers that are not known without memory for them; "
                         "export it without --no-weights")
    with FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv()):
        fakes = {}  # a tied one stays one
        for module in model.modules():
            for name, p in module._parameters.items():
                if p is not None and p.requires_grad:
                    fakes.setdefault(id(p), (torch.nn.Parameter(torch.empty(p.shape, dtype=p.dtype)), p))
                    module._parameters[name] = fakes[id(p)][0]
    return model


def save(program, path):
    """Writes what torch.onnx.export made of such a model: the parameters as initializers that have a name, a type and dimensions and no data."""
    import onnx
    from torch._subclasses.fake_tensor import FakeTensor
    known = program.model.graph.initializers
    left = {name: value for name, value in known.items() if isinstance(getattr(value.const_value, "raw", None), FakeTensor)}
    for name in left:
        del known[name]
    program.save(path)
    graph = onnx.load(path)
    for name, value in left.items():
        graph.graph.initializer.add(name=name, data_type=value.dtype.value, dims=list(value.shape))
    onnx.save(graph, path)
