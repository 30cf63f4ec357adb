import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { GRAMMARS } from '../conversion/grammar.ts'
import { MODEL } from '../conversion/fixture.ts'
import { audit } from '../fixtures/auditor.ts'
import {
  type Behaviour,
  completionText,
  contentFrame,
  DONE_FRAME,
  errorBody,
  finishFrame,
  roleFrame,
  type Streamed,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { chunkFrame } from '../fixtures/chat-behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { eventFrame, messageFrames, messagesErrorText, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'
import { retryWhileOverloaded, type Fixture, startFixture } from '../fixtures/fixture.ts'

type Protocol = 'chat' | 'messages'
const PROTOCOLS = ['chat', 'messages'] as const
const QUOTA = 1_000_000_000_000
const IDLE_MS = 500
/** Models whose channels have this idle timeout; the others have none that a slow machine could reach. */
const SILENT = { chat: 'silent-chat', messages: 'silent-messages' } as const
/** Invalid output may be large; endless output that was kept would be larger than this. */
const MAX_BYTES = 512 << 20

let fixture: Fixture
beforeAll(async () => {
  // Every upstream here begins to answer at once, however long the machine takes.
  const timeouts = { connect: '30s', first_byte: '30s', idle: '30s' }
  const short = { ...timeouts, idle: `${IDLE_MS}ms` }
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced([MODEL.chat, MODEL.messages, ...Object.values(SILENT)]),
    channels: PROTOCOLS.flatMap((protocol) => [
      channel(MODEL[protocol], upstream.baseUrl(MODEL[protocol]), { protocol, timeouts }),
      channel(SILENT[protocol], upstream.baseUrl(SILENT[protocol]), { protocol, timeouts: short }),
    ]),
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })])],
  }))
})
afterAll(() => fixture?.close())

interface DialectPair {
  readonly client: Protocol
  readonly upstream: Protocol
}
const PAIRS: readonly DialectPair[] = PROTOCOLS.flatMap((client) =>
  PROTOCOLS.map((upstream) => ({ client, upstream })),
)
const isNative = ({ client, upstream }: DialectPair): boolean => client === upstream

const ask = (
  pair: DialectPair,
  stream: boolean,
  { model = MODEL[pair.upstream], content = 'hi' }: { model?: string; content?: string } = {},
) =>
  fixture.live(
    'ann',
    { model, max_tokens: 1000, stream, messages: [{ role: 'user', content }] },
    { path: pair.client === 'chat' ? '/v1/chat/completions' : '/v1/messages' },
  )

const play = async (pair: DialectPair, stream: boolean, behaviour: Behaviour) => {
  fixture.upstream.script(MODEL[pair.upstream], behaviour)
  const answer = await retryWhileOverloaded(async () => (await ask(pair, stream)).end())
  return {
    ...answer,
    name: `${pair.client} client, ${pair.upstream} upstream, ${stream ? 'stream' : 'whole'}`,
  }
}

/** The gateway's charge for a response; the row of a failed call may not be on the disk yet. */
const chargeOf = async ({ headers }: { headers: Record<string, unknown> }): Promise<number | undefined> => {
  const row = () => databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))
  await expect.poll(row, { interval: 5 }).toBeDefined()
  return row()?.quota
}

const TYPES = { chat: 'api_error', messages: 'gateway_error' } as const
const INSIDE = /<html|node_modules|node:internal|127\.0\.0\.1|upstream-key/

const whole = (body: string | Buffer, headers: Record<string, string | string[]> = {}): Behaviour => ({
  kind: 'whole',
  body,
  headers,
})
const streamed = (frames: readonly string[], more: Partial<Streamed> = {}): Behaviour => ({
  kind: 'stream',
  frames,
  ending: 'no done',
  ...more,
})
const sse = (bytes: string | Buffer): Behaviour => ({
  kind: 'raw',
  bytes: Buffer.concat([
    Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n'),
    Buffer.from(bytes as string),
  ]),
  ending: 'close',
})

const TEXT = 'Zoë 😀 says 漢字'
/** A valid response of either dialect. */
const GOOD = {
  chat: {
    whole: completionText(TEXT, usageText(10, 5)),
    frames: [roleFrame(), contentFrame(TEXT), finishFrame(), usageFrame(usageText(10, 5)), DONE_FRAME],
  },
  messages: {
    whole: wholeMessage([{ text: TEXT }]).body as string,
    frames: messageFrames([{ text: TEXT }]),
  },
} as const

