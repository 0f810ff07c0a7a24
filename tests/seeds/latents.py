"""A latent of the tales model, a shared head and a window, all learned."""

from utils.data import load_text, sliding_windows
from utils.pages import definitions
from utils.training.text import load_tales_model


def main(seed):
    book = definitions("deeper/latents_and_positions")
    page, torch = book["PAGE_11"], book["torch"]
    tales, encode, _ = load_tales_model()
    story = torch.tensor(encode(load_text()))
    other_excerpts = sliding_windows(story[5200:], 256, 256)
    tales.requires_grad_(False)
    page["tales"], page["bases"] = tales, []
    page["excerpts"] = sliding_windows(story[:5200], 256, 256)
    page["loss_with"](page["find_directions"], other_excerpts)
    with torch.no_grad():
        logits = torch.cat([tales(excerpt) for excerpt in other_excerpts[0].split(1)])
    book["tales"], book["other_excerpts"] = tales, other_excerpts
    book["wanted"] = logits.softmax(dim=-1)
    learn, loss_of, strongest = book["learn"], page["loss_of"], page["strongest"]
    learned = loss_of(*learn(strongest(8), seed))
    shared = loss_of(*learn(page["shared_heads"](1), seed, is_rival=True))
    distance = torch.arange(256)[:, None] - torch.arange(256)
    last_32 = (distance >= 0) & (distance < 32)
    _, gpt = learn([], seed, is_rival=True, mask=last_32)
    window = page["loss_in_window"](last_32, gpt)
    return {
        "learned 8": learned,
        "trained shared head": shared,
        "trained window": window,
        "trained window minus strongest 64": window - loss_of(strongest(64)),
        "strongest 16 minus learned 8": loss_of(strongest(16)) - learned,
        "trained shared head minus strongest 64": shared - loss_of(strongest(64)),
        "trained shared head minus learned 8": shared - learned,
    }
