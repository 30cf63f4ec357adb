import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { GrowingBatch } from '../../src/content/batch.ts'
import { ContentCapture } from '../../src/content/content-capture.ts'
import { patchedProgram } from '../../test/fixtures/patched-copy.ts'
import type { Call, Running } from '../candidates/candidate.ts'
import { CANDIDATES } from '../candidates/candidates.ts'
import { startSluice } from '../candidates/sluice.ts'
import { cpuSeconds } from '../measuring/cpu-time.ts'
import { execute } from '../load/execute.ts'
import { messageTo } from '../load/requests.ts'
import { nextMessage, type Started, startHelper } from '../measuring/started.ts'
import { spread } from '../measuring/statistics.ts'

/**
 * Measures what it costs a call to keep what was said, by level: CPU time of the main thread, which calls wait for,
 * and of the whole process, beside those of a gateway without a content log, alternately. A second gateway without
 * one shows how much two of the same differ. `--check` fails if the median of a main thread exceeds its limit. The work
 * of the main thread is also timed by itself, in a loop: that differs by less than two processes do.
 */
const LIMITS = { same: 1.01, metadata: 1.01, redacted: 1.1, full: 1.1 } as const
const WARM_UP = 10_000
const REQUESTS = 2_000
const CONNECTIONS = 64

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, check: { type: 'boolean', default: false } },
})
const ROUNDS = options.quick ? 15 : 60
/** Times that all gateways are started anew: two processes of the same program differ as long as they run. */
const STARTS = 5

const CALL: Call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'whole', bytes: 2_000 }
const SIDES = ['off', 'same', 'metadata', 'redacted', 'full'] as const
type Side = (typeof SIDES)[number]

/** Microseconds of CPU time per call: of the main thread, and of all threads. */
interface Cost {
  readonly main: number
  readonly all: number
}

async function main(): Promise<number> {
  await using opened = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-content-cost-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))
  const upstream = opened.use(startHelper('load/lean-upstream.ts'))
  const upstreamPort = await nextMessage<number>(upstream)
  const generator = opened.use(startHelper('load/generator.ts'))
  await nextMessage(generator)
  const copy = await patchedProgram([])
  opened.defer(() => copy.discard())
  const rounds: Record<Side, Cost>[] = []
  for (let start = 0; start < STARTS; start += 1) {
    await using group = new AsyncDisposableStack()
    const running = new Map<Side, Running>()
    for (const side of SIDES) {
      const own = join(folder, `${side} ${start}`)
      mkdirSync(own)
      const sections = side === 'off' || side === 'same' ? {} : { content_log: { what: side } }
      running.set(side, group.use(await startSluice(upstreamPort, own, copy.root, {}, sections)))
    }
    const costOf = (side: Side, requests: number): Promise<Cost> =>
      perCall(generator, running.get(side) as Running, requests)
    for (const side of SIDES) await costOf(side, WARM_UP)
    for (let round = 0; round < ROUNDS / STARTS; round += 1) {
      const costs = new Map<Side, Cost>()
      // Begins with another side each round, so that other load affects all of them.
      for (let at = 0; at < SIDES.length; at += 1) {
        const side = SIDES[(start + round + at) % SIDES.length] ?? 'off'
        costs.set(side, await costOf(side, REQUESTS))
      }
      rounds.push(Object.fromEntries(costs) as Record<Side, Cost>)
    }
  }
  console.log(
    `node ${process.version}, ${ROUNDS} rounds of ${REQUESTS} calls of ${CALL.bytes} bytes in ${STARTS} starts`,
  )
  console.log(
    `a call without: ${medianOf(rounds.map(({ off }) => off.main)).median.toFixed(0)} µs of the main thread`,
  )
  console.log(`collecting the content of a call, in a loop: ${collectingMicros().toFixed(1)} µs`)
  let isWithin = true
  for (const side of SIDES.slice(1)) {
    const name = side as Exclude<Side, 'off'>
    const ofMain = medianOf(rounds.map((costs) => costs[name].main / costs.off.main))
    const ofAll = medianOf(rounds.map((costs) => costs[name].all / costs.off.all))
    console.log(`${name}: main thread ${written(ofMain)}, all threads ${written(ofAll)}`)
    isWithin &&= ofMain.median <= LIMITS[name]
  }
  return isWithin || !options.check ? 0 : 1
}

const LOOPS = 9
const CALLS_IN_LOOP = 20_000
const MAX_BATCH_BYTES = 4 * 1024 * 1024

/** Microseconds of CPU time for collecting one call's content and passing it to the thread; at any level the same. */
function collectingMicros(): number {
  const what = 'metadata'
  const request = Buffer.alloc(CALL.bytes, 'x')
  const answer = Buffer.alloc(CALL.bytes, 'y')
  let batch = new GrowingBatch()
  const queue = {
    take: () => true,
    give: () => {},
    dropped: () => {},
    add(...added: Parameters<GrowingBatch['add']>) {
      batch.add(...added)
      if (batch.reserved < MAX_BATCH_BYTES) return
      batch.batch().bytes.slice()
      batch = new GrowingBatch(batch.memory)
    },
  }
  const one = (): void => {
    const call = { id: '0192d3a4b5c6d7e8f9', userId: 1, tokenId: 1, startedMs: 0 }
    const capture = new ContentCapture(call, queue, request, () => ({ what, keepMs: 1 }))
    capture.beginAttempt()
    capture.onBody(request)
    capture.answerReceived(answer)
    capture.onPiece(answer)
    capture.relayed()
    capture.closed()
  }
  const micros = Array.from({ length: LOOPS }, () => {
    const before = process.cpuUsage()
    for (let call = 0; call < CALLS_IN_LOOP; call += 1) one()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / CALLS_IN_LOOP
  })
  return medianOf(micros).median
}

async function perCall(generator: Started, { port, pid }: Running, requests: number): Promise<Cost> {
  const message = messageTo(CANDIDATES.sluice, port, CALL) ?? ''
  const before = { main: mainSeconds(pid), all: cpuSeconds(pid) }
  await execute(generator, { kind: 'saturate', port, message, requests, connections: CONNECTIONS })
  // What was said is written within half a second.
  await new Promise((resolve) => setTimeout(resolve, 700))
  return {
    main: ((mainSeconds(pid) - before.main) * 1e6) / requests,
    all: ((cpuSeconds(pid) - before.all) * 1e6) / requests,
  }
}

/** CPU time of the main thread of a process. */
function mainSeconds(pid: number): number {
  const [nanoseconds = '0'] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
  return Number(nanoseconds) / 1e9
}

function medianOf(values: readonly number[]) {
  return spread(values) ?? { median: 0, p25: 0, p75: 0 }
}

function written({ median, p25, p75 }: ReturnType<typeof medianOf>): string {
  return `${median.toFixed(3)} times (${p25.toFixed(3)} to ${p75.toFixed(3)})`
}

process.exitCode = await main()
