"""Is the bank model exact? Random requests, counted by Nsight Compute and by the emulator."""
