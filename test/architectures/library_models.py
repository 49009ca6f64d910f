"""Small models of x-transformers, timm, vit-pytorch, diffusers, torchvision, open_clip, torch.nn, PEFT and smaller libraries, and of Transformers' for other tasks than
classifying text and images: (model, inputs by name, labels), each of STEPS batches."""
import numpy as np
import torch
from torch import nn

from adapter_models import NAMES as ADAPTED, adapted
import mixed_models
import small_libraries
import vision_models
from model_parts import BATCH, STEPS, Calling, real, whole
from vit_models import VARIANTS

LENGTH, WORDS, CLASSES = 12, 50, 10

# ---------------------------------------------------------------------------------------------------- x-transformers
OF_WRAPPER = ("num_memory_tokens", "use_abs_pos_emb", "scaled_sinu_pos_emb", "post_emb_norm", "tie_embedding", "l2norm_embed")


def x_transformer(encoder=False, **options):
    def build():
        from x_transformers import Decoder, Encoder, TransformerWrapper
        outside = {k: v for k, v in options.items() if k in OF_WRAPPER}
        layers = {k: v for k, v in options.items() if k not in OF_WRAPPER}
        model = TransformerWrapper(num_tokens=WORDS, max_seq_len=LENGTH, **outside,
                                   attn_layers=(Encoder if encoder else Decoder)(dim=32, depth=2, heads=4, attn_dim_head=8, **layers))
        return model, {"x": whole(WORDS, LENGTH)}, whole(WORDS, LENGTH)
    return build


def x_image():
    from x_transformers import Encoder, ViTransformerWrapper
    model = ViTransformerWrapper(image_size=16, patch_size=8, num_classes=CLASSES, attn_layers=Encoder(dim=32, depth=2, heads=4, attn_dim_head=8))
    return model, {"image": real(3, 16, 16)}, whole(CLASSES)


def x_continuous():
    from x_transformers import ContinuousTransformerWrapper, Encoder
    layers = Encoder(dim=32, depth=2, heads=4, attn_dim_head=8)
    return ContinuousTransformerWrapper(dim_in=8, dim_out=6, max_seq_len=LENGTH, attn_layers=layers), {"x": real(LENGTH, 8)}, real(LENGTH, 6)


X_TRANSFORMERS = {
    "decoder": {}, "encoder": {"encoder": True}, "rotary": {"rotary_pos_emb": True, "use_abs_pos_emb": False}, "xpos": {"rotary_xpos": True},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 2}, "relative bias": {"rel_pos_bias": True}, "polar": {"polar_pos_emb": True},
    "dynamic bias": {"dynamic_pos_bias": True, "dynamic_pos_bias_log_distance": False}, "sines": {"scaled_sinu_pos_emb": True, "use_abs_pos_emb": False},
    "cope": {"attn_use_cope": True}, "data-dependent alibi": {"attn_data_dependent_alibi": True}, "gelu gate": {"ff_glu": True},
    "silu gate": {"ff_glu": True, "ff_swish": True}, "squared relu": {"ff_relu_squared": True}, "rms norm": {"use_rmsnorm": True},
    "simple rms norm": {"use_simple_rmsnorm": True}, "scale norm": {"use_scalenorm": True}, "dynamic tanh": {"use_dynamic_tanh": True},
    "dynamic erf": {"use_derf": True}, "sandwich norm": {"sandwich_norm": True}, "post norm": {"pre_norm": False}, "layer scale": {"use_layerscale": True},
    "norm of queries and keys": {"attn_qk_norm": True, "attn_qk_norm_scale": 10}, "learnt norm of them": {"attn_qk_norm": True, "attn_qk_norm_dim_scale": True},
    "one key head": {"attn_one_kv_head": True}, "two key heads": {"attn_kv_heads": 2}, "memory keys": {"attn_num_mem_kv": 4},
    "memory tokens": {"num_memory_tokens": 4, "encoder": True}, "a zero key": {"attn_add_zero_kv": True}, "sinks": {"attn_head_learned_sink": True},
    "talking heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True}, "capped scores": {"attn_softclamp_logits": True, "attn_logit_softclamp_value": 30.0},
    "head scale": {"attn_head_scale": True}, "gated values": {"attn_gate_values": True}, "gated heads": {"attn_gate_value_heads": True},
    "attention on attention": {"attn_on_attn": True}, "top 3 keys": {"attn_sparse_topk": 3}, "sigmoid attention": {"attn_sigmoid": True}, "laser": {"attn_laser": True},
    "selective attention": {"attn_selective": True}, "orthogonal values": {"attn_orthog_projected_values": True}, "sdpa": {"attn_flash": True},
    "sdpa, rotary": {"attn_flash": True, "rotary_pos_emb": True}, "shifted tokens": {"shift_tokens": 1}, "macaron": {"macaron": True},
    "residual attention": {"residual_attn": True}, "value residual": {"add_value_residual": True}, "gated residual": {"gate_residual": True},
    "scaled residual": {"scale_residual": True}, "hyper-connections": {"num_residual_streams": 2}, "input again": {"reinject_input": True}, "skips": {"unet_skips": True},
    "tied embedding": {"tie_embedding": True}, "unit embedding": {"l2norm_embed": True}, "norm of embedding": {"post_emb_norm": True},
}

