import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { CLIENTS, PICTURE, RESULT } from '../fixtures/conversing-clients.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import {
  type EveryProvider,
  REFUSAL,
  SAID,
  startEveryProvider,
} from '../fixtures/providers/every-provider.ts'

const CHANNELS = [
  'plain-chat',
  'plain-messages',
  'plain-responses',
  'plain-gemini',
  'azure-chat',
  'azure-messages',
  'azure-responses',
  'bedrock-messages',
  'bedrock-converse',
  'vertex-chat',
  'vertex-gemini',
  'vertex-messages',
]
const DIALECTS = ['chat', 'messages', 'responses', 'gemini'] as const

let providers: EveryProvider
let gateway: RunningGateway
beforeAll(async () => {
  providers = await startEveryProvider()
  gateway = await startGateway({
    config: {
      options: { retries: 0, media: { allow_private_networks: true } },
      models: priced(CHANNELS),
      channels: providers.channels,
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  await providers?.close()
})

const ask = (client: (typeof DIALECTS)[number], model: string, stream: boolean): Promise<FullResponse> =>
  call(gateway.url, CLIENTS[client].body(model, stream), {
    key: 'ann',
    path: CLIENTS[client].path(model, stream),
  })

test('the tests of conversions cover every kind of channel of every provider', () => {
  expect(providers.channels.map(({ name }) => name).sort()).toEqual([...CHANNELS].sort())
})

describe.each(CHANNELS)('a channel of %s', (model) => {
  describe.each(DIALECTS)('called by a client of %s', (client) => {
    test.each([
      ['whole', false],
      ['streamed', true],
    ])(
      'an image, a tool call and its result reach the provider, and a text and a tool call are returned: %s',
      async (_, stream) => {
        providers.become('answer')
        const answer = await ask(client, model, stream)
        expect(answer.status, answer.text).toBe(200)
        expect(CLIENTS[client].read(answer.text, stream)).toEqual({
          text: SAID.text,
          calls: SAID.calls.map(({ id, name, input }) => ({ id, name, input: JSON.parse(input) })),
        })
        if (stream) expect(CLIENTS[client].isFinished(answer.text)).toBe(true)
        const sent = providers.lastBody(model)
        for (const part of [PICTURE, RESULT, '"look"', 'integer']) expect(sent).toContain(part)
        const row = databaseOf(gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
        expect(row).toMatchObject({ channel: model, input_tokens: 10, output_tokens: 5, reason: 'complete' })
      },
    )

    test.each([false, true])(
      "a provider's refusal of a call is passed on in the client's dialect: stream %s",
      async (stream) => {
        providers.become('refuse')
        const answer = await ask(client, model, stream)
        expect(answer.status, answer.text).toBe(400)
        expect(JSON.parse(answer.text).error.message).toContain(REFUSAL)
        const envelope =
          client === 'gemini' ? { error: { code: 400 } } : { error: { type: expect.any(String) } }
        expect(JSON.parse(answer.text)).toMatchObject(envelope)
      },
    )

    test('a stream whose connection breaks after the finish reason is complete for the client', async () => {
      providers.become('reset after the reason')
      const answer = await ask(client, model, true)
      expect(CLIENTS[client].read(answer.text, true)).toMatchObject({
        text: SAID.text,
        calls: [{ name: 'look' }],
      })
      expect(answer.text).not.toMatch(/"error":\{|"type":"error"/)
      const row = databaseOf(gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
      expect(row).toMatchObject({ input_tokens: 10, output_tokens: 5, reason: 'complete' })
    })

    test("a provider's stream that broke off never looks finished to the client", async () => {
      providers.become('break off')
      const answer = await ask(client, model, true)
      expect(CLIENTS[client].isFinished(answer.text), answer.text).toBe(false)
      expect(answer.text).toContain('error')
    })
  })
})
