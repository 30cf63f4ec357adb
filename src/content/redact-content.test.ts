import { expect, test } from 'vitest'
import { redactedContent } from './redact-content.ts'

const MAIL = 'ann.lee@example.com'
const CARD = '4111 1111 1111 1111'
const redacted = (text: string): string => redactedContent(Buffer.from(text)).toString()

test('of JSON, only the strings that say something are written anew', () => {
  const before = `{ "model":"m",  "n":1700000000,"messages":[{"role":"user","content":"caf\\u00e9 `
  const after = ` ok"}],"plain":"caf\\u00e9"}\n`
  expect(redacted(`${before}${MAIL} and ${CARD}${after}`)).toBe(
    `{ "model":"m",  "n":1700000000,"messages":[{"role":"user","content":"café [REDACTED] and [REDACTED]${after}`,
  )
  expect(redacted(`${before}${after}`)).toBe(`${before}${after}`)
})

test('a value that is written with escapes is found, and so are names of members', () => {
  expect(redacted('{"a":"ann.lee\\u0040example.com","ann.lee@example.com":1}')).toBe(
    '{"a":"[REDACTED]","[REDACTED]":1}',
  )
})

test.each([
  ['chat', (text: string) => ({ choices: [{ index: 0, delta: { content: text } }] })],
  [
    'messages',
    (text: string) => ({ type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text } }),
  ],
  [
    'responses',
    (text: string) => ({ type: 'response.output_text.delta', item_id: 'i', content_index: 0, delta: text }),
  ],
  ['gemini', (text: string) => ({ candidates: [{ index: 0, content: { parts: [{ text }] } }] })],
])('in a stream of %s, a value is found however it is cut', (_, event) => {
  const said = `Write to ${MAIL}, or pay with ${CARD}.`
  for (let size = 1; size <= said.length; size += 1) {
    const pieces = said.match(new RegExp(`.{1,${size}}`, 'g')) ?? []
    const stream = pieces.map((piece) => `data: ${JSON.stringify(event(piece))}\n\n`).join('')
    const kept = redacted(`${stream}data: [DONE]\n\n`)
    const texts = [...kept.matchAll(/"(?:content|text|delta)":"((?:[^"\\]|\\.)*)"/g)].map(
      ([, text = '']) => text,
    )
    expect(texts.join('')).toBe('Write to [REDACTED], or pay with [REDACTED].')
    expect(kept.match(/^data: /gm)).toHaveLength(pieces.length + 1)
  }
})

test('choices of a stream do not continue each other', () => {
  const event = (index: number, content: string): string =>
    `data: ${JSON.stringify({ choices: [{ index, delta: { content } }] })}\n\n`
  const kept = redacted(event(0, 'ann.lee@') + event(1, 'or: ') + event(0, 'example.com') + event(1, 'x'))
  expect(kept).not.toContain('ann.lee')
  expect(kept).toContain('"or: "')
})

test('a generated array of contents is screened like the events of a stream', () => {
  const chunk = (text: string) => ({ candidates: [{ content: { parts: [{ text }] } }] })
  const kept = redacted(JSON.stringify([chunk('to ann.lee@exa'), chunk('mple.com now')]))
  expect(JSON.parse(kept)).toEqual([chunk('to [REDACTED]'), chunk(' now')])
})

test('a text that is neither, or that was cut off, is screened as it is', () => {
  expect(redacted(`to ${MAIL}`)).toBe('to [REDACTED]')
  expect(redacted(`{"content":"to ${MAIL}`)).toBe('{"content":"to [REDACTED]')
  expect(redacted(`${'['.repeat(200_000)}${MAIL}`)).not.toContain(MAIL)
})

test('bytes that are no text stay as they are', () => {
  const bytes = Buffer.from([0xff, 0xfe, 0x00])
  expect(redactedContent(bytes)).toBe(bytes)
})

test('of a stream that is cut in the middle of an event, all that is kept is without the value', () => {
  const event = (text: string): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`
  const kept = redacted(`${event('ann.lee@exa')}${event('mple.com and more')}data: {"choices":[{"del`)
  expect(kept).not.toMatch(/ann\.lee|mple\.com/)
  expect(kept).toContain('and more')
  expect(redacted(`${event(`a\u2028b ${MAIL}`)}data: [DONE]\n\n`)).not.toContain(MAIL)
})

test('a value behind an escape is found in JSON that is cut off', () => {
  const key = `sk-proj-${'aB3'.repeat(20)}`
  expect(redacted(`{"content":"first\\n${key} and`)).not.toContain(key)
})
