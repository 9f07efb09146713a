// Integer expressions as in C, of named values.

const LEVELS = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]];
const APPLY = {
  "|": (a, b) => a | b,
  "^": (a, b) => a ^ b,
  "&": (a, b) => a & b,
  "<<": (a, b) => a * 2 ** b,
  ">>": (a, b) => Math.floor(a / 2 ** b),
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => Math.trunc(a / b),
  "%": (a, b) => a % b,
};
const MOST_TOKENS = 1000; // bounds the depth of the parser's recursion

class Parser {
  constructor(text) {
    this.text = text;
    this.tokens = text.match(/0x[\da-f]+|\d+|[a-z_][\w.]*|<<|>>|\S/gi) ?? [];
    this.at = 0;
    if (this.tokens.length > MOST_TOKENS) this.fail(`more than ${MOST_TOKENS} symbols`);
  }

  fail(what) {
    throw Error(`“${this.text}”: ${what}.`);
  }

  primary() {
    const token = this.tokens[this.at++];
    if (token === undefined) this.fail("expected a number or a name at the end");
    if (token === "-") {
      const value = this.primary();
      return (names) => -value(names);
    }
    if (token === "(") {
      const value = this.binary(0);
      if (this.tokens[this.at++] !== ")") this.fail("expected )");
      return value;
    }
    if (/^\d/.test(token)) return () => Number(token);
    if (!/^[a-z_]/i.test(token)) this.fail(`unexpected ${token}`);
    const name = token === "threadIdx.x" ? "lane" : token;
    return (names) =>
      Object.hasOwn(names, name)
        ? names[name]
        : this.fail(`unknown name ${token}; there are ${Object.keys(names).join(", ")}`);
  }

  binary(level) {
    if (level === LEVELS.length) return this.primary();
    let left = this.binary(level + 1);
    while (LEVELS[level].includes(this.tokens[this.at])) {
      const operator = this.tokens[this.at++];
      const a = left;
      const b = this.binary(level + 1);
      left = (names) => {
        const right = b(names);
        if (right === 0 && "/%".includes(operator)) this.fail("division by 0");
        return APPLY[operator](a(names), right);
      };
    }
    return left;
  }
}

/** Parses a formula into a function of {name: value}. Throws an Error that describes what is wrong. */
export function parseFormula(text) {
  const parser = new Parser(text);
  const value = parser.binary(0);
  if (parser.at < parser.tokens.length) parser.fail(`unexpected ${parser.tokens[parser.at]}`);
  return (names) => {
    const result = value(names);
    return Number.isSafeInteger(result) ? result : parser.fail("the result is not an integer below 2^53");
  };
}
