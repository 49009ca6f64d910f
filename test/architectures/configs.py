"""Small configurations of architectures that Transformers publishes: (name, task or None for the architecture's own, configuration)."""

TEXT = dict(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64, vocab_size=96, max_position_embeddings=64,
            pad_token_id=0, bos_token_id=1, eos_token_id=2)
GROUPED = dict(TEXT, num_key_value_heads=2)
IMAGE = dict(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8, num_channels=3)


def of(model_type, architecture, *bases, task=None, name=None, **own):
    config = {}
    for base in bases:
        config.update(base)
    return name or model_type, task, dict(config, model_type=model_type, architectures=[architecture], **own)


CONFIGS = [
    of("gpt2", "GPT2LMHeadModel", n_layer=2, n_embd=32, n_head=4, n_positions=64, vocab_size=96),
    of("gpt_neo", "GPTNeoForCausalLM", TEXT, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4),
    of("gptj", "GPTJForCausalLM", n_layer=2, n_embd=32, n_head=4, rotary_dim=4, n_positions=64, vocab_size=96),
    of("gpt_neox", "GPTNeoXForCausalLM", TEXT),
    of("gpt_bigcode", "GPTBigCodeForCausalLM", n_layer=2, n_embd=32, n_head=4, n_positions=64, vocab_size=96),
    of("opt", "OPTForCausalLM", TEXT, ffn_dim=64, word_embed_proj_dim=32),
    of("bloom", "BloomForCausalLM", n_layer=2, hidden_size=32, n_head=4, vocab_size=96),
    of("falcon", "FalconForCausalLM", GROUPED, new_decoder_architecture=False, multi_query=True),
    of("llama", "LlamaForCausalLM", GROUPED),
    of("mistral", "MistralForCausalLM", GROUPED, sliding_window=8),
    of("qwen2", "Qwen2ForCausalLM", GROUPED, tie_word_embeddings=True),
    of("qwen3", "Qwen3ForCausalLM", GROUPED, head_dim=8),
    of("gemma2", "Gemma2ForCausalLM", GROUPED, head_dim=8, query_pre_attn_scalar=8, sliding_window=8),
    of("phi3", "Phi3ForCausalLM", GROUPED),
    of("olmo2", "Olmo2ForCausalLM", GROUPED),
    of("starcoder2", "Starcoder2ForCausalLM", GROUPED),
    of("stablelm", "StableLmForCausalLM", GROUPED),
    of("cohere", "CohereForCausalLM", GROUPED),
    of("granite", "GraniteForCausalLM", GROUPED),
    of("mixtral", "MixtralForCausalLM", GROUPED, num_local_experts=4, num_experts_per_tok=2),
    of("qwen3_moe", "Qwen3MoeForCausalLM", GROUPED, head_dim=8, moe_intermediate_size=24, num_experts=4, num_experts_per_tok=2),
    of("bert", "BertForMaskedLM", TEXT),
    of("roberta", "RobertaForMaskedLM", TEXT),
    of("distilbert", "DistilBertForMaskedLM", n_layers=2, dim=32, n_heads=4, hidden_dim=64, vocab_size=96, max_position_embeddings=64),
    of("albert", "AlbertForMaskedLM", TEXT, embedding_size=16),
    of("electra", "ElectraForMaskedLM", TEXT, embedding_size=16),
    of("modernbert", "ModernBertForMaskedLM", TEXT, cls_token_id=1, sep_token_id=2, global_attn_every_n_layers=2, local_attention=8),
    of("bert", "BertForMaskedLM", TEXT, task="classification", name="bert, 5 classes", num_labels=5),
    of("gpt2", "GPT2LMHeadModel", task="classification", name="gpt2, 3 classes", n_layer=2, n_embd=32, n_head=4, n_positions=64, vocab_size=96,
       num_labels=3, pad_token_id=0),
    of("vit", "ViTForImageClassification", IMAGE),
    of("dinov2", "Dinov2ForImageClassification", IMAGE),
    of("swin", "SwinForImageClassification", image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4),
    of("convnext", "ConvNextForImageClassification", image_size=32, patch_size=4, hidden_sizes=[8, 16], depths=[1, 1], num_stages=2),
    of("t5", "T5ForConditionalGeneration", num_layers=2, d_model=32, d_kv=8, d_ff=64, num_heads=4, vocab_size=96, decoder_start_token_id=0),
    of("bart", "BartForConditionalGeneration", d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
       encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=96, max_position_embeddings=64, decoder_start_token_id=2),
    of("bert", "BertModel", TEXT, name="bert, encoder alone"),
    of("t5", "T5EncoderModel", name="t5, encoder alone", num_layers=2, d_model=32, d_kv=8, d_ff=64, num_heads=4, vocab_size=96),
]
