/** Throws if a promise is broken. */
export function invariant(isKept: boolean, promise: string): asserts isKept {
  if (!isKept) throw new Error(`broken: ${promise}`)
}
