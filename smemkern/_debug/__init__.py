"""smemkern debug: a debugger in a terminal that steps to and fro in a recording."""
