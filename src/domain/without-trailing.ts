/**
 * Removes every `letter` at the end of `text`. A regular expression such as `/0+$/` is not used, because it
 * takes quadratic time.
 */
export function withoutTrailing(text: string, letter: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === letter) end -= 1
  return text.slice(0, end)
}
