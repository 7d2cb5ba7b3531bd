"""The small trained model: it loads as the chapters load it, and it is as good as its figures say."""

import dataclasses
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

BOOK = Path(__file__).resolve().parents[2] / "book"
sys.path.insert(0, str(BOOK))  # the chapters run there

import trained  # noqa: E402
from trained import examine, grammar, measure  # noqa: E402
from trained.claims import claims  # noqa: E402
from trained.train import CONFIG, SEED, TRAINING, mask_words  # noqa: E402

from encoder_lib import running_example  # noqa: E402

FIGURES = trained.figures()
SENTENCE = "the dogs near the cat are tired"  # seven words


@pytest.fixture(scope="module")
def model():
    return trained.load()[0]


@pytest.fixture(scope="module")
def held_out():
    return measure.held_out_sentences(1000)


# ---- loading


def test_a_fresh_interpreter_in_the_books_folder_loads_it():
    script = (
        "from trained import load; model, vocabulary, sentences = load();"
        "print(model.training, len(vocabulary), sentences[0])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=BOOK, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(maxsplit=2) == ["False", str(FIGURES["vocab_size"]), f"{running_example.SENTENCES[0]}\n"]


def test_the_weights_are_those_that_were_measured():
    weights = (BOOK / "trained" / "weights.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == FIGURES["sha256"]
    assert len(weights) == FIGURES["bytes"] < 2_000_000


def test_configuration_and_training_are_those_of_the_script(model):
    assert FIGURES["config"] == dataclasses.asdict(CONFIG) == dataclasses.asdict(model.encoder.encoder.config)
    assert FIGURES["training"] == {"seed": SEED, **TRAINING}
    assert FIGURES["evaluation"] == measure.EVALUATION
    assert FIGURES["vocab_size"] == len(model.vocabulary) == model.head.out_features


# ---- the grammar


def test_the_running_example_keeps_its_ids(model):
    assert torch.equal(model.vocabulary.encode(running_example.SENTENCES), running_example.token_ids())


def test_the_vocabulary_knows_every_word_of_the_grammar(model):
    texts = [*map(str, grammar.sentences(2000, 3)), *grammar.SENTENCES, grammar.MASK]
    ids = model.vocabulary.encode(texts)
    assert not (ids == model.vocabulary.unk_id).any()
    assert model.vocabulary.decode(ids) == texts


def test_no_sentence_is_both_trained_on_and_measured(held_out):
    training = {str(sentence) for sentence in grammar.sentences(5000, SEED)}
    assert not training & {str(sentence) for sentence in held_out}
    assert not training & set(grammar.SENTENCES)


def test_sentences_are_as_long_as_promised_and_none_comes_twice():
    drawn = grammar.sentences(2000, 3)
    assert max(len(sentence.words) for sentence in drawn) == grammar.MAX_LEN
    assert len({str(sentence) for sentence in drawn}) == 2000


def test_the_places_of_a_sentence_hold_what_they_say():
    for sentence in grammar.sentences(2000, 4):
        words = sentence.words
        assert (words[sentence.subject].word_class, words[sentence.subject].role) == ("noun", "subject")
        assert words[sentence.verb].word_class == "verb"
        if words[sentence.verb].number:
            assert words[sentence.verb].number == words[sentence.subject].number, str(sentence)
        if sentence.attractor is not None:
            assert sentence.subject < sentence.attractor < sentence.verb
            assert (words[sentence.attractor].word_class, words[sentence.attractor].role) == ("noun", "modifier")
        if sentence.pronoun is not None:
            assert words[sentence.pronoun].text in ("it", "they")
            assert words[sentence.pronoun].number == words[sentence.referent].number
            is_taste = words[sentence.pronoun + 2].text in grammar.TASTES
            assert words[sentence.referent].role == ("object" if is_taste else "subject")


# ---- training and measuring


def test_only_real_words_are_masked_and_a_fifth_of_them(model):
    torch.manual_seed(0)
    ids = model.vocabulary.encode([str(sentence) for sentence in grammar.sentences(2000, 5)])
    inputs, is_chosen = mask_words(ids, model.vocabulary)
    is_word = ids != model.vocabulary.pad_id
    assert not is_chosen[~is_word].any()
    assert torch.equal(inputs[~is_chosen], ids[~is_chosen])
    assert is_chosen[is_word].float().mean() == pytest.approx(TRAINING["masked"], abs=0.01)
    masked = model.vocabulary.words[int(inputs[is_chosen].mode().values)]
    assert masked == grammar.MASK


def test_neighbours_count_what_stands_between_them():
    def question(words, right):
        choices = frozenset("xy")
        return measure.Question(tuple(words.split()), words.split().index("___"), choices, frozenset({right}))

    counted = [question("a b ___ d e", "x"), question("z b ___ d z", "y"), question("q b ___ d z", "y")]
    guess = measure.neighbours(counted)
    assert guess(question("a b ___ d e", "x")) == "x"  # all four neighbours were seen
    assert guess(question("e b ___ d a", "y")) == "y"  # the nearest two were, with y more often
    assert guess(question("r ___ s", "y")) == "y"  # none was: the word's frequency


def test_the_model_answers_with_one_of_the_choices(model):
    words, unlikely = ("the", grammar.MASK, "slept"), frozenset({"because", "they"})
    assert measure.model_guesses(model, [measure.Question(words, 1, unlikely, unlikely)])[0] in unlikely


def test_accuracy_is_what_the_figures_say(model, held_out):
    asked = measure.questions(held_out)
    assert asked.keys() == FIGURES["accuracy"].keys()
    for kind, share in measure.model_accuracy(model, asked).items():
        # fewer sentences than there, and another machine may round differently
        assert share == pytest.approx(FIGURES["accuracy"][kind]["model"], abs=0.03), kind


def test_the_model_knows_more_than_frequencies_and_neighbours():
    for kind in ("words", "pronoun", "pronoun_subject", "agreement", "number"):
        row = FIGURES["accuracy"][kind]
        assert row["model"] > max(row["most_frequent"], row["neighbours"]) + 0.05, kind


# ---- looking inside


def test_the_helpers_have_the_shapes_they_state(model):
    assert trained.attention_weights(model, SENTENCE).shape == (6, 4, 7, 7)
    assert trained.residual_stream(model, SENTENCE).shape == (7, 7, 64)
    assert trained.hidden_activations(model, SENTENCE).shape == (6, 7, 256)
    gaps = trained.guesses(model, "the ___ near the cat are ___", count=3)
    assert [len(gap) for gap in gaps] == [3, 3]


def test_attention_weights_are_a_distribution_and_padding_gets_none(model):
    ids = model.vocabulary.encode([SENTENCE, "the cat slept"])
    weights = model.look_inside(ids).weights
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 6, 4, 7))
    assert (weights[1, ..., 3:] == 0).all()


