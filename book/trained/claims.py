"""Sentences about the models that may hold or not, each decided by the findings, for each seed on its own."""

HALF, LITTLE = 0.5, 0.1  # of the weight of attention
POINTS = 0.05            # of accuracy
READABLE = 0.9           # of a probe's answers


def claims(findings: dict) -> dict[str, dict]:
    """Decide each claim.

    Args:
        findings: as in findings.json; its claims are not looked at.

    Returns:
        for each claim `values`, what decides it, and `holds`, both with one entry for each seed.
    """
    f = findings
    decided = {
        # what the source notes, or other books, say of heads
        "a head gives the word before more than half of its weight": _looks(f, "previous"),
        "a head gives the word behind more than half of its weight": _looks(f, "next"),
        "a head gives each word itself more than half of its weight": _looks(f, "own_place"),
        "a head gives the first word more than half of its weight": _looks(f, "first"),
        "a head gives the last word more than half of its weight": _looks(f, "last"),
        "a head gives the comma more than half of its weight": _looks(f, "comma"),
        "a head looks from nouns at their determiners": _looks(f, "noun_to_determiner"),
        "a head looks from verbs at their subjects, not at the noun between":
            _looks(f, "verb_to_subject", "verb_to_attractor"),
        "a head looks from hidden verbs at their subjects, not at the noun between":
            _looks(f, "hidden_verb_to_subject", "hidden_verb_to_attractor"),
        "a head looks from pronouns at the nouns they mean, not at the others":
            _looks(f, "pronoun_to_referent", "pronoun_to_other"),
        "a head looks from hidden pronouns at the nouns they mean, not at the others":
            _looks(f, "hidden_pronoun_to_referent", "hidden_pronoun_to_other"),
        "a head looks from hidden pronouns at the adjectives that decide": _looks(f, "hidden_pronoun_to_adjective"),
        "the head that looks most from pronouns at the nouns they mean is in layer 5 or 6": _is_late(f),
        # whether a model needs the head that seems to do the work
        "agreement suffers without the head that looks most at the subject":
            _costs(f, "agreement", "hidden_verb_to_subject"),
        "pronouns for subjects suffer without the head that looks most at the noun meant":
            _costs(f, "pronoun_subject", "hidden_pronoun_to_referent"),
        "pronouns for food suffer without the head that looks most at the noun meant":
            _costs(f, "pronoun_food", "hidden_pronoun_to_referent"),
        "pronouns for food suffer without the head that looks most at the adjective that decides":
            _costs(f, "pronoun_food", "hidden_pronoun_to_adjective"),
        "hidden words in general suffer without some single head": _any_costs(f, "words"),
        # what layers hold
        "the class of a hidden word is readable before the number at a hidden verb":
            _before(f, "hidden_word_class", "hidden_verb_number"),
        "the class of a hidden word is readable before the number at a hidden pronoun":
            _before(f, "hidden_word_class", "hidden_pronoun_number"),
        "the number at a hidden verb is readable before that at a hidden pronoun":
            _before(f, "hidden_verb_number", "hidden_pronoun_number"),
        "the word itself explains less of the stream after layer 6 than after layer 1":
            _falls(f, "stream_explained_by_word", 1),
        # the feed-forward networks
        "the word itself explains less of the hidden units in layer 6 than in layer 1":
            _falls(f, "hidden_explained_by_word", 0),
        "at most a third of the hidden units is active in every layer": _is_sparse(f),
    }
    return {text: {"values": values, "holds": holds} for text, (values, holds) in decided.items()}


def _looks(findings, pattern, instead=None):
    """The most weight that a head gives; more than half, and little to what it should not look at instead."""
    best = findings["heads"][pattern]["best"]
    away = [_at(findings["heads"][instead]["weights"][seed], head) if instead else 0 for seed, head in enumerate(best)]
    return [head["value"] for head in best], [
        head["value"] > HALF and other < LITTLE for head, other in zip(best, away, strict=True)
    ]


def _is_late(findings):
    layers = [head["layer"] for head in findings["heads"]["pronoun_to_referent"]["best"]]
    return layers, [layer >= 5 for layer in layers]


def _costs(findings, kind, pattern):
    """The accuracy lost without the head that looks there most."""
    knocked, best = findings["knock_out"][kind], findings["heads"][pattern]["best"]
    lost = [knocked["whole"][seed] - _at(knocked["without"][seed], head) for seed, head in enumerate(best)]
    return _rounded(lost), [loss > POINTS for loss in lost]


def _any_costs(findings, kind):
    """The most accuracy lost without one head."""
    knocked = findings["knock_out"][kind]
    lost = [whole - head["value"] for whole, head in zip(knocked["whole"], knocked["worst"], strict=True)]
    return _rounded(lost), [loss > POINTS for loss in lost]


def _before(findings, name, other):
    """The first layers, of both, from which a probe reads what it looks for."""
    layers = [[_readable_from(shares) for shares in findings["probes"][probe]["layers"]] for probe in (name, other)]
    pairs = [list(pair) for pair in zip(*layers, strict=True)]
    return pairs, [None not in pair and pair[0] < pair[1] for pair in pairs]


def _readable_from(shares):
    return next((layer for layer, share in enumerate(shares) if share >= READABLE), None)


def _falls(findings, name, start):
    """The share at the start and at the end."""
    pairs = [[shares[start], shares[-1]] for shares in findings["activations"][name]["layers"]]
    return pairs, [first > last for first, last in pairs]


def _is_sparse(findings):
    """The share of the layer in which most units are active."""
    most = [max(shares) for shares in findings["activations"]["active"]["layers"]]
    return most, [share <= 1 / 3 for share in most]


def _at(table, head):
    return table[head["layer"] - 1][head["head"] - 1]


def _rounded(values):
    return [round(value, 4) for value in values]