describe('unusable responses', () => {
  const status = (code: number, headers = {}, body = ''): Behaviour => ({
    kind: 'status',
    status: code,
    headers,
    body,
  })
  const compressed = { gzip: gzipSync, br: brotliCompressSync, deflate: deflateSync, zstd: zstdCompressSync }
  const html = '<html><body>Sign in</body></html>'
  const bomb = gzipSync(Buffer.alloc(50 << 20))
  const faults: Record<string, (protocol: Protocol) => Behaviour> = {
    'a page of HTML': () => whole(html, { 'content-type': 'text/html; charset=utf-8' }),
    'HTML called JSON': () => whole(html),
    'HTML called a stream': () => whole(html, { 'content-type': 'text/event-stream' }),
    'no content type, and rubbish': () => whole('rubbish', { 'content-type': '' }),
    'nothing at all': () => whole(''),
    '204': () => status(204),
    '205': () => status(205),
    '206 with half of it': () => status(206, {}, '{"id":'),
    '301': () => status(301, { location: 'http://127.0.0.1:1/' }),
    '302 to itself': () => status(302, { location: '/v1/messages' }),
    '304': () => status(304),
    '402': () => status(402, {}, errorBody('pay first')),
    '418': () => status(418, {}, html),
    '511': () => status(511, { 'content-type': 'text/html' }, html),
    '999': () => status(999),
    '1xx without end': () => ({
      kind: 'raw',
      bytes: 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(100),
      ending: 'close',
    }),
    '101': () => ({
      kind: 'raw',
      bytes: 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      ending: 'close',
    }),
    'an error called success': (protocol) =>
      whole(protocol === 'chat' ? errorBody('no') : messagesErrorText('api_error', 'no')),
    ...Object.fromEntries(
      Object.entries(compressed).map(([coding, compress]) => [
        `${coding} that nobody asked for`,
        (protocol: Protocol) => whole(compress(GOOD[protocol].whole), { 'content-encoding': coding }),
      ]),
    ),
    'a hundred codings': () =>
      whole(bomb, { 'content-encoding': Array.from({ length: 100 }, () => 'gzip').join(', ') }),
    'a bomb called a stream': () =>
      whole(bomb, { 'content-encoding': 'gzip', 'content-type': 'text/event-stream' }),
    '64 KB of headers': (protocol) => whole(GOOD[protocol].whole, { 'x-long': 'x'.repeat(65_536) }),
    '2,000 headers': (protocol) =>
      whole(GOOD[protocol].whole, { 'x-many': Array.from({ length: 2000 }, (_, i) => String(i)) }),
    'a header with NUL': () => ({
      kind: 'raw',
      bytes: 'HTTP/1.1 200 OK\r\nx-a: b\0c\r\ncontent-length: 2\r\n\r\n{}',
      ending: 'close',
    }),
    'two lengths': () => ({
      kind: 'raw',
      bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}x',
      ending: 'close',
    }),
  }
  test.each(Object.keys(faults))(
    "an unusable upstream response is an error in the client's error format, and costs nothing: %s",
    async (name) => {
      const before = residentBytes(fixture.gateway.pid)
      const runs = PAIRS.flatMap((pair) => [false, true].map((stream) => ({ pair, stream })))
      const run = async ({ pair, stream }: (typeof runs)[number]): Promise<void> => {
        const answer = await play(pair, stream, faults[name]?.(pair.upstream) as Behaviour)
        // An error in a 200 has the status that it stands for, and the provider's type.
        const isTold = name === 'an error called success'
        const statuses = isTold ? [400, 500] : [500]
        expect(statuses, `${answer.name}: ${answer.text.slice(0, 300)}`).toContain(answer.status)
        if (!isTold) expect(answer.json().error.type, answer.name).toBe(TYPES[pair.client])
        expect(answer.text, answer.name).not.toMatch(INSIDE)
        expect(await chargeOf(answer), answer.name).toBe(0)
      }
      await Promise.all(runs.map(run))
      expect(residentBytes(fixture.gateway.pid) - before).toBeLessThan(MAX_BYTES)
    },
  )
})

