import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Behaviour, usageText } from '../fixtures/behaviour.ts'
import { type LiveResponse, open, send } from '../fixtures/client.ts'
import { channel, plainConfiguration, priced } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { randomFrom } from '../fixtures/random.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask } from '../fixtures/fixture.ts'
import { metricsOf } from './metrics-text.ts'
import { discard, eventually, type Program, runProgram } from './program.ts'

/** The resources that an idle gateway uses. */
export interface Footprint {
  /** Bytes of live objects after a full garbage collection. */
  readonly heap: number
  /** Bytes outside the heap that live objects own. */
  readonly buffers: number
  /**
   * The peak memory of the process so far. The present memory depends on the size of V8's young generation at
   * that moment.
   */
  readonly resident: number
  /** What the open file descriptors other than sockets refer to. */
  readonly files: readonly string[]
  /** Open connections. */
  readonly sockets: number
  /** Timers, handles and requests of the event loop. */
  readonly resources: number
}

/** The result of a soak test. */
export interface SoakReport {
  /** Measured before the first request, after the warm-up, and at the end. */
  readonly fresh: Footprint
  readonly warm: Footprint
  readonly end: Footprint
  readonly requests: number
  readonly aborted: number
  /** The number of rejected images. */
  readonly rejected: number
  /** The number of requests refused for overload. */
  readonly refused: number
  /** Responses that were neither as expected nor aborted by the test. */
  readonly wrong: readonly string[]
  /** The number of connections that the other side has closed and the gateway has not. */
  readonly closeWait: number
  readonly openCalls: number
  readonly openHolds: number
  /** For the token and the user: the used quota minus the sum of the usage log. */
  readonly unaccounted: number
  /** The program's standard error. */
  readonly said: string
}

const CLIENTS = 32
const ABORTS = 0.1
const FAULTS = 0.05
const MEDIA = 0.05
/** Faults of an upstream: it hangs up, responds with an error, or breaks off in the middle of a stream. */
const TROUBLES = ['broken', 'failing', 'cut'] as const
/** The maximum size of fetched images in bytes; a larger one is rejected during the download. */
const MAX_BYTES = 65_536
/** Images that must be rejected. */
const REJECTED: readonly Behaviour[] = [
  { kind: 'status', status: 404 },
  { kind: 'whole', body: Buffer.alloc(4 * MAX_BYTES) },
  { kind: 'drop' },
]

/** Options of a soak test. */
export interface SoakPlan {
  readonly seed: number
  readonly warmUp: number
  readonly requests: number
  /** Requests per second, sent at fixed times; without it, clients wait for each response. */
  readonly perSecond?: number
}

/** Collects garbage on SIGUSR2, and reports the remaining resources. */
const PROBE = `import { isMainThread } from 'node:worker_threads'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
if (isMainThread) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  process.on('SIGUSR2', () => {
    collect(); collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    const resources = process.getActiveResourcesInfo().length
    process.stderr.write('footprint ' + JSON.stringify({ heap: heapUsed, buffers: arrayBuffers, resident: process.resourceUsage().maxRSS * 1024, resources }) + '\\n')
  })
}`

/**
 * Sends this number of requests, whole and streamed, over kept connections. One in ten is aborted at some
 * point, one in twenty gets a faulty upstream, and one in twenty refers to an image that is rejected.
 */
