/**
 * Finds the known name of which `name` is probably a misspelling. At most `maxEdits` letters may differ; by
 * default a third of them, but at least two.
 */
export function findNearest(
  name: string,
  known: Iterable<string>,
  maxEdits = Math.max(2, Math.floor(name.length / 3)),
): string | undefined {
  let best: string | undefined
  let minEdits = maxEdits + 1
  const letters = name.toLowerCase()
  for (const given of known) {
    const candidate = given.toLowerCase()
    // The lengths decide first, because a name from outside may have a million letters.
    if (Math.abs(letters.length - candidate.length) >= minEdits) continue
    const edits = distance(letters, candidate)
    if (edits < minEdits) [best, minEdits] = [given, edits]
  }
  return best
}

/** Edit distance: the number of insertions, deletions and replacements between two texts. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [i, a] of from.split('').entries()) {
    const next = [i + 1]
    for (const [j, b] of to.split('').entries()) {
      const replaced = (row[j] ?? 0) + (a === b ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
