"""Nothing that a student wrote runs in the browser of whoever reads feedback or grades in formgrader."""

import os
import secrets
import subprocess
import sys
import time
import urllib.request
from urllib.error import URLError

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.utils import is_solution

from encoder_grader.grade import grade_class
from encoder_grader.nbgrader_course import open_course
from encoder_grader.pages import markdown2html
from encoder_grader.release import release_assignment
from encoder_grader.verdict import Result, Verdict
from tests.book.conftest import chromium

NAME = "1_counting"
RUN = "window.top.ran=(window.top.ran||0)+1"
INJECTIONS = [
    f"<script>{RUN}</script>",
    f"<img src=x onerror='{RUN}'>",
    f"<svg onload='{RUN}'><script>{RUN}</script></svg>",
    f"<body onload='{RUN}'>",
    f"<iframe srcdoc='<script>{RUN}</script>'></iframe>",
    f"<iframe src='javascript:{RUN}'></iframe>",
    f"<details open ontoggle='{RUN}'><summary>x</summary></details>",
    f"<input autofocus onfocus='{RUN}'>",
    f"<video><source onerror='{RUN}'></video>",
    f"<a class=press href='javascript:{RUN}'>press</a>",
    f"<a class=press href='&#106;ava&Tab;script:{RUN}'>press</a>",
    f"[press](javascript:{RUN})",
    f"[press](&#x6A;avascript:{RUN})",
    f"[press]( <java\nscript:{RUN}> )",
    f"<javascript:{RUN}>",
    f"![x](x' onerror='{RUN})",
    f"![x](x \"y' onerror='{RUN}\")",
    f"<math><mtext><table><mglyph><style><!--</style><img src=x onerror='{RUN}'>--></style></table></mtext></math>",
    f"<noscript><p title=\"</noscript><img src=x onerror='{RUN}'>\">",
    f"```mermaid\ngraph TD; A[\"<img src=x onerror='{RUN}'>\"]\n```",
    f"```\"><img src=x onerror='{RUN}'>\nx\n```",
    f"$<img src=x onerror='{RUN}'>$",
    f"\\begin{{x}}<img src=x onerror='{RUN}'>\\end{{x}}",
    f"# x<img src=x onerror='{RUN}'>",
    f"<form action='javascript:{RUN}'><button class=press>press</button></form>",
    f"<base href='javascript:/a/-{RUN}'>",
    f"<object data='javascript:{RUN}'></object><embed src='javascript:{RUN}'>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"<p style='animation: x 1s' onanimationstart='{RUN}'>x</p><style>@keyframes x{{}}</style>",
    f"</div></body></html><script>{RUN}</script>",
]
SHOWN = f"""
import sys
from IPython.display import HTML, SVG, Javascript, Markdown, Latex, display
class Rich:
    def _repr_mimebundle_(self, **kw):
        return {{"text/plain": "<script>{RUN}</script>", "image/svg+xml": "<svg onload='{RUN}'/>",
                 "application/vnd.jupyter.widget-view+json": {{"model_id": "</script><script>{RUN}</script>"}}}}
display(HTML("<script>{RUN}</script>"), Javascript("{RUN}"), Markdown("<img src=x onerror='{RUN}'>"), Rich())
display({{"image/png": "x' onerror='{RUN}"}}, raw=True)
print("<script>{RUN}</script>\\x1b]8;;javascript:{RUN}\\x07link", file=sys.stderr)
class Odd(Exception): pass
Odd.__name__ = "<img src=x onerror='{RUN}'>"
raise Odd("<img src=x onerror='{RUN}'>")"""
VERDICT = Verdict("counting.add", "Adding", (Result("sum", "the sum is `a + b`", 2.0, False, "it is `<b>`"),))


@pytest.fixture
def graded(course):
    """A class in which one student tries every injection there is; the paths and times of its pages."""
    release_assignment(course, NAME)
    notebook = nbformat.read(course / "exercises" / NAME / "counting.ipynb", as_version=4)
    for cell in notebook.cells:
        if is_solution(cell):
            cell.source = (
                "\n\n".join(INJECTIONS) if cell.cell_type == "markdown" else f"'''</pre><script>{RUN}</script>'''"
            )
    for injection in INJECTIONS:
        notebook.cells.append(new_markdown_cell(injection))
    notebook.cells += [new_code_cell(SHOWN), new_code_cell(f"%%javascript\n{RUN}"), new_code_cell(f"%%html\n{RUN}")]
    place = course / "submitted" / "eve" / NAME
    place.mkdir(parents=True)
    nbformat.write(notebook, place / "counting.ipynb")
    (place / f"<img src=x onerror='{RUN.replace('/', '')}'>.txt").write_text("")
    assert [result.failure for result in grade_class(course, course)] == [""]
    # The verdict of a test cell as the grader writes it, since this small course has none of the book's exercises.
    file = course / "autograded" / "eve" / NAME / "counting.ipynb"
    file.chmod(0o644)
    notebook = nbformat.read(file, as_version=4)
    cell = next(cell for cell in notebook.cells if cell.id == "check_add")
    cell.outputs.insert(0, nbformat.v4.new_output("display_data", data={"text/html": VERDICT._repr_html_()}))
    nbformat.write(notebook, file)
    assert open_course(course, course).generate_feedback(NAME, "eve")["success"]
    return course


