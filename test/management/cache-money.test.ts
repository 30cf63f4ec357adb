import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import type { Body } from '../fixtures/client.ts'
import {
  ADMIN,
  ADMIN_USER,
  channel,
  type Configuration,
  ROOT,
  token,
  user,
} from '../fixtures/configuration.ts'
import { ask, startFixture } from '../fixtures/fixture.ts'
import type { RunningGateway } from '../fixtures/gateway.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { setNodes, SHARED } from '../nodes/fixture.ts'
import type { OnEnd } from '../stores/engines.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
/** Quota units of a token: 5 as input, 0.5 read, 6.25 written for 5 minutes and 10 for an hour; times 1.5 in `us`. */
const price = {
  input: 10,
  output: 8,
  cache_read: 1,
  cache_write_5m: 12.5,
  cache_write_1h: 20,
  regions: { us: 1.5 },
}
const SUMS = { cache_saved: 675, cache_surcharge: 713 }

const configure = (upstream: ScriptedUpstream): Configuration => ({
  models: { claude: { price } },
  channels: [channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' })],
  users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }), ADMIN_USER],
})
const counts = {
  input_tokens: 10,
  output_tokens: 10,
  cache_read_input_tokens: 100,
  cache_creation_input_tokens: 140,
  cache_creation: { ephemeral_5m_input_tokens: 60, ephemeral_1h_input_tokens: 80 },
  inference_geo: 'us',
}

interface Money {
  readonly cache_saved: number
  readonly cache_surcharge: number
}

const SITES = [
  {
    name: 'SQLite',
    start: async (onEnd: OnEnd) => {
      const fixture = await startFixture(configure)
      onEnd(() => fixture.close())
      const { upstream, gateway } = fixture
      return { upstream, gateway, chat: (key: string, body: Body) => fixture.chat(key, body) }
    },
  },
  ...SHARED.map((engine) => ({
    name: engine.name,
    start: async (onEnd: OnEnd) => {
      const { upstream, gateways, chat } = await setNodes(engine, 1, configure, {
        onEnd,
        program: patientProgram,
      })
      const [gateway] = gateways as [RunningGateway]
      return { upstream, gateway, chat: (key: string, body: Body) => chat(0, key, body) }
    },
  })),
]

// Saved: 100 × (5 − 0.5) × 1.5 = 675. Surcharge: (60 × 1.25 + 80 × 5) × 1.5 = 712.5.
describe.each(SITES)('what a prompt cache saved and cost, on $name', ({ start }) => {
  let url: string
  const ends: (() => unknown)[] = []
  beforeAll(async () => {
    const { upstream, gateway, chat } = await start((end) => ends.push(end))
    url = gateway.url
    upstream.script('claude', wholeMessage([{ text: 'said' }], { counts }))
    await chat('ann', ask('claude'))
  })
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
  })

  test.each([
    ['/api/log/', ADMIN],
    ['/api/log/self', ANN],
  ] as const)(
    'a row has the saving and the surcharge of the cache at the prices of its region: %s',
    async (path, who) => {
      const items = async () => (await manage<{ items: Money[] }>(url, who, `GET ${path}`)).data.items
      // Nodes report their calls after a moment.
      await expect.poll(items).toEqual([expect.objectContaining(SUMS)])
    },
  )

  test.each([
    ['/api/usage', ADMIN],
    ['/api/usage/self', ANN],
  ] as const)('the sums of usage have the savings and surcharges of caches: %s', async (path, who) => {
    const totals = async () => (await manage<{ totals: Money }>(url, who, `GET ${path}`)).data.totals
    await expect.poll(totals).toMatchObject(SUMS)
  })
})
