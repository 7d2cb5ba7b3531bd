"""Chapter 2: student → the points of each exercise in the notebook's order, and what the feedback says."""

RIGHT = {
    "ada_full_marks": ((6, 6, 6, 5, 5), "28.0 / 28.0"),
    "ben_untouched_stub": ((0, 0, 0, 0, 0), "raised NotImplementedError"),
    "cleo_half_finished": ((6, 6, 0, 0, 0), "raised NotImplementedError"),
    "dan_deleted_a_test": ((6, 6, 6, 5, 5), "was missing; it came back"),
    # the column left over at an odd width is a cosine then, which costs a point more
    "mia_swapped_and_turned_back": ((3, 4, 5, 4, 4), "you swapped sine and cosine"),
    "ned_put_all_sines_first": ((4, 3, 5, 3, 3), "your positions count the sequences of the batch"),
    "oda_counted_the_2_twice": ((4, 3, 5, 4, 3), "your table is a parameter, so training changes it"),
    "pia_left_the_errors_to_torch": ((5, 5, 5, 4, 4), "you let the addition fail"),
    "rex_started_at_1_and_dropped_nothing": ((5, 2, 5, 4, 4), "your first row is that of position 1"),
}
