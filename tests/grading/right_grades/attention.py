"""Chapter 3: student → the points of each exercise in the notebook's order, and what the feedback says."""

RIGHT = {
    "ada_full_marks": ((3, 7, 3, 3, 8, 3, 4, 6), "37.0 / 37.0"),
    "ben_untouched_stub": ((0, 0, 0, 0, 0, 0, 0, 0), "raised NotImplementedError"),
    "cleo_half_finished": ((3, 7, 3, 3, 0, 0, 0, 0), "raised NotImplementedError"),
    "dan_deleted_a_test": ((3, 7, 3, 3, 8, 3, 4, 6), "was missing; it came back"),
    # 1's overflow makes empty rows and low or high scores of 2 not a number; 5 and the test of 8 use her function of 2
    "mia_forgot_the_scale": ((2, 2, 3, 3, 7, 2, 4, 0), "you left out the division by √d_k"),
    "ned_turned_the_masks_round": ((3, 7, 0, 3, 8, 2, 2, 6), "your True means ignore"),
    # 5 uses the function of 4
    "oda_viewed_the_heads": ((3, 7, 3, 2, 5, 3, 4, 5), "as one that uses one head would"),
    # 5 uses the function of 2
    "pia_hid_after_the_softmax": ((3, 6, 3, 3, 6, 3, 4, 4), "dropout acts in evaluation too"),
    "quin_left_nan": ((2, 5, 3, 3, 7, 3, 2, 6), "attention runs across the heads of one token"),
}
