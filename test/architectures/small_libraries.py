"""Models of libraries that have one or two each, by name: (library, class, its arguments, input, labels). Input and labels are (n, shape of one sample): whole numbers
below n, or real ones where n is None."""

IMAGE = (3, 32, 32)
SEGMENT = dict(in_channels=1, out_channels=2)
ROWS = (None, (16, 32)), (None, (16, 32))


def models(words, length, classes):
    lm = dict(num_tokens=words, dim=32, depth=2)
    text = (words, (length,)), (words, (length,))
    return {
        "performer": ("performer_pytorch", "PerformerLM", dict(lm, max_seq_len=length, heads=4, generalized_attention=True, nb_features=16, auto_check_redraw=False), *text),
        "linformer": ("linformer", "LinformerLM", dict(lm, seq_len=length, heads=4, k=8), *text),
        "nystromformer": ("nystrom_attention", "Nystromformer", dict(dim=32, dim_head=8, heads=4, depth=2, num_landmarks=4, pinv_iterations=3), *ROWS),
        "perceiver": ("perceiver_pytorch", "PerceiverLM", dict(lm, max_seq_len=length, num_latents=8, latent_dim=16, latent_dim_head=8, cross_dim_head=8, latent_heads=2), *text),
        "local-attention": ("local_attention", "LocalTransformer", dict(lm, max_seq_len=length, causal=True, local_attn_window_size=4, heads=4, dim_head=8, use_xpos=True, xpos_scale_base=8), *text),
        "linear-attention": ("linear_attention_transformer", "LinearAttentionTransformerLM", dict(lm, max_seq_len=length, heads=4, causal=True, n_local_attn_heads=2, local_attn_window_size=4), *text),
        "sinkhorn": ("sinkhorn_transformer", "SinkhornTransformerLM", dict(lm, max_seq_len=length, heads=4, bucket_size=4, causal=False), *text),
        "gMLP": ("g_mlp_pytorch", "gMLP", dict(lm, seq_len=length, causal=True, attn_dim=8), *text),
        "conformer": ("conformer", "Conformer", dict(dim=32, depth=2, dim_head=8, heads=4, ff_mult=2, conv_expansion_factor=2, conv_kernel_size=7), *ROWS),
        "Mega": ("mega_pytorch", "Mega", dict(lm, ema_heads=4, attn_dim_qk=8, attn_dim_value=32, laplacian_attn_fn=True), *text),
        "PaLM": ("palm_pytorch", "PaLM", dict(lm, heads=4, dim_head=8), *text),
        "rela": ("rela_transformer", "ReLATransformer", dict(lm, max_seq_len=length, dim_head=8, heads=4), *text),  # with parameters of no rows
        "FLASH": ("flash_pytorch", "FLASHTransformer", dict(lm, causal=True, group_size=4, query_key_dim=8, expansion_factor=2., norm_type="scalenorm", shift_tokens=True), *text),
        "soft-moe": ("soft_moe_pytorch", "SoftMoE", dict(dim=32, seq_len=16, num_experts=4), *ROWS),
        "agent-attention": ("agent_attention_pytorch", "AgentTransformer", dict(dim=32, num_agent_tokens=4, depth=2, dim_head=8, heads=4), *ROWS),
        "TimeSformer": ("timesformer_pytorch", "TimeSformer", dict(dim=32, image_size=16, patch_size=8, num_frames=4, num_classes=classes, depth=2, heads=4, dim_head=8), (None, (4, 3, 16, 16)), (classes, ())),
        "mlp-mixer": ("mlp_mixer_pytorch", "MLPMixer", dict(image_size=32, channels=3, patch_size=8, dim=32, depth=2, num_classes=classes), (None, IMAGE), (classes, ())),
        "uformer": ("uformer_pytorch", "Uformer", dict(dim=8, stages=2, num_blocks=1, window_size=4, dim_head=8, heads=2, ff_mult=2), (None, (3, 16, 16)), (None, (3, 16, 16))),
        "monai UNETR": ("monai.networks.nets", "UNETR", dict(SEGMENT, img_size=16, feature_size=4, hidden_size=24, mlp_dim=32, num_heads=4, spatial_dims=3), (None, (1, 16, 16, 16)), (None, (2, 16, 16, 16))),
        "monai SwinUNETR": ("monai.networks.nets", "SwinUNETR", dict(SEGMENT, feature_size=12, depths=(1,) * 4, num_heads=(1,) * 4, spatial_dims=2), (None, (1, 64, 64)), (None, (2, 64, 64))),
        "pytorchvideo MViT": ("pytorchvideo.models.vision_transformers", "create_multiscale_vision_transformers",
                              dict(spatial_size=32, temporal_size=4, depth=2, patch_embed_dim=16, num_heads=1, head_num_classes=classes, conv_patch_embed_kernel=(3, 7, 7), embed_dim_mul=[[1, 2.0]],
                                   atten_head_mul=[[1, 2.0]], pool_q_stride_size=[[1, 1, 2, 2]], pool_kv_stride_adaptive=[1, 2, 2], pool_kvq_kernel=[3, 3, 3]), (None, (3, 4, 32, 32)), (classes, ())),
    }