# ---------------------------------------------------------------------------------------------------- timm and torchvision
SMALL_VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4}
SMALL_SWIN = {"img_size": 32, "patch_size": 4, "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4), "window_size": 4}


def timm_model(name, size=32, **options):
    def build():
        import timm
        return timm.create_model(name, pretrained=False, num_classes=CLASSES, **options), {"image": real(3, size, size)}, whole(CLASSES)
    return build


TIMM = {
    "vit_tiny_patch16_224": SMALL_VIT, "deit_tiny_distilled_patch16_224": SMALL_VIT, "beit_base_patch16_224": SMALL_VIT, "eva02_tiny_patch14_224": SMALL_VIT,
    "cait_xxs24_224": SMALL_VIT, "xcit_nano_12_p16_224": SMALL_VIT, "swin_tiny_patch4_window7_224": SMALL_SWIN, "swinv2_tiny_window8_256": SMALL_SWIN,
    "convnext_atto": {"depths": (1, 1, 1, 1), "dims": (8, 16, 16, 32)}, "convnextv2_atto": {"depths": (1, 1, 1, 1), "dims": (8, 16, 16, 32)},
    "coatnet_nano_rw_224": {"size": 64, "img_size": 64}, "maxvit_rmlp_pico_rw_256": {"size": 64, "img_size": 64}, "levit_128s": {"size": 64, "img_size": 64},
    "crossvit_tiny_240": {"size": 240}, "mobilevit_xxs": {"size": 64}, "mobilevitv2_050": {"size": 64}, "efficientvit_b0": {"size": 64},
    "efficientformer_l1": {"size": 224}, "fastvit_t8": {"size": 64}, "davit_tiny": {"size": 64}, "focalnet_tiny_srf": {"size": 64}, "edgenext_xx_small": {"size": 64},
    "gcvit_xxtiny": {"size": 224}, "tiny_vit_5m_224": {"size": 224}, "inception_next_atto": {"size": 64}, "rexnet_100": {}, "resnet10t": {}, "efficientnet_lite0": {},
    "mobilenetv4_conv_small": {}, "repvit_m0_9": {}, "starnet_s1": {}, "regnetx_002": {}, "densenet121": {}, "naflexvit_base_patch16_gap": {},
    "sequencer2d_s": {"layers": (1, 1, 1, 1), "embed_dims": (16, 16, 16, 16), "hidden_sizes": (4, 4, 4, 4), "img_size": 56, "size": 56}, "volo_d1_224": {"size": 64, "img_size": 64},
    "vit_tiny_r_s16_p8_224": {"size": 128, "img_size": 128},
}
POOLED_BY_ATTENTION = {**SMALL_VIT, "global_pool": "map", "class_token": False}
WITH_REGISTERS = {**SMALL_VIT, "reg_tokens": 2, "qk_norm": True, "init_values": 1e-2}


def torchvision_vit():
    from torchvision.models import VisionTransformer
    return VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=CLASSES), {"image": real(3, 32, 32)}, whole(CLASSES)


