import { readFileSync } from 'node:fs'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { call } from '../test/equipment/client.ts'
import { plainConfiguration } from '../test/equipment/configuration.ts'
import { startGateway } from '../test/equipment/gateway.ts'
import { startUpstream } from '../test/equipment/scripted-upstream.ts'

const { values: options } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const LIMIT = 'resident memory of an idle gateway, in megabytes'
/** Calls that wake everything which is loaded late. */
const CALLS = 100
const IDLE_MS = 5_000

/** Resident and, of it, memory that belongs to no file, in megabytes. */
function memoryOf(pid: number): { resident: number; anonymous: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const read = (name: string): number =>
    (Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024) / 1e6
  return { resident: read('VmRSS'), anonymous: read('RssAnon') }
}

async function main(): Promise<number> {
  const upstream = await startUpstream()
  const gateway = await startGateway({
    config: plainConfiguration(upstream.baseUrl('m')),
    env: { LOG_LEVEL: 'warn' },
  })
  try {
    const show = (when: string): number => {
      const { resident, anonymous } = memoryOf(gateway.pid)
      console.log(`${when}: ${resident.toFixed(0)} MB resident, ${anonymous.toFixed(0)} MB of it no file's`)
      return resident
    }
    await sleep(IDLE_MS)
    const first = show('idle after its first start, which made the database')
    await gateway.restart()
    await sleep(IDLE_MS)
    const later = show('idle after a later start')
    for (let i = 0; i < CALLS; i++) {
      const body = { model: 'm', stream: i % 2 === 0, messages: [{ role: 'user', content: 'hi' }] }
      const { status } = await call(gateway.url, body, { key: 'ann' })
      if (status !== 200) throw new Error(`a call was answered with ${status}`)
    }
    await sleep(IDLE_MS)
    show(`idle after ${CALLS} calls`)
    const limits = JSON.parse(readFileSync(new URL('./limits.json', import.meta.url), 'utf8')) as Record<
      string,
      number
    >
    const limit = limits[LIMIT] ?? 0
    const most = Math.max(first, later)
    console.log(`${most.toFixed(0)} (limit ${limit}): ${LIMIT}`)
    return options.check && most > limit ? 1 : 0
  } finally {
    await gateway.discard()
    await upstream.stop()
  }
}

process.exitCode = await main()
