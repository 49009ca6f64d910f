#!/usr/bin/env python3
"""Continue a text with a byte-level model in onnxruntime.  usage: sample.py MODEL.onnx "In the beginning" [BYTES]"""
import sys

import numpy as np
import onnxruntime


def main():
    path, text = sys.argv[1], sys.argv[2].encode()
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    batch, seq = session.get_inputs()[0].shape
    random = np.random.default_rng(0)
    for _ in range(count):
        ids = np.zeros((batch, seq), np.int64)
        window = np.frombuffer(text[-seq:], np.uint8)
        ids[0, :len(window)] = window
        logits = session.run(["logits"], {"input_ids": ids})[0][0, len(window) - 1].astype(np.float64) / 0.7
        odds = np.exp(logits - logits.max())
        text += bytes([random.choice(odds.size, p=odds / odds.sum())])
    print(text.decode("utf-8", "replace"))


if __name__ == "__main__":
    main()
