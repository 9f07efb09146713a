// A trace as what the page shows: counts per source line, totals, the measures of exercises.

/** Lines with counts by file: Map(file -> Map(line -> {shared, global, hazards, inlined})). */
export function byLine(trace) {
  const files = new Map();
  const at = (file, line) => {
    const lines = files.get(file ?? "") ?? files.set(file ?? "", new Map()).get(file ?? "");
    if (!lines.has(line)) lines.set(line, { shared: [], global: [], hazards: [], inlined: false });
    return lines.get(line);
  };
  for (const site of trace.sites) {
    const seen = new Set();
    [[site.file, site.line], ...(site.callers ?? [])].forEach(([file, line], depth) => {
      if (seen.has(`${file}:${line}`)) return;
      seen.add(`${file}:${line}`);
      const found = at(file, line);
      found.inlined ||= depth > 0;
      found[site.shared ? "shared" : "global"].push(site);
    });
  }
  for (const hazard of hazardsOf(trace)) if (hazard.line) at(hazard.file, hazard.line).hazards.push(hazard);
  return files;
}

export const hazardsOf = (trace) => trace.hazards.filter((hazard) => !hazard.benign);

export const sum = (rows, name) => rows.reduce((total, row) => total + row[name], 0);

/** Wavefronts / ideal; 1 is free of conflicts. */
export function factorOf(rows) {
  const ideal = sum(rows, "ideal");
  return ideal ? sum(rows, "wavefronts") / ideal : 1;
}

export function totals(trace) {
  const shared = trace.sites.filter((site) => site.shared);
  const global = trace.sites.filter((site) => !site.shared);
  return {
    shared,
    global,
    sharedRequests: sum(shared, "requests"),
    sharedWavefronts: sum(shared, "wavefronts"),
    sharedIdeal: sum(shared, "ideal"),
    globalSectors: sum(global, "wavefronts"),
    factor: factorOf(shared),
    worst: Math.max(0, ...shared.map((site) => site.worst)),
  };
}

/** The figures that exercises limit, under the names of Python's Trace. */
export function measures(trace) {
  const { shared, global, ...sums } = totals(trace);
  return {
    hazards: hazardsOf(trace).length,
    shared_wavefronts: sums.sharedWavefronts,
    shared_requests: sums.sharedRequests,
    conflict_factor: Math.max(1, ...shared.map((site) => factorOf([site]))),
    shared_bytes: trace.sharedBytes,
    warp_instructions: trace.warpInstructions,
    barriers: trace.barriers,
    global_requests: sum(global, "requests"),
    global_sectors: sums.globalSectors,
    global_load_requests: sum(
      global.filter((site) => site.access === "load"),
      "requests",
    ),
  };
}