export async function soak(plan: SoakPlan): Promise<SoakReport> {
  const random = randomFrom(plan.seed)
  const upstream = await startUpstream()
  upstream.decide('m', ({ text }) => {
    upstream.forget('m')
    const order = JSON.parse(text) as { user: string; stream: boolean }
    if (order.user === 'broken') return { kind: 'drop' }
    if (order.user === 'failing') return { kind: 'status', status: 500 }
    if (order.user === 'cut')
      return order.stream ? { kind: 'stream', events: 2, ending: 'reset' } : { kind: 'drop' }
    const usage = usageText(10, 4)
    return order.stream ? { kind: 'stream', events: 4, usage } : { kind: 'whole', usage }
  })
  upstream.decide('pictures', () => {
    upstream.forget('pictures')
    return REJECTED[Math.floor(random() * REJECTED.length)] ?? { kind: 'drop' }
  })
  const { models, channels, users } = plainConfiguration(upstream.baseUrl('m'))
  const program = await runProgram({
    config: {
      options: { retries: 0, media: { allow_private_networks: true, max_bytes: MAX_BYTES } },
      models: { ...models, ...priced(['pictured']) },
      channels: [...channels, channel('pictured', upstream.baseUrl('m'), { protocol: 'messages' })],
      users,
    },
    env: { LOG_LEVEL: 'warn', NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PROBE)}` },
  })
  let fresh: Footprint = { heap: 0, buffers: 0, resident: 0, files: [], sockets: 0, resources: 0 }
  const wrong: string[] = []
  let [aborted, rejected, refused] = [0, 0, 0]
  const one = async (agent: Agent): Promise<void> => {
    const stream = random() < 0.5
    if (random() < MEDIA) return picture(agent, stream)
    const fault = random() < FAULTS ? TROUBLES[Math.floor(random() * TROUBLES.length)] : undefined
    const body = ask('m', { stream, user: fault ?? 'fine' })
    if (random() < ABORTS) {
      aborted += 1
      return abort(program, body, agent, random())
    }
    const { status, text } = await (await open(program.url, body, { key: 'ann', agent })).end()
    if (isRefused(status, text)) return
    const isAsOrdered =
      fault === undefined
        ? status === 200 && text.includes(stream ? '[DONE]' : '"usage"')
        : fault === 'cut' && stream
          ? status === 200 && text.includes('"error"') && !text.includes('[DONE]')
          : status === 500
    if (!isAsOrdered) wrong.push(`${fault}: ${status} ${text.slice(0, 200)}`)
  }
  const isRefused = (status: number, text: string): boolean => {
    const is = status === 503 && text.includes('"overloaded"')
    if (is) refused += 1
    return is
  }
  const picture = async (agent: Agent, stream: boolean): Promise<void> => {
    rejected += 1
    const url = `http://127.0.0.1:${upstream.port}/pictures/a.png`
    const content = [{ type: 'image_url', image_url: { url } }]
    const body = ask('pictured', { stream, messages: [{ role: 'user', content }] })
    const { status, text } = await (await open(program.url, body, { key: 'ann', agent })).end()
    if (status !== 400 && !isRefused(status, text)) wrong.push(`picture: ${status} ${text.slice(0, 200)}`)
  }
  const sendAll = async (count: number): Promise<Footprint> => {
    let left = count
    const tried = (agent: Agent): Promise<unknown> =>
      one(agent).catch((error: unknown) => wrong.push(String(error)))
    const client = async (): Promise<void> => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      while (left-- > 0) await tried(agent)
      agent.destroy()
    }
    const arrivals = async (perSecond: number): Promise<void> => {
      const agent = new Agent({ keepAlive: true })
      const began = performance.now()
      const all: Promise<unknown>[] = []
      while (all.length < count) {
        const due = Math.min(count, Math.floor(((performance.now() - began) / 1000) * perSecond))
        while (all.length < due) all.push(tried(agent))
        await sleep(5)
      }
      await Promise.all(all)
      agent.destroy()
    }
    if (plan.perSecond !== undefined) await arrivals(plan.perSecond)
    else await Promise.all(Array.from({ length: CLIENTS }, client))
    return quietFootprint(program, fresh)
  }
  try {
    await program.ready()
    // The first read starts a thread; without this one it might come after the warm-up.
    await fetch(`${program.url}/api/usage/token/`, { headers: { authorization: 'Bearer sk-ann' } })
    fresh = await footprint(program)
    const warm = await sendAll(plan.warmUp)
    const end = await sendAll(plan.requests - plan.warmUp)
    const page = await metricsOf(program.url)
    const database = databaseOf(program.folder.path)
    const charged = database.usage().reduce((sum, { quota }) => sum + quota, 0)
    return {
      fresh,
      warm,
      end,
      requests: plan.requests,
      aborted,
      rejected,
      refused,
      wrong,
      closeWait: closeWaits(program.port),
      openCalls: page.sum('sluice_open_calls') - 1,
      openHolds: page.sum('sluice_open_holds'),
      unaccounted:
        Math.abs(database.token('token-ann').used_quota - charged) +
        Math.abs(database.user('ann').used_quota - charged),
      said: program.err().replaceAll(/^footprint .*\n/gm, ''),
    }
  } finally {
    await discard(program)
    await upstream.stop()
  }
}