@pytest.fixture
def server(graded):
    """The address of formgrader, served for the course."""
    token, home = secrets.token_hex(16), graded / "home"
    config = home / "jupyter_server_config.py"
    home.mkdir()
    config.write_text(
        "c.ServerApp.jpserver_extensions = {'nbgrader.server_extensions.formgrader': True}\n"
        f"c.IdentityProvider.token = {token!r}\n"
    )
    variables = {**os.environ, "HOME": str(home), "JUPYTER_CONFIG_DIR": str(home)}
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--ip=127.0.0.1", "--port=0", "--allow-root"]
    log = home / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen([*command, f"--config={config}"], cwd=graded, env=variables, stdout=out, stderr=out)
    try:
        address = None
        for _ in range(600):
            words = log.read_text()
            found = [word for word in words.split() if word.startswith("http://127.0.0.1:") and "token=" in word]
            if found:
                address = found[0].split("/?")[0].removesuffix("/tree").removesuffix("/lab")
                try:
                    urllib.request.urlopen(f"{address}/api?token={token}")
                    break
                except URLError:
                    pass
            assert process.poll() is None, words
            time.sleep(0.2)
        assert address, log.read_text()
        yield address, token
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def page():
    with chromium() as browser:
        page = browser.new_page()
        page.route("**/*", lambda route: route.continue_() if _near(route.request.url) else route.abort())
        yield page


def _near(url):
    return url.startswith(("file:", "data:", "about:", "http://127.0.0.1:"))


def nothing_runs(page):
    """Press all that can be pressed; nothing of the student's has run, and the verdict looks as it should."""
    page.wait_for_timeout(500)
    for press in page.get_by_text("press", exact=True).all():
        press.evaluate("element => element.click()")
    page.wait_for_timeout(500)
    assert page.evaluate("window.ran") is None
    assert page.get_by_text("press", exact=True).count() >= 3  # the injections are on the page, as text
    verdict = page.locator("div.verdict")
    assert verdict.count() == 1 and "the sum is a + b" in verdict.inner_text()
    assert verdict.evaluate("element => getComputedStyle(element).borderLeftWidth") == "4px"
    own = "element => !element.closest('.verdict') && (element.id || element.getAttribute('style'))"
    assert page.eval_on_selector_all(".text_cell_render *", f"all => all.filter({own}).length") == 0


def test_nothing_runs_in_feedback(graded, page):
    page.goto((graded / "feedback" / "eve" / NAME / "counting.html").as_uri())
    nothing_runs(page)


def test_nothing_runs_in_formgrader_and_its_fields_are_its_own(graded, server, page):
    address, token = server
    with Gradebook(f"sqlite:///{graded}/gradebook.db", "transformer_encoder") as gradebook:
        number = gradebook.find_submission(NAME, "eve").notebooks[0].id
    page.goto(f"{address}/formgrader/submissions/{number}/?token={token}")
    nothing_runs(page)
    assert page.locator("#check_add").evaluate("element => element.tagName") == "INPUT"
    for path in (f"manage_submissions/{NAME}", f"gradebook/{NAME}/counting", "manage_students/eve"):
        page.goto(f"{address}/formgrader/{path}?token={token}")
        page.wait_for_timeout(500)
        assert page.evaluate("window.ran") is None


def test_the_check_sees_what_runs(graded, page):
    (graded / "bad.html").write_text(INJECTIONS[0] + "<p>press</p>" * 3)
    page.goto((graded / "bad.html").as_uri())
    with pytest.raises(AssertionError):
        nothing_runs(page)


@pytest.mark.parametrize(
    ("source", "page"),
    [
        ("a **b** `c<d` $x < y$", "<p>a <strong>b</strong> <code>c&lt;d</code> $x &lt; y$</p>"),
        ("<details><summary>Hint</summary>x</details>", "<details><summary>Hint</summary>x</details>"),
        ("[b](https://example.org/)", '<p><a href="https://example.org/">b</a></p>'),
        ("[b](/formgrader/api)", "<p><a>b</a></p>"),
        ("![b](https://example.org/seen.png)", '<p><img alt="b"/></p>'),
        ("![b](data:image/png;base64,AAAA)", '<p><img alt="b" src="data:image/png;base64,AAAA"/></p>'),
        ("# check_add", "<h1>check_add</h1>"),
        ("<p id='check_add'>*b*</p>", "<p>&lt;p id='check_add'&gt;*b*&lt;/p&gt;</p>"),
        ("a<br>b <sub id=x>*2*</sub>", "<p>a<br/>b &lt;sub id=x&gt;<em>2</em></p>"),
        (r"$\href{javascript:1}{x}$ `\href`", r"<p>$\text{javascript:1}{x}$ <code>\href</code></p>"),
        (r"<details>$\hre&#102;{javascript:1}{x}$</details>", r"<details>$\text{javascript:1}{x}$</details>"),
        ("[b](data:text/html,x)", "<p><a>b</a></p>"),
        ("![b](attachment:x.png)", '<p><img alt="b"/></p>'),
        ("```perl\n<b>\n```", "<pre>&lt;b&gt;</pre>"),
    ],
)
def test_text_keeps_its_look_and_loses_what_reaches_out(source, page):
    assert markdown2html(source).strip().replace("\n", "") == page
