/**
 * A copy of a text that is to be kept. A part of a longer text, such as a key in a header, refers to all of that
 * text, which stays in memory as long as the part.
 */
export function flatCopy(text: string): string {
  // Writing the text and reading it again makes a new one. Every other operation may return a reference.
  return structuredClone(text)
}
