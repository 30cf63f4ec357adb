/** Removes pieces of halving size from an input while `holds` is still true, in at most `maxTries` tries. */
export async function minimizedInput(
  input: Buffer,
  maxTries: number,
  holds: (shorter: Buffer) => Promise<boolean>,
): Promise<Buffer> {
  let best = input
  let tries = 0
  for (let size = Math.ceil(input.length / 2); size >= 1 && tries < maxTries; size = Math.floor(size / 2)) {
    for (let at = 0; at < best.length && tries < maxTries; tries++) {
      const shorter = Buffer.concat([best.subarray(0, at), best.subarray(at + size)])
      if (await holds(shorter)) best = shorter
      else at += size
    }
  }
  return best
}
