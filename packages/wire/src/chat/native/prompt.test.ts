import { describe, expect, test } from 'vitest'
import { scanObject } from '../../json/json-scan.ts'
import { promptTextOf } from '../../prompt-text.ts'
import { CHAT_PROMPT_RULES, promptBounds } from './prompt.ts'

const promptText = (body: Buffer) => promptTextOf(body, CHAT_PROMPT_RULES, '')

const bytes = (request: object): Buffer => Buffer.from(JSON.stringify(request))
const bound = (request: object): number => promptBounds(scanObject(bytes(request))).promptBound
const user = (content: unknown): object => ({ model: 'm', messages: [{ role: 'user', content }] })
const base64 = (size: number): string => 'A'.repeat(size)

describe('the upper bound of a chat prompt', () => {
  test("the upper bound of a chat prompt's tokens is at least the bytes of its text, in every script", () => {
    for (const text of ['hello'.repeat(100), '漢字'.repeat(100), '🙂'.repeat(100), '\u0000\n"'.repeat(100)]) {
      expect(bound(user(text))).toBeGreaterThan(Buffer.byteLength(text))
    }
  })

  test("the upper bound of a chat prompt's tokens grows with tools, formats and unknown fields", () => {
    const long = 'x'.repeat(5000)
    const plain = bound(user('hi'))
    for (const field of ['tools', 'functions', 'response_format', 'prediction', 'documents']) {
      expect(
        bound({ ...user('hi'), [field]: [{ type: 'function', function: { description: long } }] }) - plain,
      ).toBeGreaterThan(5000)
    }
  })

  test("the upper bound of a chat prompt's tokens is not raised for tools or formats that the request does not contain", () => {
    const plain = { ...user('Hi'), max_tokens: 5, n: 1, stream: true, temperature: 0, user: 'u', tools: null }
    // Markup for the message, and a template around the conversation.
    expect(bound(plain)).toBe(bytes(plain).length + 8 + 64)
    for (const feature of [
      { verbosity: 'low' },
      { reasoning_effort: 'low' },
      { web_search_options: {} },
      { plugins: [] },
    ])
      expect(bound({ ...plain, ...feature })).toBe(bytes({ ...plain, ...feature }).length + 8 + 64 + 256)
  })

  test.each(['tools', 'functions', 'response_format'])(
    "the upper bound of a chat prompt's tokens has room for the text that servers add because of the field %s",
    (field) => {
      const value = field === 'response_format' ? { type: 'json_object' } : []
      const request = { ...user('hi'), [field]: value }
      expect(bound(request) - bound(user('hi'))).toBe(
        Buffer.byteLength(`,"${field}":${JSON.stringify(value)}`) + 512 + 256,
      )
    },
  )

  test("the upper bound of a chat prompt's tokens has eight tokens for the beginning and end of each message", () => {
    const message = { role: 'user', content: '' }
    const many = bound({ model: 'm', messages: Array.from({ length: 100 }, () => message) })
    const one = bound({ model: 'm', messages: [message] })
    expect(many - one).toBe(99 * (JSON.stringify(message).length + 1 + 8))
  })

  test('an image adds the same number of tokens to the upper bound of a chat prompt, whatever its number of bytes', () => {
    const picture = (url: string, model = 'm'): number =>
      bound({ ...user([{ type: 'image_url', image_url: { url } }]), model })
    const small = picture(`data:image/png;base64,${base64(100)}`)
    expect(picture(`data:image/png;base64,${base64(5_000_000)}`)).toBe(small)
    expect(picture('https://example.com/a.png')).toBe(small)
    expect(small).toBeGreaterThan(10_000)
    expect(small).toBeLessThan(11_000)
    // 2,833 and 5,667 for each of up to eight tiles.
    expect(picture('https://example.com/a.png', 'gpt-4o-mini')).toBeGreaterThan(2833 + 8 * 5667)
  })

  test('the upper bound of a chat prompt counts sound by length, and a video or document by a fixed number of tokens', () => {
    const part = (type: string, size: number): number => {
      const held =
        type === 'video_url'
          ? { url: `data:video/mp4;base64,${base64(size)}` }
          : { [type === 'file' ? 'file_data' : 'data']: base64(size) }
      return bound(user([{ type, [type]: held }])) - bound(user([]))
    }
    // A minute of 16 kHz WAV is 2.56 million bytes of base64, and at most 32 tokens a second.
    expect(part('input_audio', 2_560_000)).toBeGreaterThan(60 * 32)
    expect(part('input_audio', 2_560_000)).toBeLessThan(200_000)
    expect(part('file', 1000)).toBeGreaterThan(20_000)
    // The largest common context, and the bytes around the data.
    expect(part('file', 10_000_000)).toBe(1_048_576 + '{"type":"file","file":{"file_data":}}'.length)
    expect(part('video_url', 10_000_000)).toBe(100_000 + '{"type":"video_url","video_url":{"url":}}'.length)
  })

  const text = base64(500_000)
  test.each([
    ['text as an image', { type: 'image_url', image_url: { url: `data:text/plain;base64,${text}` } }],
    ['text in the clear', { type: 'image_url', image_url: { url: `DATA:text/plain,${text}` } }],
    ['a URL without an object', { type: 'image_url', image_url: `data:application/pdf;base64,${text}` }],
    ['an invalid type', { type: 'image_url', image_url: { url: `data:image/€;base64,${text}` } }],
    ['no type', { type: 'image_url', image_url: { url: `data:;base64,${text}` } }],
    ['text as a film', { type: 'video_url', video_url: { url: `data:text/plain;base64,${text}` } }],
    ['text as sound', { type: 'input_audio', input_audio: { data: `data:text/plain;base64,${text}` } }],
    ['a PDF as sound', { type: 'input_audio', input_audio: { data: `JVBERi0x${text}`, format: 'x' } }],
    [
      'a PDF as sound, escaped',
      { type: 'input_audio', input_audio: { data: `J\nVBERi0x${text}`, format: 'x' } },
    ],
    ['no URL', { type: 'image_url', image_url: { other: text } }],
  ])(
    'the upper bound of a chat prompt counts media that do not match their declared type as a document: %s',
    (_, part) => {
      const grown = bound(user([part])) - bound(user([]))
      expect(grown).toBeGreaterThan(500_000)
      expect(grown).toBeLessThan(500_000 + 21_000)
    },
  )

  test('the upper bound of a chat prompt counts an image by its type, however its URL is written', () => {
    for (const url of ['data:Image/PNG;charset=x;BASE64,', 'data:image/png,', 'HTTPS://example.com/'])
      for (const image_url of [url + base64(100_000), { url: url + base64(100_000) }])
        expect(bound(user([{ type: 'image_url', image_url }]))).toBeLessThan(11_000)
    const slashes = JSON.stringify(
      user([{ type: 'image_url', image_url: `data:image/png,${base64(100_000)}` }]),
    )
    const escaped = Buffer.from(slashes.replaceAll('/', '\\/'))
    expect(promptBounds(scanObject(escaped)).promptBound).toBeLessThan(11_000)
  })

  test('the upper bound of a chat prompt counts the media of every message, and each of several in one message', () => {
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
    const plain = bound({ model: 'm', messages: [{ role: 'user', content: [] }] })
    const two = bound({
      model: 'm',
      messages: [
        { role: 'user', content: [image, { type: 'text', text: 'x' }, image] },
        { role: 'tool', content: [image] },
      ],
    })
    expect(two - plain).toBeGreaterThan(30_000)
    expect(two - plain).toBeLessThan(30_200)
  })

  test('the upper bound of a chat prompt counts an image wherever a message has a part: as its only part, and within reasoning', () => {
    const image = { type: 'image_url', image_url: { url: 'https://a.example/b' } }
    const text = { type: 'text', text: '' }
    for (const message of [
      (part: object) => ({ role: 'user', content: part }),
      (part: object) => ({ role: 'assistant', content: '', reasoning_details: [{ summary: [part] }] }),
    ]) {
      const of = (part: object): number => bound({ model: 'm', messages: [message(part)] })
      const bytesOfImage = JSON.stringify(image).length - JSON.stringify(text).length
      // The address itself is within the 10,000.
      expect(of(image) - of(text)).toBe(10_000 + bytesOfImage - '"https://a.example/b"'.length)
    }
  })

  test('message content of an unexpected form adds its bytes to the upper bound of a chat prompt', () => {
    for (const content of [
      null,
      1,
      {},
      [null, 1, 'x', {}, { type: 1 }, { type: 'new', data: base64(3000) }],
    ]) {
      expect(bound(user(content))).toBeGreaterThanOrEqual(bytes(user(content)).length)
    }
  })
})

