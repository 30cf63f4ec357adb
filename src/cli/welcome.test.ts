import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readConfig } from '../config/config.ts'
import { readEnvironment } from '../config/environment.ts'
import { newestModel, welcome } from './welcome.ts'

test.each([
  [['gpt-4.1', 'gpt-5.6', 'gpt-6-astra', 'gpt-6-sol', 'o3'], 'gpt-6-sol'],
  [['claude-opus-4-8', 'claude-opus-5', 'claude-opus-5-5', 'claude-sonnet-5'], 'claude-opus-5-5'],
  [['gemini-2.5-pro', 'gemini-3.8-flash', 'gemini-3.1-pro-preview'], 'gemini-3.8-flash'],
  [['codestral-2508', 'mixtral-8x22b', 'ministral-8b', 'mistral-medium-3.5'], 'mistral-medium-3.5'],
  [['demo-chat', 'demo-reason'], 'demo-chat'],
])('the welcome text suggests, of the models %j, the newest: %s', (models, newest) => {
  expect(newestModel(models)).toBe(newest)
})

test('the welcome text suggests no model if the list of models is empty', () => {
  expect(newestModel([])).toBeUndefined()
})

const folder = mkdtempSync(join(tmpdir(), 'welcome-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** The text that a first start prints with these variables and this gateway.yaml. */
function textOf(env: NodeJS.ProcessEnv, file?: string): string {
  const path = join(folder, 'gateway.yaml')
  if (file === undefined) rmSync(path, { force: true })
  else writeFileSync(path, file)
  const { settings, ...config } = readConfig(readEnvironment(env, {}, folder))
  const firstCredentials = { userId: 1, accessToken: 'the-access-token', key: 'sk-first' }
  return welcome(
    {
      url: 'http://localhost:3000',
      settings,
      firstCredentials,
      recovered: { count: 0, quota: 0 },
      failed: Promise.race([]),
      close: async () => 0,
    },
    config,
  )
}

const suggested = (text: string): string | undefined => /"model": "([^"]*)"/.exec(text)?.[1]

describe('the text of a first start', () => {
  test('says which models have no price, and suggests no call that would be refused', () => {
    const text = textOf({ JINA_API_KEY: 'j' })
    expect(text).toContain(
      'warning: environment: channels: jina-embeddings-v4 has no price: calls to it are refused',
    )
    expect(text).toContain(
      'No model has a price, so that calls are refused: write models.NAME.price into gateway.yaml.',
    )
    expect(text).not.toContain('Try it')
  })

  test('suggests a call of a model for conversations that has a price', () => {
    const channel = (models: string) =>
      `channels: [{ name: a, protocol: chat, base_url: "http://a", models: [${models}] }]\n`
    expect(suggested(textOf({}, channel('house-99, text-embedding-3-large, gpt-4o-mini')))).toBe(
      'gpt-4o-mini',
    )
    const embedding = textOf({}, channel('text-embedding-3-large'))
    expect(embedding).not.toMatch(/Try it|No model has a price/)
    expect(embedding).toContain(
      'No model is for conversations: docs/api.md has a request of each other endpoint.',
    )
    expect(suggested(textOf({}, `${channel('house-99')}options: { unpriced_models: free }\n`))).toBe(
      'house-99',
    )
  })

  test('says what is missing where no call would be answered: a channel, or one for the group of root', () => {
    const none = textOf({})
    expect(none).toContain('No channel is enabled: add one in the console, write one into gateway.yaml')
    const withoutConsole = textOf({}, 'options: { console: false }\n')
    expect(withoutConsole).toContain('No channel is enabled: write one into gateway.yaml')
    expect(none).not.toMatch(/Try it|curl|No channel serves/)
    const closed = textOf(
      {},
      'groups: { default: {}, vip: {} }\n' +
        'channels: [{ name: a, protocol: chat, base_url: "http://a", models: [gpt-4o-mini], groups: [vip] }]\n',
    )
    expect(closed).toContain('No channel serves the group default, in which root is')
    expect(closed).not.toMatch(/Try it|curl/)
  })

  test('does not say that the file has no channel if the database has some', () => {
    rmSync(join(folder, 'gateway.yaml'), { force: true })
    const { settings } = readConfig(readEnvironment({ OPENAI_API_KEY: 'k' }, {}, folder))
    const { warnings, environment } = readConfig(readEnvironment({}, {}, folder))
    expect(warnings).toMatchObject([{ message: expect.stringContaining('there is no channel') }])
    const text = welcome(
      {
        url: 'http://localhost:3000',
        settings,
        firstCredentials: undefined,
        recovered: { count: 0, quota: 0 },
        failed: Promise.race([]),
        close: async () => 0,
      },
      { warnings, environment },
    )
    expect(text).toBe('Sluice listens on http://localhost:3000 with 1 channel.\n')
  })

  test('suggests a call below the base path', () => {
    const text = textOf(
      {},
      'options: { base_path: /ai }\n' +
        'channels: [{ name: a, protocol: chat, base_url: "http://a", models: [gpt-4o-mini] }]\n',
    )
    expect(text).toContain('curl http://localhost:3000/ai/v1/chat/completions ')
    expect(text).toContain('http://localhost:3000/ai/login')
  })

  test('names the proxies of the environment and what they are for, without their passwords', () => {
    const text = textOf({ HTTPS_PROXY: 'http://ann:secret@proxy.test:3128', OPENAI_API_KEY: 'k' })
    expect(text).toContain(
      'HTTPS_PROXY: channels without a proxy call https addresses through proxy.test:3128,',
    )
    expect(text).not.toMatch(/secret|HTTP_PROXY: /)
  })

  test('has ten warnings at most, and says where the others are', () => {
    const models = Array.from({ length: 12 }, (_, index) => `house-${index}`).join(', ')
    const text = textOf(
      {},
      `channels: [{ name: a, protocol: chat, base_url: "http://a", models: [${models}] }]\n`,
    )
    expect(text.match(/^warning: /gm)).toHaveLength(10)
    expect(text).toContain('2 more warnings: `sluice check` lists all of them.')
  })
})
