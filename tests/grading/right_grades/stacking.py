"""Chapter 6: student → the points of each exercise in the notebook's order, and what the feedback says."""

RIGHT = {
    "ada_full_marks": ((6, 5, 5, 5, 4, 3, 3, 6), "37.0 / 37.0"),
    "ben_untouched_stub": ((0, 0, 0, 0, 0, 0, 0, 0), "raised NotImplementedError"),
    "cleo_half_finished": ((6, 5, 5, 5, 0, 0, 0, 0), "raised NotImplementedError"),
    "dan_deleted_a_test": ((6, 5, 5, 5, 4, 3, 3, 6), "was missing; it came back"),
    # the encoders pass the mask on; her layer alone loses it
    "eve_lost_the_mask": ((5, 5, 5, 5, 4, 3, 1, 5), "your attention does not get the mask"),
    "fay_shared_one_layer": ((6, 3, 4, 5, 4, 2, 3, 6), "you made one layer and use it again and again"),
    "gus_forgot_the_final_norm": ((6, 4, 5, 4, 4, 1, 3, 6), "your class token stands behind the patches"),
    "hal_began_with_the_key": ((6, 5, 4, 5, 3, 3, 3, 0), "you take the fused matrix to begin with the keys"),
    # what is made of his layers is right, though they do not attend; a right candidate fails his test
    "ida_lost_the_attention": ((1, 5, 5, 4, 4, 3, 2, 0), "it fails a right one"),
}
