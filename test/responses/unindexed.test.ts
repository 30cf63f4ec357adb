import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { DIALECTS, type Dialect, type Json } from '../fidelity/facts.ts'
import { streamFacts } from '../fidelity/read-facts.ts'
import { QUESTIONS } from '../fidelity/roads.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(['llama']),
    channels: [channel('llama', upstream.baseUrl('llama'), { protocol: 'responses' })],
    guards: [
      {
        name: 'names',
        do: 'redact',
        where: ['output'],
        match: { words: ['Rumpelstiltskin'] },
        tokens: ['token-guarded'],
      },
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('guarded')])],
  }))
})
afterAll(() => fixture?.close())

const TEXT = 'I look.'
const CALLS = [
  { id: '1', input: { place: 'gate' }, pieces: ['{"place":', '"gate"', '}'] },
  { id: '2', input: { place: 'lock' }, pieces: ['{"place"', ':"lo', 'ck"}'] },
]
const USAGE = {
  input_tokens: 20,
  output_tokens: 9,
  total_tokens: 29,
  input_tokens_details: { cached_tokens: 4 },
}

type Ids = (id: string) => object

/** How servers say to which item an event belongs: in the item, and in the events between. */
const SERVERS: Readonly<Record<string, { readonly item: Ids; readonly delta: Ids; readonly index?: true }>> =
  {
    'has ids alone': {
      item: (id) => ({ id: `fc_${id}`, call_id: `call_${id}` }),
      delta: (id) => ({ item_id: `fc_${id}` }),
    },
    'has ids of calls alone': {
      item: (id) => ({ call_id: `fc_${id}` }),
      delta: (id) => ({ item_id: `fc_${id}` }),
    },
    'states no ids at pieces': {
      item: (id) => ({ id: `fc_${id}`, call_id: `call_${id}` }),
      delta: () => ({}),
    },
    'has an index where items begin and end, but not at pieces': {
      item: (id) => ({ id: `fc_${id}`, call_id: `call_${id}` }),
      delta: (id) => ({ item_id: `fc_${id}` }),
      index: true,
    },
  }

