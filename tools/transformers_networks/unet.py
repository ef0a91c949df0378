"""A small diffusion U-Net, which transformers has not."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from transformers_networks.parts import Made, values

__all__ = ["unet"]


def unet() -> Made:
    """The network, on samples of four channels and 16 x 16."""
    step = torch.ones(1, dtype=torch.int64)
    return _UNet(), {**values("sample", 1, 4, 16, 16), "step": step}, []


class _Block(nn.Module):
    def __init__(self, inward: int, outward: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, inward)
        self.first, self.second = (
            nn.Conv2d(inward, outward, 3, padding=1),
            nn.Conv2d(outward, outward, 3, padding=1),
        )
        self.time, self.skip = nn.Linear(32, outward), nn.Conv2d(inward, outward, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.first(functional.silu(self.norm(x))) + self.time(time)[:, :, None, None]
        return self.second(functional.silu(y)) + self.skip(x)


class _Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = (
            nn.GroupNorm(4, width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, width, height, columns = x.shape
        tokens = self.norm(x).reshape(batch, width, height * columns).transpose(1, 2)
        q, k, v = self.qkv(tokens).view(batch, -1, 3, 2, width // 2).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = (q @ k.transpose(-1, -2) / (width // 2) ** 0.5).softmax(-1) @ v
        mixed = self.out(mixed.transpose(1, 2).reshape(batch, -1, width))
        return x + mixed.transpose(1, 2).reshape(batch, width, height, columns)


class _UNet(nn.Module):
    """Residual blocks with a time embedding, attention, skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.enter = nn.Conv2d(4, 8, 3, padding=1)
        self.down = nn.ModuleList([_Block(8, 8), _Block(8, 16)])
        self.shrink = nn.ModuleList(
            [nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.Conv2d(16, 16, 3, stride=2, padding=1)]
        )
        self.middle, self.attention = _Block(16, 16), _Attention(16)
        self.up = nn.ModuleList([_Block(32, 8), _Block(16, 8)])
        self.leave = nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, sample: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        frequencies = torch.exp(-torch.arange(8, dtype=torch.float32))
        angles = step.float()[:, None] * frequencies[None]
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        y, skips = self.enter(sample), []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            y = block(y, time)
            skips.append(y)
            y = shrink(y)
        y = self.attention(self.middle(y, time))
        for block in self.up:
            skip = skips.pop()
            y = functional.interpolate(y, size=skip.shape[2:], mode="nearest")
            y = block(torch.cat([y, skip], 1), time)
        return self.leave(y)
