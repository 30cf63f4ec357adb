import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VENDORS } from '../config/vendors.ts'
import { check } from './check.ts'

const EXAMPLE = join(import.meta.dirname, '../../gateway.example.yaml')
const SET = {
  ANTHROPIC_API_KEY: 'a',
  OPENAI_API_KEY: 'o',
  GEMINI_API_KEY: 'g',
  COHERE_API_KEY: 'c',
  GUARD_KEY: 'a-key-of-a-guard',
  ALERT_URL: 'https://alerts.example/gateway',
  ALERT_SECRET: `whsec_${'A'.repeat(32)}`,
  ROOT_ACCESS_TOKEN: 'an-access-token-of-some-length',
  ROOT_API_KEY: 'sk-AnApiKeyOfSomeLength',
}

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'check-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function file(text: string): string {
  const path = join(folder, 'gateway.yaml')
  writeFileSync(path, text)
  return path
}

class Collected extends Writable {
  text = ''
  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}

async function run(options: { config?: string; json?: boolean }, env: NodeJS.ProcessEnv = {}) {
  const [out, err] = [new Collected(), new Collected()]
  const code = await check(options, { env, out, err })
  return { code, out: out.text, err: err.text.replaceAll(`${folder}/`, '') }
}

describe('sluice check', () => {
  test('sluice check reports every error with file, line, path and what is expected, without colours off a terminal', async () => {
    const config = file(
      'options:\n  retries: many\nchannels:\n  - name: a\n    protocol: chat\n    base_url: ftp://a\n    models: [m]\n',
    )
    expect(await run({ config })).toEqual({
      code: 1,
      out: '',
      err:
        'gateway.yaml:2: options.retries: expected a whole number from 0 to 100, found "many"\n' +
        'gateway.yaml:6: channels[0].base_url: expected an http:// or https:// URL, found "ftp://a"\n',
    })
  })

  test('sluice check reports errors of the environment', async () => {
    expect(await run({}, { PORT: 'x' })).toEqual({
      code: 1,
      out: '',
      err: 'environment: PORT: expected a port from 0 to 65535\n',
    })
  })

  test.each([
    [
      'provider: bedrock, protocol: messages, region: eu-central-1',
      'nonsense',
      'ACCESS_KEY_ID:SECRET_ACCESS_KEY',
    ],
    ['provider: vertex, protocol: gemini', 'AIzaSyNoServiceAccount', "the JSON of a service account's key"],
    ['provider: vertex, protocol: gemini', '{}', 'client_email'],
  ])(
    "sluice check reports the expected form of a provider's key, and never the key: %s",
    async (fields, key, expected) => {
      const config = file(`channels:\n  - { name: x, ${fields}, models: [m],\n      keys: ['${key}'] }\n`)
      const { code, err } = await run({ config })
      expect(code).toBe(1)
      expect(err).toMatch(/^gateway\.yaml:3: channels\[0\]\.keys\[0\]: expected /)
      expect(err).toContain(expected)
      expect(err).not.toContain(key)
    },
  )

  test('sluice check reports an invalid region or location', async () => {
    const channels =
      'channels:\n  - { name: x, provider: bedrock, protocol: messages, models: [m],\n      region: europe }\n'
    expect((await run({ config: file(channels) })).err).toContain(
      'gateway.yaml:3: channels[0].region: expected the name of a region, such as eu-central-1, found "europe"\n',
    )
  })

  test.each([
    ['bedrock, protocol: messages', 'region: eu-cetral-1', 'region', 'region, such as eu-central-1'],
    ['bedrock, protocol: converse', 'region: us-east-9', 'region', 'region, such as us-east-1'],
    ['bedrock, protocol: converse', 'region: europe-west-1', 'region', 'region, such as eu-west-1'],
    ['vertex, protocol: gemini', 'location: europe-west5', 'location', 'location, such as europe-west1'],
    ['vertex, protocol: gemini', 'location: mars-west1', 'location', 'location, such as me-west1'],
  ])(
    'sluice check reports a region or location that the provider does not have: %s, %s',
    async (provider, setting, key, expected) => {
      const channel = (fields: string): string =>
        file(`channels:\n  - { name: x, provider: ${provider}, models: [m],\n      ${fields} }\n`)
      const { code, err } = await run({ config: channel(setting) })
      expect(code).toBe(1)
      expect(err).toMatch(
        new RegExp(`^gateway\\.yaml:3: channels\\[0\\]\\.${key}: expected (?:a|the name of a) `),
      )
      expect(err).toContain(`${expected}, found "${setting.split(': ')[1]}"`)
      // A region that the table does not have yet can be used by its address.
      expect((await run({ config: channel(`${setting}, base_url: "https://x.example"`) })).code).toBe(0)
    },
  )

  test.each([
    ['bedrock, protocol: messages', 'keys: []', 2, 'region', 'expected the name of a region'],
    ['bedrock, protocol: messages, region: eu-west-1', 'api_version: 2024-10-21', 3, 'api_version', 'azure'],
    ['bedrock, region: eu-west-1', 'protocol: gemini', 3, 'protocol', 'expected messages, converse'],
    ['azure, protocol: chat, base_url: "http://x"', 'api_version: newest', 3, 'api_version', '2024-10-21'],
    ['azure, base_url: "http://x"', 'protocol: gemini', 3, 'protocol', 'expected chat, messages, responses'],
    ['azure', 'protocol: chat', 2, 'base_url', 'expected'],
    ['vertex, protocol: gemini', 'project: "no project"', 3, 'project', 'expected the id of a project'],
    ['vertex, protocol: gemini', 'region: eu-west-1', 3, 'region', 'bedrock'],
    ['vertex', 'protocol: responses', 3, 'protocol', 'expected chat, messages, gemini'],
    ['gcp, protocol: gemini', 'base_url: "http://x"', 2, 'provider', 'generic, azure, bedrock, vertex'],
  ])("sluice check reports line and key of an error in a provider's settings: %s, %s", async (...given) => {
    const [provider, last, line, key, expected] = given
    const config = file(`channels:\n  - { name: x, provider: ${provider}, models: [m],\n      ${last} }\n`)
    const { code, err } = await run({ config })
    expect(code).toBe(1)
    const found = err.split('\n').find((one) => one.startsWith(`gateway.yaml:${line}: channels[0].${key}`))
    expect(found, err).toContain(expected)
  })

  test('sluice check reports invalid fallbacks', async () => {
    const config = file(
      'models: { a: { price: { input: 1, output: 1 }, fallback: [b, a, c] } }\n' +
        'channels: [{ name: x, protocol: chat, base_url: "http://x/v1", models: [a] }]\n',
    )
    expect((await run({ config })).err).toBe(
      'gateway.yaml:1: models.a.fallback[1]: expected another model than the one that it stands in for\n',
    )
    file(
      'models: { a: { price: { input: 1, output: 1 }, fallback: [b, c] } }\n' +
        'channels: [{ name: x, protocol: chat, base_url: "http://x/v1", models: [a, c] }]\n',
    )
    expect((await run({ config })).err).toContain(
      'warning: gateway.yaml:1: models.a.fallback[0]: no channel in gateway.yaml serves b: calls go on with it only if one that was added over HTTP does\n' +
        'warning: gateway.yaml:1: models.a.fallback[1]: c has no price: no call goes on with it\n',
    )
  })

  test('sluice check reports errors of the prices file with its own name and line', async () => {
    writeFileSync(join(folder, 'prices.yaml'), 'm: { input: 1, output: 2 }\nn: { input: cheap, output: 2 }\n')
    const config = file('options: { prices_file: prices.yaml }\n')
    expect(await run({ config })).toEqual({
      code: 1,
      out: '',
      err: 'prices.yaml:2: n.input: expected a decimal number from 0 to 1000000, found "cheap"\n',
    })
  })

  test('sluice check prints what the configuration contains, and its warnings', async () => {
    const config = file(
      'channels: [{ name: a, protocol: chat, base_url: "http://a", models: [house-model] }]\n',
    )
    expect(await run({ config })).toEqual({
      code: 0,
      out: 'The configuration is valid: 1 channel, 1 model, 1 group, 0 users.\n',
      err: 'warning: gateway.yaml:1: channels[0].models[0]: house-model has no price: calls to it are refused\n',
    })
  })

  test('sluice check accepts models whose only price is for images, characters or seconds, or that are built in', async () => {
    const config = file(
      'models:\n  painter: { price: { image: { default: 0.04, "1024x1024/hd": 0.08 } } }\n' +
        '  voice: { price: { characters: 15 } }\n  scribe: { price: { second: 0.0001 } }\n' +
        'channels: [{ name: a, protocol: chat, base_url: "http://a", models: [painter, voice, scribe, dall-e-3, tts-1, whisper-1, text-embedding-3-small] }]\n',
    )
    expect(await run({ config })).toEqual({
      code: 0,
      out: 'The configuration is valid: 1 channel, 7 models, 1 group, 0 users.\n',
      err: '',
    })
  })

  test('sluice check warns of patterns that match nothing, and reports the lines of their values', async () => {
    const config = file(
      'channels:\n  - name: a\n    protocol: chat\n    base_url: "http://a"\n    models:\n      - nothing-*\n      - gpt-6-*\n      - house-model\n',
    )
    const { code, err } = await run({ config })
    expect(code).toBe(0)
    expect(err).toContain('gateway.yaml:6: channels[0].models[0]: no priced model matches')
    expect(err).toContain('gateway.yaml:8: channels[0].models[2]: house-model has no price')
    expect(err).not.toContain('models[1]')
  })

  test('sluice check prints one JSON object with --json', async () => {
    const good = await run({ config: EXAMPLE, json: true }, SET)
    expect([good.code, good.err]).toEqual([0, ''])
    expect(JSON.parse(good.out)).toMatchObject({
      ok: true,
      channels: 4,
      models: 4,
      groups: 2,
      users: 1,
      mistakes: [],
    })
    const bad = await run({ config: file('x: 1'), json: true })
    expect([bad.code, bad.err]).toEqual([1, ''])
    expect(JSON.parse(bad.out)).toMatchObject({ ok: false, mistakes: [{ line: 1, path: 'x' }] })
  })
})

