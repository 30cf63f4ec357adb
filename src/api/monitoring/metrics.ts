import { mergedText } from '../../metrics/merged-text.ts'
import { METRICS_CONTENT_TYPE, metricsText } from '../../metrics/text.ts'
import type { OperatorEndpoint } from '../endpoint.ts'

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
  async handle({ response }, metrics) {
    const own = metricsText(metrics.read())
    const others = await metrics.ofOthers?.(own)
    response.writeHead(200, { 'content-type': METRICS_CONTENT_TYPE, 'cache-control': 'no-store' })
    response.end(others ? mergedText([own, ...others]) : own)
  },
}
