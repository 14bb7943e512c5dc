"""State spaces: a layer whose memory of the past is one matrix a head, and which is attention in another order of sums.

Mamba-2 (Dao and Gu, 2405.21060). Each head keeps a state S of p times n numbers, multiplied at every token by one
number a in (0, 1], then increased: S <- a S + x b'; it answers with y = S c. Written out, y_t is the sum over s <= t
of (a_{s+1} ... a_t)(c_t . b_s) x_s: attention with c as queries, b as keys and x as values, no softmax, and a mask
of decays in place of ones (section 5, structured state-space duality). The first form has a state of fixed size and
works token by token; the second makes T times T scores; `chunked` does the second inside chunks, the first between.

In all of them x is (B, T, H, p), b and c are (B, T, H, n), and log_decay is log a, (B, T, H).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from decoder.norms import RMSNorm


def recurrent(x: Tensor, b: Tensor, c: Tensor, log_decay: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Outputs (B, T, H, p) and the last state (B, H, p, n), token after token from ``state``, zero if None."""
    state = x.new_zeros(*x[:, 0].shape, b.shape[-1]) if state is None else state  # (B, H, p, n)
    outputs = []
    for t in range(x.shape[1]):
        written = x[:, t, :, :, None] * b[:, t, :, None]
        state = log_decay[:, t, :, None, None].exp() * state + written
        outputs.append((state @ c[:, t, :, :, None])[..., 0])
    return torch.stack(outputs, 1), state


def decay_mask(log_decay: Tensor) -> Tensor:
    """What is left at token t of what token s wrote: (B, T, H) -> (B, H, T, T), lower triangular."""
    total = log_decay.transpose(1, 2).cumsum(-1)  # (B, H, T)
    log_left = total[..., :, None] - total[..., None, :]
    causal = torch.ones(log_left.shape[-2:], dtype=torch.bool, device=log_left.device).tril()
    return log_left.masked_fill(~causal, -torch.inf).exp()


def masked_attention(x: Tensor, b: Tensor, c: Tensor, log_decay: Tensor) -> Tensor:
    """The same outputs as scores c . b under the decay mask, times x."""
    x, b, c = (part.transpose(1, 2) for part in (x, b, c))  # (B, H, T, ...)
    return (decay_mask(log_decay) * (c @ b.mT) @ x).transpose(1, 2)


def chunked(x: Tensor, b: Tensor, c: Tensor, log_decay: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
    """The same outputs and last state, ``chunk`` tokens at a time: masked attention inside, the state in between."""
    state = x.new_zeros(*x[:, 0].shape, b.shape[-1])
    outputs = []
    for xs, bs, cs, logs in zip(*(part.split(chunk, 1) for part in (x, b, c, log_decay)), strict=True):
        total = logs.cumsum(1)  # (B, t, H)
        carried = torch.einsum("bhpn,bthn->bthp", state, cs) * total.exp()[..., None]
        outputs.append(masked_attention(xs, bs, cs, logs) + carried)
        left = (total[:, -1:] - total).exp()  # of each token's writing at the end of the chunk
        written = torch.einsum("bthp,bthn->bhpn", xs * left[..., None], bs)
        state = total[:, -1, :, None, None].exp() * state + written
    return torch.cat(outputs, 1), state


class Mamba2(nn.Module):
    """The Mamba-2 mixer of one layer, in place of attention; one b and one c serve all H heads of width p.

    It holds d (2 H p + 2 n + H) + H p d weights in its projections, (H p + 2 n)(w + 1) in a causal convolution over
    w tokens, 3 H for step sizes, rates and skips, and H p in the norm. `state_numbers` have to be kept between
    tokens, however many came before.
    """

    def __init__(self, width: int, heads: int, head_width: int, state: int, convolution: int = 4, chunk: int = 64):
        super().__init__()
        self.heads, self.chunk, self.convolution = heads, chunk, convolution
        inner = heads * head_width
        mixed = inner + 2 * state
        self.parts, self.mixed_parts = [inner, mixed, heads], [inner, state, state]
        self.in_proj = nn.Linear(width, sum(self.parts), bias=False)
        self.conv = nn.Conv1d(mixed, mixed, convolution, groups=mixed)
        self.step_bias = nn.Parameter(torch.zeros(heads))
        self.log_rate = nn.Parameter(torch.arange(1, heads + 1).log())
        self.skip = nn.Parameter(torch.ones(heads))
        self.norm = RMSNorm(inner, 1e-5)
        self.out_proj = nn.Linear(inner, width, bias=False)

    @property
    def state_numbers(self) -> int:
        """Numbers kept for one sequence in this layer: the states, and the last inputs of the convolution."""
        inner, state, _ = self.mixed_parts
        return inner * state + (self.convolution - 1) * sum(self.mixed_parts)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, d) -> (B, T, d)
        gate, mixed, step = self.in_proj(x).split(self.parts, -1)
        past = F.pad(mixed.mT, (self.convolution - 1, 0))
        u, b, c = F.silu(self.conv(past).mT).split(self.mixed_parts, -1)
        u = u.unflatten(-1, (self.heads, -1))  # (B, T, H, p)
        step = F.softplus(step + self.step_bias)  # (B, T, H)
        b, c = (part[:, :, None].expand(-1, -1, self.heads, -1) for part in (b, c))  # (B, T, H, n)
        y, _ = chunked(u * step[..., None], b, c, -step * self.log_rate.exp(), self.chunk)
        y = (y + self.skip[:, None] * u).flatten(-2)  # (B, T, H p)
        return self.out_proj(self.norm(y * F.silu(gate)))
