import OpenAI from 'openai'
import { expect, vi } from 'vitest'
import { type Configuration, channel, PLAIN_PRICE, priced, ROOT, token, user } from './configuration.ts'
import { databaseOf, type UsageRow } from './database.ts'
import type { Fixture } from './fixture.ts'
import type { RunningGateway } from './gateway.ts'
import type { ScriptedUpstream } from './scripted-upstream.ts'
import { type StoringUpstream, storingUpstream } from './stored-responses.ts'

/** The charge of a background response in quota units: 100 prompt tokens at one, 50 output tokens at four. */
export const CHARGE = 300

/** Settings of a case that differ from the defaults. */
interface Case {
  readonly channel?: object
  readonly model?: object
  /** Whether a second channel serves the same model. */
  readonly twin?: boolean
}

/** Cases by name; model, channel, user and key of a case have the same name. */
export type Cases = Readonly<Record<string, Case>>

/** A case, and the gateway that it shares with the other cases. */
export interface Stage {
  readonly name: string
  readonly gateway: RunningGateway
  readonly upstream: ScriptedUpstream
  readonly provider: StoringUpstream
  readonly client: OpenAI
}

/** Configuration of a gateway for the cases, and for conversions on a channel `chat` by a user `ann`. */
export const backgroundConfiguration = (upstream: ScriptedUpstream, cases: Cases): Configuration => ({
  options: { keep_responses: '1h' },
  models: {
    ...priced(['chat']),
    ...Object.fromEntries(
      Object.entries(cases).map(([name, { model }]) => [
        name,
        { vendor: 'acme', price: PLAIN_PRICE, ...model },
      ]),
    ),
  },
  channels: [
    ...Object.entries(cases).flatMap(([name, settings]) =>
      lanesOf(name, settings).map((lane) =>
        channel(lane, upstream.baseUrl(lane), {
          protocol: 'responses',
          models: [name],
          ...settings.channel,
        }),
      ),
    ),
    channel('chat', upstream.baseUrl('chat')),
  ],
  users: [
    ROOT,
    ...['ann', ...Object.keys(cases)].map((name, n) =>
      user(2 + n, name, [token(name), token(otherKey(name))]),
    ),
  ],
})

/** The name of the second key of a case's user. */
export const otherKey = (name: string): string => `${name}other`

/** The names of a case's channels. */
export function lanesOf(name: string, { twin = false }: Case = {}): readonly string[] {
  return twin ? [name, `${name}-twin`] : [name]
}

/** A client with the key of that name. It is new after each restart, so that it has no old connection. */
export const clientOf = ({ url }: RunningGateway, key: string): OpenAI =>
  new OpenAI({ apiKey: `sk-${key}`, baseURL: `${url}/v1`, maxRetries: 0 })

/** Sets up a case: the provider behind its channels stores responses. */
export function stageOf({ gateway, upstream }: Fixture, cases: Cases, name: string): Stage {
  const provider = storingUpstream(name)
  for (const lane of lanesOf(name, cases[name]))
    upstream.decide(lane, (request) => provider.decision(request))
  return { name, gateway, upstream, provider, client: clientOf(gateway, name) }
}

/** The usage rows of the case. */
export function usage({ gateway, name }: Stage): UsageRow[] {
  return databaseOf(gateway.dataDir)
    .usage()
    .filter(({ model }) => model === name)
}

/** Open holds of the case. */
export function holds({ gateway, name }: Stage): { readonly amount: number }[] {
  const database = databaseOf(gateway.dataDir)
  const { id } = database.token(`token-${name}`)
  return database.openHolds().filter(({ token_id: of }) => of === id)
}

/** Settles with the only usage row of the case, once it exists. */
export function charged(on: Stage): Promise<UsageRow> {
  return vi.waitFor(() => {
    const rows = usage(on)
    expect(rows).toHaveLength(1)
    expect(holds(on)).toHaveLength(0)
    return rows[0] as UsageRow
  }, 60_000)
}

/** Starts a response in the background. */
export const begin = ({ client, name: model }: Stage): Promise<OpenAI.Responses.Response> =>
  client.responses.create({ model, input: 'hi', background: true, max_output_tokens: 100 })
