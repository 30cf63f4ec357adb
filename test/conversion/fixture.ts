import {
  AMPLE,
  channel,
  type Configuration,
  PLAIN_PRICE,
  priced,
  ROOT,
  token,
  user,
} from '../fixtures/configuration.ts'
import type { FullResponse, CallOptions } from '../fixtures/client.ts'
import type { GatewayOptions } from '../fixtures/gateway.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

/** Whether the channel speaks the client's dialect. */
export const MODES = ['native', 'converted'] as const
export type Mode = (typeof MODES)[number]

/** The model behind a channel of each dialect. */
export const MODEL = { chat: 'speaks-chat', messages: 'speaks-messages' } as const

/**
 * A gateway with a channel of each dialect; its lanes have the names of its models. `quota` is what the key
 * may spend.
 */
export function fixtureOfBoth(
  options: Record<string, unknown> = {},
  { quota = 1_000_000_000, ...gateway }: Omit<GatewayOptions, 'config'> & { readonly quota?: number } = {},
): Promise<Fixture> {
  const configure = (upstream: ScriptedUpstream): Configuration => ({
    options: { retries: 0, ...options },
    models: { ...priced([MODEL.chat, MODEL.messages]), 'a-opus-4-7': { vendor: 'acme', price: PLAIN_PRICE } },
    channels: [
      channel(MODEL.chat, upstream.baseUrl(MODEL.chat)),
      channel(MODEL.messages, upstream.baseUrl(MODEL.messages), {
        protocol: 'messages',
        models: [MODEL.messages, 'a-opus-4-7'],
      }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann', { remain_quota: quota }), token('other')], {
        quota: Math.max(quota, AMPLE),
      }),
    ],
  })
  return startFixture(configure, gateway)
}

/** The body of the one request that this model's upstream received. */
export function sentTo(
  fixture: Fixture,
  model: string,
): Record<string, unknown> & { messages: Record<string, unknown>[] } {
  return JSON.parse(fixture.upstream.only(model).text)
}

/** Sends a request, whole or streamed; if no model is named, to the channel of the other dialect. */
export type Client = (fields?: object, options?: CallOptions) => Promise<FullResponse>

/** A client of each dialect. */
export function clientsOf(fixture: Fixture): { readonly chat: Client; readonly message: Client } {
  const messages = [{ role: 'user', content: 'hi' }]
  return {
    chat: (fields, options) => fixture.chat('ann', { model: MODEL.messages, messages, ...fields }, options),
    message: (fields, options) =>
      fixture.chat(
        'ann',
        { model: MODEL.chat, max_tokens: 100, messages, ...fields },
        { path: '/v1/messages', ...options },
      ),
  }
}
