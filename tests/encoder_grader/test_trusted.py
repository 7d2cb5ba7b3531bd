"""A check whose two sides are apart: the same verdicts as in one process, and nothing malformed gets through."""

import contextlib
import json
import re
import socket
import struct
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save

import encoder_grader.collect as collecting
from encoder_grader import answering
from encoder_grader.accuracy.cases import cases
from encoder_grader.collect import collect
from encoder_grader.exercise import chapters, exercises, find
from encoder_grader.judge import judge
from encoder_grader.plan import Plan
from encoder_grader.trusted import (
    STATUSES,
    Candidates,
    challenge,
    exchange,
    nothing_earned,
    recording_of,
    secret_of,
    seed_of,
)
from encoder_grader.wire import Malformed, Message, pack, receive, send, unpack

SEED = 5


class Notebook:
    """Stands for the module whose names are the notebook's."""

    def __init__(self, namespace):
        self.__dict__ = namespace


def across(monkeypatch, tmp_path, plan, namespace):
    """The recording of an answer that is at the other end of a socket."""
    server = socket.socket(socket.AF_UNIX)
    path = str(tmp_path / "s")
    server.bind(path)
    server.listen(1)
    monkeypatch.setitem(sys.modules, "__main__", Notebook(namespace))
    found = []

    def serve():
        connection, _ = server.accept()
        with connection:
            try:
                found.append(exchange(plan, connection, time.monotonic() + 60))
            except Exception as error:
                found.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    answering.answer(path)
    thread.join()
    server.close()
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


@pytest.mark.parametrize("name", [exercise.name for chapter in chapters() for exercise in exercises(chapter)])
def test_the_verdict_is_the_same_across_the_wire(name, monkeypatch, tmp_path):
    exercise = find(name)
    known = [case for case in cases(name.partition(".")[0]) if case.exercise == name]
    chosen = {case.kind: case for case in known}.values()  # one of each kind
    for number, case in enumerate(chosen):
        (tmp_path / str(number)).mkdir()
        plan, again = challenge(exercise, SEED), challenge(exercise, SEED)
        near = judge(exercise, plan, collect(plan, case.namespace()))
        far = judge(exercise, again, across(monkeypatch, tmp_path / str(number), again, case.namespace()))
        assert (str(far), far.points) == (str(near), near.points), case


def test_a_candidate_draws_and_learns_as_if_it_were_here(monkeypatch, tmp_path):
    def candidate(x, weights, training=False):
        return {"out": torch.dropout(x @ weights["w"], 0.5, training), "n": 3}

    seen = {}

    def hunt(proxy):
        x, w = torch.ones(2, 3, requires_grad=True), torch.arange(6.0).reshape(3, 2).requires_grad_()
        torch.manual_seed(1)
        first = proxy(x, {"w": w}, training=True)["out"]
        torch.manual_seed(1)
        second = candidate(x, {"w": w}, training=True)["out"]
        seen["same"] = torch.equal(first, second), float(torch.rand(())) > 0
        seen["far"] = torch.autograd.grad(proxy(x, {"w": w})["out"].square().sum(), [x, w])
        seen["near"] = torch.autograd.grad(candidate(x, {"w": w})["out"].square().sum(), [x, w])
        with pytest.raises(ValueError, match="at most"):
            proxy(torch.ones(3, 600), {"w": w})
        with pytest.raises(RuntimeError):
            proxy(torch.ones(3, 5), {"w": w})
        with pytest.raises(TypeError):
            proxy(x, {"w": object()})
        return proxy(x, {"w": w})["n"] == 3

    plan = Plan()
    plan.call("hunt", plan.give("candidate 0", candidate), label="hunted")
    recording = across(monkeypatch, tmp_path, plan, {"hunt": hunt})
    assert recording.records[-1]["value"] == {"kind": "bool", "value": True}, recording.records
    assert seen["same"] == (True, True)
    assert all(torch.equal(far, near) for far, near in zip(seen["far"], seen["near"], strict=True))


