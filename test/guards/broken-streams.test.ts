import type { ClientProtocol, ConversionProtocol } from '@sluice/wire/protocols'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ANSWER_FORMS, frameOf } from '../fixtures/answer-forms.ts'
import { open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type GuardServices, startGuardServices } from '../fixtures/guard-services.ts'
import { PROTOCOLS, requestOf } from '../fixtures/guarded-dialects.ts'
import { ACCOUNT, REGION } from '../fixtures/providers/bedrock.ts'
import { byTier } from '../runner/tier.ts'

/** Protocols of the channels; converse is spoken by Bedrock, in its binary events. */
const CHANNELS = [...PROTOCOLS, 'converse'] as const
/** Clients: their protocols, and a Gemini client that reads a stream as one array. */
const CLIENTS = [...PROTOCOLS, 'gemini array'] as const
type Client = (typeof CLIENTS)[number]
const BEDROCK = { provider: 'bedrock', region: REGION, keys: [`${ACCOUNT.id}:${ACCOUNT.secret}`] }
/** What the guards of this file look for, in place of the words that the answers have. */
const CODE = 'code-4711-x'

let fixture: Fixture
let services: GuardServices
beforeAll(async () => {
  services = await startGuardServices()
  fixture = await startFixture((upstream) => ({
    models: priced([...CHANNELS]),
    channels: CHANNELS.map((name) =>
      channel(name, upstream.baseUrl(name), { protocol: name, ...(name === 'converse' && BEDROCK) }),
    ),
    guards: [
      { name: 'codes', do: 'redact', match: { regex: CODE }, tokens: ['token-read'] },
      {
        name: 'judge',
        do: 'redact',
        match: { webhook: { url: services.url } },
        timeout: '60s',
        tokens: ['token-judged'],
      },
    ],
    users: [ROOT, user(2, 'ann', [token('read'), token('judged')])],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await services?.stop()
})

/** The events of an answer in which all texts have the code. */
function eventsOf(protocol: ConversionProtocol): Buffer[] {
  return ANSWER_FORMS[protocol].events.map((event) => {
    const text = JSON.stringify(event).replaceAll(/\b(?:words|printed|cited|found)\b/g, `$& ${CODE}`)
    return frameOf(protocol, JSON.parse(text) as object)
  })
}

/** Makes a call whose stream breaks off after `chunks`, and once the client has got the text `awaited`. */
async function askBroken(
  client: Client,
  to: ConversionProtocol,
  key: string,
  chunks: readonly Buffer[],
  awaited?: string,
): Promise<string> {
  const read = Promise.withResolvers<void>()
  const headers = { ...(to === 'converse' && { 'content-type': 'application/vnd.amazon.eventstream' }) }
  fixture.upstream.script(to, {
    kind: 'stream',
    chunks,
    rest: { after: read.promise, frames: [] },
    ending: 'no done',
    headers,
  })
  const protocol: ClientProtocol = client === 'gemini array' ? 'gemini' : client
  const [path, body] = requestOf(protocol, to, 'streamed')
  if (awaited === undefined) read.resolve()
  const answer = await open(fixture.gateway.url, JSON.stringify(body), {
    path: client === 'gemini array' ? path.replace('?alt=sse', '') : path,
    key,
    headers: { 'x-goog-api-key': `sk-${key}` },
  })
  if (awaited !== undefined) await answer.until(awaited)
  read.resolve()
  return (await answer.end()).text
}

const ROADS = CLIENTS.flatMap((client) => CHANNELS.map((to) => [client, to] as const))
const KEYS = [
  ['a guard of texts', 'read'],
  ["a guard's service", 'judged'],
] as const

/** By day one of so many places is tried. */
const DAY_SHARE = byTier(3, 1)

describe.each(KEYS)('%s', (_name, key) => {
  test.each(ROADS)(
    'lets nothing unchecked pass to a %s client of a %s channel, wherever the stream breaks off',
    async (client, to) => {
      const events = eventsOf(to)
      const found: string[] = []
      for (let count = 1; count < events.length; count += 1) {
        const last = events[count - 1] as Buffer
        // The event with which the stream breaks off is whole, or lacks its last line end.
        for (const missing of [0, 1]) {
          if ((count + missing) % DAY_SHARE !== 0) continue
          const chunks = [...events.slice(0, count - 1), last.subarray(0, last.length - missing)]
          const text = await askBroken(client, to, key, chunks)
          if (text.includes(CODE)) found.push(`${count} of ${events.length}, without ${missing}`)
        }
      }
      expect(found).toEqual([])
    },
  )
})

/** Events that report an error beside something that a model generated. */
const ERROR = { message: 'it failed', type: 'server_error' }
const FAILED = { id: 'resp_1', status: 'failed', error: ERROR }
const MESSAGE = { type: 'message', content: [{ type: 'output_text', text: CODE }] }
const FAILURES: readonly (readonly [Exclude<ConversionProtocol, 'converse'>, object])[] = [
  ['chat', { error: ERROR, choices: [{ index: 0, delta: { content: CODE } }] }],
  ['messages', { type: 'error', error: ERROR, message: { content: [{ type: 'text', text: CODE }] } }],
  [
    'messages',
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: CODE }, error: ERROR },
  ],
  ['responses', { type: 'response.failed', sequence_number: 90, response: { ...FAILED, output: [MESSAGE] } }],
  ['responses', { type: 'response.output_text.delta', output_index: 0, delta: CODE, error: ERROR }],
  [
    'gemini',
    { error: { code: 500, message: 'it failed' }, candidates: [{ content: { parts: [{ text: CODE }] } }] },
  ],
]

test.each(FAILURES)(
  'an error in a %s stream has nothing beside it that guards have not checked: %j',
  async (to, event) => {
    for (const [, key] of KEYS) {
      const text = await askBroken(to, to, key, [...eventsOf(to).slice(0, 4), frameOf(to, event)])
      expect(text).toContain('error')
      expect(text).not.toContain(CODE)
    }
  },
)

test('the numbers of the events of a stream that breaks off have no gap and no repetition', async () => {
  for (const [, key] of KEYS)
    for (const to of ['chat', 'responses'] as const) {
      const text = await askBroken('responses', to, key, eventsOf(to).slice(0, 4), 'response.created')
      const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number))
      expect(text).toContain('response.failed')
      expect(numbers, `${key} ${to}`).toEqual(numbers.map((_, index) => index))
    }
})
