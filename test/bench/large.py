#!/usr/bin/env python3
"""Published models that no machine here could hold: what compiling a plan for them takes. The graphs are exported from Transformers without
weights (models/export.py --no-weights) and compiled for `--target sim`: everything of a plan but machine code.

Prints for each seconds and peak memory of zeroc, what it chose, and the step it estimates on the machine that --machine describes.

usage: test/bench/large.py --torch PYTHON [--only llama,deepseek] [--machine FILE] [--keep DIR]
PYTHON has torch, transformers, onnx and onnxscript. An export takes up to two minutes; --keep DIR has it made once.
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile

from turns import GIB, has_torch, measured

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROPE = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192}


def of(architecture, model_type, world, memory, seq, **config):
    return dict(config, model_type=model_type, architectures=[architecture]), ["--world", str(world), "--device-memory", memory], seq


# Dimensions from the models' configurations on the Hub: hidden size, layers, heads, experts.
CASES = {
    "llama 3.1 405B": of("LlamaForCausalLM", "llama", 64, "80GiB", 4096, hidden_size=16384, num_hidden_layers=126, num_attention_heads=128, num_key_value_heads=8,
                         intermediate_size=53248, vocab_size=128256, max_position_embeddings=131072, rope_parameters=ROPE),
    "deepseek v3 671B": of("DeepseekV3ForCausalLM", "deepseek_v3", 256, "80GiB", 4096, hidden_size=7168, num_hidden_layers=61, num_attention_heads=128,
                           num_key_value_heads=128, intermediate_size=18432, moe_intermediate_size=2048, n_routed_experts=256, num_experts_per_tok=8,
                           n_shared_experts=1, first_k_dense_replace=3, vocab_size=129280, n_group=8, topk_group=4, kv_lora_rank=512, q_lora_rank=1536),
    "mixtral 8x22B": of("MixtralForCausalLM", "mixtral", 32, "80GiB", 4096, hidden_size=6144, num_hidden_layers=56, num_attention_heads=48, num_key_value_heads=8,
                        intermediate_size=16384, num_local_experts=8, num_experts_per_tok=2, vocab_size=32768, max_position_embeddings=65536),
    "gpt-oss 120B": of("GptOssForCausalLM", "gpt_oss", 16, "80GiB", 4096, hidden_size=2880, num_hidden_layers=36, num_attention_heads=64, num_key_value_heads=8,
                       head_dim=64, intermediate_size=2880, num_local_experts=128, num_experts_per_tok=4, vocab_size=201088, sliding_window=128),
    "qwen3 32B": of("Qwen3ForCausalLM", "qwen3", 8, "24GiB", 4096, hidden_size=5120, num_hidden_layers=64, num_attention_heads=64, num_key_value_heads=8, head_dim=128,
                    intermediate_size=25600, vocab_size=151936, max_position_embeddings=40960),
    "qwen3 30B-A3B": of("Qwen3MoeForCausalLM", "qwen3_moe", 8, "80GiB", 2048, hidden_size=2048, num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4,
                        head_dim=128, intermediate_size=6144, moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8, norm_topk_prob=True,
                        vocab_size=151936, max_position_embeddings=40960),
}

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--bin", default=str(ROOT / "build" / "bin"))
p.add_argument("--torch", required=True, help="a Python with torch, transformers, onnx and onnxscript")
p.add_argument("--only", default="", help="names that these words occur in, separated by commas")
p.add_argument("--machine", metavar="FILE", help="for which the plan is chosen (docs/offloading.md)")
p.add_argument("--keep", metavar="DIR", help="where exports stay")
args = p.parse_args()
BIN = pathlib.Path(args.bin).resolve()


def compile_one(name, config, flags, seq, folder):
    model = folder / (re.sub(r"\W+", "_", name) + ".onnx")
    if not model.exists():
        (folder / "config.json").write_text(json.dumps(config))
        exported = subprocess.run([args.torch, ROOT / "models" / "export.py", folder / "config.json", "-o", model, "--no-weights"], capture_output=True, text=True)
        if exported.returncode:
            print(f"  {name}: not exported: {(exported.stderr.strip().splitlines() or ['nothing was said'])[-1][:200]}", flush=True)
            return
    machine = ["--machine", str(pathlib.Path(args.machine).resolve())] if args.machine else []
    command = [BIN / "zeroc", model, "-o", "plan.bin", "--init", "random", "--target", "sim", "--stage", "3", "--precision", "bf16", "--tile", "auto",
               "--bind", f"batch=1,seq={seq}", *flags, *machine]
    said = folder / "said.txt"
    seconds, peak = measured(["sh", "-c", 'out=$1; shift; exec "$@" > "$out"', "sh", said, *command], folder)
    text = said.read_text()
    step = re.search(r"estimated (.*? s)", text)
    chosen = re.findall(r"^chosen: (.*)$", text, re.MULTILINE)
    print(f"  {name}, 1 x {seq}, {' '.join(flags)}: {seconds:.1f} s, {peak / GIB:.2f} GiB; a step is estimated at {step[1] if step else 'nothing'}; "
          + "; ".join(chosen), flush=True)


def main():
    if not has_torch(args.torch):
        raise SystemExit(f"large: {args.torch} has no torch and transformers")
    print("zeroc --target sim --stage 3 --precision bf16 --tile auto")
    with tempfile.TemporaryDirectory(prefix="zero-bench-") as temporary:
        folder = pathlib.Path(args.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for name, case in CASES.items():
            if any(word in name for word in args.only.split(",")):
                compile_one(name, *case, folder)


if __name__ == "__main__":
    main()
