function ask({recordings}) {
  return recordings.map((data) => {
    try {
      const recording = decode(bytesOf(data));
      const k = recording.count >> 1;
      recording.memory(0, k);
      recording.lanes(0, k);
      return "read";
    } catch (error) {
      return `${error.name === "Error" ? error.constructor.name : error.name}: ${error.message}`;
    }
  });
}