describe('the example file', () => {
  test('gateway.example.yaml is valid once its variables are set', async () => {
    expect(await run({ config: EXAMPLE }, SET)).toMatchObject({
      code: 0,
      out: 'The configuration is valid: 4 channels, 4 models, 2 groups, 1 user.\n',
    })
  })

  test('gateway.example.yaml is refused with an error for each missing variable', async () => {
    const { code, err } = await run({ config: EXAMPLE })
    const variables = Object.keys(SET).map((name) => `expected the environment variable ${name} to be set`)
    expect(code).toBe(1)
    const said = err
      .trim()
      .split('\n')
      .map((line) => line.split(': ').at(-1))
    expect(new Set(said)).toEqual(new Set(variables))
  })

  test('gateway.example.yaml and docs/configuration.md have every key of the configuration', async () => {
    const example = readFileSync(EXAMPLE, 'utf8')
    const documentation = readFileSync(join(import.meta.dirname, '../../docs/configuration.md'), 'utf8')
    const sections = ['options', 'rate_limits', 'groups', 'models', 'channels', 'users']
    const unknownKey =
      'options: { "?": }\nrate_limits: { "?": , key: { "?": } }\ngroups: { g: { "?": } }\nmodels: { m: { "?": , price: { "?": , tiers: [{ "?": }] } } }\nchannels: [{ "?": , timeouts: { "?": } }]\nusers: [{ "?": , tokens: [{ "?": }] }]\n'
    const { out } = await run({ config: file(unknownKey), json: true })
    const { mistakes }: { mistakes: { message: string }[] } = JSON.parse(out)
    const keys = mistakes.flatMap(
      ({ message }) => /^unknown key, expected one of (.*)$/.exec(message)?.[1]?.split(', ') ?? [],
    )
    expect(keys.length).toBeGreaterThan(70)
    for (const key of [...sections, ...keys]) {
      expect(example).toMatch(new RegExp(`\\b${key}:`))
      expect(documentation).toMatch(new RegExp(`\`(?:[\\w.]+\\.)?${key}\``))
    }
  })
})

