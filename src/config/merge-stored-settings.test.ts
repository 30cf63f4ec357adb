import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { StoredChannel } from '../domain/records/channel.ts'
import type { StoredConfiguration } from '../domain/settings.ts'
import { type Config, readConfig } from './config.ts'
import { readEnvironment } from './environment.ts'
import { mergeStoredSettings } from './merge-stored-settings.ts'

function fileOf(text: string, env: Record<string, string> = {}): Config {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-overlay-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const config = join(folder, 'gateway.yaml')
  writeFileSync(config, text)
  return readConfig(readEnvironment(env, { config }, folder))
}

const stored = (name: string, of: Partial<StoredChannel> = {}, fields: object = {}): StoredChannel => ({
  version: '',
  id: 1,
  name,
  declared: { protocol: 'chat', base_url: 'https://a.example/v1', models: ['m'], ...fields },
  keys: ['k'],
  status: 1,
  family: {},
  created_time: 0,
  test_time: 0,
  response_ms: 0,
  ...of,
})

const only = (of: Partial<StoredConfiguration>): StoredConfiguration => ({ channels: [], entries: [], ...of })

const FILE = `
channels:
  - { name: filed, protocol: chat, base_url: https://f.example/v1, models: [m] }
`

test('the settings of gateway.yaml are used unchanged if no settings are stored in the database', () => {
  const file = fileOf(FILE)
  expect(mergeStoredSettings(file, only({})).settings).toBe(file.settings)
})

test('sections set only in gateway.yaml are used unchanged, whatever other settings are stored in the database', () => {
  const file = fileOf(`${FILE}
rate_limits: { console: { requests: 7 } }
login:
  password: false
  oidc: [{ name: corp, issuer: "https://id.example", client_id: sluice, client_secret: secret }]
mcp: { servers: [{ name: web, url: "https://web.example/mcp" }] }
`)
  const { settings } = mergeStoredSettings(file, only({ channels: [stored('on')] }))
  expect(settings.login).toEqual(file.settings.login)
  expect(settings.rateLimits).toEqual(file.settings.rateLimits)
  expect(settings.login.oidc).toHaveLength(1)
  expect(settings.mcp).toEqual(file.settings.mcp)
  expect(settings.mcp.servers).toHaveLength(1)
})

test('channels in the database follow those of gateway.yaml; disabled channels are known, but not called', () => {
  const { settings, storedChannels: known } = mergeStoredSettings(
    fileOf(FILE),
    only({ channels: [stored('on'), stored('off', { status: 2 })] }),
  )
  expect(settings.channels.map(({ name }) => name)).toEqual(['filed', 'on'])
  expect([...known.keys()]).toEqual(['on', 'off'])
  expect(Object.isFrozen(settings.channels[1])).toBe(true)
})

test('an invalid setting in the database is ignored, and all valid settings in the database still apply', () => {
  const { settings, ignored } = mergeStoredSettings(
    fileOf(FILE),
    only({
      channels: [
        stored('bad', {}, { base_url: 'file:///x', weight: -1 }),
        stored('lost', {}, { groups: ['spoilt'] }),
        stored('good'),
      ],
      entries: [
        { section: 'groups', name: 'spoilt', value: { ratio: 'x' } },
        { section: 'options', name: 'retries', value: '5' },
        { section: 'options', name: 'no_such_option', value: '5' },
        { section: 'ratios', name: 'm', value: { model: '2' } },
      ],
    }),
  )
  expect(settings.channels.map(({ name }) => name)).toEqual(['filed', 'good'])
  expect(settings.options.retries).toBe(5)
  expect(settings.models.get('m').price?.tokens.input).toEqual({ digits: 4n, scale: 0 })
  expect(ignored.map(({ name }) => name).toSorted()).toEqual(['bad', 'lost', 'no_such_option', 'spoilt'])
  expect(ignored.find(({ name }) => name === 'bad')?.message).toMatch(
    /^base_url: expected .*; weight: expected/,
  )
})

test('an incomplete price in the database is ignored by itself, whichever entry of its model states it', () => {
  const { settings, ignored } = mergeStoredSettings(
    fileOf(FILE),
    only({
      channels: [stored('on')],
      entries: [
        { section: 'models', name: 'half', value: { price: { input: '1' } } },
        { section: 'models', name: 'both', value: { price: { input: '1' } } },
        { section: 'ratios', name: 'both', value: { model: '2' } },
        { section: 'models', name: 'whole', value: { price: { input: '1', output: '2' } } },
      ],
    }),
  )
  expect(ignored).toMatchObject([{ section: 'models', name: 'half' }])
  expect(settings.channels.map(({ name }) => name)).toEqual(['filed', 'on'])
  expect(settings.models.get('whole').price).toBeDefined()
  expect(settings.models.get('both').price).toBeDefined()
})

test('${NAME} in a setting stored in the database is not replaced by a variable', () => {
  const { settings } = mergeStoredSettings(
    fileOf(FILE, { HOME: '/root' }),
    only({ channels: [stored('literal', { keys: ['${HOME}'] })] }),
  )
  expect(settings.channels[1]?.keys).toEqual(['${HOME}'])
})

