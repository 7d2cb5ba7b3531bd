"""For all tests: the shapes in encoder_lib's signatures are checked at every call."""

from jaxtyping import install_import_hook

# before anything imports encoder_lib; a learner's calls are not checked
install_import_hook("encoder_lib", "beartype.beartype")
