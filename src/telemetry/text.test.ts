import { expect, test } from 'vitest'
import { Counter, Histogram, type Metric, metricsText } from './series.ts'

test('counters, gauges and histograms are written in the Prometheus text format', () => {
  const calls = new Counter('calls_total', 'Calls.', ['model', 'channel'])
  calls.add(2, ['m', 'a'])
  calls.add(1, ['m', 'b"\\\n'])
  calls.add(3, ['m', 'a'])
  const seconds = new Histogram('seconds', 'How long.', ['model'], [0.1, 1])
  for (const value of [0.05, 0.1, 0.5, 7]) seconds.record(value, ['m'])
  const samples = () => [{ name: 'open', labels: {}, value: 4 }]
  const open: Metric = { name: 'open', help: 'Open.', type: 'gauge', samples }
  expect(metricsText([calls, open, seconds])).toBe(
    `# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{model="m",channel="a"} 5
calls_total{model="m",channel="b\\"\\\\\\n"} 1
# HELP open Open.
# TYPE open gauge
open 4
# HELP seconds How long.
# TYPE seconds histogram
seconds_bucket{model="m",le="0.1"} 2
seconds_bucket{model="m",le="1"} 3
seconds_bucket{model="m",le="+Inf"} 4
seconds_sum{model="m"} 7.65
seconds_count{model="m"} 4
`,
  )
})
