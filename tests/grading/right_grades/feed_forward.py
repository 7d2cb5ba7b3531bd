"""Chapter 5: student → the points of each exercise in the notebook's order, and what the feedback says."""

RIGHT = {
    "ada_full_marks": ((4, 5, 7, 4, 3, 5), "28.0 / 28.0"),
    "ben_untouched_stub": ((0, 0, 0, 0, 0, 0), "raised NotImplementedError"),
    "cleo_half_finished": ((4, 5, 7, 0, 0, 0), "raised NotImplementedError"),
    "dan_deleted_a_test": ((4, 5, 7, 4, 3, 5), "was missing; it came back"),
    "eve_bent_the_output": ((3, 5, 5, 4, 3, 4), "you applied max(0, ·) after the second map too"),
    "fay_left_out_the_bend": ((3, 5, 4, 4, 2, 4), "what remains is one linear map"),
    "gus_trusted_the_tanh": ((4, 2, 6, 3, 3, 5), "you used the tanh form where the exact one is asked for"),
    # the count of the work, too, is for one token
    "hal_counted_one_token": ((4, 5, 7, 2, 3, 2), "you counted for a single token"),
    "ida_called_the_library": ((4, 1, 6, 4, 1, 5), "which this exercise asks you to write yourself"),
}