@pytest.mark.parametrize(
    "args",
    [
        [torch.zeros(1, 1, 65, 4)],
        [torch.zeros(2, 2, 2, 2, 2)],
        [torch.zeros(600)],
        [torch.zeros(512, 512), torch.zeros(4)],
        [torch.zeros(64, 1, 64, 1), torch.zeros(1, 64, 64, 1), torch.zeros(1, 1, 64, 128)],
        ["x" * 2000],
        [10**6],
        [[1] * 2000],
        [[[1] * 900] * 900],
    ],
)
def test_a_candidate_takes_nothing_that_would_cost_the_grader_much(args):
    plan, asked = Plan(), []
    plan.give("candidate 0", lambda *a, **k: asked.append(a))
    tensors = {}
    reply = Candidates(plan).reply(Message("call", {"name": "candidate 0", "args": pack([args, {}], tensors)}, tensors))
    assert reply.kind == "error" and "a candidate takes" in reply.content["message"]
    assert asked == []


@pytest.mark.parametrize(
    "message",
    [
        Message("call", {"name": "candidate 1", "args": {"list": []}}),
        Message("call", {"name": ["candidate 0"]}),
        Message("call", None),
        Message("call", {"name": "candidate 0", "args": 3}),
        Message("gradient", {"number": 1, "inputs": ["0"]}),
        Message("gradient", {"number": [], "inputs": 3}),
        Message("recordings"),
        Message(
            "call", {"name": "candidate 0", "args": {"list": []}}, {"random": torch.zeros(5056, dtype=torch.uint8)}
        ),
    ],
)
def test_a_question_that_is_none_is_refused(message):
    plan = Plan()
    plan.give("candidate 0", lambda: 3)
    with pytest.raises(Malformed):
        Candidates(plan).reply(message)


def test_an_error_of_a_candidates_own_reaches_the_test(monkeypatch, tmp_path):
    def hunt(candidate):
        with pytest.raises(KeyError):
            candidate({})
        return True

    plan = Plan()
    plan.call("hunt", plan.give("candidate 0", lambda weights: weights["w"]), label="hunted")
    recording = across(monkeypatch, tmp_path, plan, {"hunt": hunt})
    assert recording.records[-1]["value"] == {"kind": "bool", "value": True}, recording.records


def test_a_step_that_never_ends_is_stopped_and_the_others_are_judged(monkeypatch, tmp_path):
    monkeypatch.setattr("encoder_grader.trusted.STEP_SECONDS", 0.5)
    exercise = find("attention.heads")

    def merge_heads(x):
        while True:
            with contextlib.suppress(Exception):
                time.sleep(1)

    plan = challenge(exercise, SEED)
    verdict = judge(
        exercise, plan, across(monkeypatch, tmp_path, plan, exercise.reference | {"merge_heads": merge_heads})
    )
    assert {r.claim for r in verdict.results if not r.holds} == {"merged"}
    assert "it ran for more than 0.5 seconds" in str(verdict)


# --- what no honest side would send ----------------------------------------------------------------------------------

PLAN = challenge(find("attention.heads"), SEED)
RIGHT = collect(PLAN, find("attention.heads").reference)


def said(records, tensors=None, printed=""):
    return Message("recording", {"records": records, "printed": printed}, RIGHT.tensors if tensors is None else tensors)


def changed(number, **facts):
    records = [dict(record) for record in RIGHT.records]
    records[number] |= facts
    return records


LABELLED = next(i for i, record in enumerate(RIGHT.records) if record["label"] == "split")


