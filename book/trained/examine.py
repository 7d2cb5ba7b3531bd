"""Look into the trained model, and into two others that differ by their seed alone, and write findings.json.

Run `python book/trained/examine.py`. It trains the two others first and keeps them in _build/trained; to look then
takes about two minutes. Layers and heads are counted from 1; layer 0 is what enters the first layer.
"""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))  # so that this file runs as a script, too

import trained  # noqa: E402
from trained import grammar  # noqa: E402
from trained.claims import claims  # noqa: E402
from trained.grammar import MASK, Sentence  # noqa: E402
from trained.measure import (  # noqa: E402
    accuracy,
    held_out_sentences,
    is_ambiguous,
    is_misleading,
    model_accuracy,
    model_guesses,
    questions,
)
from trained.model import Inside, MaskedWordModel  # noqa: E402
from trained.train import CONFIG, train  # noqa: E402

FINDINGS = FOLDER / "findings.json"
KEPT = FOLDER.parents[1] / "_build" / "trained"
OTHER_SEEDS = (1, 2)
SENTENCES = 6000
SPLITS = 3  # each probe is fitted anew on so many random halves


# ---- what the heads look at

PATTERNS = {
    "own_place": "each word, at itself",
    "previous": "each word, at the word before it",
    "next": "each word, at the word behind it",
    "first": "each word but the first, at the first word",
    "last": "each word but the last, at the last word",
    "comma": "each word of a sentence with a comma, at the comma",
    "because": "each word of a sentence with because, at because",
    "noun_to_determiner": "each noun, at its determiner",
    "verb_to_subject": "the main verb, at the subject's noun, with another noun between them",
    "verb_to_attractor": "the same verbs, at the noun between",
    "subject_to_verb": "the subject's noun, at the main verb, with another noun between them",
    "pronoun_to_referent": "it or they, at the noun it stands for, where another noun could be meant",
    "pronoun_to_other": "the same pronouns, at that other noun",
    "reason_to_referent": "the adjective behind the pronoun, at the noun it says something about, in these sentences",
    "hidden_verb_to_subject": "the main verb, hidden, at the subject's noun, with a noun of the other number between",
    "hidden_verb_to_attractor": "the same verbs, at the noun between",
    "hidden_pronoun_to_referent": "the pronoun, hidden with its verb, at the noun it stands for, as above",
    "hidden_pronoun_to_other": "the same pronouns, at that other noun",
    "hidden_pronoun_to_adjective": "the same pronouns, at the adjective that decides",
}


def pairs(sentence: Sentence) -> dict[str, list[tuple[int, int]]]:
    """Return for each pattern on whole sentences the places (query, key) that it is about."""
    words, seq = sentence.words, range(len(sentence.words))
    found = {
        "own_place": [(i, i) for i in seq],
        "previous": [(i, i - 1) for i in seq[1:]],
        "next": [(i, i + 1) for i in seq[:-1]],
        "first": [(i, 0) for i in seq[1:]],
        "last": [(i, seq[-1]) for i in seq[:-1]],
        "noun_to_determiner": [(i, _determiner(sentence, i)) for i in seq if words[i].word_class == "noun"],
    }
    for name, text in (("comma", ","), ("because", "because")):
        places = [i for i in seq if words[i].text == text]
        found[name] = [(i, place) for place in places for i in seq if i != place]
    if sentence.attractor is not None:
        found["verb_to_subject"] = [(sentence.verb, sentence.subject)]
        found["verb_to_attractor"] = [(sentence.verb, sentence.attractor)]
        found["subject_to_verb"] = [(sentence.subject, sentence.verb)]
    if is_ambiguous(sentence):
        found["pronoun_to_referent"] = [(sentence.pronoun, sentence.referent)]
        found["pronoun_to_other"] = [(sentence.pronoun, _other(sentence))]
        found["reason_to_referent"] = [(sentence.pronoun + 2, sentence.referent)]
    return found


def _determiner(sentence: Sentence, noun: int) -> int:
    return noun - 1 if sentence.words[noun - 1].word_class == "determiner" else noun - 2


def _other(sentence: Sentence) -> int:
    """Return the place of the noun that the pronoun could mean, and does not."""
    places = {"subject": sentence.subject, "object": _object(sentence)}
    return places["object" if sentence.words[sentence.referent].role == "subject" else "subject"]


def _object(sentence: Sentence) -> int:
    return next(i for i, word in enumerate(sentence.words) if word.role == "object")


def hidden_pairs(sentence: Sentence) -> dict[str, list[tuple[int, int]]]:
    """Return the same for the patterns on sentences with gaps, made by `hide`."""
    if is_misleading(sentence):
        return {
            "hidden_verb_to_subject": [(sentence.verb, sentence.subject)],
            "hidden_verb_to_attractor": [(sentence.verb, sentence.attractor)],
        }
    return {
        "hidden_pronoun_to_referent": [(sentence.pronoun, sentence.referent)],
        "hidden_pronoun_to_other": [(sentence.pronoun, _other(sentence))],
        "hidden_pronoun_to_adjective": [(sentence.pronoun, sentence.pronoun + 2)],
    }


