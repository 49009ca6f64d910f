"""Small models of Transformers of two kinds of inputs, of sound and of series: what reads images with text, speaks, listens and forecasts."""
import numpy as np
import torch

from model_parts import BATCH, STEPS, real, whole
from vision_models import LAYERS, VIT, backbone, of

TEXT = {**LAYERS, "vocab_size": 60, "max_position_embeddings": 64}
LLAMA = dict(LAYERS, vocab_size=60, num_key_value_heads=2, max_position_embeddings=64)
WAVES = {**LAYERS, "vocab_size": 20, "conv_dim": (16, 16), "conv_stride": (4, 2), "conv_kernel": (8, 3), "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
         "num_conv_pos_embedding_groups": 4, "layerdrop": 0.0}
SERIES = dict(prediction_length=4, context_length=8, lags_sequence=[1, 2], num_time_features=1, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
              decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, input_size=1, scaling=None)
SEQ2SEQ = dict(encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, d_model=32)


def words(n=12, below=57):
    return 3 + whole(below, n)


def with_image(places, n=8, image=2):
    """Text that has so many places for an image first."""
    return np.concatenate([np.full((STEPS, BATCH, places), image), words(n)], -1)


def wave(config, name):
    return of(config, name, WAVES, lambda: {"x": real(400)}, lambda: whole(20, 49), lambda m, x: m(x).logits)


def forecast(config, name):
    return of(config, name, SERIES, lambda: {"past": real(10), "time": real(10, 1), "seen": np.ones((STEPS, BATCH, 10), np.float32), "future": real(4), "later": real(4, 1)},
              lambda: real(4, 16), lambda m, p, t, s, f, l: m.model(past_values=p, past_time_features=t, past_observed_mask=s, future_values=f, future_time_features=l).last_hidden_state)


