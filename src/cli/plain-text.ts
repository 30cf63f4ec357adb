/** Characters that command a terminal, or hide or reorder text: all but newlines, and joiners of emoji. */
const UNSAFE = /(?![\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Makes an untrusted text safe to print: control characters become "?". */
export function plainText(text: string): string {
  return text.replaceAll(UNSAFE, '?')
}

/** JSON of a value, in which such characters are escaped. */
export function plainJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNSAFE, (character) =>
    Array.from({ length: character.length }, (_, at) => escaped(character.charCodeAt(at))).join(''),
  )
}

function escaped(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}
