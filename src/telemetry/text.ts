import type { Metric } from './series.ts'

/** The content type of `metricsText`. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Formats metrics in Prometheus' text format. */
export function metricsText(metrics: Iterable<Metric>): string {
  const lines: string[] = []
  for (const metric of metrics) {
    lines.push(`# HELP ${metric.name} ${metric.help}`, `# TYPE ${metric.name} ${metric.type}`)
    for (const { name, labels, value } of metric.samples()) {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
      lines.push(`${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`)
    }
  }
  return `${lines.join('\n')}\n`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
