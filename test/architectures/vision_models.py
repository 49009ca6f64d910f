"""Small models of Transformers that see more than one class in an image: detection, segmentation, depth, key points, video."""
import numpy as np
import torch

from model_parts import BATCH, STEPS, Calling, real, whole

LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
VIT = {**LAYERS, "image_size": 32, "patch_size": 8}
RESNET = dict(model_type="resnet", embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], layer_type="basic", out_features=["stage2", "stage3", "stage4"])
SWIN = dict(model_type="swin", image_size=64, patch_size=4, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4, drop_path_rate=0.0,
            out_features=["stage1", "stage2", "stage3", "stage4"])
DETR = dict(d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
            num_queries=6, use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, num_labels=5, auxiliary_loss=False, dropout=0.0)
DECODER = dict(encoder_ffn_dim=48, dim_feedforward=48, num_queries=6, num_labels=5, num_attention_heads=4, hidden_dim=32)


def boxes(m, **inputs):
    out = m(**inputs)
    return torch.cat([out.logits, out.pred_boxes], -1)


def masks(m, **inputs):
    out = m(**inputs)
    return torch.cat([out.class_queries_logits.flatten(1), out.masks_queries_logits.flatten(1)], 1)


def of(config, name, options, inputs, labels, call, noise=0.0):
    """`noise`: added to all parameters, where fresh ones give equal scores to choose by."""
    def build():
        import transformers
        torch.manual_seed(0)
        model = getattr(transformers, name)(getattr(transformers, config)(**options() if callable(options) else options))
        model.config._attn_implementation = "eager"
        with torch.no_grad():
            for p in model.parameters() if noise else ():
                p.add_(noise * torch.randn_like(p))
        return Calling(model, call), inputs(), labels()
    return build


def backbone(**options):
    import transformers
    options = dict(options)
    return transformers.AutoConfig.for_model(options.pop("model_type"), **options)


def image(size=64):
    return lambda: {"image": real(3, size, size)}


