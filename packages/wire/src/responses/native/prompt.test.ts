import { describe, expect, test } from 'vitest'
import { scanObject } from '../../json/json-scan.ts'
import { promptTextOf } from '../../prompt-text.ts'
import { promptBounds, RESPONSES_PROMPT_RULES } from './prompt.ts'

const promptText = (body: Buffer) => promptTextOf(body, RESPONSES_PROMPT_RULES, '')

const bytes = (request: object): Buffer => Buffer.from(JSON.stringify(request))
const bound = (request: object): number => promptBounds(scanObject(bytes(request))).promptBound
const replyContext = (input: unknown, fields: object = {}): object => ({ model: 'm', input, ...fields })
const base64 = (size: number): string => 'A'.repeat(size)
const said = (...content: readonly object[]): object[] => [{ role: 'user', content }]

describe('the upper bound of a responses prompt', () => {
  test("the upper bound of a responses prompt's tokens is at least the bytes of its text", () => {
    for (const text of ['hello'.repeat(100), '漢字'.repeat(100), '\u0000\n"'.repeat(100)])
      expect(bound(replyContext(text))).toBeGreaterThan(Buffer.byteLength(text))
  })

  test("the upper bound of a responses prompt's tokens is not raised for tools or media that the request does not contain", () => {
    const plain = replyContext('Hi', {
      max_output_tokens: 16,
      stream: true,
      store: false,
      include: [],
      tools: null,
    })
    // Markup for the message, and a template around the conversation.
    expect(bound(plain)).toBe(bytes(plain).length + 8 + 64)
    for (const feature of [{ reasoning: { effort: 'low' } }, { brand_new: 1 }])
      expect(bound({ ...plain, ...feature })).toBe(bytes({ ...plain, ...feature }).length + 8 + 64 + 256)
  })

  test('the upper bound of a responses prompt has room for the function that replaces another tool, in namespaces too', () => {
    const custom = { type: 'custom', name: 'c' }
    const more = (tools: readonly object[]): number =>
      bound(replyContext('Hi', { tools })) - bytes(replyContext('Hi', { tools })).length
    expect(more([custom]) - more([{ type: 'function', name: 'f' }])).toBe(160)
    expect(more([{ type: 'namespace', name: 'n', tools: [custom, custom] }])).toBe(
      more([custom, custom, custom]),
    )
  })

  test('the upper bound of a responses prompt counts media by their kind, in messages and in the outputs of tools', () => {
    const picture = { type: 'input_image', image_url: `data:image/png;base64,${base64(1_000_000)}` }
    const output = [{ type: 'function_call_output', call_id: 'c', output: [picture] }]
    for (const input of [said(picture), output]) {
      expect(bound(replyContext(input))).toBeGreaterThan(10_000)
      expect(bound(replyContext(input))).toBeLessThan(11_000)
    }
    const file = { type: 'input_file', file_data: `data:application/pdf;base64,${base64(100_000)}` }
    expect(bound(replyContext(said(file)))).toBeGreaterThan(100_000)
    // A data URL that is not an image counts as a document.
    const other = { type: 'input_image', image_url: `data:application/pdf;base64,${base64(100_000)}` }
    expect(bound(replyContext(said(other)))).toBeGreaterThan(100_000)
    const sound = { type: 'input_audio', input_audio: { data: base64(160_000), format: 'mp3' } }
    expect(bound(replyContext(said(sound)))).toBeLessThan(12_000)
  })
})

describe('the text that is counted', () => {
  const text = (request: object): string => promptText(bytes(request)).text

  test("the text from which a responses prompt's tokens are counted has all its texts, and nothing of its media", () => {
    const input = [
      { role: 'developer', content: 'rules' },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'question' },
          { type: 'input_image', image_url: `data:image/png;base64,${base64(999)}` },
        ],
      },
      {
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: 'thought' }],
        encrypted_content: base64(999),
      },
      { type: 'function_call', call_id: 'c', name: 'weather', arguments: '{"city":"Bern"}' },
      { type: 'function_call_output', call_id: 'c', output: 'sunny' },
      { type: 'custom_tool_call', call_id: 'd', name: 'sql', input: 'select' },
      { type: 'custom_tool_call_output', call_id: 'd', output: [{ type: 'input_text', text: 'rows' }] },
    ]
    const found = text(
      replyContext(input, { instructions: 'short', tools: [{ type: 'function', name: 'weather' }] }),
    )
    for (const word of [
      'rules',
      'question',
      'thought',
      'weather',
      'Bern',
      'sunny',
      'select',
      'rows',
      'short',
    ])
      expect(found).toContain(word)
    expect(found).not.toContain(base64(99))
  })

  test("the text from which a responses prompt's tokens are counted begins with the same text of the earlier turns", () => {
    const turn = { role: 'user', content: 'again' }
    const instructed = { instructions: 'short', tools: [{ type: 'function', name: 'weather' }] }
    expect(text(replyContext([turn, turn], instructed))).toBe(
      `${text(replyContext([turn], instructed))}\nuser\nagain`,
    )
  })

  test('a responses input that is a single text is counted from this text alone', () => {
    expect(promptText(bytes(replyContext('Hello'))).text).toBe('Hello')
  })
})