test("an upstream's whole response to a streamed call, or stream to a whole call, is answered in the form that was asked for, and charged", async () => {
  for (const pair of PAIRS) {
    const notStreamed = await play(pair, true, whole(GOOD[pair.upstream].whole))
    const notWhole = await play(pair, false, streamed(GOOD[pair.upstream].frames))
    expect(notStreamed.headers['content-type'], notStreamed.name).toMatch(/event-stream/)
    expect(notWhole.headers['content-type'], notWhole.name).toMatch(/json/)
    for (const answer of [notStreamed, notWhole]) {
      expect(answer.status, answer.name).toBe(200)
      expect(await chargeOf(answer), answer.name).toBeGreaterThan(0)
    }
  }
})

/** The beginning of a response, with some content. */
const PARTIAL = {
  chat: [roleFrame(), contentFrame('begun')],
  messages: GOOD.messages.frames
    .slice(0, 2)
    .concat(eventFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'begun' } })),
} as const

/** A valid chunk, followed by an invalid one. */
const invalidChunks = (protocol: Protocol): Behaviour => {
  const text = PARTIAL[protocol].join('')
  return {
    kind: 'raw',
    bytes: `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${Buffer.byteLength(text).toString(16)}\r\n${text}\r\nzz\r\n`,
    ending: 'close',
  }
}

describe('streams that break in the middle', () => {
  const faults: Record<string, (protocol: Protocol) => Behaviour> = {
    'a reset': (protocol) => ({ kind: 'stream', frames: PARTIAL[protocol], ending: 'reset' }),
    'an end': (protocol) => streamed(PARTIAL[protocol]),
    'half of an event': (protocol) =>
      streamed([...PARTIAL[protocol], 'data: {"type":"content_block_delta","choices":[{"index":0,"del']),
    'an error event': (protocol) =>
      streamed([
        ...PARTIAL[protocol],
        protocol === 'chat'
          ? `data: ${errorBody('stumbled')}\n\n`
          : `event: error\ndata: ${messagesErrorText('overloaded_error', 'stumbled')}\n\n`,
      ]),
    'an event of 2 MB': (protocol) =>
      streamed([...PARTIAL[protocol], `data: {"x":"${'x'.repeat(2 << 20)}"}\n\n`]),
    '10 MB without a line end': (protocol) => streamed([...PARTIAL[protocol], 'x'.repeat(10 << 20)]),
    '10 MB in lines without a blank one': (protocol) =>
      streamed([...PARTIAL[protocol], `: ${'x'.repeat(1022)}\n`.repeat(10 << 10)]),
    'a length that was not kept to': (protocol) => {
      const text = PARTIAL[protocol].join('')
      return {
        kind: 'raw',
        bytes: `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${text.length + 9}\r\n\r\n${text}`,
        ending: 'close',
      }
    },
    'chunks that are none': invalidChunks,
  }
  test.each(Object.keys(faults))(
    'a stream that breaks in the middle ends with an error, never looks finished, and costs the delivered part: %s',
    async (name) => {
      const before = residentBytes(fixture.gateway.pid)
      const run = async (pair: DialectPair): Promise<void> => {
        const answer = await play(pair, true, faults[name]?.(pair.upstream) as Behaviour)
        expect(answer.status, answer.name).toBe(200)
        expect(answer.text, answer.name).toContain('begun')
        if (!isNative(pair)) GRAMMARS[pair.client](answer.text, false)
        expect(answer.text, answer.name).not.toMatch(/\[DONE\]|message_stop/)
        expect(answer.text.split('\n\n').at(-2), answer.name).toContain('"error"')
        // At most two tokens, and the prompt.
        const charge = await chargeOf(answer)
        expect(charge, answer.name).toBeGreaterThan(4)
        expect(charge, answer.name).toBeLessThan(40)
      }
      await Promise.all(PAIRS.map(run))
      // In a conversion, an event of 10 MB is kept in memory until it breaks off.
      expect(residentBytes(fixture.gateway.pid) - before).toBeLessThan(MAX_BYTES)
    },
  )
})

test("content that an upstream sends before an error is delivered, even while the prompt's tokens are still counted", async () => {
  const pair = { client: 'messages', upstream: 'chat' } as const
  fixture.upstream.script(MODEL.chat, invalidChunks('chat'))
  // For this much text, the thread takes longer than the upstream for its response.
  const live = await ask(pair, true, { content: 'What takes long? '.repeat(10_000) })
  const answer = await live.end()
  expect(answer.status, answer.text).toBe(200)
  expect(answer.text).toContain('begun')
  expect(answer.text).toContain('"error"')
})

