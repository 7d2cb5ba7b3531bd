"""A kernel in a cage works as a kernel does."""


def test_a_cell_runs_and_sees_the_course(notebook, tmp_path):
    module = tmp_path / "given.py"
    module.write_text("number = 17")
    caged = notebook(course={"encoder_lib/given.py": module})
    assert caged.run("from encoder_lib.given import number; number + 2") == "19"
    assert caged.cage.why_dead() is None
