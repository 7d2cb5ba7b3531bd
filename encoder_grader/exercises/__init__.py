"""The exercises: one file a chapter, one entry an exercise. They never enter the process that runs a learner's code."""