describe('the text for counting', () => {
  test("the text from which a chat prompt's tokens are counted consists of the texts in messages and tools", () => {
    const { text } = promptText(
      bytes({
        model: 'm',
        messages: [
          { role: 'system', content: 'Be "short"\n' },
          {
            role: 'user',
            name: 'ann',
            content: [
              { type: 'text', text: 'look' },
              { type: 'text', text: 'here' },
            ],
          },
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              { id: 'c', type: 'function', function: { name: 'weather', arguments: '{"city":"Ulm"}' } },
            ],
          },
          { role: 'tool', tool_call_id: 'c', content: 'rain' },
        ],
        tools: [{ type: 'function', function: { name: 'weather', description: 'tells it' } }],
      }),
    )
    expect(text.split('\n')).toEqual([
      '[{"type":"function","function":{"name":"weather","description":"tells it"}}]',
      'system',
      'Be "short"',
      '',
      'user',
      'ann',
      'look',
      'here',
      'assistant',
      'weather',
      '{"city":"Ulm"}',
      'tool',
      'rain',
    ])
  })

  test("the text from which a chat prompt's tokens are counted begins with the same text of the earlier turns", () => {
    const turn = { role: 'user', content: 'again' }
    const asked = (...messages: object[]): string =>
      promptText(bytes({ model: 'm', messages, tools: [{}], response_format: { type: 'json_object' } })).text
    expect(asked(turn, turn)).toBe(`${asked(turn)}\nuser\nagain`)
  })

  test("the text from which a chat prompt's tokens are counted omits media, which add a fixed number of tokens each", () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${base64(1000)}` } }
    const plain = promptText(bytes(user([{ type: 'text', text: 'x' }])))
    const seen = promptText(bytes(user([{ type: 'text', text: 'x' }, image, image])))
    expect(seen.text).toBe(plain.text)
    expect(seen.extraTokens - plain.extraTokens).toBe(2000)
  })
})