@pytest.mark.parametrize(
    "message",
    [
        said([]),
        said(RIGHT.records[:-1]),
        said([*RIGHT.records, RIGHT.records[0]]),
        said("records"),
        said([None] * len(RIGHT.records)),
        said(RIGHT.records, printed=7),
        said(RIGHT.records, tensors={}),
        Message("recording", None),
        Message("recording", {"records": None}),
        said(changed(LABELLED, status="perfect")),
        said(changed(LABELLED, status=["ok"][0], value={"kind": "tensor", "key": "other", "device": "cpu"})),
        said(changed(LABELLED, value={"kind": "number", "value": "7"})),
        said(changed(LABELLED, value={"kind": "number", "value": True})),
        said(changed(LABELLED, value={"kind": "number", "value": 2**70})),
        said(changed(LABELLED, value={"kind": "tuple", "parts": 3})),
        said(changed(LABELLED, value={"kind": ["tensor"], "value": 3})),
        said(changed(LABELLED, value=None)),
        said(changed(3, status="blocked", by=3)),
        said(changed(3, status="blocked", by=-1)),
        said(changed(3, status="blocked", by="0")),
        said(changed(3, unloaded=99)),
        said(changed(3, changed="x")),
        said(changed(3, status="raised", type=3)),
        said(changed(LABELLED, status="blocked", by=0)),  # by a step that went well
        said(changed(LABELLED, unloaded=0)),  # which loads nothing
        said(changed(LABELLED, value={"kind": "tuple", "parts": [RIGHT.records[LABELLED]["value"]] * 2})),
    ],
)
def test_a_malformed_recording_is_refused(message):
    with pytest.raises(Malformed):
        recording_of(PLAN, message)


def test_a_recording_speaks_of_its_own_step_and_of_real_tensors_only():
    forged = changed(LABELLED, label="merged", says="<script>", called=["softmax"], changed=["nothing", "x"])
    forged[LABELLED]["value"] = forged[LABELLED]["value"] | {"shape": [1], "dtype": "bool", "extra": 1}
    record = recording_of(PLAN, said(forged)).records[LABELLED]
    assert (record["label"], record["says"]) == ("split", PLAN.steps[LABELLED]["says"])
    assert record["value"]["shape"] == list(RIGHT.tensors["split"].shape)
    assert record["value"]["dtype"] == "float32"
    assert (record["called"], record["changed"]) == ([], ["x"])


def test_whole_numbers_that_stand_for_a_tuple_are_as_few_as_a_tuple_has():
    exercise = find("embedding.shapes")
    plan = exercise.challenge(1)
    tensor = {"status": "ok", "value": {"kind": "tensor", "key": "k", "device": "cpu"}}
    missing = {"status": "missing", "error": "no"}
    records = [tensor if step["label"] == "shape_of_patches" else missing for step in plan.steps]
    many = torch.zeros(10**6, dtype=torch.uint8)
    recording = recording_of(plan, Message("recording", {"records": records, "printed": ""}, {"k": many}))
    assert "is a tensor, but should be a tuple" in str(judge(exercise, plan, recording))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("split"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["kind", "value", "parts", "key", "status", "by", "label"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_answer_file_crashes_the_judge(data):
    """Records in which anything may stand in any place: either refused as malformed, or judged."""
    exercise = find("attention.heads")
    records = [dict(record) for record in RIGHT.records]
    for number in data.draw(st.lists(st.integers(0, len(records) - 1), max_size=4)):
        fact = data.draw(
            st.sampled_from(
                ["status", "value", "by", "type", "kinds", "error", "line", "changed", "called", "unloaded"]
            )
        )
        records[number][fact] = data.draw(json_values)
        if data.draw(st.booleans()):
            records[number]["status"] = data.draw(st.sampled_from(["ok", "raised", "blocked", "missing", "shape"]))
            records[number].setdefault("error", "no")
    tensors = dict(RIGHT.tensors)
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(sorted(tensors)))
        tensors[name] = data.draw(
            st.sampled_from(
                [
                    torch.empty(0),
                    torch.tensor(1.0),
                    torch.full((2, 3), torch.nan),
                    torch.ones(2, dtype=torch.complex64),
                    torch.ones(3, dtype=torch.bool),
                    torch.ones(2, 3).half(),
                    torch.full((4, 5, 6), 1e300, dtype=torch.float64),
                ]
            )
        )
    try:
        recording = recording_of(PLAN, said(records, tensors))
    except Malformed:
        return
    verdict = judge(exercise, PLAN, recording)
    assert 0 <= verdict.points <= verdict.maximum
    assert str(verdict) and verdict._repr_html_()


def as_bytes(head, tensors):
    text, numbers = json.dumps(head).encode(), save(tensors)
    return struct.pack("!II", len(text), len(numbers)) + text + numbers


one = torch.ones(1)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0" * 8,
        b"\0" * 7,
        struct.pack("!II", 2**31, 0),
        struct.pack("!II", 2, 2**31),
        struct.pack("!II", 2, 8) + b"{}" + b"\0" * 8,
        struct.pack("!II", 200_000, 0) + b"[" * 200_000,
        struct.pack("!II", 4, 0) + b"\xff\xfe\xfd\xfc",
        as_bytes({"kind": "x", "content": 1, "names": ["", ""], "complex": []}, {"0": one, "1": torch.ones(2)}),
        as_bytes({"kind": "x", "content": 1, "names": ["a"], "complex": [0] * 20_000}, {"0": one}),
        as_bytes({"kind": "x", "content": 1, "names": ["a"], "complex": []}, {"0": one, "1": torch.ones(2)}),
        as_bytes({"kind": "x", "content": 1, "names": [], "complex": []}, {"0" * 3_000_000: one}),
        as_bytes({"kind": "x", "content": 1, "names": 3, "complex": []}, {}),
        struct.pack("!II", 60, 8)
        + json.dumps({"kind": "x", "content": 1, "names": ["a"], "complex": []}).encode().ljust(60)
        + b"\0" * 8,
    ],
)
def test_bytes_that_are_no_message_are_refused(raw):
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    threading.Thread(target=lambda: (theirs.sendall(raw), theirs.close()), daemon=True).start()
    with pytest.raises(Malformed), ours:
        receive(ours)


