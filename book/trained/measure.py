"""Questions to a model, sentences with gaps, and how well it answers them beside two simple ways to guess."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from trained import grammar
from trained.grammar import MASK, Sentence
from trained.model import MaskedWordModel

EVALUATION = {"sentences": 3000, "seed": 1_000_000}


@dataclass(frozen=True)
class Question:
    """A sentence with gaps, the place of the gap to fill, and the words that count as right."""

    words: tuple[str, ...]
    place: int
    right: frozenset[str]


def held_out_sentences(count: int = EVALUATION["sentences"]) -> list[Sentence]:
    """Return the sentences on which everything is measured; training has seen none of them."""
    return grammar.sentences(count, EVALUATION["seed"], held_out=True)


def questions(sentences: Sequence[Sentence]) -> dict[str, list[Question]]:
    """Return the questions by kind.

    words: any word, a fifth of all; the word itself is right, so that no model can know every answer.
    pronoun: "it" or "they", with the verb behind it hidden, too, because it may show the number.
    pronoun_subject, pronoun_food: those of them where the subject and a food as object differ in number; the adjective
        alone says which of the two is meant.
    agreement: the main verb, where the noun next before it is one of the other number; any verb of the right number.
    number: the subject's noun, where its determiner is "the" and the verb agrees; any noun of the right number.
    """
    chance = torch.Generator().manual_seed(0)
    asked = {kind: [] for kind in ("words", "pronoun", "pronoun_subject", "pronoun_food", "agreement", "number")}
    for sentence in sentences:
        texts = [word.text for word in sentence.words]
        number = sentence.words[sentence.subject].number
        gaps = (torch.rand(len(texts), generator=chance) < 0.2).nonzero().flatten().tolist()
        asked["words"] += [_question(sentence, gaps, place, {texts[place]}) for place in gaps]
        if sentence.pronoun is not None:
            gaps = (sentence.pronoun, sentence.pronoun + 1)
            question = _question(sentence, gaps, sentence.pronoun, {texts[sentence.pronoun]})
            asked["pronoun"].append(question)
            if is_ambiguous(sentence):
                role = sentence.words[sentence.referent].role
                asked["pronoun_subject" if role == "subject" else "pronoun_food"].append(question)
        if is_misleading(sentence):
            asked["agreement"].append(_question(sentence, (sentence.verb,), sentence.verb, VERBS[number]))
        if sentence.words[sentence.verb].number and texts[sentence.subject - 1] == "the" and sentence.pronoun is None:
            asked["number"].append(_question(sentence, (sentence.subject,), sentence.subject, NOUNS[number]))
    return asked


VERBS = {
    1: frozenset(grammar.PRESENT.values()) | {"is", "was"},
    2: frozenset(grammar.PRESENT) | {"are", "were"},
}
NOUNS = {1: frozenset(grammar.NOUNS), 2: frozenset(grammar.NOUNS.values())}


def is_misleading(sentence: Sentence) -> bool:
    """Return whether the main verb agrees across a noun of the other number, and nothing else tells."""
    if sentence.attractor is None or sentence.pronoun is not None or not sentence.words[sentence.verb].number:
        return False
    return sentence.words[sentence.attractor].number != sentence.words[sentence.subject].number


def is_ambiguous(sentence: Sentence) -> bool:
    """Return whether the pronoun could be the subject or the object, a food, and these differ in number."""
    if sentence.pronoun is None:
        return False
    subject = sentence.words[sentence.subject]
    foods = [word for word in sentence.words if word.role == "object" and grammar.is_food(word)]
    return bool(foods) and foods[0].number != subject.number


def _question(sentence: Sentence, gaps: Sequence[int], place: int, right: set[str]) -> Question:
    words = tuple(MASK if i in gaps else word.text for i, word in enumerate(sentence.words))
    return Question(words, place, frozenset(right))


# ---- who answers


@torch.no_grad()
def model_guesses(model: MaskedWordModel, asked: Sequence[Question]) -> list[str]:
    """Return the model's best word for each question."""
    ids = model.vocabulary.encode([" ".join(question.words) for question in asked])  # (batch, seq)
    places = torch.tensor([question.place for question in asked])  # (batch,)
    scores = torch.cat([model(part) for part in ids.split(256)])  # (batch, seq, vocab_size)
    best = scores[torch.arange(len(ids)), places].argmax(dim=-1)  # (batch,)
    return [model.vocabulary.words[index] for index in best.tolist()]


def most_frequent(training: Sequence[Question]) -> Callable[[Question], str]:
    """Return a guesser that always says what was right most often among the training questions."""
    word = Counter(word for question in training for word in sorted(question.right)).most_common(1)[0][0]
    return lambda question: word


def neighbours(training: Sequence[Question]) -> Callable[[Question], str]:
    """Return a guesser that counts which word stands between which two words to the left and two to the right.

    Where the four neighbours were never seen, the nearest two decide; where they were not either, the word's frequency.
    """
    seen: dict[tuple, Counter] = {}
    for question in training:
        for context in _contexts(question):
            seen.setdefault(context, Counter()).update(question.right)
    best = {context: counter.most_common(1)[0][0] for context, counter in seen.items()}
    return lambda question: next(best[context] for context in _contexts(question) if context in best)


def _contexts(question: Question) -> list[tuple[str, ...]]:
    padded = ("", "", *question.words, "", "")
    two_left, left, _, right, two_right = padded[question.place : question.place + 5]
    return [(two_left, left, right, two_right), (left, right), ()]


def accuracy(guesses: Sequence[str], asked: Sequence[Question]) -> float:
    """Return the share of guesses that are right."""
    return sum(guess in question.right for guess, question in zip(guesses, asked, strict=True)) / len(asked)


def model_accuracy(model: MaskedWordModel, asked: dict[str, list[Question]]) -> dict[str, float]:
    """Return the model's accuracy for each kind of question."""
    return {kind: accuracy(model_guesses(model, some), some) for kind, some in asked.items()}


def simple_accuracy(training: Sequence[Sentence], asked: dict[str, list[Question]]) -> dict[str, dict[str, float]]:
    """Return how far two simple ways to guess come, each with counts from the training sentences."""
    counted = questions(training)
    figures = {}
    for kind, some in asked.items():
        by_frequency, by_neighbours = most_frequent(counted[kind]), neighbours(counted["words"])
        figures[kind] = {
            "most_frequent": accuracy([by_frequency(question) for question in some], some),
            "neighbours": accuracy([by_neighbours(question) for question in some], some),
        }
    return figures
