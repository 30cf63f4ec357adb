// Maximum distance, in characters, between a verb and the thing that it refers to.
const MAX_DISTANCE = 80

/**
 * Whether a text names `thing` shortly after one of the verbs, in the same sentence. The pattern `thing` must
 * have the flag `g`.
 */
export function asksForThing(text: string, thing: RegExp, verbs: RegExp): boolean {
  for (const { index } of text.matchAll(thing)) {
    const sentence =
      text
        .slice(Math.max(0, index - MAX_DISTANCE), index)
        .split(/[.\n]/)
        .at(-1) ?? ''
    if (verbs.test(sentence)) return true
  }
  return false
}
