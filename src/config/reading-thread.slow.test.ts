import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { builtInPrices } from './built-in-prices.ts'
import { readConfig } from './config.ts'
import { readEnvironment } from './environment.ts'
import { ConfigError } from './diagnostics.ts'
import { ReadingThread, readingService } from './reading-thread.ts'

const folder = mkdtempSync(join(tmpdir(), 'reading-'))
afterAll(() => rmSync(folder, { recursive: true }))

function catchError(run: () => unknown): unknown {
  try {
    return run()
  } catch (caught) {
    return caught
  }
}

test('the thread that reads the configuration sends the users in parts of 500, each on request, so that calls are processed in between', async () => {
  const file = join(folder, 'parts.yaml')
  const users = Array.from({ length: 1_100 }, (_, index) => `  - { username: u${index} }`)
  writeFileSync(file, ['users:', ...users].join('\n'))
  const service = readingService()
  onTestFinished(() => service.close())
  const { content } = await service.request('read', readEnvironment({}, { config: file }, folder))
  expect(content).not.toHaveProperty('users')
  for (const expected of [500, 500, 100, 0, 0])
    expect(await service.request('nextUsers', undefined)).toHaveLength(expected)
})

test('the configuration is the same if a thread reads it, and is refused with the same errors', async () => {
  const file = join(folder, 'threaded.yaml')
  const tokens = '[{ name: main, remain_quota: 5, key: short, budget: 7, budget_period: day }]'
  const users = Array.from({ length: 700 }, (_, index) => `  - { username: u${index}, tokens: ${tokens} }`)
  writeFileSync(
    file,
    [
      'groups: { vip: { ratio: 0.5 } }',
      'models: { m: { price: { input: 1, output: 2 } }, constructor: { fallback: [m] } }',
      'channels: [{ name: a, protocol: chat, base_url: "http://a", models: [m, gpt-4o*], keys: ["${KEY}"] }]',
      'users:',
      ...users.map((user, index) => user.replace('short', `short${index}`)),
    ].join('\n'),
  )
  const environment = readEnvironment({ KEY: 'from-a-variable' }, { config: file }, folder)
  const here = readConfig(environment)
  await using thread = new ReadingThread()
  const there = await thread.read(environment, here.builtIn)
  expect(here.users).toHaveLength(700)
  expect(here.warnings.length).toBeGreaterThanOrEqual(700)
  const { models, ...settings } = here.settings
  const { models: modelsThere, ...settingsThere } = there.settings
  const { settings: _, ...others } = here
  expect(there).toMatchObject(others)
  expect(settingsThere).toEqual(settings)
  expect(modelsThere.get('m')).toEqual(models.get('m'))

  writeFileSync(file, 'options:\n  retries: many\nusers: [{ username: u, quota: -1 }]\n')
  const refusal = catchError(() => readConfig(environment))
  expect(refusal).toBeInstanceOf(ConfigError)
  await expect(thread.read(environment, here.builtIn)).rejects.toEqual(refusal)
})

test('readings that follow each other share a thread, which ends when it is idle', async () => {
  let threads = 0
  const count = (): number => (threads += 1)
  process.on('worker', count)
  onTestFinished(() => void process.off('worker', count))
  const file = join(folder, 'shared.yaml')
  writeFileSync(file, '')
  const environment = readEnvironment({}, { config: file }, folder)
  const builtIn = builtInPrices()
  let idle = (): void => {}
  const setTimer = (run: () => void): Disposable => {
    idle = run
    return { [Symbol.dispose]: () => (idle = () => {}) }
  }
  await using thread = new ReadingThread({ setTimer })
  for (let expected = 1; expected <= 3; expected += 1) {
    for (const retries of [1, 2]) {
      writeFileSync(file, `options: { retries: ${retries} }`)
      expect((await thread.read(environment, builtIn)).settings.options.retries).toBe(retries)
    }
    expect(threads).toBe(expected)
    idle()
  }
})
