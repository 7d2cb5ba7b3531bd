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
    """A sentence with gaps, the place of the gap to fill, the words to choose from, and those that are right."""

    words: tuple[str, ...]
    place: int
    choices: frozenset[str]
    right: frozenset[str]


def held_out_sentences(count: int = EVALUATION["sentences"]) -> list[Sentence]:
    """Return the sentences on which everything is measured; training has seen none of them."""
    return grammar.sentences(count, EVALUATION["seed"], held_out=True)


def questions(sentences: Sequence[Sentence]) -> dict[str, list[Question]]:
    """Return the questions by kind.

    words: any word, a fifth of all, to choose from all; the word itself is right, so that nobody can know every answer.
    pronoun: "it" or "they", with the verb behind it hidden, too, because it may show the number.
    pronoun_subject, pronoun_food: those of them where the subject and a food as object differ in number; the adjective
        alone says which of the two is meant.
    agreement: the main verb behind a noun of the other number, from all verbs that show number; all of the right one.
    number: the subject's noun, where its determiner is "the" and the verb agrees, from all nouns; all of the right one.
    """
    chance = torch.Generator().manual_seed(0)
    asked = {kind: [] for kind in ("words", "pronoun", "pronoun_subject", "pronoun_food", "agreement", "number")}
    for sentence in sentences:
        texts = [word.text for word in sentence.words]
        number = sentence.words[sentence.subject].number
        gaps = (torch.rand(len(texts), generator=chance) < 0.2).nonzero().flatten().tolist()
        asked["words"] += [_question(sentence, gaps, place, WORDS, {texts[place]}) for place in gaps]
        if sentence.pronoun is not None:
            gaps = (sentence.pronoun, sentence.pronoun + 1)
            question = _question(sentence, gaps, sentence.pronoun, PRONOUNS, {texts[sentence.pronoun]})
            asked["pronoun"].append(question)
            if is_ambiguous(sentence):
                role = sentence.words[sentence.referent].role
                asked["pronoun_subject" if role == "subject" else "pronoun_food"].append(question)
        if is_misleading(sentence):
            choices = VERBS[1] | VERBS[2]
            asked["agreement"].append(_question(sentence, (sentence.verb,), sentence.verb, choices, VERBS[number]))
        if sentence.words[sentence.verb].number and texts[sentence.subject - 1] == "the" and sentence.pronoun is None:
            choices = NOUNS[1] | NOUNS[2]
            asked["number"].append(_question(sentence, (sentence.subject,), sentence.subject, choices, NOUNS[number]))
    return asked


VERBS = {
    1: frozenset(grammar.PRESENT.values()) | {"is", "was"},
    2: frozenset(grammar.PRESENT) | {"are", "were"},
}
NOUNS = {1: frozenset(grammar.NOUNS), 2: frozenset(grammar.NOUNS.values())}
PRONOUNS = frozenset(grammar.PRONOUNS.values())
WORDS = frozenset(grammar.vocabulary().words[2:-1])  # without padding, unknown and mask


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


def _question(sentence: Sentence, gaps: Sequence[int], place: int, choices, right) -> Question:
    words = tuple(MASK if i in gaps else word.text for i, word in enumerate(sentence.words))
    return Question(words, place, choices, frozenset(right))


# ---- who answers


@torch.no_grad()
def model_guesses(model: MaskedWordModel, asked: Sequence[Question]) -> list[str]:
    """Return for each question the word, among its choices, to which the model gives most."""
    words = model.vocabulary.words
    ids = model.vocabulary.encode([" ".join(question.words) for question in asked])  # (batch, seq)
    places = torch.tensor([question.place for question in asked])  # (batch,)
    scores = torch.cat([model(part) for part in ids.split(256)])  # (batch, seq, vocab_size)
    scores = scores[torch.arange(len(ids)), places]  # (batch, vocab_size)
    is_choice = torch.tensor([[word in question.choices for word in words] for question in asked])
    scores = scores.masked_fill(~is_choice, -torch.inf)  # (batch, vocab_size)
    return [words[index] for index in scores.argmax(dim=-1).tolist()]


def most_frequent(training: Sequence[Question]) -> Callable[[Question], str]:
    """Return a guesser that always says what was right most often among the training questions."""
    word = Counter(word for question in training for word in sorted(question.right)).most_common(1)[0][0]
    return lambda question: word


def neighbours(training: Sequence[Question]) -> Callable[[Question], str]:
    """Return a guesser that counts which word stands between which two words to the left and two to the right.

    Where no choice was ever seen between the four neighbours, the nearest two decide, and then the word's frequency.
    """
    seen: dict[tuple, Counter] = {}
    for question in training:
        for context in _contexts(question):
            seen.setdefault(context, Counter()).update(question.right)
    ranked = {context: [word for word, _ in counter.most_common()] for context, counter in seen.items()}

    def guess(question: Question) -> str:
        candidates = (word for context in _contexts(question) for word in ranked.get(context, ()))
        return next(word for word in candidates if word in question.choices)

    return guess


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
