function ask({data}) {
  const recording = decode(bytesOf(data));
  const times = [];
  for (let i = 0; i < 40; i++) {
    const k = Math.floor(((i * 0.618) % 1) * recording.count);
    const start = performance.now();
    const warp = recording.warpAt(k);
    for (let register = 0; register < recording.header.registers.length; register ++)
      recording.register(warp, register, k);
    recording.memory(0, k);
    recording.lanes(warp, k);
    recording.accesses(k);
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  const before = performance.now();
  const view = new ReplayView(document.getElementById("view"), recording);
  return {count: recording.count, median: times[20], built: performance.now() - before};
}
