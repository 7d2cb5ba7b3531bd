"""What a learner reads: which call is meant, where to look, and nothing twice."""

import pytest
import torch
from torch import nn

from encoder_grader.bug_hunt import Bug, bug_hunt
from encoder_grader.collect import collect
from encoder_grader.exercise import Claim, Exercise, Misconception
from encoder_grader.judge import judge
from encoder_grader.plan import Plan

LOOK = "“The bend” in chapter 0"


def words(plan: Plan) -> list[str]:
    """How the calls that a claim looks at read in a message."""
    return [step["says"] for step in plan.steps if step["label"] is not None]


def verdict_on(plan: Plan, reference: dict, answer: dict, claims: tuple, misconceptions: tuple = (), **options):
    entry = Exercise("fixture.words", "Words", lambda _: plan, reference, claims, misconceptions, **options)
    return judge(entry, plan, collect(plan, answer))


def reasons(verdict) -> list[str]:
    return [result.reason for result in verdict.results if not result.holds]


# --- the words of a call ---


def test_a_call_says_in_which_mode_it_was_made():
    plan = Plan()
    module, x = plan.call("Net", 3), plan.tensor("x", torch.ones(2))
    part = plan.attribute(module, "part")
    plan.call(module, x, label="unset")
    plan.train(part, False)
    plan.call(part, x, label="part")
    plan.train(module)
    plan.item(plan.call(part, x), 0, label="part of the whole")
    assert words(plan) == ["Net(3)(x)", "Net(3).part(x) in evaluation", "Net(3).part(x)[0] in training"]


def test_a_call_that_is_looked_at_again_is_the_second():
    plan = Plan()
    x = plan.tensor("x", torch.ones(2))
    for label in ("one", "two", "three"):
        plan.call("double", x, label=label)
    assert words(plan) == ["double(x)", "double(x) (call 2)", "double(x) (call 3)"]


def test_a_long_subject_loses_what_its_first_brackets_hold():
    plan = Plan()
    x = plan.tensor("x", torch.ones(2))
    module = plan.call("Encoder", 123, num_heads=456, d_ff=789, num_layers=10, dropout=0.25)
    plan.item(plan.call(module, x, mask=None), 1, label="output")
    assert words(plan) == ["Encoder(…)(x, mask=None)[1]"]


def test_a_dict_is_told_by_how_much_it_holds():
    plan = Plan()
    plan.call("convert", {"a": torch.ones(2), "b": torch.ones(3)}, label="converted")
    assert words(plan) == ["convert(a dict of 2)"]


# --- where an answer has no result ---


def test_one_tensor_is_no_pair():
    plan = Plan()
    plan.item(plan.call("attend", torch.ones(2, 3)), 1, label="weights")
    claims = (Claim("weights", 1, "the weights", lambda a: a["weights"]),)
    (reason,) = reasons(verdict_on(plan, {"attend": lambda x: (x, x)}, {"attend": lambda x: x}, claims))
    assert reason == "attend(a tensor (2, 3))[1] does not exist: the result is one tensor, (2, 3)"


def test_a_result_that_cannot_be_called_is_not_laid_to_the_function():
    plan = Plan()
    plan.call(plan.call("make", 3), torch.ones(2), label="output")
    claims = (Claim("output", 1, "the output", lambda a: a["output"]),)
    (reason,) = reasons(verdict_on(plan, {"make": lambda n: double}, {"make": lambda n: None}, claims))
    assert reason == "make(3) is None (did a `return` get lost?), but should be something to call"


def double(x):
    return x * 2


def test_an_error_in_a_comprehension_names_the_function_around_it():
    plan = Plan()
    plan.call("double", torch.ones(2), label="result")
    namespace = {}
    exec("def double(x):\n    return [y.twice for y in x]", namespace)
    claims = (Claim("result", 1, "the result", lambda a: a["result"]),)
    (reason,) = reasons(verdict_on(plan, {"double": double}, namespace, claims))
    assert "in `double`, line 2" in reason


def test_an_error_of_many_lines_is_one_line_and_not_endless():
    plan = Plan()
    plan.call("double", torch.ones(2), label="result")

    def refuse(x):
        raise ValueError("no:\n\t" + "a very long list, " * 100)

    claims = (Claim("result", 1, "the result", lambda a: a["result"]),)
    (reason,) = reasons(verdict_on(plan, {"double": double}, {"double": refuse}, claims))
    assert "raised ValueError: no: a very long list" in reason and " …" in reason
    assert len(reason) < 500 and "\n" not in reason


@pytest.mark.parametrize(("what", "kinds"), [("inf", "1 infinite entry"), ("nan inf", "2 NaN or infinite entries")])
def test_what_is_no_number_is_called_what_it_is(what, kinds):
    plan = Plan()
    plan.call("double", torch.ones(3), label="result")
    bad = torch.tensor([float(number) for number in what.split()] + [2.0] * (3 - len(what.split())))
    claims = (Claim("result", 1, "the result", lambda a: a["result"]),)
    (reason,) = reasons(verdict_on(plan, {"double": double}, {"double": lambda x: bad}, claims))
    assert f"holds {kinds} of 3" in reason