def torchvision_swin(second):
    def build():
        from torchvision.models import swin_transformer as swin
        more = {"block": swin.SwinTransformerBlockV2, "downsample_layer": swin.PatchMergingV2} if second else {}
        model = swin.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=CLASSES, stochastic_depth_prob=0.0, **more)
        return model, {"image": real(3, 32, 32)}, whole(CLASSES)
    return build


# ---------------------------------------------------------------------------------------------------- diffusers
def diffusers_model(name, options, inputs, out, call):
    def build():
        import diffusers
        return Calling(getattr(diffusers, name)(**options), call), inputs(), real(*out)
    return build


def flux():
    import diffusers
    model = diffusers.FluxTransformer2DModel(patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
                                             joint_attention_dim=16, pooled_projection_dim=12, axes_dims_rope=(4, 4, 8), guidance_embeds=False)
    places = torch.stack([torch.zeros(16), torch.arange(16.0) // 4, torch.arange(16.0) % 4], 1)
    inputs = {"x": real(16, 4), "text": real(5, 16), "pooled": real(12), "time": np.abs(real())}
    return Calling(model, lambda m, x, c, p, t: m(x, c, p, t, img_ids=places, txt_ids=torch.zeros(5, 3)).sample), inputs, real(16, 4)


UNET = {"sample_size": 16, "layers_per_block": 1, "block_out_channels": (16, 32), "norm_num_groups": 4, "attention_head_dim": 8}
DIFFUSERS = {
    "UNet2D": diffusers_model("UNet2DModel", {**UNET, "in_channels": 3, "out_channels": 3, "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
                                              "up_block_types": ("AttnUpBlock2D", "UpBlock2D")},
                              lambda: {"x": real(3, 16, 16), "time": whole(1000)}, (3, 16, 16), lambda m, x, t: m(x, t).sample),
    "UNet2DCondition": diffusers_model("UNet2DConditionModel", {**UNET, "in_channels": 4, "out_channels": 4, "cross_attention_dim": 16,
                                                                "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
                                                                "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D")},
                                       lambda: {"x": real(4, 16, 16), "time": whole(1000), "text": real(5, 16)}, (4, 16, 16),
                                       lambda m, x, t, c: m(x, t, encoder_hidden_states=c).sample),
    "DiT": diffusers_model("DiTTransformer2DModel", {"num_attention_heads": 2, "attention_head_dim": 16, "in_channels": 4, "out_channels": 4, "num_layers": 2,
                                                     "sample_size": 8, "patch_size": 2, "num_embeds_ada_norm": 10},
                           lambda: {"x": real(4, 8, 8), "time": whole(1000), "class": whole(10)}, (4, 8, 8),
                           lambda m, x, t, y: m(x, timestep=t, class_labels=y).sample),
    "SD3": diffusers_model("SD3Transformer2DModel", {"sample_size": 8, "patch_size": 2, "in_channels": 4, "num_layers": 2, "attention_head_dim": 8, "out_channels": 4,
                                                     "num_attention_heads": 4, "joint_attention_dim": 16, "caption_projection_dim": 32, "pooled_projection_dim": 12},
                           lambda: {"x": real(4, 8, 8), "text": real(5, 16), "pooled": real(12), "time": whole(1000)}, (4, 8, 8),
                           lambda m, x, c, p, t: m(x, c, p, t).sample),
    "AutoencoderKL": diffusers_model("AutoencoderKL", {"in_channels": 3, "out_channels": 3, "down_block_types": ("DownEncoderBlock2D",) * 2, "sample_size": 16,
                                                       "up_block_types": ("UpDecoderBlock2D",) * 2, "block_out_channels": (16, 16), "norm_num_groups": 4, "latent_channels": 4},
                                     lambda: {"x": real(3, 16, 16)}, (3, 16, 16), lambda m, x: m(x).sample),
    "Flux": flux,
}


# ---------------------------------------------------------------------------------------------------- torch.nn, open_clip, audio
def torch_encoder(**options):
    def build():
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, **({"batch_first": True} | options))
        model = nn.Sequential(nn.Linear(8, 32), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(32, CLASSES))
        return model, {"x": real(7, 8)}, whole(CLASSES, 7)
    return build


def clip_text():
    from open_clip.transformer import TextTransformer
    return TextTransformer(context_length=12, vocab_size=60, width=32, heads=4, layers=2, output_dim=16), {"x": whole(60, 12)}, real(16)


