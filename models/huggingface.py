"""Models of Hugging Face's Transformers as the exporter wants them: the class of a task, loaded without dropout and cache, and example inputs."""
import contextlib
import inspect
import json
import os

import weightless

# What an architecture's name ends in tells its task.
TASKS = {
    "causal": ("ForCausalLM", "LMHeadModel"),
    "masked": ("ForMaskedLM",),
    "classification": ("ForSequenceClassification",),
    "image": ("ForImageClassification",),
    "seq2seq": ("ForConditionalGeneration",),
    "encoder": ("EncoderModel", "Model"),
}
OUTPUTS = {"encoder": "last_hidden_state"}  # of a task; all others give logits
SYMBOLS = {"decoder_input_ids": ("batch", "target"), "pixel_values": ("batch",)}  # of an input's dimensions; all others are batch and seq
MASKED = ("masked", "classification", "encoder")  # samples of several lengths are filled up to one, and attention must not see the filling


class Refusal(Exception):
    """What a person can mend, in one sentence."""


def task_of(config, asked):
    architecture = (config.architectures or [""])[0]
    task = asked or next((t for t, ends in TASKS.items() if architecture.endswith(ends)), None)
    if task is None:
        raise Refusal(f"cannot tell the task from the architecture '{architecture}'; give one with --task ({', '.join(TASKS)})")
    return task


def class_of(config, task, asked):
    import transformers
    if task == "encoder" and getattr(config, "is_encoder_decoder", False):
        alone = getattr(transformers, type(config).__name__.replace("Config", "EncoderModel"), None)
        if alone is None:
            raise Refusal(f"Transformers has no class for the encoder of {config.model_type} alone; export the whole model with --task seq2seq")
        return alone
    if not asked and (own := getattr(transformers, config.architectures[0], None)):
        return own
    return {"causal": transformers.AutoModelForCausalLM, "masked": transformers.AutoModelForMaskedLM,
            "classification": transformers.AutoModelForSequenceClassification, "image": transformers.AutoModelForImageClassification,
            "seq2seq": transformers.AutoModelForSeq2SeqLM, "encoder": transformers.AutoModel}[task]


def without_dropout(config):
    """Whichever mode an exporter puts the model into."""
    for part in (config, *(v for v in vars(config).values() if hasattr(v, "model_type"))):
        for name, value in vars(part).items():
            if "drop" in name and isinstance(value, float):
                setattr(part, name, 0.0)


def transformers_since(*version):
    import transformers
    return tuple(int(part) for part in transformers.__version__.split(".")[:2]) >= version


def masks_by_broadcasting():
    """Transformers 4.53 to 4.57 make masks with vmap, which PyTorch's exporters do not follow: here indices are broadcast, as Transformers 5 does."""
    try:
        from transformers import masking_utils
    except ImportError:  # before 4.53
        return

    def broadcast(mask, bh_indices=True):
        def of(*indices):  # of batch, head, query and key, the first two None without bh_indices
            given = [i for i in indices if i is not None]
            along = iter([i.reshape([-1] + [1] * (len(given) - 1 - axis)) for axis, i in enumerate(given)])
            return mask(*[i if i is None else next(along) for i in indices]).expand([i.shape[0] for i in given])
        return of

    if hasattr(masking_utils, "_vmap_for_bhqkv"):
        masking_utils._vmap_for_bhqkv = broadcast


def base_of(folder):
    """The model whose adapters PEFT has saved in this folder; None if it holds none."""
    path = os.path.join(folder, "adapter_config.json")
    if not os.path.isfile(path):
        return None
    with open(path) as file:
        base = json.load(file).get("base_model_name_or_path")
    if not base:
        raise Refusal(f"{path} does not say which model its adapters are for (base_model_name_or_path)")
    return base


def with_adapters(model, folder):
    """The model with the layers of its adapters in place of its own. Prompts are no layers, but inputs that PEFT makes around the model."""
    try:
        import peft
    except ImportError:
        raise Refusal(f"{folder} holds adapters, which need peft (pip install peft)") from None
    config = peft.PeftConfig.from_pretrained(folder)
    if config.is_prompt_learning:
        raise Refusal(f"{folder} holds {config.peft_type.value}, which is no layer of the model; export the PeftModel itself with torch.onnx.export")
    return peft.PeftModel.from_pretrained(model, folder, is_trainable=True).base_model.model.float()


