function ask({words, types}) {
  const wide = (type) => type.endsWith("64");
  return Object.fromEntries(types.map((type) => [
    type,
    words.map(([low, high]) => format(wide(type) ? [low, high] : [low], type)),
  ]));
}