/** The stream of llama.cpp's server: all items begin, and only then end. */
function streamOf({ item, delta, index }: (typeof SERVERS)[string]): string {
  const message = { id: 'msg_1', type: 'message', role: 'assistant' }
  const part = { type: 'output_text', annotations: [], logprobs: [], text: TEXT }
  const callOf = ({ id }: (typeof CALLS)[number], args: string, status: string) => ({
    ...item(id),
    type: 'function_call',
    name: 'look',
    arguments: args,
    status,
  })
  const done = [
    { ...message, status: 'completed', content: [part] },
    ...CALLS.map((call) => callOf(call, call.pieces.join(''), 'completed')),
  ]
  const at = (place: number): object => (index ? { output_index: place } : {})
  const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm' }
  const events: Json[] = [
    { type: 'response.created', response: { ...response, status: 'in_progress' } },
    {
      type: 'response.output_item.added',
      ...at(0),
      item: { ...message, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', item_id: 'msg_1', part: { type: 'output_text', text: '' } },
    { type: 'response.output_text.delta', item_id: 'msg_1', delta: TEXT },
    ...CALLS.flatMap((call, place) => [
      { type: 'response.output_item.added', ...at(1 + place), item: callOf(call, '', 'in_progress') },
      ...call.pieces.map((piece) => ({
        type: 'response.function_call_arguments.delta',
        ...delta(call.id),
        delta: piece,
      })),
    ]),
    { type: 'response.output_text.done', item_id: 'msg_1', text: TEXT },
    { type: 'response.content_part.done', item_id: 'msg_1', part },
    ...done.map((each, place) => ({ type: 'response.output_item.done', ...at(place), item: each })),
    {
      type: 'response.completed',
      response: { ...response, status: 'completed', output: done, usage: USAGE },
    },
  ]
  return framesOf(events)
}

function framesOf(events: readonly Json[]): string {
  return events.map((event) => `event: ${event['type']}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}

function asked(client: Dialect, stream: string, key = 'ann'): Promise<FullResponse> {
  fixture.upstream.script('llama', { kind: 'stream', frames: [stream], ending: 'no done' })
  const { path, body } = QUESTIONS[client]('llama', true)
  return fixture.chat(key, body, { path })
}

describe.each(Object.entries(SERVERS))('a server of responses that %s', (_, server) => {
  // A client of responses gets the bytes of the server.
  test.each(DIALECTS.filter((client) => client !== 'responses'))(
    'a text and two calls of a stream without `output_index` arrive once each, in order, for a client of %s',
    async (client) => {
      const answer = await asked(client, streamOf(server))
      expect(streamFacts(client, answer.text)).toMatchObject({
        text: TEXT,
        calls: CALLS.map(({ input }) => ({ name: 'look', input })),
        finish: 'tools',
        usage: { prompt: 20, cached: 4, output: 9 },
        ends: 1,
        errors: 0,
      })
      expect(rowOf(answer)).toMatchObject({
        input_tokens: 16,
        cache_read_tokens: 4,
        output_tokens: 9,
        reason: 'complete',
      })
    },
  )
})

test('the texts of two items without `output_index` are not one text for a guard, and stay with their items', async () => {
  const texts = { msg_1: 'a Rumpel', msg_2: 'stiltskin' }
  const item = (id: string) => ({ id, type: 'message', role: 'assistant' })
  const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm' }
  const done = Object.entries(texts).map(([id, text]) => ({
    ...item(id),
    content: [{ type: 'output_text', text }],
  }))
  const stream = framesOf([
    { type: 'response.created', response },
    ...Object.entries(texts).flatMap(([id, delta]) => [
      { type: 'response.output_item.added', item: item(id) },
      { type: 'response.output_text.delta', item_id: id, delta },
    ]),
    ...done.map((each) => ({ type: 'response.output_item.done', item: each })),
    {
      type: 'response.completed',
      response: { ...response, status: 'completed', output: done, usage: USAGE },
    },
  ])
  const { text } = await asked('responses', stream, 'guarded')
  const said = (id: string) =>
    [...text.matchAll(new RegExp(`^data: .*"item_id":"${id}","delta":"(.*)"}$`, 'gm'))]
      .map(([, delta]) => delta)
      .join('')
  expect({ msg_1: said('msg_1'), msg_2: said('msg_2') }).toEqual(texts)
})

test('a stream of responses that breaks off costs the same with and without `output_index`', async () => {
  const call = {
    id: 'fc_1',
    type: 'function_call',
    call_id: 'call_1',
    name: 'look',
    arguments: '{"place":"the northern gate"}',
  }
  const charge = async (isIndexed: boolean) => {
    const at = (place: number): object => (isIndexed ? { output_index: place } : {})
    const stream = framesOf([
      { type: 'response.created', response: { id: 'resp_1', object: 'response', created_at: 1, model: 'm' } },
      {
        type: 'response.output_item.added',
        ...at(0),
        item: { id: 'msg_1', type: 'message', role: 'assistant' },
      },
      { type: 'response.output_text.delta', ...at(0), item_id: 'msg_1', delta: TEXT },
      // Its arguments were in no piece.
      { type: 'response.output_item.added', ...at(1), item: { ...call, arguments: '' } },
      { type: 'response.output_item.done', ...at(1), item: call },
    ])
    fixture.upstream.script('llama', { kind: 'stream', frames: [stream], ending: 'close' })
    const { path, body } = QUESTIONS.responses('llama', true)
    const answer = await (await fixture.live('ann', body, { path })).end()
    await expect.poll(() => rowOf(answer)).toMatchObject({ reason: 'cut' })
    return rowOf(answer)?.output_tokens
  }
  expect(await charge(false)).toBe(await charge(true))
})

function rowOf({ headers }: FullResponse): UsageRow | undefined {
  return databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))
}