def load(a, attention):
    """(model, task, names of parameters that the checkpoint does not hold). Random weights are those of --seed."""
    import torch
    from transformers import AutoConfig
    base = base_of(a.model)
    source = base or a.model
    config = AutoConfig.from_pretrained(source)
    task = task_of(config, a.task)
    if a.labels is not None:
        if task not in ("classification", "image"):
            raise Refusal(f"--labels {a.labels} is the number of classes of a classifier, but this is a model for {task}; --task classification makes it one")
        config.num_labels = a.labels
    if task == "classification" and getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = 0  # decoders classify by their last token that is no filling
    config.use_cache = False
    masks_by_broadcasting()
    if not a.train_mode:
        without_dropout(config)
    longest = getattr(config, "max_position_embeddings", None)
    if longest and 0 < longest < a.seq:
        if a.static:
            raise Refusal(f"--seq {a.seq} is more than the {longest} positions of {a.model}")
        a.seq = longest
    # One product for all experts: any other way depends on the data, or on operators that ONNX does not have.
    config._experts_implementation = "batched_mm"
    torch.manual_seed(a.seed)
    kind = class_of(config, task, a.task)
    if base and a.no_weights:
        raise Refusal(f"{a.model} holds adapters, which --no-weights cannot take")
    if a.no_weights or os.path.isfile(a.model):
        make = getattr(kind, "from_config", None) or kind._from_config
        with weightless.building() if a.no_weights else contextlib.nullcontext():
            model, fresh = make(config, attn_implementation=attention).float(), []
        if a.no_weights:
            weightless.forget(model)
    else:
        dtype = "dtype" if transformers_since(4, 56) else "torch_dtype"
        model, info = kind.from_pretrained(source, config=config, attn_implementation=attention, output_loading_info=True, **{dtype: torch.float32})
        model, fresh = model.float(), sorted(info["missing_keys"])
    if base:
        model = with_adapters(model, a.model)
    return model, task, fresh


def example(a, model, task):
    """Input tensors by name, and which of their dimensions are symbolic."""
    import torch
    config = model.config
    if task == "image":
        size = a.image_size or getattr(config, "image_size", None) or 224
        size = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
        return {"pixel_values": torch.randn(a.batch, getattr(config, "num_channels", 3), *size)}, {"pixel_values": {0: "batch"}}
    names = ["input_ids"]
    accepted = inspect.signature(model.forward).parameters
    if (a.mask or task in MASKED) and "attention_mask" in accepted:
        names.append("attention_mask")
    if task == "seq2seq":
        names.append("decoder_input_ids")
    if "token_type_ids" in accepted and task != "causal" and getattr(config, "type_vocab_size", 0) > 1:
        names.append("token_type_ids")
    shape = (a.batch, a.seq)
    tokens = lambda: torch.randint(1, config.vocab_size, shape)
    make = {"input_ids": tokens, "decoder_input_ids": tokens, "attention_mask": lambda: torch.ones(shape, dtype=torch.int64),
            "token_type_ids": lambda: torch.zeros(shape, dtype=torch.int64)}
    return {n: make[n]() for n in names}, {n: dict(enumerate(SYMBOLS.get(n, ("batch", "seq")))) for n in names}


def one_output(model, names, task, exporter):
    """A module that takes the inputs by position and gives one tensor: what both exporters understand."""
    import torch

    class NoDropout(torch.nn.Identity):
        p = 0.0  # models read it

    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, torch.nn.Dropout) and child.p == 0:
                setattr(parent, name, NoDropout())

    class OneOutput(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, first, second=None, third=None, fourth=None):  # not *inputs, for which PyTorch 2.9 exports no symbolic sizes
            given = dict(zip(names, (first, second, third, fourth)))
            if exporter == "torchscript" and task == "causal":
                # without a mask transformers looks for packed sequences, with operators that exporter does not know
                given.setdefault("attention_mask", torch.ones_like(given["input_ids"]))
            return getattr(self.inner(**given), OUTPUTS.get(task, "logits"))

    return OneOutput()
