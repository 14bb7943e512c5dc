"""Parity: each family's released implementation and this decoder, on the same weights, give the same numbers.

For each case transformers makes a small model with random weights and saves it; `decoder.pretrained.load` reads it
back. Compared are the logits of a batch with left padding, and greedy generation, cached and not. Both sides compute
in float64, so that what differs is the architecture and not its rounding.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from decoder.generate import generate
from decoder.model import Decoder
from decoder.pretrained import load

TOLERANCE = 1e-9  # of logits in float64
NEW_TOKENS = 20
SEED = 5

# Sizes pairwise distinct. Head width is not width / heads wherever the family states one.
_LLAMA = {
    "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2,
    "intermediate_size": 44, "vocab_size": 97, "max_position_embeddings": 57,
}  # fmt: skip
_WIDE = {**_LLAMA, "head_dim": 10}
_GPT2 = {"n_embd": 24, "n_layer": 3, "n_head": 6, "n_inner": 50, "vocab_size": 97, "n_positions": 57}
_WINDOW = {"sliding_window": 7}
_PATTERN = {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
_EXPERTS = {"num_experts_per_tok": 2, "num_experts": 5, "moe_intermediate_size": 14}
_DEEPSEEK = {
    "q_lora_rank": 11, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 6, "v_head_dim": 8,
    "n_routed_experts": 9, "num_experts_per_tok": 3, "n_group": 3, "topk_group": 2, "moe_intermediate_size": 14,
    "n_shared_experts": 2, "first_k_dense_replace": 1, "num_key_value_heads": 6,
}  # fmt: skip


def _rope(kind: str, **keys: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10_000.0, **keys}}


def _longrope(original: int) -> dict[str, Any]:
    """Phi-3 states the trained context outside of the rotary object."""
    factors = {"short_factor": [1.0, 1.25], "long_factor": [1.5, 6.0]}
    return {**_rope("longrope", **factors), "original_max_position_embeddings": original}


@dataclass(frozen=True)
class Case:
    """One small model: a family, what is special about it, and the keys of its config.json."""

    name: str
    model_type: str
    keys: Mapping[str, Any]
    context: int | None = None  # read on to this length, beyond what the file states
    std: float = 0.4  # of what is added to every parameter


CASES: tuple[Case, ...] = (
    Case("GPT-2", "gpt2", _GPT2),
    Case("GPT-2, untied", "gpt2", {**_GPT2, "tie_word_embeddings": False}),
    Case("GPT-J", "gptj", {**_GPT2, "n_head": 3, "rotary_dim": 6}),
    Case("GPT-NeoX, Pythia", "gpt_neox", {**_LLAMA, "num_attention_heads": 3, "rotary_pct": 0.5}),
    Case(
        "GPT-NeoX, serial", "gpt_neox",
        {
            **_LLAMA, "num_attention_heads": 3, "rotary_pct": 0.75, "use_parallel_residual": False,
            "attention_bias": False,
        },
    ),
    Case("OPT", "opt", {**_LLAMA, "ffn_dim": 50}),
    Case("OPT-350M", "opt", {**_LLAMA, "ffn_dim": 50, "word_embed_proj_dim": 10, "do_layer_norm_before": False}),
    Case("Falcon 7B", "falcon", {**_LLAMA, "ffn_hidden_size": 50}),
    Case("Falcon, serial", "falcon", {**_LLAMA, "multi_query": False, "bias": True, "parallel_attn": False}),
    Case("Falcon 40B", "falcon", {**_LLAMA, "new_decoder_architecture": True, "num_kv_heads": 2}),
    Case(
        "Falcon 11B", "falcon",
        {**_LLAMA, "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
    ),
    # Its class writes the sqrt(2 / pi) of its GELU with eight digits, which shows in float64.
    Case("BLOOM", "bloom", {"hidden_size": 24, "n_layer": 3, "n_head": 6, "vocab_size": 97}, std=0.12),
    Case("MPT", "mpt", {"d_model": 24, "n_layers": 3, "n_heads": 6, "vocab_size": 97, "max_seq_len": 57}),
    Case("Llama 1", "llama", {**_LLAMA, "num_key_value_heads": 6}),
    Case("Llama 2", "llama", _WIDE),
    Case("Llama, biases", "llama", {**_WIDE, "attention_bias": True, "mlp_bias": True}),
    Case("Llama, linear", "llama", {**_WIDE, **_rope("linear", factor=4.0)}),
    Case("Llama, dynamic", "llama", {**_WIDE, **_rope("dynamic", factor=4.0), "max_position_embeddings": 13}, 57),
    Case(
        "Llama, YaRN", "llama",
        {**_WIDE, **_rope("yarn", factor=4.0, original_max_position_embeddings=15, beta_fast=2.0, beta_slow=0.2)},
    ),
    Case(
        "Llama 3.2", "llama",
        {
            **_WIDE, "tie_word_embeddings": True,
            **_rope(
                "llama3", factor=8.0, original_max_position_embeddings=16, low_freq_factor=1.0, high_freq_factor=2.0
            ),
        },
    ),
    Case("Mistral", "mistral", {**_WIDE, **_WINDOW}),
    Case("Qwen2", "qwen2", _LLAMA),
    Case("Qwen2, window", "qwen2", {**_LLAMA, **_WINDOW, "use_sliding_window": True, "max_window_layers": 1}),
    Case("Qwen3", "qwen3", _WIDE),
    Case("Gemma", "gemma", _WIDE),
    Case("Gemma 2", "gemma2", {**_WIDE, **_WINDOW, "query_pre_attn_scalar": 13}),
    Case("Gemma 3", "gemma3_text", {**_WIDE, **_WINDOW, **_PATTERN, "query_pre_attn_scalar": 13}),
    Case("Phi-2", "phi", {**_LLAMA, "num_attention_heads": 3, "num_key_value_heads": 3}),
    Case("Phi-3", "phi3", {**_LLAMA, **_WINDOW}),
    Case("Phi-3, LongRoPE short", "phi3", {**_LLAMA, **_longrope(45)}),
    Case("Phi-3, LongRoPE long", "phi3", {**_LLAMA, **_longrope(8)}),
    Case("Phi-3, LongRoPE both", "phi3", {**_LLAMA, **_longrope(19)}),
    Case("OLMo", "olmo", _LLAMA),
    Case("OLMo 2", "olmo2", _LLAMA),
    Case("OLMo 3", "olmo3", {**_LLAMA, **_WINDOW, **_PATTERN}),
    Case("Command R", "cohere", {**_LLAMA, "logit_scale": 0.75}),
    Case("Command R+", "cohere", {**_LLAMA, "logit_scale": 0.75, "use_qk_norm": True}),
    Case("Command R7B", "cohere2", {**_LLAMA, **_WINDOW, **_PATTERN, "logit_scale": 0.75}),
    Case("StarCoder2", "starcoder2", {**_LLAMA, **_WINDOW}),
    Case("SmolLM3", "smollm3", {**_LLAMA, "no_rope_layers": [1, 1, 0]}),
    Case("Mixtral", "mixtral", {**_WIDE, **_WINDOW, "num_local_experts": 5, "num_experts_per_tok": 2}),
    Case(
        "Qwen1.5-MoE", "qwen2_moe",
        {**_LLAMA, **_EXPERTS, "shared_expert_intermediate_size": 18, "mlp_only_layers": [1]},
    ),
    Case("Qwen3-MoE", "qwen3_moe", {**_WIDE, **_EXPERTS, "norm_topk_prob": True}),
    Case("OLMoE", "olmoe", {**_LLAMA, "num_experts": 5, "num_experts_per_tok": 2}),
    Case("DeepSeek-V2", "deepseek_v2", {**_LLAMA, **_DEEPSEEK, "topk_method": "group_limited_greedy"}),
    Case("DeepSeek-V2-Lite", "deepseek_v2", {**_LLAMA, **_DEEPSEEK, "q_lora_rank": None}),
    Case("DeepSeek-V3", "deepseek_v3", {**_LLAMA, **_DEEPSEEK}),
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """How far one case is from transformers."""

    name: str
    difference: float  # largest of all logits at real tokens
    tokens: int  # generated tokens compared: rows x new tokens, cached and uncached
    equal: int  # of these, how many are the same

    @property
    def holds(self) -> bool:
        return self.difference <= TOLERANCE and self.equal == self.tokens


class _Widen(TorchFunctionMode):
    """Turns each cast to float32 into one to float64."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.float:
            return args[0].double()
        args = tuple(torch.float64 if arg is torch.float32 else arg for arg in args)
        kwargs = {key: torch.float64 if arg is torch.float32 else arg for key, arg in (kwargs or {}).items()}
        return func(*args, **kwargs)


