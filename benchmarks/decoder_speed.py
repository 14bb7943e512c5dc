"""How fast the decoder is, next to transformers at the same sizes, in one run on one machine.

    python benchmarks/decoder_speed.py [--device cuda --dtype bfloat16] [--json]

Two designs: the book's 100M one against `LlamaForCausalLM`, and GPT-2's (nanoGPT's shape) against
`GPT2LMHeadModel`. Three kinds of work: a forward pass, a training step (AdamW), greedy generation with the cache.
The two sides take turns. Of each round's ratio the median counts; above 1 this decoder is faster.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from decoder.config import Config
from decoder.generate import generate
from decoder.model import Decoder, parameter_count
from decoder.training import make_optimizer, training_step

GPT2 = Config(
    vocab=50_304, heads=12, kv_heads=12, hidden=3_072, context=1_024, positions="learned", norm="layer",
    norm_bias=True, norm_eps=1e-5, attention_bias="qkvo", hidden_bias=True, gated=False, activation="gelu_tanh",
)  # fmt: skip


@dataclass(frozen=True)
class Ratio:
    design: str
    work: str
    ours: float  # tokens per second, the median of the rounds
    peer: float
    ratio: float  # the median of the rounds' own ratios, which a busy machine moves less


def llama(config: Config) -> nn.Module:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=config.vocab,
            hidden_size=config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            intermediate_size=config.hidden,
            max_position_embeddings=config.context,
            rms_norm_eps=config.norm_eps,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=None,
        )
    )


def gpt2(config: Config) -> nn.Module:
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config.vocab,
            n_positions=config.context,
            n_embd=config.width,
            n_layer=config.layers,
            n_head=config.heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=None,
        )
    )


def forward_works(ours: Decoder, peer: nn.Module, ids: Tensor) -> tuple[Callable, Callable]:
    return (
        torch.no_grad()(lambda: ours.eval()(ids)),
        torch.no_grad()(lambda: peer.eval()(ids, use_cache=False).logits),
    )


def training_works(ours: Decoder, peer: nn.Module, ids: Tensor) -> tuple[Callable, Callable]:
    optimizer, peer_optimizer = make_optimizer(ours), make_optimizer(peer)

    def peer_step() -> None:
        peer.train()
        peer_optimizer.zero_grad(set_to_none=True)
        peer(ids, labels=ids, use_cache=False).loss.backward()
        nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        peer_optimizer.step()

    return lambda: training_step(ours, optimizer, ids), peer_step


def generation_works(ours: Decoder, peer: nn.Module, ids: Tensor, new: int) -> tuple[Callable, Callable]:
    settings = {"max_new_tokens": new, "min_new_tokens": new, "do_sample": False, "use_cache": True, "pad_token_id": 0}
    peer_mask = torch.ones_like(ids)
    return lambda: generate(ours, ids, new), lambda: peer.eval().generate(ids, attention_mask=peer_mask, **settings)


def seconds(work: Callable, device: str) -> float:
    """Wall time on a GPU; on a CPU the time of its one thread, which other programs do not lengthen."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    start = clock()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return clock() - start


def compare(works: tuple[Callable, Callable], rounds: int, device: str) -> tuple[float, float, float]:
    """The median seconds of both sides, and the median of peer / ours, after one round to warm up."""
    for work in works:
        seconds(work, device)
    times = [[seconds(work, device) for work in works] for _ in range(rounds)]
    ours, peer = zip(*times, strict=True)
    return statistics.median(ours), statistics.median(peer), statistics.median(p / o for o, p in times)


def measure(device: str, dtype: torch.dtype, tokens: int, new: int, rounds: int) -> list[Ratio]:
    ratios = []
    designs = {"100M, against Llama": (Config(), llama), "GPT-2, against GPT-2": (GPT2, gpt2)}
    for design, (config, make_peer) in designs.items():
        torch.manual_seed(0)
        ours, peer = (model.to(device, dtype) for model in (Decoder(config), make_peer(config)))
        if parameter_count(ours) != parameter_count(peer):
            raise ValueError(f"{design}: the two sides must be the same size, got {parameter_count(ours):,} parameters")
        ids = torch.randint(config.vocab, (1, tokens), device=device)
        for work, count, works in (
            ("forward", tokens, forward_works(ours, peer, ids)),
            ("generation", new, generation_works(ours, peer, ids[:, : tokens // 4], new)),
            ("training step", tokens, training_works(ours, peer, ids)),
        ):
            ours_seconds, peer_seconds, ratio = compare(works, rounds, device)
            ratios.append(Ratio(design, work, count / ours_seconds, count / peer_seconds, ratio))
    return ratios


@click.command()
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--dtype", type=click.Choice(["float32", "bfloat16"]), default="float32", show_default=True)
@click.option("--tokens", type=click.IntRange(8, 1_024), default=256, show_default=True, help="Tokens of a pass.")
@click.option("--new", type=click.IntRange(1, 512), default=32, show_default=True, help="Tokens to generate.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(device: str, dtype: str, tokens: int, new: int, rounds: int, as_json: bool) -> None:
    """Compare the speed of the decoder with transformers at the same sizes."""
    torch.set_num_threads(1)
    ratios = measure(device, getattr(torch, dtype), tokens, new, rounds)
    if as_json:
        click.echo(json.dumps([asdict(ratio) for ratio in ratios], indent=2))
        return
    table = Table("design", "work", "ours, tokens/s", "peer, tokens/s", "ratio", title=f"{device}, {dtype}")
    for ratio in ratios:
        table.add_row(ratio.design, ratio.work, f"{ratio.ours:,.0f}", f"{ratio.peer:,.0f}", f"{ratio.ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
