import type { FullResponse } from '../fixtures/client.ts'
import { AMPLE, channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, retryWhileOverloaded, startFixture } from '../fixtures/fixture.ts'
import { DIALECTS, type Dialect } from './facts.ts'

/** A call from a client of one dialect to a provider of one. */
export interface Road {
  readonly client: Dialect
  readonly dialect: Dialect
  readonly streamed: boolean
}

/** The administrator. */
export const ADMIN = { id: 3, accessToken: 'the-access-token-of-ada' }

/** A gateway with a channel, a model and a lane for each dialect, all under its name. */
export function startRoads(): Promise<Fixture> {
  return startFixture((upstream) => ({
    options: { retries: 0 },
    models: Object.fromEntries(DIALECTS.map((name) => [name, { vendor: 'acme', price: PLAIN_PRICE }])),
    channels: DIALECTS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { quota: AMPLE }),
      user(4, 'poor', [token('poor')], { quota: 100_000 }),
      user(3, 'ada', [], { access_token: ADMIN.accessToken, role: 10 }),
    ],
  }))
}

/** Makes the call of such a client; the provider responds with this text. */
export function askedOf(fixture: Fixture, road: Road, text: string): Promise<FullResponse> {
  fixture.upstream.script(
    road.dialect,
    road.streamed ? { kind: 'stream', frames: [text], ending: 'no done' } : { kind: 'whole', body: text },
  )
  return asked(fixture, road)
}

/** Makes the call of such a client; the provider responds as scripted. */
export function asked(fixture: Fixture, { client, dialect, streamed }: Road): Promise<FullResponse> {
  const { path, body } = QUESTIONS[client](dialect, streamed)
  return retryWhileOverloaded(() => fixture.chat('ann', body, { path }))
}

/** The request of a client of each dialect. */
export const QUESTIONS: Readonly<Record<Dialect, Question>> = {
  chat: (model, stream) => ({
    path: '/v1/chat/completions',
    body: { model, messages: [{ role: 'user', content: 'hi' }], ...(stream && STREAMED) },
  }),
  messages: (model, stream) => ({
    path: '/v1/messages',
    body: { model, max_tokens: 65_536, messages: [{ role: 'user', content: 'hi' }], stream },
  }),
  responses: (model, stream) => ({ path: '/v1/responses', body: { model, input: 'hi', stream } }),
  gemini: (model, stream) => ({
    path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  }),
}
const STREAMED = { stream: true, stream_options: { include_usage: true } }

type Question = (model: string, stream: boolean) => { readonly path: string; readonly body: object }