def hide(sentence: Sentence) -> str:
    """Hide a misleading sentence's main verb; of an ambiguous one, the pronoun and the verb behind it."""
    gaps = (sentence.verb,) if is_misleading(sentence) else (sentence.pronoun, sentence.pronoun + 1)
    return " ".join(MASK if place in gaps else word.text for place, word in enumerate(sentence.words))


def look_at_heads(model: MaskedWordModel, sentences: Sequence[Sentence]) -> dict[str, dict]:
    """Return for each pattern how many pairs there were, what uniform attention gives, and each head's mean weight."""
    hard = [sentence for sentence in sentences if is_misleading(sentence) or is_ambiguous(sentence)]
    found = {}
    for some, texts, pairs_of in ((sentences, map(str, sentences), pairs), (hard, map(hide, hard), hidden_pairs)):
        weights = _inside(model, texts).weights  # (batch, num_layers, num_heads, seq, seq)
        for name in PATTERNS:
            places = [(i, *pair) for i, sentence in enumerate(some) for pair in pairs_of(sentence).get(name, ())]
            if not places:
                continue
            index, query, key = torch.tensor(places).T
            lengths = torch.tensor([len(some[i].words) for i in index.tolist()])
            found[name] = {
                "pairs": len(places),
                "uniform": (1 / lengths).mean(),
                "weights": weights[index, :, :, query, key].mean(dim=0),  # (num_layers, num_heads)
            }
    return {name: found[name] for name in PATTERNS}


def _inside(model: MaskedWordModel, texts) -> Inside:
    return model.look_inside(model.vocabulary.encode(list(texts)))


# ---- what the model cannot do without a head


def knock_out(model: MaskedWordModel, sentences: Sequence[Sentence]) -> dict[str, dict]:
    """Return the accuracy on each kind of question, and what is left of it without each head."""
    asked = questions(sentences)
    asked = {kind: asked[kind][:500] for kind in ("words", "agreement", "pronoun_subject", "pronoun_food")}
    whole = model_accuracy(model, asked)
    without = {kind: torch.zeros(CONFIG.num_layers, CONFIG.num_heads) for kind in asked}
    for layer in range(CONFIG.num_layers):
        for head in range(CONFIG.num_heads):
            with silenced(model, layer, head):
                for kind, some in asked.items():
                    without[kind][layer, head] = accuracy(model_guesses(model, some), some)
    return {kind: {"questions": len(asked[kind]), "whole": whole[kind], "without": without[kind]} for kind in asked}


# the kinds of question, each with the pattern that seems to answer it
SEEMS_TO_ANSWER = {
    "agreement": "hidden_verb_to_subject",
    "pronoun_subject": "hidden_pronoun_to_referent",
    "pronoun_food": "hidden_pronoun_to_referent",
}


