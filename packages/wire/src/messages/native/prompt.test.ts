import { describe, expect, test } from 'vitest'
import { scanObject } from '../../json/json-scan.ts'
import { promptTextOf } from '../../prompt-text.ts'
import { MESSAGES_PROMPT_RULES, promptBounds } from './prompt.ts'

const promptText = (body: Buffer) => promptTextOf(body, MESSAGES_PROMPT_RULES, '')

const request = (fields: object): Buffer =>
  Buffer.from(JSON.stringify({ model: 'm', max_tokens: 1, messages: [], ...fields }))
const says = (...content: object[]) => ({ messages: [{ role: 'user', content }] })
const bound = (fields: object): number => promptBounds(scanObject(request(fields))).promptBound
const picture = (size: number) => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(size) },
})

describe('the upper bound of a messages prompt', () => {
  test("the upper bound of a messages prompt's tokens is at least the bytes of its text, whatever the text is", () => {
    for (const text of ['a'.repeat(500), '漢字'.repeat(100), '']) {
      const fields = says({ type: 'text', text })
      expect(bound(fields)).toBeGreaterThan(Buffer.byteLength(text))
    }
  })

  test("the upper bound of a messages prompt's tokens is not raised for tools or media that the request does not contain", () => {
    const plain = { ...says({ type: 'text', text: 'Hi' }), system: 's', stream: true, thinking: null }
    // Markup for the message, and a template around the conversation.
    expect(bound(plain)).toBe(request(plain).length + 8 + 64)
    for (const feature of [{ thinking: { type: 'adaptive' } }, { output_config: {} }, { mcp_servers: [] }])
      expect(bound({ ...plain, ...feature })).toBe(request({ ...plain, ...feature }).length + 8 + 64 + 256)
  })

  test("the upper bound of a messages prompt's tokens counts an image by its kind and not its bytes, in tool results too", () => {
    const result = (block: object) => says({ type: 'tool_result', tool_use_id: 'a', content: [block] })
    for (const wrap of [says, result]) {
      const small = bound(wrap(picture(10)))
      expect(bound(wrap(picture(5_000_000)))).toBe(small)
      expect(small).toBeGreaterThan(10_000)
      expect(small).toBeLessThan(11_000)
    }
  })

  test('the upper bound of a messages prompt counts a document of text as its text, and any other as its pages', () => {
    const text = {
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: 'x'.repeat(1000) },
    }
    expect(bound(says(text))).toBeLessThan(2000)
    const pdf = { type: 'document', source: { type: 'url', url: 'https://a/b.pdf' } }
    expect(bound(says(pdf))).toBeGreaterThan(20_000)
  })

  const data = 'A'.repeat(500_000)
  test.each([
    ['an image of text', { type: 'image', source: { type: 'base64', media_type: 'text/plain', data } }],
    ['an image of no type', { type: 'image', source: { type: 'base64', data } }],
    ['an image by a data URL', { type: 'image', source: { type: 'url', url: `data:text/plain,${data}` } }],
    [
      'a document of text as base64',
      { type: 'document', source: { type: 'base64', media_type: 'text/plain', data } },
    ],
  ])('the upper bound of a messages prompt counts content that may be text by its bytes: %s', (_, block) => {
    expect(bound(says(block))).toBeGreaterThan(500_000)
    expect(bound(says(block))).toBeLessThan(521_000)
  })

  test('the upper bound of a messages prompt counts a document as at most the largest common context', () => {
    const source = { type: 'base64', media_type: 'application/pdf', data: 'A'.repeat(3_000_000) }
    const around = JSON.stringify({ type: 'document', source: { ...source, data: '' } }).length - '""'.length
    expect(bound(says({ type: 'document', source })) - bound(says())).toBe(1_048_576 + around)
  })

  test('the upper bound of a messages prompt counts an image within the content of a document, too', () => {
    const image = { type: 'image', source: { type: 'url', url: 'https://a/b.png' } }
    const within = { type: 'document', source: { type: 'content', content: [image, image] } }
    expect(bound(says(within))).toBeGreaterThan(20_000)
    expect(bound(says(within))).toBeLessThan(21_000)
  })

  test('the upper bound of a messages prompt grows with tools, and more with tools of the provider than of the client', () => {
    const own = { type: 'web_search_20250305', name: 'web_search' }
    const callers = { name: 'f', input_schema: {} }
    expect(bound({ tools: [callers] }) - bound({})).toBeGreaterThan(500)
    expect(bound({ tools: [own] }) - bound({})).toBeGreaterThan(2000)
  })
})

describe('the text to count', () => {
  test("the text from which a messages prompt's tokens are counted is everything that the model reads", () => {
    const fields = {
      system: [{ type: 'text', text: 'S' }],
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: 'U' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'T', signature: 'sig' },
            { type: 'redacted_thinking', data: 'R' },
            { type: 'tool_use', id: 'a', name: 'f', input: { q: 1 } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: 'plain' },
            { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'block' }, picture(9)] },
            { type: 'document', title: 'D', source: { type: 'text', media_type: 'text/plain', data: 'doc' } },
            { type: 'search_result', title: 'found' },
          ],
        },
      ],
    }
    const { text, extraTokens } = promptText(request(fields))
    expect(text.split('\n')).toEqual([
      'S',
      '[{"name":"f","input_schema":{"type":"object"}}]',
      'U',
      'T',
      'f',
      '{"q":1}',
      'plain',
      'block',
      'D',
      'doc',
      'found',
    ])
    // An image, and one token of hidden thoughts.
    expect(extraTokens).toBe(3 + 3 * 4 + 1000 + 1)
  })

  test.each([
    [{ output_config: { effort: 'low', format: { type: 'json_schema' } } }, '{"type":"json_schema"}'],
    [{ output_format: { type: 'json_schema' } }, '{"type":"json_schema"}'],
    [{ output_config: { effort: 'low' } }, ''],
    [{ output_config: { format: {} }, output_format: null }, '{}'],
    [{ output_config: 5, output_format: null }, ''],
  ])(
    "the text from which a messages prompt's tokens are counted has the requested output format, but no other setting: %j",
    (fields, text) => {
      expect(promptText(request(fields)).text).toBe(text)
    },
  )

  test("the text from which a messages prompt's tokens are counted begins with the same text of the earlier turns", () => {
    const turn = { role: 'user', content: 'again' }
    const replyContext = (...messages: object[]): string =>
      promptText(request({ system: 'S', messages, tools: [{ name: 'f' }], output_format: { type: 'json' } }))
        .text
    expect(replyContext(turn, turn)).toBe(`${replyContext(turn)}\nagain`)
  })

  test("the text from which a messages prompt's tokens are counted is empty for an invalid request", () => {
    expect(
      promptText(request({ messages: [1, { role: 'user' }, { content: 5 }, { content: [1, {}] }] })).text,
    ).toBe('')
  })
})
