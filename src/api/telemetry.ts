import { telemetrySchema, telemetryState } from '../management/telemetry.ts'
import { defineRootUserEndpoint, type JsonEndpoint } from './endpoint.ts'

/**
 * Endpoint that shows what was exported to a collector, and what was lost:
 * `docs/administration.md: Telemetry`.
 */
export const TELEMETRY_ENDPOINTS: readonly JsonEndpoint[] = [
  defineRootUserEndpoint('GET', '/api/telemetry/', {
    summary: 'What was exported to a collector of OpenTelemetry, and what was lost',
    responseBody: telemetrySchema,
    handle: ({ services }) => Promise.resolve(telemetryState(services.telemetry)),
  }),
]
