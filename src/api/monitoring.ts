import type { Response } from '@sluice/http1'
import { METRICS_CONTENT_TYPE, metricsText } from '../telemetry/series.ts'
import type { UnauthenticatedEndpoint, OperatorEndpoint } from './endpoint.ts'

const PLAIN = ['text/plain']

/** Liveness: 200 as long as the process runs. */
export const healthz: UnauthenticatedEndpoint = {
  method: 'GET',
  path: '/healthz',
  isPolled: true,
  summary: 'Whether the process runs',
  errorStatuses: 'never',
  contentTypes: PLAIN,
  area: 'relay',
  kind: 'raw',
  access: 'anyone',
  handle: ({ response }) => sendText(response, 200, 'ok'),
}

/**
 * Readiness: 200 while calls are accepted, `degraded` included; 503 during the start, while draining, and
 * while calls cannot be charged. The text of a 503 names the reason.
 */
export const readyz: UnauthenticatedEndpoint = {
  method: 'GET',
  path: '/readyz',
  isPolled: true,
  summary: 'Whether calls are accepted',
  textErrorStatuses: [503],
  contentTypes: PLAIN,
  area: 'relay',
  kind: 'raw',
  access: 'anyone',
  async handle({ response }, readiness) {
    const state = await readiness()
    if (state === 'ready' || state === 'degraded') sendText(response, 200, state)
    else sendText(response, 503, `not ready: ${state}`)
  },
}

/** The gateway's metrics for Prometheus. `docs/operations.md: Metrics`. */
export const metricsEndpoint: OperatorEndpoint = {
  method: 'GET',
  path: '/metrics',
  isPolled: true,
  area: 'relay',
  kind: 'raw',
  access: 'operator',
  summary: "The gateway's figures for Prometheus",
  contentTypes: [METRICS_CONTENT_TYPE],
  handle({ response }, metrics) {
    response.writeHead(200, { 'content-type': METRICS_CONTENT_TYPE, 'cache-control': 'no-store' })
    response.end(metricsText(metrics.read()))
  },
}

function sendText(response: Response, status: number, word: string): void {
  const headers = { 'content-type': 'text/plain', 'cache-control': 'no-store' }
  response.writeHead(status, status === 503 ? { ...headers, 'retry-after': '5' } : headers).end(`${word}\n`)
}
