import { z } from 'zod'
import type { Telemetry } from '../telemetry/telemetry.ts'

/**
 * How the export of one signal (such as traces) is going in this process. `docs/administration.md:
 * Telemetry`.
 */
const signalSchema = z.object({
  signal: z.enum(['traces', 'metrics', 'logs']),
  host: z.string().describe('of the collector'),
  protocol: z.enum(['http/protobuf', 'http/json']),
  sent: z.int().describe('spans or data points that the collector took'),
  failed: z.int().describe('that it refused, or that did not reach it'),
  dropped: z.int().describe('for which there was no room'),
  last_sent_at: z.int().nullable().describe('Unix seconds'),
  last_error: z.string().nullable().describe('why the last export failed; null if it did not'),
})

/** The signals that are exported; empty if no collector is configured. */
export const telemetrySchema = z.array(signalSchema)

/** What this process has exported since its start. */
export function telemetryState(telemetry: Telemetry | undefined): z.output<typeof telemetrySchema> {
  if (!telemetry) return []
  return [...telemetry.counts.states].map(([signal, state]) => ({
    signal: NAMES[signal],
    host: state.host,
    protocol: state.protocol,
    sent: state.sent,
    failed: state.failed,
    dropped: state.dropped,
    last_sent_at: state.lastSentMs === null ? null : Math.floor(state.lastSentMs / 1000),
    last_error: state.lastError,
  }))
}

const NAMES = { TRACES: 'traces', METRICS: 'metrics', LOGS: 'logs' } as const
