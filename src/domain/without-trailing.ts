/**
 * Removes every `letter` at the end of `text`, in linear time; a regular expression such as `/0+$/` is
 * quadratic.
 */
export function withoutTrailing(text: string, letter: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === letter) end -= 1
  return text.slice(0, end)
}