SEES = {
    "DETR": of("DetrConfig", "DetrForObjectDetection", lambda: dict(DETR, backbone_config=backbone(**RESNET)), image(), lambda: real(6, 10), lambda m, x: boxes(m, pixel_values=x)),
    "Conditional DETR": of("ConditionalDetrConfig", "ConditionalDetrForObjectDetection", lambda: dict(DETR, backbone_config=backbone(**RESNET)), image(), lambda: real(6, 9),
                           lambda m, x: boxes(m, pixel_values=x)),
    "DAB-DETR": of("DabDetrConfig", "DabDetrForObjectDetection", lambda: dict(DETR, hidden_size=32, backbone_config=backbone(**RESNET)), image(), lambda: real(6, 9),
                   lambda m, x: boxes(m, pixel_values=x)),
    "Deformable DETR": of("DeformableDetrConfig", "DeformableDetrForObjectDetection", lambda: dict(DETR, num_feature_levels=3, encoder_n_points=2, decoder_n_points=2,
                          backbone_config=backbone(**RESNET)), image(), lambda: real(6, 9), lambda m, x: boxes(m, pixel_values=x)),
    "Deformable DETR, refined": of("DeformableDetrConfig", "DeformableDetrForObjectDetection", lambda: dict(DETR, num_feature_levels=3, encoder_n_points=2, decoder_n_points=2,
                                   with_box_refine=True, backbone_config=backbone(**RESNET)), image(), lambda: real(6, 9), lambda m, x: boxes(m, pixel_values=x)),
    "RT-DETR": of("RTDetrConfig", "RTDetrForObjectDetection", lambda: dict(backbone_config=backbone(**dict(RESNET, model_type="rt_detr_resnet")), encoder_hidden_dim=32, d_model=32,
                  encoder_in_channels=[16, 24, 32], encoder_ffn_dim=48, encoder_attention_heads=4, decoder_in_channels=[32, 32, 32], decoder_ffn_dim=48, decoder_layers=2,
                  decoder_attention_heads=4, decoder_n_points=2, num_queries=6, num_denoising=0, num_labels=5, anchor_image_size=None, hidden_expansion=1.0),
                  image(), lambda: real(6, 9), lambda m, x: boxes(m, pixel_values=x), noise=0.1),
    "RT-DETR v2": of("RTDetrV2Config", "RTDetrV2ForObjectDetection", lambda: dict(backbone_config=backbone(**dict(RESNET, model_type="rt_detr_resnet")), encoder_hidden_dim=32, d_model=32,
                     encoder_in_channels=[16, 24, 32], encoder_ffn_dim=48, encoder_attention_heads=4, decoder_in_channels=[32, 32, 32], decoder_ffn_dim=48, decoder_layers=2,
                     decoder_attention_heads=4, decoder_n_points=2, num_queries=6, num_denoising=0, num_labels=5, hidden_expansion=1.0),
                     image(), lambda: real(6, 9), lambda m, x: boxes(m, pixel_values=x), noise=0.1),
    "D-FINE": of("DFineConfig", "DFineForObjectDetection", lambda: dict(backbone_config=backbone(model_type="hgnet_v2", embedding_size=8, depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32],
                 stem_channels=[3, 8, 8], stage_in_channels=[8, 8, 16, 24], stage_mid_channels=[8, 8, 8, 8], stage_out_channels=[8, 16, 24, 32], stage_num_blocks=[1, 1, 1, 1],
                 stage_downsample=[False, True, True, True], stage_downsample_strides=[2, 2, 2, 2], stage_light_block=[False, False, True, True], stage_kernel_size=[3, 3, 5, 5],
                 stage_numb_of_layers=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"]), encoder_hidden_dim=32, d_model=32, encoder_in_channels=[16, 24, 32],
                 encoder_ffn_dim=48, encoder_attention_heads=4, decoder_in_channels=[32, 32, 32], decoder_ffn_dim=48, decoder_layers=2, decoder_attention_heads=4,
                 decoder_n_points=[2, 2, 2], num_queries=6, num_denoising=0, num_labels=5, hidden_expansion=1.0), image(), lambda: real(6, 9), lambda m, x: boxes(m, pixel_values=x), noise=0.1),
    "YOLOS": of("YolosConfig", "YolosForObjectDetection", dict(VIT, image_size=[32, 32], num_detection_tokens=6, num_labels=5), image(32), lambda: real(6, 10), lambda m, x: boxes(m, pixel_values=x)),
    "OWL-ViT": of("OwlViTConfig", "OwlViTForObjectDetection", dict(text_config=dict(LAYERS, vocab_size=60, max_position_embeddings=16), vision_config=VIT, projection_dim=32),
                  lambda: {"words": whole(58, 12) + 1, "image": real(3, 32, 32)}, lambda: real(16, 5), lambda m, w, x: boxes(m, input_ids=w, pixel_values=x)),
    "Grounding DINO": of("GroundingDinoConfig", "GroundingDinoForObjectDetection", lambda: dict(backbone_config=backbone(**dict(SWIN, out_features=["stage2", "stage3", "stage4"])),
                         text_config=dict(LAYERS, model_type="bert", vocab_size=60), d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4,
                         decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_queries=6, num_feature_levels=4, encoder_n_points=2, decoder_n_points=2,
                         max_text_len=16, use_timm_backbone=False, use_pretrained_backbone=False, dropout=0.0, fusion_dropout=0.0, fusion_droppath=0.0),
                         lambda: {"words": whole(58, 12) + 1, "image": real(3, 64, 64)}, lambda: real(6, 4), lambda m, w, x: m(input_ids=w, pixel_values=x).pred_boxes),
    "MaskFormer": of("MaskFormerConfig", "MaskFormerForInstanceSegmentation", lambda: dict(backbone_config=backbone(**SWIN), decoder_config=backbone(model_type="detr", **{k: v for k, v in DETR.items()
                     if k not in ("num_labels", "backbone", "use_timm_backbone", "use_pretrained_backbone")}), fpn_feature_size=32, mask_feature_size=32, num_labels=5),
                     image(), lambda: real(6 * 6 + 6 * 16 * 16), lambda m, x: masks(m, pixel_values=x)),
    "Mask2Former": of("Mask2FormerConfig", "Mask2FormerForUniversalSegmentation", lambda: dict(backbone_config=backbone(**SWIN), feature_size=32, mask_feature_size=32, hidden_dim=32,
                      encoder_feedforward_dim=48, dim_feedforward=48, encoder_layers=1, decoder_layers=2, num_attention_heads=4, num_queries=6, num_labels=5, dropout=0.0),
                      image(), lambda: real(6 * 6 + 6 * 16 * 16), lambda m, x: masks(m, pixel_values=x)),
    "UperNet": of("UperNetConfig", "UperNetForSemanticSegmentation", lambda: dict(backbone_config=backbone(**SWIN), hidden_size=16, auxiliary_in_channels=64, auxiliary_channels=16,
                  pool_scales=[1, 2], num_labels=5), image(), lambda: real(5, 64, 64), lambda m, x: m(pixel_values=x).logits),
    "BEiT, segmentation": of("BeitConfig", "BeitForSemanticSegmentation", dict(LAYERS, num_hidden_layers=4, image_size=64, patch_size=8, out_indices=[1, 2, 3, 4], pool_scales=[1, 2], num_labels=5,
                             use_auxiliary_head=False, use_relative_position_bias=True, drop_path_rate=0.0), image(), lambda: real(5, 32, 32), lambda m, x: m(pixel_values=x).logits),
    "DPT": of("DPTConfig", "DPTForDepthEstimation", dict(VIT, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16,
              is_hybrid=False, reassemble_factors=[4, 2, 1, 0.5]), image(32), lambda: real(64, 64), lambda m, x: m(pixel_values=x).predicted_depth),
    "Depth Anything": of("DepthAnythingConfig", "DepthAnythingForDepthEstimation", lambda: dict(backbone_config=backbone(model_type="dinov2", **dict(VIT, num_hidden_layers=4, mlp_ratio=2),
                         out_features=["stage1", "stage2", "stage3", "stage4"], reshape_hidden_states=False), patch_size=8, reassemble_hidden_size=32, neck_hidden_sizes=[8, 8, 16, 16],
                         fusion_hidden_size=16, head_hidden_size=8), image(32), lambda: real(32, 32), lambda m, x: m(pixel_values=x).predicted_depth),
    "GLPN": of("GLPNConfig", "GLPNForDepthEstimation", dict(num_encoder_blocks=4, depths=[1, 1, 1, 1], sr_ratios=[8, 4, 2, 1], hidden_sizes=[8, 8, 16, 16], num_attention_heads=[1, 1, 2, 2],
               mlp_ratios=[2, 2, 2, 2], decoder_hidden_size=8, drop_path_rate=0.0), image(), lambda: real(64, 64), lambda m, x: m(pixel_values=x).predicted_depth),
    "ViTPose": of("VitPoseConfig", "VitPoseForPoseEstimation", lambda: dict(backbone_config=backbone(model_type="vitpose_backbone", **dict(VIT, image_size=[32, 32], patch_size=[8, 8]),
                  num_experts=1, part_features=0), num_labels=5), image(32), lambda: real(5, 16, 16), lambda m, x: m(pixel_values=x).heatmaps),
    "ViTMatte": of("VitMatteConfig", "VitMatteForImageMatting", lambda: dict(backbone_config=backbone(model_type="vitdet", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=64,
                   patch_size=16, pretrain_image_size=64, num_channels=4, use_relative_position_embeddings=True, out_features=["stage2"], drop_path_rate=0.0), hidden_size=32,
                   convstream_hidden_sizes=[8, 8, 16], fusion_hidden_sizes=[16, 8, 8, 8]), lambda: {"image": real(4, 64, 64)}, lambda: real(1, 64, 64), lambda m, x: m(pixel_values=x).alphas),
    "GroupViT": of("GroupViTVisionConfig", "GroupViTVisionModel", dict(VIT, depths=[1, 1], num_group_tokens=[6, 0], num_output_groups=[6, 3], num_hidden_layers=2, assign_eps=1.0),
                   image(32), lambda: real(32), lambda m, x: m(pixel_values=x).pooler_output),
    "SAM": of("SamConfig", "SamModel", dict(vision_config=dict(hidden_size=32, output_channels=16, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=16, window_size=2,
              global_attn_indexes=[1], mlp_dim=48, num_pos_feats=8), prompt_encoder_config=dict(hidden_size=16, image_size=64, patch_size=16, mask_input_channels=4, image_embedding_size=4),
              mask_decoder_config=dict(hidden_size=16, mlp_dim=24, num_hidden_layers=1, num_attention_heads=2, iou_head_hidden_dim=16)),
              lambda: {"image": real(3, 64, 64), "points": np.abs(real(1, 2, 2)) * 10, "kinds": whole(3, 1, 2) - 1}, lambda: real(1, 3, 16, 16),
              lambda m, x, p, k: m(pixel_values=x, input_points=p, input_labels=k).pred_masks),
    "VideoMAE": of("VideoMAEConfig", "VideoMAEForVideoClassification", dict(VIT, num_frames=4, tubelet_size=2, num_labels=5), lambda: {"frames": real(4, 3, 32, 32)}, lambda: whole(5),
                   lambda m, x: m(pixel_values=x).logits),
    "ViViT": of("VivitConfig", "VivitForVideoClassification", dict(VIT, num_frames=4, tubelet_size=[2, 8, 8], num_labels=5), lambda: {"frames": real(4, 3, 32, 32)}, lambda: whole(5),
                lambda m, x: m(pixel_values=x).logits),
    "TimeSformer": of("TimesformerConfig", "TimesformerForVideoClassification", dict(VIT, num_frames=4, num_labels=5), lambda: {"frames": real(4, 3, 32, 32)}, lambda: whole(5),
                      lambda m, x: m(pixel_values=x).logits),
    "V-JEPA 2": of("VJEPA2Config", "VJEPA2ForVideoClassification", dict(crop_size=32, patch_size=8, frames_per_clip=4, tubelet_size=2, hidden_size=48, num_attention_heads=4, num_hidden_layers=2,
                   mlp_ratio=2, pred_hidden_size=32, pred_num_attention_heads=4, pred_num_hidden_layers=1, num_pooler_layers=1, num_labels=5, drop_path_rate=0.0),
                   lambda: {"frames": real(4, 3, 32, 32)}, lambda: whole(5), lambda m, x: m(pixel_values_videos=x).logits),
    "Table Transformer": of("TableTransformerConfig", "TableTransformerForObjectDetection", lambda: dict(DETR, backbone_config=backbone(**RESNET)), image(), lambda: real(6, 10),
                            lambda m, x: boxes(m, pixel_values=x)),
    "OneFormer": of("OneFormerConfig", "OneFormerForUniversalSegmentation", lambda: dict(backbone_config=backbone(**SWIN), num_classes=5, num_labels=5, num_queries=6, conv_dim=32, mask_dim=32, hidden_dim=32,
                    encoder_feedforward_dim=48, dim_feedforward=48, encoder_layers=1, decoder_layers=2, query_dec_layers=1, num_attention_heads=4, task_seq_len=5, is_training=False,
                    use_auxiliary_loss=False, text_encoder_context_length=5, text_encoder_vocab_size=60, text_encoder_width=32, text_encoder_num_layers=1),
                    lambda: {"image": real(3, 64, 64), "task": whole(60, 5)}, lambda: real(6 * 6 + 6 * 16 * 16), lambda m, x, t: masks(m, pixel_values=x, task_inputs=t)),
    "EoMT": of("EomtConfig", "EomtForUniversalSegmentation", dict(VIT, num_blocks=1, num_queries=6, num_labels=5, num_upscale_blocks=1), image(32), lambda: real(6 * 6 + 6 * 8 * 8),
               lambda m, x: masks(m, pixel_values=x)),
    "ZoeDepth": of("ZoeDepthConfig", "ZoeDepthForDepthEstimation", lambda: dict(backbone_config=backbone(model_type="beit", **dict(VIT, num_hidden_layers=4, use_relative_position_bias=True),
                   out_features=["stage1", "stage2", "stage3", "stage4"], reshape_hidden_states=False), neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, bottleneck_features=16,
                   num_relative_features=8, bin_embedding_dim=16, num_attractors=[4, 2, 2, 1], bin_configurations=[dict(n_bins=8, min_depth=0.001, max_depth=10.0, name="nyu")]),
                   image(32), lambda: real(64, 64), lambda m, x: m(pixel_values=x).predicted_depth),
    "MobileViT, segmentation": of("MobileViTConfig", "MobileViTForSemanticSegmentation", dict(image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 16, 16, 32],
                                  aspp_out_channels=16, num_labels=5, atrous_rates=[1, 2, 3]), image(), lambda: real(5, 2, 2), lambda m, x: m(pixel_values=x).logits),
    "Perceiver": of("PerceiverConfig", "PerceiverForImageClassificationLearned", dict(num_latents=4, d_latents=16, d_model=64, num_blocks=1, num_self_attends_per_block=2, num_self_attention_heads=2,
                    num_cross_attention_heads=1, image_size=16, num_labels=5), image(16), lambda: whole(5), lambda m, x: m(inputs=x).logits),
    "LW-DETR": of("LwDetrConfig", "LwDetrForObjectDetection", lambda: dict(backbone_config=backbone(model_type="lw_detr_vit", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=64,
                  pretrain_image_size=64, patch_size=16, window_block_indices=[0], out_features=["stage1", "stage2"], num_windows=4), projector_scale_factors=[1.0], hidden_expansion=0.5, c2f_num_blocks=1,
                  d_model=32, decoder_ffn_dim=48, decoder_layers=2, decoder_n_points=2, decoder_self_attention_heads=4, decoder_cross_attention_heads=4, num_queries=6, group_detr=1, num_labels=5),
                  image(), lambda: real(6, 9), lambda m, x: boxes(m, pixel_values=x)),
}
