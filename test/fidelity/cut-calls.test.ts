import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { DIALECTS, type Dialect, type Json } from './facts.ts'
import { streamFacts, wholeFacts } from './read-facts.ts'
import { ADMIN, askedOf, startRoads } from './roads.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startRoads()
})
afterAll(() => fixture?.close())

const CUT = '{"city":"Par'
/** The arguments that a client gets where they were cut off, in a whole response and in a stream. */
const INPUT: Readonly<Record<Dialect, readonly [whole: unknown, streamed: unknown]>> = {
  chat: [CUT, CUT],
  messages: [{}, CUT],
  responses: [CUT, CUT],
  gemini: [{}, {}],
}

/** An answer of a chat provider that calls a tool with these arguments. */
function chatAnswer(args: string, reason: string): string {
  return JSON.stringify({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', tool_calls: [callOf(args)] }, finish_reason: reason },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 },
  })
}

function chatStream(args: string, reason: string): string {
  const chunk = (choice: object): string =>
    `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, ...choice }] })}\n\n`
  const half = Math.ceil(args.length / 2)
  return [
    chunk({ delta: { tool_calls: [{ index: 0, ...callOf(args.slice(0, half)) }] }, finish_reason: null }),
    chunk({
      delta: { tool_calls: [{ index: 0, function: { arguments: args.slice(half) } }] },
      finish_reason: null,
    }),
    chunk({ delta: {}, finish_reason: reason }),
    'data: [DONE]\n\n',
  ].join('')
}

const callOf = (args: string): object => ({
  id: 'call_1',
  type: 'function',
  function: { name: 'weather', arguments: args },
})

/** The item of a call in a response of the responses API, or in the last event of its stream. */
function itemIn(text: string, streamed: boolean): Json {
  const last = streamed ? (/^data: (.*"type":"response\.incomplete".*)$/m.exec(text)?.[1] ?? '') : text
  const value = JSON.parse(last) as Json
  return (streamed ? value['response'] : value)['output'].at(-1)
}

const CONVERTED = DIALECTS.filter((client) => client !== 'chat')

describe.each([false, true])('arguments that the provider cut off (streamed: %s)', (streamed) => {
  test.each(
    CONVERTED.flatMap((client) => ['length', 'tool_calls', 'stop'].map((reason) => ({ client, reason }))),
  )(
    'a tool call with cut-off arguments ends with the reason length for a client of $client, whatever the reason: $reason',
    async (row) => {
      const { client, reason } = row
      const text = streamed ? chatStream(CUT, reason) : chatAnswer(CUT, reason)
      const answer = await askedOf(fixture, { client, dialect: 'chat', streamed }, text)
      const got = (streamed ? streamFacts : wholeFacts)(client, answer.text)
      expect(got).toMatchObject({ text: '', finish: 'length', ends: 1, errors: 0 })
      expect(got.calls).toMatchObject([{ name: 'weather', input: INPUT[client][streamed ? 1 : 0] }])
      if (client !== 'gemini') expect(got.calls[0]?.id).toBe('call_1')
      if (client === 'responses')
        expect(itemIn(answer.text, streamed)).toMatchObject({ status: 'incomplete', arguments: CUT })
    },
  )

  test.each([
    ['length', ''],
    ['tool_calls', 'cut_arguments'],
    ['stop', 'cut_arguments'],
  ])(
    "cut-off tool arguments are noted in the usage row, unless the provider's finish reason is length (%s)",
    async (reason, note) => {
      const text = streamed ? chatStream(CUT, reason) : chatAnswer(CUT, reason)
      const answer = await askedOf(fixture, { client: 'messages', dialect: 'chat', streamed }, text)
      const id = String(answer.headers['x-request-id'])
      const { url } = fixture.gateway
      const list = await manage<{ items: readonly object[] }>(url, ADMIN, `GET /api/log/?request_id=${id}`)
      expect(list.data.items).toMatchObject([{ id, note }])
      expect((await manage(url, ADMIN, `GET /api/log/${id}`)).data).toMatchObject({ id, note })
      const headers = { authorization: ADMIN.accessToken, 'gateway-user': String(ADMIN.id) }
      const path = `/api/log/export?request_id=${id}`
      const csv = await call(url, undefined, { method: 'GET', path, headers })
      const [names = '', row = ''] = csv.text.split('\r\n')
      expect(row.split(',')[names.split(',').indexOf('note')]).toBe(note)
    },
  )

  test('tool arguments that are complete are not noted as cut off in the usage row', async () => {
    const text = streamed ? chatStream('{}', 'tool_calls') : chatAnswer('{}', 'tool_calls')
    const answer = await askedOf(fixture, { client: 'messages', dialect: 'chat', streamed }, text)
    const id = String(answer.headers['x-request-id'])
    expect((await manage(fixture.gateway.url, ADMIN, `GET /api/log/${id}`)).data).toMatchObject({ note: '' })
  })

  test("tool arguments that another dialect's upstream cut off reach a chat client as the text that arrived", async () => {
    const text = streamed ? messagesStream(CUT) : responsesAnswer(CUT)
    const dialect = streamed ? 'messages' : 'responses'
    const answer = await askedOf(fixture, { client: 'chat', dialect, streamed }, text)
    const got = (streamed ? streamFacts : wholeFacts)('chat', answer.text)
    expect(got.finish).toBe('length')
    expect(got.calls).toEqual([{ id: 'call_1', name: 'weather', input: CUT }])
  })

  test('cut-off tool arguments in a whole answer make its finish reason length even if another call is complete', async () => {
    const whole = chatAnswer('{}', 'tool_calls')
    const text = streamed
      ? chatStream('{}', 'tool_calls')
      : whole.replace('"tool_calls":[', `"tool_calls":[${JSON.stringify({ ...callOf(CUT), id: 'call_0' })},`)
    const answer = await askedOf(fixture, { client: 'messages', dialect: 'chat', streamed }, text)
    const got = (streamed ? streamFacts : wholeFacts)('messages', answer.text)
    expect(got.finish).toBe(streamed ? 'tools' : 'length')
  })
})

function messagesStream(args: string): string {
  const event = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
  return [
    event('message_start', {
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        usage: { input_tokens: 3, output_tokens: 1 },
      },
    }),
    event('content_block_start', {
      index: 0,
      content_block: { type: 'tool_use', id: 'call_1', name: 'weather', input: {} },
    }),
    event('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json: args } }),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } }),
    event('message_stop', {}),
  ].join('')
}

function responsesAnswer(args: string): string {
  return JSON.stringify({
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    model: 'm',
    output: [
      {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'call_1',
        name: 'weather',
        arguments: args,
        status: 'completed',
      },
    ],
    usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
  })
}
