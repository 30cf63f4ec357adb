import { renameSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { call } from '../fixtures/client.ts'
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

/** What a reload must guarantee, as measured in a storm of reloads. */
export interface ReloadReport {
  readonly requests: number
  readonly reloads: number
  readonly refusedFiles: number
  /** Requests that did not get a complete response. */
  readonly failed: readonly string[]
  /** The different charges by price version. */
  readonly chargesByVersion: ReadonlyMap<string, ReadonlySet<number>>
  /**
   * The number of answered requests without exactly one usage row, and of rows without an answered request.
   */
  readonly unaccounted: number
  /** The number of requests that reached a channel while it was removed. */
  readonly strays: number
}

/** The cost of the upstream's response under each of the two price lists: 10 prompt and 5 output tokens. */
export const CHARGES = [30, 90]

/** Milliseconds after a reload in which requests that were admitted before may still reach their upstream. */
const ON_THEIR_WAY_MS = 250
/** Every fifth reload also writes a file with an error. */
const BAD_EVERY = 5

/**
 * Makes calls at a steady rate while prices, channels and keys of the configuration change repeatedly,
 * written in every way.
 */
export async function reloadStorm(plan: {
  readonly seconds: number
  readonly reloads: number
  readonly perSecond: number
}): Promise<ReloadReport> {
  const upstream = await startUpstream()
  const program = await runProgram({ config: configuration(upstream, 0), env: { LOG_LEVEL: 'warn' } })
  try {
    await program.ready()
    const traffic = steadyTraffic(program, plan)
    const { strays, refusedFiles } = await changes(program, upstream, plan)
    const { failed, answered } = await traffic
    const rows = databaseOf(program.folder.path).usage() as unknown as (Row & { id: string })[]
    const chargesByVersion = new Map<string, Set<number>>()
    for (const { price_version, quota } of rows)
      chargesByVersion.set(price_version, (chargesByVersion.get(price_version) ?? new Set()).add(quota))
    const ids = new Set(rows.map(({ id }) => id))
    const metrics = await metricsOf(program.url)
    return {
      requests: answered.length + failed.length,
      reloads: metrics.sum('sluice_config_reloads_total', { result: 'applied' }),
      refusedFiles,
      failed,
      chargesByVersion,
      unaccounted: answered.filter((id) => !ids.has(id)).length + Math.abs(rows.length - answered.length),
      strays,
    }
  } finally {
    await discard(program)
    await upstream.stop()
  }
}

interface Row {
  readonly price_version: string
  readonly quota: number
}

async function steadyTraffic(
  program: Program,
  { seconds, perSecond }: { readonly seconds: number; readonly perSecond: number },
): Promise<{ failed: string[]; answered: string[] }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 200 })
  const failed: string[] = []
  const answered: string[] = []
  const one = async (stream: boolean): Promise<void> => {
    try {
      const { status, headers, text } = await call(program.url, stream ? askStream('m') : ask('m'), {
        key: 'ann',
        agent,
      })
      const whole = status === 200 && text.includes(stream ? 'data: [DONE]' : '"usage"')
      if (whole) answered.push(String(headers['x-request-id']))
      else failed.push(`${status} ${text.slice(0, 300)}`)
    } catch (error) {
      failed.push(String(error))
    }
  }
  const running = new Set<Promise<void>>()
  const started = performance.now()
  // Requests are sent at fixed times: a slow gateway must not reduce the rate.
  for (let sent = 0; sent < seconds * perSecond; sent++) {
    const wait = started + (sent * 1000) / perSecond - performance.now()
    if (wait > 1) await sleep(wait)
    const request = one(sent % 2 === 0).finally(() => running.delete(request))
    running.add(request)
  }
  await Promise.all(running)
  agent.destroy()
  return { failed, answered }
}

async function changes(
  program: Program,
  upstream: ScriptedUpstream,
  { seconds, reloads }: { readonly seconds: number; readonly reloads: number },
): Promise<{ strays: number; refusedFiles: number }> {
  const applied = async (): Promise<number> =>
    (await metricsOf(program.url)).sum('sluice_config_reloads_total', { result: 'applied' })
  const refused = async (): Promise<number> =>
    (await metricsOf(program.url)).sum('sluice_config_reloads_total', { result: 'refused' })
  const { configFile } = program.folder
  const started = performance.now()
  let strays = 0
  let badFiles = 0
  let removed: { readonly lane: string; readonly since: number } | undefined
  // The requests that have reached the removed lane since then.
  const seen = (): number =>
    removed ? upstream.received(removed.lane).filter(({ at }) => at > (removed?.since ?? 0)).length : 0
  for (let turn = 1; turn <= reloads; turn++) {
    const wait = started + (turn * seconds * 1000) / (reloads + 1) - performance.now()
    if (wait > 0) await sleep(wait)
    strays += seen()
    if (turn % BAD_EVERY === 0) {
      const before = await refused()
      writeFileSync(configFile, 'options:\n  retrys: 1\n')
      await eventually(async () => (await refused()) > before, 'a refusal')
      badFiles += 1
    }
    const before = await applied()
    const text = stringify(withoutModelLists(configuration(upstream, turn)))
    if (turn % 2 === 0) writeFileSync(configFile, text)
    else {
      writeFileSync(`${configFile}.new`, text)
      renameSync(`${configFile}.new`, configFile)
    }
    await eventually(async () => (await applied()) > before, `reading ${turn}`)
    removed = { lane: removedIn(turn), since: performance.now() + ON_THEIR_WAY_MS }
  }
  return { strays: strays + seen(), refusedFiles: badFiles }
}

/** Two channels are removed and added in turn; the third stays, with a new key each time. */
const removedIn = (turn: number): string => (turn % 2 === 0 ? 'odd' : 'even')

function configuration(upstream: ScriptedUpstream, turn: number): Configuration {
  const factor = turn % 2 === 0 ? 1 : 3
  const lanes = ['always', turn % 2 === 0 ? 'even' : 'odd']
  return {
    models: priced(['m'], { input: 2 * factor, output: 8 * factor }),
    channels: lanes.map((lane) =>
      channel(lane, upstream.baseUrl(lane), { models: ['m'], keys: [`key-${lane}-${turn}`] }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }
}