// Aborts before the response headers, after them, or in the middle of the body.
async function abort(program: Program, body: object, agent: Agent, when: number): Promise<void> {
  if (when < 0.3) {
    const sent = send(program.url, body, { key: 'ann', agent })
    await sleep(when * 20)
    sent.destroy()
    return
  }
  let live: LiveResponse
  try {
    live = await open(program.url, body, { key: 'ann', agent })
  } catch {
    return
  }
  if (when > 0.6) await live.until('"content":').catch(() => {})
  live.abort()
  await live.end()
}

/** Waits until idle connections are closed, as they are in an idle gateway. */
async function quietFootprint(program: Program, fresh: Footprint): Promise<Footprint> {
  await eventually(async () => {
    const page = await metricsOf(program.url)
    return page.sum('sluice_open_holds') === 0 && page.sum('sluice_open_calls') === 1
  }, 'nothing under way')
  await eventually(() => descriptors(program.pid).sockets <= fresh.sockets, 'connections closed')
  return footprint(program)
}

async function footprint(program: Program): Promise<Footprint> {
  const said = (): string[] => [...program.err().matchAll(/^footprint (.*)$/gm)].map(([, text]) => text ?? '')
  const before = said().length
  program.kill('SIGUSR2')
  await eventually(() => said().length > before, 'a footprint')
  return { ...JSON.parse(said().at(-1) ?? ''), ...descriptors(program.pid) } as Footprint
}

function descriptors(pid: number): { files: string[]; sockets: number } {
  const links = readdirSync(`/proc/${pid}/fd`).map((name) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${name}`)
    } catch {
      return ''
    }
  })
  const files = links.filter((link) => !link.startsWith('socket:'))
  return { files, sockets: links.length - files.length }
}

/** The number of connections of a port in the state CLOSE_WAIT. */
function closeWaits(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, address, , state]) => address?.endsWith(local) && state === '08').length
}

/** The differences as sentences; each is a leak or an error of the gateway. Empty if there is none. */
export function flat({ fresh, warm, end, wrong, ...report }: SoakReport): string[] {
  const broken = wrong.slice(0, 5).map((what) => `a wrong answer: ${what}`)
  const expected = (is: number, most: number, what: string): void => {
    if (is > most) broken.push(`${what}: ${is}, at most ${most} expected`)
  }
  expected(end.heap, warm.heap * 1.05 + 1e6, 'bytes on the heap')
  expected(end.buffers, warm.buffers * 1.05 + 1e6, 'bytes in buffers')
  const newFiles = end.files.filter((file) => !warm.files.includes(file)).join(', ')
  expected(end.files.length, warm.files.length, `open files (new: ${newFiles || 'none'})`)
  expected(end.sockets, fresh.sockets, 'connections')
  expected(end.resources, warm.resources + 1, 'things that the event loop waits for')
  expected(report.closeWait, 0, 'connections that are half closed')
  expected(report.openCalls, 0, 'calls under way')
  expected(report.openHolds, 0, 'open holds')
  expected(report.unaccounted, 0, 'quota units without a row')
  if (report.said !== '') broken.push(`it said: ${report.said}`)
  return broken
}
