import { renameSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import {
  contentFrame,
  DONE_FRAME,
  finishFrame,
  roleFrame,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { type FullResponse, call, open } from '../fixtures/client.ts'
import {
  channel,
  type Configuration,
  priced,
  ROOT,
  token,
  user,
  withoutModelLists,
} from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { metricsOf } from './metrics-text.ts'
import { discard, eventually, type Program, runProgram } from './program.ts'

let upstream: ScriptedUpstream
let program: Program
let base: Required<Configuration>
beforeAll(async () => {
  upstream = await startUpstream()
  base = {
    options: {},
    rate_limits: {},
    groups: {},
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')])],
    login: {},
    alerts: [],
    guards: [],
    content_log: {},
    mcp: {},
  }
  program = await runProgram({ config: base })
  await program.ready()
})
afterAll(async () => {
  await discard(program)
  await upstream?.stop()
})

const LOGGED = {
  applied: '"msg":"configuration applied"',
  refused: '"msg":"configuration refused; the running one stays"',
} as const

/** How many readings have ended like this, by the log, which costs the gateway less than its metrics do. */
const readings = (result: keyof typeof LOGGED): number => program.out().split(LOGGED[result]).length - 1

/** Ways of writing a new text to a file. */
const WRITERS: Readonly<Record<string, (text: string) => void | Promise<void>>> = {
  'written in place': (text) => writeFileSync(program.folder.configFile, text),
  'renamed over': (text) => {
    writeFileSync(`${program.folder.configFile}.new`, text)
    renameSync(`${program.folder.configFile}.new`, program.folder.configFile)
  },
  'written in steps, as an editor does': async (text) => {
    const { configFile } = program.folder
    truncateSync(configFile)
    await sleep(40)
    writeFileSync(configFile, text.slice(0, text.length / 2))
    await sleep(40)
    writeFileSync(configFile, text)
  },
  'moved away and made anew, as an editor does': async (text) => {
    const { configFile } = program.folder
    renameSync(configFile, `${configFile}~`)
    await sleep(10)
    writeFileSync(configFile, text)
  },
}

/** Writes the file and waits until the gateway has read it. */
async function change(
  config: Configuration | string,
  expected: keyof typeof LOGGED = 'applied',
  write = WRITERS['renamed over'],
): Promise<void> {
  const before = readings(expected)
  await write?.(typeof config === 'string' ? config : stringify(withoutModelLists(config)))
  await readingAfter(before, expected)
}

/**
 * Waits for a reading. The library may report one change twice, so that the first reading that ends may have begun
 * before this change; one more is awaited, because the file is in force when that has ended.
 */
async function readingAfter(before: number, expected: keyof typeof LOGGED): Promise<void> {
  await eventually(() => readings(expected) > before, `a reading that is ${expected}`)
  if (expected === 'refused') return
  const seen = readings(expected)
  program.kill('SIGHUP')
  await eventually(() => readings(expected) > seen, 'a reading after a signal')
}

const chat = (key = 'ann', model = 'm', headers: Record<string, string> = {}): Promise<FullResponse> =>
  call(program.url, ask(model), { key, headers })

async function charged(answer: FullResponse): Promise<{ quota: number; price_version: string }> {
  expect(answer.status, answer.text).toBe(200)
  const row = databaseOf(program.folder.path).usageOf(String(answer.headers['x-request-id']))
  return row as unknown as { quota: number; price_version: string }
}

/**
 * The plain price multiplied by a factor: with factor 1, the upstream's usual response costs 30 quota units.
 */
const times = (factor: number): Record<string, unknown> =>
  priced(['m'], { input: 2 * factor, output: 8 * factor })

beforeEach(async () => {
  upstream.script('m', { kind: 'whole' })
})

describe('when a change of the file is applied', () => {
  test.each(Object.entries(WRITERS))(
    'a change of gateway.yaml is applied when the file is %s',
    async (_, write) => {
      for (const factor of [2, 3, 1]) {
        await change({ ...base, models: times(factor) }, 'applied', write)
        expect((await charged(await chat())).quota).toBe(30 * factor)
      }
    },
  )

  test('gateway.yaml is applied on SIGHUP, whether it has changed or not', async () => {
    const counted = async (): Promise<number> =>
      (await metricsOf(program.url)).sum('sluice_config_reloads_total', { result: 'applied' })
    const before = await counted()
    program.kill('SIGHUP')
    await eventually(async () => (await counted()) > before, 'a reading on SIGHUP')
    expect((await chat()).status).toBe(200)
  })

  test('the price version of calls changes with a price in gateway.yaml, and is the earlier one again for the earlier price', async () => {
    await change({ ...base, models: times(1) })
    const one = await charged(await chat())
    await change({ ...base, models: times(2) })
    const two = await charged(await chat())
    await change({ ...base, models: times(1) })
    const again = await charged(await chat())
    expect(again.price_version).toBe(one.price_version)
    expect([one.quota, two.quota]).toEqual([30, 60])
    expect(two.price_version).not.toBe(one.price_version)
  })
})

describe('the prices file', () => {
  const pricesFile = () => join(program.folder.path, 'prices.yaml')
  const pricesTimes = (factor: number): string => `m: { input: ${2 * factor}, output: ${8 * factor} }\n`
  const writes = async (text: string, expected: keyof typeof LOGGED = 'applied'): Promise<void> => {
    const before = readings(expected)
    writeFileSync(pricesFile(), text)
    await readingAfter(before, expected)
  }

  test('a change of the prices file is applied at once, and a change with a mistake is refused with its line', async () => {
    writeFileSync(pricesFile(), pricesTimes(2))
    await change({ ...base, models: {}, options: { prices_file: './prices.yaml' } })
    const two = await charged(await chat())
    await writes(pricesTimes(3))
    const three = await charged(await chat())
    expect([two.quota, three.quota]).toEqual([60, 90])
    expect(two.price_version).not.toBe(three.price_version)

    await writes(`${pricesTimes(4)}n: { input: 1 }\n`, 'refused')
    const still = await charged(await chat())
    expect([still.quota, still.price_version]).toEqual([90, three.price_version])
    const mistake = `${pricesFile()}:2: n.output: expected a price per million tokens (0 if it is free), found nothing`
    await eventually(() => program.out().includes(JSON.stringify(mistake)), 'the mistake with its line')
    await writes('', 'refused')
    await writes('# m: { input: 1, output: 1 }\n', 'refused')
    expect((await charged(await chat())).quota).toBe(90)
    await writes(pricesTimes(5))
    expect((await charged(await chat())).quota).toBe(150)
  })

  test('a prices file that gateway.yaml names, and that was refused for a mistake, is read again once it is corrected', async () => {
    writeFileSync(pricesFile(), 'm: { input: 1 }\n')
    await change({ ...base, models: {}, options: { prices_file: './prices.yaml' } }, 'refused')
    await writes(pricesTimes(2))
    expect((await charged(await chat())).quota).toBe(60)
    await change(base)
    expect((await charged(await chat())).quota).toBe(30)
  })
})

describe('settings that a reload changes', () => {
  test('after a reload of gateway.yaml, a new channel is called, and a removed channel gets no new request', async () => {
    const m2 = channel('m2', upstream.baseUrl('m2'), { models: ['m'] })
    await change({ ...base, channels: [m2] })
    expect((await chat()).status).toBe(200)
    expect(upstream.received('m')).toHaveLength(0)
    expect(upstream.received('m2')).toHaveLength(1)
    await change(base)
    await chat()
    expect(upstream.received('m2')).toHaveLength(1)
  })

  test('after a reload of gateway.yaml, a channel is called with its changed keys', async () => {
    await change({ ...base, channels: [channel('m', upstream.baseUrl('m'), { keys: ['another-key'] })] })
    await chat()
    expect(upstream.only('m').headers.authorization).toBe('Bearer another-key')
    await change(base)
  })

  test('after a reload of gateway.yaml, calls use its changed models, prices and group ratios', async () => {
    expect((await chat('ann', 'n')).status).toBe(503)
    await change({
      ...base,
      groups: { default: { ratio: 0.5 } },
      models: priced(['m', 'n']),
      channels: [channel('m', upstream.baseUrl('m'), { models: ['m', 'n'] })],
    })
    expect((await charged(await chat('ann', 'n'))).quota).toBe(15)
    await change(base)
    expect((await chat('ann', 'n')).status).toBe(503)
  })

  test('a reload of gateway.yaml applies changed trusted_proxies to the next call', async () => {
    const users = [...base.users, user(3, 'office', [token('office', { allow_ips: '10.0.0.0/8' })])]
    await change({ ...base, users })
    const forwarded = { 'x-forwarded-for': '10.1.2.3' }
    expect((await chat('office', 'm', forwarded)).status).toBe(403)
    await change({ ...base, users, options: { trusted_proxies: ['127.0.0.1'] } })
    expect((await chat('office', 'm', forwarded)).status).toBe(200)
    await change({ ...base, users })
    expect((await chat('office', 'm', forwarded)).status).toBe(403)
    await change(base)
  })

  test('a reload of gateway.yaml applies a changed or removed metrics_token', async () => {
    writeFileSync(
      program.folder.configFile,
      stringify(withoutModelLists({ ...base, options: { metrics_token: 'watcher' } })),
    )
    const seen = (headers: Record<string, string>): Promise<number> =>
      call(program.url, undefined, { method: 'GET', path: '/metrics', headers }).then(({ status }) => status)
    await eventually(
      async () => (await seen({ authorization: 'Bearer another' })) === 403,
      'the token is asked for',
    )
    expect(await seen({ authorization: 'Bearer watcher' })).toBe(200)
    writeFileSync(program.folder.configFile, stringify(withoutModelLists(base)))
    await eventually(async () => (await seen({ authorization: 'Bearer another' })) === 200, 'no token')
  })
})

describe('users of the file', () => {
  test('a reload creates new users and tokens of gateway.yaml, and does not change the quota of existing tokens', async () => {
    expect((await chat('bob')).status).toBe(401)
    await change({
      ...base,
      users: [...base.users, user(4, 'bob', [token('bob', { remain_quota: 100_000 })])],
    })
    // A key that was unknown before is known at once.
    expect((await chat('bob')).status).toBe(200)
    expect(databaseOf(program.folder.path).token('token-bob').remain_quota).toBe(99_970)
    await change({ ...base, users: [...base.users, user(4, 'bob', [token('bob', { remain_quota: 5 })])] })
    expect(databaseOf(program.folder.path).token('token-bob').remain_quota).toBe(99_970)
    await change(base)
    expect((await chat('bob')).status).toBe(200)
  })

  test('the status of a user or token in gateway.yaml is applied at every reload, and to the very next call', async () => {
    const carl = (status: number, tokenState: number): Configuration => ({
      ...base,
      users: [...base.users, user(5, 'carl', [token('carl', { status: tokenState })], { status })],
    })
    await change(carl(1, 1))
    expect((await chat('carl')).status).toBe(200)
    await change(carl(2, 1))
    expect((await chat('carl')).status).toBe(403)
    await change(carl(1, 1))
    expect((await chat('carl')).status).toBe(200)
    await change(carl(1, 2))
    expect((await chat('carl')).status).toBe(401)
    await change(carl(1, 1))
    expect((await chat('carl')).status).toBe(200)
    await change(base)
  })
})

describe('a bad file changes nothing', () => {
  test.each([
    ['is no YAML', 'channels: [\n', /gateway\.yaml:\d+: /],
    ['has an unknown key', 'options:\n  retrys: 1\n', /gateway\.yaml:2: options\.retrys: /],
    [
      'has a price that is none',
      'models:\n  m:\n    price: { input: cheap, output: 1 }\n',
      /gateway\.yaml:3: models\.m\.price\.input: /,
    ],
    [
      'names a variable that is not set',
      'options:\n  metrics_token: "${NOT_THERE}"\n',
      /gateway\.yaml:2: .*NOT_THERE/,
    ],
    ['is empty', '', /gateway\.yaml: .*empty/],
    ['has comments alone', '\n# channels: []\n', /gateway\.yaml: .*empty/],
  ])(
    'a gateway.yaml that %s is refused at a reload with file and line, and the next valid file is applied',
    async (_, bad, said) => {
      await change({ ...base, models: times(2) })
      const logged = program.log().length
      await change(bad, 'refused')
      expect((await charged(await chat())).quota).toBe(60)
      await eventually(
        () =>
          program
            .log()
            .slice(logged)
            .some(({ level, mistakes }) => level === 50 && said.test(String(mistakes))),
        'a line in the log',
      )
      await change({ ...base, models: times(3) })
      expect((await charged(await chat())).quota).toBe(90)
    },
  )

  test('a gateway.yaml that is emptied while it is read is refused, and the configuration stays in use', async () => {
    await change(base)
    const before = readings('refused')
    for (let turn = 0; turn < 5; turn += 1) {
      program.kill('SIGHUP')
      await sleep(15 * turn)
      truncateSync(program.folder.configFile)
      await eventually(() => readings('refused') > before + turn, 'it is refused')
      expect((await charged(await chat())).quota).toBe(30)
      await change(base)
    }
  })

  test('a gateway.yaml whose users cannot be created is refused, and the configuration stays in use', async () => {
    await change(base)
    const clash = user(2, 'somebody-else', [token('clash')])
    await change({ ...base, models: times(5), users: [ROOT, clash] }, 'refused')
    expect((await charged(await chat())).quota).toBe(30)
    expect((await chat('clash')).status).toBe(401)
  })

  test('while gateway.yaml is missing, a reload leaves the configuration in use unchanged', async () => {
    renameSync(program.folder.configFile, `${program.folder.configFile}.gone`)
    const before = readings('refused')
    program.kill('SIGHUP')
    await eventually(() => readings('refused') > before, 'a refusal')
    expect((await chat()).status).toBe(200)
    // Long enough for the gateway to notice that the file is missing.
    await sleep(400)
    await change({ ...base, models: times(4) })
    expect((await charged(await chat())).quota).toBe(120)
    await change(base)
  })
})

test('a running stream whose channel a reload removes is neither aborted nor charged at a new price', async () => {
  const before = await charged(await chat())
  const { promise: after, resolve: goOn } = Promise.withResolvers<void>()
  const words = Array.from({ length: 40 }, (_, index) => contentFrame(` word${index}`))
  const ending = [finishFrame(), usageFrame(usageText(10, words.length)), DONE_FRAME]
  const rest = { after, frames: [...words.slice(2), ...ending] }
  upstream.script('m', { kind: 'stream', frames: [roleFrame(), ...words.slice(0, 2)], rest })
  const live = await open(program.url, askStream('m', { stream_options: { include_usage: true } }), {
    key: 'ann',
  })
  await live.until(' word1')
  const m2 = channel('m2', upstream.baseUrl('m2'), { models: ['m'], keys: ['other'] })
  upstream.forget('m2')
  await change({ ...base, models: times(7), channels: [m2] })
  expect(live.text()).not.toContain('[DONE]')
  expect((await charged(await chat())).quota).toBe(210)
  goOn()
  const answer = await live.end()
  expect(answer.text).toContain(' word39')
  expect(answer.text).toContain('data: [DONE]')
  expect(await charged(answer)).toMatchObject({ quota: 10 + 40 * 4, price_version: before.price_version })
  expect(upstream.received('m')).toHaveLength(1)
  await change(base)
})
