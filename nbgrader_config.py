# Read by nbgrader, formgrader and `make grade`, all started in this folder.
from encoder_grader import autograde

c = get_config()  # noqa: F821
autograde.install()

c.CourseDirectory.course_id = "transformer_encoder"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
# What lies beside a graded notebook for the grader is not part of the feedback.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", ".graded", "report.json"]

# nbgrader's own list, with two of ours: cells run in a cage and checks are judged outside it; a grade by hand lasts.
c.Autograde.autograde_preprocessors = [
    "encoder_grader.execute.Execute",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "encoder_grader.save_grades.SaveGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# Seconds for one cell, and for a whole notebook: an endless loop ends here.
c.Execute.timeout = 60
c.Execute.total_timeout = 600

# The part of the points that each day after the due date costs: 0.1, say. By default lateness costs nothing.
c.AssignLatePenalties.plugin_class = "encoder_grader.late.LatePenalty"
c.LatePenalty.per_day = 0.0

# Nothing that a student wrote can run in the browser of whoever reads feedback or grades in formgrader, or hold it up.
c.HTMLExporter.filters = {
    "markdown2html": "encoder_grader.pages.markdown_on_a_page",
    "highlight_code": "encoder_grader.pages.code_on_a_page",
    "strip_files_prefix": "encoder_grader.pages.unchanged",
}
