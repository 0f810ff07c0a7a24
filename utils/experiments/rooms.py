"""Notebook 04: find the phone extension of the person whom each one wants to call."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.experiments import answer_loss, is_right
from utils.training import train


def draw_rooms(num_rooms: int, people: int = 8) -> tuple[Tensor, Tensor]:
    """Draw rooms of people who each want to call one other person.

    A person is 38 numbers: a name (16 random ones), the name of the person wanted (16),
    and a phone extension from 0 to 5 (6, one-hot).

    returns: people (num_rooms, people, 38), and for each of them the extension of the
        person wanted (num_rooms, people)
    """
    name = torch.randn(num_rooms, people, 16)
    steps = torch.randint(1, people, (num_rooms, people))
    friend = (torch.arange(people) + steps) % people  # never oneself
    wanted = name[torch.arange(num_rooms)[:, None], friend]
    extension = torch.randint(0, 6, (num_rooms, people))
    persons = torch.cat([name, wanted, F.one_hot(extension, 6)], dim=-1)
    return persons, extension.gather(1, friend)


class RoomLayer(nn.Module):
    """One attention layer from people (B, T, 38) to six scores each, (B, T, 6).

    scale: the factor of the scores; 1/8 is one over the root of the key's width
    """

    def __init__(self, scale: float):
        super().__init__()
        self.W_query = nn.Linear(38, 64, bias=False)
        self.W_key = nn.Linear(38, 64, bias=False)
        self.W_value = nn.Linear(38, 6, bias=False)
        self.scale = scale

    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        return F.scaled_dot_product_attention(query, key, value, scale=self.scale)


def train_room_layer(
    scale: float, lr: float, seed: int = 0
) -> tuple[RoomLayer, float, float]:
    """Train a layer on 256 rooms for 600 steps.

    returns: the layer, its accuracy in these rooms, and its accuracy in 500 new ones
    """
    torch.manual_seed(seed)
    new = draw_rooms(500)
    layer = RoomLayer(scale)
    batches = [draw_rooms(32) for _ in range(8)]
    train(layer, batches, answer_loss, steps=600, lr=lr, show_progress=False)
    own = torch.cat([is_right(layer, batch) for batch in batches])
    return layer, own.float().mean().item(), is_right(layer, new).float().mean().item()
