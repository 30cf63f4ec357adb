import fc from 'fast-check'
import { expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { FREE_PRICE } from '../domain/price.ts'
import { MODEL_SETTINGS, type Model } from '../domain/records/model.ts'
import { CONTENT_LOG_DEFAULTS } from '../domain/content-log.ts'
import type { Settings } from '../domain/settings.ts'
import { ModelLists } from './model-lists.ts'
import type { Caller } from '../accounts/authentication/caller.ts'
import { CallRates } from './plan.ts'
import { nameWithoutThinkingSuffix, type ResolvedModel, Routing } from './routing.ts'
import { ChannelLoad } from '../upstreams/channel-load.ts'
import { ModelRetirements } from '../upstreams/model-retirements.ts'
import { lawRuns } from '../../test/runner/tier.ts'

const NO_ENDS = new ModelRetirements((address) => address)
const ZERO = { digits: 0n, scale: 0 }
const OFF = { requests: 0, tokens: 0, windowMs: 1000 }
const NAMES = ['a', 'a-thinking', 'b', 'b-thinking', 'org/c']
const GROUPS = ['default', 'open', 'closed', 'gone']

const some = (texts: readonly string[]) => fc.subarray([...texts])
const channels = fc.array(
  fc.record({
    models: some(NAMES),
    groups: some(GROUPS),
    protocol: fc.constantFrom(['chat'] as const, ['messages'] as const),
  }),
  { maxLength: 5 },
)
const models = fc.dictionary(
  fc.constantFrom(...NAMES),
  fc.record({ vendor: fc.constantFrom(undefined, 'x', 'y'), price: fc.constantFrom(undefined, FREE_PRICE) }),
)
const token = fc.record({
  group: fc.constantFrom('', ...GROUPS),
  model_limits_enabled: fc.boolean(),
  model_limits: some([...NAMES, 'unknown']).map((names) => names.join(', ')),
  vendor_routes: fc
    .dictionary(fc.constantFrom('x', 'y'), fc.constantFrom(...GROUPS))
    .map((routes) => JSON.stringify(routes)),
})
const worlds = fc.record({
  channels,
  models,
  token,
  group: fc.constantFrom(...GROUPS),
  unpriced_models: fc.constantFrom('refuse', 'free'),
})
type World = typeof worlds extends fc.Arbitrary<infer Drawn> ? Drawn : never

function settingsOf(world: World): Settings {
  const group = (name: string) => [name, { name, ratio: ZERO, open: name !== 'closed', guards: [] }] as const
  const get = (name: string): Model => ({
    ...MODEL_SETTINGS.defaults,
    name,
    contextTokens: 200_000,
    isContextKnown: false,
    ...(world.models[name] ?? { vendor: undefined, price: undefined }),
  })
  return {
    priceVersion: 'v1',
    options: { unpriced_models: world.unpriced_models, quota_per_unit: 1 } as Settings['options'],
    rateLimits: { global: OFF, relay: OFF, search: OFF, critical: OFF, key: OFF, console: OFF },
    login: { password: true, oidc: [] },
    groups: new Map(['default', 'open', 'closed'].map(group)),
    models: { declared: [], get },
    channels: world.channels.map((fields, index) => channelOf({ name: `c${index}`, ...fields })),
    alerts: [],
    guards: [],
    mcp: { servers: [], toolsets: [], isRestricted: false, approved: new Map() },
    contentLog: CONTENT_LOG_DEFAULTS,
  }
}

function listedBy(lists: ModelLists, settings: Settings, caller: Caller): string[] {
  try {
    return lists.list(settings, caller).map(({ id }) => id)
  } catch {
    return []
  }
}

function isCallable(settings: Settings, caller: Caller, name: string): boolean {
  try {
    const { resolutions } = new Routing(new ChannelLoad(), NO_ENDS).resolve(
      settings,
      caller,
      { name, stream: false },
      { name: 'chat', endpoint: 'chat' },
      false,
    )
    const { model, group } = resolutions[0] as ResolvedModel
    new CallRates().of(settings, model, group)
    return true
  } catch {
    return false
  }
}

test('the model list of a key has exactly the models that the key can call, without their names with the suffix -thinking', () => {
  fc.assert(
    fc.property(worlds, (world) => {
      const settings = settingsOf(world)
      const user = { id: 1, username: 'ann', group: world.group }
      const caller = { token: world.token, user } as Caller
      const lists = new ModelLists(NO_ENDS)
      const listed = listedBy(lists, settings, caller)
      expect(listed).toEqual([...new Set(listed)].toSorted())
      for (const name of NAMES) {
        const isListed = listed.includes(name)
        const isCalled = isCallable(settings, caller, name)
        if (isListed) expect(isCalled, name).toBe(true)
        // A name with the suffix can be called too, but it is not a listed name.
        if (nameWithoutThinkingSuffix(name) === name) expect(isListed, name).toBe(isCalled)
        if (isListed) expect(lists.find(settings, caller, name)?.id).toBe(name)
      }
    }),
    { numRuns: lawRuns(2000) },
  )
})
