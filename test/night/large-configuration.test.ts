import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { expect, onTestFinished, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { ask } from '../fixtures/fixture.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import {
  configurationOfUsers,
  keyOf,
  measuredReloads,
  measuredRestart,
  measuredStart,
} from '../load/large-site.ts'
import { eventually } from '../operations/program.ts'

const FEW = 10
const MANY = 10_000
/**
 * The cost of a start with many keys, as a multiple of that with few: 5 was measured, and more than 60 where
 * each user had a separate schema check, query and insertion.
 */
const MAX_RATIO = 8
/** The duration of a reload, as a multiple of a start with few keys: 4 to 6 were measured, and 8.6 beside much other work. */
const MAX_RELOAD_RATIO = 12

test(`a start with ${MANY} keys in gateway.yaml takes a few times as long as with few, and calls continue during a reload`, async () => {
  const upstream = await startUpstream()
  onTestFinished(() => upstream.stop())
  const of = (count: number): string => configurationOfUsers(count, upstream.baseUrl('m'))
  const few = await measuredStart({ config: of(FEW) })
  onTestFinished(() => few.gateway.discard())
  const fewAgain = await measuredRestart(few.gateway)
  await few.gateway.stop()

  const many = await measuredStart({ config: of(MANY) })
  const { gateway } = many
  onTestFinished(() => gateway.discard())
  const last = keyOf(MANY - 1)
  expect((await call(gateway.url, ask('m'), { key: last })).status).toBe(200)
  const manyAgain = await measuredRestart(gateway)
  const reloads = await measuredReloads(gateway)
  await gateway.apply(of(MANY + 1))
  expect((await call(gateway.url, ask('m'), { key: keyOf(MANY) })).status).toBe(200)
  expect((await call(gateway.url, ask('m'), { key: last })).status).toBe(200)
  const starts = [few, fewAgain, many, manyAgain].map(({ cpuMs, tookMs }) => [cpuMs, Math.round(tookMs)])
  console.info(JSON.stringify({ starts, reloads }))
  expect(many.cpuMs / fewAgain.cpuMs).toBeLessThanOrEqual(2 * MAX_RATIO)
  expect(manyAgain.cpuMs / fewAgain.cpuMs).toBeLessThanOrEqual(MAX_RATIO)
  expect(reloads.tookMs / fewAgain.tookMs).toBeLessThanOrEqual(MAX_RELOAD_RATIO)
  expect(reloads.mainThreadCpuMs).toBeLessThanOrEqual(reloads.cpuMs / 3)
  expect(reloads.longestTurnMs).toBeLessThanOrEqual(reloads.tookMs / 3)
  expect(reloads.longestWaitMs).toBeLessThanOrEqual(reloads.probedMs / 3)

  const lines = of(MANY).split('\n')
  const at = lines.findLastIndex((line) => line.includes('remain_quota'))
  lines[at] = '        remain_quota: -1'
  writeFileSync(join(gateway.dataDir, 'gateway.yaml'), lines.join('\n'))
  process.kill(gateway.pid, 'SIGHUP')
  const mistake = `gateway.yaml:${at + 1}: users[${MANY - 1}].tokens[0].remain_quota: expected`
  await eventually(() => gateway.logs().includes(mistake), 'the refusal of the last key')
  expect((await call(gateway.url, ask('m'), { key: last })).status).toBe(200)
})
