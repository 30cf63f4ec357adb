import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { channel, ROOT, token, user } from '../../test/fixtures/configuration.ts'
import { databaseOf } from '../../test/fixtures/database.ts'
import { startGateway } from '../../test/fixtures/gateway.ts'
import { randomFrom } from '../../test/fixtures/random.ts'
import { metricsOf } from '../../test/operations/metrics-text.ts'

/** The context that is assumed for a model of which the price data know nothing. */
const CONTEXT = 200_000
const USES = 4
/** One quota unit for each token. */
const PRICE = { input: 2, output: 2, tools: { web_search: 0, file_search: 0, google_search: 0 } }
const AT_ONCE = 40
const ROUNDS = 5
/** Pays ten calls at once that may use a tool four times. */
const BUDGET = 10 * (USES * CONTEXT + 20_000)

/** A request with a tool, and what its provider may read with each use of it. */
interface Kind {
  readonly name: string
  readonly path: string
  readonly body: object
  readonly uses: number
  readonly perUse: number
  readonly answer: (response: ServerResponse, prompt: number, uses: number) => void
}

const HI = [{ role: 'user', content: 'hi' }]
const json = (response: ServerResponse, value: object): void => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
const responseOf = (prompt: number, uses: number) => ({
  id: 'r',
  object: 'response',
  created_at: 7,
  status: 'completed',
  model: 'm',
  output: Array.from({ length: uses }, (_, at) => ({
    id: `ws_${at}`,
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search' },
  })),
  usage: { input_tokens: prompt, output_tokens: 1, total_tokens: prompt + 1 },
})

const KINDS: readonly Kind[] = [
  {
    name: 'responses, web search, whole',
    path: '/v1/responses',
    body: { model: 'responses', input: 'hi', max_output_tokens: 16, tools: [{ type: 'web_search' }] },
    uses: USES,
    perUse: CONTEXT,
    answer: (response, prompt, uses) => json(response, responseOf(prompt, uses)),
  },
  {
    name: 'responses, web search, streamed',
    path: '/v1/responses',
    body: {
      model: 'responses',
      input: 'hi',
      max_output_tokens: 16,
      stream: true,
      tools: [{ type: 'web_search' }],
    },
    uses: USES,
    perUse: CONTEXT,
    answer(response, prompt, uses) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const whole = responseOf(prompt, uses)
      const events = [
        { type: 'response.created', response: { ...whole, status: 'in_progress', output: [], usage: null } },
        ...whole.output.flatMap((item, at) => [
          { type: 'response.output_item.added', output_index: at, item },
          { type: 'response.output_item.done', output_index: at, item },
        ]),
        { type: 'response.completed', response: whole },
      ]
      let next = 0
      const timer = setInterval(() => {
        const event = events[next]
        if (!event) {
          clearInterval(timer)
          return response.end()
        }
        const data = JSON.stringify({ ...event, sequence_number: next++ })
        response.write(`event: ${event.type}\ndata: ${data}\n\n`)
      }, 30)
      response.on('close', () => clearInterval(timer))
    },
  },
  {
    name: 'messages, web fetch of at most 5,000 tokens, whole',
    path: '/v1/messages',
    body: {
      model: 'messages',
      max_tokens: 16,
      messages: HI,
      tools: [{ type: 'web_fetch_20250910', name: 'web_fetch', max_uses: USES, max_content_tokens: 5_000 }],
    },
    uses: USES,
    perUse: USES * 5_000,
    answer: (response, prompt) =>
      json(response, {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [{ type: 'text', text: 'said' }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: prompt, output_tokens: 1 },
      }),
  },
  {
    name: 'gemini, URL context, whole',
    path: '/v1beta/models/gemini:generateContent',
    body: {
      contents: [{ parts: [{ text: 'hi' }] }],
      generationConfig: { maxOutputTokens: 16 },
      tools: [{ url_context: {} }],
    },
    uses: USES,
    perUse: CONTEXT,
    answer: (response, prompt) =>
      json(response, {
        candidates: [
          { content: { role: 'model', parts: [{ text: 'said' }] }, finishReason: 'STOP', index: 0 },
        ],
        usageMetadata: { promptTokenCount: prompt, candidatesTokenCount: 1, totalTokenCount: prompt + 1 },
      }),
  },
]

/** What forty calls at once of one kind did to a budget for ten of them, five times. */
export interface FilledPrompts {
  readonly name: string
  readonly answered: number
  readonly refused: number
  readonly overdrawn: number
  readonly exceeded: number
}

/**
 * Measures calls whose prompts their provider fills: what it reports is anywhere within what the tools of the
 * request allow. Nothing may be overdrawn. A stream may be charged above its hold if several of its uses arrive
 * together with its end.
 */
export async function measureFilledPrompts(seed: number, only: string | undefined): Promise<FilledPrompts[]> {
  const results: FilledPrompts[] = []
  for (const kind of KINDS)
    if (only === undefined || `filled prompts, ${kind.name}`.includes(only))
      results.push(await measure(kind, seed))
  return results
}

async function measure(kind: Kind, seed: number): Promise<FilledPrompts> {
  const random = randomFrom(seed)
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const uses = Math.round(kind.uses * random())
      const read = Array.from({ length: uses }, () => Math.floor(kind.perUse * random()))
      setTimeout(
        () =>
          kind.answer(
            response,
            read.reduce((sum, one) => sum + one, 2),
            uses,
          ),
        50,
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const names = ['responses', 'messages', 'gemini']
  const gateway = await startGateway({
    config: {
      options: { max_calls: 500, hold_wait: '500ms' },
      models: Object.fromEntries(names.map((name) => [name, { vendor: 'acme', price: PRICE }])),
      channels: names.map((name) => channel(name, url, { protocol: name })),
      users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: BUDGET })])],
    },
    env: { LOG_LEVEL: 'warn' },
  })
  try {
    const statuses: number[] = []
    const headers = {
      'content-type': 'application/json',
      authorization: 'Bearer sk-ann',
      'x-goog-api-key': 'sk-ann',
    }
    const body = JSON.stringify(kind.body)
    for (let round = 0; round < ROUNDS; round++) {
      const calls = Array.from({ length: AT_ONCE }, async () => {
        const answer = await fetch(`${gateway.url}${kind.path}`, { method: 'POST', headers, body })
        await answer.text()
        statuses.push(answer.status)
      })
      await Promise.all(calls)
    }
    const answered = statuses.filter((status) => status === 200).length
    return {
      name: `filled prompts, ${kind.name}`,
      answered,
      refused: statuses.length - answered,
      overdrawn: Math.max(0, -databaseOf(gateway.dataDir).token('token-ann').remain_quota),
      exceeded: (await metricsOf(gateway.url)).sum('sluice_hold_exceeded_total'),
    }
  } finally {
    await gateway.discard()
    server.closeAllConnections()
    server.close()
  }
}
