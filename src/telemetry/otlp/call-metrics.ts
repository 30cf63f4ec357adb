import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api'
import { secondsToFirstByte } from '../../domain/records/usage.ts'
import { commonAttributes, costInUsd, errorType, type TokensByModality, tokenCounts } from '../gen-ai.ts'
import type { TracedCall } from '../telemetry.ts'
import { definedAttributes } from './defined-attributes.ts'

/** Upper bounds of the histogram buckets in seconds, as the OpenTelemetry conventions recommend. */
const BOUNDARIES = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]

/** The metrics of calls. `docs/telemetry.md: Metrics of calls`. */
export class CallMetrics {
  readonly #duration: Histogram
  readonly #firstChunk: Histogram
  readonly #perChunk: Histogram
  readonly #input: Counter
  readonly #output: Counter
  readonly #cacheRead: Counter
  readonly #cacheWrite: Counter
  readonly #reasoning: Counter
  readonly #cost: Counter

  constructor(meter: Meter) {
    const seconds = (name: string, description: string): Histogram =>
      meter.createHistogram(`gen_ai.client.inference.${name}`, {
        description,
        unit: 's',
        advice: { explicitBucketBoundaries: BOUNDARIES },
      })
    const tokens = (name: string, description: string): Counter =>
      meter.createCounter(`gen_ai.client.inference.usage.${name}`, { description, unit: '{token}' })
    this.#duration = seconds('duration', 'From the request to its charge.')
    this.#firstChunk = seconds('time_to_first_chunk', 'From the request to the first byte of a stream.')
    this.#perChunk = seconds('time_per_output_chunk', 'Between two reads of a stream.')
    this.#input = tokens('input_tokens', 'Tokens of prompts, cached ones included.')
    this.#output = tokens('output_tokens', 'Tokens of answers, reasoning included.')
    this.#cacheRead = tokens('cache_read.input_tokens', 'Tokens of prompts that were read from a cache.')
    this.#cacheWrite = tokens('cache_write.input_tokens', 'Tokens of prompts that were written to a cache.')
    this.#reasoning = tokens('reasoning.output_tokens', 'Tokens of answers that were reasoning.')
    this.#cost = meter.createCounter('sluice.client.inference.cost', {
      description: 'What was charged.',
      unit: '{USD}',
    })
  }

  record(call: TracedCall): void {
    const { facts, settlement, chunkGapsMs } = call
    const attributes = definedAttributes({
      ...commonAttributes(call),
      'gen_ai.response.model': settlement.upstream_model,
    })
    const failure = errorType(call)
    const seconds = Math.max(0, settlement.ended_ms - facts.started_ms) / 1000
    this.#duration.record(
      seconds,
      failure === undefined ? attributes : { ...attributes, 'error.type': failure },
    )
    const firstByte = secondsToFirstByte(settlement)
    if (facts.stream && firstByte !== undefined) this.#firstChunk.record(firstByte, attributes)
    for (const gapMs of chunkGapsMs) this.#perChunk.record(gapMs / 1000, attributes)
    const counts = tokenCounts(settlement.usage, call.mayHaveMedia)
    addBy(this.#input, counts.inputBy, attributes)
    addBy(this.#output, counts.outputBy, attributes)
    if (counts.cacheRead > 0) addBy(this.#cacheRead, counts.cacheReadBy, attributes)
    const text = {
      ...attributes,
      'gen_ai.token.modality': counts.isSplit ? 'unknown' : nameOfRest(counts.inputBy),
    }
    if (counts.cacheWrite > 0) this.#cacheWrite.add(counts.cacheWrite, text)
    if (counts.reasoning > 0)
      this.#reasoning.add(counts.reasoning, { ...attributes, 'gen_ai.token.modality': 'text' })
    if (settlement.quota > 0) this.#cost.add(costInUsd(call), attributes)
  }
}

/** Name of the modality for all tokens, if the provider does not count them by modality. */
function nameOfRest(counts: TokensByModality): string {
  return 'unknown' in counts ? 'unknown' : 'text'
}

function addBy(counter: Counter, counts: TokensByModality, attributes: Attributes): void {
  for (const [modality, count] of Object.entries(counts))
    counter.add(count, { ...attributes, 'gen_ai.token.modality': modality })
}
