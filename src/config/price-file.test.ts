import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { decimalText } from '../domain/decimal.ts'
import type { StoredSetting } from '../domain/settings.ts'
import { type Config, readConfig } from './config.ts'
import { ConfigError, formatDiagnostic } from './diagnostics.ts'
import { readEnvironment } from './environment.ts'
import { mergeStoredSettings } from './merge-stored-settings.ts'
import { ReadingThread } from './reading-thread.ts'

const folder = mkdtempSync(join(tmpdir(), 'price-file-'))
afterAll(() => rmSync(folder, { recursive: true }))

const file = join(folder, 'gateway.yaml')
const CHANNEL =
  'channels: [{ name: a, protocol: chat, base_url: "http://a", models: [gpt-4o-mini, house, "house-*"] }]\n'
const NAMED = `options: { prices_file: ./prices.yaml }\n${CHANNEL}`

function configOf(text: string, prices?: string, env: NodeJS.ProcessEnv = {}): Config {
  writeFileSync(file, text)
  if (prices !== undefined) writeFileSync(join(folder, 'prices.yaml'), prices)
  return readConfig(readEnvironment(env, { config: file }, folder))
}

function refusalOf(run: () => unknown): string[] {
  try {
    run()
  } catch (error) {
    if (error instanceof ConfigError)
      return error.diagnostics.map((one) => formatDiagnostic(one).replaceAll(`${folder}/`, ''))
    throw error
  }
  return []
}

const inputOf = ({ settings }: Pick<Config, 'settings'>, model: string): string | undefined => {
  const price = settings.models.get(model).price
  return price && decimalText(price.tokens.input)
}

const stored = (name: string, value: StoredSetting['value']) => ({
  channels: [],
  entries: [{ section: 'ratios' as const, name, value }],
})

beforeEach(() => rmSync(join(folder, 'prices.yaml'), { force: true }))

describe('the prices file', () => {
  test('a price in gateway.yaml overrides the prices file, which overrides the built-in table', () => {
    const text = `${NAMED}models: { house: { price: { input: 7, output: 7 } } }\n`
    const prices = 'gpt-4o-mini: { input: 9, output: 9 }\nhouse: { input: 8, output: 8 }\n'
    const config = configOf(text, prices)
    expect([inputOf(config, 'gpt-4o-mini'), inputOf(config, 'house')]).toEqual(['9', '7'])
    expect(inputOf(configOf(CHANNEL), 'gpt-4o-mini')).toBe('0.15')
  })

  test('a model declared without a price has the price of the prices file and the vendor of the built-in table', () => {
    const config = configOf(
      `${NAMED}models: { gpt-4o-mini: { rate_limit: { requests: 5 } } }\n`,
      'gpt-4o-mini: { input: 9, output: 9 }\n',
    )
    expect(inputOf(config, 'gpt-4o-mini')).toBe('9')
    expect(config.settings.models.get('gpt-4o-mini').vendor).toBe('openai')
  })

  test('a price set over HTTP overrides the prices file, and a ratio set over HTTP multiplies the price of the prices file', () => {
    const config = configOf(NAMED, 'house: { input: 8, output: 8 }\n')
    const set = (value: StoredSetting['value']) =>
      inputOf(mergeStoredSettings(config, stored('house', value)), 'house')
    expect(set({ exact: { input: 5, output: 5 } })).toBe('5')
    const merged = mergeStoredSettings(config, stored('house', { completion: '3' }))
    const price = merged.settings.models.get('house').price
    expect(price && decimalText(price.tokens.output)).toBe('24')
  })

  test('the path of the prices file is relative to gateway.yaml, and variables in the file are replaced', () => {
    mkdirSync(join(folder, 'lists'), { recursive: true })
    writeFileSync(join(folder, 'lists', 'all.yaml'), 'house: { input: "${PRICE}", output: 1 }\n')
    const text = `options: { prices_file: lists/all.yaml }\n${CHANNEL}`
    expect(inputOf(configOf(text, undefined, { PRICE: '4.5' }), 'house')).toBe('4.5')
  })

  test('a pattern in the models of a channel also matches models that only the prices file names', () => {
    const { settings } = configOf(NAMED, 'house-2: { input: 1, output: 1 }\nother: { input: 1, output: 1 }\n')
    expect(settings.channels[0]?.models).toEqual(['gpt-4o-mini', 'house', 'house-2'])
  })

  test('the price version changes if a price in the prices file does, and not if the file is only formatted differently', () => {
    const version = (prices: string) => configOf(NAMED, prices).settings.priceVersion
    const one = version('house: { input: 1, output: 2 }\nother: { input: 1, output: 2 }\n')
    expect(version('# a remark\nother: { output: 2.0, input: 1 }\nhouse: { input: 1.00, output: 2 }\n')).toBe(
      one,
    )
    expect(version('house: { input: 1, output: 2.1 }\nother: { input: 1, output: 2 }\n')).not.toBe(one)
    expect(version('house: { input: 1, output: 2 }\n')).not.toBe(one)
    expect(configOf(CHANNEL).settings.priceVersion).not.toBe(one)
  })

  test('a single mistake in the prices file refuses the whole file, with the line of the mistake', () => {
    expect(
      refusalOf(() => configOf(NAMED, 'house: { input: 1, output: 2 }\nother:\n  input: 1\n  outptu: 2\n')),
    ).toEqual([
      'prices.yaml:2: other.output: expected a price per million tokens (0 if it is free), found nothing',
      'prices.yaml:4: other.outptu: unknown key, expected output',
    ])
    expect(refusalOf(() => configOf(NAMED, '- house\n'))).toEqual([
      'prices.yaml:1: expected a mapping from model names to prices, found a list',
    ])
    expect(refusalOf(() => configOf(NAMED, 'house: { input: 1, output: 2 }\nhouse: 3\n'))).toEqual([
      'prices.yaml:2: house: expected this key once, it is already on line 1',
    ])
  })

  test('a prices file that cannot be read is an error at the line of options.prices_file in gateway.yaml', () => {
    const [only, ...others] = refusalOf(() => configOf(`# first\n${NAMED}`))
    expect(only).toMatch(/^gateway\.yaml:2: options\.prices_file: expected a file that can be read: ENOENT/)
    expect(others).toEqual([])
  })

  test('a refusal does not show the name of an unreadable file that a variable has', () => {
    for (const text of [
      'options: { prices_file: "${SECRET}" }\n',
      'channels: [{ name: a, protocol: chat, base_url: "http://a", models: [m], keys: ["file:${SECRET}"] }]\n',
    ]) {
      const [only, ...others] = refusalOf(() => configOf(text, undefined, { SECRET: 'may-be-secret' }))
      expect(only).toMatch(/: expected a file that can be read$/)
      expect(others).toEqual([])
    }
  })

  test('reading the configuration in a thread gives the same prices as reading it on the main thread', async () => {
    const here = configOf(NAMED, 'house: { input: 8, output: 8 }\n')
    await using thread = new ReadingThread()
    const there = await thread.read(here.environment, here.builtIn)
    expect(there.settings.priceVersion).toBe(here.settings.priceVersion)
    expect(there.priceFile).toEqual(here.priceFile)
  })

  test('the configuration can be read from given texts in place of gateway.yaml and the prices file', () => {
    const { environment } = configOf(NAMED, 'house: { input: 8, output: 8 }\n')
    const given = readConfig(environment, { text: NAMED, prices: 'house: { input: 6, output: 6 }\n' })
    expect(inputOf(given, 'house')).toBe('6')
  })
})
