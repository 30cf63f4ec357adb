import OpenAI from 'openai'
import { expect, vi } from 'vitest'
import { type Configuration, channel, PLAIN_PRICE, priced, ROOT, token, user } from './configuration.ts'
import { databaseOf, type UsageRow } from './database.ts'
import type { Fixture } from './fixture.ts'
import type { RunningGateway } from './gateway.ts'
import type { ScriptedUpstream } from './scripted-upstream.ts'
import { type StoringUpstream, storingUpstream } from './stored-responses.ts'

/** Quota units of a background response: 100 tokens of the prompt at one, 50 of the output at four. */
export const CHARGE = 300

/** Settings of a case beside the usual ones. */
interface Case {
  readonly channel?: object
  readonly model?: object
  /** Whether a second channel serves the same model. */
  readonly twin?: boolean
}

/** Cases by their names, which are those of their models, channels, users and keys. */
export type Cases = Readonly<Record<string, Case>>

/** A case on the gateway that it shares with others. */
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

/** The other key of a case's user. */
export const otherKey = (name: string): string => `${name}other`

/** Channels of a case, by their names. */
export function lanesOf(name: string, { twin = false }: Case = {}): readonly string[] {
  return twin ? [name, `${name}-twin`] : [name]
}

/** Client of the key with that name; made anew after a restart, it has no connection from before. */
export const clientOf = ({ url }: RunningGateway, key: string): OpenAI =>
  new OpenAI({ apiKey: `sk-${key}`, baseURL: `${url}/v1`, maxRetries: 0 })

/** Sets the scene of a case: a provider that stores responses is behind its channels. */
export function stageOf({ gateway, upstream }: Fixture, cases: Cases, name: string): Stage {
  const provider = storingUpstream(name)
  for (const lane of lanesOf(name, cases[name]))
    upstream.decide(lane, (request) => provider.decision(request))
  return { name, gateway, upstream, provider, client: clientOf(gateway, name) }
}

/** Rows of the case in the usage log. */
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

/** The only usage row, once it is there. */
export function charged(on: Stage): Promise<UsageRow> {
  return vi.waitFor(() => {
    const rows = usage(on)
    expect(rows).toHaveLength(1)
    expect(holds(on)).toHaveLength(0)
    return rows[0] as UsageRow
  }, 60_000)
}

/** Begins a response in the background. */
export const begin = ({ client, name: model }: Stage): Promise<OpenAI.Responses.Response> =>
  client.responses.create({ model, input: 'hi', background: true, max_output_tokens: 100 })
