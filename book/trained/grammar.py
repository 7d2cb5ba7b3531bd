"""A small grammar of English-like sentences, whose structure is known word by word.

It holds the running example's two sentences and their words. What makes a sentence more than a row of words:

- number: "the dogs near the cat are tired", "the cat that the dogs saw sleeps"; the nearest noun may mislead;
- reference: "it" or "they" is the subject when the adjective is one for animals, and the food otherwise:
  "the cats ate the plum because they were hungry", "the cats ate the plum because it was ripe";
- who can do what: dogs bark, birds sing, cats and dogs chase, food is eaten and ripe, houses do nothing;
- "orange" is a noun or an adjective: "the orange bird ate the orange".

Simple past verbs are the same for one and for many, so they give no number away.
"""

import random
import zlib
from dataclasses import dataclass, replace

from encoder_lib import running_example
from encoder_lib.embedding import Vocabulary

MASK = "___"  # one token of its own, so that a sentence with a gap is plain text: "the ___ slept"
MAX_LEN = 14

# to look at; training meets none of them
SENTENCES = (
    *running_example.SENTENCES,
    "the dogs near the cat are tired",
    "the cat that the dogs saw sleeps",
    "the cats ate the plum because they were hungry",
    "the cats ate the plum because it was ripe",
    "the orange bird ate the orange",
    "because it was tired , the horse slept",
)

ANIMALS = {"cat": "cats", "dog": "dogs", "bird": "birds", "horse": "horses", "mouse": "mice"}
FOOD = {"apple": "apples", "orange": "oranges", "plum": "plums"}
PLACES = {"tree": "trees", "house": "houses"}
NOUNS = ANIMALS | FOOD | PLACES

CHASERS, SINGERS, BARKERS = ("cat", "dog"), ("bird",), ("dog",)
FEELINGS, TASTES, LOOKS = ("tired", "hungry"), ("ripe", "sweet"), ("small", "old", "orange")
PREPOSITIONS = ("near", "behind")
# past: the forms for one and for many are the same
PAST = {
    "sleep": "slept", "bark": "barked", "sing": "sang", "see": "saw", "like": "liked", "eat": "ate", "chase": "chased",
}
PRESENT = {"sleep": "sleeps", "see": "sees", "like": "likes", "eat": "eats"}  # for one; for many the stem itself
COPULAS = {("past", 1): "was", ("past", 2): "were", ("present", 1): "is", ("present", 2): "are"}
PRONOUNS = {1: "it", 2: "they"}
DETERMINERS = {1: "one", 2: "two"}  # beside "the", which fits both


@dataclass(frozen=True)
class Word:
    """One word and what it is.

    Args:
        text: the word itself.
        word_class: "determiner", "adjective", "noun", "verb", "preposition", "relative", "conjunction", "pronoun"
            or "comma".
        number: 1 or 2 (more than one) for nouns, for pronouns and for verbs that agree; else 0.
        role: "subject" or "object" of the main clause, or "modifier" for nouns inside a phrase or relative clause.
    """

    text: str
    word_class: str
    number: int = 0
    role: str = ""


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the places in it that belong together; a place that it lacks is None.

    Args:
        words: the words, in order.
        subject: where the noun of the main clause's subject stands.
        verb: where the main clause's verb stands.
        attractor: where the last noun between the subject and its verb stands.
        pronoun: where "it" or "they" stands.
        referent: where the noun for which it stands.
    """

    words: tuple[Word, ...]
    subject: int
    verb: int
    attractor: int | None = None
    pronoun: int | None = None
    referent: int | None = None

    def __str__(self):
        return " ".join(word.text for word in self.words)


def vocabulary() -> Vocabulary:
    """Return the vocabulary: the running example's first, with the same ids, then the other words, then `MASK`."""
    words = [*NOUNS, *NOUNS.values(), *PAST.values(), *PRESENT.values(), *PRESENT, *COPULAS.values(), "looked"]
    words += [*FEELINGS, *TASTES, *LOOKS, "the", *DETERMINERS.values(), *PREPOSITIONS, "that", "because"]
    words += [*PRONOUNS.values(), ","]
    return Vocabulary([*running_example.SENTENCES, " ".join(words), MASK])


def sentences(count: int, seed: int, held_out: bool = False) -> list[Sentence]:
    """Draw sentences, each at most `MAX_LEN` words long; training never meets one that is held out.

    Args:
        count: how many, no two of them the same.
        seed: the same seed gives the same sentences.
        held_out: False for training, True for measuring.

    Returns:
        `count` sentences.
    """
    rng = random.Random(seed)
    drawn = {}
    while len(drawn) < count:
        sentence = _sentence(rng)
        text = str(sentence)
        if len(sentence.words) <= MAX_LEN and is_held_out(text) == held_out:
            drawn.setdefault(text, sentence)
    return list(drawn.values())


def is_held_out(text: str) -> bool:
    """Return whether a sentence is kept from training: one in eight, and those to look at."""
    return text in SENTENCES or zlib.crc32(text.encode()) % 8 == 0


