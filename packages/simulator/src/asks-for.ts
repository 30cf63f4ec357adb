// Distance in characters beyond which a verb belongs to something else.
const MAX_DISTANCE = 80

/** Whether a text names `thing` shortly after one of the verbs, in the same sentence. `thing` is global. */
export function asksFor(text: string, thing: RegExp, verbs: RegExp): boolean {
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
