import type { Link } from '../link/link.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { metricsText } from '../metrics/text.ts'

/** Makes a worker's metrics those of all workers, and has it tell its own on request. */
export function shareMetrics(metrics: Metrics, link: Link): void {
  link.answer('own metrics', () => metricsText(metrics.read()))
  metrics.ofOthers = (own) => link.request<readonly string[]>('metrics of others', own).catch(() => [])
}
