import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { AMPLE, channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { askRerank, rerankChannel } from '../fixtures/rerank-fixture.ts'
import { retryWhileOverloaded, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { byTier } from '../runner/tier.ts'
import { MODEL } from '../conversion/fixture.ts'

/** The folder with recorded responses of providers, if there is one. */
const FOLDER = process.env['RECORDINGS']

type Counts = Record<string, any> // oxlint-disable-line typescript/no-explicit-any -- JSON of a provider

type Protocol = 'chat' | 'messages'

/** Recorded responses that are not charged as reported, with the reason. */
const EXCEPTIONS: Record<string, { readonly settled: 'cut' | 'estimated'; readonly because: string }> = {
  'groq--tool-use-failed-error-streaming.sse': {
    settled: 'cut',
    because: 'the provider reports an error in the middle of its stream',
  },
  'anthropic--programmatic-tool-calling-1-part2.sse': {
    settled: 'estimated',
    because: 'it calls a tool and reports 0 tokens of output: such usage counts as missing',
  },
}

/** Every token of any kind costs one unit, so that a charge is a number of tokens. */
const ONE_UNIT = {
  input: 2,
  output: 2,
  cache_read: 2,
  cache_write_5m: 2,
  cache_write_1h: 2,
  web_search: 0,
  tools: { code_execution: 0 },
}
const RERANK = 'ranks'
/** Models that the provider asked in recorded responses; their tokens are charged at their own prices. */
const ADVISORS = ['claude-opus-4-6', 'claude-opus-4-7', 'claude-opus-4-8']
const PATHS = { chat: '/v1/chat/completions', messages: '/v1/messages' } as const

if (FOLDER === undefined) replayNothing()
else replay(FOLDER)

function replayNothing(): void {
  test('recorded calls are not replayed where the environment variable RECORDINGS names no folder', () => {
    expect(FOLDER).toBeUndefined()
  })
}

function replay(folder: string): void {
  let fixture: Fixture
  beforeAll(async () => {
    fixture = await startFixture((upstream) => ({
      options: { retries: 0 },
      models: Object.fromEntries(
        [MODEL.chat, MODEL.messages, RERANK, ...ADVISORS].map((name) => [
          name,
          { vendor: 'acme', price: ONE_UNIT },
        ]),
      ),
      channels: [
        channel(MODEL.chat, upstream.baseUrl(MODEL.chat)),
        channel(MODEL.messages, upstream.baseUrl(MODEL.messages), { protocol: 'messages' }),
        rerankChannel(RERANK, upstream.baseUrl(RERANK)),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')], { quota: AMPLE })],
    }))
  })
  afterAll(() => fixture?.close())

  const answers = (['chat', 'messages'] as const).flatMap((from) =>
    readdirSync(join(folder, from))
      .filter((name) => !name.startsWith('error-'))
      .map((name) => ({ name, from, bytes: readFileSync(join(folder, from, name)) })),
  )
  /** By day, clients of the answer's dialect read all answers, and other clients read every third one. */
  const entries = answers.flatMap((answer, at) =>
    (['chat', 'messages'] as const)
      .filter((client) => client === answer.from || at % byTier(3, 1) === 0)
      .map((client) => ({ ...answer, client })),
  )

  const usageOf = (answer: FullResponse) =>
    databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
  /** The call's row in the usage log. */
  const rowOf = (answer: FullResponse) => {
    const row = usageOf(answer)
    if (!row) throw new Error(`there is no row for ${answer.status} ${answer.text.slice(0, 300)}`)
    return row
  }
  const ask = (client: Protocol, from: Protocol, fields: object = {}): Promise<FullResponse> =>
    retryWhileOverloaded(() =>
      fixture.chat(
        'ann',
        { model: MODEL[from], max_tokens: 50, messages: [{ role: 'user', content: 'hi' }], ...fields },
        { path: PATHS[client] },
      ),
    )

  describe('a recorded response', () => {
    test.each(entries)(
      'the recorded response $from: $name is charged as reported ($client client)',
      async (entry) => {
        const { name, from, bytes, client } = entry
        const stream = name.endsWith('.sse')
        const reported = USAGE[from](bytes.toString(), stream)
        fixture.upstream.script(MODEL[from], stream ? streaming(bytes) : { kind: 'whole', body: bytes })
        // Requests usage exactly where the recording has it in the usual position: then the gateway neither
        // removes nor adds a frame.
        const wanted =
          stream && client === 'chat' && (from !== 'chat' || tellsUsage(bytes))
            ? { stream_options: { include_usage: true } }
            : {}
        const answer = await ask(client, from, { stream, ...wanted })
        expect(answer.status, answer.text).toBe(200)
        const row = rowOf(answer)
        const exception = EXCEPTIONS[name]
        if (exception) {
          expect(row.reason, exception.because).toBe(exception.settled)
          return
        }
        if (client === from) expect(answer.bytes.toString('latin1')).toBe(bytes.toString('latin1'))
        expect(row.reason).toBe(reported === undefined ? 'estimated' : 'complete')
        if (reported === undefined) return
        expect(row.quota).toBe(reported + advisorTokens(bytes.toString(), stream))
        expect(USAGE[client](answer.text, stream)).toBe(reported)
      },
    )
  })

  describe('a recorded rerank response', () => {
    const names = readdirSync(join(folder, 'rerank')).filter((name) => name.endsWith('.response.json'))
    test.each(names)('the recorded rerank response %s is charged as reported', async (name) => {
      const body = readFileSync(join(folder, 'rerank', name))
      const { results, data, usage } = JSON.parse(body.toString()) as Counts
      const documents = Array.from({ length: (results ?? data).length + 100 }, () => 'a document')
      fixture.upstream.script(RERANK, { kind: 'whole', body })
      const answer = await fixture.chat('ann', askRerank(RERANK, { documents }), { path: '/v1/rerank' })
      expect(answer.status, answer.text).toBe(200)
      const row = rowOf(answer)
      expect(row.reason).toBe(usage ? 'complete' : 'estimated')
      if (usage) expect(row.quota).toBe(usage.total_tokens)
      expect((JSON.parse(answer.text) as Counts)['usage'].total_tokens).toBe(row.quota)
    })
  })

  describe('a recorded error', () => {
    const errors = (['chat', 'messages'] as const).flatMap((from) =>
      readdirSync(join(folder, from))
        .filter((name) => name.startsWith('error-'))
        .flatMap((name) => (['chat', 'messages'] as const).map((client) => ({ name, from, client }))),
    )
    test.each(errors)(
      'the recorded error $from: $name reaches a $client client in its own dialect',
      async ({ name, from, client }) => {
        const body = readFileSync(join(folder, from, name), 'utf8')
        const status = Number(/^error-(\d+)/.exec(name)?.[1])
        fixture.upstream.script(MODEL[from], { kind: 'status', status, body })
        const answer = await ask(client, from)
        const { message } = answer.json().error
        // A refused upstream key is the operator's error, so that nothing of it is passed on.
        const isPassedOn = status !== 401
        expect(answer.status).toBe(isPassedOn ? status : 500)
        const said = JSON.parse(body) as Counts
        const words = String(said['error']?.message ?? said['message']).slice(0, 40)
        expect(message.includes(words)).toBe(isPassedOn)
        await expect.poll(() => usageOf(answer)?.quota).toBe(0)
      },
    )
  })
}

const streaming = (bytes: Buffer): Behaviour => ({
  kind: 'stream',
  frames: [bytes.toString()],
  ending: 'no done',
})

/** The JSON of a reply, or of each event of a stream. */
function documentsIn(text: string, stream: boolean): Counts[] {
  if (!stream) return [JSON.parse(text) as Counts]
  return text
    .split(/\r?\n/)
    .map((line) => /^data: ?(\{.*)$/.exec(line)?.[1])
    .filter((data) => data !== undefined)
    .map((data) => JSON.parse(data) as Counts)
}

/**
 * The tokens that a response reports: the provider's own total where there is one; undefined if none are
 * reported.
 */
const USAGE = {
  chat(text: string, stream: boolean): number | undefined {
    const said = documentsIn(text, stream)
      .map((chunk) => chunk['usage'] ?? chunk['x_groq']?.usage)
      .findLast((usage) => usage !== undefined && usage !== null)
    return said?.total_tokens
  },
  messages(text: string, stream: boolean): number | undefined {
    const said: Counts = {}
    for (const event of documentsIn(text, stream))
      Object.assign(said, event['message']?.usage, event['usage'])
    if (said['input_tokens'] === undefined) return undefined
    const told = (counts: Counts): number =>
      counts['input_tokens'] +
      (counts['cache_read_input_tokens'] ?? 0) +
      (counts['cache_creation_input_tokens'] ?? 0) +
      counts['output_tokens']
    // The sums omit the tokens for summarizing a long conversation.
    const compactions = ((said['iterations'] ?? []) as Counts[]).filter(({ type }) => type === 'compaction')
    return [said, ...compactions].reduce((sum, counts) => sum + told(counts), 0)
  },
} as const

/** Whether a chunk of a chat stream has its usage in the usual position. */
function tellsUsage(bytes: Buffer): boolean {
  return bytes
    .toString()
    .split('\n')
    .some((line) => line.startsWith('data: {') && typeof JSON.parse(line.slice(6)).usage === 'object')
}

/** The tokens of other models that the last usage of a recorded response states. */
function advisorTokens(text: string, stream: boolean): number {
  const usages = stream
    ? text
        .split('\n')
        .flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6)).usage] : []))
    : [JSON.parse(text).usage]
  const iterations: Counts[] = usages.findLast((usage) => usage?.iterations)?.iterations ?? []
  return iterations
    .filter(({ type }) => type === 'advisor_message')
    .flatMap((one) => [
      one['input_tokens'],
      one['output_tokens'],
      one['cache_read_input_tokens'],
      one['cache_creation_input_tokens'],
    ])
    .reduce((sum, tokens) => sum + (tokens ?? 0), 0)
}
