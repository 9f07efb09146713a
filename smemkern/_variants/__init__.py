"""The rows of the table of variants, and which of them "auto" chooses."""
