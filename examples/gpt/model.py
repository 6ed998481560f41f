"""A GPT in plain PyTorch: GPT-2's layers, with attention written out or as one fused kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class Size:
    """The shape of a model, and of its batches."""

    layers: int
    width: int
    heads: int
    context: int  # tokens that the model sees
    batch: int  # sequences in a step
    rate: float  # largest learning rate
    words: int = 256  # a token is a byte


#: Widths are multiples of 64, so that tensor cores and FP8 take every product.
SIZES = {
    "tiny": Size(layers=2, width=64, heads=2, context=64, batch=8, rate=3e-3),
    "small": Size(layers=6, width=256, heads=4, context=256, batch=16, rate=1e-3),
    "gpt2": Size(layers=12, width=768, heads=12, context=1024, batch=8, rate=6e-4, words=50304),
}


class Attention(nn.Module):
    """Each token takes values of itself and of earlier tokens."""

    def __init__(self, size: Size, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = size.heads, fused
        self.c_attn = nn.Linear(size.width, 3 * size.width)
        self.c_proj = nn.Linear(size.width, size.width)
        later = torch.ones(size.context, size.context, dtype=torch.bool).triu(1)
        self.register_buffer("later", later, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        q, k, v = (t.view(batch, tokens, self.heads, -1).transpose(1, 2)
                   for t in self.c_attn(x).split(width, dim=2))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(2, 3)) / math.sqrt(q.shape[3])
            scores = scores.masked_fill(self.later[:tokens, :tokens], -math.inf)
            y = scores.softmax(dim=3) @ v
        return self.c_proj(y.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    """One layer: attention, then an MLP, each added to its input."""

    def __init__(self, size: Size, fused: bool) -> None:
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(size.width), Attention(size, fused)
        self.ln_2 = nn.LayerNorm(size.width)
        self.mlp = nn.Sequential(nn.Linear(size.width, 4 * size.width), nn.GELU("tanh"),
                                 nn.Linear(4 * size.width, size.width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Predicts each next token. The weights depend on `seed` alone, not on the device."""

    def __init__(self, size: Size, seed: int = 0, *, fused: bool = False,
                 checkpointed: bool = False) -> None:
        super().__init__()
        self.size, self.checkpointed = size, checkpointed
        self.wte = nn.Embedding(size.words, size.width)
        self.wpe = nn.Embedding(size.context, size.width)
        self.h = nn.ModuleList(Block(size, fused) for _ in range(size.layers))
        self.ln_f = nn.LayerNorm(size.width)
        self.lm_head = nn.Linear(size.width, size.words, bias=False)
        self.lm_head.weight = self.wte.weight
        self._begin(torch.Generator().manual_seed(seed))

    @torch.no_grad()
    def _begin(self, random: torch.Generator) -> None:
        """GPT-2's first weights: outputs of a layer are smaller, the more layers there are."""
        for name, p in self.named_parameters():
            if p.dim() > 1:
                output = name.endswith(("c_proj.weight", "mlp.2.weight"))
                p.normal_(0, 0.02 / math.sqrt(2 * len(self.h) if output else 1), generator=random)
            elif name.endswith("bias"):
                p.zero_()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return logits [batch, tokens, words] for tokens [batch, tokens]."""
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.h:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.lm_head(self.ln_f(x))

    def loss(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the mean loss in nats a token, for tokens [batch, context + 1]."""
        logits = self(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
