"""Times and counters of a GPU, beside what is predicted."""