@contextmanager
def in_float64() -> Iterator[None]:
    """Inside, all is computed in float64, also by code that takes norms, softmax and rotary angles in float32."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widen():
            yield
    finally:
        torch.set_default_dtype(before)


def transformers_library() -> Any:
    """The peer. Raises ValueError, saying how to get it, where it is not installed."""
    try:
        import transformers
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        raise ValueError("parity needs transformers: python -m pip install transformers") from None
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def small_model(case: Case) -> Any:
    """The family's own class in float64, every parameter random: norms and biases too, which start as 1 and 0."""
    transformers = transformers_library()
    config = transformers.AutoConfig.for_model(case.model_type, **copy.deepcopy(dict(case.keys)))
    config.bos_token_id = config.eos_token_id = None
    config.pad_token_id = 0
    with in_float64():
        model = transformers.AutoModelForCausalLM.from_config(
            config,
            dtype=torch.float64,
            experts_implementation="eager",  # the fused one knows no float64
        ).eval()
    model.generation_config.eos_token_id = None
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for tensor in {id(tensor): tensor for tensor in model.state_dict(keep_vars=True).values()}.values():
            tensor.add_(torch.randn(tensor.shape, dtype=tensor.dtype, generator=generator), alpha=case.std)
    return model


@contextmanager
def saved(model: Any) -> Iterator[Path]:
    """The model as a Hugging Face folder, for as long as the context lasts."""
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        yield Path(folder)


