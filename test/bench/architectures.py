#!/usr/bin/env python3
"""Published architectures, some layers of the size that they have, one AdamW step on 2 threads in f32 or bf16 (PyTorch: autocast): zerorun beside
PyTorch, measured alternately in one run.

Prints for each seconds per step (median) and peak resident memory, and how many times those of PyTorch: of the faster and of the leaner of
eager and torch.compile. All train on random tokens or images with random first weights.

usage: test/bench/architectures.py --torch PYTHON [--only llama,mistral] [--precision f32|bf16] [--rounds N]
PYTHON has torch, transformers, onnx and onnxscript: it exports the models (models/export.py) and is what is measured against.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import numpy as np
import onnx
from safetensors.numpy import save_file

from turns import GIB, Torch, Zero, has_torch, measured, take_turns

ROOT = pathlib.Path(__file__).resolve().parents[2]


def of(architecture, model_type, batch, seq, mask=False, **config):
    return dict(config, model_type=model_type, architectures=[architecture]), batch, seq, mask


CLASSES = dict(id2label={str(i): str(i) for i in range(1000)})
GROUPED = dict(hidden_size=1024, num_attention_heads=16, vocab_size=32000)
CASES = {
    "llama": of("LlamaForCausalLM", "llama", 2, 256, **GROUPED, num_hidden_layers=8, num_key_value_heads=4, intermediate_size=2816),
    "llama, padded": of("LlamaForCausalLM", "llama", 2, 256, mask=True, **GROUPED, num_hidden_layers=8, num_key_value_heads=4, intermediate_size=2816),
    "qwen3": of("Qwen3ForCausalLM", "qwen3", 1, 512, **GROUPED, num_hidden_layers=6, num_key_value_heads=8, head_dim=128, intermediate_size=3072, tie_word_embeddings=True),
    "mistral, window of 512": of("MistralForCausalLM", "mistral", 1, 2048, **GROUPED, num_hidden_layers=6, num_key_value_heads=4, intermediate_size=3584, sliding_window=512),
    "gemma2": of("Gemma2ForCausalLM", "gemma2", 1, 1024, hidden_size=768, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4, head_dim=96,
                 intermediate_size=3072, vocab_size=32000, sliding_window=256),
    "mixtral, 2 of 8 experts": of("MixtralForCausalLM", "mixtral", 2, 256, **GROUPED, num_hidden_layers=4, num_key_value_heads=4, intermediate_size=1024, num_local_experts=8,
                                  num_experts_per_tok=2),
    "qwen3_moe, 4 of 32 experts": of("Qwen3MoeForCausalLM", "qwen3_moe", 2, 256, **GROUPED, num_hidden_layers=4, num_key_value_heads=4, head_dim=64, moe_intermediate_size=256,
                                     num_experts=32, num_experts_per_tok=4, norm_topk_prob=True),
    "deepseek_v3, 2 of 8 experts": of("DeepseekV3ForCausalLM", "deepseek_v3", 2, 256, **{**GROUPED, "hidden_size": 512}, num_hidden_layers=4, num_key_value_heads=16,
                                      intermediate_size=1408, moe_intermediate_size=512, n_routed_experts=8, num_experts_per_tok=2, n_group=2, topk_group=1, first_k_dense_replace=1,
                                      q_lora_rank=256, kv_lora_rank=128, qk_rope_head_dim=32, qk_nope_head_dim=32, v_head_dim=32),
    "mamba": of("MambaForCausalLM", "mamba", 2, 256, hidden_size=768, num_hidden_layers=6, vocab_size=32000),
    "rwkv": of("RwkvForCausalLM", "rwkv", 2, 128, hidden_size=768, num_hidden_layers=4, vocab_size=32000, attention_hidden_size=768),
    "opt": of("OPTForCausalLM", "opt", 2, 256, num_hidden_layers=8),
    "falcon": of("FalconForCausalLM", "falcon", 2, 256, **GROUPED, num_hidden_layers=8),
    "bert": of("BertForMaskedLM", "bert", 4, 128),
    "albert": of("AlbertForMaskedLM", "albert", 2, 256, hidden_size=1024, num_attention_heads=16, intermediate_size=4096, num_hidden_layers=8, vocab_size=30000),
    "electra": of("ElectraForMaskedLM", "electra", 4, 128, hidden_size=768, num_attention_heads=12, intermediate_size=3072, num_hidden_layers=8),
    "xlnet": of("XLNetLMHeadModel", "xlnet", 2, 256, d_model=768, n_head=12, d_inner=3072, n_layer=6),
    "fnet": of("FNetForMaskedLM", "fnet", 2, 256, num_hidden_layers=6),
    "modernbert": of("ModernBertForMaskedLM", "modernbert", 1, 512, num_hidden_layers=8),
    "t5": of("T5ForConditionalGeneration", "t5", 2, 512, d_model=512, d_kv=64, d_ff=1024, num_layers=6, num_heads=8, vocab_size=8192, decoder_start_token_id=0),
    "vit": of("ViTForImageClassification", "vit", 4, 64, **CLASSES),
    "swin": of("SwinForImageClassification", "swin", 4, 64, **CLASSES),
    "resnet 50": of("ResNetForImageClassification", "resnet", 4, 64, **CLASSES),
    "convnext": of("ConvNextForImageClassification", "convnext", 4, 64, **CLASSES),
}

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--bin", default=str(ROOT / "build" / "bin"))
p.add_argument("--torch", required=True, help="a Python with torch, transformers, onnx and onnxscript")
p.add_argument("--only", default="", help="names that these words occur in, separated by commas")
p.add_argument("--threads", type=int, default=2)
p.add_argument("--precision", choices=("f32", "bf16"), default="f32")
p.add_argument("--rounds", type=int, default=2, help="how often the programs take turns")
p.add_argument("--steps", type=int, default=4, help="steps counted in each turn")
args = p.parse_args()
BIN = pathlib.Path(args.bin).resolve()


def samples(model, classes):
    """One batch for the inputs of the model, and labels."""
    random, data = np.random.default_rng(0), {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.name == "pixel_values":
            data[value.name] = random.standard_normal(shape, dtype=np.float32)
        elif value.name == "attention_mask":
            data[value.name] = np.ones(shape, np.int64)
        else:
            data[value.name] = random.integers(0, 2 if value.name == "token_type_ids" else classes, shape)
    data["labels"] = random.integers(0, classes, [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim][:-1])
    return data


def compare(name, config, batch, seq, mask):
    with tempfile.TemporaryDirectory(prefix="zero-bench-") as folder:
        work = pathlib.Path(folder)
        (work / "config.json").write_text(json.dumps(config))
        size = ["--batch", str(batch), "--seq", str(seq), *["--mask"] * mask]
        exported = subprocess.run([args.torch, ROOT / "models" / "export.py", "config.json", "-o", "model.onnx", "--static", *size], cwd=work,
                                  capture_output=True, text=True)
        if exported.returncode:
            print(f"  {name}: not exported: {(exported.stderr.strip().splitlines() or ['nothing was said'])[-1][:200]}", flush=True)
            return
        model = onnx.load(work / "model.onnx", load_external_data=False)
        classes = model.graph.output[0].type.tensor_type.shape.dim[-1].dim_value
        save_file(samples(model, classes), work / "data.safetensors")
        measured([BIN / "zeroc", "model.onnx", "-o", "plan.bin", "--precision", args.precision, "--quiet"], work)
        zero = Zero(BIN, work, args.threads)
        peers = [Torch(args.torch, mode, work / "config.json", *size, "--threads", args.threads, "--precision", args.precision) for mode in ("eager", "compile")]
        others = take_turns([zero, *peers], args.rounds, args.steps)
        seconds = {program.name: statistics.median(program.seconds) for program in (zero, *peers)}
        time = seconds[zero.name] / min(seconds[peer.name] for peer in peers)
        memory = zero.peak / min(peer.peak for peer in peers)
        told = ", ".join(f"{program.name} {seconds[program.name]:.3f} s {program.peak / GIB:.2f} GiB" for program in (zero, *peers))
        print(f"  {name}, {batch} x {seq}: {told}; {time:.2f} of the time, {memory:.2f} of the memory"
              + (f"; NOT VALID: others used {others:.0%} of the CPUs" if others > 0.1 else ""), flush=True)
        for peer in peers:
            peer.close()


def main():
    if not has_torch(args.torch):
        raise SystemExit(f"architectures: {args.torch} has no torch and transformers")
    print(f"{args.precision}, {args.threads} threads, {args.rounds} x {args.steps} steps each, in turns")
    for name, case in CASES.items():
        if any(word in name for word in args.only.split(",")):
            compare(name, *case)


if __name__ == "__main__":
    main()