def test_a_side_that_says_nothing_is_given_up():
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        exchange(PLAN, ours, time.monotonic() + 0.3)


def test_messages_and_values_arrive_as_they_were_sent():
    tensors = {
        "a.b": torch.randn(2, 3).T,
        "": torch.tensor(3),
        "c": torch.tensor([1 + 2j]),
        "half": torch.ones(2).half(),
    }
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, Message("k", {"x": [1, None]}, tensors))
        got = receive(theirs)
    assert (got.kind, got.content, list(got.tensors)) == ("k", {"x": [1, None]}, list(tensors))
    assert all(torch.equal(got.tensors[name], tensors[name]) for name in tensors)
    value, found = [1, {"a": (torch.ones(2), None)}, torch.float64, "s", True], {}
    code = json.loads(json.dumps(pack(value, found)))
    again = unpack(code, found)
    assert again[0] == 1 and torch.equal(again[1]["a"][0], torch.ones(2)) and again[2:] == [torch.float64, "s", True]


def test_the_seed_is_the_same_for_the_same_bytes_and_no_other(tmp_path):
    secret = secret_of(tmp_path)
    assert secret_of(tmp_path) == secret and (tmp_path / ".grading_secret").stat().st_mode & 0o777 == 0o600
    seeds = {seed_of(secret, "1_embedding", student, sha) for student in ("ada", "ben") for sha in ("0", "1")}
    assert len(seeds) == 4
    assert seed_of(secret, "a", "b") == seed_of(secret, "a", "b") != seed_of(secret, "ab", "")
    (tmp_path / "other").mkdir()
    assert seed_of(secret_of(tmp_path / "other"), "a") != seed_of(secret, "a")


def test_where_nothing_could_be_judged_the_reason_is_said_once():
    verdict = nothing_earned(find("attention.heads"), "your code ended the kernel")
    assert verdict.points == 0
    assert str(verdict).count("your code ended the kernel") == 1


def test_every_way_in_which_a_step_can_fail_is_known_to_the_grader():
    source = Path(collecting.__file__).read_text()
    faults = set(re.findall(r'Fault\(\s*"(\w+)"', source))
    assert faults and faults | {"ok", "raised", "blocked"} == set(STATUSES)
