import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import type { Patch } from '../test/fixtures/patch.ts'
import { patchedProgram } from '../test/fixtures/patched-copy.ts'
import type { Call, Running } from './candidate.ts'
import { CANDIDATES } from './candidates.ts'
import { startSluice } from './candidates/sluice.ts'
import { cpuSeconds } from './cpu-time.ts'
import { execute } from './load/execute.ts'
import { messageTo } from './requests.ts'
import { nextMessage, type Started, startHelper } from './started.ts'
import { spread } from './statistics.ts'

/**
 * Measures what telemetry costs a call in CPU time, serialization and sending included: without a collector beside a
 * copy that has no telemetry at all, with metrics, and with metrics and traces of every call. `--check` fails if a call
 * without a collector costs more than the limit.
 */
const LIMIT = 1.01
const WARM_UP = 15_000
const REQUESTS = 2_000
const CONNECTIONS = 64

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    streamed: { type: 'boolean', default: false },
  },
})
const ROUNDS = options.quick ? 15 : 81

const CALL: Call = options.streamed
  ? { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'burst', bytes: 2_000 }
  : { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'whole', bytes: 2_000 }

/** What makes a copy of the gateway that neither reads what an answer states about itself nor asks for telemetry. */
const WITHOUT: readonly Patch[] = [
  {
    file: 'packages/wire/src/answer-names.ts',
    text: '    this.id ??= shortName(id)\n    this.model ??= shortName(model)\n',
    by: '    if (id === MAX_CHOICES) this.model ??= shortName(model)\n',
  },
  {
    file: 'src/relay/call.ts',
    text: '    this.chunkGaps?.note()\n',
    by: '',
  },
  {
    file: 'src/relay/call.ts',
    text: '    this.#trace(target, settlement)\n',
    by: '    if (reason === undefined) this.#trace(target, settlement)\n',
  },
]

const SIDES = ['removed', 'off', 'metrics', 'all'] as const
type Side = (typeof SIDES)[number]

async function main(): Promise<number> {
  await using opened = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-telemetry-cost-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))
  const collector = await startSink()
  opened.defer(() => collector.close())
  const upstream = opened.use(startHelper('./lean-upstream.ts'))
  const upstreamPort = await nextMessage<number>(upstream)
  const generator = opened.use(startHelper('./load/generator.ts'))
  await nextMessage(generator)
  const environments: Readonly<Record<Side, Record<string, string>>> = {
    removed: {},
    off: {},
    metrics: { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: collector.url },
    // No span is dropped, so that each is serialized and sent.
    all: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_MAX_QUEUE_SIZE: '1000000' },
  }
  const running = new Map<Side, Running>()
  for (const side of SIDES) {
    const copy = await patchedProgram(side === 'removed' ? WITHOUT : [])
    opened.defer(() => copy.discard())
    const own = join(folder, side)
    mkdirSync(own)
    running.set(side, opened.use(await startSluice(upstreamPort, own, 1, copy.root, environments[side])))
  }
  const costOf = (side: Side, requests: number): Promise<number> =>
    perCall(generator, running.get(side) as Running, requests)
  for (const side of SIDES) await costOf(side, WARM_UP)
  const rounds: Record<Side, number>[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const costs = { removed: 0, off: 0, metrics: 0, all: 0 }
    // Begins with another side each round, so that other load affects all of them.
    for (let at = 0; at < SIDES.length; at += 1) {
      const side = SIDES[(round + at) % SIDES.length] ?? 'off'
      costs[side] = await costOf(side, REQUESTS)
    }
    rounds.push(costs)
  }
  const { median: plain } = spreadOf(rounds.map(({ off }) => off))
  const ratio = (above: Side, below: Side) => spreadOf(rounds.map((costs) => costs[above] / costs[below]))
  const found = ratio('off', 'removed')
  console.log(`node ${process.version}, ${ROUNDS} rounds of ${REQUESTS} calls, ${CALL.behaviour}`)
  console.log(`a call without a collector: ${plain.toFixed(0)} µs of CPU`)
  console.log(`without a collector, beside a copy without telemetry: ${written(found)}`)
  console.log(`with metrics, beside without a collector: ${written(ratio('metrics', 'off'))}`)
  console.log(`with metrics and traces, beside without a collector: ${written(ratio('all', 'off'))}`)
  console.log(`exports that arrived: ${collector.received()}`)
  if (found.median <= LIMIT) return 0
  console.log(`telemetry without a collector costs a call more than ${((LIMIT - 1) * 100).toFixed(0)} %`)
  return options.check ? 1 : 0
}

/** A collector that takes everything and keeps nothing. */
async function startSink(): Promise<{ url: string; received(): number; close(): void }> {
  let received = 0
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      received += 1
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: () => received,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Microseconds of CPU time per call. */
async function perCall(generator: Started, { port, pid }: Running, requests: number): Promise<number> {
  const message = messageTo(CANDIDATES.sluice, port, CALL) ?? ''
  const before = cpuSeconds(pid)
  await execute(generator, { kind: 'saturate', port, message, requests, connections: CONNECTIONS })
  return ((cpuSeconds(pid) - before) * 1e6) / requests
}

function spreadOf(values: readonly number[]) {
  return spread(values) ?? { median: 0, p25: 0, p75: 0 }
}

function written({ median, p25, p75 }: ReturnType<typeof spreadOf>): string {
  return `${median.toFixed(3)} times (${p25.toFixed(3)} to ${p75.toFixed(3)})`
}

process.exitCode = await main()
