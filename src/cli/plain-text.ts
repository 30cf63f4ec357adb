/**
 * Characters that control a terminal, or that hide or reorder text; newlines and emoji joiners are allowed.
 */
const UNSAFE = /(?![\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Makes untrusted text safe to print: control characters become "?". */
export function plainText(text: string): string {
  return text.replaceAll(UNSAFE, '?')
}

/** Formats a value as JSON, with control characters escaped. */
export function plainJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNSAFE, (character) =>
    Array.from({ length: character.length }, (_, at) => escaped(character.charCodeAt(at))).join(''),
  )
}

function escaped(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}
