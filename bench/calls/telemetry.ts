import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { parseArgs } from 'node:util'
import type { Patch } from '../../test/fixtures/patch.ts'
import type { Call } from '../candidates/candidate.ts'
import { compareSides, written } from '../measuring/sides.ts'

/**
 * Measures what telemetry costs a call in CPU time, serialization and sending included: without a collector beside a
 * copy that has no telemetry at all, with metrics, and with metrics and traces of every call. `--check` fails if a call
 * without a collector costs more than the limit.
 */
const LIMIT = 1.01

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
    file: 'packages/wire/src/answer-metadata.ts',
    text: '    this.id ??= shortName(id)\n    this.model ??= shortName(model)\n',
    by: '    if (id === MAX_CHOICES) this.model ??= shortName(model)\n',
  },
]

const collector = await startSink()
const { cost, ratio } = await compareSides(
  {
    removed: { patches: WITHOUT },
    off: { patches: [] },
    metrics: { patches: [], env: { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: collector.url } },
    // No span is dropped, so that each is serialized and sent.
    all: {
      patches: [],
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_MAX_QUEUE_SIZE: '1000000' },
    },
  },
  CALL,
  ROUNDS,
).finally(() => collector.close())
const found = ratio('off', 'removed')
console.log(`a call without a collector: ${cost('off').median.toFixed(0)} µs of CPU`)
console.log(`without a collector, beside a copy without telemetry: ${written(found)}`)
console.log(`with metrics, beside without a collector: ${written(ratio('metrics', 'off'))}`)
console.log(`with metrics and traces, beside without a collector: ${written(ratio('all', 'off'))}`)
console.log(`exports that arrived: ${collector.received()}`)
if (found.median > LIMIT) {
  console.log(`telemetry without a collector costs a call more than ${((LIMIT - 1) * 100).toFixed(0)} %`)
  if (options.check) process.exitCode = 1
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
