// The characters of a number in JSON text, at a path of member names: what a parser would round is compared as it
// stands. null: not there.
export function raw_number(text, path) {
  let at = 0;
  const space = () => {
    while (/\s/.test(text[at])) at++;
  };
  const string = () => {
    const from = at++;
    while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
    at++;
    return JSON.parse(text.slice(from, at));
  };
  // Reads a value; returns the raw number behind `rest`, or null.
  const value = rest => {
    space();
    if (text[at] === '"') {
      string();
      return null;
    }
    if (text[at] === '{' || text[at] === '[') {
      const close = text[at] === '{' ? '}' : ']';
      let found = null;
      at++;
      for (space(); text[at] !== close; space()) {
        if (text[at] === ',') {
          at++;
          continue;
        }
        let inside = null;
        if (close === '}') {
          const name = string();
          space();
          at++; // the colon
          if (rest && rest.length && rest[0] === name) inside = rest.slice(1);
        }
        const raw = value(inside);
        if (raw !== null) found = raw;
      }
      at++;
      return found;
    }
    const from = at;
    while (at < text.length && !/[\s,}\]]/.test(text[at])) at++;
    return rest && rest.length === 0 ? text.slice(from, at) : null;
  };
  return value(path);
}
