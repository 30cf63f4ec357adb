import { expect, test } from 'vitest'
import { redactedContent } from './redact-content.ts'

const MAIL = 'ann.lee@example.com'
const redacted = (text: string): string => String(redactedContent(Buffer.from(text)))

test.each([
  ['in a member', (data: string) => JSON.stringify({ file_data: data })],
  ['in a data URL', (data: string) => JSON.stringify({ url: `data:application/pdf;base64,${data}` })],
  ['in JSON in a text', (data: string) => JSON.stringify({ content: JSON.stringify({ source: { data } }) })],
  ['in an event', (data: string) => `data: ${JSON.stringify({ x: { data } })}\n\n`],
  ['with escaped slashes', (data: string) => JSON.stringify({ data }).replaceAll('/', '\\/')],
])('redaction of stored content reads a file of text in base64: %s', (_where, body) => {
  for (const encoding of ['utf8', 'utf16le'] as const) {
    const file = (text: string): string => Buffer.from(`\ufeff${text} ¿¿¿`, encoding).toString('base64')
    expect(redacted(body(file(`Write to ${MAIL}.`)))).toBe(
      body(file('Write to [REDACTED].')).replaceAll('\\/', '/'),
    )
    expect(redacted(body(file('Write to nobody.')))).toBe(body(file('Write to nobody.')))
  }
})
