"""Experts that look their tokens up, as people write them: by a boolean mask, by torch.where, added by index."""
import torch
import torch.nn.functional as F
from torch import nn

WIDTH, EXPERTS, CHOSEN = 32, 4, 2


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, WIDTH)) for _ in range(EXPERTS))

    def routed(self, x):
        weights, chosen = torch.topk(F.softmax(self.router(x), -1), CHOSEN, -1)
        return weights / weights.sum(-1, keepdim=True), chosen


class ByMask(Experts):
    def forward(self, x):
        weights, chosen = self.routed(x)
        gates = torch.zeros(*x.shape[:-1], EXPERTS).scatter(-1, chosen, weights)
        y, rows = torch.zeros_like(x), x.reshape(-1, WIDTH)
        for i, expert in enumerate(self.experts):
            mask = (chosen == i).any(-1)
            flat = mask.reshape(-1)
            y[mask] += expert(rows[flat]) * gates.reshape(-1, EXPERTS)[flat, i].unsqueeze(1)
        return y


class ByIndex(Experts):
    def forward(self, x):
        rows = x.reshape(-1, WIDTH)
        weights, chosen = self.routed(rows)
        y = torch.zeros_like(rows)
        for i, expert in enumerate(self.experts):
            at, which = torch.where(chosen == i)
            y[at] += expert(rows[at]) * weights[at, which, None]
        return y.reshape(x.shape)


class AddedByIndex(Experts):
    def forward(self, x):
        rows = x.reshape(-1, WIDTH)
        weights, chosen = self.routed(rows)
        y, mask = torch.zeros_like(rows), F.one_hot(chosen, EXPERTS).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            which, at = torch.where(mask[i])
            y.index_add_(0, at, expert(rows[None, at].reshape(-1, WIDTH)) * weights[at, which, None])
        return y.reshape(x.shape)


class PutByMask(Experts):
    """The best expert alone, in place of what was there."""

    def forward(self, x):
        weight, best = F.softmax(self.router(x), -1).max(-1)
        y = x.clone()
        for i, expert in enumerate(self.experts):
            mask = best == i
            y[mask] = F.layer_norm(expert(x[mask]) * weight[mask][:, None], (WIDTH,))
        return y


class LanguageModel(nn.Module):
    def __init__(self, experts, words):
        super().__init__()
        self.embedding, self.experts, self.head = nn.Embedding(words, WIDTH), experts(), nn.Linear(WIDTH, words)

    def forward(self, ids):
        x = self.embedding(ids)
        return self.head(x + self.experts(x))
