import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Fixture } from '../fixtures/fixture.ts'
import { DIALECTS, type Dialect, type Json } from './facts.ts'
import { askedOf, asked, startRoads } from './roads.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startRoads()
})
afterAll(() => fixture?.close())

/** An error of a provider: its dialect, its HTTP status, and the member `error` of its body. */
interface Case {
  readonly dialect: Dialect
  readonly status: number
  readonly error: Json
  /**
   * Type and code for chat and responses clients of another dialect, and for messages clients; undefined
   * where the code is the gateway's own, which messages does not have.
   */
  readonly chat: Told
  readonly messages: Told
  /** The reason for Gemini clients of another dialect. */
  readonly reason: string
  /** The equivalent status in a stream, if it differs. */
  readonly streamed?: number
}
type Told = readonly [type: string, code: string | undefined]

const CASES: readonly Case[] = [
  {
    dialect: 'chat',
    status: 400,
    error: { type: 'invalid_request_error', code: 'context_length_exceeded' },
    chat: ['invalid_request_error', 'context_length_exceeded'],
    messages: ['invalid_request_error', 'context_length_exceeded'],
    reason: 'context_length_exceeded',
  },
  {
    dialect: 'chat',
    status: 422,
    error: { type: 'VendorError', code: null },
    chat: ['invalid_request_error', 'VendorError'],
    messages: ['invalid_request_error', 'VendorError'],
    reason: 'VendorError',
    streamed: 500,
  },
  {
    dialect: 'messages',
    status: 404,
    error: { type: 'not_found_error' },
    chat: ['invalid_request_error', 'not_found_error'],
    messages: ['not_found_error', undefined],
    reason: 'not_found_error',
  },
  {
    dialect: 'messages',
    status: 529,
    error: { type: 'overloaded_error' },
    chat: ['overloaded_error', undefined],
    messages: ['overloaded_error', undefined],
    reason: 'overloaded_error',
  },
  {
    dialect: 'responses',
    status: 500,
    error: { type: 'server_error', code: null },
    chat: ['server_error', undefined],
    messages: ['api_error', 'server_error'],
    reason: 'server_error',
  },
  {
    dialect: 'gemini',
    status: 429,
    error: { code: 429, status: 'RESOURCE_EXHAUSTED' },
    chat: ['rate_limit_error', 'RESOURCE_EXHAUSTED'],
    messages: ['rate_limit_error', 'RESOURCE_EXHAUSTED'],
    reason: 'RESOURCE_EXHAUSTED',
  },
]
const ROADS = CASES.flatMap((one) =>
  DIALECTS.filter((client) => client !== one.dialect).map((client) => ({
    ...one,
    client,
    type: String(one.error['type'] ?? one.error['status']),
  })),
)

const MESSAGE = 'not like this'

