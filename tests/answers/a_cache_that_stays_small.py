"""Answers to the exercises of notebook 14."""

import math

import torch
import torch.nn.functional as F

from tests.answers import right


@right("absorbed_attention")
def step_two_parts(query, turned_query, latent, turned_key, W_uk, W_uv):
    content = query @ W_uk.mT @ latent[:, None].mT
    place = turned_query @ turned_key[:, None].mT
    scores = (content + place) / (query.shape[-1] + turned_query.shape[-1]) ** 0.5
    weights = torch.softmax(scores, dim=-1)
    mixed = weights @ latent[:, None]
    return mixed @ W_uv


@right("absorbed_attention")
def step_joined(query, turned_query, latent, turned_key, W_uk, W_uv):
    scale = (query.shape[-1] + turned_query.shape[-1]) ** -0.5
    queries = torch.cat((query @ W_uk.mT, turned_query), dim=-1)
    keys = torch.cat((latent, turned_key), dim=-1)[:, None]
    H = query.shape[1]
    keys, values = (t.expand(-1, H, -1, -1) for t in (keys, latent[:, None]))
    return F.scaled_dot_product_attention(queries, keys, values, scale=scale) @ W_uv


@right("absorbed_attention")
def step_by_letters(query, turned_query, latent, turned_key, W_uk, W_uv):
    absorbed = torch.einsum("bhtk,hrk->bhtr", query, W_uk)
    scores = torch.einsum("bhtr,bsr->bhts", absorbed, latent)
    scores += torch.einsum("bhtp,bsp->bhts", turned_query, turned_key)
    width = query.size(-1) + turned_query.size(-1)
    weights = F.softmax(scores / math.sqrt(width), dim=-1)
    mixed = torch.einsum("bhts,bsr->bhtr", weights, latent)
    return torch.einsum("bhtr,hrv->bhtv", mixed, W_uv)
