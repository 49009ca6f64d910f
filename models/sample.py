#!/usr/bin/env python3
"""Continue a text with a byte-level model in onnxruntime."""
import argparse

import numpy as np
import onnxruntime


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model", help="an ONNX file with bytes in (input_ids) and logits over 256 bytes out")
    p.add_argument("text", help="how it begins")
    p.add_argument("bytes", type=int, nargs="?", default=200, help="how many bytes to add (default: 200)")
    p.add_argument("--temperature", type=float, default=0.7, help="lower is surer (default: 0.7)")
    p.add_argument("--seed", type=int, default=0, help="of what is drawn (default: 0)")
    return p.parse_args()


def main():
    a = arguments()
    session = onnxruntime.InferenceSession(a.model, providers=["CPUExecutionProvider"])
    batch, seq = (d if isinstance(d, int) else None for d in session.get_inputs()[0].shape)  # None: the graph takes any
    text, random = a.text.encode(), np.random.default_rng(a.seed)
    for _ in range(a.bytes):
        window = np.frombuffer(text[-(seq or 256):], np.uint8)
        ids = np.zeros((batch or 1, seq or len(window)), np.int64)
        ids[0, :len(window)] = window
        logits = session.run(["logits"], {"input_ids": ids})[0][0, len(window) - 1].astype(np.float64) / a.temperature
        odds = np.exp(logits - logits.max())
        text += bytes([random.choice(odds.size, p=odds / odds.sum())])
    print(text.decode("utf-8", "replace"))


if __name__ == "__main__":
    main()