def test_what_is_seen_inside_is_what_the_model_computes(model):
    ids = model.vocabulary.encode([SENTENCE, "the cat slept"])
    inside = model.look_inside(ids)
    encoder, mask = model.encoder.encoder, model.encoder.mask(ids)
    with torch.no_grad():
        torch.testing.assert_close(model.head(encoder.norm(inside.stream[:, -1])), model(ids))
        for index, layer in enumerate(encoder.layers):
            before, after = inside.stream[:, index], inside.stream[:, index + 1]
            attended = layer.attention(layer.add_norm_1.norm(before), mask=mask)
            added = layer.feed_forward.linear_2(inside.hidden[:, index])
            torch.testing.assert_close(before + attended + added, after)


def test_guesses_are_probabilities_and_the_likeliest_comes_first(model):
    (gap,) = trained.guesses(model, "the dogs near the cat ___ tired", count=59)
    chances = [chance for _, chance in gap]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1.0, abs=1e-5)


# ---- the findings


def test_findings_are_of_this_model(model):
    findings = trained.findings()
    assert findings["seeds"][0] == SEED
    for kind, shares in findings["accuracy"].items():
        assert shares[0] == pytest.approx(FIGURES["accuracy"][kind]["model"], abs=0.001)


def test_heads_look_where_the_findings_say(model, held_out):
    found = examine.look_at_heads(model, held_out)
    for name, finding in trained.findings()["heads"].items():
        committed = torch.tensor(finding["weights"][0])
        torch.testing.assert_close(found[name]["weights"], committed, atol=0.05, rtol=0, msg=name)


def test_claims_are_decided_by_the_findings():
    findings = trained.findings()
    assert claims(findings) == findings["claims"]


def test_a_silenced_head_is_silent_only_for_a_while(model):
    ids = model.vocabulary.encode([SENTENCE])
    with torch.no_grad():
        before = model(ids)
        with examine.silenced(model, 0, 0):
            assert not torch.allclose(model(ids), before)
        assert torch.equal(model(ids), before)


def test_a_probe_reads_what_is_there_and_not_what_is_not():
    torch.manual_seed(0)
    y = torch.randint(0, 2, (600,))
    x = torch.randn(600, 2, 5)
    x[:, 1, 3] += 6 * y  # layer 1 knows, layer 0 does not
    shares = examine._read(x, y, split=0)
    assert shares[0] < 0.62
    assert shares[1] > 0.97


def test_findings_json_is_plain_numbers():
    text = (BOOK / "trained" / "findings.json").read_text()
    assert json.loads(text) == trained.findings()
    assert "NaN" not in text