test('settings of gateway.yaml override those stored in the database', () => {
  const file = fileOf(`
options: { retries: 1 }
groups: { vip: { ratio: 2 } }
models: { m: { price: { input: 1, output: 1 } } }
${FILE}`)
  const { settings, ignored } = mergeStoredSettings(
    file,
    only({
      channels: [stored('filed', {}, { models: ['other'] })],
      entries: [
        { section: 'options', name: 'retries', value: '5' },
        { section: 'groups', name: 'vip', value: { ratio: '3', open: true } },
        { section: 'ratios', name: 'm', value: { model: '9' } },
      ],
    }),
  )
  expect(ignored).toHaveLength(4)
  expect(settings.options.retries).toBe(1)
  expect(settings.groups.get('vip')?.ratio).toEqual({ digits: 2n, scale: 0 })
  expect(settings.models.get('m').price?.tokens.input).toEqual({ digits: 1n, scale: 0 })
  expect(settings.channels.map(({ models }) => models)).toEqual([['m']])
  expect(settings.priceVersion).toBe(file.settings.priceVersion)
})

test('provider keys in the environment create channels if gateway.yaml has no channels list, even if some are stored', () => {
  const env = { MISTRAL_API_KEY: 'k' }
  const beside = only({ channels: [stored('own'), stored('mistral')] })
  const names = (file: Config) => mergeStoredSettings(file, beside).settings.channels.map(({ name }) => name)
  expect(names(fileOf('options: {}', env))).toEqual(['mistral', 'own'])
  expect(names(fileOf(FILE, env))).toEqual(['filed', 'own', 'mistral'])
})

test('an alias of channels in the database has the price of its model, until an enabled channel maps it otherwise', () => {
  const alias = { models: ['fast'], model_mapping: { fast: 'gpt-4o-mini' } }
  const other = { models: ['fast'] }
  const priceWith = (...channels: StoredChannel[]) => {
    const { models } = mergeStoredSettings(fileOf(FILE), only({ channels })).settings
    return [models.get('fast').price === undefined, models.get('fast').pricedAs]
  }
  expect(priceWith(stored('a', {}, alias))).toEqual([false, 'gpt-4o-mini'])
  expect(priceWith(stored('a', {}, alias), stored('b', { id: 2 }, other))).toEqual([true, undefined])
  expect(priceWith(stored('a', {}, alias), stored('b', { id: 2, status: 2 }, other))).toEqual([
    false,
    'gpt-4o-mini',
  ])
})

test('a change with a new name that has invisible characters is refused; names stored earlier stay in use', () => {
  const file = fileOf(FILE)
  const old = stored('la\u2800ne', {}, { models: ['m', 'm\u200B'] })
  const before = only({
    channels: [old],
    entries: [{ section: 'models', name: 'n\u3000', value: { fallback: ['m'] } }],
  })
  expect(mergeStoredSettings(file, before).ignored).toEqual([])
  const edited = stored('la\u2800ne', {}, { models: ['m', 'm\u200B'], priority: 1 })
  expect(mergeStoredSettings(file, { ...before, channels: [edited] }, before)).toMatchObject({
    ignored: [],
    settings: { channels: [{ name: 'filed' }, { name: 'la\u2800ne', priority: 1 }] },
  })
  const next = only({
    channels: [old, stored('new\u2800')],
    entries: [...before.entries, { section: 'models', name: 'new', value: { successor: 'm\u202E' } }],
  })
  expect(mergeStoredSettings(file, next, before).ignored).toMatchObject([
    { section: 'channels', name: 'new\u2800' },
    { section: 'models', name: 'new' },
  ])
})

test('names of groups and models that were stored earlier stay in use, although new ones like them are refused', () => {
  const file = fileOf(FILE)
  const group = (name: string) => ({ section: 'groups', name, value: { ratio: '2' } }) as const
  const before = only({
    channels: [stored('lane', {}, { groups: [' sales', 'a,b'] })],
    entries: [group(' sales'), group('a,b'), { section: 'models', name: ' n', value: { fallback: ['m'] } }],
  })
  const { settings, ignored } = mergeStoredSettings(file, before)
  expect(ignored).toEqual([])
  expect([...settings.groups.keys()]).toEqual(['default', ' sales', 'a,b'])
  expect(settings.channels.map(({ name }) => name)).toEqual(['filed', 'lane'])
  const next = only({ ...before, entries: [...before.entries, group('sales '), group('fine')] })
  expect(mergeStoredSettings(file, next, before).ignored).toMatchObject([{ name: 'sales ' }])
})

test('approved definitions of tools are state, and no settings of the file', () => {
  const file = fileOf(FILE)
  const entry = { section: 'mcp_tools', name: 'web_read', value: { digest: 'd', definition: {} } } as const
  const { settings, ignored } = mergeStoredSettings(file, only({ entries: [entry] }))
  expect(settings.mcp.approved.get('web_read')).toEqual({ digest: 'd', definition: {} })
  expect(ignored).toEqual([])
})
