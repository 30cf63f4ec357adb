import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { type Config, readConfig } from '../config/config.ts'
import { readEnvironment } from '../config/environment.ts'
import { type ReloadResult, reloadOnChange } from './reload.ts'

/** A folder with a gateway.yaml, as a gateway that starts reads it. */
function start(text: string) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-reload-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const write = (name: string, content: string): void => writeFileSync(join(folder, name), content)
  write('gateway.yaml', text)
  const read = (): Config => readConfig(readEnvironment({}, {}, folder))
  return { write, read }
}

/** Watches the files of a configuration, and collects what is applied, and how each reading ends. */
async function watch(config: Config) {
  const applied: Config[] = []
  const results: ReloadResult[] = []
  const watching = await reloadOnChange(
    config,
    (next) => Promise.resolve(void applied.push(next)),
    (result) => results.push(result),
    pino({ enabled: false }),
  )
  onTestFinished(() => watching.close())
  return { applied, results, watching }
}

test('a gateway.yaml that was changed while the gateway started is applied', async () => {
  const { read, write } = start('options: { retries: 1 }')
  const config = read()
  write('gateway.yaml', 'options: { retries: 2 }')
  const { applied } = await watch(config)
  await expect.poll(() => applied.at(-1)?.settings.options.retries).toBe(2)
})

test('a prices file that was changed while the gateway started is applied', async () => {
  const { read, write } = start('options: { prices_file: prices.yaml }')
  write('prices.yaml', 'm: { input: 1, output: 1 }')
  const config = read()
  write('prices.yaml', 'n: { input: 1, output: 1 }')
  const { applied } = await watch(config)
  await expect.poll(() => [...(applied.at(-1)?.priceFile?.prices.keys() ?? [])]).toEqual(['n'])
})

test('files that were not changed while the gateway started are not read again', async () => {
  const { read, write } = start('options: { prices_file: prices.yaml }')
  write('prices.yaml', 'm: { input: 1, output: 1 }')
  const { results, watching } = await watch(read())
  await watching.close()
  expect(results).toEqual([])
})

test.each([
  ['a prices file', 'options: { prices_file: other }', 'm: { input: 1, output: 1 }'],
  [
    'a file with a key',
    'channels: [{ name: a, protocol: chat, base_url: "https://a.example/v1", keys: ["file:other"], models: [m] }]',
    'a-key',
  ],
])('%s that is written after the gateway.yaml that names it is read', async (_, text, other) => {
  const { read, write } = start('options: { retries: 1 }')
  const { results } = await watch(read())
  write('gateway.yaml', text)
  await expect.poll(() => results).toContain('refused')
  write('other', other)
  await expect.poll(() => results).toContain('applied')
})

test.each([
  ['a prices file', (name: string) => `options: { prices_file: ${name} }`],
  [
    'a file with a key',
    (name: string) =>
      `channels: [{ name: a, protocol: chat, base_url: "https://a.example/v1", keys: ["file:${name}"], models: [m] }]`,
  ],
])('%s that nothing can be written to ends no watch', async (_, naming) => {
  const { read, write } = start('options: { retries: 1 }')
  const { results } = await watch(read())
  write('gateway.yaml', naming('x'.repeat(300)))
  await expect.poll(() => results).toEqual(['refused'])
  write('gateway.yaml', naming('.'))
  await expect.poll(() => results).toEqual(['refused', 'refused'])
  write('beside', 'text')
  write('gateway.yaml', 'options: { retries: 2 }')
  await expect.poll(() => results).toEqual(['refused', 'refused', 'applied'])
})
