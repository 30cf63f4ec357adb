import { asRecord } from './json/record.ts'

/** Texts of a value, one below the other; other values are left out. */
function lines(...values: readonly unknown[]): string {
  return values.filter((value) => typeof value === 'string' && value !== '').join('\n')
}

/** How blocks of Anthropic's protocol that others lack are written as text, by their type. */
const WRITERS: ReadonlyMap<string, (block: Readonly<Record<string, unknown>>) => string> = new Map([
  [
    'search_result',
    ({ title, source, content }) => {
      const texts = Array.isArray(content) ? content.map((part) => asRecord(part)?.['text']) : [content]
      return [lines(title, source), lines(...texts)].filter((text) => text !== '').join('\n\n')
    },
  ],
  ['web_search_result', ({ title, url, page_age: age }) => lines(title, url, age)],
  ['tool_reference', ({ tool_name: name }) => lines(name)],
])

/**
 * The text of a content part that a protocol does not have, but a client may send all the same: parts with a
 * member `text`, whatever their type, and results of searches. Undefined for other parts.
 */
export function textOfForeignPart(
  type: unknown,
  part: Readonly<Record<string, unknown>>,
): string | undefined {
  const { text } = part
  if (typeof text === 'string') return text
  const written = typeof type === 'string' ? WRITERS.get(type)?.(part) : undefined
  return written === '' ? undefined : written
}
