import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { audit } from '../fixtures/auditor.ts'
import { type Behaviour, contentFrame, DONE_FRAME, errorBody, roleFrame } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { byTier } from '../runner/tier.ts'

const QUOTA = 1_000_000_000
const CROWD = 25
const LINES = byTier(100_000, 1_000_000)
const sse = (text: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n${text}`

/** Faults of an upstream, for whole responses and streams alike. */
const FAULTS: Record<string, Behaviour> = {
  'drops the connection': { kind: 'drop' },
  'resets it before the head': { kind: 'raw', bytes: 'HTTP/1.1 2', ending: 'reset' },
  'sends no HTTP': { kind: 'raw', bytes: '\0\x01\x02 hello\r\n\r\n', ending: 'close' },
  'never answers': { kind: 'silence' },
  'sends a head and no more': {
    kind: 'raw',
    bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n',
    ending: 'stall',
  },
  'promises more than it sends': {
    kind: 'raw',
    bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{',
    ending: 'close',
  },
  'sends bad chunks': {
    kind: 'raw',
    bytes: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    ending: 'close',
  },
  'sends headers without end': {
    kind: 'raw',
    bytes: `HTTP/1.1 200 OK\r\n${'x-y: z\r\n'.repeat(20_000)}`,
    ending: 'stall',
  },
  'sends a login page': { kind: 'whole', body: '<html>', headers: { 'content-type': 'text/html' } },
  'sends half of its JSON': { kind: 'whole', body: '{"choices":[{"mess' },
  'sends null': { kind: 'whole', body: 'null' },
  'sends an array of nothing': { kind: 'whole', body: '{"choices":[]}' },
  'sends choices of the wrong kind': { kind: 'whole', body: '{"choices":{"0":5},"usage":[]}' },
  'sends an error as success': { kind: 'whole', body: errorBody('no', 'server_error') },
  'streams null': { kind: 'raw', bytes: sse(`data: null\n\n${DONE_FRAME}`), ending: 'close' },
  'streams what is no JSON': {
    kind: 'raw',
    bytes: sse(`data: {"choices":\n\ndata: hm\n\n${DONE_FRAME}`),
    ending: 'close',
  },
  'streams wrong types': {
    kind: 'raw',
    bytes: sse(`data: {"choices":"x"}\n\ndata: {"choices":[7,null]}\n\ndata: [1]\n\n${DONE_FRAME}`),
    ending: 'close',
  },
  'streams an end and nothing else': { kind: 'raw', bytes: sse(DONE_FRAME), ending: 'close' },
  'streams nothing': { kind: 'raw', bytes: sse(''), ending: 'close' },
  'streams on after its end': {
    kind: 'raw',
    bytes: sse(`${roleFrame()}${contentFrame('a')}${DONE_FRAME}${contentFrame('b')}${DONE_FRAME}`),
    ending: 'close',
  },
  'streams bytes that are no text': {
    kind: 'raw',
    bytes: Buffer.concat([
      Buffer.from(sse('data: ')),
      Buffer.from([0xff, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
      Buffer.from('\n\n'),
    ]),
    ending: 'reset',
  },
  [`sends ${LINES} empty lines`]: { kind: 'raw', bytes: sse('\n'.repeat(LINES)), ending: 'close' },
  'sends an event without end': { kind: 'raw', bytes: sse(`data: ${'x'.repeat(20 << 20)}`), ending: 'close' },
  'compresses unasked': {
    kind: 'whole',
    body: Buffer.from([31, 139, 8, 0]),
    headers: { 'content-encoding': 'gzip' },
  },
}

let fixture: Fixture
beforeAll(async () => {
  const timeouts = { connect: '1s', first_byte: '500ms', idle: '500ms' }
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { timeouts })],
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA })],
  }))
})
afterAll(() => fixture?.close())

describe(`${CROWD} concurrent calls to a faulty upstream`, () => {
  test.each(Object.keys(FAULTS))(
    'concurrent calls are answered and charged correctly, though the upstream %s',
    async (name) => {
      const { pid } = fixture.gateway
      const fault = FAULTS[name] as Behaviour
      const database = databaseOf(fixture.gateway.dataDir)
      for (const stream of [false, true]) {
        fixture.upstream.script('m', fault)
        const answers = await Promise.all(
          Array.from({ length: name.includes('without end') ? 3 : CROWD }, async () =>
            (await fixture.live('ann', ask('m', { stream }))).end(),
          ),
        )
        for (const { status, text, broken } of answers) {
          expect(broken).toBe(false)
          // A small machine may be overloaded by this number of faulty calls, and then refuses some.
          expect(status).toBeOneOf([200, 500, 503])
          expect(status === 200 || /"type":"(?:api|server)_error"|"code":"overloaded"/.test(text)).toBe(true)
          expect(text).not.toMatch(/<html>|node_modules|node:internal/)
        }
      }
      await expect.poll(() => database.openHolds().length).toBe(0)
      const granted = { tokens: new Map([['token-ann', QUOTA]]), users: new Map([['ann', QUOTA]]) }
      // A hold settled at zero may not be on the disk yet, because no client waits for it.
      await expect.poll(() => audit(fixture.gateway.dataDir, [], granted)).toEqual([])
      expect(fixture.gateway.pid).toBe(pid)
      // The gateway has recovered: the next call is a normal one.
      fixture.upstream.script('m', { kind: 'whole' })
      await expect.poll(async () => (await fixture.chat('ann', ask('m'))).status).toBe(200)
    },
  )
})
