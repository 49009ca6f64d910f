"""A small Llama and a small GPT-2 with adapters of PEFT, whose own weights are frozen: (model, inputs by name, labels)."""
import torch

KINDS = {
    "LoRA": ("Lora", dict(r=4)), "LoRA with a head": ("Lora", dict(r=4, modules_to_save=["lm_head"])), "LoRA with biases": ("Lora", dict(r=4, bias="all")),
    "rsLoRA": ("Lora", dict(r=4, use_rslora=True)), "DoRA": ("Lora", dict(r=4, use_dora=True)), "AdaLoRA": ("AdaLora", dict(init_r=6, target_r=4, total_step=10)), "LoHa": ("LoHa", dict(r=4)),
    "LoKr": ("LoKr", dict(r=4)), "OFT": ("OFT", dict(r=0, oft_block_size=4)), "VeRA": ("Vera", dict(r=4)), "RandLoRA": ("RandLora", dict(r=4)),
    "FourierFT": ("FourierFT", dict(n_frequency=16)), "norms": ("LNTuning", {}), "prefix": ("PrefixTuning", dict(num_virtual_tokens=4)),
    "prompt": ("PromptTuning", dict(num_virtual_tokens=4)), "P-tuning": ("PromptEncoder", dict(num_virtual_tokens=4, encoder_hidden_size=16)),
    "tokens": ("TrainableTokens", dict(token_indices=[1, 2, 3])),
}
WITHOUT_TARGETS = ("LNTuning", "PrefixTuning", "PromptTuning", "PromptEncoder")
OF_LINEAR_ALONE = ("LoHa", "LoKr", "OFT")  # GPT-2's projections are no nn.Linear


def base(name, words, length):
    import transformers
    sizes = dict(vocab_size=words, attn_implementation="eager")
    if name == "Llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, **sizes))
        return model, ["q_proj", "v_proj"], ["embed_tokens"]
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_positions=length + 8, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **sizes))
    return model, ["c_attn"], ["wte"]


def adapted(name, kind, words, length):
    import peft
    model, projections, table = base(name, words, length)
    config, options = KINDS[kind]
    where = {"task_type": "CAUSAL_LM"} if config in WITHOUT_TARGETS else {"target_modules": table if config == "TrainableTokens" else projections}
    model = peft.get_peft_model(model, getattr(peft, f"{config}Config")(**options, **where))
    random = torch.Generator().manual_seed(5)
    for parameter in model.parameters():  # fresh adapters are zero in part, and so would be gradients
        if parameter.requires_grad:
            parameter.data.add_(torch.randn(parameter.shape, generator=random) * 0.02)
    return model


NAMES = [(name, kind) for name in ("Llama", "GPT-2") for kind, (config, _) in KINDS.items() if name == "Llama" or config not in OF_LINEAR_ALONE]