test('a silent upstream is aborted after its idle timeout', async () => {
  await Promise.all(
    PAIRS.filter(isNative).map(async (pair) => {
      const model = SILENT[pair.upstream]
      const { bytes } = sse(PARTIAL[pair.upstream].join('')) as { bytes: Buffer }
      fixture.upstream.script(model, { kind: 'raw', bytes, ending: 'stall' })
      const began = performance.now()
      const answer = await (await ask(pair, true, { model })).end()
      expect(answer.text).toContain('begun')
      // Timeouts are precise to within a second; nothing else is sent in the meantime.
      expect(performance.now() - began).toBeGreaterThan(IDLE_MS * 0.8)
      expect(answer.text.split('\n\n').filter((frame) => frame !== '')).toHaveLength(
        PARTIAL[pair.upstream].length + 1,
      )
      await fixture.upstream.only(model).ended
    }),
  )
})

describe('invalid events of a stream', () => {
  const odd: Record<Protocol, Record<string, readonly string[]>> = {
    chat: {
      null: ['data: null\n\n'],
      'a list': ['data: []\n\n'],
      'a text': ['data: "x"\n\n'],
      'no JSON': ['data: {\n\n', 'data: hm\n\n'],
      'choices that are none': [
        'data: {"choices":null}\n\n',
        'data: {"choices":{"0":1}}\n\n',
        'data: {"choices":[null,7]}\n\n',
      ],
      'deltas that are none': [
        'data: {"choices":[{"index":0,"delta":null}]}\n\n',
        'data: {"choices":[{"index":0,"delta":[1]}]}\n\n',
      ],
      'content of other kinds': [
        chunkFrame({ content: 7 }),
        chunkFrame({ content: { a: 1 } }),
        chunkFrame({ content: [null] }),
      ],
      'a call that nobody began': [chunkFrame({ tool_calls: [{ index: 3, function: { arguments: '{}' } }] })],
      'calls of wrong kinds': [
        chunkFrame({ tool_calls: 'x' }),
        chunkFrame({ tool_calls: [null, { index: 'x' }, { index: -1 }, { index: 1e308 }] }),
      ],
      'choices far away': [
        'data: {"choices":[{"index":9007199254740993,"delta":{"content":"far"}}]}\n\n',
        'data: {"choices":[{"index":-1,"delta":{"content":"far"}}]}\n\n',
      ],
      'a second role': [roleFrame(), roleFrame()],
      'another event': ['event: hologram\ndata: {"choices":[]}\n\n'],
      'names that objects have': ['data: {"__proto__":{"choices":[1]},"constructor":1}\n\n'],
    },
    messages: {
      null: ['event: ping\ndata: null\n\n', 'data: null\n\n'],
      'a list': ['data: []\n\n'],
      'a text': ['data: "x"\n\n'],
      'no JSON': ['event: content_block_delta\ndata: {\n\n'],
      'types that are none': ['data: {"type":7}\n\n', 'data: {"type":null}\n\n'],
      'an event of another name': [
        'event: ping\ndata: {"type":"hologram"}\n\n',
        eventFrame('hologram', { index: 0 }),
      ],
      'deltas that are none': [
        eventFrame('content_block_delta', { index: 0, delta: null }),
        eventFrame('content_block_delta', { index: 0 }),
      ],
      'deltas of wrong kinds': [
        eventFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 7 } }),
      ],
      'a block that nobody began': [
        eventFrame('content_block_delta', {
          index: 7,
          delta: { type: 'input_json_delta', partial_json: '{}' },
        }),
      ],
      'blocks far away': [
        eventFrame('content_block_start', {
          index: 2 ** 60,
          content_block: { type: 'text', text: '' },
        }),
      ],
      'a block of no kind': [
        eventFrame('content_block_start', { index: 5, content_block: null }),
        eventFrame('content_block_stop', { index: 5 }),
      ],
      'a block that ends twice': [
        eventFrame('content_block_stop', { index: 0 }),
        eventFrame('content_block_stop', { index: 0 }),
      ],
      'a second beginning': [GOOD.messages.frames[0] ?? ''],
      'names that objects have': [
        'data: {"type":"__proto__","__proto__":{"type":"error"}}\n\n',
        'data: {"type":"constructor"}\n\n',
      ],
    },
  }
  const cases = PROTOCOLS.flatMap((protocol) =>
    Object.keys(odd[protocol]).map((name) => [protocol, name] as const),
  )
  test.each(cases)(
    'invalid events of an upstream stream are dropped or end the stream, and the call is charged: %s: %s',
    async (protocol, name) => {
      const { frames } = GOOD[protocol]
      const between = odd[protocol][name] ?? []
      for (const pair of PAIRS.filter(({ upstream }) => upstream === protocol)) {
        for (const place of [0, 1, frames.length - 1]) {
          const answer = await play(
            pair,
            true,
            streamed([...frames.slice(0, place), ...between, ...frames.slice(place)]),
          )
          expect(answer.broken, answer.name).toBe(false)
          expect(answer.status, answer.text).toBeOneOf([200, 500])
          expect(answer.text, answer.name).not.toMatch(INSIDE)
          const charge = await chargeOf(answer)
          const isWhole = /\[DONE\]|"message_stop"/.test(answer.text)
          if (!isNative(pair) && answer.status === 200) GRAMMARS[pair.client](answer.text, isWhole)
          if (isWhole) expect(answer.text, answer.name).toContain('Zo')
          expect(charge, answer.name).toBeLessThanOrEqual(60)
          // An error before any content costs what the upstream reported, and a stream cut off there nothing.
          const isWorth = answer.status === 200 && (isWhole || /Zo|"name"/.test(answer.text))
          if (!isWorth && /"error"/.test(answer.text)) continue
          expect((charge ?? -1) > 0, `${answer.name}, charged ${charge}: ${answer.text}`).toBe(isWorth)
        }
      }
    },
  )
})

