"""Which kernels of the corpus are not compared, which differ, and why."""

# Not compared: how often these try, or where they write, is decided by who comes first.
BY_SCHEDULE = {
    "spin_lock": "threads try until they have the lock",
    "scan_look_back": "blocks read until their predecessors have published",
    "union_find": "trees are united in the order of arrival",
    "bfs": "who claims a node is who comes first",
    "compact_ballot-many": "warps write where the one before has left off",
    "string_search": "matches are written in the order of arrival",
    "atomics_double": "a loop of compare-and-swap",
}

# Compared, and different.
EXPLAINED = {
    "k_means": "float atomics are a loop, which goes round again where warps meet: modelled",
    "argmax": "64-bit `atomicMax` is a loop, which ends early where nothing changes: modelled",
    "spmv_scalar": "ptxas unrolls the loop; lanes whose rows differ in length leave it at "
    "different places, and their loads become requests of their own",
    "histogram_match": "the source loads `x[i]` twice, ptxas once",
    "global_state": "a variable of the module begins on a sector there, and not here",
    "recursion": "the counter has 20 requests more than the two stores that the machine code makes",
}
