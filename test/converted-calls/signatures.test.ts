import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import {
  chatClient,
  type ClientOptions,
  converse,
  type DroppingClient,
  messagesClient,
  responsesClient,
} from '../fixtures/dropping-clients.ts'
import { geminiClient } from '../fixtures/dropping-gemini-client.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { geminiWire } from '../fixtures/gemini-signing-wire.ts'
import { SigningModel } from '../fixtures/signing-model.ts'
import { chatWire, messagesWire, responsesWire } from '../fixtures/signing-wires.ts'

const CLIENTS = {
  chat: chatClient,
  messages: messagesClient,
  responses: responsesClient,
  gemini: geminiClient,
} as const
const WIRES = {
  messages: messagesWire,
  responses: responsesWire,
  gemini: geminiWire,
  chat: chatWire,
} as const
const UPSTREAMS = ['messages', 'responses', 'gemini', 'chat'] as const
/** A model that requires its signatures. */
const GEMINI = 'gemini-3-pro-preview'
const PAIRS = UPSTREAMS.flatMap((upstream) =>
  (['chat', 'messages', 'responses', 'gemini'] as const)
    .filter((client) => client !== upstream)
    .flatMap((client) => [false, true].map((stream) => ({ client, upstream, stream }))),
)

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(UPSTREAMS),
    channels: UPSTREAMS.map((name) =>
      channel(name, upstream.baseUrl(name), {
        protocol: name,
        ...((name === 'gemini' || name === 'chat') && { model_mapping: { [name]: GEMINI } }),
      }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
})
afterAll(() => fixture?.close())

/** Creates a new model behind a channel. */
function modelBehind(upstream: (typeof UPSTREAMS)[number]): SigningModel {
  const model = new SigningModel(WIRES[upstream])
  fixture.upstream.decide(upstream, model.decide)
  return model
}

function clientOf(client: keyof typeof CLIENTS, options: ClientOptions): DroppingClient {
  return CLIENTS[client](() => fixture.gateway.url, options)
}

describe('signatures that a client drops', () => {
  test.each(PAIRS)(
    "a model's thought signatures are returned to it from a client that drops them: $client, $upstream, stream: $stream",
    async ({ client, upstream, stream }) => {
      const model = modelBehind(upstream)
      const calls = await converse(clientOf(client, { model: upstream, stream }), 5)
      expect(model.refusals).toEqual([])
      expect(calls).toBe(15)
      expect(model.signatures).toBeGreaterThanOrEqual(15)
    },
  )
})
