/** Returns numbers from 0 (inclusive) to 1 (exclusive); equal seeds give equal sequences. */
export type Random = () => number

/** Creates a generator (a Weyl sequence through a mixing function) seeded by the hash of a text. */
export function seededRandom(text: string): Random {
  let state = hash(text)
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
}

/** Picks a value; the list must not be empty. */
export function pickOne<T>(random: Random, values: readonly [T, ...T[]]): T {
  return values[Math.floor(random() * values.length)] ?? values[0]
}

export function shuffle<T>(random: Random, values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ value }) => value)
}

/** Computes the 32-bit FNV-1a hash of a text's UTF-16 units. */
function hash(text: string): number {
  let result = 0x811c9dc5
  for (let at = 0; at < text.length; at++) result = Math.imul(result ^ text.charCodeAt(at), 0x01000193)
  return result >>> 0
}