def knock_out_best(model: MaskedWordModel, heads, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
    """Return what is left of the accuracy without the one, two and three heads that look most where the answer is."""
    asked = questions(sentences)
    left = {}
    for kind, pattern in SEEMS_TO_ANSWER.items():
        shares, some = [], asked[kind][:500]
        with contextlib.ExitStack() as stack:
            for index in heads[pattern]["weights"].flatten().topk(3).indices.tolist():
                stack.enter_context(silenced(model, *divmod(index, CONFIG.num_heads)))
                shares.append(accuracy(model_guesses(model, some), some))
        left[kind] = torch.tensor(shares)
    return left


@contextlib.contextmanager
def silenced(model: MaskedWordModel, layer: int, head: int) -> Iterator[None]:
    """Let a head, both counted from 0, add nothing to the residual stream."""
    weight = model.encoder.encoder.layers[layer].attention.w_o.weight  # (d_model, d_model)
    d_k = CONFIG.d_model // CONFIG.num_heads
    columns = slice(head * d_k, (head + 1) * d_k)
    before = weight[:, columns].detach().clone()
    with torch.no_grad():
        weight[:, columns] = 0.0
        try:
            yield
        finally:
            weight[:, columns] = before


# ---- what can be read from the residual stream by a linear map

PROBES = {
    "hidden_word_class": "the class of a hidden word, at its place",
    "orange_class": "whether orange is a noun or an adjective, at its place",
    "noun_role": "whether a noun is in the subject, in the object or in a modifier, at its place",
    "pronoun_means": "whether a pronoun means the subject or the food it eats or likes, at the pronoun",
    "hidden_verb_number": "the subject's number, at the hidden main verb behind a noun of the other number",
    "hidden_pronoun_number": "the number of the noun meant, at the hidden pronoun, where the other noun differs",
}


def probe_tasks(sentences: Sequence[Sentence]) -> dict[str, tuple[list[str], list[int], list[str]]]:
    """Return for each probe the texts, a place in each, and what is to be read there."""
    chance = torch.Generator().manual_seed(1)
    examples = {name: [] for name in PROBES}
    for sentence in sentences:
        text, words = str(sentence), sentence.words
        place = int(torch.randint(len(words), (), generator=chance))
        gap = " ".join(MASK if i == place else word.text for i, word in enumerate(words))
        examples["hidden_word_class"].append((gap, place, words[place].word_class))
        for place, word in enumerate(words):
            if word.text == "orange":
                examples["orange_class"].append((text, place, word.word_class))
            if word.word_class == "noun":
                examples["noun_role"].append((text, place, word.role))
        if sentence.pronoun is not None and any(w.role == "object" and grammar.is_food(w) for w in words):
            examples["pronoun_means"].append((text, sentence.pronoun, words[sentence.referent].role))
        if is_misleading(sentence):
            examples["hidden_verb_number"].append((hide(sentence), sentence.verb, words[sentence.subject].number))
        if is_ambiguous(sentence):
            number = words[sentence.referent].number
            examples["hidden_pronoun_number"].append((hide(sentence), sentence.pronoun, number))
    return {name: tuple(map(list, zip(*some[:2000], strict=True))) for name, some in examples.items()}


def probe(model: MaskedWordModel, tasks) -> dict[str, dict]:
    """Return for each probe the share read correctly from each layer on unseen halves, (SPLITS, num_layers + 1)."""
    found = {}
    for name, (texts, places, answers) in tasks.items():
        stream = _inside(model, texts).stream  # (batch, num_layers + 1, seq, d_model)
        x = stream[torch.arange(len(texts)), :, torch.tensor(places)]  # (batch, num_layers + 1, d_model)
        kinds = sorted(set(answers))
        y = torch.tensor([kinds.index(answer) for answer in answers])  # (batch,)
        shares = torch.stack([_read(x, y, split) for split in range(SPLITS)])
        found[name] = {
            "examples": len(texts),
            "commonest": y.bincount().max() / len(y),
            "layers": shares.mean(dim=0),
            "split_sd": shares.std(dim=0).max(),
        }
    return found


def _read(x: Tensor, y: Tensor, split: int) -> Tensor:
    """Fit one logistic regression for each layer on half of the examples; return the share right on the other half."""
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(split))
    fit, test = order.chunk(2)
    x = (x - x[fit].mean(dim=0)) / (x[fit].std(dim=0) + 1e-6)  # (batch, num_layers + 1, d_model)
    num_layers, d_model, num_kinds = x.shape[1], x.shape[2], int(y.max()) + 1
    weight = torch.zeros(num_layers, d_model, num_kinds, requires_grad=True)
    bias = torch.zeros(num_layers, num_kinds, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=200, line_search_fn="strong_wolfe")

    def scores(some):
        return torch.einsum("bld,ldk->blk", x[some], weight) + bias  # (batch, num_layers + 1, kinds)

    def loss():
        optimizer.zero_grad()
        answers = y[fit][:, None].expand(-1, num_layers)
        value = torch.nn.functional.cross_entropy(scores(fit).flatten(0, 1), answers.flatten()) * num_layers
        value = value + 0.01 * (weight**2).sum() / 2  # the same for every layer, fixed in advance
        value.backward()
        return value

    optimizer.step(loss)
    with torch.no_grad():
        return (scores(test).argmax(dim=-1) == y[test][:, None]).float().mean(dim=0)  # (num_layers + 1,)


# ---- what the feed-forward networks and the residual stream hold