test('members of a chat answer that are named as inherited ones change nothing of other calls, also where its events are assembled', async () => {
  const odd =
    '"__proto__":{"charging":"free","isBackground":true},"constructor":{"prototype":{"charging":"free"}}'
  const events = [
    roleFrame(),
    `data: {"choices":[{"index":0,"delta":{"content":"hi",${odd}},"logprobs":{"content":[],${odd}},${odd}}],${odd}}\n\n`,
    ...GOOD.chat.frames.slice(2),
  ]
  const [native, converted] = PAIRS.filter(({ upstream }) => upstream === 'chat') as [
    DialectPair,
    DialectPair,
  ]
  for (const pair of [native, converted])
    for (const stream of [false, true]) {
      const answer = await play(pair, stream, streamed(events))
      expect(answer.status, answer.name).toBe(200)
      const later = await play(native, false, whole(GOOD.chat.whole))
      expect(await chargeOf(later), answer.name).toBe(30)
    }
})

/** The text in an event of either dialect. */
interface EventFields {
  readonly choices?: readonly { readonly delta: { readonly content?: string } }[]
  readonly delta?: { readonly text?: string }
}

describe('the bytes of a stream', () => {
  const text = (answer: string): string =>
    answer
      .split('\n')
      .flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6)) as EventFields] : []))
      .map(({ choices, delta }) => choices?.[0]?.delta.content ?? delta?.text ?? '')
      .join('')

  test('a stream whose bytes arrive one by one is delivered completely, and charged at its usual price', async () => {
    for (const pair of PAIRS) {
      const { frames } = GOOD[pair.upstream]
      const answer = await play(pair, true, streamed(frames, { drip: true }))
      expect(text(answer.text), answer.name).toBe(TEXT)
      expect(await chargeOf(answer), answer.name).toBe(30)
    }
  })

  test('a stream with other line ends, a byte order mark, comments or unknown fields is delivered and charged', async () => {
    const dressed = (frame: string): string => `: hm\nid: 1\nretry: 5\nunknown: x\n${frame}`
    const variants: Record<string, (frames: readonly string[]) => string> = {
      CRLF: (frames) => frames.join('').replaceAll('\n', '\r\n'),
      CR: (frames) => frames.join('').replaceAll('\n', '\r'),
      mixed: (frames) =>
        frames.map((frame, i) => frame.replaceAll('\n', ['\n', '\r', '\r\n'][i % 3] ?? '\n')).join(''),
      'no space': (frames) => frames.join('').replaceAll('data: ', 'data:').replaceAll('event: ', 'event:'),
      'a mark': (frames) => `\ufeff${frames.join('')}`,
      comments: (frames) => frames.map(dressed).join(''),
      'blank lines': (frames) => frames.map((frame) => '\n'.repeat(1000) + frame).join(''),
      'the event after its data': (frames) =>
        frames.map((frame) => frame.replace(/^(event: .*\n)(data: .*\n)/, '$2$1')).join(''),
    }
    for (const [name, dress] of Object.entries(variants)) {
      for (const pair of PAIRS.filter((each) => !isNative(each))) {
        const answer = await play(pair, true, sse(dress(GOOD[pair.upstream].frames)))
        expect(text(answer.text), `${name}, ${answer.name}`).toBe(TEXT)
        GRAMMARS[pair.client](answer.text, true)
        expect(await chargeOf(answer), `${name}, ${answer.name}`).toBe(30)
      }
      for (const pair of PAIRS.filter(isNative)) {
        const bytes = dress(GOOD[pair.upstream].frames)
        const answer = await play(pair, true, sse(bytes))
        if (pair.client === 'messages') expect(answer.text, name).toBe(bytes)
        expect(await chargeOf(answer), `${name}, ${answer.name}`).toBe(30)
      }
    }
  })

  test('bytes of a stream that are not UTF-8 become U+FFFD in a conversion, and stay unchanged natively', async () => {
    for (const pair of PAIRS) {
      const [head = '', tail = ''] = GOOD[pair.upstream].frames.join('').split('Zoë')
      const bytes = Buffer.concat([
        Buffer.from(head),
        Buffer.from([0x5a, 0xff, 0xe2, 0x82]),
        Buffer.from(tail),
      ])
      const answer = await play(pair, true, sse(bytes))
      expect(answer.status, answer.name).toBe(200)
      if (isNative(pair))
        expect(answer.bytes.includes(Buffer.from([0x5a, 0xff, 0xe2, 0x82])), answer.name).toBe(true)
      else expect(answer.text, answer.name).toContain('Z\ufffd')
      expect(await chargeOf(answer), answer.name).toBe(30)
    }
  })
})

