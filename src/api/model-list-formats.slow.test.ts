import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import type { Channel } from '../domain/records/channel.ts'
import { FREE_PRICE } from '../domain/price.ts'
import { MODEL_SETTINGS } from '../domain/records/model.ts'
import { CONTENT_LOG_DEFAULTS } from '../domain/content-log.ts'
import type { Settings } from '../domain/settings.ts'
import type { Token } from '../domain/records/token.ts'
import { ModelLists } from '../call/model-lists.ts'
import { ModelRetirements } from '../upstreams/model-retirements.ts'
import type { Caller } from '../accounts/authentication/caller.ts'
import { modelListBody } from './model-list-formats.ts'

const NO_ENDS = new ModelRetirements((address) => address)
const OFF = { requests: 0, tokens: 0, windowMs: 1000 }

const namesOf = (count: number): string[] => Array.from({ length: count }, (_, index) => `model-${index}`)

/** Settings with `models` models of ten vendors, each model served by all channels. */
function settingsOf(models: number, channels: number): Settings {
  const names = namesOf(models)
  const channel = (_: unknown, index: number): Channel =>
    channelOf({ name: `c${index}`, models: names, groups: ['default', `g${index}`] })
  return {
    priceVersion: 'v1',
    options: { unpriced_models: 'refuse' } as Settings['options'],
    rateLimits: { global: OFF, relay: OFF, search: OFF, critical: OFF, key: OFF, console: OFF },
    login: { password: true, oidc: [] },
    groups: new Map([
      ['default', { name: 'default', ratio: { digits: 0n, scale: 0 }, open: true, guards: [] }],
    ]),
    models: {
      declared: [],
      get: (name) => ({
        ...MODEL_SETTINGS.defaults,
        name,
        vendor: `vendor-${name.at(-1)}`,
        price: FREE_PRICE,
        contextTokens: 200_000,
        isContextKnown: false,
      }),
    },
    channels: Array.from({ length: channels }, channel),
    alerts: [],
    guards: [],
    mcp: { servers: [], toolsets: [], isRestricted: false, approved: new Map() },
    contentLog: CONTENT_LOG_DEFAULTS,
  }
}

function callerOf(token: Partial<Token>): Caller {
  return {
    user: {
      id: 1,
      username: 'ann',
      role: 1,
      status: 1,
      group: 'default',
      quota: 1,
      unlimited_quota: false,
      used_quota: 0,
      request_count: 0,
      content_log_what: '',
      content_log_sample: null,
      content_log_keep: null,
      budget: undefined,
      rateLimit: { requests: 0, tokens: 0, parallel: 0, windowMs: 60_000 },
    },
    token: { group: '', vendor_routes: '', model_limits_enabled: false, model_limits: '', ...token } as Token,
  }
}

/** The minimum CPU time of one list in milliseconds; other load on the machine can only add to it. */
function cost(settings: Settings, caller: Caller): number {
  const lists = new ModelLists(NO_ENDS)
  const list = (): string => modelListBody('chat', lists.list(settings, caller)).toString()
  expect(JSON.parse(list()).data.length).toBeGreaterThan(0)
  const costs = Array.from({ length: 25 }, () => {
    const before = process.cpuUsage()
    for (let run = 0; run < 4; run++) list()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000 / 4
  })
  return Math.min(...costs)
}

describe('a list of 2,000 models', () => {
  // An idle machine needs less than 5 ms; other load evicts CPU caches.
  const FEW_MS = 25

  test("a model list of 2,000 models takes a few milliseconds of CPU time, with and without a key's limits and routes", () => {
    const settings = settingsOf(2000, 1)
    expect(cost(settings, callerOf({}))).toBeLessThan(FEW_MS)
    const routes = Object.fromEntries(
      Array.from({ length: 10 }, (_, index) => [`vendor-${index}`, 'default']),
    )
    const limited = callerOf({
      model_limits_enabled: true,
      model_limits: namesOf(2000).join(','),
      vendor_routes: JSON.stringify(routes),
    })
    expect(cost(settings, limited)).toBeLessThan(FEW_MS)
  })

  test('the cost of a model list is proportional to its length, and does not depend on the number of channels', () => {
    // A key without its own limits gets a cached list.
    const limited = (count: number): Caller =>
      callerOf({ model_limits_enabled: true, model_limits: namesOf(count).join(',') })
    const long = cost(settingsOf(2000, 1), limited(2000))
    expect(long / cost(settingsOf(200, 1), limited(200))).toBeLessThan(40)
    expect(cost(settingsOf(2000, 40), limited(2000)) / long).toBeLessThan(5)
  })

  test('a model list is made once for the keys of a group, and again for other groups and for new settings', () => {
    const settings = settingsOf(20, 1)
    const lists = new ModelLists(NO_ENDS)
    const list = (caller: Caller, from = settings): Buffer => modelListBody('chat', lists.list(from, caller))
    const first = list(callerOf({}))
    expect(list(callerOf({}))).toBe(first)
    expect(list(callerOf({}), settingsOf(20, 1))).not.toBe(first)
    const limited = list(callerOf({ model_limits_enabled: true, model_limits: 'model-1' }))
    expect(JSON.parse(limited.toString()).data).toHaveLength(1)
    expect(list(callerOf({}))).toBe(first)
    expect(() => list(callerOf({ group: 'g0' }))).toThrow('may not use the group')
  })
})
