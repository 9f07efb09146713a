function ask({recordings}) {
  return recordings.map(({ data, steps }) => {
    const recording = decode(bytesOf(data));
    const { header } = recording;
    return steps.map((k) => ({
      registers: header.warps.map((_, warp) => header.registers.map((_, register) => {
        const bits = recording.register(warp, register, k);
        return bits && Array.from(bits);
      })),
      memories: header.memories.map((_, memory) => {
        const { values, last } = recording.memory(memory, k);
        const who = (word) => recording.wordAfter(memory, word, last[word]);
        const writers = Array.from(last.keys(), (word) => {
          const { warp, lane, step, instruction, written } = who(word);
          return written ? [warp, lane, step, instruction] : null;
        });
        const single = [0, last.length >> 1, last.length - 1].filter((word) => word in last);
        const agree = single.every((word) => recording.word(memory, word, k).value === values[word]);
        return { values: Array.from(values), writers, agree };
      }),
      lanes: header.warps.map((_, warp) => recording.lanes(warp, k).map(({ state }) => state)),
      accesses: recording.accesses(k).map((one) => ({ ...one, waves: Array.from(one.waves) })),
      events: recording.events(k),
    }));
  });
}