def look_at_activations(model: MaskedWordModel, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
    """Return, layer by layer, how many hidden units are active, and how much of what varies the word alone explains."""
    texts = [str(sentence) for sentence in sentences]
    ids = model.vocabulary.encode(texts)  # (batch, seq)
    is_word = ids != model.vocabulary.pad_id
    inside = _inside(model, texts)
    hidden = inside.hidden.transpose(1, 2)[is_word]  # (words, num_layers, d_ff)
    stream = inside.stream.transpose(1, 2)[is_word]  # (words, num_layers + 1, d_model)
    active = hidden > 0
    return {
        "active": active.float().mean(dim=(0, 2)),
        "never_active": (~active.any(dim=0)).float().mean(dim=-1),
        "active_for_most_words": (active.float().mean(dim=0) > 0.5).float().mean(dim=-1),
        "hidden_explained_by_word": _explained(hidden, ids[is_word]),
        "stream_explained_by_word": _explained(stream, ids[is_word]),
        "stream_norm": stream.norm(dim=-1).mean(dim=0),
    }


def _explained(x: Tensor, groups: Tensor) -> Tensor:
    """Return for each layer of x (words, layers, width) which share of its variance lies between the groups."""
    groups = groups.unique(return_inverse=True)[1]
    counts = groups.bincount()[:, None, None]
    means = torch.zeros(len(counts), *x.shape[1:]).index_add_(0, groups, x) / counts  # (groups, layers, width)
    centre = x.mean(dim=0)
    return (counts * (means - centre) ** 2).sum(dim=(0, 2)) / ((x - centre) ** 2).sum(dim=(0, 2))


# ---- all of it, over the seeds


def models() -> list[MaskedWordModel]:
    """Return the committed model and one more for each of `OTHER_SEEDS`, trained when it is not kept yet."""
    found = [trained.load()[0]]
    KEPT.mkdir(parents=True, exist_ok=True)
    for seed in OTHER_SEEDS:
        file = KEPT / f"seed_{seed}.safetensors"
        if not file.exists():
            print(f"seed {seed}")
            save_file(train(seed).half().state_dict(), file)
        model = untrained()
        model.load_state_dict(load_file(file))
        found.append(model)
    return found


def untrained(seed: int = 0) -> MaskedWordModel:
    """Return a model with the first weights of training."""
    torch.manual_seed(seed)
    return MaskedWordModel(CONFIG, grammar.vocabulary()).eval()


def examine() -> dict:
    """Return all findings; lists named after seeds have one entry for each model, the committed one first."""
    sentences = held_out_sentences(SENTENCES)
    some, tasks = sentences[:2000], probe_tasks(sentences)
    all_models, fresh = models(), untrained()
    heads = [look_at_heads(model, sentences[:2000]) for model in (*all_models, fresh)]
    knocked = [knock_out(model, sentences) for model in all_models]
    best_knocked = [knock_out_best(model, looks, sentences) for model, looks in zip(all_models, heads, strict=False)]
    probes = [probe(model, tasks) for model in (*all_models, fresh)]
    activations = [look_at_activations(model, some) for model in (*all_models, fresh)]
    found = {
        "sentences": SENTENCES,
        "seeds": [trained.figures()["training"]["seed"], *OTHER_SEEDS],
        "accuracy": _accuracy(all_models),
        "heads": {
            name: {
                "meaning": meaning,
                "pairs": heads[0][name]["pairs"],
                "uniform": heads[0][name]["uniform"],
                "weights": [found[name]["weights"] for found in heads[:-1]],
                "best": [_extreme(found[name]["weights"]) for found in heads[:-1]],
                "untrained_best": heads[-1][name]["weights"].max(),
            }
            for name, meaning in PATTERNS.items()
        },
        "knock_out": {
            kind: {
                "questions": knocked[0][kind]["questions"],
                "whole": [found[kind]["whole"] for found in knocked],
                "without": [found[kind]["without"] for found in knocked],
                "worst": [_extreme(-found[kind]["without"]) for found in knocked],
            }
            | ({"without_best": [found[kind] for found in best_knocked]} if kind in SEEMS_TO_ANSWER else {})
            for kind in knocked[0]
        },
        "probes": {
            name: {
                "meaning": meaning,
                "examples": probes[0][name]["examples"],
                "commonest": probes[0][name]["commonest"],
                "layers": [found[name]["layers"] for found in probes[:-1]],
                "split_sd": max(found[name]["split_sd"] for found in probes),
                "untrained": probes[-1][name]["layers"],
            }
            for name, meaning in PROBES.items()
        },
        "activations": {
            name: {"layers": [found[name] for found in activations[:-1]], "untrained": activations[-1][name]}
            for name in activations[0]
        },
    }
    found = _plain(found)
    return found | {"claims": claims(found)}


def _accuracy(all_models: Sequence[MaskedWordModel]) -> dict[str, list[float]]:
    asked = questions(held_out_sentences())
    each = [model_accuracy(model, asked) for model in all_models]
    return {kind: [found[kind] for found in each] for kind in asked}


def _extreme(table: Tensor) -> dict:
    """Return the layer and head, counted from 1, with the largest entry, and its size."""
    layer, head = divmod(int(table.argmax()), table.shape[1])
    return {"layer": layer + 1, "head": head + 1, "value": abs(table.max())}


def _plain(value):
    """Turn tensors into lists and round what is no whole number."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def _text(value, indent=0) -> str:
    """Write JSON with one line for each list that holds no dictionary."""
    if not isinstance(value, dict):
        return json.dumps(value)
    space = " " * (indent + 2)
    lines = [f"{space}{json.dumps(key)}: {_text(item, indent + 2)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    FINDINGS.write_text(_text(_plain(examine())) + "\n")
    print(FINDINGS.read_text())