/** The beginning of a stream, with some text. */
const BEGUN: Readonly<Record<Dialect, string>> = {
  chat: frame({ id: 'c', choices: [{ index: 0, delta: { content: 'Hel' } }] }),
  messages:
    frame({ type: 'message_start', message: { id: 'msg_1', model: 'm', role: 'assistant', content: [] } }) +
    frame({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) +
    frame({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } }),
  responses:
    frame({ type: 'response.created', response: { id: 'resp_1', model: 'm', status: 'in_progress' } }) +
    frame({
      type: 'response.output_item.added',
      output_index: 0,
      item: { type: 'message', id: 'msg_1', role: 'assistant', content: [] },
    }) +
    frame({
      type: 'response.output_text.delta',
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      delta: 'Hel',
    }),
  gemini: frame({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hel' }] } }] }),
}

function frame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

/** A provider's error, as a whole body. */
function bodyOf(dialect: Dialect, error: Json): object {
  return { ...(dialect === 'messages' && { type: 'error' }), error: { ...error, message: MESSAGE } }
}

/** The last event of a stream. */
function lastOf(text: string): Json {
  return JSON.parse(
    /^data: (.*)$/m.exec(
      text
        .trim()
        .split(/\r?\n\r?\n/)
        .at(-1) ?? '',
    )?.[1] ?? '',
  ) as Json
}

/** Type and code of an error for clients that get both; status and reason for those of Gemini. */
function told(client: Dialect, { error }: Json): Told {
  return client === 'gemini' ? [error.status, error.details[0].reason] : [error.type, error.code]
}

const STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  404: 'NOT_FOUND',
  422: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  529: 'UNAVAILABLE',
}

describe('error types for clients of other dialects', () => {
  test.each(ROADS)(
    "an error type that the client's dialect lacks becomes that of its status: $type, status $status of $dialect, for $client",
    async (row) => {
      const { client, dialect, status, error } = row
      fixture.upstream.script(dialect, {
        kind: 'status',
        status,
        body: JSON.stringify(bodyOf(dialect, error)),
      })
      const answer = await asked(fixture, { client, dialect, streamed: false })
      expect(answer.status).toBe(status)
      const expected = { ...row, gemini: [STATUSES[status], row.reason], responses: row.chat }[client]
      const got = told(client, JSON.parse(answer.text) as Json)
      expect(got).toEqual([
        expected[0],
        expected[1] ?? (client === 'messages' ? undefined : expect.any(String)),
      ])
    },
  )

  test.each(ROADS)(
    "an error type in a stream is kept if the client's dialect has it: $type of $dialect, for a client of $client",
    async (row) => {
      const { client, dialect, status, error, streamed = status, type } = row
      const text = `${BEGUN[dialect]}event: error\n${frame(bodyOf(dialect, error))}`
      const answer = await askedOf(fixture, { client, dialect, streamed: true }, text)
      const last = lastOf(answer.text)
      if (client === 'responses') {
        expect(last['response'].error).toEqual({
          code: RESPONSE_CODES[type] ?? row.chat[1],
          message: MESSAGE,
        })
        return
      }
      const own = { ...row, gemini: [STATUSES[streamed], row.reason] as const }[client]
      const expected = streamed === status ? own : [client === 'gemini' ? own[0] : 'api_error', own[1]]
      expect(told(client, last)).toEqual([
        expected[0],
        expected[1] ?? (client === 'messages' ? undefined : expect.any(String)),
      ])
    },
  )

  test.each(DIALECTS)(
    'the error type of %s is unchanged for clients of the same dialect',
    async (dialect) => {
      const error = dialect === 'gemini' ? { code: 400, status: 'OWN' } : { type: 'OwnError', code: null }
      const body = JSON.stringify(bodyOf(dialect, error))
      fixture.upstream.script(dialect, { kind: 'status', status: 400, body })
      const answer = await asked(fixture, { client: dialect, dialect, streamed: false })
      const got = (JSON.parse(answer.text) as Json)['error']
      expect(got.type ?? got.status).toBe(dialect === 'gemini' ? 'OWN' : 'OwnError')
    },
  )

  test.each([
    ['chat', '{"error":{"message":"m","code":429}}', 'rate_limit_error'],
    ['responses', '{"error":{"message":"m","code":"context_length_exceeded"}}', 'invalid_request_error'],
    ['gemini', '{"error":{"message":"m","status":"UNAVAILABLE"}}', 'api_error'],
  ] as const)(
    'an error without a type in a %s stream gets the type of its code or status: %s',
    async (dialect, data, type) => {
      const text = `${BEGUN[dialect]}event: error\ndata: ${data}\n\n`
      const answer = await askedOf(fixture, { client: 'messages', dialect, streamed: true }, text)
      expect(lastOf(answer.text)['error'].type).toBe(type)
    },
  )
})

/** Codes that responses clients evaluate in a stream, where they have one for the error. */
const RESPONSE_CODES: Readonly<Record<string, string>> = {
  RESOURCE_EXHAUSTED: 'rate_limit_exceeded',
  not_found_error: 'invalid_prompt',
  overloaded_error: 'server_is_overloaded',
}