MIXES = {
    # ------------------------------------------------------------------------------------------ images with text
    "LLaVA": of("LlavaConfig", "LlavaForConditionalGeneration", lambda: dict(vision_config=backbone(model_type="clip_vision_model", **VIT), text_config=backbone(model_type="llama", **LLAMA),
                image_token_index=2, image_seq_length=16), lambda: {"words": with_image(16), "image": real(3, 32, 32)}, lambda: whole(60, 24),
                lambda m, w, i: m(input_ids=w, pixel_values=i).logits),
    "PaliGemma": of("PaliGemmaConfig", "PaliGemmaForConditionalGeneration", lambda: dict(vision_config=backbone(model_type="siglip_vision_model", **dict(VIT, projection_dim=32)),
                    text_config=backbone(model_type="gemma", **dict(LLAMA, head_dim=8)), image_token_index=2, projection_dim=32),
                    lambda: {"words": with_image(16), "image": real(3, 32, 32), "mask": np.ones((STEPS, BATCH, 24), np.int64), "types": np.zeros((STEPS, BATCH, 24), np.int64)},
                    lambda: whole(60, 24), lambda m, w, i, a, t: m(input_ids=w, pixel_values=i, attention_mask=a, token_type_ids=t).logits),
    "InternVL": of("InternVLConfig", "InternVLForConditionalGeneration", lambda: dict(vision_config=dict(VIT, image_size=[32, 32], patch_size=[8, 8]), text_config=backbone(model_type="qwen2", **LLAMA),
                   image_token_id=2, image_seq_length=4), lambda: {"words": with_image(4), "image": real(3, 32, 32)}, lambda: whole(60, 12),
                   lambda m, w, i: m(input_ids=w, pixel_values=i).logits),
    "Pix2Struct": of("Pix2StructConfig", "Pix2StructForConditionalGeneration", dict(text_config=dict(vocab_size=60, hidden_size=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4),
                     vision_config=dict(hidden_size=32, patch_embed_hidden_size=12, d_ff=48, d_kv=8, num_hidden_layers=1, num_attention_heads=4, seq_len=16)),
                     lambda: {"patches": np.concatenate([np.tile(np.arange(9)[:, None] // 3, (STEPS, BATCH, 1, 1)), np.tile(np.arange(9)[:, None] % 3, (STEPS, BATCH, 1, 1)), real(9, 12)], -1).astype(np.float32),
                              "words": words()}, lambda: whole(60, 12), lambda m, p, w: m(flattened_patches=p, decoder_input_ids=w).logits),
    "ViLT": of("ViltConfig", "ViltForQuestionAnswering", dict(TEXT, image_size=32, patch_size=8, num_labels=5, max_image_length=-1),
               lambda: {"words": words(), "image": real(3, 32, 32), "mask": np.ones((STEPS, BATCH, 32, 32), np.int64)}, lambda: whole(5), lambda m, w, i, a: m(input_ids=w, pixel_values=i, pixel_mask=a).logits),
    "FLAVA": of("FlavaConfig", "FlavaModel", dict(image_config=VIT, text_config=TEXT, multimodal_config=LAYERS, hidden_size=32, projection_dim=16),
                lambda: {"words": words(), "image": real(3, 32, 32)}, lambda: real(30, 32), lambda m, w, i: m(input_ids=w, pixel_values=i).multimodal_embeddings),
    "BLIP": of("BlipConfig", "BlipForConditionalGeneration", dict(text_config=dict(TEXT, encoder_hidden_size=32, projection_dim=16, bos_token_id=1, sep_token_id=0), vision_config=dict(VIT, projection_dim=16),
               projection_dim=16), lambda: {"words": words(), "image": real(3, 32, 32)}, lambda: whole(60, 12), lambda m, w, i: m(pixel_values=i, input_ids=w).logits),
    "BridgeTower": of("BridgeTowerConfig", "BridgeTowerForImageAndTextRetrieval", dict(hidden_size=64, num_attention_heads=4, num_hidden_layers=2, text_config=dict(TEXT, hidden_size=64),
                      vision_config=dict(hidden_size=64, num_hidden_layers=2, patch_size=8, image_size=32)), lambda: {"words": words(), "image": real(3, 32, 32)}, lambda: whole(2),
                      lambda m, w, i: m(input_ids=w, pixel_values=i).logits),
    "LXMERT": of("LxmertConfig", "LxmertModel", dict(vocab_size=60, hidden_size=32, num_attention_heads=4, intermediate_size=48, l_layers=1, x_layers=1, r_layers=1, visual_feat_dim=12),
                 lambda: {"words": words(), "features": real(5, 12), "places": np.abs(real(5, 4))}, lambda: real(32), lambda m, w, f, p: m(input_ids=w, visual_feats=f, visual_pos=p).pooled_output),
    "VisualBERT": of("VisualBertConfig", "VisualBertForQuestionAnswering", dict(TEXT, visual_embedding_dim=12, num_labels=5), lambda: {"words": words(), "features": real(5, 12),
                     "mask": np.ones((STEPS, BATCH, 17), np.int64)}, lambda: whole(5), lambda m, w, f, a: m(input_ids=w, visual_embeds=f, attention_mask=a[:, :12], visual_attention_mask=a[:, 12:]).logits),
    "CLIP": of("CLIPConfig", "CLIPModel", dict(text_config=dict(TEXT, projection_dim=16, eos_token_id=59), vision_config=dict(VIT, projection_dim=16), projection_dim=16),
               lambda: {"words": np.concatenate([words(11, 55), np.full((STEPS, BATCH, 1), 59)], -1), "image": real(3, 32, 32)}, lambda: whole(2), lambda m, w, i: m(input_ids=w, pixel_values=i).logits_per_image),
    "X-CLIP": of("XCLIPConfig", "XCLIPModel", dict(text_config=dict(TEXT, eos_token_id=59), vision_config=dict(VIT, num_frames=2, mit_hidden_size=32, mit_intermediate_size=48, mit_num_hidden_layers=1,
                 mit_num_attention_heads=4, drop_path_rate=0.0), projection_dim=32, prompt_layers=1, prompt_num_attention_heads=4), lambda: {"words": np.concatenate([words(11, 55), np.full((STEPS, BATCH, 1), 59)], -1),
                 "frames": real(2, 3, 32, 32)}, lambda: whole(2), lambda m, w, i: m(input_ids=w, pixel_values=i).logits_per_video),
    "vision encoder, text decoder": of("VisionEncoderDecoderConfig", "VisionEncoderDecoderModel", lambda: dict(encoder=backbone(model_type="vit", **VIT).to_dict(), decoder=backbone(model_type="bert", **dict(TEXT,
                                       is_decoder=True, add_cross_attention=True)).to_dict()), lambda: {"image": real(3, 32, 32), "words": words()}, lambda: whole(60, 12),
                                       lambda m, i, w: m(pixel_values=i, decoder_input_ids=w).logits),
    "MGP-STR": of("MgpstrConfig", "MgpstrForSceneTextRecognition", dict(image_size=[16, 32], patch_size=4, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, max_token_length=5, num_character_labels=7,
                  num_bpe_labels=9, num_wordpiece_labels=11, mlp_ratio=2), lambda: {"image": real(3, 16, 32)}, lambda: whole(7, 5), lambda m, i: m(pixel_values=i).logits[0]),
    "ImageGPT": of("ImageGPTConfig", "ImageGPTForCausalImageModeling", dict(vocab_size=20, n_positions=20, n_embd=32, n_layer=2, n_head=4), lambda: {"pixels": whole(20, 16)}, lambda: whole(19, 16),
                   lambda m, p: m(input_ids=p).logits),
    "ViTMAE": of("ViTMAEConfig", "ViTMAEModel", dict(VIT, mask_ratio=0.0), lambda: {"image": real(3, 32, 32), "noise": real(16)}, lambda: real(17, 32), lambda m, i, n: m(pixel_values=i, noise=n).last_hidden_state),
    "LeViT": of("LevitConfig", "LevitForImageClassification", dict(image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 3, 4], depths=[1, 1, 1], key_dim=[8, 8, 8], mlp_ratio=[2, 2, 2], attention_ratio=[2, 2, 2],
                num_labels=5), lambda: {"image": real(3, 64, 64)}, lambda: whole(5), lambda m, i: m(pixel_values=i).logits),
    "SigLIP 2": of("Siglip2VisionConfig", "Siglip2VisionModel", dict(LAYERS, patch_size=4, num_patches=16, num_channels=3), lambda: {"patches": real(16, 48), "mask": np.ones((STEPS, BATCH, 16), np.int64),
                   "shape": np.full((STEPS, BATCH, 2), 4)}, lambda: real(32), lambda m, p, a, s: m(pixel_values=p, pixel_attention_mask=a, spatial_shapes=torch.tensor([[4, 4]] * 2)).pooler_output),
    # ------------------------------------------------------------------------------------------ sound
    "SEW": wave("SEWConfig", "SEWForCTC"), "UniSpeech": wave("UniSpeechConfig", "UniSpeechForCTC"), "UniSpeech-SAT": wave("UniSpeechSatConfig", "UniSpeechSatForCTC"),
    "WavLM": of("WavLMConfig", "WavLMForCTC", dict(WAVES, num_buckets=8, max_bucket_distance=20), lambda: {"x": real(400)}, lambda: whole(20, 49), lambda m, x: m(x).logits),
    "Wav2Vec2-Conformer": of("Wav2Vec2ConformerConfig", "Wav2Vec2ConformerForCTC", dict(WAVES, conv_depthwise_kernel_size=5, max_source_positions=64), lambda: {"x": real(400)}, lambda: whole(20, 49), lambda m, x: m(x).logits),
    "Wav2Vec2-BERT": of("Wav2Vec2BertConfig", "Wav2Vec2BertForCTC", dict(LAYERS, vocab_size=20, feature_projection_input_dim=16, left_max_position_embeddings=8, right_max_position_embeddings=4, conv_depthwise_kernel_size=5, layerdrop=0.0),
                        lambda: {"x": real(24, 16)}, lambda: whole(20, 24), lambda m, x: m(x).logits),
    "Data2Vec, sound": of("Data2VecAudioConfig", "Data2VecAudioForCTC", dict(WAVES, num_conv_pos_embeddings=2, conv_pos_kernel_size=5), lambda: {"x": real(400)}, lambda: whole(20, 49), lambda m, x: m(x).logits),
    "Speech2Text": of("Speech2TextConfig", "Speech2TextForConditionalGeneration", dict(SEQ2SEQ, vocab_size=60, input_feat_per_channel=16, input_channels=1, conv_channels=24, max_source_positions=64, max_target_positions=32),
                      lambda: {"x": real(24, 16), "words": words()}, lambda: whole(60, 12), lambda m, x, w: m(input_features=x, decoder_input_ids=w).logits),
    "SpeechT5": of("SpeechT5Config", "SpeechT5ForSpeechToText", dict(vocab_size=60, hidden_size=32, encoder_layers=1, encoder_attention_heads=4, encoder_ffn_dim=48, decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=48,
                   conv_dim=(16, 16), conv_stride=(4, 2), conv_kernel=(8, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, encoder_layerdrop=0.0, decoder_layerdrop=0.0),
                   lambda: {"x": real(400), "words": words()}, lambda: whole(60, 12), lambda m, x, w: m(input_values=x, decoder_input_ids=w).logits),
    "Moonshine": of("MoonshineConfig", "MoonshineForConditionalGeneration", dict(vocab_size=60, hidden_size=32, intermediate_size=48, encoder_num_hidden_layers=1, decoder_num_hidden_layers=1, encoder_num_attention_heads=4,
                    decoder_num_attention_heads=4, max_position_embeddings=64), lambda: {"x": real(2000), "words": words()}, lambda: whole(60, 12), lambda m, x, w: m(input_values=x, decoder_input_ids=w).logits),
    "Parakeet": of("ParakeetCTCConfig", "ParakeetForCTC", lambda: dict(vocab_size=20, pad_token_id=19, encoder_config=dict(LAYERS, num_mel_bins=16, subsampling_conv_channels=8, subsampling_factor=4, conv_kernel_size=5)),
                   lambda: {"x": real(32, 16)}, lambda: whole(20, 8), lambda m, x: m(input_features=x).logits),
    "EnCodec": of("EncodecConfig", "EncodecModel", dict(hidden_size=16, num_filters=4, upsampling_ratios=[4, 2], num_lstm_layers=1, codebook_size=16, codebook_dim=16, target_bandwidths=[1.5], norm_type="weight_norm"),
                  lambda: {"x": real(1, 64)}, lambda: real(1, 64), lambda m, x: m.decoder(m.encoder(x))),
    "DAC": of("DacConfig", "DacModel", dict(encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=16, upsampling_ratios=[4, 2], n_codebooks=2, codebook_size=16, codebook_dim=4),
              lambda: {"x": real(1, 64)}, lambda: real(1, 64), lambda m, x: m.decoder(m.encoder(x))),
    "MusicGen": of("MusicgenDecoderConfig", "MusicgenForCausalLM", dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48, num_codebooks=2, max_position_embeddings=64, audio_channels=1),
                   lambda: {"codes": whole(60, 2, 12)}, lambda: real(2, 12, 60), lambda m, c: m(input_ids=c.reshape(4, 12)).logits.reshape(2, 2, 12, 60)),
    "CLAP": of("ClapAudioConfig", "ClapAudioModelWithProjection", dict(spec_size=64, patch_size=4, patch_stride=[4, 4], num_mel_bins=16, hidden_size=32, patch_embeds_hidden_size=16, depths=[1, 1], num_attention_heads=[2, 2], window_size=4,
               num_hidden_layers=2, projection_dim=16, drop_path_rate=0.0), lambda: {"x": real(1, 256, 16)}, lambda: real(16), lambda m, x: m(input_features=x).audio_embeds),
    # ------------------------------------------------------------------------------------------ series, and others
    "series transformer": forecast("TimeSeriesTransformerConfig", "TimeSeriesTransformerForPrediction"), "Informer": forecast("InformerConfig", "InformerForPrediction"),
    "Autoformer": of("AutoformerConfig", "AutoformerForPrediction", dict(SERIES, scaling=False, label_length=4, moving_average=3), lambda: {"past": real(10), "time": real(10, 1), "seen": np.ones((STEPS, BATCH, 10), np.float32),
                     "future": real(4), "later": real(4, 1)}, lambda: real(8, 5), lambda m, p, t, s, f, l: m.model(past_values=p, past_time_features=t, past_observed_mask=s, future_values=f, future_time_features=l).trend),
    "PatchTSMixer": of("PatchTSMixerConfig", "PatchTSMixerForPrediction", dict(context_length=32, patch_length=8, patch_stride=8, num_input_channels=2, prediction_length=6, d_model=16, num_layers=2, loss="mse", scaling=None),
                       lambda: {"x": real(32, 2)}, lambda: real(6, 2), lambda m, x: m(past_values=x).prediction_outputs),
    "decision transformer": of("DecisionTransformerConfig", "DecisionTransformerModel", dict(state_dim=6, act_dim=3, hidden_size=32, n_layer=2, n_head=4, max_ep_len=32), lambda: {"states": real(5, 6), "actions": real(5, 3),
                               "returns": real(5, 1), "steps": whole(32, 5)}, lambda: real(5, 3), lambda m, s, a, r, t: m(states=s, actions=a, returns_to_go=r, timesteps=t, attention_mask=torch.ones(2, 5)).action_preds),
    "DPR": of("DPRConfig", "DPRQuestionEncoder", dict(TEXT, projection_dim=16), lambda: {"words": words()}, lambda: real(16), lambda m, w: m(input_ids=w).pooler_output),
    "BROS": of("BrosConfig", "BrosForTokenClassification", dict(TEXT, hidden_size=64, num_labels=5, dim_bbox=8), lambda: {"words": words(), "boxes": np.abs(real(12, 4)) / 4}, lambda: whole(5, 12), lambda m, w, b: m(input_ids=w, bbox=b).logits),
    "UDOP": of("UdopConfig", "UdopForConditionalGeneration", dict(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_decoder_layers=1, num_heads=4, image_size=32, patch_size=8, max_2d_position_embeddings=32),
               lambda: {"words": words(), "boxes": np.abs(real(12, 4)) / 4, "image": real(3, 32, 32), "told": words(6)}, lambda: whole(60, 6),
               lambda m, w, b, i, t: m(input_ids=w, bbox=b, pixel_values=i, decoder_input_ids=t).logits),
    "Switch": of("SwitchTransformersConfig", "SwitchTransformersForConditionalGeneration", dict(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_decoder_layers=2, num_heads=4, num_experts=4, num_sparse_encoder_layers=1,
                 num_sparse_decoder_layers=1, expert_capacity=8), lambda: {"words": words(), "told": words(6)}, lambda: whole(60, 6), lambda m, w, t: m(input_ids=w, decoder_input_ids=t).logits),
}
