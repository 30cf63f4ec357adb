import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, type Part } from '../fixtures/form.ts'
import { byTier, pairsByDay } from '../runner/tier.ts'

/** What the guard of this file redacts, in a text that does not look like a word of a protocol. */
const CODE = 'code 4711 x'
const TEXT = `The number is ${CODE}, as agreed in the long meeting of last Monday.`
const LANES = ['chat', 'messages', 'gemini'] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced([...LANES]),
    channels: LANES.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    guards: [{ name: 'codes', do: 'redact', match: { regex: CODE } }],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** Every text that bytes may be read as. */
function readings(bytes: Buffer): string[] {
  const wide = (at: number): Buffer => Buffer.from(bytes.subarray(at, at + ((bytes.length - at) & ~1)))
  const plain = bytes.toString('latin1')
  const wides = [0, 1].flatMap((at) => [wide(at).toString('utf16le'), wide(at).swap16().toString('utf16le')])
  return [plain, plain.replaceAll('\0', ''), ...wides]
}

/** Whether anything in the bytes, decoded as often as it can be, has the code. */
function hasCode(bytes: Buffer, depth = 0): boolean {
  const texts = readings(bytes)
  if (texts.some((text) => text.includes(CODE) || unescaped(text).includes(CODE))) return true
  if (depth > 3) return false
  const text = texts[0] ?? ''
  return [text, text.replaceAll(/\\[rn]|[^\w+/="]/g, '')].some((one) =>
    [...one.matchAll(/[\w+/-]{16,}/g)].some(([piece]) => hasCode(Buffer.from(piece, 'base64'), depth + 1)),
  )
}

function unescaped(text: string): string {
  return text.replaceAll(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

async function isSentWithCode(lane: string, path: string, body: object | string): Promise<boolean> {
  fixture.upstream.script(lane, { kind: 'status', status: 400 })
  await call(fixture.gateway.url, body, { path, key: 'ann', headers: { 'x-goog-api-key': 'sk-ann' } })
  return fixture.upstream.received(lane).some((request) => hasCode(request.body))
}

const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64')
const wide = (text: string): Buffer => Buffer.from(text, 'utf16le')
const noise = Buffer.from(Array.from({ length: 3000 }, (_, at) => (at * 7919 + 13) % 256))
const quadruple = (text: string): Buffer =>
  Buffer.concat(Array.from(text, (unit) => Buffer.from(`${unit}\0\0\0`, 'latin1')))

const FILES: readonly (readonly [what: string, bytes: Buffer])[] = [
  ['UTF-8', Buffer.from(TEXT)],
  ['UTF-8 with a mark', Buffer.from(`\ufeff${TEXT}`)],
  ['UTF-16', wide(`\ufeff${TEXT}`)],
  ['UTF-16 in the other order', wide(`\ufeff${TEXT}`).swap16()],
  ['UTF-16 without a mark', wide(TEXT)],
  ['UTF-16 of an odd length', Buffer.concat([wide(TEXT), Buffer.from('x')])],
  ['UTF-16 behind other scripts', wide('日本語の文章です。'.repeat(300) + TEXT)],
  ['UTF-32', quadruple(TEXT)],
  ['Latin-1', Buffer.from(`é ${TEXT} ü`, 'latin1')],
  ['UTF-8 behind a wrong byte', Buffer.concat([Buffer.from([0xff]), Buffer.from(TEXT)])],
  ['UTF-8 in front of half a character', Buffer.concat([Buffer.from(TEXT), Buffer.from([0xc3])])],
  ['zeros in front', Buffer.concat([Buffer.alloc(4), Buffer.from(TEXT)])],
  ['control characters', Buffer.from(TEXT.replaceAll(' as', '\x01as'))],
  ['the beginning of an image', Buffer.from(`GIF89a${TEXT}`)],
  ['the beginning of a recording', Buffer.from(`ID3${TEXT}`)],
  ['HTML', Buffer.from(`<html><p>${TEXT}</p></html>`)],
  ['a data URL in JSON', Buffer.from(JSON.stringify({ file: `data:text/plain;base64,${base64(TEXT)}` }))],
  ['base64', Buffer.from(base64(TEXT))],
  ['a letter with a part in base64', Buffer.from(`Content-Type: text/plain\r\n\r\n${base64(TEXT)}\r\n`)],
  ['a long text', Buffer.from(`${'lorem ipsum '.repeat(3000)}${TEXT}`)],
  ['noise in the middle', Buffer.concat([Buffer.from('x'.repeat(5000)), noise, Buffer.from(TEXT)])],
]
const TYPES = [
  'text/plain',
  'application/octet-stream',
  'image/png',
  'text/plain; charset=utf-16',
  'application/pdf',
]

/** A request with a file, at each client dialect. */
const places = (
  lane: string,
  type: string,
  data: string,
): readonly (readonly [path: string, body: object])[] => [
  [
    '/v1/chat/completions',
    {
      model: lane,
      messages: [
        {
          role: 'user',
          content: [{ type: 'file', file: { filename: 'a', file_data: `data:${type};base64,${data}` } }],
        },
      ],
    },
  ],
  [
    '/v1/messages',
    {
      model: lane,
      max_tokens: 5,
      messages: [
        { role: 'user', content: [{ type: 'document', source: { type: 'base64', media_type: type, data } }] },
      ],
    },
  ],
  [
    `/v1beta/models/${lane}:generateContent`,
    { contents: [{ role: 'user', parts: [{ inlineData: { mimeType: type, data } }] }] },
  ],
]

/** The requests with a file: all at night, pairs of channel, file, media type and client by day. */
function requestsOf<File>(
  files: readonly File[],
): readonly (readonly [lane: string, file: File, type: string, place: number])[] {
  return pairsByDay(
    LANES.flatMap((lane) =>
      files.flatMap((file) =>
        TYPES.flatMap((type) => [0, 1, 2].map((place) => [lane, file, type, place] as const)),
      ),
    ),
  )
}

async function isFileSentWithCode(lane: string, type: string, place: number, data: string): Promise<boolean> {
  const [path = '', body = {}] = places(lane, type, data)[place] ?? []
  return isSentWithCode(lane, path, body)
}

const data = base64(`${TEXT} ¿¿¿ `)
const SPELLINGS: readonly (readonly [how: string, data: string])[] = [
  ['for URLs', Buffer.from(`${TEXT} ¿¿¿`).toString('base64url')],
  ['without padding', data.replace(/=+$/, '')],
  ['in lines', data.replaceAll(/.{76}/g, '$&\r\n')],
  ['in lines of odd lengths', data.replaceAll(/.{13}/g, '$&\n')],
  ['with spaces', data.replaceAll(/.{4}/g, '$& ')],
  ['behind other base64', `${base64('ab')}${data}`],
  ['with other characters', data.replaceAll(/.{3}/g, '$&!')],
  ['with zero characters', data.replaceAll(/.{9}/g, '$&\0')],
  ['in quotes', `"${data}"`],
  ['behind a comma', `base64,${data}`],
  ['with more padding', `${data}====`],
]

test('a file is checked, whatever its bytes are and its media type states', async () => {
  for (const [lane, [what, bytes], type, place] of requestsOf(FILES))
    expect([what, lane, type, place, await isFileSentWithCode(lane, type, place, base64(bytes))]).toEqual([
      what,
      lane,
      type,
      place,
      false,
    ])
})

test('a file in base64 is checked, however it is written', async () => {
  for (const [lane, [how, spelled], type, place] of requestsOf(SPELLINGS))
    expect([how, lane, type, place, await isFileSentWithCode(lane, type, place, spelled)]).toEqual([
      how,
      lane,
      type,
      place,
      false,
    ])
})

describe.each(LANES)('at a channel of %s', (lane) => {
  test.each([
    ['in capitals', `DATA:TEXT/PLAIN;BASE64,${data}`],
    ['with spaces', `data:text/plain; base64 ,${data}`],
    ['without a type', `data:;base64,${data}`],
    ['with parameters', `data:text/plain;charset="utf-8";name=a.txt;base64,${data}`],
    ['with a comma in a parameter', `data:text/plain;x="a,b";base64,${data}`],
    [
      'in percent',
      `data:text/plain;base64,${Array.from(data, (unit) => `%${unit.charCodeAt(0).toString(16)}`).join('')}`,
    ],
    ['without base64', `data:text/plain,${encodeURIComponent(TEXT)}`],
    ['as it stands', `data:,${TEXT}`],
    ['with the text for a parameter', `data:text/plain;${CODE};base64,aGk=`],
    ['with a long parameter', `data:text/plain;a=${'x'.repeat(1100)};base64,${data}`],
  ])('a data URL %s is checked', async (_how, url) => {
    const contents: readonly object[] = [
      { type: 'image_url', image_url: { url } },
      { type: 'file', file: { filename: 'a', file_data: url } },
      { type: 'input_audio', input_audio: { format: 'mp3', data: url } },
    ]
    for (const content of contents) {
      const body = { model: lane, messages: [{ role: 'user', content: [content] }] }
      expect([content, await isSentWithCode(lane, '/v1/chat/completions', body)]).toEqual([content, false])
    }
  })

  test('a file in the JSON of a tool result is checked, at any depth of escapes', async () => {
    let content = JSON.stringify([{ type: 'document', source: { type: 'base64', data } }])
    for (let depth = 0; depth < 4; depth += 1) {
      const messages = [
        {
          role: 'assistant',
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: content } }],
        },
        { role: 'tool', tool_call_id: 'c', content: `Result: ${content}` },
      ]
      expect(await isSentWithCode(lane, '/v1/chat/completions', { model: lane, messages })).toBe(false)
      content = JSON.stringify({ result: content })
    }
  })
})

describe('a form', () => {
  const isFormSentWithCode = async (part: Part, edit = (text: string): string => text): Promise<boolean> => {
    fixture.upstream.script('chat', { kind: 'status', status: 400 })
    const picture = {
      name: 'image',
      filename: 'a.png',
      type: 'image/png',
      content: Buffer.from('89504e470d0a1a0a', 'hex'),
    }
    const form = formBytes([{ name: 'model', content: 'chat' }, picture, part])
    const body = Buffer.from(edit(form.toString('latin1')), 'latin1')
    await call(fixture.gateway.url, body, formCall('/v1/images/edits', 'ann', body))
    expect(fixture.upstream.received('chat')).toHaveLength(1)
    return fixture.upstream.received('chat').some((request) => hasCode(request.body))
  }

  test.each(FILES)('a file of %s is checked, and so is a field', async (_what, content) => {
    for (const type of byTier(TYPES.slice(0, 2), TYPES))
      expect(await isFormSentWithCode({ name: 'mask', filename: 'a', type, content })).toBe(false)
    expect(await isFormSentWithCode({ name: 'prompt', content })).toBe(false)
  })

  test.each([
    ['in escapes', "filename*=UTF-8''code%204711%20x.png"],
    ['in escapes beside another one', 'filename="a.png"; filename*=UTF-8\'\'code%204711%20x.png'],
    ['in escapes in quotes', 'filename="code%204711%20x.png"'],
    ['beside another parameter', `filename="a.png"; note="${CODE}"`],
  ])('the name of a file is checked: %s', async (_how, name) => {
    const part = { name: 'mask', filename: 'NAME', type: 'image/png', content: noise }
    expect(await isFormSentWithCode(part, (text) => text.replace('filename="NAME"', name))).toBe(false)
  })
})

test('a header that is sent on has nothing but words', async () => {
  fixture.upstream.script('messages', { kind: 'status', status: 400 })
  const body = { model: 'messages', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
  const headers = { 'anthropic-beta': `a-2025-01-01,${CODE}`, 'anthropic-version': CODE }
  await call(fixture.gateway.url, body, { path: '/v1/messages', key: 'ann', headers })
  const [sent] = fixture.upstream.received('messages')
  expect(JSON.stringify(sent?.headers)).not.toContain(CODE)
})
