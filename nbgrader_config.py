# Read by nbgrader, formgrader and `make grade`, all started in this folder.
c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "transformer_encoder"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
# What `make grade` leaves beside a graded notebook is not part of the feedback.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", ".graded"]

# A test cell that was deleted comes back, and is run.
c.OverwriteCells.add_missing_cells = True
# nbgrader's own list, with our Execute in the place of its own: cells run in a cage, and checks are judged outside it.
c.Autograde.autograde_preprocessors = [
    "encoder_grader.execute.Execute",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# Seconds for one cell, and for a whole notebook: an endless loop ends here.
c.Execute.timeout = 60
c.Execute.total_timeout = 600