describe('the README', () => {
  const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
  const block = (language: string): string =>
    new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(readme)?.[1] ?? ''

  test('the gateway.yaml of the README is valid, and gives no warning', async () => {
    expect(await run({ config: file(block('yaml')) }, { OPENAI_API_KEY: 'sk-vendor-key' })).toMatchObject({
      code: 0,
      out: 'The configuration is valid: 1 channel, 1 model, 1 group, 0 users.\n',
      err: '',
    })
  })

  test('the first commands of the README need no package that is not published yet', () => {
    const commands = block('sh clone').trim().split('\n')
    expect(commands[0]).toMatch(/^npm ci && npm run demo /)
    for (const command of commands) expect(command).not.toMatch(/npx sluice|npm i(nstall)? -g sluice/)
  })

  test('the table of providers has each vendor whose key makes a channel', () => {
    const [table = ''] = readme.split('## Providers\n')[1]?.split('\n## ') ?? []
    for (const { variables } of VENDORS) expect(table).toContain(`\`${variables[0]}\``)
  })

  test('what Sluice is for comes before any picture and any figure', () => {
    const [before = ''] = readme.split('![')
    const lines = before.trim().split('\n').slice(2)
    expect(lines).toHaveLength(3)
    expect(before).not.toMatch(/\d/)
  })
})
