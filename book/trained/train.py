"""Train the model on masked words, measure it on held-out sentences, and write weights.safetensors and weights.json.

Run `python book/trained/train.py`. The same machine gives the same weights again; another may round differently.

Pre-norm, because there each layer only adds to the residual stream, which makes it easier to look into. It is not
better here: in short tries (1,500 steps of 128 sentences) post-norm came to the same loss within 2 %.
"""

import hashlib
import json
import math
import sys
import time
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))  # so that this file runs as a script, too

from encoder_lib.feed_forward import count_parameters  # noqa: E402
from encoder_lib.stacking import EncoderConfig  # noqa: E402
from trained import grammar  # noqa: E402
from trained.measure import (  # noqa: E402
    EVALUATION,
    held_out_sentences,
    model_accuracy,
    questions,
    simple_accuracy,
)
from trained.model import MaskedWordModel  # noqa: E402

WEIGHTS, FIGURES = FOLDER / "weights.safetensors", FOLDER / "weights.json"
SEED = 0
CONFIG = EncoderConfig(d_model=64, num_heads=4, d_ff=256, num_layers=6, dropout=0.0, norm_first=True)
TRAINING = {"sentences": 100_000, "batch_size": 64, "steps": 6000, "warmup": 300, "learning_rate": 2e-3, "masked": 0.2}


def train(seed: int) -> MaskedWordModel:
    """Train a model from scratch; the seed decides its first weights, its sentences and what is masked."""
    torch.manual_seed(seed)
    vocabulary = grammar.vocabulary()
    model = MaskedWordModel(CONFIG, vocabulary).train()
    texts = [str(sentence) for sentence in grammar.sentences(TRAINING["sentences"], seed)]
    all_ids = vocabulary.encode(texts)  # (sentences, seq)
    lengths = (all_ids != vocabulary.pad_id).sum(dim=1)  # (sentences,)
    batches = {length: all_ids[lengths == length, :length] for length in lengths.unique().tolist()}
    optimizer = torch.optim.AdamW(model.parameters(), TRAINING["learning_rate"], betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate_factor)
    total = 0.0
    for step in range(1, TRAINING["steps"] + 1):
        # a batch of one length needs no padding; the lengths come as often as in the sentences
        same_length = batches[int(lengths[torch.randint(len(lengths), ())])]
        ids = same_length[torch.randint(len(same_length), (TRAINING["batch_size"],))]  # (batch, seq)
        inputs, is_chosen = mask_words(ids, vocabulary)
        loss = F.cross_entropy(model(inputs)[is_chosen], ids[is_chosen])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.item()
        if step % 500 == 0:
            print(f"step {step:5}  loss {total / 500:.3f}  {time.process_time():.0f} s of processor time", flush=True)
            total = 0.0
    return model.eval()


def learning_rate_factor(step: int) -> float:
    """Rise linearly over the first steps, then fall along a cosine to zero."""
    warmup, steps = TRAINING["warmup"], TRAINING["steps"]
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def mask_words(ids: torch.Tensor, vocabulary) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose a fifth of the real words; of these hide 80 %, replace 10 % by another word, leave 10 % (as BERT does).

    A word that may be wrong, or be asked for although it stands there, gives the model a reason to work at every place.

    Args:
        ids: (batch, seq).
        vocabulary: its last word is the mask.

    Returns:
        what the model gets to see (batch, seq), and which words it is asked for (batch, seq).
    """
    is_chosen = (torch.rand(ids.shape) < TRAINING["masked"]) & (ids != vocabulary.pad_id)
    fate = torch.rand(ids.shape)
    mask_id = len(vocabulary) - 1
    others = torch.randint(vocabulary.unk_id + 1, mask_id, ids.shape)
    inputs = torch.where(is_chosen & (fate < 0.8), mask_id, ids)
    inputs = torch.where(is_chosen & (fate >= 0.9), others, inputs)
    return inputs, is_chosen  # (batch, seq) each


def save(model: MaskedWordModel, seed: int) -> None:
    """Write the weights in half precision, measure what was written, and put the figures beside it."""
    save_file({name: weight.half().contiguous() for name, weight in model.state_dict().items()}, WEIGHTS)
    model.load_state_dict(load_file(WEIGHTS))
    asked = questions(held_out_sentences())
    simple = simple_accuracy(grammar.sentences(TRAINING["sentences"], seed), asked)
    accuracy = {
        kind: {"questions": len(asked[kind]), "model": round(share, 4)}
        | {guesser: round(other, 4) for guesser, other in simple[kind].items()}
        for kind, share in model_accuracy(model, asked).items()
    }
    figures = {
        "sha256": hashlib.sha256(WEIGHTS.read_bytes()).hexdigest(),
        "bytes": WEIGHTS.stat().st_size,
        "parameters": count_parameters(model),
        "config": asdict(CONFIG),
        "vocab_size": len(model.vocabulary),
        "training": {"seed": seed, **TRAINING},
        "processor_seconds": round(time.process_time()),
        "evaluation": EVALUATION,
        "accuracy": accuracy,
    }
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    for kind, row in accuracy.items():
        print(f"{kind:16}", "  ".join(f"{guesser} {value}" for guesser, value in row.items()))


if __name__ == "__main__":
    torch.set_num_threads(1)  # one thread adds in one order, so the same machine gives the same weights
    save(train(SEED), SEED)
