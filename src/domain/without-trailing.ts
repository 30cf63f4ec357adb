/**
 * `text` without the `letter`s at its end; an expression such as `/0+$/` takes the square of a text that is
 * full of them.
 */
export function withoutTrailing(text: string, letter: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === letter) end -= 1
  return text.slice(0, end)
}
