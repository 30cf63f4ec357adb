import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DIALECTS, type Dialect, type Facts, type Json } from '../fidelity/facts.ts'
import { streamFacts, wholeFacts } from '../fidelity/read-facts.ts'
import { call, open } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { ASKED, type Question, questionsOf, wordsFrom } from '../fixtures/llama/questions.ts'
import { llamaPython, type LlamaServer, MODEL, startLlama, withoutLlama } from '../fixtures/llama/server.ts'
import { randomFrom } from '../fixtures/random.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
/** The model is the same each night; what it is asked is not. */
const MODEL_SEED = 1
const CONTEXT = 2048
const python = await llamaPython()
const NAME = "llama.cpp's server"

/** The protocols that the server speaks. Each has a channel and a model of its name. */
const PROTOCOLS = ['chat', 'messages', 'responses'] as const
type Protocol = (typeof PROTOCOLS)[number]

/** One quota unit for a token of the prompt, three for a cached one, and four for one of the answer. */
const PRICE = { input: 2, cache_read: 6, output: 8 }

function configurationOf(llama: LlamaServer): Configuration {
  return {
    options: { retries: 0 },
    models: { ...priced(PROTOCOLS, PRICE), rerank: { price: { request: 0.002 } } },
    channels: [...PROTOCOLS, 'rerank'].map((protocol) =>
      channel(protocol, `${llama.url}/v1`, { protocol, model_mapping: { [protocol]: MODEL } }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }
}

/** What is compared of an answer. Ids are drawn by the server. */
type Compared = Pick<Facts, 'text' | 'finish' | 'usage'> & {
  readonly calls: readonly { readonly name: string; readonly input: unknown }[]
}

/** Arguments of a call that the maximum cut off. Not all dialects can express them. */
const CUT = 'cut off'

function compared({ text, finish, usage, calls }: Facts): Compared {
  const isWhole = (input: unknown): boolean =>
    Object.keys(Object(input)).length > 0 && typeof input === 'object'
  return {
    text,
    finish,
    usage,
    calls: calls.map(({ name, input }) => ({ name, input: isWhole(input) ? input : CUT })),
  }
}

/** Reads an answer of the server. Its streams of responses number no items, so that the last event counts. */
function readDirect(protocol: Protocol, text: string, streamed: boolean): Compared {
  if (!streamed) return compared(wholeFacts(protocol, text))
  if (protocol !== 'responses') return compared(streamFacts(protocol, text))
  const last = text.split('\n').findLast((line) => line.startsWith('data: {')) ?? ''
  return compared(
    wholeFacts(protocol, JSON.stringify((JSON.parse(last.slice('data: '.length)) as Json)['response'])),
  )
}

/** A question, and the answer of the server to a chat client. */
interface Asked {
  readonly question: Question
  readonly chat: Compared
}

/**
 * Where the server answers a question otherwise in another protocol than in chat, by reason. A call is compared
 * with what the server says in the protocol of the channel, so that none of these concerns the gateway.
 */
const DIFFERENCES: readonly {
  readonly protocol: Protocol
  readonly reason: string
  readonly concerns: (asked: Asked) => boolean
}[] = [
  {
    protocol: 'responses',
    reason: 'an answer that reached its maximum is `completed`',
    concerns: ({ chat }) => chat.finish === 'length',
  },
  {
    protocol: 'responses',
    reason: 'the protocol has no stop sequences',
    concerns: ({ question }) => question.stop !== undefined,
  },
  {
    protocol: 'responses',
    reason: '`text.format` is ignored',
    concerns: ({ question }) => question.hasSchema === true,
  },
  {
    protocol: 'messages',
    reason: '`output_config.format` is ignored',
    concerns: ({ question }) => question.hasSchema === true,
  },
  {
    protocol: 'messages',
    reason: 'a text after the result of a call comes before it in the prompt',
    concerns: ({ question }) => question.turns.some((turn) => 'call' in turn),
  },
]

describe.skipIf(withoutLlama(NAME, python))(`${NAME} behind a gateway (seed ${seed})`, () => {
  let llama: LlamaServer
  let gateway: RunningGateway
  beforeAll(async () => {
    llama = await startLlama(python, { seed: MODEL_SEED, slots: 1, context: CONTEXT })
    gateway = await startGateway({ config: configurationOf(llama) })
  })
  afterAll(async () => {
    await gateway?.discard()
    await llama?.kill()
  })

  async function direct(protocol: Protocol, question: Question, streamed: boolean): Promise<Compared> {
    const { path, body } = ASKED[protocol](MODEL, question, streamed)
    const { status, text } = await call(llama.url, body, { path })
    expect(status, text).toBe(200)
    return readDirect(protocol, text, streamed)
  }

  /** The night's questions, and those that a part of their answer ends. */
  async function questions(): Promise<[string, Asked][]> {
    const random = randomFrom(seed)
    const all: [string, Asked][] = []
    for (const [name, question] of Object.entries(questionsOf(seed))) {
      const chat = await direct('chat', question, false)
      all.push([name, { question, chat }])
      // The part begins with no blank, because messages takes none of blanks alone.
      const places = [...chat.text.matchAll(/\S/gu)].map(({ index }) => index)
      const place = places[Math.floor(random() * places.length)]
      if (!name.startsWith('text') || place === undefined) continue
      const count = 1 + Math.floor(random() * 5)
      const stop = [Array.from(chat.text.slice(place)).slice(0, count).join('')]
      const stopped = { ...question, stop }
      all.push([
        `${name}, up to ${JSON.stringify(stop)}`,
        { question: stopped, chat: await direct('chat', stopped, false) },
      ])
    }
    return all
  }

  test('text, calls, end, usage and charge of each answer equal those of the server, in all dialects, whole and streamed', async () => {
    const ends = new Set<string | undefined>()
    const differing = new Set<string>()
    let answers = 0
    const asked = await questions()
    for (const [name, one] of asked) {
      const { question, chat } = one
      ends.add(`${chat.finish}${question.stop ? ' at a sequence' : ''}`)
      for (const protocol of PROTOCOLS) {
        // From here on all of this prompt but its last token is cached; less would be of another prompt.
        await direct(protocol, question, false)
        for (const streamed of [false, true]) {
          const expected = await direct(protocol, question, streamed)
          const reasons = DIFFERENCES.filter((row) => row.protocol === protocol && row.concerns(one))
          if (reasons.length === 0)
            expect(withoutCached(expected), `${name}, ${protocol}`).toEqual(withoutCached(chat))
          else if (JSON.stringify(withoutCached(expected)) !== JSON.stringify(withoutCached(chat)))
            for (const { reason } of reasons) differing.add(reason)
          for (const client of DIALECTS) {
            if (client === 'responses' && question.stop) continue
            const told = `${name}: ${client} at ${protocol}, ${streamed ? 'streamed' : 'whole'}`
            const { path, body } = ASKED[client](protocol, question, streamed)
            const { status, text, headers } = await call(gateway.url, body, { path, key: 'ann' })
            expect(status, `${told}: ${text}`).toBe(200)
            const isNative = client === 'responses' && protocol === 'responses'
            const got = isNative
              ? readDirect(protocol, text, streamed)
              : compared(read(client, text, streamed))
            const isCut = expected.calls.some(({ input }) => input === CUT)
            // Agents would run a call that was cut off: no converted answer ends as if it were complete.
            expect(got, told).toEqual(
              isCut && client !== protocol ? { ...expected, finish: 'length' } : expected,
            )
            const { prompt = 0, cached = 0, output = 0 } = got.usage ?? {}
            expect(databaseOf(gateway.dataDir).usageOf(String(headers['x-request-id'])), told).toMatchObject({
              input_tokens: prompt - cached,
              cache_read_tokens: cached,
              output_tokens: output,
              quota: prompt - cached + 3 * cached + 4 * output,
              reason: 'complete',
              stream: Number(streamed),
            })
            // A setting that the channel's protocol lacks is named.
            if (question.stop && protocol === 'responses')
              expect(headers['x-gateway-dropped'], told).toMatch(/stop/i)
            answers++
          }
        }
      }
    }
    console.info(`${asked.length} questions, ${answers} answers compared; ends: ${[...ends].join(', ')}`)
    expect(ends).toEqual(new Set(['stop', 'stop at a sequence', 'length', 'tools']))
    // A difference that the server no longer has leaves the table.
    expect(differing).toEqual(new Set(DIFFERENCES.map(({ reason }) => reason)))
  }, 1_800_000)

  test('a message that ends at a stop sequence names it, where the channel speaks messages', async () => {
    const { question, chat } = (await questions()).find(([, asked]) => asked.question.stop)?.[1] ?? never()
    for (const streamed of [false, true]) {
      const { path, body } = ASKED.messages('messages', question, streamed)
      const { text } = await call(gateway.url, body, { path, key: 'ann' })
      expect(text).toContain(`"stop_sequence":${JSON.stringify(question.stop?.[0])}`)
      expect(read('messages', text, streamed).text).toBe(chat.text)
    }
  })

  /** What clients of each dialect are told about a prompt that is too long; the server's words follow. */
  const TOO_LONG: Readonly<Record<Dialect, (words: string) => object>> = {
    chat: (message) => ({ code: 'context_length_exceeded', type: 'invalid_request_error', message }),
    responses: (message) => ({ code: 'context_length_exceeded', type: 'invalid_request_error', message }),
    messages: (words) => ({ type: 'invalid_request_error', message: `prompt is too long: ${words}` }),
    gemini: (words) => ({
      status: 'INVALID_ARGUMENT',
      message: `The input token count exceeds the maximum number of tokens allowed: ${words}`,
    }),
  }

  test('a prompt above the context is a 400 that each client recognizes, with the words of the server, and costs nothing', async () => {
    const question = {
      turns: [{ role: 'user' as const, text: wordsFrom(randomFrom(seed), CONTEXT) }],
      max: 5,
    }
    for (const protocol of PROTOCOLS)
      for (const client of DIALECTS)
        for (const streamed of [false, true]) {
          const told = `${client} at ${protocol}, ${streamed ? 'streamed' : 'whole'}`
          const asked = ASKED[protocol](MODEL, question, streamed)
          const server = errorOf(await call(llama.url, asked.body, { path: asked.path }))
          expect(server).toMatchObject({ code: 400, type: 'exceed_context_size_error' })
          const { path, body } = ASKED[client](protocol, question, streamed)
          const answer = await call(gateway.url, body, { path, key: 'ann' })
          expect(answer.status, told).toBe(400)
          expect(errorOf(answer), told).toMatchObject(TOO_LONG[client](String(server['message'])))
          expect(
            databaseOf(gateway.dataDir).usageOf(String(answer.headers['x-request-id']))?.quota ?? 0,
            told,
          ).toBe(0)
        }
  })

  test.each([
    ['/v1/embeddings', '/v1/embeddings', { model: 'chat', input: 'water' }],
    ['/v1/embeddings', '/v1beta/models/chat:embedContent', { content: { parts: [{ text: 'water' }] } }],
    ['/v1/rerank', '/v1/rerank', { model: 'rerank', query: 'water', documents: ['stone'] }],
  ])('what the server was not started for is a 501 with its words: %s, as %s', async (at, path, body) => {
    const server = errorOf(await call(llama.url, { ...body, model: MODEL, input: 'water' }, { path: at }))
    expect(server).toMatchObject({ code: 501, type: 'not_supported_error' })
    const answer = await call(gateway.url, body, { path, key: 'ann' })
    expect(answer.status, answer.text).toBe(501)
    expect(answer.text).toContain(JSON.stringify(server['message']))
  })
})

describe.skipIf(withoutLlama(`${NAME}, killed`, python))(`${NAME}, killed (seed ${seed})`, () => {
  test.each(PROTOCOLS)(
    'a server of %s that is killed is an error for each client, and costs what came',
    async (protocol) => {
      const llama = await startLlama(python, { seed: MODEL_SEED, isEndless: true, slots: 8, context: 16_384 })
      const gateway = await startGateway({ config: configurationOf(llama) }).catch(async (error: unknown) => {
        await llama.kill()
        throw error
      })
      try {
        const question = {
          turns: [{ role: 'user' as const, text: wordsFrom(randomFrom(seed), 5) }],
          max: 16_000,
        }
        const { path, body } = ASKED.messages(MODEL, question, false)
        const { text } = await call(llama.url, body, { path: `${path}/count_tokens` })
        const counted = (JSON.parse(text) as Json)['input_tokens'] as number
        const prompts = new Set<number>()
        const ask = (client: Dialect, streamed: boolean) => {
          const { path, body } = ASKED[client](protocol, question, streamed)
          return open(gateway.url, body, { path, key: 'ann' })
        }
        const whole = DIALECTS.map((client) => ask(client, false))
        const streams = await Promise.all(DIALECTS.map((client) => ask(client, true)))
        await expect
          .poll(async () => (await slotsOf(llama)).every((slot) => slot['is_processing']))
          .toBe(true)
        for (const [at, stream] of streams.entries())
          await expect
            .poll(() => read(DIALECTS[at] ?? never(), stream.text(), true).text.length)
            .toBeGreaterThan(500)
        await llama.kill()

        for (const [at, stream] of streams.entries()) {
          const client = DIALECTS[at] ?? never()
          const { text, headers, broken } = await stream.end()
          const got = read(client, text, true)
          expect({ broken, ends: got.ends, errors: got.errors }, client).toEqual({
            broken: false,
            ends: 0,
            errors: 1,
          })
          const row = () => databaseOf(gateway.dataDir).usageOf(String(headers['x-request-id']))
          await expect.poll(row).toMatchObject({ reason: 'cut', output_tokens: countOf(got.text) })
          const { input_tokens: input, cache_read_tokens: cached, quota } = row() ?? never()
          expect(quota, client).toBe(input + 3 * cached + 4 * countOf(got.text))
          prompts.add(input + cached)
        }
        // Streams of messages begin with the server's count; of others the gateway counts the prompt.
        if (protocol === 'messages') expect([...prompts]).toEqual([counted])
        expect(prompts.size).toBe(1)
        for (const [at, answer] of whole.entries()) {
          const { status, text, headers } = await (await answer).end()
          expect(status, DIALECTS[at]).toBe(500)
          expect(text, DIALECTS[at]).toContain('upstream_error')
          expect(databaseOf(gateway.dataDir).usageOf(String(headers['x-request-id']))?.quota ?? 0).toBe(0)
        }
      } finally {
        await gateway.discard()
        await llama.kill()
      }
    },
    300_000,
  )
})

function read(client: Dialect, text: string, streamed: boolean): Facts {
  return streamed ? streamFacts(client, text) : wholeFacts(client, text)
}

/** An answer without the cached part of its prompt, which depends on the call before. */
function withoutCached({ usage, ...rest }: Compared): object {
  return { ...rest, prompt: usage?.prompt, output: usage?.output }
}

function errorOf({ text }: { readonly text: string }): Json {
  return (JSON.parse(text) as Json)['error'] as Json
}

async function slotsOf(llama: LlamaServer): Promise<Json[]> {
  return (await (await fetch(`${llama.url}/slots`)).json()) as Json[]
}

/** Tokens of a text as the gateway counts it, in pieces of 2,000 characters. */
function countOf(text: string): number {
  const pieces = Array.from({ length: Math.ceil(text.length / 2000) }, (_, at) =>
    text.slice(2000 * at, 2000 * at + 2000),
  )
  return pieces.reduce((sum, piece) => sum + countTokens(piece), 0)
}

function never(): never {
  throw new Error('missing')
}