def _sentence(rng: random.Random) -> Sentence:
    tense = _one_of(rng, present=0.4, past=0.6)
    kind = _one_of(rng, animal=0.8, food=0.12, place=0.08)
    noun, subject = _noun_phrase(rng, {"animal": ANIMALS, "food": FOOD, "place": PLACES}[kind], "subject")
    number = subject[-1].number
    modifier = _modifier(rng, noun) if rng.random() < 0.4 else []
    predicate = _predicate(rng, noun, kind, number, tense)
    main = [*subject, *modifier, *predicate]
    between = range(len(subject), len(subject) + len(modifier))
    sentence = Sentence(
        words=tuple(main),
        subject=len(subject) - 1,
        verb=len(subject) + len(modifier),
        attractor=max((place for place in between if _is_noun(main[place])), default=None),
    )
    is_copula = predicate[0].text in COPULAS.values()
    return sentence if kind != "animal" or is_copula or rng.random() < 0.4 else _with_reason(rng, sentence, tense)


def _noun_phrase(rng, lexicon, role) -> tuple[str, list[Word]]:
    """Return the noun in its form for one, and the phrase, whose last word is the noun."""
    noun = rng.choice(list(lexicon))
    number = rng.choice((1, 2))
    phrase = [Word("the" if rng.random() < 0.8 else DETERMINERS[number], "determiner")]
    if rng.random() < 0.25:
        phrase.append(Word(rng.choice([look for look in LOOKS if look != noun]), "adjective"))
    phrase.append(Word(noun if number == 1 else NOUNS[noun], "noun", number, role))
    return noun, phrase


def _modifier(rng, noun) -> list[Word]:
    """Return a phrase that says more about a noun: "near the tree", "that saw the cat", "that the cat saw"."""
    kind = _one_of(rng, place=0.4, subject=0.3, object=0.3) if noun in ANIMALS else _one_of(rng, place=0.6, object=0.4)
    if kind == "place":
        return [Word(rng.choice(PREPOSITIONS), "preposition"), *_noun_phrase(rng, ANIMALS | PLACES, "modifier")[1]]
    that = Word("that", "relative")
    if kind == "subject":
        verb, objects = _transitive(rng, noun)
        return [that, Word(PAST[verb], "verb"), *_noun_phrase(rng, objects, "modifier")[1]]
    verbs = ["see"]
    verbs += ["like"] if noun not in PLACES else []
    verbs += ["eat"] if noun in FOOD else ["chase"] if noun in ANIMALS else []
    verb = rng.choice(verbs)
    actors = {animal: ANIMALS[animal] for animal in (CHASERS if verb == "chase" else ANIMALS)}
    return [that, *_noun_phrase(rng, actors, "modifier")[1], Word(PAST[verb], "verb")]


def _predicate(rng, noun, kind, number, tense) -> list[Word]:
    action = _one_of(rng, be=0.2, alone=0.25, object=0.55) if kind == "animal" else "be"
    if action == "be":
        adjectives = {"animal": FEELINGS, "food": TASTES, "place": ()}[kind] + LOOKS
        adjective = rng.choice([adjective for adjective in adjectives if adjective != noun])
        return [Word(COPULAS[tense, number], "verb", number), Word(adjective, "adjective")]
    if action == "alone":
        verbs = ["sleep"]
        if tense == "past":
            verbs += ["bark"] if noun in BARKERS else ["sing"] if noun in SINGERS else []
        return [_verb(rng.choice(verbs), number, tense)]
    verb, objects = _transitive(rng, noun, tense)
    return [_verb(verb, number, tense), *_noun_phrase(rng, objects, "object")[1]]


def _transitive(rng, noun, tense="past") -> tuple[str, dict[str, str]]:
    """Return a verb for this subject, and the nouns that can be its object."""
    verbs = ["see", "like", "eat"]
    verbs += ["chase"] if noun in CHASERS and tense == "past" else []
    verb = rng.choice(verbs)
    return verb, {"see": NOUNS, "like": ANIMALS | FOOD, "eat": FOOD, "chase": ANIMALS}[verb]


def _verb(stem, number, tense) -> Word:
    if tense == "past":
        return Word(PAST[stem], "verb")
    return Word(PRESENT[stem] if number == 1 else stem, "verb", number)


def _with_reason(rng, sentence: Sentence, tense) -> Sentence:
    """Add "because it was tired" behind the sentence, or in front of it with a comma."""
    objects = [i for i, word in enumerate(sentence.words) if word.role == "object" and is_food(word)]
    is_about_food = bool(objects) and rng.random() < 0.5
    referent = objects[0] if is_about_food else sentence.subject
    number = sentence.words[referent].number
    looks = tense == "past" and rng.random() < 0.4
    reason = [
        Word("because", "conjunction"),
        Word(PRONOUNS[number], "pronoun", number),
        Word("looked", "verb") if looks else Word(COPULAS[tense, number], "verb", number),
        Word(rng.choice(TASTES if is_about_food else FEELINGS), "adjective"),
    ]
    if rng.random() < 0.85:
        pronoun = len(sentence.words) + 1
        return replace(sentence, words=(*sentence.words, *reason), pronoun=pronoun, referent=referent)
    reason.append(Word(",", "comma"))
    behind = len(reason)
    return Sentence(
        words=(*reason, *sentence.words),
        subject=sentence.subject + behind,
        verb=sentence.verb + behind,
        attractor=None if sentence.attractor is None else sentence.attractor + behind,
        pronoun=1,
        referent=referent + behind,
    )


def _is_noun(word: Word) -> bool:
    return word.word_class == "noun"


def is_food(word: Word) -> bool:
    """Return whether a word is a noun for something to eat."""
    return word.text in FOOD or word.text in FOOD.values()


def _one_of(rng, **chances) -> str:
    return rng.choices(list(chances), chances.values())[0]
