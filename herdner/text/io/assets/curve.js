// Shape of the curve that links two mentions, in the pages of `herdner serve` and in HTML files.
/** Returns the path between two names: an arch above a line of text, or an S from below one name to above the other. */
export function curve(a, b, origin) {
  if (!a || !b) return "";
  const x1 = a.left + a.width / 2 - origin.left;
  const x2 = b.left + b.width / 2 - origin.left;
  const top1 = a.top - origin.top;
  const top2 = b.top - origin.top;
  const f = (value) => value.toFixed(1);
  if (Math.abs(top1 - top2) < a.height / 2) {
    const height = Math.min(9 + Math.abs(x2 - x1) * 0.06, 26);
    return `M${f(x1)} ${f(top1)}C${f(x1)} ${f(top1 - height)} ${f(x2)} ${f(top2 - height)} ${f(x2)} ${f(top2)}`;
  }
  const bottom = a.bottom - origin.top;
  const distance = top2 - bottom;
  const pull = Math.max(distance * 0.42, 5);
  // A straight line between names in the same column would be hidden by the text between them.
  const bow = Math.abs(x2 - x1) < 60 ? Math.min(18 + distance * 0.12, 60) * (x1 < origin.width / 2 ? 1 : -1) : 0;
  return `M${f(x1)} ${f(bottom)}C${f(x1 + bow)} ${f(bottom + pull)} ${f(x2 + bow)} ${f(top2 - pull)} ${f(x2)} ${f(top2)}`;
}
