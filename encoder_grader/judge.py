"""Compare what an answer did with what the reference does, claim by claim, and say what is wrong.

Runs in the grader's process. It sees an answer only as a `Recording`: numbers and plain facts, never code.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from encoder_grader.collect import MAX_ITEMS, Recording, all_refs, collect
from encoder_grader.differences import difference, distance
from encoder_grader.exercise import Claim, Exercise, Misconception
from encoder_grader.plan import Plan
from encoder_grader.verdict import Result, Verdict

LONGEST_ERROR = 300  # characters of an error's message
COARSEST = 0.006  # the largest tolerance for rounding
NOTHING_MADE = " raised ", " is None (did "  # between a call and what came of it
MOST_INPUTS = 3  # that a note names
TOO_COARSE = "your numbers are too coarse to be told from wrong ones: keep the dtype of the input"


class CannotJudge(Exception):
    """An answer in which there is nothing to compare; `key` tells whether two answers fail alike."""

    def __init__(self, sentence: str, key: tuple):
        super().__init__(sentence)
        self.key = key


class Answers:
    """The labelled results of a recording, as a claim's quantity reads them.

    With `like` (the reference's answers on the same plan) each reading first makes sure that there is a result of the
    right kind, shape, dtype and device, and without NaN; else it raises `CannotJudge` with a sentence for the learner.
    """

    def __init__(self, plan: Plan, recording: Recording, like: Answers | None = None):
        self.plan, self.hidden, self.recording, self.like = plan, plan.hidden, recording, like
        self.notes: list[str] = []
        self.read: set[int] = set()  # the steps whose results were asked for
        self.rounding = 0.0  # of the coarsest float type read so far
        self.quantities: dict[str, tuple] = {}  # claim → its quantity, what the types round, the steps read
        self._results: dict[str, tuple[Any, float]] = {}  # label → what was read, and what its types round
        self.made: dict[str, Any] = {}  # by how a step reads in a message, the result that was read
        self._numbers = {record["label"]: number for number, record in enumerate(recording.records)}

    def __getitem__(self, label: str) -> Any:
        """The result called `label`: a tensor (floats as float64), a number, a text, None, a tuple or dict of these."""
        record = self._record(label)
        if "unloaded" in record:  # its module never got the weights
            record = self.recording.records[record["unloaded"]]
        if record["status"] != "ok":
            raise self._unusable(record)
        if label not in self._results:
            expected = self.like._record(label)["value"] if self.like else None
            before, self.rounding = self.rounding, 0.0
            self._results[label] = self._read(record["value"], expected, record["says"]), self.rounding
            self.rounding = before
        result, rounding = self._results[label]
        self.rounding = max(self.rounding, rounding)
        self.made[record["says"]] = result
        return result

    def raises(self, label: str) -> str | None:
        """The type of the error that the step `label` raised, or None where it went through.

        An error of a type derived from the reference's counts as one of the reference's type.
        """
        record = self._record(label)
        if record["status"] not in ("ok", "raised"):
            raise self._unusable(record)
        expected = self.like.raises(label) if self.like else None
        return expected if expected in record.get("kinds", ()) else record.get("type")

    def accepts(self, label: str) -> bool:
        """Whether a test of the learner's let its candidate pass: it neither raised nor returned False."""
        record = self._record(label)
        if record["status"] not in ("ok", "raised"):
            raise self._unusable(record)
        if record["status"] != "ok":
            return False
        said = self._plain(record["value"]) if record["value"]["kind"] == "tensor" else record["value"]
        return said.get("value") is not False

    def error(self, label: str) -> str:
        """The error that the step `label` raised, as a sentence; empty where it went through."""
        record = self._record(label)
        return _error_sentence(record) if record["status"] == "raised" else ""

    def mentions(self, label: str, *words: str) -> bool:
        """Whether the message of the error that the step `label` raised contains each of the words."""
        message = self._record(label).get("error", "")
        return all(word in message for word in words)

    def changed(self, label: str) -> list[str]:
        """The names of the inputs that the call `label` changed in place."""
        return self._record(label).get("changed", [])

    def built_ins(self, in_source: dict[str, set[str]]) -> set[str]:
        """The built-ins called in the steps that were read and in those they build on.

        Args:
            in_source: for the learner's names, the built-ins that their source calls.
        """
        called, waiting, seen = set(), list(self.read), set()
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen.add(number)
                step = self.plan.steps[number]
                called |= {*self.recording.records[number].get("called", ()), *in_source.get(step.get("name"), ())}
                waiting += all_refs(step)
        return called

    def _record(self, label: str) -> dict:
        if label not in self._numbers:
            raise KeyError(f"no step of the plan is labelled {label!r}")
        number = self._numbers[label]
        self.read.add(number)
        return self.recording.records[number]

    def _unusable(self, record: dict) -> CannotJudge:
        """Why there is nothing to judge, told from the step that failed first."""
        says = record["says"]
        for _ in self.recording.records:
            if record["status"] == "blocked":
                record = self.recording.records[record["by"]]
        if record["status"] != "raised":
            return CannotJudge(record["error"], (record["status"], record["error"]))
        return CannotJudge(_error_sentence(record), ("raised", record["type"], record["error"], says))

    def _read(self, value: dict, expected: dict | None, says: str) -> Any:
        if value["kind"] == "tensor" and expected is not None and expected["kind"] != "tensor":
            value = self._plain(value)
        if expected is not None and _kind(value) != _kind(expected):
            is_not = f"{says} is {_words(value)}, but should be {_words(expected)}"
            raise CannotJudge(is_not, ("kind", value["kind"], says))
        if value["kind"] == "tensor":
            return self._tensor(value, expected, says)
        if value["kind"] in ("tuple", "list"):
            if expected is not None and len(value["parts"]) != len(expected["parts"]):
                counts = f"{len(value['parts'])} parts, but should have {len(expected['parts'])}"
                raise CannotJudge(f"{says} has {counts}", ("length", len(value["parts"]), says))
            likes = expected["parts"] if expected else [None] * len(value["parts"])
            return tuple(
                self._read(part, like, f"{says}[{i}]")
                for i, (part, like) in enumerate(zip(value["parts"], likes, strict=True))
            )
        if value["kind"] == "dict":
            likes = expected["parts"] if expected else {}
            parts = value["parts"].items()
            return {name: self._read(part, likes.get(name), f"{says}[{name!r}]") for name, part in parts}
        if value["kind"] == "other":
            raise CannotJudge(f"{says} is {value['words']}, which cannot be compared", ("other", value["words"]))
        return value.get("value")

    def _plain(self, value: dict) -> dict:
        """A small tensor of whole numbers, or of one number, as the plain Python that an exercise asks for."""
        tensor = self.recording.tensors[value["key"]]
        if value["device"] == "meta" or tensor.is_complex():
            return value
        if tensor.dim() == 0:
            number = tensor.item()
            return {"kind": "bool" if isinstance(number, bool) else "number", "value": number}
        if tensor.dim() == 1 and len(tensor) <= MAX_ITEMS and _family(value["dtype"]) == "whole numbers":
            return {"kind": "tuple", "parts": [{"kind": "number", "value": number} for number in tensor.tolist()]}
        return value

    def _tensor(self, value: dict, expected: dict | None, says: str) -> Tensor:
        if expected is not None:
            for fact in ("shape", "dtype", "device"):
                self._fits(fact, value, expected, says)
        tensor = self.recording.tensors[value["key"]]
        if not tensor.dtype.is_floating_point:
            return tensor
        eps = torch.finfo(tensor.dtype).eps
        self.rounding, tensor = max(self.rounding, eps), tensor.double()
        bad = ~torch.isfinite(tensor)
        if expected is not None and torch.isfinite(self.like.recording.tensors[expected["key"]]).all() and bad.any():
            found = {"NaN": torch.isnan(tensor).any(), "infinite": torch.isinf(tensor).any()}
            kinds = " or ".join(kind for kind, there in found.items() if there)
            entries = "entry" if bad.sum() == 1 else "entries"
            where = tuple(bad.nonzero()[0].tolist())
            sentence = f"{says} holds {int(bad.sum())} {kinds} {entries} of {bad.numel()}, the first at index {where}"
            raise CannotJudge(sentence, ("nonfinite", kinds, tuple(bad.nonzero().flatten().tolist())))
        return tensor

    def _fits(self, fact: str, value: dict, expected: dict, says: str) -> None:
        got, want = value[fact], expected[fact]
        if got == want:
            return
        if fact == "shape":
            shapes = f"{tuple(got)}, but should have {tuple(want)}"
            raise CannotJudge(f"{says} has shape {shapes}", ("shape", tuple(got), says))
        if fact == "device":
            raise CannotJudge(
                f"{says} is on {got}, but its inputs are on {want}: keep results where the inputs are", ("device", got)
            )
        if "float8" in got or "float4" in got:
            raise CannotJudge(f"{says} has dtype {got}, which is too coarse to be compared", ("dtype", got))
        if _family(got) != _family(want):
            raise CannotJudge(f"{says} has dtype {got}, but should have {want}", ("dtype", got))
        if _family(want) == "floats":
            note = f"{says} is {got} where {want} was to be expected; no points are lost for that"
            if note not in self.notes:
                self.notes.append(note)


class Judge:
    """Judges answers to one challenge of an exercise; what the reference and the misconceptions do is done once."""

    def __init__(self, exercise: Exercise, plan: Plan):
        self.exercise, self.plan = exercise, plan
        self.reference = Answers(plan, self._collected(exercise.reference))
        self._wrong: dict[str, Answers] = {}

    def verdict(self, recording: Recording, in_source: dict[str, set[str]] | None = None) -> Verdict:
        """The verdict on what an answer did.

        Args:
            recording: of the plan, carried out on the answer.
            in_source: for the names that the exercise asks for, the built-ins that their source calls; those that were
                called when it ran are in the recording.
        """
        answers = Answers(self.plan, recording, like=self.reference)
        reasons: dict[str, str | None] = {}  # claim → why it does not hold
        judged: list[Claim] = []  # the claims that fail on their own account
        for claim in self.exercise.claims:
            waits = next((need for need in claim.needs if reasons[need] is not None), None)
            if waits:
                says = next(other.says for other in self.exercise.claims if other.name == waits)
                reasons[claim.name] = f"counts once this holds: {says}"
                continue
            reasons[claim.name] = self.why_not(claim, answers)
            called = answers.built_ins(in_source or {})
            called = [name for name in self.exercise.forbidden if name in called]
            if called:
                reasons[claim.name] = f"your code calls `{called[0]}`, which this exercise asks you to write yourself"
            elif reasons[claim.name] not in (None, TOO_COARSE):
                judged.append(claim)
        holding = [claim for claim in self.exercise.claims if reasons[claim.name] is None]
        names = self._recognise(judged, holding, answers) if judged else {}
        results, said, last = [], {}, None
        for claim in self.exercise.claims:
            mistake = names.get(claim.name)
            reason = f"{mistake.says}. See {mistake.see}." if mistake else reasons[claim.name]
            shown, root = reason, reason and _root(reason)
            picture = _picture(claim, answers, self.reference) if claim in judged and root not in said else None
            if root in said:  # said once; here only which it was
                shown = "for the same reason" + ("" if root == last else f" as this: {said[root]}")
            elif reason is not None:
                said[root] = claim.says
            last = root or last
            results.append(
                Result(claim.name, claim.says, claim.points, reason is None, shown, mistake and mistake.name, picture)
            )
        notes = answers.notes + _changed_inputs(recording)
        return Verdict(self.exercise.name, self.exercise.title, tuple(results), tuple(notes), recording.printed)

    def why_not(self, claim: Claim, answers: Answers) -> str | None:
        """Why the claim does not hold, or None where it does."""
        want = self.wanted(claim)
        try:
            got, tolerance = quantity_of(claim, answers)
        except CannotJudge as why:
            return str(why)
        reason = difference(got, want, tolerance)
        if reason is not None and tolerance == COARSEST and difference(got, want, 2 * answers.rounding) is None:
            return TOO_COARSE
        if reason is None and tolerance > claim.tolerance and self._hides_a_mistake(claim, want, tolerance):
            return TOO_COARSE
        if reason is None:
            return None
        words = _in_words(claim, got) or self._place(got, want, tolerance, answers) + reason
        return words if claim.see is None else f"{words}{'' if words.endswith('?') else '.'} See {claim.see}."

    def _place(self, got: Any, want: Any, tolerance: float, answers: Answers) -> str:
        """Of several results that make up a quantity, how the first wrong one was made; empty where that is not known.

        And which one is right, where the first is.
        """
        if not isinstance(want, tuple):
            return ""
        says = [self._says(one, other, answers) for one, other in zip(got, want, strict=True)]
        right = [difference(one, other, tolerance) is None for one, other in zip(got, want, strict=True)]
        wrong = says[right.index(False)]
        if wrong is None:
            return ""
        return f"{says[0]} is right, but {wrong}: " if right[0] and says[0] is not None else f"{wrong}: "

    def _says(self, got: Any, want: Any, answers: Answers) -> str | None:
        """How the result was made that is this in the answer and that in the reference; None where it was derived."""
        if not isinstance(got, Tensor | tuple | float | int) or isinstance(got, bool):
            return None
        right = self.reference.made
        made = (says for says, result in answers.made.items() if result is got and right.get(says) is want)
        return next(made, None)

    def wanted(self, claim: Claim) -> Any:
        """The claim's quantity of the reference."""
        return quantity_of(claim, self.reference)[0]

    def _hides_a_mistake(self, claim: Claim, want: Any, tolerance: float) -> bool:
        """Whether a misconception that fails the claim would pass it in a type that rounds as much as this."""
        for misconception in self.exercise.misconceptions:
            try:
                wrong, _ = quantity_of(claim, self._answers_of(misconception))
            except CannotJudge:
                continue
            if claim.tolerance < distance(wrong, want) <= tolerance:
                return True
        return False

    def _answers_of(self, misconception: Misconception) -> Answers:
        if misconception.name not in self._wrong:
            recording = self._collected(self.exercise.reference | misconception.answer)
            self._wrong[misconception.name] = Answers(self.plan, recording, like=self.reference)
        return self._wrong[misconception.name]

    def _collected(self, answer: dict[str, Any]) -> Recording:
        """What one of the grader's own answers does. Garbage waits: a look for it can take longer than the answer."""
        looking = gc.isenabled()
        gc.disable()
        try:
            return collect(self.plan, answer, trusted=True)
        finally:
            if looking:
                gc.enable()

    def _recognise(self, failed: list[Claim], holding: list[Claim], answers: Answers) -> dict[str, Misconception]:
        """The misconception behind each failed claim, where one gives the same numbers.

        Where several do, the one that explains most of the failed claims and predicts the fewest failures that did not
        happen.
        """
        found: dict[str, tuple[tuple[int, int], Misconception]] = {}
        for misconception in self.exercise.misconceptions:
            wrong = self._answers_of(misconception)
            explained = [claim for claim in failed if self._same_mistake(claim, answers, wrong)]
            if not explained:
                continue
            surplus = [claim for claim in holding if self.why_not(claim, wrong) is not None]
            if surplus and self.exercise.exactly:
                continue
            rank = (len(explained), -len(surplus))
            for claim in explained:
                if claim.name not in found or rank > found[claim.name][0]:
                    found[claim.name] = (rank, misconception)
            if rank == (len(failed), 0):  # none can explain it better
                break
        return {name: misconception for name, (_, misconception) in found.items()}

    def _same_mistake(self, claim: Claim, answers: Answers, wrong: Answers) -> bool:
        """Whether a misconception fails this claim, and in the same way as the answer does."""
        try:
            theirs, _ = quantity_of(claim, wrong)
        except CannotJudge as why:
            try:
                quantity_of(claim, answers)
            except CannotJudge as own:
                return own.key == why.key and own.key[0] != "missing"
            return False
        try:
            ours, tolerance = quantity_of(claim, answers)
        except CannotJudge:
            return False
        if difference(theirs, self.wanted(claim), claim.tolerance) is None:
            return False
        return difference(ours, theirs, tolerance) is None


def named(*labels: str) -> Callable[[Answers], dict]:
    """The quantity of several results that messages know by their labels: "`num_parameters`: 7 is not right"."""
    return lambda answers: {f"`{label}`": answers[label] for label in labels}


def judge(exercise: Exercise, plan: Plan, recording: Recording) -> Verdict:
    """The verdict on what an answer did with the plan of one of the exercise's challenges."""
    return Judge(exercise, plan).verdict(recording)


def _changed_inputs(recording: Recording) -> list[str]:
    """A note for each function or class whose calls changed their inputs in place."""
    changed: dict[str, list[str]] = {}
    for record in recording.records:
        changed.setdefault(record["says"].split("(")[0], []).extend(record["changed"])
    notes = []
    for name, inputs in ((name, list(dict.fromkeys(inputs))) for name, inputs in changed.items() if inputs):
        more = f" and {len(inputs) - MOST_INPUTS} more" if len(inputs) > MOST_INPUTS else ""
        notes.append(f"`{name}` changes its input in place: {', '.join(inputs[:MOST_INPUTS])}{more}")
    return notes


def quantity_of(claim: Claim, answers: Answers) -> tuple[Any, float]:
    """What a claim is about, and the tolerance: at least the rounding of the float types it was computed from.

    That of bfloat16 is taken for less than it is: else a factor of 1.01 would pass. Computed once; `answers.read` are
    the steps that this claim read, `answers.rounding` is what their types round.
    """
    if claim.name not in answers.quantities:
        answers.rounding, answers.read = 0.0, set()
        try:
            got = claim.quantity(answers)
        except CannotJudge as why:
            got = why
        except Exception as error:  # no answer stops the check
            got = CannotJudge(f"your result cannot be compared: {error}", ("other", type(error).__name__))
        answers.quantities[claim.name] = got, answers.rounding, answers.read
    got, answers.rounding, answers.read = answers.quantities[claim.name]
    if isinstance(got, CannotJudge):
        raise got.with_traceback(None)  # which holds on to all that was read
    return got, max(claim.tolerance, min(2 * answers.rounding, COARSEST))


def _root(reason: str) -> str:
    """A reason without the call that gave it, and without where to look: what is the same is said once."""
    reason = reason.partition(". See ")[0]
    return next((end for _, end in (reason.split(does, 1) for does in NOTHING_MADE if does in reason)), reason)


def _error_sentence(record: dict) -> str:
    line = record.get("line")
    place = f", in `{line['function']}`, line {line['number']}" if line else ""
    place += f": `{line['source']}`" if line and line["source"] else ""
    message = record["error"].rstrip(" .")
    message = f": {message[:LONGEST_ERROR]}{' …' * (len(message) > LONGEST_ERROR)}" if message else ""
    advice = "; write your answer in its place" if "raise NotImplementedError" in place else ""
    return f"{record['says']} raised {record['type']}{message}{place}{advice}"


def _in_words(claim: Claim, got: Any) -> str | None:
    """What the claim itself says of a wrong quantity; None where it says nothing."""
    if claim.reason is None:
        return None
    try:
        return claim.reason(got)
    except Exception:  # of an answer that no honest run gives
        return None


def _picture(claim: Claim, answers: Answers, reference: Answers) -> tuple[Tensor, Tensor] | None:
    if claim.picture is None:
        return None
    try:
        return claim.picture(answers), claim.picture(reference)
    except Exception:  # there is nothing to be seen, or no honest run gives it
        return None


def _kind(value: dict) -> str:
    return "tuple" if value["kind"] == "list" else value["kind"]  # either will do where the other is expected


def _words(value: dict) -> str:
    if value["kind"] == "tensor":
        return "a tensor"
    if value["kind"] == "NoneType":
        return "None (did a `return` get lost?)"
    if value["kind"] == "other":
        return value["words"]
    return f"a {value['kind']}"


def _family(dtype: str) -> str:
    """Types within one family may stand for each other."""
    kind = getattr(torch, dtype)
    if kind == torch.bool:
        return "truth values"
    return "complex" if kind.is_complex else "floats" if kind.is_floating_point else "whole numbers"
