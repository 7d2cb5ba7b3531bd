# Read by nbgrader, formgrader and `make grade`, all started in this folder.
c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "transformer_encoder"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
# What `make grade` leaves beside a graded notebook is not part of the feedback.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", ".graded"]

# A test cell that was deleted comes back, and is run.
c.OverwriteCells.add_missing_cells = True
# Seconds for one cell: an endless loop ends here.
c.Execute.timeout = 60