def prompts(vocab: int) -> tuple[Tensor, Tensor]:
    """Three rows of up to eleven tokens, left-padded: ids and mask, (3, 11) each."""
    ids = torch.randint(1, vocab, (3, 11), generator=torch.Generator().manual_seed(SEED))
    mask = (torch.arange(11) >= torch.tensor([0, 4, 2])[:, None]).long()
    return ids * mask, mask


def compare(case: Case) -> Result:
    """Make, save, load and measure one case: generated tokens first, then the logits of prompt and continuation."""
    theirs = small_model(case)
    with saved(theirs) as folder:
        ours = load(folder)
    if case.context is not None:
        ours.config = ours.config.replace(context=case.context, position_rows=None)
    return measure(case.name, theirs, ours)


def measure(name: str, theirs: Any, ours: Decoder) -> Result:
    """How far ``ours`` is from the transformers model ``theirs``."""
    prompt, mask = prompts(ours.config.vocab)
    tokens = equal = 0
    for cached in (True, False):
        ids = _their_tokens(theirs, prompt, mask, cached)
        same = ids == generate(ours, prompt, NEW_TOKENS, attention_mask=mask, cached=cached)
        tokens += same[:, prompt.shape[1] :].numel()
        equal += int(same[:, prompt.shape[1] :].sum())
    mask = torch.cat((mask, torch.ones_like(ids[:, prompt.shape[1] :])), 1)
    with torch.no_grad():
        difference = (_their_logits(theirs, ids, mask) - ours(ids, attention_mask=mask))[mask.bool()].abs().max()
    return Result(name, float(difference), tokens, equal)


def _their_logits(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """Logits of a fresh copy: with dynamic scaling a model remembers the longest text it has read."""
    model = copy.deepcopy(model)
    keys = {"input_ids": ids, "attention_mask": mask}
    if "position_ids" in inspect.signature(model.forward).parameters:
        keys["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
    with in_float64(), torch.no_grad():
        return model(**keys).logits


def _their_tokens(model: Any, ids: Tensor, mask: Tensor, cached: bool) -> Tensor:
    with in_float64():
        return copy.deepcopy(model).generate(
            ids, attention_mask=mask, max_new_tokens=NEW_TOKENS, do_sample=False, use_cache=cached
        )


@click.command("parity")
@click.option("--only", default="", help="Only cases whose name holds this.")
def command(only: str) -> None:
    """Compare every family with transformers on the same random weights, in float64."""
    from rich.console import Console
    from rich.table import Table

    chosen = [case for case in CASES if only.lower() in case.name.lower()]
    if not chosen:
        raise click.UsageError(f"no case's name holds {only!r}; the cases are {', '.join(case.name for case in CASES)}")
    try:
        transformers_library()
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    torch.set_num_threads(1)  # the models are too small to share
    results = [compare(case) for case in chosen]
    table = Table(box=None, pad_edge=False)
    table.add_column("family")
    table.add_column("max |Δ logits|", justify="right")
    table.add_column("tokens equal", justify="right")
    for result in results:
        mark = "" if result.holds else "  differs"
        table.add_row(result.name, f"{result.difference:.1e}", f"{result.equal} of {result.tokens}{mark}")
    console = Console(highlight=False)
    console.print(table)
    held = sum(result.holds for result in results)
    console.print(f"{held} of {len(results)} agree with transformers: logits to {TOLERANCE:g}, every token equal.")
    raise SystemExit(held != len(results))
