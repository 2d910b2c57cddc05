// Takes expressions apart, computes them, sorts and counts their words, and writes them as JSON.
const random = (state => () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648)(42);
const pick = of => of[Math.floor(random() * of.length)];

class Node {
  constructor(operator, left, right) { Object.assign(this, { operator, left, right }); }
  value(of) {
    const [left, right] = [this.left.value(of), this.right.value(of)];
    switch (this.operator) {
      case "+": return (left + right) % 1000003;
      case "-": return left - right;
      case "*": return (left * right) % 1000003;
      default: return Math.max(left, right);
    }
  }
}
class Name { constructor(name) { this.name = name; } value(of) { return of.get(this.name) ?? 0; } }
class Literal { constructor(text) { this.number = parseInt(text, 10); } value() { return this.number; } }

const write = depth => depth === 0 ? (random() < 0.5 ? `${Math.floor(random() * 1000)}` : `x${Math.floor(random() * 50)}`)
  : `(${write(depth - 1)} ${pick(["+", "-", "*", "|"])} ${write(depth - (random() < 0.3 ? 1 : Math.min(2, depth)))})`;

function parse(text) {
  const tokens = text.match(/\d+|[a-z]\w*|[()+\-*|]/g);
  let at = 0;
  const expression = () => {
    let left = operand();
    while (at < tokens.length && tokens[at] !== ")") left = new Node(tokens[at++], left, operand());
    return left;
  };
  const operand = () => {
    const token = tokens[at++];
    if (token !== "(") return /^\d/.test(token) ? new Literal(token) : new Name(token);
    const inner = expression();
    at++;
    return inner;
  };
  return [expression(), tokens];
}

const counts = new Map(), values = new Map(Array.from({ length: 50 }, (_, i) => [`x${i}`, i * 31]));
let sum = 0, letters = 0;
for (let i = 0; i < 300; i++) {
  const [tree, tokens] = parse(write(7));
  for (let j = 0; j < 4; j++) {
    values.set(`x${j}`, sum % 97);
    sum = (sum + tree.value(values)) % 1000003;
  }
  for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
  const known = JSON.parse(JSON.stringify(tree));
  letters += JSON.stringify(known).replace(/"operator":/g, "").length;
}
const most = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).slice(0, 5);
`${sum} ${letters} ${most.map(([word, times]) => `${word}:${times}`).join(" ")}`;