def test_a_parameter_that_is_missing_is_advised_on():
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.ones(2, 3, requires_grad=True)

    class Crowded(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ParameterList(torch.ones(i + 4) for i in range(15))

    plan = Plan()
    plan.parameter(plan.call("Table"), "table", (2, 3), label="table")
    claims = (Claim("table", 1, "the table", lambda a: a["table"]),)

    def reason(answer):
        return reasons(verdict_on(plan, {"Table": lambda: nn.Embedding(2, 3)}, {"Table": answer}, claims))[0]

    assert reason(Flat) == "`table` of your Flat is a tensor, but no parameter"
    assert "`parts.11` (15,) and 3 more. Use the name that the exercise states" in reason(Crowded)
    assert "load_reference" not in reason(Crowded)  # which nobody would call


def test_what_asks_for_no_gradient_is_not_called_cut_off():
    class Scale(nn.Module):
        def __init__(self, learns):
            super().__init__()
            self.factor = nn.Parameter(torch.ones(3))
            self.offset = nn.Parameter(torch.zeros(3), requires_grad=learns)

        def forward(self, x):
            return x * self.factor + self.offset

    plan = Plan()
    module = plan.call("Scale")
    output = plan.call(module, torch.ones(2, 3))
    plan.gradient(output, torch.ones(2, 3), plan.parameter(module, "offset", (3,)), label="gradient")
    claims = (Claim("gradient", 1, "the offset learns", lambda a: a["gradient"]),)
    (reason,) = reasons(verdict_on(plan, {"Scale": lambda: Scale(True)}, {"Scale": lambda: Scale(False)}, claims))
    assert "with respect to `offset` cannot be taken: that asks for no gradient (a buffer, or frozen)" in reason


# --- what is said, and how often ---


def two_calls(claims_see=None):
    plan = Plan()
    one, other = plan.tensor("one", torch.ones(2)), plan.tensor("other", torch.arange(3.0))
    plan.call("double", one, label="one")
    plan.call("double", other, label="other")
    return plan, (
        Claim("one", 1, "one is doubled", lambda a: a["one"], see=claims_see),
        Claim("both", 1, "both are doubled", lambda a: (a["one"], a["other"]), see=claims_see),
        Claim("again", 1, "the other is doubled", lambda a: a["other"], see=claims_see),
    )


def test_where_no_mistake_has_this_name_the_claim_says_where_to_look():
    plan, claims = two_calls(LOOK)
    verdict = verdict_on(plan, {"double": double}, {"double": lambda x: x * 3}, claims)
    assert reasons(verdict)[0] == f"every number is 1.5 times what it should be. See {LOOK}."
    named = (Misconception("tripled", "you tripled", "chapter 1", {"double": lambda x: x * 3}),)
    verdict = verdict_on(plan, {"double": double}, {"double": lambda x: x * 3}, claims, named)
    assert reasons(verdict)[0] == "you tripled. See chapter 1."


def test_of_several_results_it_is_said_which_one_is_wrong_and_which_is_right():
    plan, claims = two_calls()
    ones_alone = {"double": lambda x: x * 2 if bool((x == 1).all()) else x * 3}
    verdict = verdict_on(plan, {"double": double}, ones_alone, claims)
    assert reasons(verdict)[0] == "double(one) is right, but double(other): every number is 1.5 times what it should be"


def refuse(x):
    raise ValueError("no")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refuse, "double(one) raised ValueError: no, in `refuse`, line 2"),
        (lambda x: None, "double(one) is None (did a `return` get lost?), but should be a tensor"),
    ],
)
def test_the_same_reason_in_several_calls_is_said_once(answer, said):
    plan, claims = two_calls()
    first, *later = reasons(verdict_on(plan, {"double": double}, {"double": answer}, claims))
    assert said.startswith(first)  # the line is that of a learner's cell alone
    assert later == ["for the same reason"] * 2


def test_inputs_changed_in_place_are_one_note():
    plan = Plan()
    for i in range(5):
        plan.call("double", plan.tensor(f"x_{i}", torch.ones(2)), label=f"result {i}")
    claims = (Claim("one", 1, "one is doubled", lambda a: a["result 0"]),)
    verdict = verdict_on(plan, {"double": double}, {"double": lambda x: x.mul_(2)}, claims)
    assert verdict.notes == ("`double` changes its input in place: x_0, x_1, x_2 and 2 more",)


# --- bug hunts ---


def test_a_bug_hunt_names_a_mistake_only_where_it_predicts_no_other():
    def careless(softmax):
        assert softmax(torch.ones(2, 3)).shape == (2, 3)

    hunt = bug_hunt(
        "fixture.hunt",
        "Hunt",
        "examine",
        lambda softmax: bool(torch.allclose(softmax(torch.eye(3)), torch.eye(3).softmax(-1))),
        right=(lambda x: x.softmax(-1), lambda x: torch.softmax(x, -1)),
        bugs=(
            Bug("axis", "which numbers are compared", lambda x: x.softmax(0) + x),
            Bug("sign", "which one wins", lambda x: (-x).softmax(-1)),
        ),
        misconceptions=(Misconception("shapes", "you look at shapes alone", "chapter 0", {"examine": careless}),),
        see=LOOK,
    )
    plan = hunt.challenge(3)

    def said(examine):
        return reasons(judge(hunt, plan, collect(plan, {"examine": examine})))

    assert said(careless)[0] == "you look at shapes alone. See chapter 0."

    def sums_alone(softmax):
        assert torch.allclose(softmax(torch.eye(3)).sum(-1), torch.ones(3))

    assert said(sums_alone) == [f"your test lets this one pass. See {LOOK}."]
    turned_round = said(lambda softmax: not torch.allclose(softmax(torch.eye(3)), torch.eye(3).softmax(-1)))
    assert turned_round[0] == f"it fails every right one: is it the wrong way round? See {LOOK}."