def clip_image():
    from open_clip.transformer import VisionTransformer
    return VisionTransformer(32, 8, 32, 2, 4, 4.0, output_dim=CLASSES), {"image": real(3, 32, 32)}, whole(CLASSES)


def transformers_model(config, options, name, inputs, labels, call):
    def build():
        import transformers
        model = getattr(transformers, name)(getattr(transformers, config)(**options))
        model.config._attn_implementation = "eager"
        return Calling(model, call), inputs(), labels()
    return build


LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
WAVES = {**LAYERS, "vocab_size": 20, "conv_dim": (16, 16), "conv_stride": (4, 2), "conv_kernel": (8, 3), "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
         "num_conv_pos_embedding_groups": 4}
SOUND = {
    "Wav2Vec2": transformers_model("Wav2Vec2Config", WAVES, "Wav2Vec2ForCTC", lambda: {"x": real(400)}, lambda: whole(20, 49), lambda m, x: m(x).logits),
    "HuBERT": transformers_model("HubertConfig", WAVES, "HubertForCTC", lambda: {"x": real(400)}, lambda: whole(20, 49), lambda m, x: m(x).logits),
    "AST": transformers_model("ASTConfig", {**LAYERS, "patch_size": 4, "frequency_stride": 4, "time_stride": 4, "max_length": 24, "num_mel_bins": 16, "num_labels": 7},
                              "ASTForAudioClassification", lambda: {"x": real(24, 16)}, lambda: whole(7), lambda m, x: m(x).logits),
    "Whisper": transformers_model("WhisperConfig", {"vocab_size": 50, "num_mel_bins": 8, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "d_model": 32,
                                                    "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_source_positions": 20,
                                                    "max_target_positions": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
                                  "WhisperForConditionalGeneration", lambda: {"features": real(8, 40), "words": 3 + whole(47, 9)}, lambda: whole(50, 9),  # without the padding, whose row PyTorch does not train
                                  lambda m, f, d: m(input_features=f, decoder_input_ids=d, use_cache=False).logits),
    "SegFormer": transformers_model("SegformerConfig", {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [16, 32], "patch_sizes": [7, 3],
                                                        "strides": [4, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2], "decoder_hidden_size": 16, "num_labels": 5},
                                    "SegformerForSemanticSegmentation", lambda: {"image": real(3, 32, 32)}, lambda: real(5, 8, 8), lambda m, x: m(x).logits),
    "PatchTST": transformers_model("PatchTSTConfig", {"num_input_channels": 2, "context_length": 32, "patch_length": 8, "patch_stride": 8, "prediction_length": 6, "d_model": 32,
                                                      "num_attention_heads": 4, "num_hidden_layers": 2, "ffn_dim": 48, "norm_type": "layernorm", "loss": "mse"},
                                   "PatchTSTForPrediction", lambda: {"x": real(32, 2)}, lambda: real(6, 2), lambda m, x: m(past_values=x).prediction_outputs),
    # The image's tokens are put where the text has places for them.
    "BLIP-2": transformers_model("Blip2Config", {"vision_config": {**LAYERS, "image_size": 32, "patch_size": 8}, "num_query_tokens": 4, "image_token_index": 2,
                                                 "qformer_config": {**LAYERS, "vocab_size": 50, "encoder_hidden_size": 32, "cross_attention_frequency": 2},
                                                 "text_config": {"model_type": "opt", "vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1, "ffn_dim": 64,
                                                                 "num_attention_heads": 4, "max_position_embeddings": 64, "word_embed_proj_dim": 32}},
                                 "Blip2ForConditionalGeneration", lambda: {"words": np.concatenate([np.full((STEPS, BATCH, 4), 2), 3 + whole(47, 12)], -1), "image": real(3, 32, 32)},
                                 lambda: whole(50, 16), lambda m, w, i: m(pixel_values=i, input_ids=w).logits),
    "Swin2SR": transformers_model("Swin2SRConfig", {"image_size": 16, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4, "upscale": 2},
                                  "Swin2SRForImageSuperResolution", lambda: {"image": real(3, 16, 16)}, lambda: real(3, 32, 32), lambda m, x: m(x).reconstruction),
}


def vit_pytorch(module, name, size, options):
    def build():
        from importlib import import_module
        torch.manual_seed(0)
        return getattr(import_module(f"vit_pytorch.{module}".rstrip(".")), name)(**options), {"image": real(3, size, size)}, whole(CLASSES)
    return build


# ---------------------------------------------------------------------------------------------------- experts
def experts(name):
    def build():
        import expert_models
        torch.manual_seed(0)
        return expert_models.LanguageModel(getattr(expert_models, name), WORDS), {"ids": whole(WORDS, LENGTH)}, whole(WORDS, LENGTH)
    return build


# ---------------------------------------------------------------------------------------------------- adapters, small libraries
def adapter(name, kind):
    def build():
        torch.manual_seed(0)
        # Prompts stand before the words.
        return Calling(adapted(name, kind, WORDS, LENGTH), lambda m, i: m(input_ids=i).logits[:, -LENGTH:]), {"ids": whole(WORDS, LENGTH)}, whole(WORDS, LENGTH)
    return build


def of_small_library(library, name, sizes, reads, gives):
    def build():
        from importlib import import_module
        torch.manual_seed(0)
        inputs, labels = (real(*shape) if below is None else whole(below, *shape) for below, shape in (reads, gives))
        return Calling(getattr(import_module(library), name)(**sizes), lambda m, x: m(x)), {"x": inputs}, labels
    return build


# ---------------------------------------------------------------------------------------------------- quantized bottlenecks
def bottleneck(name, **options):
    """What is between is whole numbers, or a table's rows; the gradient goes straight through it."""
    def build():
        import vector_quantize_pytorch
        torch.manual_seed(0)
        model = nn.ModuleList([nn.Linear(8, 16), getattr(vector_quantize_pytorch, name)(dim=16, **options), nn.Linear(16, 8)])
        return Calling(model, lambda m, x: m[2](m[1](m[0](x))[0])), {"x": real(LENGTH, 8)}, real(LENGTH, 8)
    return build


BOTTLENECKS = {"FSQ": {"levels": [8, 5, 5]}, "LFQ": {"codebook_size": 16}, "VectorQuantize": {"codebook_size": 16, "rotation_trick": False}, "ResidualVQ": {"codebook_size": 16, "num_quantizers": 2, "rotation_trick": False},
               "ResidualFSQ": {"levels": [5, 5], "num_quantizers": 2}, "SimVQ": {"codebook_size": 16, "rotation_trick": False}}

MODELS = {
    **{f"x-transformers: {name}": x_transformer(**options) for name, options in X_TRANSFORMERS.items()},
    "x-transformers: images": x_image, "x-transformers: numbers": x_continuous,
    **{f"timm: {name}": timm_model(name, **options) for name, options in TIMM.items()},
    "timm: vit pooled by attention": timm_model("vit_tiny_patch16_224", **POOLED_BY_ATTENTION), "timm: vit with registers": timm_model("vit_tiny_patch16_224", **WITH_REGISTERS),
    "torchvision: ViT": torchvision_vit, "torchvision: Swin": torchvision_swin(False), "torchvision: Swin v2": torchvision_swin(True),
    **{f"vit-pytorch: {name}": vit_pytorch(*variant) for name, variant in VARIANTS.items()},
    **{f"diffusers: {name}": build for name, build in DIFFUSERS.items()},
    "torch.nn: encoder": torch_encoder(), "torch.nn: encoder, norms first": torch_encoder(norm_first=True, activation="gelu"),
    "torch.nn: encoder, sequence first": torch_encoder(batch_first=False), "open_clip: text": clip_text, "open_clip: images": clip_image,
    **{f"Transformers: {name}": build for name, build in (SOUND | vision_models.SEES | mixed_models.MIXES).items()},
    **{f"PEFT: {name}, {kind}": adapter(name, kind) for name, kind in ADAPTED},
    **{f"small: {name}": of_small_library(*model) for name, model in small_libraries.models(WORDS, LENGTH, CLASSES).items()},
    **{f"bottleneck: {name}": bottleneck(name, **options) for name, options in BOTTLENECKS.items()},
    **{f"experts: {name}": experts(name) for name in ("ByMask", "ByIndex", "AddedByIndex", "PutByMask")},
}
