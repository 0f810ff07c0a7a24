"""Notebook 04: find the phone extension of the person whom each one wants to call."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def draw_rooms(num_rooms: int, people: int = 8) -> tuple[Tensor, Tensor]:
    """Draw rooms of people who each want to call one other person.

    returns: people (num_rooms, people, 38), each with a name (16 random numbers), the
        name of the person wanted (16) and an extension from 0 to 5 (6, one-hot); and
        the extensions of the persons wanted (num_rooms, people)
    """
    name = torch.randn(num_rooms, people, 16)
    steps = torch.randint(1, people, (num_rooms, people))
    friend = (torch.arange(people) + steps) % people  # never oneself
    wanted = name[torch.arange(num_rooms)[:, None], friend]
    extension = torch.randint(0, 6, (num_rooms, people))
    persons = torch.cat([name, wanted, F.one_hot(extension, 6)], dim=-1)
    return persons, extension.gather(1, friend)


@torch.no_grad()
def room_accuracy(
    predict: Callable[[Tensor], Tensor], rooms: tuple[Tensor, Tensor]
) -> float:
    """Return the fraction of people whose answer has the largest of the six logits."""
    people, answers = rooms
    return (predict(people).argmax(dim=-1) == answers).float().mean().item()


def commonest_extension(people: Tensor) -> Tensor:
    """Count each extension among the others in the room: (B, T, 38) to (B, T, 6)."""
    extensions = people[:, :, 32:]  # (B, T, 6)
    return extensions.sum(dim=1, keepdim=True) - extensions


def train_on_rooms(layer: nn.Module, batches: list, lr: float) -> None:
    """Take one step of Adam per batch of rooms."""
    optimizer = torch.optim.Adam(layer.parameters(), lr=lr)
    for people, answers in batches:
        logits = layer(people)  # (B, T, 6)
        loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