test("of an upstream's response headers, only the content type reaches the client", async () => {
  const headers = {
    'set-cookie': ['a=b', 'c=d'],
    server: 'upstream',
    'x-powered-by': 'secret',
    'x-request-id': 'theirs',
    'cf-ray': '1',
    location: 'http://127.0.0.1/',
    'www-authenticate': 'Basic',
    'proxy-authenticate': 'Basic',
    'keep-alive': 'timeout=999',
    upgrade: 'h2c',
    trailer: 'x-late',
    'access-control-allow-origin': '*',
    'strict-transport-security': 'max-age=1',
    'x-ratelimit-remaining': '5',
    'openai-organization': 'ours',
    'x-gateway-dropped': 'theirs',
    ...Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`x-many-${i}`, 'y'])),
  }
  const known = [
    'cache-control',
    'connection',
    'content-length',
    'content-type',
    'date',
    'keep-alive',
    'request-id',
    'transfer-encoding',
    'x-accel-buffering',
    'x-request-id',
  ]
  for (const pair of PAIRS) {
    const { frames, whole: body } = GOOD[pair.upstream]
    for (const answer of [
      await play(pair, false, whole(body, headers)),
      await play(pair, true, streamed(frames, { headers })),
    ]) {
      expect(answer.status, answer.text).toBe(200)
      expect(
        Object.keys(answer.headers).filter((name) => !known.includes(name)),
        answer.name,
      ).toEqual([])
      // Ids of the gateway may contain any digits.
      const { 'x-request-id': _id, 'request-id': _same, date: _date, ...others } = answer.headers
      expect(JSON.stringify(others), answer.name).not.toMatch(/theirs|999/)
    }
    const refusal = await play(pair, false, {
      kind: 'status',
      status: 429,
      headers: { ...headers, 'retry-after': '7' },
      body: errorBody('slow down'),
    })
    expect(refusal.status).toBe(429)
    expect(Object.keys(refusal.headers).filter((name) => ![...known, 'retry-after'].includes(name))).toEqual(
      [],
    )
  }
})

test('after all faulty upstream responses the balance, the sums and the usage log of every account agree', async () => {
  const granted = { tokens: new Map([['token-ann', QUOTA]]), users: new Map() }
  await expect.poll(() => audit(fixture.gateway.dataDir, [], granted)).toEqual([])
  expect(fixture.gateway.logs()).not.toMatch(/unforeseen error|nhandled/)
})
